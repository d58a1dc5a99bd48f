"""Tables: what every record can do: print, show in a notebook, become Markdown or rows (PyTorch has none)."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
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


def folded_table(rows: Sequence[Mapping[str, Any]], caption: str, left_out: int = 0) -> str:
    """`rows` as an HTML table that is shut under its caption, to stand below a figure; says how many are left out."""
    summary = html.escape(caption or "the table")
    more = f"<p>{left_out:,} more rows in rows().</p>" if left_out > 0 else ""
    return f'<details style="margin:6px 0"><summary>{summary}</summary>{html_table(rows)}{more}</details>'


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
