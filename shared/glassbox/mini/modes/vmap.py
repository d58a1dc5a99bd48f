"""vmap: a function of one example turned into one of a batch (PyTorch: torch/_functorch/vmap.py).

Nothing of the function is looked at: it runs once, on tensors that look like one example and stand for all.
See batched_tensor.py for how calls on them go, batch_rules.py for what operators do with a batch.
"""

import functools
from collections.abc import Callable
from typing import Any

from ..aten import ops as at
from ..c10 import layout
from ..c10.tensor_impl import TensorImpl
from . import pytree
from .batched_tensor import BATCHED, VMAP_MODE, BatchedTensor, make_batched
from .dynamic_layer import layer
from .vmap_randomness import CHOICES

Dims = Any


def vmap(
    func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments.

    in_dims: which dimension of the inputs, None for one that all examples share: an int for all, or a
    structure like the arguments'. out_dims: where the batch goes in the outputs. Keyword arguments are
    shared by all examples. randomness: "error", "same" or "different": what random operators in func do.
    ValueError for dims that do not fit the inputs or outputs, or sizes that differ along them.
    """
    if randomness not in CHOICES:
        raise RuntimeError(f"Only allowed values for randomness are {', '.join(CHOICES)}. Got {randomness}")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        where = f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}, ...)(<inputs>)"
        leaves = pytree.leaves(args)
        dims = _in_dims(in_dims, args, leaves, where)
        size = _batch_size(leaves, dims, where)
        with layer(BATCHED | VMAP_MODE, VMAP_MODE, size, randomness) as top:
            inputs = _batched(args, leaves, dims, top.level)
            outputs = func(*inputs, **kwargs)
        return _unbatched(outputs, out_dims, size, top.level, getattr(func, "__name__", str(func)))

    return wrapped


def _in_dims(in_dims: Dims, args: tuple[Any, ...], leaves: list[Any], where: str) -> list[int | None]:
    if not isinstance(in_dims, int | tuple | list):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            "inputs, got: "
            f"{type(in_dims)}."
        )
    if not leaves:
        raise ValueError(
            f"{where}: got no inputs. Maybe you forgot to add inputs, or are trying to vmap over no inputs."
        )
    dims = pytree.matched(in_dims, args)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of inputs: give an int for all, or one entry "
            "per input"
        )
    return [_in_dim(leaf, dim, where) for leaf, dim in zip(leaves, dims, strict=True)]


def _in_dim(leaf: Any, dim: Any, where: str) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(leaf, TensorImpl):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
            "non-Tensor "
            f"arguments, please use None as the respective in_dim"
        )
    rank = len(leaf._shape)
    if not -rank <= dim < rank:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so "
            "expected "
            f"in_dim to satisfy -{rank} <= in_dim < {rank}."
        )
    return dim % rank


def _batch_size(leaves: list[Any], dims: list[int | None], where: str) -> int:
    sizes = [leaf._shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(f"{where}: Expected at least one Tensor to vmap over: give one an in_dim")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"{where}: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for "
            "the mapped "
            f"dimension"
        )
    return sizes[0]


def _batched(tree: Any, leaves: list[Any], dims: list[int | None], level: int) -> Any:
    made = iter(
        [leaf if dim is None else make_batched(leaf, dim, level) for leaf, dim in zip(leaves, dims, strict=True)]
    )
    return pytree.mapped(lambda leaf: next(made), tree)


def _unbatched(outputs: Any, out_dims: Dims, size: int, level: int, name: str) -> Any:
    where = f"vmap({name}, ..., out_dims={out_dims})"
    leaves = pytree.leaves(outputs)
    for leaf in leaves:
        if not isinstance(leaf, TensorImpl):
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}.")
    dims = pytree.matched(out_dims, outputs)
    if dims is None or any(not isinstance(dim, int) for dim in dims):
        raise ValueError(f"{where}: out_dims is not compatible with the structure of outputs: give one int per output")
    values = iter([_taken_out(leaf, dim, size, level, where) for leaf, dim in zip(leaves, dims, strict=True)])
    return pytree.mapped(lambda leaf: next(values), outputs)


def _taken_out(output: Any, dim: int, size: int, level: int, where: str) -> Any:
    """The tensor of all examples, their dimension at place `dim`."""
    if not -len(output._shape) - 1 <= dim <= len(output._shape):
        raise ValueError(f"{where}: out_dims {dim} is out of range for an output with {len(output._shape)} dimensions")
    place = layout.wrap_dim(dim, len(output._shape) + 1)
    if isinstance(output, BatchedTensor) and output.level == level:
        return output.value if output.bdim == place else at.movedim_int(output.value, output.bdim, place)
    shape = (*output._shape[:place], size, *output._shape[place:])
    return at.expand(at.unsqueeze(output, place), shape, False)
