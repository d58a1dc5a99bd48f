"""Comparing and choosing: eq to ge, logic, clamp, where (PyTorch: ATen/native/TensorCompare.cpp)."""

import math
import warnings
from typing import Any

import numpy as np

from ...c10 import promotion
from ...c10.dtype import bool_, uint8
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.geometry import dense_strides
from ...c10.tensor_impl import TensorImpl
from .. import copy as copies
from .. import tensor_iterator
from ..tensor_iterator import BINARY_OP, COMPARISON_OP, SCALAR_OP, TensorIteratorConfig
from . import unary_ops
from .loops import fresh, into, wrapped_number
from .pointwise import (
    EVERY,
    NUMBERS,
    Pointwise,
    binary,
    comparison,
    pointwise,
    unary,
)
from .resize import scalar_type

eq, eq_scalar = comparison("eq", np.equal)
ne, ne_scalar = comparison("ne", np.not_equal)
lt, lt_scalar = comparison("lt", np.less)
le, le_scalar = comparison("le", np.less_equal)
gt, gt_scalar = comparison("gt", np.greater)
ge, ge_scalar = comparison("ge", np.greater_equal)

logical_and = binary("logical_and", np.logical_and, COMPARISON_OP)
logical_or = binary("logical_or", np.logical_or, COMPARISON_OP)
logical_xor = binary("logical_xor", np.logical_xor, COMPARISON_OP)
logical_not = unary("logical_not", np.logical_not, COMPARISON_OP)

isnan = unary("isnan", lambda a: np.not_equal(a, a), COMPARISON_OP)


def isinf(ks: int, self: TensorImpl) -> Any:
    """Which elements are infinite; a whole number never is."""
    if self._dtype.is_floating_point:
        return eq_scalar.functional(ks, unary_ops.abs.functional(ks, self), math.inf)
    nowhere = self.allocate(self._shape, dense_strides(self._shape, self._stride), bool_, self._device)
    nowhere.strided_array()[...] = False
    return nowhere


# clamp: the bound comes first in np.maximum, which returns its second argument where both are zeros


def _bounds(config: TensorIteratorConfig, label: str, one_sided: frozenset[DType]) -> tuple[Pointwise, ...]:
    return (
        pointwise("clamp_min", lambda x, low: np.maximum(low, x), 2, config, dtypes=one_sided, label=label),
        pointwise("clamp_max", lambda x, high: np.minimum(high, x), 2, config, dtypes=one_sided, label=label),
        pointwise("clamp", _between, 3, config, dtypes=NUMBERS, label=label),
    )


def _between(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.minimum(high, np.maximum(low, x))


_BY_NUMBERS = _bounds(SCALAR_OP, "clamp_scalar_cpu", NUMBERS)
_BY_TENSORS = _bounds(BINARY_OP, "clamp_cpu", EVERY)


def _clamp(self: TensorImpl, low: Any, high: Any) -> tuple[Pointwise, tuple[TensorImpl, ...]]:
    if low is None and high is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    by_tensors = isinstance(low, TensorImpl) or isinstance(high, TensorImpl)
    at_least, at_most, between = _BY_TENSORS if by_tensors else _BY_NUMBERS
    if high is None:
        return at_least, (self, wrapped_number(low, self))
    if low is None:
        return at_most, (self, wrapped_number(high, self))
    return between, (self, wrapped_number(low, self), wrapped_number(high, self))


def _clamp_functional(ks: int, self: TensorImpl, low: Any, high: Any) -> Any:
    kernel, operands = _clamp(self, low, high)
    return kernel.functional(ks, *operands)


def _clamp_out(ks: int, self: TensorImpl, low: Any, high: Any, out: TensorImpl) -> Any:
    kernel, operands = _clamp(self, low, high)
    return kernel.out(ks, *operands, out)


# Bounds may be numbers or tensors.
clamp = Pointwise(
    "clamp", _clamp_functional, lambda ks, self, low, high: _clamp_out(ks, self, low, high, self), _clamp_out
)
clamp_min = Pointwise(
    "clamp_min",
    lambda ks, self, low: _clamp_functional(ks, self, low, None),
    lambda ks, self, low: _clamp_out(ks, self, low, None, self),
    lambda ks, self, low, out: _clamp_out(ks, self, low, None, out),
)
clamp_max = Pointwise(
    "clamp_max",
    lambda ks, self, high: _clamp_functional(ks, self, None, high),
    lambda ks, self, high: _clamp_out(ks, self, None, high, self),
    lambda ks, self, high, out: _clamp_out(ks, self, None, high, out),
)


# where


_WHERE: dict[Any, TensorIteratorConfig] = {}


def _where_operands(
    condition: TensorImpl, self: TensorImpl, other: TensorImpl
) -> tuple[TensorIteratorConfig, tuple[TensorImpl, ...]]:
    if condition._dtype is uint8:
        warnings.warn(
            "where received a uint8 condition tensor: this is deprecated, use a bool condition",
            UserWarning,
            stacklevel=4,
        )
        condition = copies.to(condition, bool_, condition._device, False)
    if condition._dtype is not bool_:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{scalar_type(condition._dtype)}"
        )
    metas = tensor_iterator.meta(self), tensor_iterator.meta(other)
    categories = tuple(tensor_iterator.Operand(meta).category() for meta in metas)
    result = (
        self._dtype
        if self._dtype is other._dtype and categories[0] == categories[1]
        else promotion.common_dtype(categories)
    )
    config = _WHERE.get(result)
    if config is None:
        config = _WHERE[result] = TensorIteratorConfig(
            promote_inputs_to_common_dtype=False, static_dtype=result
        )
    converted = (copies.to(each, result, each._device, False) for each in (self, other))
    return config, (condition, *converted)


def where(ks: int, condition: TensorImpl, self: TensorImpl, other: TensorImpl) -> Any:
    """Elements of `self` where the condition holds, else of `other`."""
    config, operands = _where_operands(condition, self, other)
    metas = tuple(map(tensor_iterator.meta, operands))
    return fresh(tensor_iterator.build(config, metas), np.where, (), operands)


def where_out(ks: int, condition: TensorImpl, self: TensorImpl, other: TensorImpl, out: TensorImpl) -> Any:
    """where into a given tensor of the result's dtype; RuntimeError for another dtype."""
    config, operands = _where_operands(condition, self, other)
    if out._dtype is not config.static_dtype:
        raise RuntimeError(
            f"Expected out type to be {scalar_type(operands[1]._dtype)} but got {scalar_type(out._dtype)}"
        )
    return into(out, config, np.where, (), operands, "where_cpu", EVERY)
