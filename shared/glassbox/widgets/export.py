"""Static export: a page without a kernel shows figures, keeps folds, runs no script (nbconvert's part).

nbconvert prefers a widget's live view, whose script comes from the network. Where an output has a text/html
form beside that view, `StaticFigures` leaves only the form; other outputs pass as they are. `FoldedCode` and
`CleanHTML` take the places of two of nbconvert's filters: the first knows no folded cells, and the second,
which JupyterLab's export menu turns on, knows neither headings nor drawings and writes their source out.
"""

from __future__ import annotations

import base64
import html
import re
from typing import Any

import bleach  # type: ignore[import-untyped]
from bleach.css_sanitizer import CSSSanitizer  # type: ignore[import-untyped]
from nbconvert.filters import Highlight2HTML
from nbconvert.preprocessors import Preprocessor
from nbconvert.utils.base import NbConvertBase

from ..draw.svg import PALETTES, palette_css

VIEW = "application/vnd.jupyter.widget-view+json"

_TAGS = (
    "a abbr b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p "
    "pre s span strong sub summary sup table tbody td tfoot th thead tr u ul wbr"
)
_ATTRIBUTES = ("class", "id", "style", "title", "role", "aria-label")
_ATTRIBUTES_OF = {
    "img": ("alt", "width", "height"),
    "ol": ("start",),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan", "scope"),
}
# None of them can name an address, nor lift a thing out of its place.
_STYLES = (
    "background-color border border-bottom border-collapse border-color border-left border-radius color "
    "font-family font-size font-style font-weight height line-height margin margin-left margin-top max-width "
    "opacity overflow-x padding padding-left text-align text-decoration vertical-align white-space width"
)

_FIGURE = re.compile(r'<svg\b[^>]*\bclass="glassbox-figure".*?</svg>', re.DOTALL)
_UNSPOKEN = re.compile(r"<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


class StaticFigures(Preprocessor):
    """For `HTMLExporter.preprocessors`, as "glassbox.widgets.export.StaticFigures".

    Works on the copy that nbconvert makes, never on the file. The widgets' stored state goes too when no
    output needs it any more, since a page that has one asks the network for the scripts.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        outputs = [output for cell in nb.cells for output in cell.get("outputs", ())]
        live = [output.data for output in outputs if VIEW in output.get("data", ())]
        static = [data for data in live if data.get("text/html")]
        for data in static:
            del data[VIEW]
        if static and len(static) == len(live):
            nb.metadata.pop("widgets", None)
        return nb, resources


class FoldedCode(Highlight2HTML):
    """For `HTMLExporter.filters`, as "highlight_code": a cell that is folded in JupyterLab is so on the page,
    too, with its first line to open it by.
    """

    def __call__(self, source: str, language: str | None = None, metadata: Any = None) -> str:
        code = super().__call__(source, language, metadata)
        if not ((metadata or {}).get("jupyter") or {}).get("source_hidden"):
            return code
        first = html.escape(source.strip().split("\n")[0])
        return f'<details><summary style="padding:4px"><code>{first} …</code></summary>{code}</details>'


class CleanHTML(NbConvertBase):
    """For `HTMLExporter.filters`, as "clean_html": `clean` in the theme of the page."""

    def __call__(self, text: str | bytes) -> str:
        dark = getattr(self.parent, "theme", "light") == "dark"
        return clean(text.decode() if isinstance(text, bytes) else str(text), "dark" if dark else "light")


def clean(text: str, theme: str = "light") -> str:
    """HTML without scripts, forms, frames, foreign addresses of pictures, and styles that may do harm.

    Headings, tables, lists and folds stay. The figures of `glassbox.draw` become pictures in the given theme,
    in which a browser runs nothing whatever they hold; so they no longer answer the mouse.
    """
    # The order is what makes it safe: all that is put in here is cleaned as well.
    pictured = _FIGURE.sub(lambda found: _picture(found.group(), theme), text)
    return bleach.clean(
        _UNSPOKEN.sub("", pictured),
        tags=frozenset(_TAGS.split()),
        attributes=_allowed,
        protocols={"http", "https", "mailto", "data"},
        strip=True,
        css_sanitizer=CSSSanitizer(allowed_css_properties=_STYLES.split(), allowed_svg_properties=()),
    )


def _picture(figure: str, theme: str) -> str:
    told = " ".join(re.findall(r"<(?:title|desc) id=[^>]*>([^<]*)<", figure)[:2])
    # A picture knows no page whose theme it could ask for, and hints at pointing would mislead.
    fixed = figure.replace('style="', f'style="{palette_css(PALETTES[theme])}', 1)
    fixed = fixed.replace("</style>", ".hint{display:none}</style>", 1)
    data = base64.b64encode(fixed.encode()).decode()
    return (
        f'<img alt="{html.escape(html.unescape(told))}" style="max-width:100%;height:auto" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def _allowed(tag: str, name: str, value: str) -> bool:
    plain = html.unescape(value).strip().lower()
    if (tag, name) == ("img", "src"):
        return plain.startswith("data:image/")
    if (tag, name) == ("a", "href"):
        return plain.startswith(("http://", "https://", "mailto:", "#")) or ":" not in plain
    return name in _ATTRIBUTES or name in _ATTRIBUTES_OF.get(tag, ())
