"""Places: names that lead to a live object, found through Python's garbage collector (PyTorch has no part for
it).

Comprehensions are avoided where they would capture the object searched for: the closure cell would be found
as one more holder of it.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable
from types import FrameType, ModuleType
from typing import Any

from ._looking import is_tensor_type

_DEPTH = 3
_PLACES = 4
# a module's parameter is reached as an attribute, whatever dict it lies in
_REGISTERED = re.compile(r"\._(?:parameters|buffers)\['(\w+)'\]")


def places(obj: Any, ignore: Iterable[Any] = ()) -> tuple[str, ...]:
    """Names that lead to an object, best effort and at most four: "w", "rows[3]", "Cache.kept", "x in fit()".

    `ignore` are holders of the searcher's own. Names with a leading underscore, such as IPython's output
    history, come last.
    """
    search = _Search(ignore)
    search.walk(obj, "", _DEPTH)
    names = sorted(dict.fromkeys(search.names), key=lambda name: name.startswith("_"))
    return tuple(names[:_PLACES])


def is_held(obj: Any, ignore: set[int]) -> bool:
    """Does anything in Python refer to the object, apart from tensors (a view's base) and the ids in
    `ignore`?
    """
    for frame in _frames():
        for value in frame.f_locals.values():
            if value is obj:
                return True
    holders = gc.get_referrers(obj)
    for holder in holders:
        if (
            id(holder) not in ignore
            and not isinstance(holder, FrameType)
            and not is_tensor_type(type(holder))
        ):
            return True
    return False


def _frames() -> list[FrameType]:
    """The frames of all threads, without this package's own."""
    package = __name__.rsplit(".", 1)[0]
    result = []
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if not str(frame.f_globals.get("__name__", "")).startswith(package):
                result.append(frame)
            frame = frame.f_back
    return result


class _Search:
    """One search: what to pass over, and the names found so far."""

    def __init__(self, ignore: Iterable[Any]) -> None:
        self.frames = _frames()
        self.names: list[str] = []
        self.skip = {id(holder) for holder in ignore}
        self.skip |= {id(self.frames), id(self.names), id(self.skip), id(self.__dict__)}
        for frame in self.frames:
            if frame.f_code.co_name != "<module>":
                self.skip.add(id(frame.f_locals))

    def walk(self, obj: Any, suffix: str, depth: int) -> None:
        for frame in self.frames:
            if frame.f_code.co_name != "<module>":
                for name in _keys(frame.f_locals, obj):
                    self.names.append(f"{name}{suffix} in {frame.f_code.co_name}()")
        if depth == 0 or len(self.names) >= _PLACES:
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
            self.names.append(f"a closure{suffix}")
        else:
            for name in _keys(_attributes(holder), obj):
                self.names.append(f"{type(holder).__name__}.{name}{suffix}")

    def _through_dict(self, holder: dict[Any, Any], obj: Any, suffix: str, depth: int) -> None:
        module, owner = _module_of(holder), _owner_of(holder)
        for key in _keys(holder, obj):
            if module is not None:
                prefix = "" if module.__name__ == "__main__" else f"{module.__name__}."
                self.names.append(f"{prefix}{key}{suffix}")
            elif owner is not None:
                self.names.append(f"{type(owner).__name__}.{key}{suffix}")
            else:
                self._container(holder, f"[{key!r}]{suffix}", depth)

    def _container(self, holder: Any, suffix: str, depth: int) -> None:
        before = len(self.names)
        self.walk(holder, suffix, depth - 1)
        for k in range(before, len(self.names)):
            self.names[k] = _REGISTERED.sub(r".\1", self.names[k])
        if len(self.names) == before and not isinstance(holder, tuple):
            self.names.append(f"a {type(holder).__name__}{suffix}")


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
        if (
            not isinstance(owner, (dict, list, tuple, FrameType))
            and getattr(owner, "__dict__", None) is scope
        ):
            return owner
    return None
