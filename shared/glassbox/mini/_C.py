"""The dispatcher's inner doors by the names that PyTorch gives them (PyTorch: torch/csrc/utils/python_dispatch.cpp).

What an instrument or a lesson asks torch._C, it can ask mini._C: the key sets of a tensor and of the
thread, the guards that change them, and what is registered. A key is a DispatchKey or its name.
"""

# ruff: noqa: N999 - PyTorch's own name
from types import TracebackType
from typing import Any

from .aten.core.dispatch_table import ALIAS_COVERS
from .aten.core.dispatcher import dispatcher
from .c10.dispatch_key import DispatchKey, parse
from .c10.dispatch_key_set import (
    AD_INPLACE_OR_VIEW,
    AUTOGRAD,
    BACKEND_MASK,
    FULL,
    DispatchKeySet,
    bits,
    full_after,
)
from .c10.local_dispatch_key_set import KeysGuard, excluded, included, local_keys
from .c10.tensor_impl import TensorImpl

Key = str | DispatchKey


def _parse_dispatch_key(name: str) -> DispatchKey | None:
    """The key of that name; None where there is none."""
    return getattr(DispatchKey, name, None)


def _dispatch_keys(tensor: TensorImpl) -> DispatchKeySet:
    """The keys that a tensor brings into a call."""
    return DispatchKeySet(tensor._key_set)


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys that every call of this thread gets."""
    return included()


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that no call of this thread gets."""
    return excluded()


def _dispatch_tls_is_dispatch_key_included(key: Key) -> bool:
    return included().has(key)


def _dispatch_tls_is_dispatch_key_excluded(key: Key) -> bool:
    return excluded().has(key)


def _dispatch_tls_set_dispatch_key_included(key: Key, desired: bool) -> None:
    """Put a key into the thread's included set or take it out, for good."""
    now, allowed = local_keys.get()
    wanted = bits(parse(key))
    local_keys.set((now | wanted if desired else now & (BACKEND_MASK | ~wanted), allowed))


def _dispatch_tls_set_dispatch_key_excluded(key: Key, desired: bool) -> None:
    """Put a key into the thread's excluded set or take it out, for good."""
    now, allowed = local_keys.get()
    wanted = bits(parse(key))
    local_keys.set((now, allowed & (BACKEND_MASK | ~wanted) if desired else allowed | wanted))


def _dispatch_keyset_full() -> DispatchKeySet:
    return DispatchKeySet(FULL)


def _dispatch_keyset_full_after(key: Key) -> DispatchKeySet:
    """Every key of lower priority, and PythonDispatcher, which nothing takes away."""
    return DispatchKeySet(full_after(parse(key)))


def _dispatch_is_alias_key(key: Key) -> bool:
    return parse(key).is_alias


def _dispatch_is_included_in_alias(key: Key, alias: Key) -> bool:
    """Whether a kernel registered to the alias key may fill the row of the runtime key."""
    return parse(key) in ALIAS_COVERS[parse(alias).name]


def _dispatch_dump(name: str) -> str:
    """What is registered for an operator, kernel by kernel."""
    return dispatcher.find_schema_or_throw(name).dump()


def _dispatch_dump_table(name: str) -> str:
    """An operator's computed dispatch table."""
    return dispatcher.find_schema_or_throw(name).table()


def _dispatch_has_kernel(name: str) -> bool:
    """Whether there is an operator of that name, as aten::add.Tensor."""
    base, _, overload = name.partition(".")
    return dispatcher.find_schema(base, overload) is not None


def _dispatch_has_kernel_for_dispatch_key(name: str, key: Key) -> bool:
    """Whether a kernel was registered to this very key."""
    return dispatcher.find_schema_or_throw(name).has_kernel_for_dispatch_key(key)


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, key: Key) -> bool:
    """Whether the key's row of the table holds something."""
    return dispatcher.find_schema_or_throw(name).row(parse(key)).kernel is not None


def _dispatch_has_backend_fallback(key: Key) -> bool:
    return parse(key).name in dispatcher.fallback_names()


def _dispatch_get_all_op_names() -> list[str]:
    return [op.name for op in dispatcher.operators.values()]


class _ForceDispatchKeyGuard:
    """`with _ForceDispatchKeyGuard(include, exclude):` the thread's sets are exactly these until the block ends.

    Without arguments they stay as they are and come back at the end, whatever the block does to them.
    """

    __slots__ = ("_sets", "_token")

    def __init__(self, include: DispatchKeySet | None = None, exclude: DispatchKeySet | None = None) -> None:
        self._sets = None
        if include is not None and exclude is not None:
            self._sets = include.raw_repr(), FULL & (BACKEND_MASK | ~exclude.raw_repr())
        elif include is not exclude:
            raise TypeError("_ForceDispatchKeyGuard() takes both sets or none")
        self._token: list[Any] = []

    def __enter__(self) -> None:
        self._token.append(local_keys.set(local_keys.get() if self._sets is None else self._sets))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        local_keys.reset(self._token.pop())


class _IncludeDispatchKeyGuard(KeysGuard):
    """`with _IncludeDispatchKeyGuard(key):` every call of the block gets the key."""

    def __init__(self, key: Key | DispatchKeySet) -> None:
        super().__init__(include=_bits(key))


class _ExcludeDispatchKeyGuard(KeysGuard):
    """`with _ExcludeDispatchKeyGuard(keys):` no call of the block gets any of the keys."""

    def __init__(self, keys: Key | DispatchKeySet) -> None:
        super().__init__(exclude=_bits(keys))


class _AutoDispatchBelowAutograd(KeysGuard):
    """Calls of the block go to what lies below the Autograd keys."""

    def __init__(self) -> None:
        super().__init__(exclude=AUTOGRAD)


class _AutoDispatchBelowADInplaceOrView(KeysGuard):
    """Calls of the block go to what lies below ADInplaceOrView."""

    def __init__(self) -> None:
        super().__init__(exclude=AUTOGRAD | AD_INPLACE_OR_VIEW)


def _bits(keys: Key | DispatchKeySet) -> int:
    return keys.raw_repr() if isinstance(keys, DispatchKeySet) else bits(parse(keys))
