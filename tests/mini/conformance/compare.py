"""Comparison: two results held against each other: values, layout and whose memory they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from glassbox.mini.c10.tensor_impl import TensorImpl

from .translate import DTYPES, elements

# How many units in the last place a function of one or a few elements may differ.
ULPS = {"float64": 4, "float32": 4, "bfloat16": 1}
# What rounding in another order may change, relative to the result, for sums and products of many elements.
RELATIVE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2**-6}
# The smallest number above 0, and binary digits after the first.
_GRID = {"float64": (5e-324, 52), "float32": (2.0**-149, 23), "bfloat16": (2.0**-133, 7)}
EPSILON = {"float64": 2**-52, "float32": 2**-23, "bfloat16": 2**-8}


def flatten(tree: Any) -> list[Any]:
    """A result's tensors and numbers in order."""
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in flatten(item)]
    return [tree]


def is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor | TensorImpl)


def layout_problem(expected: Any, actual: Any, strides: bool = True) -> str:
    """What differs in kind, dtype, shape, strides or offset; "" if nothing does."""
    if is_tensor(expected) != is_tensor(actual):
        return f"{type(actual).__name__} instead of {type(expected).__name__}"
    if not is_tensor(expected):
        return "" if type(expected) is type(actual) else f"{type(actual)} instead of {type(expected)}"
    if DTYPES.get(expected.dtype) is not actual.dtype:
        return f"dtype {actual.dtype} instead of {expected.dtype}"
    facts = [("shape", tuple(expected.shape), actual._shape)]
    if strides:
        facts += [
            ("stride", tuple(expected.stride()), actual._stride),
            ("storage_offset", expected.storage_offset(), actual._offset),
        ]
    for name, wanted, found in facts:
        if wanted != found:
            return f"{name} {found} instead of {wanted}"
    if expected.requires_grad != actual.requires_grad:
        return f"requires_grad {actual.requires_grad} instead of {expected.requires_grad}"
    return ""


def value_problem(expected: Any, actual: Any, rule: str, scale: float = 0.0, computed: str = "") -> str:
    """What differs in the elements under a rule: exact, ulp or sum; "" if nothing does.

    scale: the largest number that went in, against which sums that cancel are measured. computed: the dtype
    whose rounding counts, where it is not the tensor's own.
    """
    if not is_tensor(expected):
        same = expected == actual or expected != expected and actual != actual
        return "" if same else f"{actual!r} instead of {expected!r}"
    dtype = str(expected.dtype).removeprefix("torch.")
    wanted, found = elements(expected), elements(actual)
    if wanted.shape != found.shape:
        return f"shape {found.shape} instead of {wanted.shape}"
    if dtype not in ULPS:
        wrong = wanted != found
    elif rule == "exact":
        wrong = (_bits(wanted) != _bits(found)) & ~(_is_nan(wanted, dtype) & _is_nan(found, dtype))
    else:
        wrong = _far(_numbers(wanted, dtype), _numbers(found, dtype), _coarser(dtype, computed), rule, scale)
    if not wrong.any():
        return ""
    place = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    pair = (_numbers(np.asarray(x), dtype)[place] for x in (found, wanted))
    found_number, wanted_number = (float(x) for x in pair)
    return f"{int(wrong.sum())} of {wrong.size} elements: {found_number!r} instead of {wanted_number!r} at {place}"


def same_elements(expected: Any, actual: Any, source: Any) -> bool:
    """Whether two tensors of indices, along some dimension, name equal elements of `source`."""
    array = elements(source)
    wanted, found = elements(expected), elements(actual)
    for axis in range(array.ndim):
        if wanted.shape[:axis] + wanted.shape[axis + 1 :] != array.shape[:axis] + array.shape[axis + 1 :]:
            continue
        if not ((found >= 0) & (found < array.shape[axis])).all():
            return False
        picked = (np.take_along_axis(array, places, axis) for places in (wanted, found))
        if np.array_equal(*picked):
            return True
    return False


def _coarser(dtype: str, computed: str) -> str:
    return max(dtype, computed, key=lambda name: EPSILON.get(name, 0.0))


def _bits(array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, order="C")
    return array.view({8: np.uint64, 4: np.uint32, 2: np.uint16}[array.itemsize])


def _is_nan(array: np.ndarray, dtype: str) -> np.ndarray:
    return np.isnan(_numbers(array, dtype))


def _numbers(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return (np.asarray(array).astype(np.uint32) << 16).view(np.float32)
    return array


def _far(wanted: np.ndarray, found: np.ndarray, dtype: str, rule: str, scale: float) -> np.ndarray:
    alike = (wanted == found) | (np.isnan(wanted) & np.isnan(found))
    if alike.all():
        return ~alike
    size = np.abs(wanted.astype(np.float64))
    distance = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    if rule == "ulp":
        smallest, digits = _GRID[dtype]
        unit = np.maximum(2.0 ** (np.floor(np.log2(np.maximum(size, smallest))) - digits), smallest)
        near = distance <= ULPS[dtype] * unit
    else:
        finite = size[np.isfinite(size)]
        largest = max(float(finite.max()) if finite.size else 0.0, scale)
        near = distance <= RELATIVE[dtype] * size + 128 * EPSILON[dtype] * largest
    return ~alike & ~(near & np.isfinite(size) & np.isfinite(found))


def aliasing_problem(expected: Any, actual: Any, torch_inputs: Sequence[Any], mini_inputs: Sequence[Any]) -> str:
    """Whether the results lie over the same inputs' storages and are views of the same tensors; "" if so."""
    if not is_tensor(expected):
        return ""
    for place, (theirs, ours) in enumerate(zip(torch_inputs, mini_inputs, strict=True)):
        wanted = expected.untyped_storage()._cdata == theirs.untyped_storage()._cdata
        if wanted != (actual._storage is ours._storage):
            return f"{'no' if wanted else 'a'} share in the storage of tensor {place}"
        if (expected is theirs) != (actual is ours):
            return f"{'not ' if expected is theirs else ''}tensor {place} itself"
        if (expected._base is theirs) != (actual._base is ours):
            return f"{'no' if expected._base is theirs else 'a'} view of tensor {place}"
    if expected._is_view() != actual._is_view():
        return f"_is_view() {actual._is_view()} instead of {expected._is_view()}"
    return ""


def largest(tensors: Sequence[torch.Tensor]) -> float:
    """The largest finite magnitude in tensors of floats."""
    found = 0.0
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.numel():
            array = tensor.detach().abs().nan_to_num(0.0, 0.0, 0.0)
            found = max(found, float(array.max()))
    return found
