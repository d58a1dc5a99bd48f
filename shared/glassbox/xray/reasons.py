"""Why: why a call went to the kernel that it went to (aten/src/ATen/core/dispatch/Dispatcher.h).

Each operator call of the program is seen before the dispatcher decides anything. Its key set is reckoned from what
the arguments bring, the thread's sets and the operator's table, and compared with the set that the dispatcher worked
out and with the kernels that really ran.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..records import DispatchRow, Hop, KeySets, Onion, Why, WhyCall
from ._calls import TopCall, framework_of_call
from ._key_origins import context_of, origins_of
from .dispatch_tables import read_row
from .key_sets import key_sets_of, watch_program

_NOT_OURS = ("aten.detach.default", "aten.alias.default")


def why(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Why:
    """Call fn(*args, **kwargs) once and say of each operator call that it makes why it went to its kernel.

    Per argument its keys and where each comes from; their union; what the thread includes and excludes, and which
    context made it so; the keys that the operator has fallthroughs for; the key that is highest then; the row of the
    table with its kind, file and line; and each kernel that ran, down to the backend. For the operator calls of fn
    itself: those that kernels make in turn are among the hops.

    Works over tensors of torch and of the mini-framework. Where a call comes to a row without a kernel, the record
    has what was raised, and its last call explains it; whatever else fn raises is raised. For PyTorch, hooks around
    all kernels are there while fn runs, as in `onion`, which see for what they cannot see; `keys(fn, *args)` does
    without.
    TypeError where fn cannot be called, ValueError where it calls no operator or was compiled.
    """
    if not callable(fn):
        raise TypeError(f"why: {type(fn).__name__} cannot be called; give a function and its arguments.")
    calls: list[TopCall] = []

    def run() -> None:
        watch_program("why", fn, args, kwargs, calls)

    hops, error = Onion(()), ""
    try:
        hops = framework_of_call(fn, args, kwargs).hops(run)
    except NotImplementedError as problem:
        # What torch and mini both say of a row without a kernel; a function may raise the same of its own.
        said = re.match(r"Could not run '[^']+' with arguments from the '[^']+' backend", str(problem))
        if not calls or said is None:
            raise
        error = said[0]
    tables = {call.name: call.framework.table(call.name) for call in calls}
    rows = {name: {key: read_row(key, text) for key, text in table.items()} for name, table in tables.items()}
    sets = [key_sets_of(call, tables[call.name]) for call in calls]
    layers = [_layers(each, rows[call.name]) for each, call in zip(sets, calls, strict=True)]
    parts = _hops_of(calls, [each[0] for each in layers], hops)
    return Why(
        tuple(
            WhyCall(
                call.op,
                each,
                origins_of(call, each, rows[call.name]),
                left,
                call.key_set,
                part,
                context_of(call.around),
            )
            for call, each, left, part in zip(calls, sets, layers, parts, strict=True)
        ),
        error,
    )


def _layers(sets: KeySets, rows: Mapping[str, DispatchRow]) -> tuple[DispatchRow, ...]:
    """The row of each key that is left, highest first."""
    left = sets.effective
    # Of a functionality with several backends the highest one's row counts.
    backend = left.backends[-1] if left.backends else ""
    keys = [sets.layout.key(each, backend) for each in reversed(left.functionalities)] or ["Undefined"]
    return tuple(rows.get(key, DispatchRow(key, "missing")) for key in keys)


def _hops_of(calls: Sequence[TopCall], winners: Sequence[DispatchRow], hops: Onion) -> Iterator[Onion]:
    """The hops of each call, in the program's order.

    A few calls among the hops are none of ours (detach). A kernel that was registered from Python may not have been
    watched: then its hop is inferred, and what it called, which came as if from nowhere, is put under it.
    """
    groups = deque(hops.calls() if len(hops) else ())
    pairs = list(zip(calls, winners, strict=True))
    for nr, (call, row) in enumerate(pairs):
        while groups and groups[0][0].op != call.op and groups[0][0].op in _NOT_OURS:
            groups.popleft()
        if not len(hops):
            yield hops
        elif groups and groups[0][0].op == call.op and (not _unwatched(row) or groups[0][0].key_set == call.key_set):
            yield groups.popleft()
        elif _unwatched(row):
            keys = call.framework.layout().keys(call.key_set)
            found = [Hop(call.op, row.key, call.key_set, keys, row.kind, row.place, inferred=True)]
            following = pairs[nr + 1][0] if nr + 1 < len(pairs) else None
            while groups and not (following and _starts(groups[0], following)):
                found += [replace(hop, depth=hop.depth + 1) for hop in groups.popleft()]
            yield Onion(tuple(found), hops.note, hops.absent)
        else:
            yield Onion(())


def _starts(group: Onion, call: TopCall) -> bool:
    return (group[0].op, group[0].key_set) == (call.op, call.key_set)


def _unwatched(row: DispatchRow) -> bool:
    return row.kind == "kernel" and row.file.endswith(".py")
