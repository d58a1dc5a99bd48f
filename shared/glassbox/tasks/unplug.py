"""Unplugging: while a learner's piece is tried, what would do the work for it answers with one clear
sentence.

In a notebook this is a help for honest learners, who forget that they call the library; it is no defence. For
a grade the same stand-ins fill the places of packages that are absent.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any


class UnpluggedError(Exception):
    """Something that would do the task's work was used while the learner's own piece was tried. Never a right
    answer.
    """


class Unplugged:
    """Stands in for something of an unplugged package: it can be named and imported, but using it raises."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnpluggedError(
            f"{self.__dict__['_name']} is unplugged while your piece is tried: "
            "write it with plain Python numbers and tuples."
        )

    def __getattr__(self, name: str) -> Any:
        # Dunder look-ups are how Python and IPython inspect an object; only a use by name should raise.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Unplugged(f"{self.__dict__['_name']}.{name}")

    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __index__ = __int__ = __float__ = __enter__ = (
        _refuse
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse
    __contains__ = __setattr__ = __setitem__ = _refuse

    def __repr__(self) -> str:
        return f"<{self.__dict__['_name']}, unplugged>"


class UnpluggedModule(types.ModuleType):
    """A module every name of which is Unplugged, so that an import line works and a use explains itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Unplugged(f"{self.__name__}.{name}")


def unplugged_module(name: str) -> UnpluggedModule:
    """Returns a stand-in for the module called `name`; its submodules can be imported where a finder serves
    them.
    """
    module = UnpluggedModule(name, f"Stands in for {name}, which is absent here.")
    module.__path__ = []
    return module


@contextlib.contextmanager
def unplugged(function: Callable[..., Any], packages: tuple[str, ...]) -> Iterator[None]:
    """Within the block, imports of `packages` and the names of `function`'s module that come from them are
    stand-ins.

    Every change is undone on leaving, whatever happens inside.
    """
    names = getattr(_inner(function), "__globals__", {})
    swapped = {key: value for key, value in names.items() if _package(value) in packages}
    hidden = {key: module for key, module in sys.modules.items() if key.partition(".")[0] in packages}
    try:
        for key in hidden:
            sys.modules[key] = unplugged_module(key)
        for key, value in swapped.items():
            names[key] = Unplugged(getattr(value, "__name__", None) or f"{_package(value)} ({key})")
        yield
    finally:
        sys.modules.update(hidden)
        names.update(swapped)


def _inner(function: Any) -> Any:
    """The plain function behind decorators, partials and callable objects, as far as it can be found."""
    for _ in range(16):
        for attribute in ("__wrapped__", "func", "__func__"):
            if attribute in dir(function):
                function = getattr(function, attribute)
                break
        else:
            break
    # An object with a __call__ of its own: its function is what has the globals.
    return function if hasattr(function, "__globals__") else vars(type(function)).get("__call__", function)


def _package(value: object) -> str:
    """The top-level package that a value found in a namespace belongs to; "" where it has none."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0]
    owner = value if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) else type(value)
    return (getattr(owner, "__module__", None) or "").partition(".")[0]
