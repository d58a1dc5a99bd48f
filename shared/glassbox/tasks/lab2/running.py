"""Lab 2: calls and redispatches, hop by hop (PyTorch: ATen/core/dispatch/Dispatcher.h, call and redispatch)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..lab1.cases import until
from ..model import Case, Draw, Property, Task
from . import real

ORDER = (
    *("PythonTLSSnapshot", "FuncTorchBatched", "AutocastCPU", "Tracer", "AutogradCPU", "ADInplaceOrView"),
    *("Functionalize", "Python", "BackendSelect", "CPU"),
)
"""Keys that PyTorch knows, the highest priority first; CPU is the only one that may lack a kernel here."""
OPS = ("mul", "sum", "copy")
GUARD = "without me, "
Kernel = str | tuple[str, ...]
Rows = dict[str, Kernel]
Hop = tuple[int, str, str | None]


class _MissingError(Exception):
    """Ends a call in the oracle as a missing kernel ends one in PyTorch."""


def _true_run(tables: Sequence[tuple[str, Sequence[tuple[str, Kernel]]]], op: str, keys: Sequence[str]) -> Any:
    hops: list[Hop] = []
    depth = 0

    @contextmanager
    def one_deeper() -> Any:
        nonlocal depth
        depth += 1
        try:
            yield
        finally:
            depth -= 1

    def attempt(name: str, function: Callable[..., Any], *given: Any) -> None:
        try:
            function(*given)
        except NotImplementedError:
            hops.append((depth, name, None))
            raise _MissingError from None

    def make(library: Any, name: str, key: str, steps: Sequence[str]) -> Callable[..., int]:
        def kernel(key_set: Any, n: int) -> int:
            hops.append((depth, name, key))
            with one_deeper():
                for step in steps:
                    words = step.removeprefix(GUARD).split()
                    with real.without(key, step.startswith(GUARD)):
                        if words[0] == "redispatch":
                            attempt(name, real.operator(library, name).redispatch, real.below(key_set, key), n)
                        else:
                            attempt(words[1], real.operator(library, words[1]), n)
            return n

        return kernel

    import torch

    schemas = [f"{name}(int n) -> int" for name, _ in tables]
    with real.operators(*schemas) as library:
        for name, rows in tables:
            for key, steps in rows:
                function = torch.library.fallthrough_kernel
                if not isinstance(steps, str):
                    function = make(library, name, key, steps)
                library.impl(name, function, key, with_keyset=not isinstance(steps, str))
        included = real.set_of(0)
        for key in keys:
            included = included.add(real.key_called(key))
        with real.thread_keys(included.raw_repr()), suppress(_MissingError):
            attempt(op, real.operator(library, op), 0)
    return hops


def _program(kind: str, ops: int = 1, missing: bool = False) -> Draw:
    """Operators, each with a kernel at most keys, and a call of the first.

    Each kernel above CPU goes on to somewhere, and CPU's computes. What else a kernel does is said by the kind:
    "redispatch", "end" (some compute themselves), "call" other operators, or "guard" (exclude themselves).
    """

    def draw(rng: random.Random) -> Case:
        names = list(OPS[:ops])
        keys = tuple(key for key in ORDER if key == "CPU" or rng.random() < 0.5)
        without = rng.choice(names) if missing else None
        tables = []
        for place, name in enumerate(names):
            later = names[place + 1 :]
            rows: list[tuple[str, Kernel]] = [(key, _passing(rng)) for key in keys if key != "CPU"]
            for at in rng.sample(range(len(rows)), min(len(rows), 2 if ops < 3 else 1)):
                rows[at] = rows[at][0], _special(rng, kind, name, later)
            # Rows of keys that this call does not have.
            absent = [key for key in ORDER if key not in keys]
            rows += [(key, _passing(rng)) for key in rng.sample(absent, min(len(absent), 2))]
            if name != without:
                rows.append(("CPU", ()))
            rng.shuffle(rows)
            tables.append((name, tuple(rows)))
        rng.shuffle(tables)
        given = list(keys)
        rng.shuffle(given)
        return tuple(tables), names[0], tuple(given)

    return until(draw, lambda case: len(case[2]) > 2)


def _broken(rng: random.Random) -> Case:
    """An operator whose first kernel calls one that has no kernel for CPU, and would then go on."""
    keys = tuple(rng.sample(ORDER[:-1], rng.randint(2, 4)))
    top = min(keys, key=ORDER.index)
    guard = rng.choice(("", GUARD))
    first: Rows = {key: _passing(rng) for key in keys} | {top: (f"{guard}call sum", "redispatch"), "CPU": ()}
    second: Rows = {key: _passing(rng) for key in keys}
    tables = [
        (name, tuple(rng.sample(list(rows.items()), len(rows)))) for name, rows in (("mul", first), ("sum", second))
    ]
    return tuple(rng.sample(tables, 2)), "mul", tuple(rng.sample((*keys, "CPU"), len(keys) + 1))


def _passing(rng: random.Random) -> Kernel:
    return rng.choice(("fallthrough", ("redispatch",), ("redispatch",)))


def _special(rng: random.Random, kind: str, op: str, later: Sequence[str]) -> Kernel:
    call = f"call {rng.choice(later)}" if later else "redispatch"
    if kind == "redispatch" or kind == "call" and not later:
        return _passing(rng)
    if kind == "end":
        return rng.choice(((), ("redispatch", "redispatch"), ("redispatch",)))
    if kind == "call":
        return rng.choice(((call,), (call, "redispatch"), ("redispatch", call)))
    return rng.choice(
        (
            (f"{GUARD}call {op}",),
            (f"{GUARD}call {op}",),
            (f"{GUARD}{call}", "redispatch"),
            (f"{GUARD}{call}", call),
            (call, f"{GUARD}redispatch"),
            (f"{GUARD}redispatch", call),
        )
    )


run_call = Task(
    id="lab2.run_call",
    title="Call and redispatch, hop by hop",
    function="run_call",
    points=10,
    minutes=30,
    difficulty=4,
    oracle=_true_run,
    properties=(
        Property(
            "redispatching down the keys",
            weight=2,
            corners=(_program("redispatch"), _program("end"), _program("redispatch", ops=2)),
            draws=(_program("redispatch"), _program("end")),
            why="a layer does its part and goes on with the keys below its own",
            slip="the next kernel is that of the highest key that is left, fallthroughs passed over",
        ),
        Property(
            "kernels that call other operators",
            weight=2,
            corners=(_program("call", ops=2), _program("call", ops=3)),
            draws=(_program("call", ops=2), _program("call", ops=3)),
            why="a composite starts its calls anew: all layers see them, also those above the caller",
            slip="a call begins with all keys of the thread, a redispatch with those that are left",
        ),
        Property(
            "kernels that exclude themselves",
            weight=2,
            corners=(_program("guard"), _program("guard", ops=2), _program("guard", ops=3)),
            draws=(_program("guard", ops=2), _program("guard", ops=3), _program("guard")),
            why="autocast and vmap call the same operator again, and would run for ever if they met themselves",
            slip="what is excluded stays so in everything that is called within the step, and comes back after it",
        ),
        Property(
            "a kernel is missing",
            weight=1,
            corners=(_program("redispatch", missing=True), _program("guard", ops=2, missing=True), _broken),
            draws=(
                _program("guard", ops=3, missing=True),
                _program("call", ops=2, missing=True),
                _program("guard", ops=3),
                _broken,
            ),
            why="PyTorch raises NotImplementedError at that place, and nothing after it runs",
            slip="end with (depth, op, None) for a call that finds no kernel, and leave out all that would follow",
        ),
    ),
    hints=(
        "Two functions that call each other: one finds the kernel for an operator and a list of keys, the other runs "
        "its steps one deeper.",
        "Finding: of the keys at hand that are not excluded, without this operator's fallthroughs, the first in the "
        "order of priority. A redispatch hands on the keys behind it; excluded ones no longer matter there.",
        "Keep what is excluded as a set that you hand down, and let a missing kernel raise an exception of your own "
        "that the outermost function catches.",
    ),
    read="notebook 02, 7. Call and redispatch",
)
