"""The operator portrait: which operators a model runs, how often, and what each costs.

PyTorch's own counters are torch/utils/flop_counter.py, whose formulas are used here, and torch/profiler, which sees
other levels too: the composites above and the kernels below what a dispatch mode sees.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..records import DTYPE_LETTERS, Portrait, PortraitPart
from ..records.portrait import short_name
from . import _looking
from . import _torch_internals as internals
from ._flops import has_formula, known_flops, tensors_in, traffic
from ._modules import ModuleTracker
from ._runs import Program, Progress, Untouched, autocast_of, mode_of, name_of, progress
from ._timing import OperatorTimer, no_collection, repeats_for, spread, stopwatch, wait
from ._torch_internals import profiling
from ._torch_internals.modes import TorchDispatchMode

_QUERIES = profiling.metadata_queries()
_LOSS = "(loss)"
# Operators of such names hold matrix products.
_HIDES_PRODUCTS = re.compile(
    r"rnn|lstm|gru|attention|transformer|conv(olution|\dd)|linear|matmul|\bmm\b|einsum|_trilinear"
)


def profile(
    model: Any,
    *inputs: Any,
    loss: Callable[[Any], Any] | None = None,
    backward: bool | None = None,
    repeats: int | None = None,
    **kwargs: Any,
) -> Portrait:
    """The operator portrait of model(*inputs, **kwargs), a module or a function, under the mode that is on.

    loss      a function of the output that gives a tensor to go backward from; without one each floating point tensor
              of the output is handed ones as its gradient, as a sum would
    backward  None: yes for a module in training mode and where a loss is given, if gradients are recorded
    repeats   runs to take medians over; None: as many as take some seconds, 3 to 20; 0: count only, which runs it once

    The model runs several times: once to warm up, once to count, and for the times in turn bare and under a mode that
    only reads the clock. Every run meets the same inputs, buffers and random numbers and no gradients, and all of them
    are afterwards as they were. What a forward writes elsewhere, such as to its parameters or to Python's variables, is
    not put back; written parameters are said. Compiled functions run eagerly. Fake and meta tensors give counts, FLOPs
    and bytes, no times.

    While a dispatch mode looks on, PyTorch itself does three things in another way: the engine adds gradients that meet
    with add instead of add_, reshape makes its views by view instead of _reshape_alias, and modes are told of the
    shallow copies of saved results as detach, which is no operator call otherwise.

    TypeError for what cannot be called, ValueError for uninitialized lazy layers, for backward=True where nothing
    requires a gradient, and for parameters whose hooks may step an optimizer in backward.
    """
    if repeats is not None and repeats < 0:
        raise ValueError(f"profile: repeats is {repeats}; give 0 to count only, or how many runs to time.")
    notes: list[str] = []
    target = profiling.uncompiled(model)
    if target is not model or (isinstance(target, torch.nn.Module) and profiling.is_compiled(target)):
        notes.append(
            "It is compiled; shown is its eager run, since a compiled one runs kernels of its own that no mode sees."
        )
    program = Program("profile", target, inputs, kwargs, loss, backward)
    with progress("profile") as say, Untouched(program) as kept:
        if repeats == 0:
            counted, rounds = _count(program, kept), None
        else:
            say("a first run to warm up")
            output, seconds = stopwatch("cpu", lambda: program.run(kept))
            has_data = all(map(_looking.has_data, tensors_in((program.args, dict(program.kwargs), output))))
            del output
            say("counting")
            counted, rounds = _count(program, kept), None
            if not has_data or "meta" in counted.devices:
                notes.append("Fake and meta tensors have no data, so nothing was timed.")
            else:
                rounds = _time(program, kept, counted, repeats or repeats_for(seconds), say)
                if rounds is None:
                    notes.append("The calls differ from run to run, so nothing was timed.")
        written = kept.written_parameters()
    unknown = sorted({short_name(key[0]) for key, part in counted.parts.items() if _HIDES_PRODUCTS.search(key[0])
                      and part["flops"] is None})  # fmt: skip
    if unknown:
        notes.append(f"PyTorch has no FLOP formula for {', '.join(unknown)}; what it computes is not in the FLOPs.")
    if written:
        more = f" and {len(written) - 1} more" if len(written) > 1 else ""
        notes.append(f"The runs wrote to parameter {written[0]}{more}, which is not put back.")
    return _portrait(program, counted, rounds, notes)


class _Counter(TorchDispatchMode):
    """Writes down each operator call: phase, module, shapes, FLOPs, bytes."""

    supports_higher_order_operators = True

    def __init__(self, tracker: ModuleTracker) -> None:
        super().__init__()
        self.ops: list[Any] = []
        self.keys: list[tuple[str, str, str]] = []
        self.parts: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.device_counts: Counter[str] = Counter()
        self._tracker = tracker
        self._stage = "forward"
        self._loss = range(0)

    def mark(self, stage: str) -> None:
        now = internals.next_sequence_nr()
        if stage == "loss":
            self._loss = range(now, now)
        elif stage == "ready":
            self._loss = range(self._loss.start, now)
        self._stage = stage

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices of the tensors that were computed with, the most frequent first."""
        return tuple(name for name, _ in self.device_counts.most_common())

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(op)
        if name in _QUERIES:
            return op(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        node = internals.current_node()
        key = (name, "forward" if node is None and self._stage != "backward" else "backward", self._place(node))
        # Before the call, which may write to them.
        shapes = ", ".join(map(_kind, tensors_in((args, kwargs))))
        out, flops = _run_counting_flops(op, args, kwargs)
        part = self.parts.setdefault(key, {"calls": 0, "shapes": Counter(), "flops": None, "bytes": 0})
        part["calls"] += 1
        part["shapes"][shapes] += 1
        part["bytes"] += traffic(op, args, kwargs, out)
        if flops is not None:
            part["flops"] = (part["flops"] or 0) + flops
        self.device_counts.update(str(each.device) for each in tensors_in((args, kwargs, out)))
        self.ops.append(op)
        self.keys.append(key)
        return out

    def _place(self, node: Any) -> str:
        in_loss = self._stage != "forward" if node is None else internals.sequence_nr(node) in self._loss
        return self._tracker.path().replace("._orig_mod", "") or (_LOSS if in_loss else "")


class _FlopsInside(TorchDispatchMode):
    """Adds up the FLOPs of what a composite operator is made of."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.flops: int | None = None

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(op) in _QUERIES:
            return op(*args, **(kwargs or {}))
        out, flops = _run_counting_flops(op, args, kwargs or {})
        if flops is not None:
            self.flops = (self.flops or 0) + flops
        return out


def _run_counting_flops(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, int | None]:
    """What a call gives, and its FLOPs: by its formula, or by those of its parts where it is a composite."""
    decompose = profiling.composite(op)
    if decompose is not None and not has_formula(op):
        with _FlopsInside() as inside:
            return decompose(*args, **kwargs), inside.flops
    out = op(*args, **kwargs)
    return out, known_flops(op, args, kwargs, out)


def _count(program: Program, kept: Untouched) -> _Counter:
    with ModuleTracker(program.module) as tracker:
        counter = _Counter(tracker)
        program.run(kept, counter.mark, counter)
    return counter


class _Rounds:
    """What the timed runs gave: seconds of the bare forward and backward, and of each operator call, run by run."""

    def __init__(self) -> None:
        self.forward: list[float] = []
        self.backward: list[float] = []
        self.calls: list[list[float]] = []


def _time(program: Program, kept: Untouched, counted: _Counter, repeats: int, say: Progress) -> _Rounds | None:
    """Bare and timed runs in turn, so that a disturbance meets both; None where the calls are not those counted."""
    device = next((name.partition(":")[0] for name in counted.devices if name != "cpu"), "cpu")
    rounds = _Rounds()
    with no_collection():
        for nr in range(repeats):
            say(f"timing, {nr + 1} of {repeats}")
            times: dict[str, float] = {}

            def mark(stage: str, times: dict[str, float] = times) -> None:
                wait(device)
                times[stage] = time.perf_counter()

            program.run(kept, mark)
            rounds.forward.append(times["ready"] - times["forward"])
            if "backward" in times:
                rounds.backward.append(times["end"] - times["backward"])
            timer = OperatorTimer(device)
            program.run(kept, inside=timer)
            if timer.ops != counted.ops:
                return None
            rounds.calls.append(timer.seconds())
    return rounds


def _portrait(program: Program, counted: _Counter, rounds: _Rounds | None, notes: list[str]) -> Portrait:
    us = _microseconds(counted, rounds)
    parts = tuple(
        PortraitPart(
            *key, found["calls"], tuple(found["shapes"].most_common()), found["flops"], found["bytes"], us.get(key)
        )
        for key, found in counted.parts.items()
    )
    given = [("", each) for each in program.args] + [(f"{name}=", each) for name, each in program.kwargs.items()]
    return Portrait(
        name_of(program.target),
        mode_of(program.module, counted.devices),
        tuple(f"{name}{_kind(each)}" for name, value in given for each in tensors_in(value)),
        counted.devices,
        torch.get_num_threads(),
        torch.__version__,
        _seen(counted.devices),
        parts,
        len(rounds.forward) if rounds else 0,
        spread(rounds.forward) if rounds else None,
        spread(rounds.backward) if rounds and rounds.backward else None,
        tuple(notes),
    )


def _microseconds(counted: _Counter, rounds: _Rounds | None) -> dict[tuple[str, str, str], float]:
    """Per part the median over the runs of what its calls took together."""
    if rounds is None:
        return {}
    sums: dict[tuple[str, str, str], list[float]] = {key: [0.0] * len(rounds.calls) for key in counted.parts}
    for run, seconds in enumerate(rounds.calls):
        for key, each in zip(counted.keys, seconds, strict=True):
            sums[key][run] += each * 1e6
    return {key: statistics.median(each) for key, each in sums.items()}


def _seen(devices: tuple[str, ...]) -> str:
    """One sentence: under which mode the portrait was taken, and what that lets one see."""
    autocast = autocast_of(devices)
    casts = f"; {autocast} was on, whose casts are the _to_copy rows" if autocast else ""
    if torch.is_inference_mode_enabled():
        return (
            "Taken under inference_mode: no Autograd keys take composite operators apart, so these are seen "
            f"whole (conv2d, not convolution){casts}."
        )
    what = "with grad on: the Autograd keys"
    if not torch.is_grad_enabled():
        what = "under no_grad, which leaves the Autograd keys in place: they"
    return f"Taken {what} take composite operators apart, so their parts are seen (convolution, not conv2d){casts}."


def _kind(tensor: Any) -> str:
    """Dtype and shape: "f32[4, 8]"."""
    dtype = str(tensor.dtype).rsplit(".", 1)[-1]
    try:
        shape = f"[{', '.join(map(str, tensor.shape))}]"
    except RuntimeError:
        shape = "[nested]"
    return f"{DTYPE_LETTERS.get(dtype, dtype)}{shape}"
