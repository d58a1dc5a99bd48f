"""Layers of a call: which calls differ by exactly one of them (torch/csrc/autograd, c10::Dispatcher)."""

from __future__ import annotations

import operator
import time
from typing import Any

import torch

from ._ledger_plan import GRAD, MODES, NO_GRAD, PLAIN, Difference, Plan, Sampled
from ._timed_calls import asking_for_gradients, tensors_in, with_out, with_tensors
from ._torch_internals.tracing import below_autograd


def add_curves(plan: Plan, first: tuple[Any, ...], sampled: Sampled) -> None:
    for size in plan.sizes:
        args = first if size == plan.sizes[0] else plan.call.make(size)
        asking = asking_for_gradients(args)
        can_have_grad = any(each.requires_grad for each in tensors_in(asking)) or _has_own(plan, first)
        for mode, (definition, within) in MODES.items():
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


def _has_own(plan: Plan, args: tuple[Any, ...]) -> bool:
    """Whether the result requires grad although no argument does."""
    return any(each.requires_grad for each in tensors_in([plan.call.function(*args)]))


def add_layers(plan: Plan, args: tuple[Any, ...], below: bool, sampled: Sampled) -> None:
    start = plan.sizes[0]
    plain, grad = f"{PLAIN} {start}", f"{GRAD} {start}"
    # A module's own parameters ask for gradients whatever its arguments do.
    bare, how = (f"{NO_GRAD} {start}", "the call inside no_grad") if _has_own(plan, args) else (plain, "the plain call")
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
                f"{how}, minus the same call below the autograd keys: the kernel that looks whether to record, finds "
                "it need not, and redispatches",
                ((bare, 1), ("below", -1)),
                "4, 6",
            )
        )
    if grad in plan.samples:
        outer.append(
            Difference(
                "node and saved values",
                f"the call with arguments that require grad, minus {how}: making the node, its edges, and what it "
                "saves, and freeing them again",
                ((grad, 1), (bare, -1)),
                "5",
            )
        )
    plan.layers = outer + inner


def _inside_the_call(
    plan: Plan, args: tuple[Any, ...], tensors: list[Any], sampled: Sampled
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


def _without_result(plan: Plan, args: tuple[Any, ...], sampled: Sampled) -> tuple[str, str] | None:
    """A sample of the call that makes no new tensor, and how it does so."""
    method = plan.call.in_place()
    # Ones stay far from overflow and from denormal numbers however often they are added or multiplied.
    ones = with_tensors(args, torch.ones_like)
    if method is not None and plan.add("in place, below", sampled(method, ones, within=below_autograd)):
        return "in place, below", "in place"
    given = with_out(plan.call, args)
    if given and plan.add("out, below", sampled(plan.call.function, *given, within=below_autograd)):
        return "out, below", "with out="
    return None
