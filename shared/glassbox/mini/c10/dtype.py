"""dtype: how the bytes of one element are read (PyTorch: c10/core/ScalarType.h)."""

import math
from typing import Any

import numpy as np


class dtype:  # noqa: N801 - PyTorch's own name
    """An element type. There is one object per type, so `is` compares them.

    itemsize: bytes per element. numpy: the NumPy dtype that holds the elements; for bfloat16, which NumPy
    lacks, a uint16 that holds the bits.
    """

    __slots__ = ("name", "itemsize", "is_floating_point", "is_signed", "numpy")

    def __init__(self, name: str, numpy_name: str, is_floating_point: bool, is_signed: bool) -> None:
        self.name = name
        self.numpy = np.dtype(numpy_name)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = is_floating_point
        self.is_signed = is_signed

    def __repr__(self) -> str:
        return f"mini.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)


float64 = dtype("float64", "float64", True, True)
float32 = dtype("float32", "float32", True, True)
bfloat16 = dtype("bfloat16", "uint16", True, True)
int64 = dtype("int64", "int64", False, True)
int32 = dtype("int32", "int32", False, True)
int16 = dtype("int16", "int16", False, True)
int8 = dtype("int8", "int8", False, True)
uint8 = dtype("uint8", "uint8", False, False)
bool_ = dtype("bool", "bool", False, False)

ALL = (float64, float32, bfloat16, int64, int32, int16, int8, uint8, bool_)
_by_name = {each.name: each for each in ALL}
_PYTHONS_OWN = {float: float64, int: int64, bool: bool_}
_by_numpy = {each.numpy: each for each in ALL if each is not bfloat16}


def by_name(name: str) -> dtype:
    """The dtype called `name`, such as "float32"; ValueError lists the known ones."""
    try:
        return _by_name[name]
    except KeyError:
        raise ValueError(f"no dtype is called {name!r}; known are {', '.join(_by_name)}") from None


def named(given: Any, where: str) -> dtype:
    """`given` as a dtype; Python's own float, int and bool stand for float64, int64 and bool.

    Raises TypeError for anything else, naming the call `where` it was given.
    """
    if isinstance(given, dtype):
        return given
    if isinstance(given, type) and given in _PYTHONS_OWN:
        return _PYTHONS_OWN[given]
    raise TypeError(
        f"{where}(): argument 'dtype' must be a dtype such as mini.float32, not {type(given).__name__}"
    )


def from_numpy_dtype(numpy_dtype: np.dtype) -> dtype:
    """The dtype whose elements NumPy stores so; TypeError where there is none."""
    try:
        return _by_numpy[numpy_dtype.newbyteorder("=")]
    except KeyError:
        raise TypeError(
            f"NumPy's {numpy_dtype} has no dtype here: convert it to one of {sorted(map(str, _by_numpy))}"
        ) from None


def of_scalar(value: Any) -> dtype:
    """The dtype that a tensor made of a Python number gets: bool, int64, or the default float32."""
    if isinstance(value, bool | np.bool_):
        return bool_
    if isinstance(value, int | np.integer):
        return int64
    return float32


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """Values of bfloat16 bits: a bfloat16 is the upper half of a float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def float32_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat16, ties to even; every NaN becomes 0x7FC0. Source: c10/util/BFloat16.h."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    tie_to_even = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + tie_to_even) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).reshape(np.shape(values))


def convert(array: np.ndarray, source: dtype, target: dtype) -> np.ndarray:
    """The elements of `array`, which holds `source`, converted to `target`; a copy if they differ."""
    if source is target:
        return array
    if source is bfloat16:
        array = bfloat16_to_float32(array)
    if target is bfloat16:
        with np.errstate(all="ignore"):
            return float32_to_bfloat16(np.asarray(array, dtype=np.float32))
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f" and target in (uint8, int8, int16):
            # C leaves numbers that do not fit open; PyTorch goes through a wider int and keeps the low bits.
            array = array.astype(np.int64 if target is uint8 else np.int32)
        return array.astype(target.numpy)


def to_element(value: bool | int | float, target: dtype) -> bool | int | float:
    """A Python number as one element of `target` (for bfloat16 still the number, not its bits).

    Raises TypeError for what is no number, RuntimeError where it does not fit; a negative number goes into an
    unsigned type by two's complement, as in PyTorch (c10::checked_convert).
    """
    if not isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        raise TypeError(f"expected a number to store as {target.name}, got {type(value).__name__}")
    if target is bool_:
        return bool(value)
    if target.is_floating_point:
        number = float(value)
        if target is not float64 and abs(number) > FLOAT32_MAX and math.isfinite(number):
            raise _overflow(value, target)
        return number
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        raise _overflow(value, target)
    whole = int(value)
    limits = np.iinfo(target.numpy)
    low = limits.min if target.is_signed else -limits.max
    if not low <= whole <= limits.max:
        raise _overflow(value, target)
    return whole if target.is_signed else whole % (limits.max + 1)


FLOAT32_MAX = float(np.finfo(np.float32).max)


def _overflow(value: object, target: dtype) -> RuntimeError:
    return RuntimeError(f"value {value} cannot be converted to type {target.name} without overflow")
