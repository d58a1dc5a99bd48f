"""Op log: every operator call of a block as a dispatch mode sees it (torch/utils/_debug_mode).

While the block runs each call is only looked at; the records are made when the log is read.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch

from .. import records
from ._modules import NO_NODE, ModuleTracker, starts_backward
from ._python_lines import caller, place_of
from ._torch_internals import node_getter, sequence_counter, sequence_nr
from ._torch_internals.modes import Looker, LookerPastCompilers
from ._torch_internals.schemas import promise_of
from ._torch_internals.seeing import Eyes, Text

_RAISED = Text("raised")
_RUNNING = Text("running")


# One call as it was looked at: a list, since nothing else is made as quickly. [operator, args, kwargs, result, module,
# number of the backward node that made it (-1 for a forward call), whether in backward, level, place]
_Call = list[Any]
_RESULT, _NUMBER, _PLACE = 3, 5, 8


class OpLogger(Looker):
    """What `with op_log() as log:` gives. Iterating, len() and [] go over log.ops; print(log) prints all calls."""

    def __init__(self, root: Any, places: bool, modules: bool, keep: int | None) -> None:
        super().__init__("op_log")
        self._places = places
        self._keep = keep
        self._tracker = ModuleTracker(root) if modules else None
        self._eyes = Eyes()
        self._calls: deque[_Call] = deque(maxlen=keep)
        self._count = 0
        self._made_at: list[int] = []
        self._made_by: list[tuple[str, int] | None] = []
        self._stack: list[tuple[Any, str, bool]] = []
        self._current_node = node_getter()
        self._next_nr = sequence_counter()
        self._ready: tuple[int, tuple[records.OpLog, records.OpLog]] | None = None

    def begins(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> _Call:
        look = self._eyes.look
        seen = look(args)
        named = dict(zip(kwargs, look(tuple(kwargs.values())), strict=True)) if kwargs else kwargs
        node = self._current_node()
        # A backward pass may run in a thread of its device.
        stack = self._stack if node is None or self._tracker is None else self._tracker.running()
        if node is None:
            path = stack[-1][1] if stack else ""
            call = [func, seen, named, _RUNNING, path, -1, starts_backward(), self.level, None]
        elif stack and stack[-1][2]:
            call = [func, seen, named, _RUNNING, stack[-1][1], -1, True, self.level, None]
        else:
            number = sequence_nr(node)
            path = self._tracker.path_of_node(node) if self._tracker and number >= NO_NODE else ""
            call = [func, seen, named, _RUNNING, path, number, True, self.level, None]
        if self._places and call[_NUMBER] < 0:
            call[_PLACE] = caller()
            number = self._next_nr() - 1
            if self._made_at[-1] < number:
                self._made_at.append(number)
                self._made_by.append(call[_PLACE])
        self._calls.append(call)
        self._count += 1
        return call

    def ends(self, begun: _Call, result: Any) -> None:
        begun[_RESULT] = self._eyes.look((result,))[0]

    def fails(self, begun: _Call) -> None:
        begun[_RESULT] = _RAISED

    def __enter__(self) -> OpLogger:
        if self._entered:
            super().__enter__()
            return self
        # What may fail comes first, the mode itself last.
        with ExitStack() as undo:
            self._eyes.open()
            undo.callback(self._eyes.close)
            self._made_at.append(self._next_nr() - 1)
            self._made_by.append(None)
            if self._tracker is not None:
                self._tracker.__enter__()
                undo.callback(self._tracker.__exit__, None, None, None)
                self._stack = self._tracker.running()
            super().__enter__()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            if not self._entered and self._tracker is not None:
                self._tracker.__exit__(kind, error, trace)
            if not self._entered:
                self._eyes.close()

    @property
    def ops(self) -> records.OpLog:
        """The calls of the program, frozen as they are now."""
        return self._read()[0]

    @property
    def all_ops(self) -> records.OpLog:
        """Those, and the calls that tensor subclasses and branches of torch.cond made in turn, with their depth."""
        return self._read()[1]

    def _read(self) -> tuple[records.OpLog, records.OpLog]:
        if self._ready is None or self._ready[0] != self._count or any(c[_RESULT] is _RUNNING for c in self._calls):
            calls = tuple(self._record(call) for call in list(self._calls))
            dropped = self._count - len(calls)
            outer = tuple(call for call in calls if call.depth == 0)
            self._ready = self._count, (records.OpLog(outer, dropped), records.OpLog(calls, dropped))
        return self._ready[1]

    def __len__(self) -> int:
        return len(self.ops)

    def __iter__(self) -> Iterator[records.OpCall]:
        return iter(self.ops)

    def __getitem__(self, nr: int) -> records.OpCall:
        return self.ops[nr]

    def names(self) -> list[str]:
        return self.ops.names()

    def counts(self) -> dict[str, int]:
        return self.ops.counts()

    def rows(self) -> records.Rows:
        return self.all_ops.rows()

    def to_markdown(self) -> str:
        return self.all_ops.to_markdown()

    def __str__(self) -> str:
        return self.all_ops.text()

    def _repr_html_(self) -> str:
        return self.all_ops._repr_html_()

    def _record(self, call: _Call) -> records.OpCall:
        func, args, kwargs, result, path, number, backward, level, place = call
        promise = promise_of(func)
        inputs, outputs = _tensors([*args, *kwargs.values()]), _tensors([result])
        named = [*zip(promise.names, args, strict=False), *kwargs.items()]
        written = {each.id for each in _tensors([value for name, value in named if name in promise.writes])}
        shared = {each.storage for each in outputs if each.storage and each.id not in written}
        if 0 <= number < NO_NODE:
            path = self._tracker.path_of(number) if self._tracker else ""
            place = self._line_of_node(number)
        return records.OpCall(
            _name(func),
            tuple(_written(value) for value in args),
            tuple((name, _written(value)) for name, value in kwargs.items()),
            "" if result is None else _written(result, types=True),
            tuple(inputs),
            tuple(outputs),
            tuple(each.id for each in inputs if each.id in written),
            tuple(dict.fromkeys(each.id for each in inputs if each.storage in shared)),
            level,
            "backward" if backward else "forward",
            path,
            place_of(*place) if place else "",
            "write" if promise.writes else "view" if promise.views else "fresh",
        )

    def _line_of_node(self, number: int) -> tuple[str, int] | None:
        """A node is made before the kernel of its call runs: by the first call from then on."""
        at = bisect_left(self._made_at, number)
        return self._made_by[at] if at < len(self._made_by) else None


def op_log(
    root: Any = None,
    *,
    places: bool = False,
    modules: bool = True,
    keep: int | None = 100_000,
    compiled: bool = False,
) -> OpLogger:
    """`with op_log() as log:` writes down every operator call that this thread makes in the block, backward too.

    root       a module from which paths are named ("layer1.0.conv1"); without one they begin with the class of the
               outermost module ("ResNet.layer1.0.conv1")
    places     also note the line of the program behind each call; in backward, of the forward call that made the node
    modules    note the module behind each call
    keep       how many calls at most; the oldest are forgotten, and the log says how many. None: all
    compiled   False: PyTorch runs a function of torch.compile uncompiled while a dispatch mode looks on, so the log has
               its operators as they are written. True: it runs compiled, and the log has only what the compiled code
               still calls of the dispatcher; its own fused kernels go past every mode

    print(log) writes lines such as "$3: f32[4, 8] = aten.add.Tensor($0, $1, alpha=2)": tensors by number, in the order
    of their first appearance, arguments that have their defaults left out. log.ops is the frozen records.OpLog: for
    each call the tensors' shapes, strides, dtypes, devices and storages, what it wrote to, and whose memory its outputs
    share. No tensor is kept alive. A call that raised has the result "raised".

    All that runs within torch.autograd.backward or grad has the phase "backward", the ones that it begins with too.

    What a mode sees lies below autograd, autocast and vmap: mm where you wrote linear, casts where autocast made them.
    Under inference_mode there is no autograd key to take composite operators apart, and they appear whole. What a
    kernel calls in turn is not seen, but for the calls that a tensor subclass's __torch_dispatch__ makes, and the
    branches of torch.cond, which appear indented, with their depth.

    A mode belongs to one thread: other threads go on unseen, and make a log of their own. A generator that is suspended
    inside of the block leaves the mode on until it is resumed or closed. The log may be entered again, also inside of
    its block, and goes on; after the block a tensor gets a new number.

    PyTorch itself takes another way here and there while any dispatch mode is on, with the same results: reshape gives
    a view by view in place of _reshape_alias, and gradients that meet are summed into a new tensor, by add, not add_.
    It also warns of the hooks that note modules where a module of torch.compile is called.

    RuntimeError where one log is entered in two threads at once, TypeError or ValueError for a `keep` that is no number
    above 0.
    """
    if keep is not None and (not isinstance(keep, int) or isinstance(keep, bool)):
        raise TypeError(f"op_log: keep is a {type(keep).__name__}; give a number of calls, or None to keep all.")
    if keep is not None and keep < 1:
        raise ValueError(f"op_log: keep is {keep}; give a number of calls above 0, or None to keep all.")
    if root is not None and not isinstance(root, torch.nn.Module):
        raise TypeError(
            f"op_log: root is a {type(root).__name__}; give the torch.nn.Module from which modules are named."
        )
    kind = OpLoggerPastCompilers if compiled else OpLogger
    return kind(root, places, modules, keep)


class OpLoggerPastCompilers(OpLogger, LookerPastCompilers):
    """An OpLogger under which compiled functions run compiled."""


def _name(func: Any) -> str:
    """ "aten.add.Tensor"; "higher_order.cond" for what has no schema."""
    text = str(func)
    return text if "." in text else f"higher_order.{text}"


def _tensors(seen: list[Any]) -> list[records.TensorMeta]:
    found: list[records.TensorMeta] = []
    for value in seen:
        if type(value) is tuple:
            found.append(_meta(value))
        elif type(value) is list:
            found += _tensors(value)
    return found


def _meta(seen: tuple[Any, ...]) -> records.TensorMeta:
    number, shape, stride, offset, dtype, device, storage, kind = seen
    count = dtype.itemsize
    for n in shape:
        count = count * n if isinstance(n, int) else 0
    return records.TensorMeta(
        number,
        tuple(shape),
        _called(dtype),
        tuple(stride),
        offset,
        _called(device),
        storage,
        # Without a storage, as in a sparse tensor, the shape does not tell the bytes.
        count if storage else 0,
        kind,
    )


@functools.cache
def _called(kind: Any) -> str:
    """The name of a dtype or a device."""
    return str(kind).removeprefix("torch.")


def _written(value: Any, types: bool = False) -> str:
    kind = type(value)
    if kind is tuple:
        return str(_meta(value)) if types else f"${value[0]}"
    if kind is list:
        inner = ", ".join(_written(each, types) for each in value)
        return f"({inner})" if types else f"[{inner}]"
    if kind is str:
        return repr(value)
    return str(value).removeprefix("torch.")
