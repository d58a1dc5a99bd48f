"""Portrait: which operators a model runs and what each costs (torch/profiler, torch/utils/flop_counter.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .table import Rows, Table, html_table, markdown_table, text_table
from .units import human_bytes, human_flops, human_us

if TYPE_CHECKING:
    from ..draw import Svg

_TENSORS_SHOWN = 2


@dataclass(frozen=True, slots=True)
class RunTime:
    """A time over several runs, in microseconds: the median and the quartiles around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{human_us(self.median)} ({human_us(self.low)} to {human_us(self.high)})"


@dataclass(frozen=True, slots=True)
class PortraitPart:
    """The calls of one operator in one module and one phase.

    op       "aten.convolution.default"
    phase    "forward" or "backward"
    module   path of the module that called, in backward of the one whose forward made the node; "" for the model
             itself, "(loss)" for the loss
    shapes   (the tensors that went in, how often): ("f32[1, 64, 56, 56], f32[64, 64, 3, 3]", 4)
    flops    by the formulas of torch.utils.flop_counter; None where it has none
    nbytes   bytes of the tensors read and written
    us       microseconds of all these calls in one run, the median of the runs; None where nothing was timed
    """

    op: str
    phase: str
    module: str
    calls: int
    shapes: tuple[tuple[str, int], ...]
    flops: int | None
    nbytes: int
    us: float | None


def _sum(values: Iterable[Any]) -> Any:
    """The sum of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def short_name(op: str) -> str:
    """An operator's name without "aten."; other namespaces stay."""
    return op.removeprefix("aten.")


@dataclass(frozen=True, slots=True)
class Portrait(Table):
    """Which operators a model runs and what each costs; made by `glassbox.xray.profile`.

    model      what was run; mode: "eval, no_grad"; inputs: "f32[1, 3, 224, 224]", ...; devices: "cpu", ...
    seen       one sentence: under which mode it was taken, and what that lets one see
    parts      the calls by operator, module and phase, in the order of first appearance
    repeats    how many runs the times are medians of; 0 where nothing was timed
    forward, backward   a whole run without any instrument: what the reader's own program takes
    notes      what else has to be said, such as why there are no times

    `counts()` tells how often each operator ran, `rows()` has one line per operator with plain numbers (FLOPs, bytes,
    microseconds), `by_module(depth)` the same by module; `to_markdown()` is a document to keep, `figure()` a picture.
    """

    model: str
    mode: str
    inputs: tuple[str, ...]
    devices: tuple[str, ...]
    threads: int
    torch: str
    seen: str
    parts: tuple[PortraitPart, ...]
    repeats: int = 0
    forward: RunTime | None = None
    backward: RunTime | None = None
    notes: tuple[str, ...] = ()

    def counts(self, phase: str = "") -> dict[str, int]:
        """How often each operator ran, the most frequent first; of one phase where it is given."""
        found: dict[str, int] = {}
        for part in self.parts:
            if phase in ("", part.phase):
                found[part.op] = found.get(part.op, 0) + part.calls
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def calls(self) -> int:
        return sum(part.calls for part in self.parts)

    def flops(self, phase: str = "") -> int:
        """FLOPs of all operators that have a formula."""
        return sum(part.flops or 0 for part in self.parts if phase in ("", part.phase))

    def nbytes(self) -> int:
        """Bytes that the operators read and write, each call for itself."""
        return sum(part.nbytes for part in self.parts)

    def us(self, phase: str = "") -> float | None:
        """Microseconds of all operators; None where nothing was timed."""
        found: float | None = _sum(part.us for part in self.parts if phase in ("", part.phase))
        return found

    def phases(self) -> tuple[str, ...]:
        return tuple(p for p in ("forward", "backward") if any(part.phase == p for part in self.parts))

    def rows(self) -> Rows:
        """One line per operator, the costliest first: by time, else by calls."""
        return self._grouped("op", lambda part: part.op)

    def by_module(self, depth: int = 1) -> PortraitByModule:
        """The same, by the modules of the given depth: 1 takes "layer1.0.conv1" to "layer1"; 0 keeps whole paths.

        ValueError for a negative depth.
        """
        if depth < 0:
            raise ValueError(f"Portrait.by_module: depth is {depth}; give 0 for whole paths, else 1 or more.")

        def place(part: PortraitPart) -> str:
            path = part.module.split(".")
            return ".".join(path[:depth] if depth else path) or f"({self.model} itself)"

        return PortraitByModule(self.model, depth, tuple(self._grouped("module", place)))

    def _grouped(self, name: str, key: Callable[[PortraitPart], str]) -> Rows:
        groups: dict[str, list[PortraitPart]] = {}
        for part in self.parts:
            groups.setdefault(key(part), []).append(part)
        total = self.us()
        rows = []
        for label, parts in groups.items():
            us, flops = _sum(part.us for part in parts), _sum(part.flops for part in parts)
            row: dict[str, Any] = {
                name: label,
                "calls": sum(part.calls for part in parts),
                "forward": sum(part.calls for part in parts if part.phase == "forward"),
                "backward": sum(part.calls for part in parts if part.phase == "backward"),
                "flops": flops,
                "bytes": sum(part.nbytes for part in parts),
                "us": us,
                "share": us / total if us is not None and total else None,
                "forward us": _sum(part.us for part in parts if part.phase == "forward"),
                "backward us": _sum(part.us for part in parts if part.phase == "backward"),
            }
            if name == "op":
                seen: dict[str, int] = {}
                for part in parts:
                    for shape, count in part.shapes:
                        seen[shape] = seen.get(shape, 0) + count
                row["shapes"] = tuple(sorted(seen.items(), key=lambda pair: -pair[1]))
            rows.append(row)
        return sorted(rows, key=lambda row: (-(row["us"] or 0), -row["calls"]))

    def shown(self) -> Rows:
        """The lines of `rows()` as they are printed: with units, without columns that say nothing."""
        return _readable(self.rows(), "op", self.phases())

    def title(self) -> str:
        return f"{self.model}, {self.mode}"

    def taken(self) -> str:
        """What went in, and on what it ran."""
        on = ", ".join(self.devices) or "no device"
        threads = f" ({self.threads} thread{'s' * (self.threads != 1)})" if "cpu" in self.devices else ""
        return f"input {', '.join(self.inputs) or 'none'}; {on}{threads}; torch {self.torch}"

    def totals(self) -> str:
        """One sentence: calls, FLOPs, bytes, and the times."""
        kinds = len(self.counts())
        parts = [f"{self.calls()} call{'s' * (self.calls() != 1)} of {kinds} operator{'s' * (kinds != 1)}"]
        if any(part.flops is not None for part in self.parts):
            amount = human_flops(self.flops())
            parts.append(f"{amount}{'' if ' ' in amount else ' '}FLOP")
        parts.append(f"{human_bytes(self.nbytes())} read and written")
        text = ", ".join(parts)
        for phase, bare in (("forward", self.forward), ("backward", self.backward)):
            if bare is not None:
                text += f"; {phase} takes {bare}, its operators add up to {human_us(self.us(phase) or 0)}"
        if self.repeats:
            text += f"; median{' and quartiles' * (self.repeats > 1)} of {self.repeats} run{'s' * (self.repeats != 1)}"
        return text + "."

    def caption(self) -> str:
        return "\n".join([f"{self.title()}; {self.taken()}", self.seen, self.totals(), *self.notes])

    def __str__(self) -> str:
        return f"{self.caption()}\n\n{text_table(self.shown())}"

    def to_markdown(self) -> str:
        """A document: title, what it was taken of and under which mode, the table, the totals."""
        parts = [f"# Operator portrait: {self.title()}", self.taken().capitalize() + ".", self.seen]
        table = markdown_table(self.shown())
        return "\n\n".join([*parts, *([table] if table else []), self.totals(), *self.notes]) + "\n"

    def figure(self) -> Svg:
        """Bars of the operators' shares, with calls and FLOPs."""
        from ..draw.portrait import portrait_figure

        return portrait_figure(self)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + (html_table(self.shown()) if self.parts else "")


@dataclass(frozen=True, slots=True)
class PortraitByModule(Table):
    """A portrait's costs by module; `lines` are as in Portrait.rows(), with "module" in the place of "op"."""

    model: str
    depth: int
    lines: tuple[dict[str, Any], ...]

    def rows(self) -> Rows:
        return [dict(line) for line in self.lines]

    def caption(self) -> str:
        return f"{self.model} by module{f', to depth {self.depth}' if self.depth else ''}"

    def shown(self) -> Rows:
        phases = tuple(p for p in ("forward", "backward") if any(line[p] for line in self.lines))
        return _readable(self.rows(), "module", phases)


def _readable(rows: Rows, name: str, phases: tuple[str, ...]) -> Rows:
    timed = any(row["us"] is not None for row in rows)
    counted = any(row["flops"] is not None for row in rows)
    both = len(phases) == 2
    found = []
    for row in rows:
        line: dict[str, Any] = {name: short_name(row[name])}
        if both:
            line |= {phase: row[phase] or "" for phase in phases}
        else:
            line["calls"] = row["calls"]
        if timed:
            line["time"] = human_us(row["us"])
            line["share"] = "" if row["share"] is None else f"{row['share']:.1%}"
        if counted:
            line["FLOP"] = human_flops(row["flops"])
        line["bytes"] = human_bytes(row["bytes"]) if row["bytes"] else ""
        if timed and counted:
            line["FLOP/s"] = human_flops(round(row["flops"] / row["us"] * 1e6)) if row["flops"] and row["us"] else ""
        if timed:
            line["bytes/s"] = human_bytes(round(row["bytes"] / row["us"] * 1e6)) if row["bytes"] and row["us"] else ""
        if "shapes" in row:
            line["shapes"] = _shapes_in_words(row["shapes"])
        found.append(line)
    return found


def _shapes_in_words(shapes: tuple[tuple[str, int], ...]) -> str:
    """The commonest, its first two tensors, and how many others there are: "f32[8, 4], f32[4], ... x2; 3 more"."""
    shape, count = shapes[0]
    tensors = shape.split("], ")
    first = "], ".join(tensors[:_TENSORS_SHOWN]) + ("], ..." if len(tensors) > _TENSORS_SHOWN else "")
    more = len(shapes) - 1
    return (first or "no tensor") + (f" x{count}" if count > 1 else "") + (f"; {more} more" if more else "")
