"""Where keys come from: in words, for each key that an argument or the thread brings and each that a mask takes away
(c10/core/TensorImpl.cpp gives a tensor its keys; guards change the thread's).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..records import DispatchRow, KeyOrigin, KeySets
from ..records.key_set import KeyLayout
from ._calls import Brought, Surroundings, TopCall

_TENSOR = {
    "Quantized": "its dtype is quantized",
    "Sparse": "its layout is sparse COO",
    "SparseCsr": "its layout is compressed sparse",
    "NestedTensor": "it is a nested tensor",
    "MkldnnCPU": "its layout is oneDNN's",
    "ADInplaceOrView": "every tensor that was made outside of inference_mode has it",
    "AutogradFunctionality": "every tensor that was made outside of inference_mode has it, requires_grad or not",
    "AutogradOther": "its backend has no autograd key of its own",
    "AutogradNestedTensor": "it is a nested tensor",
    "Conjugate": "its conjugation is still to be carried out",
    "Negative": "its negation is still to be carried out",
    "ZeroTensor": "it is known to be zero and has no memory",
    "Functionalize": "functionalize has wrapped it",
    "PythonTLSSnapshot": "it comes with the Python key",
}


def origins_of(call: TopCall, sets: KeySets, rows: Mapping[str, DispatchRow]) -> tuple[KeyOrigin, ...]:
    """Each key of each step, with its cause; arguments that bring the same for the same reason stand together."""
    layout = sets.layout
    grouped: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for each in call.brought:
        grouped.setdefault(tuple(_of_argument(each, layout)), []).append(each.name)
    found: list[KeyOrigin] = []
    for causes, names in grouped.items():
        step = f"argument{'s' * (len(names) > 1)} {_listed(names)}"
        found += [KeyOrigin(step, key, because) for key, because in causes]
    found += [KeyOrigin("+ included", *cause) for cause in _of_included(call, layout)]
    found += [KeyOrigin("- excluded", *cause) for cause in _of_excluded(call, sets)]
    found += [KeyOrigin("- fallthrough", *cause) for cause in _of_fallthrough(sets, rows)]
    return tuple(found)


def context_of(around: Surroundings) -> tuple[str, ...]:
    """What was at work besides the arguments, also what changes no key."""
    found = [f"autocast is on for {key.removeprefix('Autocast')}" for key in around.autocast]
    found += [f"{name} at level {level}" for name, level in around.transforms]
    found += [f"dispatch mode {name}" for name in around.modes]
    if around.inference:
        found.append("inference_mode")
    elif not around.grad:
        found.append("gradients are off, which changes no key")
    return tuple(found)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _of_argument(brought: Brought, layout: KeyLayout) -> Iterator[tuple[str, str]]:
    """(key, because) for what one argument brings, highest first."""
    functionalities = layout.functionalities_of(brought.bits)
    is_number = brought.kind.startswith("number")
    for key in reversed(layout.keys(brought.bits)):
        functionality, backend = layout.pair(key)
        if functionality == "Dense":
            where = f"it lies on {backend}" if brought.kind != "Generator" else f"a generator for {backend}"
            yield key, f"{brought.kind} is made a 0-d tensor on the CPU" if is_number else where
        elif functionality.startswith("Autocast"):
            device = functionality.removeprefix("Autocast")
            yield key, f"every tensor on {device} has it; it counts only while autocast is on"
        elif brought.kind == "undefined tensor":
            yield key, "an undefined tensor has it, which C++ passes for one that is not there (Python sees None)"
        elif functionality == "Python":
            yield key, f"{brought.kind} has a __torch_dispatch__ of its own"
        elif functionality == "FuncTorchBatched":
            yield key, f"vmap has wrapped it{_level(brought)}"
        elif functionality == "FuncTorchGradWrapper":
            yield key, f"grad, vjp or jvp has wrapped it{_level(brought)}"
        else:
            yield key, _TENSOR.get(functionality, "its kind of tensor has it")
    if "Dense" in functionalities and not any(each.startswith("Autograd") for each in functionalities):
        if brought.kind == "Generator":
            return
        yield "-", "no autograd keys: it was made in inference_mode"


def _level(brought: Brought) -> str:
    return f" (level {brought.level})" if brought.level else ""


def _of_included(call: TopCall, layout: KeyLayout) -> Iterator[tuple[str, str]]:
    around = call.around
    keys = layout.keys(call.included) or layout.functionalities_of(call.included)
    for key in reversed(keys):
        if key in ("BackendSelect", "ADInplaceOrView"):
            yield key, "every thread starts with it"
        elif key in ("Python", "PythonTLSSnapshot") and around.modes:
            yield key, f"a dispatch mode is on: {', '.join(around.modes)}"
        elif key.startswith("FuncTorch") and around.transforms:
            running = ", ".join(f"{name} (level {level})" for name, level in around.transforms)
            yield key, f"a transform is running: {running}"
        else:
            yield key, "a guard has put it there"
    if around.inference and "ADInplaceOrView" not in keys:
        yield "-", "inference_mode has taken ADInplaceOrView out"


def _of_excluded(call: TopCall, sets: KeySets) -> Iterator[tuple[str, str]]:
    """What the excluded set takes away; the rest of it, which nothing brings, in one line."""
    around = call.around
    taken = sets.layout.functionalities_of(sets.taken("excluded"))
    for key in reversed(taken):
        if key.startswith("Autocast"):
            off = key not in around.autocast
            device = key.removeprefix("Autocast")
            yield key, f"autocast is off for {device}" if off else "a guard keeps autocast from acting twice"
        elif key.startswith("Autograd") or key == "ADInplaceOrView":
            yield key, "inference_mode" if around.inference else _BELOW_AUTOGRAD
        else:
            yield key, "a guard has put it there"
    if not taken:
        yield "-", "takes nothing that is there"


_BELOW_AUTOGRAD = "a guard: the call comes from a kernel or a binding that works below autograd"


def _of_fallthrough(sets: KeySets, rows: Mapping[str, DispatchRow]) -> Iterator[tuple[str, str]]:
    taken = sets.layout.functionalities_of(sets.taken("fallthrough"))
    backends = sets.raw.backends
    for functionality in reversed(taken):
        row = rows.get(sets.layout.key(functionality, backends[-1] if backends else ""))
        where = f" ({row.place})" if row is not None and row.place else ""
        yield functionality, f"its row is a fallthrough: this operator has nothing to do there{where}"
    if not taken:
        yield "-", "takes nothing that is there"
