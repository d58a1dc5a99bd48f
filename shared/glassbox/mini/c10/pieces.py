"""Pieces: parts of the framework that a learner may replace while it runs (PyTorch: torch.library).

A piece is a named function or class of one module. Callers reach it through that module's attribute
(`layout.permute(...)`), so putting another object there makes the whole framework run on it. What was
computed from pieces and kept for speed is registered with `cached` and forgotten at every swap.

Swaps hold for the whole process, not for one thread.
"""

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Clean = Callable[[Any, tuple[Any, ...]], Any]


@dataclass(frozen=True)
class Piece:
    """One replaceable part: its public name, where callers look it up, the original, and what it returns.

    `clean(result, args)` gives the result in the form that callers rely on (lists become tuples) or raises
    ValueError with half a sentence that says what was expected.
    """

    name: str
    module: str
    reference: Callable[..., Any]
    clean: Clean | None

    @property
    def doc(self) -> str:
        """First line of the reference's docstring."""
        return (self.reference.__doc__ or "").strip().split("\n")[0]

    def put(self, implementation: Callable[..., Any]) -> None:
        setattr(sys.modules[self.module], self.name, implementation)

    def current(self) -> Callable[..., Any]:
        return getattr(sys.modules[self.module], self.name)


_registry: dict[str, Piece] = {}
_caches: list[Callable[[], None]] = []


def piece(returns: Clean | None = None) -> Callable[[F], F]:
    """Register the decorated function or class as a piece of its module, under its own name."""

    def register(reference: F) -> F:
        name = reference.__name__
        if name in _registry:
            raise ValueError(f"two pieces are called {name!r}: give the one in {reference.__module__} another name")
        _registry[name] = Piece(name, reference.__module__, reference, returns)
        return reference

    return register


def cached(function: F) -> F:
    """functools.lru_cache for results that depend on pieces: emptied whenever a piece is swapped."""
    wrapped = functools.lru_cache(maxsize=4096, typed=True)(function)
    _caches.append(wrapped.cache_clear)
    return wrapped  # type: ignore[return-value]


def on_swap(forget: Callable[[], None]) -> None:
    """Have `forget` called whenever a piece is swapped, by whoever keeps something that depends on pieces."""
    _caches.append(forget)


def pieces() -> dict[str, str]:
    """Every piece that can be replaced: name -> one line saying what it does."""
    return {name: found.doc for name, found in _registry.items()}


def reference(name: str) -> Callable[..., Any]:
    """The framework's own version of a piece, whatever is plugged in now."""
    return _find(name).reference


def replaced(*names: str) -> bool:
    """Whether another function than the framework's own stands in the place of any of these pieces."""
    return any(found.current() is not found.reference for found in map(_find, names))


@contextmanager
def using(**replacements: Callable[..., Any]) -> Iterator[None]:
    """Run the whole framework on your own pieces: `with using(permute=mine): ...`.

    The former pieces come back at the end, also after an exception; blocks may be nested.
    Raises ValueError for a name that is no piece, TypeError for something that cannot be called, and inside
    the block TypeError where a replacement returns something that the framework cannot use.
    """
    plugs = {}
    for name, mine in replacements.items():
        found = _find(name)
        if not callable(mine):
            raise TypeError(
                f"using({name}=...) needs a function, got {type(mine).__name__}: pass it without calling it"
            )
        plugs[name] = _checked(found, mine)
    before = {name: _registry[name].current() for name in plugs}
    try:
        for name, implementation in plugs.items():
            _registry[name].put(implementation)
        _forget()
        yield
    finally:
        for name, implementation in before.items():
            _registry[name].put(implementation)
        _forget()


def _forget() -> None:
    for clear in _caches:
        clear()


def _find(name: str) -> Piece:
    try:
        return _registry[name]
    except KeyError:
        raise ValueError(f"no piece is called {name!r}; the pieces are {', '.join(sorted(_registry))}") from None


def _checked(found: Piece, mine: Callable[..., Any]) -> Callable[..., Any]:
    clean = found.clean
    if clean is None:
        return mine

    @functools.wraps(mine)
    def call(*args: Any) -> Any:
        result = mine(*args)
        try:
            return clean(result, args)
        except (ValueError, TypeError) as problem:
            raise TypeError(f"your {found.name}{args!r} returned {result!r}; expected {problem}") from None

    return call


def an_int(value: Any) -> int:
    """A plain int made of anything that is a whole number; ValueError otherwise."""
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError("an int") from None


def ints(value: Any, length: int) -> tuple[int, ...]:
    """A tuple of `length` plain ints made of a tuple or list; ValueError otherwise."""
    expected = f"a tuple of {length} int{'' if length == 1 else 's'}"
    if not isinstance(value, tuple | list) or len(value) != length:
        raise ValueError(expected)
    try:
        return tuple(operator.index(item) for item in value)
    except TypeError:
        raise ValueError(expected) from None


def of_shape(place: int) -> Clean:
    """Takes a tensor that has the shape given as the argument at `place`; ValueError otherwise."""

    def clean(result: Any, args: tuple[Any, ...]) -> Any:
        if getattr(result, "_shape", None) != args[place]:
            raise ValueError(f"a tensor of shape {list(args[place])}")
        return result

    return clean


def a_bool(value: Any) -> bool:
    """True or False; ValueError otherwise (NumPy's own are taken, 0 and 1 are not)."""
    if isinstance(value, bool) or type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ValueError("True or False")


def parts(value: Any, expected: str, count: int) -> tuple[Any, ...]:
    """A tuple of `count` results; ValueError that describes them as `expected` otherwise."""
    if not isinstance(value, tuple | list) or len(value) != count:
        raise ValueError(expected)
    return tuple(value)
