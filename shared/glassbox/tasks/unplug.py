"""Unplugging: while a learner's piece is tried, what would do the work for it answers with one clear
sentence.

In a notebook this is a help for honest learners, who forget that they call the library; it is no defence. For
a grade the same stand-ins fill the places of packages that are absent.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
import types
from collections.abc import Callable, Collection, Iterator
from importlib.machinery import ModuleSpec
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


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for every module of some packages; placed on `sys.meta_path`."""

    def __init__(self, packages: Collection[str]) -> None:
        self.packages = packages

    def holds(self, name: str) -> bool:
        """True for the modules of the packages."""
        return name.partition(".")[0] in self.packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """A specification of which nothing is loaded but the stand-in."""
        return ModuleSpec(name, self, is_package=True) if self.holds(name) else None

    def create_module(self, spec: ModuleSpec) -> UnpluggedModule:
        """The stand-in itself."""
        return UnpluggedModule(spec.name, f"Stands in for {spec.name}, which is unplugged.")

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


@contextlib.contextmanager
def unplugged(function: Callable[..., Any], packages: Collection[str]) -> Iterator[None]:
    """Within the block, imports of `packages` and what `function` finds of them in its module are stand-ins.

    Every change is undone on leaving, whatever happens inside.
    """
    finder = StandIns(packages)
    names = getattr(_inner(function), "__globals__", {})
    swapped = {key: value for key, value in names.items() if _package(value) in packages}
    hidden = {key: sys.modules.pop(key) for key in list(sys.modules) if finder.holds(key)}
    sys.meta_path.insert(0, finder)
    try:
        for key, value in swapped.items():
            names[key] = Unplugged(getattr(value, "__name__", None) or f"{_package(value)} ({key})")
        yield
    finally:
        sys.meta_path.remove(finder)
        for key in [key for key in sys.modules if finder.holds(key)]:
            del sys.modules[key]
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
