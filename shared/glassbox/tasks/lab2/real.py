"""Lab 2's oracle: throwaway operators of the real PyTorch, called with exactly the keys of a case.

PyTorch is asked through torch.library and torch._C; it is imported when a case is judged, never before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ...mini.c10.dispatch_key import BACKENDS, FUNCTIONALITIES, PER_BACKEND

NUM_BACKENDS = len(BACKENDS)
Key = tuple[int, int]
"""(functionality, backend), places counted from 1; backend 0 for a functionality without backends."""

_fresh = itertools.count()
_kept: list[Any] = []


def name_of(key: Key) -> str:
    """The name of a key, such as "AutogradCPU"; Undefined for (0, 0)."""
    functionality, backend = key
    if not functionality:
        return "Undefined"
    name = FUNCTIONALITIES[functionality - 1]
    return PER_BACKEND[name] + BACKENDS[backend - 1] if name in PER_BACKEND else name


@cache
def all_keys() -> tuple[Key, ...]:
    """Every runtime key that the installed PyTorch knows by name."""
    found = []
    for place, name in enumerate(FUNCTIONALITIES, 1):
        backends = range(1, NUM_BACKENDS + 1) if name in PER_BACKEND else (0,)
        found += [(place, backend) for backend in backends if _known(name_of((place, backend)))]
    return tuple(found)


def _known(name: str) -> bool:
    """Whether PyTorch knows a key both in Python, where some are missing, and in a registration."""
    import torch

    try:
        if torch._C._parse_dispatch_key(name) is None:
            return False
        with operators("f(int n) -> int") as library:
            library.impl("f", torch.library.fallthrough_kernel, name)
    except RuntimeError:
        return False
    return True


def named_in(raw: int) -> Iterator[Key]:
    """The keys that a set holds, as far as PyTorch knows them by name."""
    for functionality, backend in all_keys():
        has_backend = not backend or raw >> (backend - 1) & 1
        if raw >> (NUM_BACKENDS + functionality - 1) & 1 and has_backend:
            yield functionality, backend


def set_of(raw: int) -> Any:
    """PyTorch's own key set for a number."""
    import torch

    return torch._C.DispatchKeySet.from_raw_repr(raw)


def key_called(name: str) -> Any:
    """PyTorch's own key."""
    import torch

    return torch._C._parse_dispatch_key(name)


def top_name(raw: int) -> str:
    """The name of the key with the highest priority; it ends in Undefined where a backend is missing."""
    import torch

    return torch._C._dispatch_key_name(set_of(raw).highestPriorityTypeId())


@contextmanager
def operators(*schemas: str) -> Iterator[Any]:
    """A torch.library.Library with operators of these schemas in a namespace of its own, taken back afterwards."""
    import torch

    library = torch.library.Library(f"glassbox_lab2_{next(_fresh)}", "DEF")
    try:
        for schema in schemas:
            library.define(schema)
        yield library
    finally:
        library._destroy()


def operator(library: Any, name: str) -> Any:
    """The default overload of an operator of a library made by `operators`."""
    import torch

    return getattr(getattr(torch.ops, library.ns), name).default


@contextmanager
def thread_keys(included: int, excluded: int = 0) -> Iterator[None]:
    """Within the block the thread's included and excluded sets are these."""
    import torch

    with torch._C._ForceDispatchKeyGuard(set_of(included), set_of(excluded)):
        yield


def seen_set(included: int, excluded: int = 0, fallthrough: Iterable[Key] = ()) -> int:
    """The key set that reaches a kernel of an operator without tensors; where no key is left, the rest of it.

    The operator has fallthroughs where told, and a kernel for each other key that PyTorch knows by name.
    """
    passed = tuple(fallthrough)
    if not passed:
        return _reached(*_everywhere(), included, excluded)
    with operators("f(int n) -> int") as library:
        here = set(named_in(included)) - set(passed)
        return _reached(operator(library, "f"), _fill(library, here, passed), included, excluded)


@cache
def _everywhere() -> tuple[Any, list[int]]:
    """An operator with a kernel at every key, and the list of what its kernels are told. It stays."""
    import torch

    library = torch.library.Library(f"glassbox_lab2_{next(_fresh)}", "DEF")
    library.define("f(int n) -> int")
    _kept.append(library)
    seen = _fill(library, all_keys(), ())
    return operator(library, "f"), seen


def _fill(library: Any, kernels: Iterable[Key], passed: Iterable[Key]) -> list[int]:
    import torch

    seen: list[int] = []

    def kernel(key_set: Any, n: int) -> int:
        seen.append(key_set.raw_repr())
        return n

    for key in passed:
        library.impl("f", torch.library.fallthrough_kernel, name_of(key))
    for key in kernels:
        library.impl("f", kernel, name_of(key), with_keyset=True)
    # It fills the row of Undefined, which is called when no key is left.
    library.impl("f", kernel, "CompositeExplicitAutograd", with_keyset=True)
    return seen


def _reached(op: Any, seen: list[int], included: int, excluded: int) -> int:
    seen.clear()
    with thread_keys(included, excluded):
        op(1)
    (raw,) = seen
    return raw


@contextmanager
def without(key: str, wanted: bool = True) -> Iterator[None]:
    """Within the block the thread excludes a key; nothing changes where it is not wanted."""
    import torch

    if not wanted:
        yield
        return
    with torch._C._ExcludeDispatchKeyGuard(set_of(0).add(key_called(key))):
        yield


def below(key_set: Any, key: str) -> Any:
    """The keys of a set that lie below one."""
    import torch

    return key_set & torch._C._dispatch_keyset_full_after(key_called(key))
