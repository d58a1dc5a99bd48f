"""Dispatch tables: whose kernel an operator's row holds (PyTorch: OperatorEntry.cpp, c10/core/DispatchKeySet.cpp).

A row is filled by the first of these that is there:

1. the operator's own kernel for the key
2. an alias key that covers it: CompositeExplicitAutogradNonFunctional, CompositeExplicitAutograd,
   CompositeImplicitAutograd (for an autograd key only where the backend below has no kernel of its own), Autograd,
   FuncTorchBatchedDecomposition
3. the key's backend fallback
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...c10.dispatch_key import BACKENDS, FUNCTIONALITIES, PER_BACKEND, DispatchKey, parse
from ...c10.pieces import piece
from .kernel_function import KernelFunction

# Keys whose tensors have an autograd of no backend's own.
AUTOGRADOTHER_BACKENDS = tuple(
    parse(name) for name in ("FPGA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU")
) + tuple(parse(kind + backend) for kind in ("Quantized", "Sparse", "SparseCsr") for backend in BACKENDS)
_DENSE = tuple(parse(backend) for backend in BACKENDS)
_AUTOGRADS = (
    parse("AutogradOther"),
    *(parse("Autograd" + backend) for backend in BACKENDS),
    parse("AutogradNestedTensor"),
)
_BACKENDS = _DENSE + AUTOGRADOTHER_BACKENDS
_NESTED = tuple(parse("NestedTensor" + backend) for backend in BACKENDS)

# Alias key -> the runtime keys it fills.
ALIAS_COVERS: dict[str, frozenset[DispatchKey]] = {
    "Autograd": frozenset(_AUTOGRADS),
    "CompositeImplicitAutograd": frozenset(_BACKENDS + _AUTOGRADS + _NESTED),
    "CompositeExplicitAutograd": frozenset(_BACKENDS),
    # A backend that has only functional kernels must not get in-place ones that call them.
    "CompositeExplicitAutogradNonFunctional": frozenset(
        key
        for key in _BACKENDS
        if FUNCTIONALITIES[key.functionality - 1] != "Sparse" and BACKENDS[key.backend - 1] not in ("XLA", "Lazy")
    ),
    "FuncTorchBatchedDecomposition": frozenset((parse("FuncTorchBatched"),)),
    "CompositeImplicitAutogradNestedTensor": frozenset((*_NESTED, parse("AutogradNestedTensor"))),
}


def runtime_keys() -> Iterator[DispatchKey]:
    """Every key that has a row, in the order in which PyTorch prints a table."""
    yield DispatchKey.Undefined
    for functionality in FUNCTIONALITIES:
        if functionality in PER_BACKEND:
            yield from (parse(PER_BACKEND[functionality] + backend) for backend in BACKENDS)
        else:
            yield parse(functionality)


def backends_below(key: DispatchKey) -> tuple[DispatchKey, ...]:
    """The backend keys that an autograd key stands above; none for any other key."""
    if key.name == "AutogradOther":
        return AUTOGRADOTHER_BACKENDS
    if key.backend and FUNCTIONALITIES[key.functionality - 1] == "AutogradFunctionality":
        return (parse(BACKENDS[key.backend - 1]),)
    return ()


def _a_row(out: Any, args: tuple[Any, ...]) -> tuple[str, str] | None:
    if out is None:
        return None
    if isinstance(out, tuple | list) and len(out) == 2 and out[0] in (*args[1], args[0]):
        return out[0], str(out[1])
    raise ValueError("None, or a pair (key whose kernel is used, reason)")


@piece(returns=_a_row)
def resolve_kernel(key: str, registered: frozenset[str], fallbacks: frozenset[str]) -> tuple[str, str] | None:
    """Whose kernel the row of runtime key `key` holds: (name of the key it was registered to, reason), or None.

    registered: the keys that the operator has kernels for; fallbacks: the keys that have a backend
    fallback. The reasons are PyTorch's: "kernel", "default backend kernel", "math kernel", "nested kernel",
    "autograd kernel", "batched kernel", "backend fallback", "ambiguous autogradother".
    """
    if key in registered:
        return key, "kernel"
    row = parse(key)
    undefined = key == "Undefined"
    for alias in ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd"):
        if alias in registered and (undefined or row in ALIAS_COVERS[alias]):
            return alias, "default backend kernel"
    alias = "CompositeImplicitAutogradNestedTensor"
    if alias in registered and row in ALIAS_COVERS[alias]:
        return alias, "nested kernel"
    alias = "CompositeImplicitAutograd"
    if alias in registered and (undefined or row in ALIAS_COVERS[alias]):
        below = any(backend.name in registered for backend in backends_below(row))
        if key == "AutogradOther" and below:
            return alias, "ambiguous autogradother"
        if not (below or "CompositeExplicitAutograd" in registered):
            return alias, "math kernel"
    if "Autograd" in registered and row in ALIAS_COVERS["Autograd"]:
        return "Autograd", "autograd kernel"
    alias = "FuncTorchBatchedDecomposition"
    if alias in registered and row in ALIAS_COVERS[alias]:
        return alias, "batched kernel"
    if key in fallbacks:
        return key, "backend fallback"
    return None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a dispatch table: the runtime key, the kernel or None, and how it came there."""

    key: DispatchKey
    kernel: KernelFunction | None
    reason: str

    def __str__(self) -> str:
        if self.kernel is None:
            return f"{self.key}: {self.reason}"
        kind = "fallthrough registered" if self.kernel.is_fallthrough else "registered"
        return f"{self.key}: {kind} at {self.kernel.registered} [{self.reason}]"
