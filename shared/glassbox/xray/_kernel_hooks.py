"""Kernel hooks: a function of ours around every kernel of every operator (aten/src/ATen/core/dispatch/Dispatcher.h).

Each row of the dispatch tables that can be reached on this machine gets a kernel that writes down that it ran and with
which key set, and hands on to the kernel that was there. All of those are fetched before the first row changes: what
one row holds can decide another. Rows that fall through are left alone, and so are rows that somebody filled from
Python for exactly one key: PyTorch keeps one Python function for each of these and could not be given it back.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..records import Hop
from . import _torch_internals as internals
from ._kernel_rows import Row, read_rows
from ._torch_internals import kernels
from ._wrapped_numbers import WrappedNumbers

_NUMBERS = (bool, int, float, complex)
# Their results become tensors of another class, which only tensors can that Python has not seen.
_RECLASSED = ("aten::detach", "aten::alias")
# Numbers that stand for tensors are made with it.
_MULTIPLIED = ("aten::mul.Tensor",)
_OTHERS = ""
# Files of PyTorch's that register what others ask for.
_FOR_OTHERS = ("torch/library.py", "torch/_library/custom_ops.py")

_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """While so many objects are made, Python's garbage collector would go through them over and over."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class KernelHooks:
    """`with KernelHooks() as hooks:` writes down the kernels that this thread runs, and the backward engine for it.

    The hooks are there for the whole process; other threads pass through them. RuntimeError where some are there.
    """

    def __init__(self) -> None:
        self._owner = threading.get_ident()
        self._calls: list[list[tuple[Row, int, int, str, bool]]] = []
        # Per thread, the call that it is at and how many of its kernels are running.
        self._running: dict[int, tuple[list[tuple[Row, int, int, str, bool]], int]] = {}
        self._places: dict[str, kernels.Registrations] = {}
        self._hooks: dict[str, list[tuple[Row, Callable[..., Any]]]] = {}
        self._switching = threading.RLock()
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> KernelHooks:
        if not _one_at_a_time.acquire(blocking=False):
            raise RuntimeError(
                "onion: kernels are hooked already, by an onion around this one or in another thread; "
                "look at one program at a time."
            )
        with contextlib.ExitStack() as stack:
            stack.callback(_one_at_a_time.release)
            self._current_node = internals.node_getter()
            self._waits_for_engine = kernels.in_engine()
            self._in_place_bits = kernels.key_bits("ADInplaceOrView")
            self._numbers = WrappedNumbers(self._refill)
            stack.callback(self._take_all_away)
            with _no_collections():
                self._hook_all()
            stack.enter_context(kernels.around_new_classes(lambda: self._without(_RECLASSED)))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def take(self) -> tuple[Hop, ...]:
        """What ran since the last take, in order, each call of a thread in one piece."""
        names = functools.cache(internals.key_names)
        calls = self._calls[:]
        del self._calls[:]
        return tuple(
            Hop(row.name, row.key, bits, names(bits), row.kind, row.place, depth, node, inferred)
            for call in calls
            for row, bits, depth, node, inferred in call
        )

    def unwatched(self) -> set[str]:
        """The namespaces, bar PyTorch's own, of operators with rows that are not hooked; meta tensors' do not count."""
        rows = {id(row.unwatched): row.unwatched for hooks in self._hooks.values() for row, _ in hooks if row.unwatched}
        return {
            row.op.partition("::")[0]
            for each in rows.values()
            for row in each.values()
            if row.key != "Meta" and (not row.place.startswith("torch/") or row.place.startswith(_FOR_OTHERS))
        }

    def _hook_all(self) -> None:
        fetch = kernels.kernel_fetcher()
        for row in read_rows():
            kernel = fetch(row.op, row.key)
            if kernel is not None:
                group = row.op if row.op in _RECLASSED + _MULTIPLIED else _OTHERS
                self._hooks.setdefault(group, []).append((row, self._around(row, kernel)))
        for group in self._hooks:
            self._put(group)

    def _put(self, group: str) -> None:
        there = self._places[group] = kernels.Registrations()
        for row, hook in self._hooks[group]:
            there.put(row.op, row.key, hook)

    def _take_all_away(self) -> None:
        for there in self._places.values():
            there.remove()
        self._places.clear()
        # PyTorch keeps the last function that was registered for a row; without these it keeps no kernel with it.
        self._hooks.clear()

    @contextlib.contextmanager
    def _without(self, groups: Sequence[str]) -> Iterator[None]:
        """Inside of the block some operators are as they were before. For the whole process, so only for a moment."""
        with self._switching:
            away = [group for group in groups if group in self._places]
            for group in away:
                self._places.pop(group).remove()
            try:
                yield
            finally:
                for group in away:
                    self._put(group)

    def _refill(self, make: Callable[[], None]) -> None:
        with self._without(_MULTIPLIED):
            make()

    def _around(self, row: Row, kernel: Any) -> Callable[..., Any]:
        op, call_boxed = row.op, kernel.call_boxed
        get_ident, owner, running = threading.get_ident, self._owner, self._running

        def hook(keys: Any, *args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            before = running.get(thread)
            watched = thread == owner or self._works_for_owner()
            if watched:
                running[thread] = self._saw(row, int(keys.raw_repr()), before)
            try:
                for arg in args:
                    if type(arg) in _NUMBERS or type(arg) is list:
                        return self._call_with_tensors(op, call_boxed, keys, args, kwargs)
                result = call_boxed(keys, *args, **kwargs)
                return self._tensors(op, result) if type(result) in _NUMBERS or type(result) is tuple else result
            finally:
                if watched:
                    if before is None:
                        running.pop(thread, None)
                    else:
                        running[thread] = before

        return hook

    def _saw(self, row: Row, bits: int, before: Any) -> tuple[list[tuple[Row, int, int, str, bool]], int]:
        """Write a kernel down; what the thread runs from now on."""
        if before is None:
            call: list[tuple[Row, int, int, str, bool]] = []
            self._calls.append(call)
            depth = 0
        else:
            call, depth = before
        node = self._current_node()
        name = "" if node is None else node.name().rpartition("::")[2]
        call.append((row, bits, depth, name, False))
        if row.unwatched:
            below = row.next_unwatched(bits)
            if below is not None:
                depth += 1
                call.append((below[0], below[1], depth, name, True))
        return call, depth + 1

    def _works_for_owner(self) -> bool:
        """Whether this thread evaluates a node of a backward pass that the owner waits for."""
        if self._current_node() is None:
            return False
        frame = sys._current_frames().get(self._owner)
        while frame is not None:
            if self._waits_for_engine(frame):
                return True
            frame = frame.f_back
        return False

    # A number that C++ made a tensor comes as the number, and has to go on as that tensor.

    def _call_with_tensors(self, op: str, call_boxed: Any, keys: Any, args: Any, kwargs: Any) -> Any:
        places, named, _ = kernels.tensor_places(op)
        make = self._maker(args)
        changed = [_tensor(arg, place, make) for arg, place in zip(args, places, strict=False)]
        changed += args[len(changed) :]
        kwargs = {name: _tensor(value, named.get(name, ""), make) for name, value in kwargs.items()}
        if torch.is_inference_mode_enabled() and self._has_no_view_key(keys, args, changed):
            # Made there, the tensor would be one of inference mode and bring no such key.
            with kernels.without_keys(self._in_place_bits):
                return self._tensors(op, call_boxed(keys, *changed, **kwargs))
        return self._tensors(op, call_boxed(keys, *changed, **kwargs))

    def _has_no_view_key(self, keys: Any, args: Any, changed: Any) -> bool:
        return any(a is not b for a, b in zip(args, changed, strict=True) if type(a) is not list) and not any(
            isinstance(arg, torch.Tensor) and not arg.is_inference() for arg in args
        )

    def _maker(self, args: Any) -> Callable[[complex, bool], Any]:
        """What makes tensors of numbers for such arguments, where we are."""
        if not any(name in ("grad", "jvp") for name, _ in internals.transforms()):
            return self._wrapped
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        return lambda number, _: self._numbers.unwrapped(number, tensors)

    def _wrapped(self, number: complex, written: bool) -> Any:
        return self._numbers.fresh(number) if written else self._numbers(number)

    def _tensors(self, op: str, result: Any) -> Any:
        """A result with tensors where the schema says so."""
        returned = kernels.tensor_places(op)[2] if type(result) in _NUMBERS or type(result) is tuple else ()
        if type(result) is tuple and len(result) == len(returned):
            return tuple(_tensor(each, place, self._wrapped) for each, place in zip(result, returned, strict=True))
        return _tensor(result, returned[0], self._wrapped) if len(returned) == 1 else result


def _tensor(value: Any, place: str, make: Callable[[complex, bool], Any]) -> Any:
    """A value with tensors made of the numbers that stand where the schema says Tensor."""
    if type(value) in _NUMBERS and place in ("one", "written"):
        return make(value, place == "written")
    if place == "list" and type(value) is list and any(type(each) in _NUMBERS for each in value):
        return [make(each, False) if type(each) in _NUMBERS else each for each in value]
    return value
