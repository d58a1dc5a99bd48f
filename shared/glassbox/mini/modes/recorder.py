"""Recorder: what a block of code did, as records (PyTorch: torch/utils/_debug_mode.py; here it needs no mode).

The dispatcher lets a watcher wrap every kernel that it looks up, so a recording sees each hop of each call,
and costs nothing while there is none. An operator call is what a dispatch mode would see: the first hop
below the Python key.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ... import records
from ..aten.core.dispatcher import OperatorHandle, Registration, Row, dispatcher
from ..autograd import engine
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import DispatchKeySet
from ..c10.tensor_impl import TensorImpl
from ..sim import timeline

_recorders: ContextVar[tuple["Recorder", ...]] = ContextVar("recorders", default=())
_lock = threading.Lock()
_open: list[Registration] = []
_PYTHON = DispatchKey.Python.functionality


class _Numbers:
    """A number for every object of one kind, in the order of first appearance, without keeping it alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = 0

    def __call__(self, thing: Any) -> int:
        known = self._known.get(id(thing))
        if known is not None and known[0]() is thing:
            return known[1]
        number = self._next
        self._next += 1
        self._known[id(thing)] = weakref.ref(thing), number
        return number


class Recorder:
    """What `with record() as r:` gives: r.ops, r.hops, r.saved, r.launches, and all of them as r.recording()."""

    def __init__(self) -> None:
        self._calls: list[records.OpCall | None] = []
        self._hops: list[records.Hop] = []
        self._saved: list[tuple[str, records.SavedTensor]] = []
        self._nodes: weakref.WeakSet[Any] = weakref.WeakSet()
        self._tensors = _Numbers()
        self._storages = _Numbers()
        # The (operator, key) of the hops that are running, the innermost last, and how many of them are
        # calls.
        self._running: list[tuple[OperatorHandle, DispatchKey]] = []
        self._depth = 0
        line = timeline()
        self._before = len(line.events) + line.dropped

    # What was seen

    @property
    def ops(self) -> records.OpLog:
        """The operator calls that a dispatch mode would have seen."""
        return records.OpLog(tuple(call for call in self._calls if call is not None and call.depth == 0))

    @property
    def all_ops(self) -> records.OpLog:
        """Those, and the calls that kernels below the Python key made in turn, with their depth."""
        return records.OpLog(tuple(call for call in self._calls if call is not None))

    @property
    def hops(self) -> records.Onion:
        """Every kernel that ran."""
        return records.Onion(tuple(self._hops))

    @property
    def saved(self) -> records.SavedValues:
        """What the calls saved for backward."""
        return records.SavedValues(tuple(self._saved))

    @property
    def launches(self) -> records.Timeline:
        """What host and simulated device did since the recording began."""
        line = timeline()
        since = self._before - line.dropped
        # A reset in between begins a new timeline.
        events = line.events[since:] if 0 <= since <= len(line.events) else line.events
        return records.Timeline(events, line.dropped)

    def number_of(self, tensor: Any) -> int:
        """The number by which the records call a tensor: $number."""
        return self._tensors(tensor)

    def recording(self) -> records.Recording:
        """All of it, frozen."""
        return records.Recording(self.ops, self.hops, self.saved, self.launches)

    def __str__(self) -> str:
        return str(self.recording())

    def to_markdown(self) -> str:
        return self.recording().to_markdown()

    def rows(self) -> records.Rows:
        return self.recording().rows()

    def _repr_html_(self) -> str:
        return self.recording()._repr_html_()

    # Seeing

    def run(
        self, op: OperatorHandle, row: Row, left: int, function: Callable[[], Any], arguments: tuple[Any, ...]
    ) -> Any:
        """Run one hop and write it down."""
        key = row.key
        keys = tuple(each.name for each in DispatchKeySet(left))
        place = row.kernel.registered if row.kernel is not None else ""
        self._hops.append(records.Hop(str(op.overload), key.name, left, keys, row.reason, place, len(self._running)))
        inside = self._running[-1] if self._running else None
        # BackendSelect hands the same call on to the backend.
        goes_on = inside is not None and inside[0] is op and inside[1] is DispatchKey.BackendSelect
        is_call = key.functionality < _PYTHON and not goes_on
        autograd = key.name.startswith("Autograd")
        before = [each._grad_fn for each in _tensors(arguments)] if autograd else []
        nr = self._begin(op, arguments) if is_call else -1
        self._running.append((op, key))
        try:
            result = function()
        finally:
            self._running.pop()
            if is_call:
                self._depth -= 1
        if is_call:
            self._end(nr, op, arguments, result)
        if autograd:
            self._look_at_nodes(result, before)
        return result

    def _begin(self, op: OperatorHandle, arguments: tuple[Any, ...]) -> int:
        args, kwargs = op.unbind(arguments)
        self._calls.append(
            records.OpCall(
                str(op.overload),
                tuple(self._written(arg) for arg in args),
                tuple((name, self._written(value)) for name, value in kwargs.items()),
                "raised",
                tuple(self._meta(each) for each in _tensors(args) + _tensors(kwargs.values())),
                depth=self._depth,
                phase="backward" if _in_backward() else "forward",
            )
        )
        self._depth += 1
        return len(self._calls) - 1

    def _end(self, nr: int, op: OperatorHandle, arguments: tuple[Any, ...], result: Any) -> None:
        begun = self._calls[nr]
        assert begun is not None
        outputs = _tensors((result,))
        inputs = _tensors(arguments)
        written = [
            value
            for a, value in zip(op.schema.arguments, arguments, strict=True)
            if a.type.is_write and value is not None
        ]
        shared = {id(out._storage) for out in outputs if all(out is not each for each in written)}
        self._calls[nr] = records.OpCall(
            begun.name,
            begun.args,
            begun.kwargs,
            self._written(result, types=True),
            begun.inputs,
            tuple(self._meta(each) for each in outputs),
            tuple(self._tensors(each) for each in _tensors(written)),
            tuple(dict.fromkeys(self._tensors(each) for each in inputs if id(each._storage) in shared)),
            begun.depth,
            begun.phase,
        )

    def _meta(self, tensor: Any) -> records.TensorMeta:
        count = 1
        for n in tensor._shape:
            count *= n
        return records.TensorMeta(
            self._tensors(tensor),
            tuple(tensor._shape),
            tensor._dtype.name,
            tuple(tensor._stride),
            tensor._offset,
            str(tensor._device),
            self._storages(tensor._storage) + 1,
            count * tensor._dtype.itemsize,
        )

    def _written(self, value: Any, types: bool = False) -> str:
        if isinstance(value, TensorImpl):
            return str(self._meta(value)) if types else f"${self._tensors(value)}"
        if isinstance(value, tuple | list):
            inner = ", ".join(self._written(each, types) for each in value)
            return f"({inner})" if types else f"[{inner}]"
        return repr(value) if isinstance(value, str) else str(getattr(value, "name", value))

    def _look_at_nodes(self, result: Any, before: list[Any]) -> None:
        for output in _tensors((result,)):
            node = output._grad_fn
            # A composite's result has the node of the operator that made it, which was looked at then.
            if node is None or node in self._nodes or any(node is each for each in before):
                continue
            self._nodes.add(node)
            # After a write through a view the node of the op hangs inside the base's.
            base = output._base
            if base is not None and type(base._grad_fn).__name__ == "CopySlices":
                node = getattr(base._grad_fn, "fn", None) or node
            for name, tensor in saved_tensors(node):
                saved = records.SavedTensor(
                    name,
                    tuple(tensor._shape),
                    tensor._dtype.name,
                    self._meta(tensor).nbytes,
                    self._storages(tensor._storage) + 1,
                    None if tensor._version_counter is None else tensor._version_counter[0],
                )
                self._saved.append((node.name(), saved))


def saved_tensors(node: Any) -> list[tuple[str, Any]]:
    """The tensors that a node keeps, by name; none for one that a hook has packed."""
    found: list[tuple[str, Any]] = []
    for slot in getattr(type(node), "__slots__", ()):
        if not slot.startswith("saved_"):
            continue
        saved = getattr(node, slot, None)
        name = slot.removeprefix("saved_")
        items = getattr(saved, "items", None)
        for nr, each in enumerate([saved] if items is None else items):
            tensor = getattr(each, "tensor", None)
            if isinstance(tensor, TensorImpl):
                found.append((name if items is None else f"{name}[{nr}]", tensor))
    return found


def _tensors(values: Any) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, TensorImpl):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += _tensors(value)
    return found


def _in_backward() -> bool:
    """Whether the engine is among the callers."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == engine.__file__:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _watch(op: OperatorHandle, row: Row, left: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as it runs while somebody records: threads that do not are left alone."""

    def watched(key_set: int, *arguments: Any) -> Any:
        recorders = _recorders.get()

        def run() -> Any:
            return function(key_set, *arguments)

        for recorder in recorders:
            run = _through(recorder, op, row, left, run, arguments)
        return run()

    return watched


def _through(
    recorder: Recorder, op: OperatorHandle, row: Row, left: int, run: Callable[[], Any], arguments: tuple[Any, ...]
) -> Callable[[], Any]:
    return lambda: recorder.run(op, row, left, run, arguments)


@contextmanager
def record() -> Iterator[Recorder]:
    """`with record() as r:` writes down what this thread does in the block: calls, hops, saved tensors, launches.

    Blocks may nest: an outer one records what is inside of an inner one too. Other threads go on unrecorded.
    """
    recorder = Recorder()
    with _lock:
        _open.append(dispatcher.watch(_watch) if not _open else Registration(lambda: None))
    before = _recorders.get()
    _recorders.set((*before, recorder))
    try:
        yield recorder
    finally:
        _recorders.set(before)
        with _lock:
            _close()


def _close() -> None:
    """One recording less; the watcher goes with the last of them, whichever began first."""
    if len(_open) == 1:
        _open.pop().remove()
    else:
        _open.pop(-1)
