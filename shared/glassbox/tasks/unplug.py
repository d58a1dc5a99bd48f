"""Unplugging: while a learner's piece is tried, what would do the work for it answers with a clear sentence.

In a notebook this is a help for honest learners, who forget that they call the library; it is no defence. For
a grade the same stand-ins fill the places of packages that are absent. Outside a trial they are inert there:
a line that seeds a generator or prints a tensor above a piece must not cost the piece.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import sys
import types
from collections.abc import Callable, Collection, Iterator
from importlib.machinery import ModuleSpec
from typing import Any

_trial = False
PLAIN, HOOKS = "write it with plain Python numbers and tuples", "write it yourself, on PyTorch's own hooks"
_advice = PLAIN


class UnpluggedError(Exception):
    """Something that would do the task's work was used while the learner's own piece was tried. Never a right
    answer.
    """


@contextlib.contextmanager
def trial() -> Iterator[None]:
    """Within the block a piece is tried: every use of a stand-in raises UnpluggedError."""
    global _trial
    before, _trial = _trial, True
    try:
        yield
    finally:
        _trial = before


class Unplugged:
    """Stands in for something of an unplugged package. It can be named and imported; a use does nothing, but
    raises while a piece is tried.
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def _used(self, result: Any = None) -> Any:
        if _trial:
            raise UnpluggedError(f"{self.__dict__['_name']} is unplugged while your piece is tried: {_advice}.")
        return result

    def __getattr__(self, name: str) -> Any:
        # Dunder look-ups are how Python and IPython inspect an object; only a use by name should raise.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Unplugged(f"{self.__dict__['_name']}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Any:
        decorates = len(given) == 1 and not named and isinstance(given[0], types.FunctionType)
        return self._used(given[0] if decorates else self)

    def _same(self, *_: Any) -> Any:
        return self._used(self)

    def _nothing(self, *_: Any) -> Any:
        return self._used(None)

    def _no(self, *_: Any) -> Any:
        return self._used(False)

    def _zero(self, *_: Any) -> Any:
        return self._used(0)

    def __iter__(self) -> Any:
        return self._used(iter(()))

    def __float__(self) -> Any:
        return self._used(0.0)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return ()

    __getitem__ = __enter__ = __neg__ = __pos__ = __abs__ = __invert__ = _same
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __mod__ = __pow__ = __matmul__ = __rmatmul__ = __and__ = __or__ = __ror__ = _same
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __bool__ = __instancecheck__ = _no
    __len__ = __index__ = __int__ = _zero
    __exit__ = __setattr__ = __setitem__ = __delitem__ = _nothing

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"<{self.__dict__['_name']}, unplugged>"


class UnpluggedModule(types.ModuleType):
    """A module every name of which is Unplugged, so that an import line works and a use explains itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Unplugged(f"{self.__name__}.{name}")


STAND_IN = (Unplugged, UnpluggedModule)


class UnpluggedPart(UnpluggedModule):
    """A part of a package that stays, such as torch.fx of torch: unplugged for all but the package's own code, which
    reaches for it in the middle of a call.
    """

    def __init__(self, part: types.ModuleType) -> None:
        super().__init__(part.__name__)
        known = {key: value for key, value in vars(part).items() if key.startswith("__")}
        self.__dict__.update(known, _part=part, _plugged=False)

    def __getattr__(self, name: str) -> Any:
        inside = (self.__name__.partition(".")[0], "importlib", "_frozen_importlib")
        asking = sys._getframe(1).f_globals.get("__name__", "")
        if self.__dict__["_plugged"] or asking.partition(".")[0] in inside:
            return getattr(self.__dict__["_part"], name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_part"], name, value)


def _parts(packages: Collection[str]) -> list[UnpluggedPart]:
    """Stand-ins for the parts among these, and for what lies in them. The finder would stand in for PyTorch's own
    code as well, so they are loaded first.
    """
    names = [name for name in packages if "." in name and name.partition(".")[0] in sys.modules]
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return [UnpluggedPart(module) for name, module in list(sys.modules.items()) if _within(name, names) and module]


def _put(name: str, module: types.ModuleType) -> None:
    """Makes it what an import of this name gives, and what the module above has under its name."""
    sys.modules[name] = module
    above, _, key = name.rpartition(".")
    if key in vars(sys.modules[above]):
        vars(sys.modules[above])[key] = module


def _within(name: str, packages: Collection[str]) -> bool:
    return name in packages or any(name.startswith(f"{package}.") for package in packages)


def _refusing(*given: Any, **named: Any) -> Any:
    asked: Any = "what is asked stands here"
    return asked(*given, **named)


THROUGH = (__name__, "contextlib", "functools", "torch.utils._contextlib", "torch.utils._pytree")
"""Frames that only pass a call on; who asks is further out."""


def _asked(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
    """`whole`, for the package's own code only while a piece is tried."""

    def asked(*given: Any, **named: Any) -> Any:
        frame: Any = sys._getframe(2)
        while frame and frame.f_globals.get("__name__") in THROUGH:
            frame = frame.f_back
        asking = frame.f_globals.get("__name__", "") if frame else ""
        if asking.partition(".")[0] not in (name.partition(".")[0], "importlib", "_frozen_importlib"):
            Unplugged(name)._used()
        return whole(*given, **named)

    return asked


def _inherited(kind: type, key: str) -> Callable[..., Any]:
    def whole(self: Any, *given: Any, **named: Any) -> Any:
        return getattr(super(kind, self), key)(*given, **named)

    return whole


@contextlib.contextmanager
def _refused(parts: Collection[UnpluggedPart], packages: Collection[str]) -> Iterator[None]:
    """Within the block the functions of these parts refuse, and so do their classes where an object is made or
    entered. A stand-in is one name; others of the package and of the learner's hold the thing itself.

    A function stays the object that it is and gets other code, so it does not matter who holds it.
    """
    kinds: dict[int, type] = {}
    functions: dict[int, types.FunctionType] = {}
    for part in parts:
        for value in list(vars(part.__dict__["_part"]).values()):
            for each in [value, *(list(value.values()) if type(value) is dict else ())]:
                if not _within(_module(each), packages):
                    continue
                if isinstance(each, type):
                    kinds[id(each)] = each
                elif isinstance(each, types.FunctionType):
                    functions[id(each)] = each
    added: list[tuple[type, str]] = []
    before: list[tuple[types.FunctionType, types.CodeType]] = []
    try:
        for kind in kinds.values():
            for key in ("__new__", "__init__", "__enter__"):
                own = vars(kind).get(key)
                own = getattr(own, "__func__", own)
                above = getattr(kind, key, None)
                # Only PyTorch's own: an Enum has what the standard library made.
                if isinstance(own, types.FunctionType) and _within(own.__module__, packages):
                    functions[id(own)] = own
                elif key == "__new__" or own is not None:
                    continue
                elif isinstance(above, types.FunctionType) and _module(above).startswith("torch."):
                    code = _code((), f"{kind.__module__}.{kind.__name__}", _inherited(kind, key))
                    whole = types.FunctionType(code, globals(), key)
                    setattr(kind, key, whole)
                    added.append((kind, key))
        for each in functions.values():
            before.append((each, each.__code__))
            whole = types.FunctionType(
                each.__code__, each.__globals__, each.__name__, each.__defaults__, each.__closure__
            )
            whole.__kwdefaults__ = each.__kwdefaults__
            name = each.__qualname__.partition(".__")[0].rpartition(".<locals>.")[2]
            each.__code__ = _code(each.__code__.co_freevars, f"{each.__module__}.{name}", whole)
        yield
    finally:
        for each, code in before:
            each.__code__ = code
        for kind, key in added:
            delattr(kind, key)


def _code(free: tuple[str, ...], name: str, whole: Callable[..., Any]) -> types.CodeType:
    """Code that asks who calls. A function keeps the number of its free variables, whatever its code."""
    asked = _asked(name, whole)
    code = _refusing.__code__
    constants = tuple(asked if each == "what is asked stands here" else each for each in code.co_consts)
    return code.replace(co_consts=constants, co_freevars=free)


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
    """Within the block, imports of `packages` and what `function` finds of them in its module are stand-ins. A
    name with a dot is a part of a package that stays.

    Every change is undone on leaving, whatever happens inside.
    """
    global _advice
    finder = StandIns(packages)
    advice, _advice = _advice, HOOKS if packages and "torch" not in packages else PLAIN
    names = getattr(_inner(function), "__globals__", {})
    swapped = {key: value for key, value in names.items() if _within(_module(value), packages)}
    hidden = {key: sys.modules.pop(key) for key in list(sys.modules) if finder.holds(key)}
    parts = _parts(packages)
    loaded = set(sys.modules)
    sys.meta_path.insert(0, finder)
    try:
        for key, value in swapped.items():
            names[key] = Unplugged(getattr(value, "__name__", None) or f"{_module(value).partition('.')[0]} ({key})")
        for part in parts:
            _put(part.__name__, part)
        with _refused(parts, [name for name in packages if "." in name]):
            yield
    finally:
        sys.meta_path.remove(finder)
        _drop_tainted(loaded)
        sys.modules.update(hidden)
        for key in [key for key, value in names.items() if isinstance(value, STAND_IN)]:
            del names[key]
        names.update(swapped)
        for part in parts:
            _put(part.__name__, part.__dict__["_part"])
            part.__dict__["_plugged"] = True  # whoever took hold of it meanwhile has the real one now
        _advice = advice


def _drop_tainted(loaded: set[str]) -> None:
    """Takes out the stand-ins, and the packages imported since `loaded` that took some of them in."""
    fresh = {name: module for name, module in sys.modules.items() if name not in loaded}
    tainted = {
        name.partition(".")[0]
        for name, module in fresh.items()
        if any(_stands_in(value) for value in (module, *vars(module).values()))
    }
    for name in fresh:
        if name.partition(".")[0] in tainted:
            del sys.modules[name]


def _stands_in(value: object) -> bool:
    """Whether it still will once the block is left."""
    return isinstance(value, STAND_IN) and not isinstance(value, UnpluggedPart)


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


def _module(value: object) -> str:
    """The module that a value found in a namespace belongs to; "" where it has none."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    owner = value if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) else type(value)
    return getattr(owner, "__module__", None) or ""
