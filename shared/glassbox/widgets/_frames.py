"""What the steppers share: pictures drawn up front, one per step and lane, that the browser turns over by itself.

Every picture comes from `glassbox.draw`, so the live figure and the one in an export are the same. PyTorch has none.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import traitlets

from ..draw import Svg
from ._base import GlassboxWidget, script, themed_css

_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lane:
    """One column of a stepper: its name, and for each step a sentence, a picture and a short label."""

    name: str
    labels: tuple[str, ...]
    says: tuple[str, ...]
    figures: tuple[Svg, ...]

    def frames(self) -> dict[str, Any]:
        """The lane as the browser gets it: all pictures under one id, and the style that they have in common once."""
        uid = "gb-" + secrets.token_hex(5)
        texts = [_renamed(figure.text, uid) for figure in self.figures]
        styles = [found[0] for text in texts if (found := _STYLE.search(text))]
        return {
            "name": self.name,
            "labels": list(self.labels),
            "says": list(self.says),
            "style": styles[0] if styles else "",
            "pictures": [_STYLE.sub("", text, count=1) for text in texts],
        }


class FramesWidget(GlassboxWidget):
    """Steps side by side in one or more lanes.

    Traits: `step` (which one is shown, from 0), `steps` (how many there are), `lanes` (what the browser draws),
    `code` (whether the labels are lines of a program). A lane with fewer steps stays at its last one.
    """

    _esm = script("frames.js")
    _css = themed_css("frames.css")

    lanes = traitlets.List(traitlets.Dict()).tag(sync=True)
    steps = traitlets.Int(1).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    code = traitlets.Bool(False).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, lanes: Sequence[Lane], title: str, code: bool = False, step: int = 0) -> None:
        self._drawn = tuple(lanes)
        count = max(len(lane.figures) for lane in lanes)
        super().__init__(lanes=[lane.frames() for lane in lanes], steps=count, title=title, code=code, step=step)

    @traitlets.validate("step")
    def _a_step(self, proposal: dict[str, Any]) -> int:
        if not 0 <= proposal["value"] < self.steps:
            raise traitlets.TraitError(
                f"{type(self).__name__}: there is no step {proposal['value']}; they go from 0 to {self.steps - 1}."
            )
        return int(proposal["value"])

    def static_html(self) -> str:
        """Each lane's last picture that shows the whole, and under it what every step says."""
        parts = []
        for lane in self._drawn:
            tag = ("<code>", "</code>") if self.code else ("<b>", "</b>")
            lines = "".join(
                f"<li>{tag[0]}{html.escape(label)}{tag[1]}: {html.escape(said)}</li>"
                for label, said in zip(lane.labels, lane.says, strict=True)
            )
            name = f"<p><b>{html.escape(lane.name)}</b></p>" if len(self._drawn) > 1 else ""
            parts.append(f"<div>{name}{lane.figures[-1]._repr_html_()}<ol>{lines}</ol></div>")
        return "".join(parts)

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}: {self.title}"]
        for lane in self._drawn:
            lines += [f"{lane.name}, step {nr + 1}, {label}" for nr, label in enumerate(lane.labels)]
        return "\n".join(lines)


def _renamed(text: str, uid: str) -> str:
    """A figure's text under another id and class: only one picture of a lane is on the page at a time."""
    old = re.search(r'id="(gb-[0-9a-f]+)"', text)
    assert old is not None
    return text.replace(old[1], uid).replace('class="glassbox-figure"', 'class="gb-frame"', 1)
