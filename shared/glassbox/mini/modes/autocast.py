"""autocast: operators run in a dtype that suits them (PyTorch: torch/amp/autocast_mode.py, ATen/autocast_mode.cpp).

A tensor always carries its backend's Autocast key; the thread's excluded set holds it off until autocast is
on. The kernel that a list below gives an operator there casts the arguments and calls the operator again
with the key excluded. All other operators fall through.
"""

import functools
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ..aten import ops as at
from ..aten.core.dispatcher import OperatorHandle, dispatcher
from ..aten.core.kernel_function import KernelFunction, place_of
from ..c10 import inference_mode, promotion
from ..c10.device import BACKEND_OF
from ..c10.dispatch_key import DispatchKey, parse
from ..c10.dispatch_key_set import bits
from ..c10.dtype import bfloat16, float32, float64
from ..c10.dtype import dtype as DType  # noqa: N812
from ..c10.grad_mode import grad_enabled
from ..c10.local_dispatch_key_set import KeysGuard, local_keys
from ..c10.tensor_impl import TensorImpl

# Of PyTorch's lists for the CPU, what there is here.
LOWER_PRECISION_FP = (
    *("conv1d", "conv1d.padding", "conv2d", "conv2d.padding"),
    *("mm", "bmm", "addmm", "baddbmm", "matmul", "linear"),
)
FP32 = ("prod", "prod.dim_int", "mse_loss", "nll_loss", "cross_entropy_loss")
PROMOTE = ("stack", "cat")

_dtypes: ContextVar[dict[str, DType]] = ContextVar("autocast_dtypes", default={})  # noqa: B039 - never written to
_cache_enabled: ContextVar[bool] = ContextVar("autocast_cache_enabled", default=True)
# Weights that were cast already: id -> (the weight, what it was cast to). A dict of the outermost block's
# own.
_cache: ContextVar[dict[int, tuple["weakref.ref[Any]", Any]] | None] = ContextVar("autocast_cache", default=None)


class autocast:  # noqa: N801 - PyTorch's own name
    """`with autocast("cpu"):` or `@autocast("cpu")`: matrix products and convolutions compute in `dtype`.

    dtype: bfloat16, which is the default. enabled=False switches an outer block off. cache_enabled: whether
    a leaf that requires grad is cast once per outermost block. RuntimeError for a device that has no
    autocast.
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in BACKEND_OF:
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}': there are {', '.join(BACKEND_OF)}"
            )
        self.device_type = device_type
        self.dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and self.dtype is not bfloat16:
            warnings.warn(
                f"In {device_type} autocast, but the target dtype {self.dtype.name} is not supported. Disabling "
                "autocast. "
                f"It supports bfloat16",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self.enabled = enabled
        self.cache_enabled = cache_enabled
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> "autocast":
        key = autocast_key(self.device_type)
        included, allowed = local_keys.get()
        self._before.append((local_keys.get(), _dtypes.get(), _cache_enabled.get(), _cache.get()))
        local_keys.set((included, allowed | key if self.enabled else allowed & ~key))
        _dtypes.set({**_dtypes.get(), self.device_type: self.dtype})
        if self.cache_enabled is not None:
            _cache_enabled.set(self.cache_enabled)
        if _cache.get() is None:
            _cache.set({})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        keys, dtypes, cache_enabled, cache = self._before.pop()
        key = autocast_key(self.device_type)
        included, allowed = local_keys.get()
        local_keys.set((included, allowed & ~key | keys[1] & key))
        _dtypes.set(dtypes)
        _cache_enabled.set(cache_enabled)
        _cache.set(cache)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device_type, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **kwargs)

        return decorated


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether calls of this thread meet the device's Autocast key."""
    return bool(local_keys.get()[1] & autocast_key(device_type))


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """The dtype that matrix products are cast to."""
    return _dtypes.get().get(device_type, bfloat16)


def is_autocast_cache_enabled() -> bool:
    return _cache_enabled.get()


def clear_autocast_cache() -> None:
    """Forget the weights that this thread has cast."""
    cache = _cache.get()
    if cache is not None:
        cache.clear()


def autocast_key(device_type: str) -> int:
    """The device's Autocast key as a bare set."""
    return bits(parse("Autocast" + BACKEND_OF[device_type]))


# Casting


def is_eligible(value: Any, device_type: str) -> bool:
    """Whether autocast touches a tensor: floating point on its device, but never float64, which somebody asked for."""
    return (
        isinstance(value, TensorImpl)
        and value._device.type == device_type
        and value._dtype.is_floating_point
        and value._dtype is not float64
    )


def cached_cast(dtype: DType, value: Any, device_type: str) -> Any:
    """An argument in `dtype`, lists too; what is not eligible stays as it is.

    A leaf that requires grad, such as a weight, is cast once per outermost block, so that its uses share
    one cast.
    """
    if type(value) is tuple:
        return tuple(cached_cast(dtype, each, device_type) for each in value)
    if not is_eligible(value, device_type) or value._dtype is dtype:
        return value
    cache = _cache.get()
    use_cache = (
        cache is not None
        and _cache_enabled.get()
        and dtype is not float32
        and value._dtype is float32
        and value._requires_grad
        and value._grad_fn is None
        and value._base is None
        and not inference_mode.is_enabled()
    )
    if not use_cache or cache is None:
        return at.to_dtype(value, dtype, False, False, None)
    held = cache.get(id(value))
    if held is not None and held[0]() is value:
        return held[1]
    # Recorded even under no_grad: later uses of the same cast may want the weight's gradient.
    token = grad_enabled.set(True)
    try:
        cast = at.to_dtype(value, dtype, False, False, None)
    finally:
        grad_enabled.reset(token)
    cache[id(value)] = weakref.ref(value), cast
    return cast


def lower_precision_fp(device_type: str, arguments: tuple[Any, ...]) -> DType:
    """For operators that are much faster, and good enough, in the block's dtype."""
    return get_autocast_dtype(device_type)


def fp32(device_type: str, arguments: tuple[Any, ...]) -> DType:
    """For operators that lose too much in less."""
    return float32


def promote(device_type: str, arguments: tuple[Any, ...]) -> DType:
    """For operators whose arguments must agree: the widest dtype among them."""
    widest = get_autocast_dtype(device_type)
    for each in _tensors(arguments):
        if is_eligible(each, device_type):
            widest = promotion.promote(widest, each._dtype)
    return widest


Policy = Callable[[str, tuple[Any, ...]], DType]
POLICIES: tuple[tuple[Policy, tuple[str, ...]], ...] = (
    (lower_precision_fp, LOWER_PRECISION_FP),
    (fp32, FP32),
    (promote, PROMOTE),
)


def _tensors(arguments: Any) -> list[Any]:
    found = []
    for each in arguments:
        if isinstance(each, TensorImpl):
            found.append(each)
        elif type(each) is tuple:
            found += _tensors(each)
    return found


def kernel_of(policy: Policy, device_type: str) -> KernelFunction:
    """The kernel of an operator with a cast policy, at the device's Autocast key."""
    key = autocast_key(device_type)

    def cast_and_call(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
        with KeysGuard(exclude=key):
            dtype = policy(device_type, arguments)
            # From the last to the first, the order in which PyTorch's builds for Linux evaluate them.
            cast = [cached_cast(dtype, each, device_type) for each in reversed(arguments)]
            return op.call(*reversed(cast))

    return KernelFunction(cast_and_call, place_of(policy), boxed=True)


def register_all() -> None:
    """The kernels of all listed operators, for each device."""
    for device_type, backend in BACKEND_OF.items():
        key: DispatchKey = parse("Autocast" + backend)
        for policy, names in POLICIES:
            for name in names:
                op = dispatcher.find_schema_or_throw(f"aten::{name}")
                dispatcher.register_impl(op, key, kernel_of(policy, device_type))
