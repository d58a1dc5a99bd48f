"""SavedMemory: what a forward pass keeps for backward, and what checkpointing would drop
(torch/csrc/autograd/saved_variable.h, torch/utils/checkpoint.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .table import Rows, Table, html_table, text_table
from .units import human_bytes

if TYPE_CHECKING:
    from ..draw import Svg

# What is alive anyway, and what only the graph keeps.
ALIVE = ("parameter", "buffer", "input", "other")


@dataclass(frozen=True, slots=True)
class KeptValue:
    """One tensor that a node of the backward graph keeps.

    node      the node's name, "MulBackward0"; name: by which the node knows the tensor, "self"
    module    path of the module whose forward made the node; place: "models/net.py:12", the line that did
    shape, dtype   of the tensor
    storage   equal for two values exactly when they share memory; nbytes: of that storage, which is kept as a whole
    kind      "activation": made in the forward pass and kept by the graph; "parameter", "buffer", "input", and "other"
              for what else was made before the call: alive anyway
    calls     the module calls, by number, that were running when it was kept, the outermost first
    """

    node: str
    name: str
    module: str
    place: str
    shape: tuple[int, ...]
    dtype: str
    storage: int
    nbytes: int
    kind: str
    calls: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptCall:
    """One call of a module.

    module, kind   the module's path and class
    outer          the numbers of the calls that it was made in, the outermost first
    inputs         the activations that went in, each as (storage, nbytes)
    """

    number: int
    module: str
    kind: str
    outer: tuple[int, ...] = ()
    inputs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SavedMemoryPart(Table):
    """Saved bytes by one thing: `by` is "node", "module" or "place"; `lines` has one dict each, the largest first."""

    by: str
    lines: tuple[dict[str, object], ...]

    def rows(self) -> Rows:
        return [dict(line) for line in self.lines]

    def caption(self) -> str:
        return f"saved for backward, by {self.by}"


@dataclass(frozen=True, slots=True)
class Checkpoints(Table):
    """What checkpointing would save: one line per module, and per class of modules that occurs several times.

    In `lines`: "checkpoint" the path, or "each Block (4)"; "drops" the activations kept inside and nowhere else;
    "keeps" the inputs that are kept instead; "saves" the difference; all in bytes, after the forward pass.
    """

    lines: tuple[dict[str, object], ...]

    def rows(self) -> Rows:
        return [dict(line) for line in self.lines]

    def caption(self) -> str:
        return "what checkpointing would save, in bytes"


@dataclass(frozen=True, slots=True)
class SavedMemory(Table):
    """What a forward pass keeps for backward; made by `glassbox.xray.saved_memory`.

    program   what ran, and under which mode
    values    everything kept once the forward pass is done, in the order in which it was kept
    calls     the module calls, numbered from 0
    curve     (phase, bytes of activations kept) after each change, through forward and backward
    peak_at   the phase, module and place of the largest of them
    notes     what else has to be said

    Storages count once, as a whole: a view keeps all of its base alive. `nbytes()` are the activations alone; what is
    alive anyway is told apart. `by_node()`, `by_module(depth)` and `by_line()` count a storage where it was kept first.
    `checkpointing(...)` tells what torch.utils.checkpoint would save; `checkpoints()` asks that for every module.
    """

    program: str
    values: tuple[KeptValue, ...]
    calls: tuple[KeptCall, ...] = ()
    curve: tuple[tuple[str, int], ...] = ()
    peak_at: str = ""
    notes: tuple[str, ...] = ()

    def nbytes(self, kind: str = "activation") -> int:
        """Bytes kept of one kind, each storage once; of all kinds for ""."""
        return sum(_storages(value for value in self.values if kind in ("", value.kind)).values())

    def peak(self) -> int:
        """The most bytes of activations kept at one time."""
        return max((size for _, size in self.curve), default=0)

    def by_node(self) -> SavedMemoryPart:
        return self._by("node", lambda value: value.node)

    def by_module(self, depth: int = 0) -> SavedMemoryPart:
        """By module; depth 1 takes "layer1.0.conv1" to "layer1", 0 keeps whole paths. ValueError for less."""
        if depth < 0:
            raise ValueError(f"SavedMemory.by_module: depth is {depth}; give 0 for whole paths, else 1 or more.")
        return self._by("module", lambda value: _cut(value.module, depth))

    def by_line(self) -> SavedMemoryPart:
        return self._by("place", lambda value: value.place)

    def _by(self, name: str, key: Callable[[KeptValue], str]) -> SavedMemoryPart:
        lines: dict[str, dict[str, object]] = {}
        counted: set[int] = set()
        for value in self.values:
            line = lines.setdefault(
                key(value), {name: key(value), "values": 0, "activations": 0, "shared": 0, "alive anyway": 0}
            )
            line["values"] = _int(line["values"]) + 1
            column = "alive anyway" if value.kind in ALIVE else "activations"
            if value.storage in counted:
                column = "shared" if column == "activations" else ""
            counted.add(value.storage)
            if column:
                line[column] = _int(line[column]) + value.nbytes
        ordered = sorted(lines.values(), key=lambda line: (-_int(line["activations"]), -_int(line["alive anyway"])))
        return SavedMemoryPart(name, tuple(ordered))

    def checkpointing(self, *modules: str) -> int:
        """Bytes that the graph would keep less, after the forward pass, with each of these modules checkpointed.

        modules   paths as in `calls`, or class names, which mean every module of that class but the outermost one

        What is kept inside and nowhere else goes; the inputs stay. Negative where the inputs are more. KeyError for
        what was not called.
        """
        return self._checkpointing(self._numbers(modules))[2]

    def checkpoints(self) -> Checkpoints:
        """`checkpointing` for every module that keeps something, and for each class of several, the best first."""
        paths = dict.fromkeys(call.module for call in self.calls if call.module)
        kinds: dict[str, set[str]] = {}
        for call in self.calls:
            if call.module:
                kinds.setdefault(call.kind, set()).add(call.module)
        asked = [(path, path) for path in paths]
        asked += [(kind, f"each {kind} ({len(found)})") for kind, found in kinds.items() if len(found) > 1]
        lines = []
        for what, label in asked:
            drops, keeps, saves = self._checkpointing(self._numbers((what,)))
            if saves > 0:
                lines.append({"checkpoint": label, "drops": drops, "keeps": keeps, "saves": saves})
        return Checkpoints(tuple(sorted(lines, key=lambda line: -_int(line["saves"]))))

    def _numbers(self, modules: Iterable[str]) -> set[int]:
        found: set[int] = set()
        for name in modules:
            numbers = {call.number for call in self.calls if call.module and name in (call.module, call.kind)}
            if not numbers:
                known = ", ".join(dict.fromkeys(repr(call.module) for call in self.calls if call.module)) or "none"
                raise KeyError(f"no module {name!r} was called; the modules are {known}.")
            found |= numbers
        return found

    def _checkpointing(self, numbers: set[int]) -> tuple[int, int, int]:
        """Bytes dropped, bytes of inputs that are kept only then, and what is won."""
        before = _storages(value for value in self.values if value.kind == "activation")
        outside = [v for v in self.values if v.kind == "activation" and not numbers & set(v.calls)]
        after = _storages(outside)
        drops = sum(before.values()) - sum(after.values())
        for call in self.calls:
            # A call inside of another one of them is computed again with it.
            if call.number in numbers and not numbers & set(call.outer):
                after |= dict(call.inputs)
        saves = sum(before.values()) - sum(after.values())
        return drops, drops - saves, saves

    def rows(self) -> Rows:
        """By node."""
        return self.by_node().rows()

    def totals(self) -> str:
        count = sum(value.kind == "activation" for value in self.values)
        text = f"{human_bytes(self.nbytes())} of activations kept for backward in {count} value{'s' * (count != 1)}"
        alive = [(kind, self.nbytes(kind)) for kind in ALIVE]
        words = ", ".join(f"{kind}s {human_bytes(size)}" for kind, size in alive if size)
        if words:
            text += f"; alive anyway: {words.replace('others', 'made before')}"
        if self.curve:
            text += f"; peak {human_bytes(self.peak())}{f' in {self.peak_at}' if self.peak_at else ''}"
        return text + "."

    def caption(self) -> str:
        return "\n".join([self.program, self.totals(), *self.notes])

    def __str__(self) -> str:
        parts = [self.caption(), text_table(_readable(self.rows()))]
        best = self.checkpoints().rows()[:5]
        if best:
            parts.append("checkpointing would save:\n" + text_table(_readable(best)))
        return "\n\n".join(part for part in parts if part)

    def figure(self) -> Svg:
        """Bars of what each module keeps, and the curve of what is kept through forward and backward."""
        from ..draw.saved_memory import saved_memory_figure

        return saved_memory_figure(self)

    def _repr_html_(self) -> str:
        parts = [self.figure()._repr_html_(), html_table(_readable(self.rows()))]
        best = self.checkpoints().rows()[:5]
        if best:
            parts.append(html_table(_readable(best), "checkpointing would save"))
        return "".join(parts)


def _storages(values: Iterable[KeptValue]) -> dict[int, int]:
    return {value.storage: value.nbytes for value in values}


def _cut(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth]) if depth else path


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _readable(rows: Rows) -> Rows:
    """With units for all but the counts."""
    plain = ("values",)
    return [
        {
            name: human_bytes(value) if isinstance(value, int) and value and name not in plain else value or ""
            for name, value in row.items()
        }
        for row in rows
    ]
