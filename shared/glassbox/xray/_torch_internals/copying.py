"""Copying: every element-wise copy of strided memory goes through one operator, also within kernels
(aten/src/ATen/native/Copy.cpp).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .access import missing

_one_at_a_time = threading.Lock()
# Another thread may be on its way into a hook that is taken away: PyTorch would free it under its feet.
_kept: deque[Any] = deque(maxlen=1000)


def _backends() -> list[str]:
    """The keys of the backends that work on this machine."""
    found = ["CPU"]
    for name, module in (("CUDA", torch.cuda), ("XPU", getattr(torch, "xpu", None)), ("MPS", torch.mps)):
        count = getattr(module, "device_count", None)
        if count is not None and count() > 0:
            found.append(name)
    return found


@contextmanager
def copies_seen_by(see: Callable[[Any, Any], None]) -> Iterator[None]:
    """In the block see(destination, source) is called before each aten::copy_ of any thread, then the copy is made.

    The hook sits at the backends' keys, below autograd, and is for the whole process. It goes when the block is left.
    RuntimeError where such a block is on already, in whatever thread: hooks over hooks would have to go in order.
    """
    if not _one_at_a_time.acquire(blocking=False):
        raise RuntimeError(
            "hidden_copies: copies are watched already, here or in another thread; look at one at a time."
        )
    try:
        with _watched(see):
            yield
    finally:
        _one_at_a_time.release()


@contextmanager
def _watched(see: Callable[[Any, Any], None]) -> Iterator[None]:
    get_kernel = getattr(torch.library, "get_kernel", None)
    if get_kernel is None:
        raise missing("torch.library.get_kernel")
    kernels = {key: get_kernel(torch.ops.aten.copy_.default, key) for key in _backends()}
    library = torch.library.Library("aten", "IMPL")
    try:
        for key, kernel in kernels.items():
            library.impl("copy_", _through(kernel, see), key, with_keyset=True, allow_override=True)
            _kept.append(get_kernel(torch.ops.aten.copy_.default, key))
        yield
    finally:
        library._destroy()


def _through(kernel: Any, see: Callable[[Any, Any], None]) -> Callable[..., Any]:
    def copy(key_set: Any, destination: Any, source: Any, *rest: Any, **named: Any) -> Any:
        if not isinstance(source, torch.Tensor):
            # A tensor that stands for a number reaches Python as the number.
            source = torch.scalar_tensor(source, dtype=_dtype_of(source))
        see(destination, source)
        return kernel.call_boxed(key_set, destination, source, *rest, **named)

    return copy


def _dtype_of(number: Any) -> torch.dtype:
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return kinds[type(number)]
