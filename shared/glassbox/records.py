"""Records: the frozen vocabulary that instruments over the mini-framework and over PyTorch share.

PyTorch keeps what a `StorageView` says in c10/core/TensorImpl.h (sizes, strides, storage offset, dtype,
version counter) and c10/core/StorageImpl.h (bytes, data pointer, use count). A record is a snapshot: it never
holds the tensor that it was taken from, so looking at a tensor does not keep it alive.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

Rows = list[dict[str, Any]]
_CELL = "background-color:transparent;padding:0;white-space:nowrap"


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """`rows` as a Markdown table, one column per key of the first row; "" without rows."""
    if not rows:
        return ""
    columns = list(rows[0])
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(_plain(row.get(c, "")).replace("|", "\\|") for c in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def html_table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """`rows` as an HTML table with a caption; every cell is escaped."""
    if not rows:
        return f"<p>{html.escape(caption or 'nothing to show')}</p>"
    columns = list(rows[0])
    # A long name may break after its underscores, so that a wide table still fits its cell.
    names = [html.escape(c).replace("_", "_<wbr>") for c in columns]
    head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in names)
    body = ""
    for row in rows:
        texts = [html.escape(_plain(row.get(c, ""))) for c in columns]
        cells = [f'<td style="text-align:left"><code style="{_CELL}">{t}</code></td>' for t in texts]
        body += f"<tr>{''.join(cells)}</tr>"
    title = f'<caption style="text-align:left">{html.escape(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """`rows` in aligned columns, for a terminal; "" without rows."""
    if not rows:
        return ""
    columns = list(rows[0])
    cells = [columns] + [[_plain(r.get(c, "")) for c in columns] for r in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join("  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in cells)


def human_bytes(n: int) -> str:
    """`n` bytes in decimal units, as disks and GPU tools count: 4000 -> "4 kB"."""
    size, unit = float(n), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(size) < 999.5 or unit == "TB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


class Table:
    """What a record that is a table can do: print, show in a notebook, become Markdown or a DataFrame.

    A subclass gives `rows()` (one dict per line, so `pandas.DataFrame(record.rows())` works) and `caption()`.
    """

    __slots__ = ()

    def rows(self) -> Rows:
        raise NotImplementedError

    def caption(self) -> str:
        return ""

    def to_markdown(self) -> str:
        return markdown_table(self.rows())

    def __str__(self) -> str:
        return "\n".join(part for part in (self.caption(), text_table(self.rows())) if part)

    def _repr_html_(self) -> str:
        return html_table(self.rows(), self.caption())


@dataclass(frozen=True, slots=True)
class StorageView(Table):
    """How one tensor sees one storage: the metadata, without the tensor.

    shape, stride    one entry per dimension; strides count elements, not bytes
    offset           storage offset, in elements
    dtype, itemsize  "float32" without a prefix, and bytes per element
    device           "cpu", "cuda:0", ...
    storage          identity of the storage: equal for two views exactly when they share it; 0 = unknown
    nbytes           bytes of the whole storage
    data_ptr         address of the tensor's first element; 0 when there is none (empty, meta)
    version          how often the data were changed in place; None where it is not tracked
    base             True for a view of another tensor
    values           the storage's elements (not the tensor's) where they are few, else None

    ValueError if shape and stride differ in length or a size is negative.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    dtype: str = "float32"
    itemsize: int = 4
    device: str = "cpu"
    storage: int = 0
    nbytes: int = 0
    data_ptr: int = 0
    version: int | None = 0
    base: bool = False
    values: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        for field in ("shape", "stride"):
            object.__setattr__(self, field, tuple(int(n) for n in getattr(self, field)))
        if self.values is not None:
            object.__setattr__(self, "values", tuple(self.values))
        if len(self.shape) != len(self.stride):
            raise ValueError(
                f"StorageView {self.name!r}: shape {self.shape} has {len(self.shape)} dimensions, but stride "
                f"{self.stride} has {len(self.stride)}; give one stride per dimension."
            )
        if any(n < 0 for n in self.shape):
            raise ValueError(f"StorageView {self.name!r}: shape {self.shape} has a negative size; use 0 or more.")

    @classmethod
    def of_layout(
        cls,
        name: str,
        shape: Sequence[int],
        stride: Sequence[int],
        offset: int = 0,
        *,
        size: int | None = None,
        values: Sequence[Any] | None = None,
        storage: int = 0,
        dtype: str = "float32",
        itemsize: int = 4,
    ) -> StorageView:
        """A view from bare layout numbers, for figures about arithmetic alone.

        `size` is the storage's length in elements; without it, the length of `values`, or just long enough.
        """
        view = cls(name, tuple(shape), tuple(stride), int(offset), dtype=dtype, itemsize=itemsize)
        if size is None:
            size = len(values) if values is not None else max(0, view.span()[1])
        kept = tuple(values) if values is not None else None
        return cls(
            name,
            view.shape,
            view.stride,
            view.offset,
            dtype,
            itemsize,
            storage=storage,
            nbytes=size * itemsize,
            values=kept,
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def size(self) -> int:
        """Whole elements (of this view's dtype) in the storage."""
        return self.nbytes // self.itemsize

    @property
    def tensor_nbytes(self) -> int:
        """Bytes that the elements would need on their own: numel * itemsize."""
        return self.numel * self.itemsize

    def indices(self) -> Iterator[tuple[int, ...]]:
        """All indices in row-major order."""
        return itertools.product(*(range(n) for n in self.shape))

    def cells(self) -> tuple[int, ...]:
        """The storage position, in elements, of every index in row-major order; repeats where cells
        overlap.
        """
        return tuple(self._locate(index) for index in self.indices())

    def address(self, index: Sequence[int]) -> int:
        """The storage position of one element; negative indices count from the end.

        IndexError for a wrong number of indices or one out of range.
        """
        index = tuple(index)
        if len(index) != self.ndim:
            raise IndexError(
                f"{self.name} has {self.ndim} dimensions, but the index {index} has {len(index)} entries; "
                f"give one per dimension."
            )
        for dim, (i, n) in enumerate(zip(index, self.shape, strict=True)):
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of range for dimension {dim} of {self.name}, which has size {n}.")
        return self._locate(tuple(i % n for i, n in zip(index, self.shape, strict=True)))

    def formula(self, index: Sequence[int]) -> str:
        """The address of one element spelled out: "x[1,2] = storage[0 + 1*4 + 2*1] = storage[6]"."""
        position = self.address(index)
        at = [i % n for i, n in zip(index, self.shape, strict=True)]
        terms = [str(self.offset)] + [f"{i}*{s}" for i, s in zip(at, self.stride, strict=True)]
        inner = " + ".join(terms)
        label = f"{self.name}[{','.join(map(str, at))}]" if at else f"{self.name}[()]"
        return f"{label} = storage[{inner}]" + (f" = storage[{position}]" if at else "")

    def span(self) -> tuple[int, int]:
        """(lowest, highest + 1) storage position reached; (offset, offset) if the tensor is empty."""
        if self.numel == 0:
            return self.offset, self.offset
        reach = [(n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)]
        return self.offset + sum(r for r in reach if r < 0), self.offset + sum(r for r in reach if r > 0) + 1

    def touches(self, position: int) -> bool:
        """Does any index land on this storage position? Without listing the cells, so it is quick on large
        views.
        """
        if self.numel == 0:
            return False
        dims = sorted(
            ((n, s) for n, s in zip(self.shape, self.stride, strict=True) if n > 1 and s != 0),
            key=lambda d: -abs(d[1]),
        )

        def reachable(rest: int, k: int) -> bool:
            if k == len(dims):
                return rest == 0
            n, s = dims[k]
            low = sum(min(0, (m - 1) * t) for m, t in dims[k + 1 :])
            high = sum(max(0, (m - 1) * t) for m, t in dims[k + 1 :])
            # only these steps leave a rest that the smaller strides can make up
            first, last = (rest - high, rest - low) if s > 0 else (rest - low, rest - high)
            steps = range(max(0, -(-first // s)), min(n - 1, last // s) + 1)
            return any(reachable(rest - i * s, k + 1) for i in steps)

        return reachable(position - self.offset, 0)

    def rows(self) -> Rows:
        return [{f.name: getattr(self, f.name) for f in fields(self) if f.name != "values"}]

    def caption(self) -> str:
        return str(self)

    def __str__(self) -> str:
        kind = "view" if self.base else "tensor"
        return (
            f"{self.name}: {kind}, shape {self.shape}, stride {self.stride}, offset {self.offset}, "
            f"{self.dtype}, {self.device}, over {human_bytes(self.nbytes)} of storage"
        )

    def _locate(self, index: tuple[int, ...]) -> int:
        return self.offset + sum(i * s for i, s in zip(index, self.stride, strict=True))


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One bar of a timeline.

    row            "cpu" for the host, "stream 0", "stream 1", ... for the device
    name           the op ("add.Tensor") or the call ("synchronize")
    start_us, end_us   from the timeline's own zero; equal for a moment such as a recorded event
    kind           host: launch, wait, malloc, work; device: kernel, copy, wait, event
    bytes, flops   what a kernel or copy moved and computed; 0 for the rest
    correlation    the same number on a launch and on what it launched; 0 where nothing was launched
    """

    row: str
    name: str
    start_us: float
    end_us: float
    kind: str
    bytes: int = 0
    flops: int = 0
    correlation: int = 0

    @property
    def duration_us(self) -> float:
        return round(self.end_us - self.start_us, 6)


@dataclass(frozen=True, slots=True)
class Timeline(Table):
    """What host and device did, in the order in which it was asked for.

    dropped counts the oldest events that were forgotten to bound the memory.
    """

    events: tuple[TimelineEvent, ...]
    dropped: int = 0

    def row_names(self) -> tuple[str, ...]:
        """The host's row first, then the streams by number."""
        found = dict.fromkeys(event.row for event in self.events)
        return tuple(sorted(found, key=lambda row: (row != "cpu", len(row), row)))

    def of_row(self, row: str) -> tuple[TimelineEvent, ...]:
        return tuple(event for event in self.events if event.row == row)

    def of_kind(self, *kinds: str) -> tuple[TimelineEvent, ...]:
        return tuple(event for event in self.events if event.kind in kinds)

    def end_us(self) -> float:
        """When the last of it ends; 0.0 for an empty timeline."""
        return max((event.end_us for event in self.events), default=0.0)

    def busy_us(self, row: str) -> float:
        """How long the row worked: launches, kernels, copies; waiting is no work."""
        return round(sum(e.duration_us for e in self.of_row(row) if e.kind != "wait"), 6)

    def rows(self) -> Rows:
        return [
            {
                "row": event.row,
                "name": event.name,
                "kind": event.kind,
                "start_us": event.start_us,
                "us": event.duration_us,
                "bytes": event.bytes,
                "flops": event.flops,
                "correlation": event.correlation,
            }
            for event in self.events
        ]

    def caption(self) -> str:
        busy = ", ".join(f"{row} busy {self.busy_us(row):g} us" for row in self.row_names())
        lost = f"; the oldest {self.dropped} events are gone" if self.dropped else ""
        return f"{self.end_us():g} us in all{': ' if busy else ''}{busy}{lost}"


@dataclass(frozen=True, slots=True)
class Race:
    """Two ops on two streams that touch the same memory, at least one writing, with nothing to order them.

    address    of the memory on the device; first, second: the ops, in the order of their launch
    reused     True where the memory of a freed tensor went to another tensor in between
    advice     what would put the two in order
    """

    address: int
    nbytes: int
    first: str
    first_stream: str
    first_access: str
    second: str
    second_stream: str
    second_access: str
    reused: bool
    advice: str
    correlations: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        memory = f"{human_bytes(self.nbytes)} at {self.address:#x}"
        if self.reused:
            memory += ", freed and given to another tensor in between"
        return (
            f"race on {memory}: {self.second} on {self.second_stream} {self.second_access} what {self.first} "
            f"on {self.first_stream} {self.first_access}, and nothing orders the two. {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that a node of the backward graph keeps for its step.

    name      by which the node knows it: "self", "result", "tensors[1]"
    storage   as in StorageView: equal for two exactly when they share memory, so bytes need not be counted twice
    version   of the tensor when it was saved
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    storage: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node of a backward graph.

    id            its place in the graph that it is part of
    sequence_nr   the order of creation; None for AccumulateGrad, which goes before all others
    edges         where its gradients go: (id, input_nr), or None where none is wanted
    outputs       the shape of each forward output, which its input gradients have
    saved         what it keeps
    leaf          for AccumulateGrad the shape of the leaf; else None
    """

    id: int
    name: str
    sequence_nr: int | None
    edges: tuple[tuple[int, int] | None, ...]
    outputs: tuple[tuple[int, ...], ...] = ()
    saved: tuple[SavedTensor, ...] = ()
    leaf: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Graph(Table):
    """A backward graph: its nodes, each before those that it hands gradients to."""

    nodes: tuple[GraphNode, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    def __getitem__(self, id: int) -> GraphNode:  # noqa: A002
        return self.nodes[id]

    def saved_bytes(self) -> int:
        """Bytes that the graph keeps alive, a storage that several nodes keep counted once, by its largest view."""
        largest: dict[Any, int] = {}
        for node in self.nodes:
            for nr, saved in enumerate(node.saved):
                key = saved.storage or (node.id, nr)
                largest[key] = max(largest.get(key, 0), saved.nbytes)
        return sum(largest.values())

    def rows(self) -> Rows:
        return [
            {
                "id": node.id,
                "node": node.name,
                "goes to": ", ".join("-" if edge is None else str(edge[0]) for edge in node.edges),
                "shape": ", ".join(map(str, map(list, node.outputs))),
                "saved": ", ".join(f"{each.name} {list(each.shape)}" for each in node.saved),
                "bytes": sum(each.nbytes for each in node.saved),
            }
            for node in self.nodes
        ]

    def caption(self) -> str:
        leaves = sum(node.leaf is not None for node in self.nodes)
        return f"{len(self.nodes)} nodes, {leaves} leaves, {human_bytes(self.saved_bytes())} saved for backward"


# How a log writes dtypes.
DTYPE_LETTERS = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "b8",
}


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """What a log says of one tensor.

    id         its number in the log, in the order of first appearance: written $id
    storage    equal for two tensors of a log exactly when they share memory
    nbytes     numel * itemsize
    """

    id: int
    shape: tuple[int, ...]
    dtype: str = "float32"
    stride: tuple[int, ...] = ()
    offset: int = 0
    device: str = "cpu"
    storage: int = 0
    nbytes: int = 0

    def type(self) -> str:
        """dtype and shape: "f32[4, 8]"."""
        return f"{DTYPE_LETTERS.get(self.dtype, self.dtype)}{list(self.shape)}"

    def __str__(self) -> str:
        return f"${self.id}: {self.type()}"


@dataclass(frozen=True, slots=True)
class OpCall:
    """One operator call, as a dispatch mode sees it.

    name             "aten.add.Tensor"
    args, kwargs     as a log writes them: "$0" for a tensor, "[1, 2]", "2.0"; defaults left out
    result           likewise, with types: "$3: f32[4, 8]", "($3: f32[4], $4: i64[4])"
    inputs, outputs  the tensors among them
    mutates          ids of the inputs that the call wrote to
    aliases          ids of the inputs whose memory an output shares
    depth            how many calls of the same kind this one was made by
    phase            "forward" or "backward"
    module, place    the module that called and the line of the program, where they were asked for
    """

    name: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()
    result: str = ""
    inputs: tuple[TensorMeta, ...] = ()
    outputs: tuple[TensorMeta, ...] = ()
    mutates: tuple[int, ...] = ()
    aliases: tuple[int, ...] = ()
    depth: int = 0
    phase: str = "forward"
    module: str = ""
    place: str = ""

    @property
    def effect(self) -> str:
        """ "write" where an input was written to, "view" where an output shares an input's memory, else "fresh"."""
        if self.mutates:
            return "write"
        return "view" if self.aliases else "fresh"

    def call(self) -> str:
        """The call without its result: "aten.add.Tensor($0, $1, alpha=2)"."""
        given = [*self.args, *(f"{name}={value}" for name, value in self.kwargs)]
        return f"{self.name}({', '.join(given)})"

    def __str__(self) -> str:
        return f"{self.result} = {self.call()}" if self.result else self.call()


@dataclass(frozen=True, slots=True)
class OpLog(Table):
    """The operator calls of a program in their order. Iterating, len() and [] give OpCalls."""

    calls: tuple[OpCall, ...]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[OpCall]:
        return iter(self.calls)

    def __getitem__(self, nr: int) -> OpCall:
        return self.calls[nr]

    def names(self) -> list[str]:
        """The names of the operators, call by call."""
        return [call.name for call in self.calls]

    def counts(self) -> dict[str, int]:
        """How often each operator was called, the most frequent first."""
        found: dict[str, int] = {}
        for call in self.calls:
            found[call.name] = found.get(call.name, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def text(self) -> str:
        """One line per call: "$3: f32[4, 8] = aten.add.Tensor($0, $1)"."""
        return "\n".join(map(str, self.calls))

    def rows(self) -> Rows:
        rows = []
        for nr, call in enumerate(self.calls):
            row = {"#": nr, "op": call.name, "call": str(call), "effect": call.effect, "phase": call.phase}
            row["stride"] = ", ".join(str(list(each.stride)) for each in call.outputs)
            row["bytes"] = sum(each.nbytes for each in call.outputs)
            row |= {
                name: getattr(call, name) for name in ("module", "place") if any(getattr(c, name) for c in self.calls)
            }
            rows.append(row)
        return rows

    def caption(self) -> str:
        return f"{len(self.calls)} operator call{'s' * (len(self.calls) != 1)}"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class Hop:
    """One kernel that ran for one key on a call's way down.

    op        "aten.add.Tensor"
    key       the dispatch key whose row of the table it came from
    key_set   the call's keys at this point, as the 64-bit number, and by name from the lowest to the highest
    kind      why the row holds this kernel: "kernel", "autograd kernel", "math kernel", "backend fallback", ...
    place     where the kernel was registered
    depth     how many hops this one was reached through
    """

    op: str
    key: str
    key_set: int
    keys: tuple[str, ...]
    kind: str
    place: str = ""
    depth: int = 0

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.op} @ {self.key} [{self.kind}]"


@dataclass(frozen=True, slots=True)
class Onion(Table):
    """The hops of a program, each before those that it led to. Iterating, len() and [] give Hops."""

    hops: tuple[Hop, ...]

    def __len__(self) -> int:
        return len(self.hops)

    def __iter__(self) -> Iterator[Hop]:
        return iter(self.hops)

    def __getitem__(self, nr: int) -> Hop:
        return self.hops[nr]

    def rows(self) -> Rows:
        return [
            {
                "hop": f"{'. ' * hop.depth}{hop.op}",
                "key": hop.key,
                "kernel": hop.kind,
                "keys": ", ".join(hop.keys),
                "place": hop.place,
            }
            for hop in self.hops
        ]

    def caption(self) -> str:
        return f"{len(self.hops)} hop{'s' * (len(self.hops) != 1)}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.hops))


@dataclass(frozen=True, slots=True)
class SavedValues(Table):
    """What calls saved for backward: pairs of the node's name and the SavedTensor."""

    values: tuple[tuple[str, SavedTensor], ...]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[str, SavedTensor]]:
        return iter(self.values)

    def nbytes(self) -> int:
        """Bytes kept alive by them, memory that several share counted once, by its largest part."""
        largest: dict[int, int] = {}
        for nr, (_, saved) in enumerate(self.values):
            key = saved.storage or -1 - nr
            largest[key] = max(largest.get(key, 0), saved.nbytes)
        return sum(largest.values())

    def rows(self) -> Rows:
        return [
            {"node": node, "saved": saved.name, "shape": list(saved.shape), "dtype": saved.dtype, "bytes": saved.nbytes}
            for node, saved in self.values
        ]

    def caption(self) -> str:
        return f"{len(self.values)} tensor{'s' * (len(self.values) != 1)} saved, {human_bytes(self.nbytes())}"


@dataclass(frozen=True, slots=True)
class Recording(Table):
    """What a program did: its operator calls, their hops, what was saved for backward, and the simulated
    device's work.
    """

    ops: OpLog
    hops: Onion
    saved: SavedValues
    launches: Timeline

    def rows(self) -> Rows:
        return self.ops.rows()

    def caption(self) -> str:
        parts = [self.ops.caption(), self.hops.caption(), self.saved.caption()]
        kernels = len(self.launches.of_kind("kernel", "copy"))
        return "; ".join([*parts, f"{kernels} launches"] if kernels else parts)

    def __str__(self) -> str:
        return "\n".join(part for part in (self.caption(), str(self.ops)) if part)
