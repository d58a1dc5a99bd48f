"""Lab 2: whose kernel a row of a dispatch table holds (PyTorch: ATen/core/dispatch/OperatorEntry.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..model import Case, Draw, Property, Task
from . import real

DEVICES = ("CPU", "CUDA", "XPU", "PrivateUse1")
# PyTorch refuses a kernel at Meta beside a CompositeImplicitAutograd one, so no case registers there.
DENSE = (*DEVICES, "Meta")
SPARSE = ("SparseCPU", "SparseCUDA")
QUANTIZED = ("QuantizedCPU", "QuantizedCUDA")
BACKEND_KEYS = (*DENSE, *SPARSE, *QUANTIZED)
AUTOGRAD_KEYS = tuple(f"Autograd{device}" for device in DENSE)
OVER_DEVICES = tuple(f"Autograd{device}" for device in DEVICES)
LAYERS = (
    *("BackendSelect", "Python", "Functionalize", "ADInplaceOrView", "AutocastCPU", "AutocastCUDA"),
    *("FuncTorchVmapMode", "PythonTLSSnapshot"),
)
EXPLICIT = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd")
COMPOSITE = (*EXPLICIT, "CompositeImplicitAutograd")
ALIASES = (*COMPOSITE, "Autograd", "FuncTorchBatchedDecomposition")


def _true_row(key: str, registered: Sequence[str], fallbacks: Sequence[str]) -> Any:
    row = _rows(tuple(sorted(registered))).get(key)
    # PyTorch's own fallbacks are fixed; the case's take their place.
    if row is None or row[1] == "backend fallback":
        return (key, "backend fallback") if key in fallbacks else None
    return row


@lru_cache(4096)
def _rows(registered: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Row by row, whose kernel PyTorch runs and why, for an operator with just these kernels."""
    import torch

    with real.operators("f(int n) -> int") as library:
        for place, name in enumerate(registered):
            library.impl("f", lambda n, place=place: place, name)
        found = {}
        op = real.operator(library, "f")
        for line in torch._C._dispatch_dump_table(f"{library.ns}::f").splitlines():
            key, colon, rest = line.partition(": ")
            if not colon or key not in ASKED:
                continue
            if "ambiguous" in rest:
                found[key] = "CompositeImplicitAutograd", "ambiguous autogradother"
                continue
            reason = rest[rest.rindex("[") + 1 : -1]
            if reason == "backend fallback":
                found[key] = key, reason
            else:
                # Whose kernel it is, the kernel says itself.
                only = real.set_of(0) if key == "Undefined" else real.set_of(0).add(real.key_called(key))
                found[key] = registered[op.redispatch(only, 0)], reason
        return found


ASKED = frozenset(("Undefined", *BACKEND_KEYS, *AUTOGRAD_KEYS, "AutogradOther", "FuncTorchBatched", *LAYERS))


def _row(
    keys: Sequence[str], aliases: Sequence[str], own: float = 0.15, kernels: int = 3, fallback: float = 0.5
) -> Draw:
    """A row of one of `keys`: some alias kernels, up to `kernels` others, perhaps one of the key's own."""

    def draw(rng: random.Random) -> Case:
        key = rng.choice(keys)
        chosen = set(rng.sample(aliases, rng.randint(1, min(3, len(aliases))))) if aliases else set()
        others = [name for name in (*DEVICES, *SPARSE, *AUTOGRAD_KEYS, *LAYERS) if name != key]
        chosen |= set(rng.sample(others, rng.randint(0, 3)))
        if key in OVER_DEVICES and rng.random() < 0.35:
            chosen.add(key.removeprefix("Autograd"))
        if key not in ("Undefined", "Meta") and rng.random() < own:
            chosen.add(key)
        names = rng.sample((*LAYERS, *AUTOGRAD_KEYS, "FuncTorchBatched"), rng.randint(0, 4))
        if key != "Undefined" and rng.random() < 0.5:
            names.append(key)
        return key, _mixed(rng, chosen), _mixed(rng, set(names))

    return draw


def _exact(key: str, *registered: str, fallbacks: tuple[str, ...] = ()) -> Draw:
    """Just these kernels, and one of a layer that has no say in it."""

    def draw(rng: random.Random) -> Case:
        more = rng.sample([name for name in LAYERS if name != key], rng.randint(0, 2))
        return (
            key,
            _mixed(rng, {*registered, *more}),
            _mixed(rng, {*fallbacks, rng.choice(LAYERS[:4])} - {key} | set(fallbacks)),
        )

    return draw


def _below(rng: random.Random) -> Case:
    """An autograd key and its backend, with CompositeImplicitAutograd: does the backend have a kernel of its own?"""
    device = rng.choice(DEVICES)
    below = rng.choice(
        (device, rng.choice([other for other in DEVICES if other != device]), "CompositeExplicitAutograd")
    )
    chosen = {"CompositeImplicitAutograd", below, *rng.sample(LAYERS, rng.randint(0, 2))}
    if rng.random() < 0.5:
        chosen.add("Autograd")
    return f"Autograd{device}", _mixed(rng, chosen), _mixed(rng, {f"Autograd{device}", rng.choice(LAYERS)})


def _other(rng: random.Random) -> Case:
    """AutogradOther: what lies below it are the sparse and quantized backends."""
    chosen = {"CompositeImplicitAutograd", *rng.sample((*SPARSE, *QUANTIZED, *DEVICES), rng.randint(0, 2))}
    chosen |= set(
        rng.sample(("Autograd", "AutogradOther", "CompositeExplicitAutograd", "AutogradCPU"), rng.randint(0, 2))
    )
    if rng.random() < 0.15:
        chosen.discard("CompositeImplicitAutograd")
    return "AutogradOther", _mixed(rng, chosen), _mixed(rng, {"AutogradOther", *rng.sample(LAYERS, 2)})


def _mixed(rng: random.Random, names: set[str]) -> tuple[str, ...]:
    found = sorted(names)
    rng.shuffle(found)
    return tuple(found)


resolve_kernel = Task(
    id="lab2.resolve_kernel",
    title="Whose kernel does the row hold?",
    function="resolve_kernel",
    points=11,
    minutes=30,
    difficulty=4,
    piece="resolve_kernel",
    oracle=_true_row,
    properties=(
        Property(
            "rows of backends",
            weight=2,
            corners=(
                _exact("CPU", "CPU", *COMPOSITE),
                _exact("CUDA", "CPU", *COMPOSITE),
                _exact("XPU", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"),
                _exact("SparseCPU", "CompositeExplicitAutogradNonFunctional", "CPU"),
                _exact("SparseCUDA", *EXPLICIT),
                _exact("PrivateUse1", "CPU", "Autograd", fallbacks=("PrivateUse1",)),
                _exact("Meta", "CPU", "AutogradMeta"),
                _exact("QuantizedCPU", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"),
            ),
            draws=(
                _row(BACKEND_KEYS, ALIASES),
                _row(SPARSE, COMPOSITE),
                _row(DENSE, COMPOSITE),
                _row(BACKEND_KEYS, ()),
            ),
            why="an own kernel first, then the composites in their order, then the backend's fallback",
            slip="CompositeExplicitAutogradNonFunctional comes first of the aliases, and never fills a sparse row",
            count=18,
        ),
        Property(
            "rows of autograd keys",
            weight=3,
            corners=(
                _exact("AutogradCPU", "CPU", "Autograd"),
                _exact("AutogradCPU", "CPU", "CompositeImplicitAutograd", fallbacks=("AutogradCPU",)),
                _exact("AutogradCUDA", "CPU", "CompositeImplicitAutograd", "Autograd"),
                _exact("AutogradCUDA", "CUDA", "CompositeImplicitAutograd", "Autograd"),
                _exact("AutogradXPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"),
                _exact("AutogradCPU", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"),
                _exact("AutogradCPU", "AutogradCPU", "Autograd", "CompositeImplicitAutograd"),
            ),
            draws=(_row(AUTOGRAD_KEYS, ALIASES), _below, _row(AUTOGRAD_KEYS, ALIASES), _below),
            why="a composite without a derivative is taken apart above autograd, one with a backend kernel is not",
            slip="CompositeImplicitAutograd fills an autograd row only where the backend below has no kernel of its "
            "own and no CompositeExplicitAutograd kernel is there",
            count=19,
        ),
        Property(
            "rows of the other layers, and of no key at all",
            weight=2,
            corners=(
                _exact("BackendSelect", *COMPOSITE, fallbacks=("BackendSelect",)),
                _exact("Python", *COMPOSITE, "Autograd"),
                _exact("FuncTorchBatched", "FuncTorchBatchedDecomposition", "CompositeImplicitAutograd"),
                _exact("FuncTorchBatched", "CompositeImplicitAutograd", fallbacks=("FuncTorchBatched",)),
                _exact("FuncTorchBatched", "FuncTorchBatched", "FuncTorchBatchedDecomposition"),
                _exact("Undefined", "CompositeImplicitAutograd", "Autograd"),
                _exact("Undefined", "CPU", "Autograd"),
                _exact("Undefined", *COMPOSITE),
            ),
            draws=(
                _row(LAYERS, ALIASES, own=0.4),
                _row(("FuncTorchBatched",), ALIASES),
                _row(("Undefined",), ALIASES),
                _row(LAYERS, ALIASES, own=0.4),
            ),
            why="composites fill backends and autograd keys only; Undefined is a call without any tensor",
            slip="Undefined takes the three composites, but neither Autograd nor a fallback",
            count=19,
        ),
        Property(
            "AutogradOther",
            weight=1,
            corners=(
                _exact("AutogradOther", "CompositeImplicitAutograd", "SparseCPU"),
                _exact("AutogradOther", "CompositeImplicitAutograd", "CPU", "CUDA"),
                _exact("AutogradOther", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "QuantizedCPU"),
                _exact("AutogradOther", "AutogradOther", "CompositeImplicitAutograd", "SparseCUDA"),
            ),
            draws=(_other, _other, _row(("AutogradOther",), ALIASES)),
            why="it stands above many backends at once, so one kernel cannot suit them all",
            slip="with a kernel for one of the sparse or quantized backends the answer is 'ambiguous autogradother'",
        ),
    ),
    hints=(
        "Write the rules down one under the other, each an `if` that returns; their order is the precedence.",
        "First sort the key: a backend, an autograd key (which backend is below?), or another layer. Then ask which "
        "aliases can cover it at all.",
        "The order: the key's own; the two Explicit aliases; CompositeImplicitAutograd with its condition; Autograd; "
        "FuncTorchBatchedDecomposition; the fallback.",
    ),
    read="notebook 02, 6. Who fills the rows of the table",
)
