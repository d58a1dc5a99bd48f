"""Random numbers: distributions over a generator's bits (PyTorch: ATen/native/DistributionTemplates.h).

A seed gives PyTorch's own numbers, since each dtype takes as many bits per element, and they are spent in the
same order. Logarithms and sines behind normal numbers may differ in the last digit.
"""

import math
from typing import Any

import numpy as np

from ...c10 import dtype as dtypes
from ...c10 import layout
from ...c10.device import CPU
from ...c10.device import device as Device  # noqa: N812
from ...c10.dtype import bfloat16, bool_, float32, float64, int64
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.generator import Generator, default_generator
from ...c10.tensor_impl import TensorImpl
from .. import loop_layout, memory_overlap
from .resize import not_implemented, with_strides

MaybeGenerator = Generator | None

# From so many elements on a contiguous tensor is filled with normal numbers in blocks of 16.
_BLOCK = 16


def _fill(self: TensorImpl, values: np.ndarray, source: DType) -> TensorImpl:
    """Write `values` (1-d, holding `source`) in the order in which the elements lie in memory."""
    array = self.strided_array()
    order = loop_layout.loop_order(self._shape, (self._stride,))
    target = array.transpose(order[::-1])
    target[...] = dtypes.convert(values, source, self._dtype).reshape(target.shape)
    return self


def _uniform01(generator: Generator, count: int, dtype: DType) -> np.ndarray:
    """Numbers in [0, 1): float64 has 53 random bits, float32 (which serves bfloat16 too) has 24."""
    if dtype is float64:
        return (generator.random64(count) & np.uint64(2**53 - 1)) * 2.0**-53
    return (generator.random(count) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2**-24)


def _largest(dtype: DType) -> float:
    if dtype is bfloat16:
        return float(dtypes.bfloat16_to_float32(np.asarray(0x7F7F, np.uint16)))
    return float(np.finfo(dtype.numpy).max)


def uniform_(ks: int, self: TensorImpl, from_: float, to: float, generator: MaybeGenerator) -> TensorImpl:
    """Fill with numbers in [from, to); RuntimeError for bounds that are no range or do not fit the dtype."""
    dtype = self._dtype
    if not dtype.is_floating_point:
        raise not_implemented("check_uniform_bounds", dtype)
    limit = _largest(dtype)
    for name, bound in (("from", from_), ("to", to)):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {dtype.name}")
    if from_ > to:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}"
        )
    if to - from_ > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= the largest {dtype.name}, got from={from_} and to={to}"
        )
    memory_overlap.assert_no_internal_overlap(self)
    generator = generator or default_generator
    wide = float64 if dtype is float64 else float32
    with generator.lock:
        values = _uniform01(generator, layout.numel(self._shape), wide)
    if (from_, to) != (0, 1):
        low, high = wide.numpy.type(from_), wide.numpy.type(to)
        # Scaled and shifted with one rounding, as by the fused instruction that PyTorch's compilers choose.
        values = (values * np.float64(high - low) + np.float64(low)).astype(wide.numpy)
    if dtype is bfloat16:
        # What rounding carried up to the bound, which is not in the range, goes to the other end.
        values = dtypes.bfloat16_to_float32(dtypes.float32_to_bfloat16(values))
        end = dtypes.bfloat16_to_float32(dtypes.float32_to_bfloat16(np.asarray(to, np.float32)))
        values[values == end] = from_
    return _fill(self, values, wide)


def _normal_pairs(generator: Generator, count: int) -> np.ndarray:
    """Normal numbers one by one, in pairs: the second of the last pair is kept for the next call."""
    kept = generator.next_normal
    missing = count - (kept is not None)
    pairs = (missing + 1) // 2
    draws = _uniform01(generator, 2 * pairs, float64)
    radius, angle = np.sqrt(-2 * np.log1p(-draws[1::2])), 2 * math.pi * draws[::2]
    numbers = np.empty(2 * pairs)
    numbers[::2], numbers[1::2] = radius * np.cos(angle), radius * np.sin(angle)
    if kept is not None:
        numbers = np.concatenate([[kept], numbers])
    generator.next_normal = float(numbers[-1]) if len(numbers) > count else None
    return numbers[:count]


def _normal_blocks(generator: Generator, count: int, dtype: DType) -> np.ndarray:
    """Normal numbers in blocks of 16, made of 8 radii and 8 angles.

    An incomplete block at the end is a fresh one that overwrites what is before it. The bits for it have been
    drawn in vain then, but for bfloat16, where PyTorch's code is another.
    """
    whole = count // _BLOCK * _BLOCK
    wide = float32 if dtype is bfloat16 else dtype
    draws = _uniform01(generator, whole if dtype is bfloat16 else count, wide)
    numbers = np.empty(count, draws.dtype)
    numbers[:whole] = _box_muller(draws[:whole])
    if whole < count:
        numbers[-_BLOCK:] = _box_muller(_uniform01(generator, _BLOCK, wide))
    return numbers


def _box_muller(draws: np.ndarray) -> np.ndarray:
    blocks = draws.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(-2 * np.log(1 - blocks[:, 0]))
    angle = blocks.dtype.type(2 * math.pi) * blocks[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)


def normal_(ks: int, self: TensorImpl, mean: float, std: float, generator: MaybeGenerator) -> TensorImpl:
    """Fill with normal numbers; RuntimeError for a negative std."""
    dtype = self._dtype
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not dtype.is_floating_point:
        raise not_implemented("normal_kernel_cpu", dtype)
    memory_overlap.assert_no_internal_overlap(self)
    generator = generator or default_generator
    count = layout.numel(self._shape)
    with generator.lock:
        if count >= _BLOCK and layout.is_contiguous(self._shape, self._stride):
            wide = float64 if dtype is float64 else float32
            numbers = _normal_blocks(generator, count, dtype)
        else:
            wide = float64
            numbers = _normal_pairs(generator, count)
    kind = numbers.dtype.type
    return _fill(self, numbers * kind(std) + kind(mean), wide)


def _integers(self: TensorImpl, generator: MaybeGenerator, span: int, base: int) -> TensorImpl:
    """Fill with base + (random bits modulo span); a span of 2**28 or more takes 64 bits per element."""
    memory_overlap.assert_no_internal_overlap(self)
    generator = generator or default_generator
    count = layout.numel(self._shape)
    with generator.lock:
        bits = generator.random64(count) if span >= 2**28 else generator.random(count)
    if span < 2**64:
        bits = bits % np.uint64(span)
    # Beyond 63 bits the sum wraps around to the right result.
    return _fill(self, bits.view(np.int64) + np.int64(base), int64)


# The largest whole number up to which a dtype holds every one.
_WHOLE = {"float64": 2**53, "float32": 2**24, "bfloat16": 2**8, "bool": 1}


def _largest_whole(dtype: DType) -> int:
    return _WHOLE[dtype.name] if dtype.name in _WHOLE else int(np.iinfo(dtype.numpy).max)


def random_from(
    ks: int, self: TensorImpl, from_: int, to: int | None, generator: MaybeGenerator
) -> TensorImpl:
    """Fill with whole numbers in [from, to), or from `from` to the largest.

    RuntimeError for an empty range or one that does not fit the dtype.
    """
    dtype = self._dtype
    limit = int(_largest(dtype)) if dtype.is_floating_point else _largest_whole(dtype)
    lowest = -limit - (not dtype.is_floating_point) if dtype.is_signed else 0
    last = _largest_whole(dtype) if to is None else to - 1
    if from_ > last:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={from_} >= to={last + 1}"
        )
    for name, bound in (("from", from_), ("to - 1", last)):
        if not lowest <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {dtype.name}")
    return _integers(self, generator, last - from_ + 1, from_)


def random_to(ks: int, self: TensorImpl, to: int, generator: MaybeGenerator) -> TensorImpl:
    """Fill with whole numbers in [0, to)."""
    return random_from(ks, self, 0, to, generator)


def random_(ks: int, self: TensorImpl, generator: MaybeGenerator) -> TensorImpl:
    """Fill with whole numbers from 0 to the largest up to which the dtype holds every one."""
    dtype = self._dtype
    memory_overlap.assert_no_internal_overlap(self)
    if dtype is not float64 and dtype is not int64:
        generator = generator or default_generator
        with generator.lock:
            bits = generator.random(layout.numel(self._shape))
        return _fill(self, (bits % np.uint64(_largest_whole(dtype) + 1)).view(np.int64), int64)
    return _integers(self, generator, _largest_whole(dtype) + 1, 0)


def bernoulli_float(ks: int, self: TensorImpl, p: float, generator: MaybeGenerator) -> TensorImpl:
    """Fill with 1 at probability p, else 0; RuntimeError for a p outside [0, 1]."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    memory_overlap.assert_no_internal_overlap(self)
    generator = generator or default_generator
    with generator.lock:
        draws = _uniform01(generator, layout.numel(self._shape), float64)
    return _fill(self, draws < p, bool_)


def bernoulli_tensor(ks: int, self: TensorImpl, p: TensorImpl, generator: MaybeGenerator) -> TensorImpl:
    """Fill with 1 at the probability that p, broadcast, has at that place; RuntimeError outside [0, 1]."""
    if not p._dtype.is_floating_point:
        raise not_implemented("bernoulli_tensor_cpu_p_", p._dtype)
    memory_overlap.assert_no_internal_overlap(self)
    try:
        chances = np.broadcast_to(p.values(), self._shape)
    except ValueError:
        raise RuntimeError(
            f"bernoulli_: p of shape {list(p._shape)} cannot be expanded to the shape {list(self._shape)} of self"
        ) from None
    if not ((chances >= 0) & (chances <= 1)).all():
        raise RuntimeError("bernoulli_: expected every p to be in [0, 1]")
    order = loop_layout.loop_order(self._shape, (self._stride,))
    generator = generator or default_generator
    with generator.lock:
        draws = _uniform01(generator, layout.numel(self._shape), p._dtype)
    return _fill(self, draws < chances.transpose(order[::-1]).reshape(-1), bool_)


def randperm_generator(
    ks: int, n: int, generator: MaybeGenerator, dtype: DType | str | None, device: Device | None
) -> Any:
    """The numbers 0 .. n - 1 in random order; RuntimeError for a negative n or a dtype too small for them."""
    # The schema's default is the name that C++ has for int64.
    dtype = dtype if isinstance(dtype, DType) else int64
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if n > _largest_whole(dtype) + 1:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow: n is {n}")
    generator = generator or default_generator
    with generator.lock:
        draws = generator.random(max(n - 1, 0))
    numbers = list(range(n))
    for place, step in enumerate((draws % np.arange(n, 1, -1, dtype=np.uint64)).tolist()):
        other = place + step
        numbers[place], numbers[other] = numbers[other], numbers[place]
    return TensorImpl.of_values(np.array(numbers, np.int64), dtype, device or CPU)


def randperm(ks: int, n: int, dtype: DType | None, device: Device | None) -> Any:
    """randperm_generator with the default generator."""
    return randperm_generator(ks, n, None, dtype, device)


def native_dropout(ks: int, input: TensorImpl, p: float, train: bool | None) -> tuple[Any, Any]:
    """Each element with probability p made 0, the others divided by 1 - p; with it the mask of those kept."""
    array = input.strided_array()
    stride = layout.dense_strides(input._shape, input._stride)
    mask = TensorImpl.allocate(input._shape, stride, bool_, input._device)
    if train is False or p == 0:
        mask.strided_array()[...] = True
        return with_strides(array.copy(), stride, input), mask
    bernoulli_float(ks, mask, 1 - p, None)
    if not input._dtype.is_floating_point:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type of native_dropout's integer input"
        )
    return native_dropout_backward(ks, input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


def native_dropout_backward(ks: int, grad_output: TensorImpl, mask: TensorImpl, scale: float) -> Any:
    """grad_output * mask * scale, the scale rounded to the dtype first."""
    # The scale is a number with a point: whole numbers become floats.
    dtype = grad_output._dtype if grad_output._dtype.is_floating_point else float32
    values = grad_output.values().astype(np.float32 if dtype is not float64 else np.float64)
    factor = TensorImpl.of_values(np.asarray(scale), dtype, grad_output._device).values()
    scaled = TensorImpl.of_values(values * mask.strided_array() * factor, dtype, grad_output._device)
    stride = layout.dense_strides(grad_output._shape, grad_output._stride)
    return with_strides(scaled.strided_array(), stride, scaled)
