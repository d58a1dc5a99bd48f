"""Places: names that lead to a live object, found through Python's garbage collector (PyTorch has none).

Comprehensions are avoided where they would capture the object searched for: the closure cell would be found
as one more holder of it.
"""

from __future__ import annotations

import gc
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

from ._looking import is_tensor_type

_DEPTH = 3
_PLACES = 4
_ENOUGH = 12
# what tells a reader most comes first
_VARIABLE, _MEMBER, _HIDDEN, _ANONYMOUS = range(4)
# the frame, a local name and the call itself
_OWN_REFERENCES = 3
# a module's parameter is reached as an attribute, whatever dict it lies in
_REGISTERED = re.compile(r"\._(?:parameters|buffers)\['(\w+)'\]")


Scope = tuple[str, dict[str, Any]]


@contextmanager
def running_scopes() -> Iterator[list[Scope]]:
    """The variables of all running functions of all threads, as (function name, variables), without this
    package's.

    Up to Python 3.12 asking a frame for its variables leaves a dict in it that would keep them alive until
    the function returns; these are emptied again, except where somebody else holds one.
    """
    frames = _function_frames()
    scopes = [(frame.f_code.co_name, frame.f_locals) for frame in frames]
    try:
        yield scopes
    finally:
        scopes.clear()
        for frame in frames:
            scope = frame.f_locals
            if type(scope) is dict and sys.getrefcount(scope) <= _OWN_REFERENCES:
                scope.clear()


def _function_frames() -> list[FrameType]:
    # a frame that holds itself would keep all variables of its callers alive until the next collection
    package = __name__.rsplit(".", 1)[0]
    frames = []
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            own = str(frame.f_globals.get("__name__", "")).startswith(package)
            if not own and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                frames.append(frame)
            frame = frame.f_back
    del top, frame
    return frames


def places(obj: Any, scopes: list[Scope], ignore: Iterable[Any] = ()) -> tuple[str, ...]:
    """Names that lead to an object, best effort and at most four: "w", "rows[3]", "Cache.kept", "x in fit()".

    `scopes` come from `running_scopes`; `ignore` are holders of the searcher's own. Names with a leading
    underscore, such as IPython's output history, come last.
    """
    search = _Search(scopes, ignore)
    search.walk(obj, "", _DEPTH)
    best = min((rank for rank, _ in search.found), default=0)
    ranked = sorted(f for f in search.found if f[0] < _ANONYMOUS or best == _ANONYMOUS)
    return tuple(dict.fromkeys(name for _, name in ranked))[:_PLACES]


def is_held(obj: Any, scopes: list[Scope], ignore: set[int]) -> bool:
    """Does anything in Python refer to the object, apart from tensors (a view's base) and the ids in
    `ignore`?
    """
    skip = ignore | {id(scope) for _, scope in scopes}
    for _, scope in scopes:
        if _keys(scope, obj):
            return True
    holders = gc.get_referrers(obj)
    for holder in holders:
        if id(holder) not in skip and not isinstance(holder, FrameType) and not is_tensor_type(type(holder)):
            return True
    return False


class _Search:
    """One search: what to pass over, and the names found so far."""

    def __init__(self, scopes: list[Scope], ignore: Iterable[Any]) -> None:
        self.scopes = scopes
        self.found: list[tuple[int, str]] = []
        self.skip = {id(holder) for holder in ignore} | {id(scope) for _, scope in scopes}
        self.skip |= {id(scopes), id(self.found), id(self.skip), id(self.__dict__)}

    def walk(self, obj: Any, suffix: str, depth: int) -> None:
        for function, scope in self.scopes:
            for name in _keys(scope, obj):
                self.found.append((_VARIABLE, f"{name}{suffix} in {function}()"))
        if depth == 0 or len(self.found) >= _ENOUGH:
            return
        holders = gc.get_referrers(obj)
        self.skip.add(id(holders))
        for holder in holders:
            if id(holder) not in self.skip and not isinstance(holder, FrameType):
                self._through(holder, obj, suffix, depth)

    def _through(self, holder: Any, obj: Any, suffix: str, depth: int) -> None:
        if isinstance(holder, dict):
            self._through_dict(holder, obj, suffix, depth)
        elif isinstance(holder, (list, tuple)):
            for position, value in enumerate(holder):
                if value is obj:
                    self._container(holder, f"[{position}]{suffix}", depth)
                    break
        elif type(holder).__name__ == "cell":
            self.found.append((_ANONYMOUS, f"a closure{suffix}"))
        elif not _of_the_shell(holder):
            for name in _keys(_attributes(holder), obj):
                self.found.append((_MEMBER, f"{type(holder).__name__}.{name}{suffix}"))

    def _through_dict(self, holder: dict[Any, Any], obj: Any, suffix: str, depth: int) -> None:
        module, owner = _module_of(holder), _owner_of(holder)
        for key in _keys(holder, obj):
            if module is not None:
                prefix = "" if module.__name__ == "__main__" else f"{module.__name__}."
                rank = _HIDDEN if str(key).startswith("_") else _MEMBER if prefix else _VARIABLE
                self.found.append((rank, f"{prefix}{key}{suffix}"))
            elif owner is not None:
                if not _of_the_shell(owner):
                    self.found.append((_MEMBER, f"{type(owner).__name__}.{key}{suffix}"))
            else:
                self._container(holder, f"[{key!r}]{suffix}", depth)

    def _container(self, holder: Any, suffix: str, depth: int) -> None:
        before = len(self.found)
        self.walk(holder, suffix, depth - 1)
        for k in range(before, len(self.found)):
            rank, name = self.found[k]
            self.found[k] = (rank, _REGISTERED.sub(r".\1", name))
        if len(self.found) == before and not isinstance(holder, tuple):
            self.found.append((_ANONYMOUS, f"a {type(holder).__name__}{suffix}"))


def _of_the_shell(owner: Any) -> bool:
    """IPython's own objects hold every output; the reader knows them as Out and _."""
    return type(owner).__module__.split(".")[0] in ("IPython", "ipykernel")


def _keys(mapping: dict[Any, Any], obj: Any) -> list[Any]:
    found = []
    for key, value in list(mapping.items()):
        if value is obj:
            found.append(key)
    return found


def _attributes(holder: Any) -> dict[Any, Any]:
    try:
        return dict(vars(holder))
    except TypeError:
        return {}


def _module_of(scope: dict[Any, Any]) -> ModuleType | None:
    name = scope.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return module if module is not None and vars(module) is scope else None


def _owner_of(scope: dict[Any, Any]) -> Any:
    for owner in gc.get_referrers(scope):
        if not isinstance(owner, (dict, list, tuple, FrameType)) and getattr(owner, "__dict__", None) is scope:
            return owner
    return None
