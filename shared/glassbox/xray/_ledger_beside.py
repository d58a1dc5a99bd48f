"""What stands beside the layers: the same call made otherwise, and what one more hop takes (torch/overrides.py)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ._ledger_plan import GRAD, INFERENCE, NO_GRAD, PLAIN, Difference, Plan, Sampled
from ._measuring import Sample, in_vmap
from ._timed_calls import tensors_in, with_out, with_tensors
from ._torch_internals.tracing import empty_dispatch_mode


def add_alternatives(plan: Plan, args: tuple[Any, ...], device: str, sampled: Sampled) -> None:
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
        given = with_out(call, args)
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


def add_hops(
    plan: Plan,
    args: tuple[Any, ...],
    below: bool,
    device: str,
    sampled: Sampled,
    settle: Callable[[], None] | None,
) -> None:
    plain = f"{PLAIN} {plan.sizes[0]}"
    if below:
        layer = next(each for each in plan.layers if each.name == "Autograd kernel")
        plan.hops.append(Difference(layer.name, "as above: it records nothing and redispatches", layer.terms))
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
