"""What a cost ledger times, and which difference is which layer (aten/src/ATen/core/dispatch/Dispatcher.h).

A plan is data: samples by name, and layers as sums and differences of them. Calls that do not work (an operator without
out=, integers that can have no gradient) are left out, with the reason.
"""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ._looking import in_short
from ._measuring import Sample, calling, in_vmap
from ._timed_calls import TimedCall, asking_for_gradients, tensors_in, with_tensors
from ._torch_internals.access import TorchInternalsError
from ._torch_internals.tracing import below_autograd, empty_dispatch_mode

PLAIN, GRAD, NO_GRAD, INFERENCE = "plain", "requires_grad", "no_grad", "inference_mode"

_MODES: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    GRAD: ("floating point arguments require grad, and a node is recorded", nullcontext),
    PLAIN: ("no argument requires grad", nullcontext),
    NO_GRAD: ("arguments require grad, inside torch.no_grad()", torch.no_grad),
    INFERENCE: ("arguments require grad, inside torch.inference_mode()", torch.inference_mode),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A layer before it is measured: samples to add (+1) and to take away (-1)."""

    name: str
    definition: str
    terms: tuple[tuple[str, int], ...]
    stations: str = ""


@dataclass(slots=True)
class Plan:
    """What to time, by name, and what to make of the times.

    curves         mode -> (definition, [(size, sample)])
    alternatives   (name, definition, sample)
    """

    call: TimedCall
    sizes: tuple[int, ...]
    samples: dict[str, Sample] = field(default_factory=dict)
    layers: list[Difference] = field(default_factory=list)
    curves: dict[str, tuple[str, list[tuple[int, str]]]] = field(default_factory=dict)
    alternatives: list[tuple[str, str, str]] = field(default_factory=list)
    hops: list[Difference] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def whole(self) -> str:
        """The sample of the full call at the smallest size."""
        return next(iter(self.curves.values()))[1][0][1]

    def add(self, name: str, sample: Sample, label: str = "") -> bool:
        """Take a sample in if it works; else say why not, under its label if it has one."""
        try:
            sample(1, time.perf_counter_ns)
        except TorchInternalsError:
            raise
        except Exception as error:
            if label:
                self.left_out.append(f"{label} ({in_short(error)})")
            return False
        self.samples[name] = sample
        return True


def build_plan(call: TimedCall, sizes: Sequence[int], device: str, settle: Callable[[], None] | None) -> Plan:
    """The plan for a call over these sizes, the smallest of which is taken apart."""
    plan = Plan(call, tuple(sizes))
    sampled = functools.partial(calling, settle=settle)
    args = call.make(sizes[0])
    # Whatever is wrong with the call itself is the caller's to see.
    call.function(*args)
    _add_curves(plan, args, sampled)
    below = plan.add("below", sampled(call.function, args, within=below_autograd), "the call below autograd")
    _add_layers(plan, args, below, sampled)
    _add_alternatives(plan, args, device, sampled)
    _add_hops(plan, args, below, device, sampled, settle)
    return plan


def _add_curves(plan: Plan, first: tuple[Any, ...], sampled: Callable[..., Sample]) -> None:
    for size in plan.sizes:
        args = first if size == plan.sizes[0] else plan.call.make(size)
        asking = asking_for_gradients(args)
        can_have_grad = any(each.requires_grad for each in tensors_in(asking))
        for mode, (definition, within) in _MODES.items():
            if mode in (GRAD, NO_GRAD) and not can_have_grad:
                continue
            name = f"{mode} {size}"
            sample = sampled(plan.call.function, args if mode == PLAIN else asking, within=within)
            if mode == PLAIN and size == plan.sizes[0]:
                # All differences are to this one; what is wrong with it is the caller's to see.
                sample(1, time.perf_counter_ns)
            if plan.add(name, sample, f"{mode} over {size:,}"):
                plan.curves.setdefault(mode, (definition, []))[1].append((size, name))
    # A curve that lacks its first point has nothing to be compared with.
    for mode in [mode for mode, (_, points) in plan.curves.items() if points[0][0] != plan.sizes[0]]:
        del plan.curves[mode]


def _add_layers(plan: Plan, args: tuple[Any, ...], below: bool, sampled: Callable[..., Sample]) -> None:
    start = plan.sizes[0]
    plain, grad = f"{PLAIN} {start}", f"{GRAD} {start}"
    function = plan.call.function
    in_c = type(function).__name__ in ("builtin_function_or_method", "method_descriptor")
    tensors = tensors_in(args)
    inner: list[Difference] = []
    outer: list[Difference] = []
    if not below:
        inner.append(Difference("the call", "the call as it is, without gradients", ((plain, 1),)))
    elif in_c and plan.call.overload is not None and tensors:
        outer, inner = _inside_the_call(plan, args, tensors, sampled)
    else:
        what = "Python code, parsing, dispatcher and kernels together: name one operator to see them apart"
        inner.append(Difference("below autograd", f"the call below the autograd keys: {what}", (("below", 1),)))
    if below:
        outer.append(
            Difference(
                "Autograd kernel",
                "the plain call, minus the same call below the autograd keys: the kernel that looks whether to "
                "record, finds it need not, and redispatches",
                ((plain, 1), ("below", -1)),
                "4, 6",
            )
        )
    if grad in plan.samples:
        outer.append(
            Difference(
                "node and saved values",
                "the call with arguments that require grad, minus the plain one: making the node, its edges, and "
                "what it saves, and freeing them again",
                ((grad, 1), (plain, -1)),
                "5",
            )
        )
    plan.layers = outer + inner


def _inside_the_call(
    plan: Plan, args: tuple[Any, ...], tensors: list[Any], sampled: Callable[..., Sample]
) -> tuple[list[Difference], list[Difference]]:
    """Layers above the Autograd kernel, and below it."""
    a = tensors[0]
    plan.add("parsed", sampled(torch.is_floating_point, (a,)))
    plan.add("dispatched", sampled(torch.is_distributed, (a,)))
    parse_terms: tuple[tuple[str, int], ...]
    if len(tensors) > 1:
        pair = (a, tensors[1])
        plan.add("nothing", sampled(operator.is_, pair))
        plan.add("pair", sampled(torch.is_same_size, pair, within=below_autograd))
        nothing = "a C function that does nothing with two arguments: operator.is_(a, b)"
        parsing = (
            "torch.is_same_size(a, b) below autograd, minus the Python call and the dispatcher: parsing two tensors "
            "(and comparing their sizes); the operator's own further arguments are in the kernel's set-up"
        )
        parse_terms = (("pair", 1), ("nothing", -1), ("dispatched", -1), ("parsed", 1))
    else:
        plan.add("nothing", sampled(callable, (a,)))
        nothing = "a C function that does nothing with one argument: callable(a)"
        parsing = (
            "torch.is_floating_point(a), which never comes to the dispatcher, minus the Python call: parsing one "
            "tensor; the operator's own further arguments are in the kernel's set-up"
        )
        parse_terms = (("parsed", 1), ("nothing", -1))
    above = (*parse_terms, ("nothing", 1), ("dispatched", 1), ("parsed", -1))
    outer = [
        Difference("Python call", nothing, (("nothing", 1),), "1"),
        Difference("argument parsing", parsing, parse_terms, "2"),
        Difference(
            "dispatcher",
            "torch.is_distributed(a), whose kernel only says False, minus torch.is_floating_point(a), which has none: "
            "key set, table row, the kernel's call",
            (("dispatched", 1), ("parsed", -1)),
            "3, 4",
        ),
    ]
    held = tuple((name, -sign) for name, sign in above)
    spared = _without_result(plan, args, sampled)
    set_up = (
        "minus the layers before: further arguments, shapes and dtypes, TensorIterator where there is one, the loop"
    )
    if not spared:
        whole = Difference(
            "kernel set-up and result", f"the call below autograd, {set_up}, the result", (("below", 1), *held), "7"
        )
        return outer, [whole]
    name, how = spared
    return outer, [
        Difference("kernel set-up", f"the call {how} below autograd, {set_up}", ((name, 1), *held), "7"),
        Difference(
            "result",
            f"the call below autograd, minus the same {how}: the new tensor, its memory, its Python object",
            (("below", 1), (name, -1)),
            "7",
        ),
    ]


def _without_result(plan: Plan, args: tuple[Any, ...], sampled: Callable[..., Sample]) -> tuple[str, str] | None:
    """A sample of the call that makes no new tensor, and how it does so."""
    method = plan.call.in_place()
    # Ones stay far from overflow and from denormal numbers however often they are added or multiplied.
    ones = with_tensors(args, torch.ones_like)
    if method is not None and plan.add("in place, below", sampled(method, ones, within=below_autograd)):
        return "in place, below", "in place"
    given = _with_out(plan.call, args)
    if given and plan.add("out, below", sampled(plan.call.function, *given, within=below_autograd)):
        return "out, below", "with out="
    return None


def _with_out(call: TimedCall, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], str] | None:
    """Arguments with a result to write to, and the expression that does; None where the call gives no one tensor."""
    with torch.no_grad():
        result = call.function(*args)
    if not isinstance(result, torch.Tensor):
        return None
    names = ", ".join(f"a{nr}" for nr in range(len(args)))
    return (*args, result.clone()), f"f({names}, out=a{len(args)})"


def _add_alternatives(plan: Plan, args: tuple[Any, ...], device: str, sampled: Callable[..., Sample]) -> None:
    call, start = plan.call, plan.sizes[0]
    function = call.function

    def other(name: str, definition: str, sample: Sample, told: bool = False) -> None:
        if plan.add(name, sample, name if told else ""):
            plan.alternatives.append((name, definition, name))

    letters = "abcdefgh"[: len(args)]
    if call.symbol():
        sign = call.symbol().split()[1]
        other(f"a {sign} b", "Python's operator in place of the function", sampled(None, args, call.symbol()))
    if call.overload is not None:
        if call.method() is not None and isinstance(args[0], torch.Tensor):
            rest = ", ".join(f"a{nr}" for nr in range(1, len(args)))
            spelled = f"{letters[0]}.{call.base}({', '.join(letters[1:])})"
            other(spelled, "the method of torch.Tensor", sampled(None, args, f"a0.{call.base}({rest})"))
        if function is not call.overload:
            name = f"torch.ops.{call.overload}"
            other(name, "the operator without the generated binding: arguments go boxed", sampled(call.overload, args))
        given = _with_out(call, args)
        if given:
            other("out=", "the result is written into a tensor that is there", sampled(function, *given))
        if call.in_place() is not None:
            ones = with_tensors(args, torch.ones_like)
            other("in place", f"torch.Tensor.{call.base}_", sampled(call.in_place(), ones))
    for mode in (GRAD, NO_GRAD, INFERENCE):
        if mode in plan.curves:
            plan.alternatives.append((mode, plan.curves[mode][0], f"{mode} {start}"))
    kind = torch.device(device).type
    other(
        "autocast",
        "inside torch.autocast: with the casts, where the operator has any",
        sampled(function, args, within=lambda: torch.autocast(kind, dtype=torch.bfloat16)),
        True,
    )
    other(
        "TorchFunctionMode", "under a mode that only makes the call", sampled(function, args, within=_EmptyFunctionMode)
    )
    other(
        "TorchDispatchMode",
        "under a mode that only makes the call",
        sampled(function, args, within=empty_dispatch_mode),
    )
    other("op_log", "under glassbox.xray.op_log()", sampled(function, args, within=_op_log), True)


def _add_hops(
    plan: Plan,
    args: tuple[Any, ...],
    below: bool,
    device: str,
    sampled: Callable[..., Sample],
    settle: Callable[[], None] | None,
) -> None:
    plain = f"{PLAIN} {plan.sizes[0]}"
    if below:
        terms = ((plain, 1), ("below", -1))
        plan.hops.append(Difference("Autograd kernel", "as above: it records nothing and redispatches", terms))
    square = torch.ones(2, 2, device=device)
    small = square.to(torch.bfloat16)
    kind = torch.device(device).type
    if plan.add("mm", sampled(torch.mm, (square, square))) and plan.add(
        "matmul", sampled(torch.matmul, (square, square))
    ):
        what = "torch.matmul minus torch.mm, over (2, 2): a composite that decides for mm and calls it"
        plan.hops.append(Difference("composite", what, (("matmul", 1), ("mm", -1))))
    if plan.add("mm bfloat16", sampled(torch.mm, (small, small))) and plan.add(
        "mm autocast", sampled(torch.mm, (small, small), within=lambda: torch.autocast(kind, dtype=torch.bfloat16))
    ):
        what = "torch.mm over (2, 2) in bfloat16 inside autocast, minus outside: the kernel casts nothing, redispatches"
        plan.hops.append(Difference("Autocast kernel", what, (("mm autocast", 1), ("mm bfloat16", -1))))
    if all(isinstance(arg, torch.Tensor) or not tensors_in([arg]) for arg in args) and tensors_in(args):
        first, second = (in_vmap(plan.call.function, args, levels, settle) for levels in (1, 2))
        if plan.add("vmap", first, "vmap"):
            what = "the call inside torch.vmap over one sample, minus the plain call: front mode, batching rule"
            plan.hops.append(Difference("vmap", what, (("vmap", 1), (plain, -1))))
            if plan.add("vmap twice", second, "vmap in vmap"):
                what = "inside two nested torch.vmap, minus inside one"
                plan.hops.append(Difference("vmap, second level", what, (("vmap twice", 1), ("vmap", -1))))


class _EmptyFunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _op_log() -> AbstractContextManager[Any]:
    from . import op_log

    log: AbstractContextManager[Any] = op_log()
    return log
