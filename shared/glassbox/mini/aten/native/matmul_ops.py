"""Matrix products (PyTorch: ATen/native/LinearAlgebra.cpp, Blas.cpp).

BLAS reads a transposed view as it lies, so nothing is copied for it. bfloat16 is multiplied and summed in
float32 and rounded once. Results are contiguous.
"""

from typing import Any

import numpy as np

from ...c10 import geometry
from ...c10.dtype import bfloat16, bool_, float32, float64
from ...c10.geometry import canonical
from ...c10.tensor_impl import TensorImpl, adopt
from .resize import forms, not_implemented, scalar_type

Number = bool | int | float


def _product(name: str, left: TensorImpl, right: TensorImpl) -> Any:
    """left @ right as a fresh tensor; NotImplementedError for bools, unless there is nothing to compute."""
    dtype = left._dtype
    if dtype is float32 or dtype is float64:
        product = np.matmul(left.strided_array(), right.strided_array())
        if product.ndim:
            return adopt(product, product.shape, canonical[product.shape], dtype, left._device)
        return TensorImpl.adopt(np.asarray(product), dtype, left._device)
    product = np.asarray(np.matmul(left.values(), right.values()))
    if dtype is bool_ and product.size and left._shape[-1]:
        raise not_implemented(name, bool_)
    return TensorImpl.of_values(product, dtype, left._device)


def _check_mm(self: TensorImpl, mat2: TensorImpl) -> None:
    if len(self._shape) != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {len(self._shape)}-D tensor")
    if len(mat2._shape) != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {len(mat2._shape)}-D tensor")
    (rows, inner), (inner2, columns) = self._shape, mat2._shape
    if inner != inner2:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and {inner2}x{columns})"
        )
    if self._dtype is not mat2._dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self._dtype.name} != {mat2._dtype.name}"
        )


def _mm(ks: int, self: TensorImpl, mat2: TensorImpl) -> Any:
    shape, other = self._shape, mat2._shape
    if len(shape) != 2 or len(other) != 2 or shape[1] != other[0] or self._dtype is not mat2._dtype:
        _check_mm(self, mat2)
    return _product("addmm_impl_cpu_", self, mat2)


def _check_bmm(batch1: TensorImpl, batch2: TensorImpl) -> None:
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if len(batch._shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    size, _, inner = batch1._shape
    if batch2._shape[:2] != (size, inner):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size}, {inner}] "
            f"but got: [{batch2._shape[0]}, {batch2._shape[1]}]."
        )
    if batch1._dtype is not batch2._dtype:
        if batch1._dtype is bool_:
            raise not_implemented("bmm", bool_)
        raise RuntimeError(
            f"expected scalar type {scalar_type(batch1._dtype)} but found {scalar_type(batch2._dtype)}"
        )


def _bmm(ks: int, self: TensorImpl, mat2: TensorImpl) -> Any:
    _check_bmm(self, mat2)
    return _product("bmm", self, mat2)


def mv(ks: int, self: TensorImpl, vec: TensorImpl) -> Any:
    """Matrix (n, m) times vector (m) -> (n); RuntimeError where shapes or dtypes do not fit."""
    if len(self._shape) != 2 or len(vec._shape) != 1:
        raise RuntimeError(
            f"matrix @ vector expected, got a {len(self._shape)}-D and a {len(vec._shape)}-D tensor"
        )
    rows, inner = self._shape
    if inner != vec._shape[0]:
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{inner}), vec ({vec._shape[0]})")
    if self._dtype is not vec._dtype:
        raise RuntimeError(
            f"mv: matrix and vector must have the same dtype, but got {scalar_type(self._dtype)} "
            f"and {scalar_type(vec._dtype)}"
        )
    return _product("addmv_impl_cpu", self, vec)


def dot(ks: int, self: TensorImpl, tensor: TensorImpl) -> Any:
    """The sum of products of two vectors, 0-d; RuntimeError where shapes or dtypes do not fit."""
    if len(self._shape) != 1 or len(tensor._shape) != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {len(self._shape)}D and {len(tensor._shape)}D tensors"
        )
    if self._dtype is not tensor._dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_type(self._dtype)} "
            f"and {scalar_type(tensor._dtype)}"
        )
    if self._shape != tensor._shape:
        (mine,), (theirs,) = self._shape, tensor._shape
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{mine}] and src [{theirs}] to have the same number "
            f"of elements, but got {mine} and {theirs} elements respectively"
        )
    if self._dtype is bool_:
        raise not_implemented("dot", bool_)
    return _product("dot", self, tensor)


def _add_scaled(self: TensorImpl, left: TensorImpl, right: TensorImpl, beta: Number, alpha: Number) -> Any:
    """beta * self + alpha * (left @ right), where self is broadcast; a beta of 0 keeps even NaN out."""
    dtype = left._dtype
    shape = (*left._shape[:-1], right._shape[-1])
    added = self.values()
    if self._shape != shape:
        geometry.expand(self._shape, self._stride, shape)
    if dtype is bool_ and 0 not in shape:
        raise not_implemented("addmm_impl_cpu_", bool_)
    product = np.matmul(left.values(), right.values())
    number = float if dtype.is_floating_point else int
    beta, alpha = number(beta), number(alpha)
    if alpha != 1:
        product = np.multiply(
            product, product.dtype.type(alpha) if dtype.is_floating_point else alpha, product
        )
    if beta == 1:
        product = np.add(product, added, product)
    elif beta != 0:
        product = np.add(
            product, added * (added.dtype.type(beta) if dtype.is_floating_point else beta), product
        )
    if dtype is bfloat16:
        return TensorImpl.of_values(product, dtype, left._device)
    return TensorImpl.adopt(product, dtype, left._device)


def _addmm(ks: int, self: TensorImpl, mat1: TensorImpl, mat2: TensorImpl, beta: Number, alpha: Number) -> Any:
    dtype, shape, other = mat1._dtype, mat1._shape, mat2._shape
    if (
        (dtype is float32 or dtype is float64)
        and dtype is mat2._dtype is self._dtype
        and beta == alpha == 1
        and len(shape) == len(other) == 2
        and shape[1] == other[0]
        and self._shape == other[1:]
    ):
        # A row added to each: a linear layer.
        product = np.matmul(mat1.strided_array(), mat2.strided_array())
        np.add(product, self.strided_array(), product)
        return adopt(product, product.shape, canonical[product.shape], dtype, mat1._device)
    _check_mm(mat1, mat2)
    if self._dtype is not mat2._dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {scalar_type(self._dtype)} "
            f"and {scalar_type(mat2._dtype)}"
        )
    return _add_scaled(self, mat1, mat2, beta, alpha)


def _baddbmm(
    ks: int, self: TensorImpl, batch1: TensorImpl, batch2: TensorImpl, beta: Number, alpha: Number
) -> Any:
    _check_bmm(batch1, batch2)
    if self._dtype is not batch1._dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {self._dtype.name}, batch1: {batch1._dtype.name}, "
            f"batch2: {batch2._dtype.name}"
        )
    return _add_scaled(self, batch1, batch2, beta, alpha)


mm = forms("mm", _mm)
bmm = forms("bmm", _bmm)
addmm = forms("addmm", _addmm, inplace=True)
baddbmm = forms("baddbmm", _baddbmm, inplace=True)
