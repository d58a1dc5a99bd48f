"""Storage figures: a tensor is metadata over a flat storage (c10/core/TensorImpl.h, c10/core/StorageImpl.h).

`tensor_over_storage` shows one tensor above its storage, `views_over_storage` several tensors that share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import gcd

from ..records import StorageView, human_bytes
from .cells import (
    COUNTED,
    GAP,
    PITCH,
    Block,
    cell_text,
    row_class,
    shown_indices,
    tensor_grid,
)
from .strip import storage_strip, strip_positions
from .svg import Svg, hover_rules, mono_width, text

Highlight = Sequence[int] | Sequence[Sequence[int]] | None
PAD = 16.0
STRIP_WIDTH = 16 * PITCH - GAP


def describe_layout(view: StorageView) -> str:
    """ "shape (3, 4) · stride (4, 1) · offset 0" """
    return f"shape {view.shape} · stride {view.stride} · offset {view.offset}"


def tensor_over_storage(view: StorageView, highlight: Highlight = None, title: str = "") -> Svg:
    """A tensor's grid above its storage; rows share a colour, storage that the tensor cannot see is grey.

    highlight   an index such as (1, 2), or several of them; a single one is spelled out as an address
    title       replaces the figure's title in the text alternative

    Up to four dimensions are drawn in full, more than that by their first block; long dimensions and long
    storages are cut with an ellipsis that says what is left out. IndexError for a highlight outside the
    tensor.
    """
    hot = _indices(view, highlight)
    hot_positions = {view.address(i) for i in hot}
    touched = _touched(view)

    def paint(index: tuple[int, ...], position: int) -> str:
        if not 0 <= position < view.size:
            return "bad"
        return "hot" if index in hot else row_class(view, index)

    y = PAD
    head = [text(PAD + 20, y + 13, view.name, "b", size=15)]
    meta = f"{describe_layout(view)} · {view.dtype}"
    head.append(text(PAD + 20, y + 33, meta, "m"))
    if view.ndim > 4:
        y += 18
        head.append(text(PAD + 20, y + 33, f"{view.ndim} dimensions: only the first block is drawn", "m"))
    y += 46
    probe = tensor_grid(view, PAD, y, paint)
    positions = strip_positions(view.size, [*sorted(hot_positions), *(p for _, p in probe.shown)])
    owner = _owners([view], probe.shown)

    def paint_strip(position: int) -> str:
        if position in hot_positions:
            return "hot"
        return owner.get(position) or ("r0" if touched(position) else "out")

    strip_y = y + probe.height + 36
    counts = Counter(view.cells()) if 0 < view.numel <= COUNTED else None
    strip = storage_strip(
        positions,
        PAD + 20,
        strip_y,
        STRIP_WIDTH,
        paint_strip,
        lambda p: cell_text(view, p),
        numbered=view.values is not None,
        counts=counts,
    )
    tip_y = strip_y + strip.height + 30
    grid = tensor_grid(view, PAD, y, paint, (PAD + 20, tip_y))
    label = storage_label([view])
    line = view.formula(hot[0]) if len(hot) == 1 else ""
    body = [*head, grid.svg, text(PAD + 20, strip_y - 10, label, "m"), strip.svg]
    if line:
        body.append(text(PAD + 20, tip_y, line, "rest", size=13))
    elif view.numel:
        body.append(text(PAD + 20, tip_y, "point at a cell to see its address", "rest hint m s", size=12))
    width = max(grid.width, strip.width + 20, mono_width(meta) + 20, 20 + _formula_width(view), 320) + 2 * PAD
    return Svg(
        width,
        tip_y + 16,
        title or f"{view.name} over its storage",
        _describe([view], hot_positions, line),
        "".join(body),
        hover_rules(sorted({p for p in positions if p is not None} | {p for _, p in grid.shown})),
    )


def views_over_storage(views: Sequence[StorageView], highlight: str | None = None, title: str = "") -> Svg:
    """Several tensors over the one storage that they share: the strip on top, lanes for who sees what, grids
    below.

    A cell keeps its colour everywhere: the row that it has in the first view, so a transpose or a slice shows
    where its elements came from. The cells of the view named `highlight` are lit; by default the last one
    that does not cover the whole storage. ValueError without views, for an unknown name, or if the storages
    differ.
    """
    if not views:
        raise ValueError("views_over_storage: there is nothing to draw; pass at least one StorageView.")
    if len({v.storage for v in views}) > 1:
        names = ", ".join(v.name for v in views)
        raise ValueError(
            f"views_over_storage: {names} do not share one storage; draw each storage in a figure of its own."
        )
    unit = gcd(*(v.itemsize for v in views))
    lit = _lit(views, highlight, unit)
    size = max(v.nbytes for v in views) // unit
    wanted = (
        [u for v in views for i in shown_indices(v) for u in _units(v, v.address(i), unit)] if size else []
    )
    positions = strip_positions(size, wanted)
    owner = _unit_owners(views, unit)
    touches = [_touched(v, unit) for v in views]
    source = next((v for v in views if v.values is not None and v.itemsize == unit), None)
    is_lit = _touched(lit, unit) if lit is not None else lambda p: False

    def unit_class(position: int) -> str:
        base = owner.get(position) or ("r0" if any(t(position) for t in touches) else "out")
        return f"{base} lit" if is_lit(position) else base

    left = PAD + 20 + max(mono_width(v.name, 11) for v in views) - 8
    lanes: list[tuple[str, str, Callable[[int], bool]]] = [
        (v.name, "lit" if v is lit else "", touch) for v, touch in zip(views, touches, strict=True)
    ]
    strip_y = PAD + 26
    strip = storage_strip(
        positions,
        left,
        strip_y,
        STRIP_WIDTH,
        unit_class,
        (lambda p: cell_text(source, p)) if source is not None else str,
        numbered=source is not None,
        lanes=lanes,
    )
    grids_y = strip_y + strip.height + 28
    panels = _panels(views, PAD, grids_y, left + STRIP_WIDTH - PAD, unit, unit_class)
    width = max(left + strip.width, PAD + panels.width, 420) + PAD
    body = text(left, PAD + 12, storage_label(views), "m") + strip.svg + panels.svg
    shown_units = {p for p in positions if p is not None} | {p for _, p in panels.shown}
    return Svg(
        width,
        grids_y + panels.height + PAD,
        title or f"{', '.join(v.name for v in views)} over one storage",
        _describe(views, set(), ""),
        body,
        hover_rules(sorted(shown_units)),
    )


def storage_label(views: Sequence[StorageView]) -> str:
    """ "storage: 12 elements of float32, 48 bytes" """
    view = views[0]
    if len({v.itemsize for v in views}) > 1:
        unit = gcd(*(v.itemsize for v in views))
        return f"storage: {human_bytes(view.nbytes)}, drawn in units of {unit} bytes"
    dtypes = " and ".join(dict.fromkeys(v.dtype for v in views))
    return f"storage: {view.size:,} elements of {dtypes}, {human_bytes(view.nbytes)}"


def _panels(
    views: Sequence[StorageView],
    x: float,
    y: float,
    width: float,
    unit: int,
    unit_class: Callable[[int], str],
) -> Block:
    """The grids of all views, in lines no wider than `width`."""
    parts: list[str] = []
    shown: list[tuple[tuple[int, ...], int]] = []
    cx, cy, line_height, right = x, y, 0.0, x

    for view in views:

        def paint(index: tuple[int, ...], position: int, view: StorageView = view) -> str:
            units = _units(view, position, unit)
            if position < 0 or units[-1] * unit >= view.nbytes:
                return "bad"
            extra = " ".join(f"c{u}" for u in units)
            return f"{extra} {unit_class(units[0])}"

        probe = tensor_grid(view, cx, cy, paint)
        meta = [f"shape {view.shape}", f"stride {view.stride} · offset {view.offset}"]
        w = max(probe.width, 20 + max(mono_width(m, 11) for m in meta), 20 + mono_width(view.name, 14))
        if cx > x and cx + w > x + width:
            cx, cy, line_height = x, cy + line_height + 24, 0.0
        grid = tensor_grid(view, cx, cy + 52, paint)
        parts.append(text(cx + 20, cy + 12, view.name, "b", size=14))
        parts += [text(cx + 20, cy + 28 + 14 * k, m, "m", size=11) for k, m in enumerate(meta)]
        parts.append(grid.svg)
        shown += [(i, u) for i, p in grid.shown for u in _units(view, p, unit)]
        right = max(right, cx + w)
        cx += w + 30
        line_height = max(line_height, 52 + grid.height)
    return Block("".join(parts), right - x, cy + line_height - y, tuple(shown))


def _units(view: StorageView, position: int, unit: int) -> range:
    """The drawn units that one element covers; more than one where dtypes of different sizes share a
    storage.
    """
    k = view.itemsize // unit
    return range(position * k, position * k + k)


def _touched(view: StorageView, unit: int = 0) -> Callable[[int], bool]:
    """A quick test whether a view reaches a unit of storage."""
    k = view.itemsize // (unit or view.itemsize)
    if view.numel <= COUNTED:
        cells = frozenset(view.cells())
        return lambda p: p // k in cells
    return lambda p: view.touches(p // k)


def _owners(views: Sequence[StorageView], shown: Sequence[tuple[tuple[int, ...], int]]) -> dict[int, str]:
    owner: dict[int, str] = {}
    for index, position in shown:
        owner.setdefault(position, row_class(views[0], index))
    if 0 < views[0].numel <= COUNTED:
        for index, position in zip(views[0].indices(), views[0].cells(), strict=True):
            owner.setdefault(position, row_class(views[0], index))
    return owner


def _unit_owners(views: Sequence[StorageView], unit: int) -> dict[int, str]:
    owner: dict[int, str] = {}
    for view in views:
        indices = view.indices() if view.numel <= COUNTED else iter(shown_indices(view))
        for index in indices:
            for u in _units(view, view.address(index), unit):
                owner.setdefault(u, row_class(view, index))
    return owner


def _lit(views: Sequence[StorageView], highlight: str | None, unit: int) -> StorageView | None:
    if highlight is not None:
        for view in views:
            if view.name == highlight:
                return view
        names = ", ".join(v.name for v in views)
        raise ValueError(f"views_over_storage: no view is called {highlight!r}; the names are {names}.")
    partial = [v for v in views if 0 < v.numel <= COUNTED and len(set(v.cells())) < v.size]
    return partial[-1] if partial and len(views) > 1 else None


def _indices(view: StorageView, highlight: Highlight) -> list[tuple[int, ...]]:
    if highlight is None:
        return []
    items = list(highlight)
    chosen: list[tuple[int, ...]] = (
        [tuple(i) for i in items if isinstance(i, Sequence)]
        if items and isinstance(items[0], Sequence)
        else [tuple(i for i in items if isinstance(i, int))]
    )
    result = []
    for index in chosen:
        view.address(index)
        result.append(tuple(int(i) % n for i, n in zip(index, view.shape, strict=True)))
    return result


def _formula_width(view: StorageView) -> float:
    if view.numel == 0:
        return 0
    return mono_width(view.formula(tuple(n - 1 for n in view.shape)), 13)


def _describe(views: Sequence[StorageView], hot: set[int], line: str) -> str:
    """The text alternative: what the picture says, in words."""
    label = storage_label(views)
    parts = [label[0].upper() + label[1:] + "."]
    for view in views:
        words = f"{view.name}: {describe_layout(view).replace(' · ', ', ')}"
        if 0 < view.numel <= 64:
            words += f", reads storage positions {', '.join(map(str, view.cells()))}"
        parts.append(words + ".")
    if line:
        parts.append(f"Highlighted: {line}.")
    elif hot:
        parts.append(f"Highlighted storage positions: {', '.join(map(str, sorted(hot)))}.")
    return " ".join(parts)
