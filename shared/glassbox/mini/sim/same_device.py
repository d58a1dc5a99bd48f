"""Same device: the tensors of a call on sim must all lie there (PyTorch: c10::impl::check_and_update_common_device)."""

import inspect
from collections.abc import Callable
from typing import Any

from .effects import INDEXING, on_sim, tensors

# Copies go from one device to another; cat and stack compare devices themselves, beside other things.
BETWEEN_DEVICES = frozenset(["copy", "copy_", "_to_copy", "cat", "stack"])
# Ops that take a 0-d tensor as they take any other, while to most it stands for a number and may lie on the CPU.
NO_NUMBERS = frozenset(
    ["gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "index_select", "index_add", "index_add_", "equal"]
    + ["embedding", "embedding_dense_backward", "nll_loss_forward", "nll_loss_backward", "take"]
)


def check_same_device(base: str, kernel: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """RuntimeError where a call of the op with this base name has tensors on sim and others on the CPU.

    A 0-d tensor on the CPU may stand for a number, and indices into a tensor on sim may lie on the CPU.
    """
    if base in BETWEEN_DEVICES:
        return
    for nr, arg in enumerate(args):
        for tensor in tensors((arg,)):
            if on_sim(tensor) or not tensor._shape and base not in NO_NUMBERS:
                continue
            if base in INDEXING and nr == 1 and on_sim(args[0]):
                continue
            _refuse(base, kernel, args, nr)


def _refuse(base: str, kernel: Callable[..., Any], args: tuple[Any, ...], nr: int) -> None:
    if not any(map(on_sim, tensors(args))):
        return
    if base in INDEXING and nr == 0 and not any(map(on_sim, tensors(args[2:]))):
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    names = list(inspect.signature(kernel).parameters)[1:]
    name = names[nr] if len(names) == len(args) else f"argument {nr + 1}"
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but got {name} is on cpu, different from other tensors "
        f"on sim (when checking arguments of {base})"
    )
