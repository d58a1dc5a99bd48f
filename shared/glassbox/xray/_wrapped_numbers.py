"""Wrapped numbers: the 0-d tensors that stand for Python numbers (c10/core/TensorImpl.h, is_wrapped_number).

Where C++ hands such a tensor to a kernel written in Python, the kernel gets the number; a tensor that it then makes of
the number promotes like any other, so `x * 2.5` would change its dtype. What is made here is the real thing. It has to
be made before kernels are hooked, since making it takes operators; its value is written into its memory later.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import torch

from ._clean_thread import in_clean_thread
from ._torch_internals import kernels

# How each kind of number lies in memory, and one of its kind.
_KINDS: dict[type, tuple[str, complex]] = {bool: "?", int: "q", float: "d", complex: "dd"}  # type: ignore[dict-item]
_AT_ONCE = 128


class WrappedNumbers:
    """`numbers(2.5)` is the wrapped tensor of a number, of the dtype that PyTorch gives it.

    The same number again is the same tensor, which nobody may write to. `refill` is called when more are needed than
    were made in advance: it gets a function that makes them and has to run it where kernels are not hooked.
    """

    def __init__(self, refill: Any) -> None:
        self._refill = refill
        self._made: dict[tuple[type, str], Any] = {}
        self._plain: dict[tuple[torch.dtype, str], torch.Tensor] = {}
        self._spare: dict[type, list[Any]] = {kind: [] for kind in _KINDS}
        in_clean_thread(self._make_all)

    def __call__(self, number: complex) -> Any:
        kind = type(number)
        key = kind, repr(number)
        if key not in self._made:
            self._made[key] = self._new(kind, number)
        return self._made[key]

    def fresh(self, number: complex) -> Any:
        """Such a tensor for an operator that writes to it."""
        return self._new(type(number), number)

    def unwrapped(self, number: complex, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """An ordinary 0-d tensor that beside these tensors comes to the same dtype and value.

        For the gradient transforms: they wrap what they are given, and a wrapped number in a wrapper has no memory to
        read the number from, as a kernel written in Python would.
        """
        dtype = _dtype_beside(number, tensors)
        key = dtype, repr(number)
        if key not in self._plain:
            in_clean_thread(lambda: self._plain.setdefault(key, torch.tensor(number, dtype=dtype, device="cpu")))
        return self._plain[key]

    def _new(self, kind: type, number: complex) -> Any:
        if not self._spare[kind]:
            self._refill(lambda: in_clean_thread(lambda: self._make(kind, _AT_ONCE)))
        tensor = self._spare[kind].pop()
        parts = (number.real, number.imag) if isinstance(number, complex) else (number,)
        content = struct.pack(_KINDS[kind], *parts)  # type: ignore[arg-type]
        ctypes.memmove(tensor.data_ptr(), content, len(content))
        return tensor

    def _make_all(self) -> None:
        for kind in _KINDS:
            self._make(kind, _AT_ONCE if kind in (int, float) else 8)

    def _make(self, kind: type, count: int) -> None:
        self._spare[kind] += [kernels.number_as_tensor(kind(1)) for _ in range(count)]


def _dtype_beside(number: complex, tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """The dtype for a 0-d tensor, so that it decides no more about the result's dtype than the number would."""
    own = _category(type(number))
    of_dimensions = max((_category(each.dtype) for each in tensors if each.dim()), default=-1)
    of_scalars = [each.dtype for each in tensors if not each.dim()]
    if of_dimensions >= own:
        return {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}[type(number)]
    same = [dtype for dtype in of_scalars if _category(dtype) >= own]
    if same:
        return same[0]
    default = torch.get_default_dtype()
    return (torch.bool, torch.int64, default, torch.complex128 if default == torch.float64 else torch.complex64)[own]


def _category(kind: type | torch.dtype) -> int:
    """0 for bool, 1 for whole numbers, 2 for real ones, 3 for complex ones."""
    if isinstance(kind, type):
        return (bool, int, float, complex).index(kind)
    return 3 if kind.is_complex else 2 if kind.is_floating_point else 0 if kind == torch.bool else 1
