"""Lifetime figure: names, tensors, storages in three columns, and who holds whom (c10/core/StorageImpl.h).

Everything that a program ever has keeps its place over all moments, so that stepping shows what comes and what goes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..records import human_bytes
from ..records.lifetime import Lifetime, LiveStorage, LiveTensor, Moment
from .svg import Svg, group, mono_width, num, path, rect, text

_PAD, _HEAD, _ROW, _BOX = 14.0, 30.0, 46.0, 34.0
_TENSORS = 132.0
_GAP = 104.0


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where things lie: the y of each holder (a name, "node MulBackward0"), tensor and storage; the columns' x."""

    holders: dict[str, float]
    tensors: dict[int, float]
    storages: dict[int, float]
    left: float
    middle: float
    right: float
    width: float
    height: float


def lifetime_figure(lives: Lifetime, nr: int = -1) -> Svg:
    """One moment of a program: after which line, what there is, and who holds it; IndexError for no such moment.

    What is new has a strong edge. What is gone stays as a dashed box: a freed storage, a tensor that nobody holds.
    """
    nr = range(len(lives))[nr]
    now, before = lives[nr], lives[nr - 1] if nr else None
    plan = _plan(lives)
    parts = [
        text(plan.left, _PAD + 10, "who holds", "m s", size=12),
        text(plan.middle, _PAD + 10, "tensors", "m s", size=12),
        text(plan.right, _PAD + 10, f"storages: {human_bytes(now.nbytes)} alive", "m s", size=12),
    ]
    parts += _lines(now, plan)
    seen = {tensor.nr: tensor for moment in lives.moments[: nr + 1] for tensor in moment.tensors}
    alive = {tensor.nr for tensor in now.tensors}
    old = {tensor.nr for tensor in before.tensors} if before else set()
    parts += [_tensor(t, plan, t.nr in alive, t.nr not in old) for t in seen.values()]
    known = {storage.nr: storage for storage in before.storages} if before else {}
    parts += [_storage(s, plan, known.get(s.nr)) for s in now.storages]
    parts += [_holder(key, y, plan) for key, y in plan.holders.items() if key in _holders(now)]
    title = f"{lives.framework}, after line {nr + 1} of {len(lives)}: {now.code}"
    return Svg(plan.width, plan.height, title, now.says(), "".join(parts), _RULES)


def _holders(moment: Moment) -> set[str]:
    found = {name for tensor in moment.tensors for name in tensor.names}
    found |= {f"node {node}" for tensor in moment.tensors for node, _ in tensor.holders}
    return found | {name for storage in moment.storages for name in storage.handles}


def _plan(lives: Lifetime) -> _Plan:
    """Every holder stands beside the first thing that it held, every tensor beside its storage."""
    tensors: dict[int, LiveTensor] = {}
    beside: dict[int, list[str]] = {}
    loose: dict[int, list[str]] = {}
    placed: set[str] = set()
    for moment in lives:
        for tensor in moment.tensors:
            tensors.setdefault(tensor.nr, tensor)
            for key in [*tensor.names, *(f"node {node}" for node, _ in tensor.holders)]:
                if key not in placed:
                    placed.add(key)
                    beside.setdefault(tensor.nr, []).append(key)
        for storage in moment.storages:
            for name in storage.handles:
                if name not in placed:
                    placed.add(name)
                    loose.setdefault(storage.nr, []).append(name)
    y = _PAD + _HEAD
    holder_y: dict[str, float] = {}
    tensor_y: dict[int, float] = {}
    storage_y: dict[int, float] = {}
    for storage in lives[-1].storages if len(lives) else ():
        top = y
        for tensor in sorted((t for t in tensors.values() if t.storage == storage.nr), key=lambda t: t.nr):
            keys = beside.get(tensor.nr, [])
            for row, key in enumerate(keys):
                holder_y[key] = y + row * _ROW
            tensor_y[tensor.nr] = y + max(0, len(keys) - 1) * _ROW / 2
            y += max(1, len(keys)) * _ROW
        for name in loose.get(storage.nr, []):
            holder_y[name] = y
            y += _ROW
        storage_y[storage.nr] = (top + max(top, y - _ROW)) / 2
        y = max(y, top + _ROW)
    wide = max([mono_width(key.removeprefix("node "), 12) + 22 for key in holder_y] + [70.0])
    middle = _PAD + wide + _GAP * 0.7
    right = middle + _TENSORS + _GAP
    return _Plan(holder_y, tensor_y, storage_y, _PAD, middle, right, right + 170 + _PAD, y - (_ROW - _BOX) + _PAD)


def _lines(now: Moment, plan: _Plan) -> list[str]:
    parts = []
    wide = plan.middle - _GAP * 0.7 - plan.left
    for tensor in now.tensors:
        y = plan.tensors[tensor.nr] + _BOX / 2
        for name in tensor.names:
            parts.append(_line(plan.left + wide, plan.holders[name] + _BOX / 2, plan.middle, y))
        for node in dict.fromkeys(node for node, _ in tensor.holders):
            parts.append(_line(plan.left + wide, plan.holders[f"node {node}"] + _BOX / 2, plan.middle, y, "saved"))
        end = plan.storages[tensor.storage] + _BOX / 2
        parts.append(_line(plan.middle + _TENSORS, y, plan.right, end))
        if tensor.base is not None and tensor.base in plan.tensors:
            to = plan.tensors[tensor.base] + _BOX / 2
            x, bulge = plan.middle + _TENSORS, plan.middle + _TENSORS + 66
            shift = 7 if to < y else -7
            parts.append(
                path(
                    f"M{num(x)} {num(y - shift)}C{num(bulge)} {num(y - shift)} {num(bulge)} {num(to + shift)} "
                    f"{num(x)} {num(to + shift)}",
                    "hold base",
                )
            )
            parts.append(text(x + 9, (y + to) / 2 + 4, "_base", "m", size=10.5))
    for storage in now.storages:
        for name in storage.handles:
            start = plan.holders[name] + _BOX / 2
            parts.append(_line(plan.left + wide, start, plan.right, plan.storages[storage.nr] + _BOX / 2))
    return parts


def _line(x: float, y: float, to_x: float, to_y: float, kind: str = "") -> str:
    bend = min((to_x - x) / 2, 60)
    curve = f"C{num(x + bend)} {num(y)} {num(to_x - bend)} {num(to_y)} {num(to_x)} {num(to_y)}"
    return path(f"M{num(x)} {num(y)}{curve}", f"hold {kind}".strip())


def _holder(key: str, y: float, plan: _Plan) -> str:
    label = key.removeprefix("node ")
    width = plan.middle - _GAP * 0.7 - plan.left
    kind, tip = ("r2", "a node of the autograd graph") if key.startswith("node ") else ("name", "a name in Python")
    content = rect(plan.left, y, width, _BOX, rx=6) + text(plan.left + width / 2, y + 21, label, "", "middle", 12)
    return group(content, f"k {kind}", tip)


def _tensor(tensor: LiveTensor, plan: _Plan, alive: bool, new: bool) -> str:
    y = plan.tensors[tensor.nr]
    content = rect(plan.middle, y, _TENSORS, _BOX, rx=6)
    shape = "×".join(map(str, tensor.shape)) or "scalar"
    content += text(plan.middle + _TENSORS / 2, y + 21, f"tensor {shape}" if alive else "gone", "", "middle", 12)
    return group(content, f"k {'r0' if alive else 'gone'}{' lit' if alive and new else ''}")


def _storage(storage: LiveStorage, plan: _Plan, before: LiveStorage | None) -> str:
    y = plan.storages[storage.nr]
    size, count = human_bytes(storage.nbytes), storage.use_count
    words = f"S{storage.nr} {size} freed" if storage.freed else f"S{storage.nr} {size}"
    content = rect(plan.right, y, 170, _BOX, rx=6) + text(plan.right + 10, y + 21, words, "", size=12)
    if not storage.freed:
        content += text(plan.right + 160, y + 21, f"use count {count}", "", "end", 10.5)
    changed = before is None or before.use_count != count
    kind = ("bad" if changed else "gone") if storage.freed else f"r1{' lit' if changed else ''}"
    return group(content, f"k {kind}")


_RULES = (
    "@FIG@ .name{--f:var(--gb-panel);--e:var(--gb-muted);--t:var(--gb-ink)}"
    "@FIG@ .gone>rect{fill:none;stroke:var(--gb-line);stroke-dasharray:4 3}@FIG@ .gone>text{fill:var(--gb-muted)}"
    "@FIG@ .hold{fill:none;stroke:var(--gb-muted);stroke-width:1.5}"
    "@FIG@ .hold.saved{stroke:var(--gb-r2-line);stroke-width:2}"
    "@FIG@ .hold.base{stroke:var(--gb-r0-line);stroke-width:2}"
)
