"""The SVG kit: a figure is text that adapts to light and dark themes (PyTorch has no part that draws).

Figures are built from plain strings. Colours are CSS variables with two palettes: inside JupyterLab, an
exported notebook or VS Code the page's own theme decides, anywhere else the reader's system does. Hovering is
CSS only, so a static export is alive without any script.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

ROW_HUES = 6

LIGHT = {
    "ink": "#17212e",
    "muted": "#56636f",
    "line": "#c3ccd6",
    "panel": "#f7f9fb",
    "out": "#eff2f5",
    "out-line": "#d3dae1",
    "out-ink": "#5f6b78",
    "hot": "#ffc247",
    "hot-line": "#b26a00",
    "hot-ink": "#2b1a00",
    "lit": "#d98200",
    "bad": "#ffd8d0",
    "bad-line": "#c8371f",
    "bad-ink": "#5e1307",
    "good": "#2b7a51",
    "r0": "#d9e8fd",
    "r0-line": "#6e9bd6",
    "r1": "#d5f0e2",
    "r1-line": "#5fae87",
    "r2": "#e6dffb",
    "r2-line": "#9583d6",
    "r3": "#fbdfe8",
    "r3-line": "#d6809f",
    "r4": "#d3eff5",
    "r4-line": "#58a9bd",
    "r5": "#e8ecd2",
    "r5-line": "#98a65a",
}
DARK = {
    "ink": "#e6ebf2",
    "muted": "#a9b5c2",
    "line": "#46515d",
    "panel": "#1a2027",
    "out": "#22282f",
    "out-line": "#3a434d",
    "out-ink": "#93a0ad",
    "hot": "#ffb938",
    "hot-line": "#ffe3ae",
    "hot-ink": "#241500",
    "lit": "#ffb938",
    "bad": "#5c1f18",
    "bad-line": "#ff8a75",
    "bad-ink": "#ffe1db",
    "good": "#5cc18d",
    "r0": "#1f3a5f",
    "r0-line": "#5d93d8",
    "r1": "#1b4534",
    "r1-line": "#54ab80",
    "r2": "#3a2f66",
    "r2-line": "#9c8be6",
    "r3": "#5a2640",
    "r3-line": "#da7ba0",
    "r4": "#174550",
    "r4-line": "#52adc2",
    "r5": "#3f4622",
    "r5-line": "#a3b35a",
}
PALETTES = {"light": LIGHT, "dark": DARK}

_UID, _FIG = "@UID@", "@FIG@"


@dataclass(frozen=True)
class Svg:
    """One finished figure.

    width, height   size in user units, which are CSS pixels at 100 %
    title, desc     the text alternative: what it is, and what it says
    body            SVG elements; rules: CSS of this figure alone, in which @FIG@ stands for the figure
    theme           "auto" follows the page or the system; "light" and "dark" are fixed
    scrolls         True for one too large for a page: a notebook shows it in a part of its own that scrolls, with a
                    choice of scales, instead of shrunk to the page's width
    """

    width: float
    height: float
    title: str
    desc: str
    body: str
    rules: str = ""
    theme: str = "auto"
    scrolls: bool = False

    def __post_init__(self) -> None:
        if self.theme not in ("auto", "light", "dark"):
            raise ValueError(f'Svg: theme {self.theme!r} is unknown; use "auto", "light" or "dark".')

    def with_theme(self, theme: str) -> Svg:
        return replace(self, theme=theme)

    @property
    def text(self) -> str:
        """The <svg> element, with an id that no other figure on a page has."""
        uid = "gb-" + secrets.token_hex(5)
        style = f"<style>{theme_css(f'#{uid}', self.theme)}{_BASE_CSS}{self.rules}</style>"
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" id="{_UID}" class="glassbox-figure" role="img" '
            f'aria-labelledby="{_UID}-t {_UID}-d" viewBox="0 0 {num(self.width)} {num(self.height)}" '
            f'width="{num(self.width)}" height="{num(self.height)}" '
            f'style="{"" if self.scrolls else "max-width:100%;height:auto;"}display:block">'
            f'<title id="{_UID}-t">{esc(self.title)}</title><desc id="{_UID}-d">{esc(self.desc)}</desc>'
            f"{style}{self.body}</svg>"
        )
        return svg.replace(_FIG, f"#{uid}").replace(_UID, uid)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _scrolling(self) if self.scrolls else self.text

    def save(self, path: str | Path, theme: str | None = None) -> Path:
        """Writes a standalone .svg file (UTF-8), in a fixed theme if one is given; returns its path."""
        path = Path(path)
        path.write_text(self.file_text(theme), encoding="utf-8")
        return path

    def file_text(self, theme: str | None = None) -> str:
        """What a standalone .svg file holds.

        Such a file is mostly shown as a picture, so hints that ask the reader to point at something are
        hidden.
        """
        figure = replace(self, theme=theme or self.theme, rules=self.rules + "@FIG@ .hint{display:none}")
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + figure.text + "\n"


def _scrolling(figure: Svg) -> str:
    """A figure in a part of the page that scrolls, and a choice of scales that needs no script."""
    uid = "gb-" + secrets.token_hex(5)
    scales = {"whole": "", "half": num(figure.width / 2), "full size": num(figure.width)}
    choice, css = [], []
    for nr, (label, width) in enumerate(scales.items()):
        checked = " checked" if label == "full size" else ""
        choice.append(f'<label><input type="radio" name="{uid}" class="z{nr}"{checked}> {label}</label>')
        size = f"width:{width}px" if width else "width:auto;max-width:100%;max-height:74vh"
        css.append(f"#{uid}:has(.z{nr}:checked) .view>svg{{{size};height:auto}}")
    style = (
        f"#{uid} .view{{overflow:auto;max-height:76vh;border:1px solid rgba(128,128,128,.35);border-radius:8px}}"
        f"#{uid} .scale{{font:12px {SANS};margin:0 0 6px;display:flex;gap:14px}}" + "".join(css)
    )
    return (
        f'<div id="{uid}"><style>{style}</style><div class="scale">{"".join(choice)}</div>'
        f'<div class="view" tabindex="0" role="region" aria-label="{esc(figure.title)}">{figure.text}</div></div>'
    )


def esc(text: object) -> str:
    """Text that is safe inside an element or a quoted attribute, without characters that XML forbids."""
    clean = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", str(text))
    return html.escape(clean, quote=True)


def num(value: float) -> str:
    """A coordinate without needless digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def mono_width(text: str, size: float = 12) -> float:
    """Width of monospace text; 0.61 em a character is the widest of the fonts asked for."""
    return len(text) * size * 0.61


def text(x: float, y: float, content: object, cls: str = "", anchor: str = "start", size: float = 12) -> str:
    """A line of text; `y` is its baseline. Class "s" makes it sans-serif, "m" muted, "b" bold."""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    kind = f' class="{cls}"' if cls else ""
    return f'<text x="{num(x)}" y="{num(y)}" font-size="{num(size)}"{at}{kind}>{esc(content)}</text>'


def rect(x: float, y: float, w: float, h: float, cls: str = "", rx: float = 4, extra: str = "") -> str:
    kind = f' class="{cls}"' if cls else ""
    return (
        f'<rect x="{num(x)}" y="{num(y)}" width="{num(w)}" height="{num(h)}" rx="{num(rx)}"{kind}'
        f"{' ' + extra if extra else ''}/>"
    )


def path(d: str, cls: str = "", extra: str = "") -> str:
    return f'<path d="{d}"{f" class={chr(34)}{cls}{chr(34)}" if cls else ""}{" " + extra if extra else ""}/>'


def group(content: str, cls: str = "", title: str = "") -> str:
    tip = f"<title>{esc(title)}</title>" if title else ""
    return f"<g{f' class={chr(34)}{cls}{chr(34)}' if cls else ''}>{tip}{content}</g>"


def hover_rules(positions: Sequence[int]) -> str:
    """CSS that lights every cell of class c<position> when one of them is under the pointer."""
    if not positions:
        return ""
    where = ",".join(f"@FIG@:has(.c{p}:hover) .c{p}" for p in positions)
    return f"{where}{{{_paint('hot')};--w:2.25}}"


def palette_css(names: dict[str, str]) -> str:
    """A palette as CSS custom properties."""
    return "".join(f"--gb-{key}:{value};" for key, value in names.items())


def theme_css(selector: str, theme: str = "auto") -> str:
    """The palette for `selector` (an id or a class): light, dark, or as the page, else the system, has it."""
    if theme != "auto":
        return f"{selector}{{{palette_css(PALETTES[theme])}}}"
    dark = palette_css(DARK)
    page_says = ":has(body[data-jp-theme-light],body[data-vscode-theme-kind])"
    return (
        f"{selector}{{{palette_css(LIGHT)}}}"
        f'body[data-jp-theme-light="false"] {selector},'
        f'body[data-vscode-theme-kind*="dark"] {selector}{{{dark}}}'
        f"@media (prefers-color-scheme: dark){{:root:not({page_says}) {selector},:root{selector}{{{dark}}}}}"
    )


def _paint(name: str) -> str:
    """Fill, edge and text of a cell as variables, so that one rule repaints a cell and what it holds."""
    ink = f"var(--gb-{name}-ink)" if f"{name}-ink" in LIGHT else "var(--gb-ink)"
    return f"--f:var(--gb-{name});--e:var(--gb-{name}-line);--t:{ink}"


_BASE_CSS = (
    f"@FIG@ text{{font-family:{MONO};fill:var(--gb-ink)}}"
    f"@FIG@ text.s{{font-family:{SANS}}}"
    "@FIG@ text.m{fill:var(--gb-muted)}"
    "@FIG@ text.b{font-weight:600}"
    "@FIG@ text.bad{fill:var(--gb-bad-line)}"
    "@FIG@ text.good{fill:var(--gb-good)}"
    "@FIG@ .panel{fill:var(--gb-panel);stroke:var(--gb-line);stroke-width:1}"
    "@FIG@ .rule{fill:none;stroke:var(--gb-line);stroke-width:1.25}"
    "@FIG@ .k>rect{fill:var(--f);stroke:var(--e);stroke-width:var(--w,1.25)}"
    "@FIG@ .k>text{fill:var(--t)}"
    + "".join(f"@FIG@ .r{i}{{{_paint(f'r{i}')}}}" for i in range(ROW_HUES))
    + f"@FIG@ .out{{{_paint('out')}}}"
    f"@FIG@ .hot{{{_paint('hot')};--w:2.25}}"
    "@FIG@ .lit{--e:var(--gb-lit);--w:2.75}"
    f"@FIG@ .bad{{{_paint('bad')};--w:2}}"
    "@FIG@ .lane{fill:var(--gb-out-ink)}"
    "@FIG@ .lane.lit{fill:var(--gb-lit)}"
    "@FIG@ .tip{display:none;pointer-events:none}"
    "@FIG@ .k:hover>.tip{display:block;fill:var(--gb-ink)}"
    "@FIG@:has(.k:hover .tip,.k:hover>.tip) .rest{display:none}"
)
