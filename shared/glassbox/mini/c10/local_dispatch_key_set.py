"""The thread's own included and excluded keys (PyTorch: c10/core/impl/LocalDispatchKeySet.h).

Every call adds the included keys to those of its arguments and drops the excluded ones. Both live in one
ContextVar as a pair (included, allowed), allowed being all keys that are not excluded, since a call then needs
one look-up and two operations on ints. A new thread starts with the defaults.
"""

from contextvars import ContextVar, Token
from types import TracebackType

from .dispatch_key_set import DEFAULT_EXCLUDED, DEFAULT_INCLUDED, FULL, NUM_BACKENDS, DispatchKeySet

# Backend bits cannot be excluded: see dispatch_key_set.remove_key.
_BACKENDS = (1 << NUM_BACKENDS) - 1

local_keys: ContextVar[tuple[int, int]] = ContextVar(
    "local_keys", default=(DEFAULT_INCLUDED, FULL & (_BACKENDS | ~DEFAULT_EXCLUDED))
)


class KeysGuard:
    """`with KeysGuard(include=..., exclude=...):` the sets are changed in this thread until the block ends.

    include, exclude: bare key sets added to the included and the excluded set; drop_included, drop_excluded: taken
    out of them.
    """

    __slots__ = ("_change", "_token")

    def __init__(
        self, include: int = 0, exclude: int = 0, drop_included: int = 0, drop_excluded: int = 0
    ) -> None:
        self._change = (
            include,
            FULL & (_BACKENDS | ~exclude),
            FULL & ~drop_included,
            drop_excluded,
        )
        self._token: list[Token[tuple[int, int]]] = []

    def __enter__(self) -> None:
        include, keep, keep_included, allow = self._change
        included, allowed = local_keys.get()
        self._token.append(local_keys.set((included & keep_included | include, (allowed | allow) & keep)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        local_keys.reset(self._token.pop())


def included() -> DispatchKeySet:
    """The keys that every call of this thread gets."""
    return DispatchKeySet(local_keys.get()[0])


def excluded() -> DispatchKeySet:
    """The keys that no call of this thread gets."""
    return DispatchKeySet(FULL & ~local_keys.get()[1])
