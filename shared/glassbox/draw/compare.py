"""Comparison: input, expected and yours side by side, what differs marked (PyTorch has no part for it)."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from dataclasses import dataclass

from ..records import StorageView
from .cells import row_class, shown_indices, tensor_grid
from .svg import Svg, mono_width, rect, text

PAD = 14.0
INSET = 14.0
WIDE = 760.0
"""What a page of text has room for without shrinking the figure; panels that need more stand in rows."""
NOTE_WIDTH = 36
FIELDS = ("shape", "stride", "offset")


@dataclass(frozen=True)
class Panel:
    """One of the pictures: a title, a layout where there is one, and a note: an error in its place, or a
    remark.
    """

    title: str
    view: StorageView | None = None
    note: str = ""


PanelLike = Panel | tuple[str, StorageView | None] | tuple[str, StorageView | None, str] | None


def layout_comparison(input: PanelLike, expected: PanelLike, yours: PanelLike, title: str = "") -> Svg:
    """Three panels side by side, in rows where they are too wide; in `yours`, cells and fields that differ
    from `expected` are marked.

    Each panel is a `Panel`, a tuple (title, view or None[, note]), or None to leave it out. Two cells agree
    when they read the same storage position, or the same value where both views know their values and lie
    over different storages. ValueError if all three are None.
    """
    want, have = _panel(expected), _panel(yours)
    panels = [p for p in (_panel(input), want, have) if p is not None]
    if not panels:
        raise ValueError("layout_comparison: there is nothing to draw; give at least one panel.")
    both = (want.view, have.view) if want and have and want.view and have.view else None
    fields = differing_fields(*both) if both else []
    cells = differing_cells(*both) if both else set()

    def draw(panel: Panel, x: float, y: float) -> tuple[str, float, float]:
        judged = panel is have
        return _draw(panel, x + INSET, y + INSET, cells if judged else (), fields if judged else (), judged)

    body, y, width = [], PAD, 0.0
    for row in _rows(panels, [draw(panel, 0, 0)[1] + 2 * INSET for panel in panels]):
        x, drawn = PAD, []
        for panel in row:
            svg, w, h = draw(panel, x, y)
            drawn.append((svg, x, w + 2 * INSET, h + 2 * INSET))
            x += w + 2 * INSET + PAD
        height = max(h for _, _, _, h in drawn)
        for svg, left, w, _ in drawn:
            body += [rect(left, y, w, height, "panel", 10), svg]
        width, y = max(width, x), y + height + PAD
    verdict, cls = _verdict(want, have, fields, cells)
    if verdict:
        y += 12
        body.append(text(PAD + 2, y, verdict, f"b s {cls}", size=14))
        y += PAD
    width = max(width, mono_width(verdict, 14) + 2 * PAD)
    words = " ".join(f"{p.title}: {_in_words(p)}." for p in panels)
    return Svg(
        width,
        y,
        title or ", ".join(p.title for p in panels),
        f"{words} {verdict}." if verdict else words,
        "".join(body),
    )


def _rows(panels: list[Panel], widths: list[float]) -> list[list[Panel]]:
    """The panels in as few rows as fit; the last two, which are to be compared, are the last to part."""
    room = WIDE - PAD
    if sum(width + PAD for width in widths) <= room:
        return [panels]
    if len(panels) == 3 and sum(width + PAD for width in widths[1:]) <= room:
        return [panels[:1], panels[1:]]
    return [[panel] for panel in panels]


def differing_fields(expected: StorageView, yours: StorageView) -> list[str]:
    """Which of shape, stride and offset differ."""
    return [f for f in FIELDS if getattr(expected, f) != getattr(yours, f)]


def differing_cells(expected: StorageView, yours: StorageView) -> set[tuple[int, ...]]:
    """The drawn indices of `yours` that read something else than `expected` does, or that it does not
    have.
    """
    by_value = (
        expected.values is not None
        and yours.values is not None
        and (expected.storage != yours.storage or expected.values != yours.values)
    )
    return {i for i in shown_indices(yours) if _reads(yours, i, by_value) != _reads(expected, i, by_value)}


def _reads(view: StorageView, index: tuple[int, ...], by_value: bool) -> object:
    if len(index) != view.ndim or any(i >= n for i, n in zip(index, view.shape, strict=True)):
        return None
    position = view.address(index)
    if by_value and view.values is not None and 0 <= position < len(view.values):
        return ("value", view.values[position])
    return ("position", position)


def _panel(given: PanelLike) -> Panel | None:
    return given if given is None or isinstance(given, Panel) else Panel(*given)


def _draw(
    panel: Panel,
    x: float,
    y: float,
    wrong: Collection[tuple[int, ...]],
    fields: Collection[str],
    judged: bool,
) -> tuple[str, float, float]:
    """The panel's SVG at (x, y), its width and height."""
    parts = [text(x, y + 12, panel.title, "b s", size=14)]
    width, top = max(mono_width(panel.title, 14), 150.0), y + 30
    view = panel.view
    if view is not None:
        for field in FIELDS:
            line = f"{field:<7}{getattr(view, field)}"
            parts.append(text(x, top + 10, line, "b bad" if field in fields else "m"))
            width = max(width, mono_width(line))
            top += 17

        def paint(index: tuple[int, ...], position: int) -> str:
            if index in wrong or not 0 <= position < max(view.size, 1):
                return "bad"
            return row_class(view, index)

        grid = tensor_grid(view, x - 6, top + 10, paint, limit=WIDE - 2 * (PAD + INSET))
        parts.append(grid.svg)
        width, top = max(width, grid.width - 6), top + 10 + grid.height
    for line in textwrap.wrap(panel.note, NOTE_WIDTH)[:8]:
        parts.append(text(x, top + 16, line, "bad" if judged and view is None else "", size=12))
        width, top = max(width, mono_width(line)), top + 16
    return "".join(parts), width, top - y


def _verdict(
    want: Panel | None, have: Panel | None, fields: list[str], cells: Collection[tuple[int, ...]]
) -> tuple[str, str]:
    """The line below the panels and its class; ("", "") where there is nothing to compare."""
    if want is None or have is None or (want.view is None and have.view is None):
        return "", ""
    if want.view is None or have.view is None:
        missing = have if have.view is None else want
        return f"No picture of {missing.title} to compare with", "bad"
    if not fields and not cells:
        return "Same layout", "good"
    what = " and ".join(fields) if len(fields) < 3 else "shape, stride and offset"
    shown = len(shown_indices(have.view))
    if not have.view.numel:
        if not want.view.numel:
            return f"Differs in {what}, though there are no elements to read", "bad"
        return f"Differs in {what}: {have.title} has no elements", "bad"
    reads = f"{len(cells)} of {shown} cells read something else" if cells else "every cell reads the same"
    if not cells and have.view.numel < want.view.numel:
        reads = "the cells that are there read the same"
    return (f"Differs in {what}: {reads}" if fields else f"Same numbers, but {reads}"), "bad"


def _in_words(panel: Panel) -> str:
    note = f", {panel.note}" if panel.note else ""
    if panel.view is None:
        return panel.note or "nothing"
    return ", ".join(f"{f} {getattr(panel.view, f)}" for f in FIELDS) + note
