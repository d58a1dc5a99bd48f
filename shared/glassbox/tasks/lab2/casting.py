"""Lab 2, extension: cast policies, the whole of PyTorch's four (PyTorch: ATen/autocast_mode.h)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..model import Case, Draw, Property, Task
from . import real

LOWER = ("float16", "bfloat16")
KEPT = ("float64", "int64", "int32", "bool", "complex64", "uint8")
DTYPES = (*LOWER, "float32", *KEPT)
DEVICES = ("cpu", "cuda")
Argument = tuple[str, str] | None
"""(device, dtype) of a tensor; None for a tensor that is left out."""


class _Reached(Exception):  # noqa: N818 - it is what is waited for
    """A call has come below autocast, with these arguments."""


@cache
def _tensor_class() -> Any:
    """A tensor without data that may say of itself that it is on CUDA, and stops each call below autocast."""
    import torch

    class Shell(torch.Tensor):
        @staticmethod
        def __new__(cls, device: str, dtype: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, (2, 2), dtype=dtype, device=device)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten._to_copy.default:
                return cls(args[0].device.type, kwargs["dtype"])
            raise _Reached(args, kwargs or {})

    return Shell


@contextmanager
def _autocast(device: str, lower: Any) -> Iterator[None]:
    """Autocast for one device and no other; torch.autocast would look whether there is a GPU."""
    import torch

    before = [(name, torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in DEVICES]
    try:
        for name in DEVICES:
            torch.set_autocast_enabled(name, name == device)
        torch.set_autocast_dtype(device, lower)
        yield
    finally:
        for name, enabled, dtype in before:
            torch.set_autocast_enabled(name, enabled)
            torch.set_autocast_dtype(name, dtype)


def _true_casts(
    policy: str, device: str, lower: str, arguments: Sequence[Argument], dtype: str | None
) -> tuple[list[str | None], str | None]:
    import torch

    tensors = [None if one is None else _tensor_class()(one[0], getattr(torch, one[1])) for one in arguments]
    named: dict[str, Any] = {}
    if dtype is not None:
        named["dtype"] = getattr(torch, dtype)
    with real.operators("f(Tensor?[] tensors) -> int") as library, _autocast(device, getattr(torch, lower)):
        try:
            if policy in ("lower_precision_fp", "fp32"):
                # An operator that autocast does not know, and PyTorch's own way to make it known.
                to = getattr(torch, lower) if policy == "lower_precision_fp" else torch.float32
                torch.library.register_autocast(f"{library.ns}::f", device, to, lib=library)
                real.operator(library, "f")(tensors)
            elif policy == "fp32_set_opt_dtype":
                torch.ops.aten.sum.default(*tensors, **named)
            elif device == "cpu":
                torch.ops.aten.cat.default(tensors)
            else:
                {2: torch.ops.aten.dot, 3: torch.ops.aten.addcmul}[len(tensors)].default(*tensors)
        except _Reached as reached:
            args, kwargs = reached.args
        else:
            raise AssertionError("the call ended above autocast")
    found = args[0] if isinstance(args[0], list | tuple) else args[: len(tensors)]
    given = kwargs.get("dtype")
    return [None if one is None else _name(one.dtype) for one in found], None if given is None else _name(given)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _some(rng: random.Random, device: str, kind: str) -> Argument:
    """A tensor of a kind: cast anyway, never cast, on another device."""
    other = DEVICES[1 - DEVICES.index(device)]
    if kind == "elsewhere":
        return other, rng.choice((*LOWER, "float32"))
    return device, rng.choice(KEPT if kind == "kept" else (*LOWER, "float32"))


def _plain(policy: str, *kinds: str) -> Draw:
    """A call of an operator whose arguments are all cast; the kinds are there, and some more of any."""

    def draw(rng: random.Random) -> Case:
        device = rng.choice(DEVICES)
        chosen = [
            *kinds,
            *(rng.choice(("cast", "cast", "kept", "elsewhere", "none")) for _ in range(rng.randint(1, 5))),
        ]
        arguments = [None if kind == "none" else _some(rng, device, kind) for kind in chosen]
        arguments.append((device, rng.choice((*LOWER, "float32"))))
        rng.shuffle(arguments)
        return policy, device, rng.choice(LOWER), tuple(arguments), None

    return draw


def _promote(*kinds: str, device: str | None = None) -> Draw:
    """A call whose arguments must agree; on the CPU there are some more than the kinds told.

    The kinds: "lower" (autocast's dtype), "half" (the other of 16 bits), "float32", "kept", "elsewhere".
    """

    def draw(rng: random.Random) -> Case:
        on = device or rng.choice(("cpu", "cpu", "cuda"))
        lower = rng.choice(LOWER)
        half = LOWER[1 - LOWER.index(lower)]
        chosen = list(kinds)
        count = rng.randint(4, 8) if on == "cpu" else 2
        while len(chosen) < count:
            chosen.append(rng.choice(("lower", "float32", "kept", "elsewhere")))
        arguments: list[Argument] = []
        for kind in chosen:
            if kind in ("kept", "elsewhere"):
                arguments.append(_some(rng, on, kind))
            else:
                arguments.append((on, {"lower": lower, "half": half}.get(kind, kind)))
        return "promote", on, lower, tuple(arguments), None

    return draw


def _mixed_up(draw: Draw) -> Draw:
    """The arguments of `draw` in another order."""

    def drawn(rng: random.Random) -> Case:
        policy, device, lower, arguments, dtype = draw(rng)
        return policy, device, lower, tuple(rng.sample(arguments, len(arguments))), dtype

    return drawn


def _set_dtype(kind: str, given: float = 0.5) -> Draw:
    """A reduction with a dtype argument of its own, on CUDA, where PyTorch has the policy."""

    def draw(rng: random.Random) -> Case:
        dtypes = ("float16", "bfloat16", "float64", "float32")
        dtype = rng.choice(dtypes[:3] if given == 1 else dtypes) if rng.random() < given else None
        return "fp32_set_opt_dtype", "cuda", rng.choice(LOWER), (_some(rng, "cuda", kind),), dtype

    return draw


plan_casts = Task(
    id="lab2.plan_casts",
    title="Cast policies for operators that autocast does not know",
    function="plan_casts",
    points=13,
    minutes=30,
    difficulty=4,
    oracle=_true_casts,
    # The mini-framework's autocast knows the first two: what it lacks weighs four fifths.
    properties=(
        Property(
            "policies that cast to one dtype",
            weight=1,
            corners=(
                *(_plain(policy, "cast", "kept") for policy in ("lower_precision_fp", "fp32")),
                _plain("lower_precision_fp", "none", "elsewhere"),
                _plain("fp32", "none", "elsewhere", "kept"),
            ),
            draws=(_plain("lower_precision_fp"), _plain("fp32"), _plain("lower_precision_fp", "kept")),
            why="matrix products gain speed in 16 bits, sums of many terms lose too much in them",
            slip="only floating tensors on autocast's device are touched, and float64 never: somebody asked for it",
            count=16,
        ),
        Property(
            "the widest dtype of those that take part",
            weight=1,
            corners=(
                _promote("lower", "lower"),
                _promote("lower", "float32"),
                _promote("kept", "lower", "elsewhere"),
                _promote("kept", "elsewhere"),
                _promote("elsewhere", "lower", "lower", device="cuda"),
            ),
            draws=(
                _promote(),
                _promote("lower", device="cpu"),
                _promote("float32", "kept"),
                _promote("elsewhere", "lower", device="cpu"),
            ),
            why="cat and addcmul need arguments that agree, and lose nothing in the wider dtype",
            slip="it starts at autocast's own dtype, so two int64 tensors stay, and a float32 elsewhere has no say",
            count=16,
        ),
        Property(
            "promotion meets the other 16-bit dtype",
            weight=5,
            corners=(
                _promote("half", "lower", "lower"),
                _promote("float32", "half", "kept"),
                _promote("half", "float32", "lower"),
                _promote("lower", "float32", "half"),
                _promote("kept", "half", "half"),
            ),
            draws=(
                _promote("float32", "half", device="cpu"),
                _promote("lower", "float32", "half"),
                _promote("lower", "float32", "kept", device="cpu"),
                _promote("float32", "half", "lower"),
                _mixed_up(_promote("half", "float32")),
            ),
            why="PyTorch compares one argument after the other with what it has so far",
            slip="float32 so far, or next, is an answer; anything but autocast's dtype without it is a RuntimeError",
            count=15,
        ),
        Property(
            "operators with a dtype argument of their own",
            weight=3,
            corners=(
                _set_dtype("cast", 0),
                _set_dtype("cast", 1),
                _set_dtype("kept", 0),
                _set_dtype("kept", 1),
                _set_dtype("elsewhere", 0),
            ),
            draws=(_set_dtype("cast"), _plain("fp32", "kept"), _set_dtype("kept"), _plain("lower_precision_fp")),
            why="sum can add up in float32 and read 16 bits: no copy of the input is made",
            slip="the tensor stays as it is; dtype becomes float32 where none is given and the tensor would be cast",
            count=15,
        ),
    ),
    hints=(
        "One small function says whether an argument takes part at all; all four use it.",
        "promote: start with autocast's dtype and walk through those that take part. float32, once met, stays.",
        "fp32_set_opt_dtype looks at the first argument only, casts nothing, and fills in dtype where it is None.",
    ),
    read="notebook 02, 8. Autocast and its cast policies",
)
