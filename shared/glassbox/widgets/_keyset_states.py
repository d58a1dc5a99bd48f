"""What the key set explorer shows: one operator call in every state of the thread (ATen: DispatchKeyExtractor.h).

All of it is asked of the installed PyTorch once: the keys of each call by watching it, its kernels by hooks around
them. What needs a GPU is reckoned and marked: a CUDA call is made over fake tensors, the Python keys of which are left
out, and its kernels are those that the CPU's call met, read from CUDA's rows of the tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from ..records import Hop, KeySets, KeyStep, Onion, WhyCall
from ..xray import why
from ..xray._calls import TopCall
from ..xray._calls_of_torch import OfTorch
from ..xray._clean_thread import in_clean_thread
from ..xray._key_origins import context_of, origins_of
from ..xray._torch_internals import watched_here
from ..xray.dispatch_tables import read_row
from ..xray.key_sets import fallthroughs, key_sets_of, watch_program
from ..xray.reasons import _layers

BACKENDS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
OPS = {
    "add": ("aten.add.Tensor", torch.add, "torch.add"),
    "mm": ("aten.mm.default", torch.mm, "torch.mm"),
    "t": ("aten.t.default", torch.t, "torch.t"),
    "linear": ("aten.linear.default", torch.nn.functional.linear, "torch.nn.functional.linear"),
}
OUTSIDE, AROUND, INSIDE = "off", "around the call", "tensors made in it, too"
_FAKES = ("Python", "PythonTLSSnapshot")
# Their kernels end in the same operator for a lower key.
_HAND_ON = ("FuncTorchDynamicLayerBackMode", "ADInplaceOrView", "Python", "BackendSelect")


class PassOn(TorchDispatchMode):
    """A dispatch mode that runs what it gets."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Choice(NamedTuple):
    """One state: which operator on which device, and what is switched on. `inference` is OUTSIDE, AROUND or INSIDE."""

    op: str = "add"
    device: str = "cpu"
    requires_grad: bool = True
    autocast: bool = False
    no_grad: bool = False
    inference: str = OUTSIDE
    vmap: bool = False
    mode: bool = False


def options() -> dict[str, tuple[Any, ...]]:
    """What each field of a Choice can be; a PyTorch that was built without CUDA knows no keys of its calls."""
    devices = tuple(name for name in BACKENDS if name != "cuda" or torch.version.cuda is not None)
    off_on = (False, True)
    return {
        "op": tuple(OPS),
        "device": devices,
        "requires_grad": off_on,
        "autocast": off_on,
        "no_grad": off_on,
        "inference": (OUTSIDE, AROUND, INSIDE),
        "vmap": off_on,
        "mode": off_on,
    }


def choices() -> list[Choice]:
    """All states, the last field running fastest."""
    return [Choice(*each) for each in product(*options().values())]


@dataclass(frozen=True, slots=True)
class State:
    """What there is to see of a choice. `executed` says whether its kernels ran, or are reckoned."""

    choice: Choice
    call: WhyCall
    executed: bool


@cache
def states() -> dict[Choice, State]:
    """Every state, asked of the installed PyTorch; some seconds, once in a process.

    They are asked for in a thread of their own, since what is on around the caller would be in all of them.
    RuntimeError inside of a look at the caller's calls, which would be waited for.
    """
    if watched_here():
        raise RuntimeError(
            "KeySetExplorer: the calls of this thread are being watched, and the first explorer watches calls itself; "
            "make it outside of xray.why or xray.key_sets."
        )
    return in_clean_thread(_ask)


def _ask() -> dict[Choice, State]:
    every = choices()
    here = [each for each in every if each.device != "cuda"]
    wanted = [OPS[each.op][0] for each in here]
    seen = [call for call in why(lambda: _run_all(here)) if call.op in wanted]
    _check(wanted, [call.op for call in seen])
    found = {
        each: State(each, replace(call, hops=_outline(call.hops, BACKENDS[each.device])), True)
        for each, call in zip(here, seen, strict=True)
    }
    there = [each for each in every if each.device == "cuda"]
    if not there:
        return found
    calls: list[TopCall] = []
    watch_program("KeySetExplorer", lambda: _run_all(there), (), {}, calls)
    calls = [call for call in calls if call.op in wanted]
    _check([OPS[each.op][0] for each in there], [call.op for call in calls])
    for each, call in zip(there, calls, strict=True):
        on_cpu = found[each._replace(device="cpu")].call.hops
        found[each] = State(each, _elsewhere(call, on_cpu, BACKENDS[each.device]), False)
    return {each: found[each] for each in every}


def _check(wanted: Sequence[str], seen: Sequence[str]) -> None:
    if list(wanted) != list(seen):
        raise RuntimeError(f"KeySetExplorer: {len(seen)} calls were seen where {len(wanted)} were made.")


# The programs


def program(choice: Choice) -> tuple[str, str, str]:
    """The state as code: the tensors, the line that opens the blocks ("" for none), the call."""
    shape = "2, 3, 3" if choice.vmap else "3, 3"
    where = "" if choice.device == "cpu" else f', device="{choice.device}"'
    grad = ", requires_grad=True" if choice.requires_grad else ""
    tensors = [f"a = torch.ones({shape}{where}{grad})"]
    if choice.op != "t":
        tensors.append(f"b = torch.ones({shape}{where})")
    if choice.inference == INSIDE:
        tensors = ["with torch.inference_mode():", *(f"    {line}" for line in tensors)]
    blocks = [
        *([f'torch.autocast("{_autocast_device(choice)}")'] if choice.autocast else []),
        *(["torch.no_grad()"] if choice.no_grad else []),
        *(["torch.inference_mode()"] if choice.inference != OUTSIDE else []),
        *(["PassOn()"] if choice.mode else []),
    ]
    name = OPS[choice.op][2]
    call = f"torch.vmap({name})" if choice.vmap else name
    call += "(a)" if choice.op == "t" else "(a, b)"
    opening = f"with {', '.join(blocks)}:" if blocks else ""
    return "\n".join(tensors), opening, f"    {call}" if blocks else call


def run(choice: Choice) -> None:
    """The program of a state; where it is about CUDA, over fake tensors."""
    shape = (2, 3, 3) if choice.vmap else (3, 3)
    inside = torch.inference_mode() if choice.inference == INSIDE else contextlib.nullcontext()
    with inside, FakeTensorMode() if choice.device == "cuda" else contextlib.nullcontext():
        a = torch.ones(shape, device=choice.device, requires_grad=choice.requires_grad)
        operands = [a] if choice.op == "t" else [a, torch.ones(shape, device=choice.device)]
    function = OPS[choice.op][1]
    with contextlib.ExitStack() as stack:
        if choice.autocast:
            stack.enter_context(_autocast(_autocast_device(choice)))
        if choice.no_grad:
            stack.enter_context(torch.no_grad())
        if choice.inference != OUTSIDE:
            stack.enter_context(torch.inference_mode())
        if choice.mode:
            stack.enter_context(PassOn())
        (torch.vmap(function) if choice.vmap else function)(*operands)


def _run_all(some: Sequence[Choice]) -> None:
    for each in some:
        run(each)


def _autocast_device(choice: Choice) -> str:
    """There is no autocast for meta tensors; that of the CPU does nothing to them."""
    return "cpu" if choice.device == "meta" else choice.device


@contextlib.contextmanager
def _autocast(device: str) -> Iterator[None]:
    """torch.autocast, which without a CUDA device would leave itself off."""
    before = torch.is_autocast_enabled(device)
    torch.set_autocast_enabled(device, True)
    try:
        yield
    finally:
        torch.set_autocast_enabled(device, before)
        torch.clear_autocast_cache()


# What was seen, and what is reckoned from it


def _outline(hops: Onion, backend: str) -> Onion:
    """The hops without what kernels of the backend call in turn, which is their own business; composites are shown.

    Many kernels for meta tensors are Python's and cannot be hooked: where a layer handed on to one, it is inferred.
    """
    kept: list[Hop] = []
    inside = None
    for nr, hop in enumerate(hops):
        if inside is not None and hop.depth > inside:
            continue
        kept.append(hop)
        inside = hop.depth if hop.key == backend and hop.kind != "math kernel" else None
        below = hops[nr + 1] if nr + 1 < len(hops) else None
        if hop.key in _HAND_ON and not (below and (below.op, below.depth) == (hop.op, hop.depth + 1)):
            kept.append(_inferred(hop, backend))
            inside = hop.depth
    return Onion(tuple(kept), hops.note, hops.absent)


def _inferred(above: Hop, backend: str) -> Hop:
    """The backend's kernel below a hop; of its key set its own key alone is known."""
    framework = OfTorch()
    row = read_row(backend, framework.table(_dispatcher_name(above.op))[backend])
    bits = framework.layout().bits(backend)
    return Hop(above.op, backend, bits, (backend,), row.kind, row.place, above.depth + 1, inferred=True)


def _elsewhere(call: TopCall, on_cpu: Onion, backend: str) -> WhyCall:
    """A call on another device: its own keys, and the kernels that the CPU's call met, from this backend's rows."""
    tables = cache(call.framework.table)
    sets = _without_fakes(key_sets_of(call, tables(call.name)), tables(call.name))
    rows = {key: read_row(key, text) for key, text in tables(call.name).items()}
    brought = tuple(replace(each, bits=sets.arguments[each.name].bits, kind="Tensor") for each in call.brought)
    call = replace(call, brought=brought)
    hops = tuple(_renamed(hop, backend, sets, tables) for hop in on_cpu)
    return WhyCall(
        call.op,
        sets,
        origins_of(call, sets, rows),
        _layers(sets, rows),
        sets.effective.bits,
        Onion(hops, "reckoned from the tables: nothing ran"),
        context_of(call.around),
    )


def _without_fakes(sets: KeySets, table: Mapping[str, str]) -> KeySets:
    """The sum without the keys by which a fake tensor gets hold of a call."""
    layout = sets.layout
    fakes = layout.bits(*_FAKES)
    steps = [replace(each, bits=each.bits & ~fakes) for each in sets.steps if each.role == "argument"]
    united = 0
    for each in steps:
        united |= each.bits
    passed = fallthroughs(layout, table, united)
    included, excluded = sets.of_role("included").bits, sets.of_role("excluded").bits
    left = layout.remove(layout.remove(united | included, excluded), passed)
    parts = {"union": united, "included": included, "excluded": excluded, "fallthrough": passed, "effective": left}
    return KeySets(sets.op, (*steps, *(KeyStep(role, role, bits) for role, bits in parts.items())), layout)


def _renamed(hop: Hop, backend: str, sets: KeySets, tables: Any) -> Hop:
    """A hop of the CPU's call as one of this backend: its key, its key set, and what its row holds."""
    layout = sets.layout
    functionality, own = layout.pair(hop.key)
    key = layout.key(functionality, backend if own else "")
    if functionality == "AutocastCPU":
        key = f"Autocast{backend}"
    bits = hop.key_set
    cpu, autocast = layout.bits("CPU") & layout.backend_mask, layout.bits("AutocastCPU")
    if bits & cpu:
        bits = bits & ~cpu | layout.bits(backend) & layout.backend_mask
    if bits & autocast:
        bits = bits & ~autocast | layout.bits(f"Autocast{backend}")
    row = read_row(key, tables(_dispatcher_name(hop.op))[key])
    return replace(hop, key=key, key_set=bits, keys=layout.keys(bits), kind=row.kind, place=row.place)


def _dispatcher_name(op: str) -> str:
    """ "aten.mm.default" as "aten::mm"."""
    namespace, _, name = op.partition(".")
    return f"{namespace}::{name.removesuffix('.default')}"
