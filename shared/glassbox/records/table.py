"""Tables: what every record can do: print, show in a notebook, become Markdown or rows (PyTorch has none)."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

Rows = list[dict[str, Any]]

# A cell of more characters is prose and runs over several lines.
WIDE = 90
_CELL = "background-color:transparent;padding:0"
_PROSE = "display:inline-block;min-width:24em;max-width:44em;overflow-wrap:anywhere"


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every key of any row, in the order of first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """`rows` as a Markdown table, one column per key of any row; "" without rows."""
    if not rows:
        return ""
    columns = _columns(rows)
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(_plain(row.get(c, "")).replace("|", "\\|") for c in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def html_table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """`rows` as an HTML table with a caption; every cell is escaped."""
    if not rows:
        return f"<p>{html.escape(caption or 'nothing to show')}</p>"
    columns = _columns(rows)
    # A long name may break after its underscores, so that a wide table still fits its cell.
    names = [html.escape(c).replace("_", "_<wbr>") for c in columns]
    head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in names)
    body = ""
    for row in rows:
        cells = [_cell(_plain(row.get(c, ""))) for c in columns]
        body += f"<tr>{''.join(cells)}</tr>"
    title = f'<caption style="text-align:left">{html.escape(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    space = _PROSE if len(text) > WIDE else "white-space:nowrap"
    return f'<td style="text-align:left"><code style="{_CELL};{space}">{html.escape(text)}</code></td>'


def folded_table(rows: Sequence[Mapping[str, Any]], caption: str, left_out: int = 0) -> str:
    """`rows` as an HTML table that is shut under its caption, to stand below a figure; says how many are left out."""
    summary = html.escape(caption or "the table")
    more = f"<p>{left_out:,} more rows in rows().</p>" if left_out > 0 else ""
    # A table wider than its cell scrolls by itself; one that scrolls is reached by the keyboard.
    table = f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{summary}">{html_table(rows)}</div>'
    return f'<details style="margin:6px 0"><summary>{summary}</summary>{table}{more}</details>'


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """`rows` in aligned columns, for a terminal; "" without rows."""
    if not rows:
        return ""
    columns = _columns(rows)
    lines: list[tuple[str, ...]] = [tuple(columns)]
    for row in rows:
        cells = [_wrapped(_plain(row.get(c, ""))) for c in columns]
        lines += zip_longest(*cells, fillvalue="")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDE, break_long_words=False, break_on_hyphens=False) or [""]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


class Table:
    """What a record that is a table can do: print, show in a notebook, become Markdown or a DataFrame.

    A subclass gives `rows()` (one dict per line with plain values, so `pandas.DataFrame(record.rows())` works) and
    `caption()`; `shown()`, where people should read something else: numbers with units, fewer rows.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A dataclass would write all its fields, which may be thousands.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Table.__repr__  # type: ignore[method-assign]

    def rows(self) -> Rows:
        raise NotImplementedError

    def shown(self) -> Rows:
        return self.rows()

    def caption(self) -> str:
        return ""

    def to_markdown(self) -> str:
        return markdown_table(self.shown())

    def __repr__(self) -> str:
        about = self.caption().partition("\n")[0]
        return f"<{type(self).__name__}: {about}>" if about else f"<{type(self).__name__}>"

    def __str__(self) -> str:
        return "\n".join(part for part in (self.caption(), text_table(self.shown())) if part)

    def _repr_html_(self) -> str:
        return html_table(self.shown(), self.caption())
