"""What the widgets share: functions of JavaScript, the figures' palette as CSS, a static picture beside the live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget

from ..draw.svg import theme_css

HERE = Path(__file__).parent


def asset(name: str) -> str:
    """The text of a .js or .css file that lies in this folder."""
    return (HERE / name).read_text(encoding="utf-8")


def script(name: str) -> str:
    """A widget's script of this folder behind what all of them share."""
    return asset("base.js") + asset(name)


def themed_css(name: str) -> str:
    """A stylesheet of this folder behind the figures' palette, so that widgets and figures look alike."""
    return theme_css(".gb-widget") + asset("base.css") + asset(name)


class GlassboxWidget(anywidget.AnyWidget):
    """An anywidget that also has a text/html form, which is all that a static export can show."""

    def static_html(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/html": self.static_html(), "text/plain": str(self)}, metadata
