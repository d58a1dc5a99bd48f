"""Autograd stepper: the backward graph grows, then the engine goes through it (torch/csrc/autograd/engine.cpp).

Every moment is worked out before the first one is shown, so walking through them asks no kernel.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import traitlets

from ..records.engine_run import EngineRun
from ..xray.engine_runs import engine_run
from ._base import GlassboxWidget, script, themed_css

PROGRAMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("one path to each leaf", "s = a + b\nz = s * c", {"a": 2, "b": 3, "c": 4}),
    ("paths that meet", "p = a * b\nq = p + a\nr = q * p", {"a": 2, "b": 3}),
    ("one tensor, used three times", "y = x * x\nz = y.exp() + x", {"x": 1}),
    (
        "a layer and its loss",
        "h = (x @ w).relu()\nloss = (h - 1).pow(2).mean()",
        {"x": [[1, 2], [3, -4]], "w": [[1], [2]]},
    ),
)


class AutogradStepper(GlassboxWidget):
    """A program's forward and backward pass, moment by moment.

    runs   records of `glassbox.xray.engine_run`, by what the reader chooses them by; without any, four
           small programs of the mini-framework

    TypeError for what is no such record, RuntimeError without any where the mini-framework records no graph.
    Traits to read, set and observe: `run` (which of `titles`), `step` (0 to the last moment). TraitError for a step
    or run that is not there.
    """

    _esm = script("autograd_stepper.js")
    _css = themed_css("autograd_stepper.css")

    titles = traitlets.List(traitlets.Unicode()).tag(sync=True)
    shown = traitlets.List(traitlets.Dict()).tag(sync=True)
    run = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, **runs: EngineRun) -> None:
        for title, each in runs.items():
            if not isinstance(each, EngineRun):
                raise TypeError(
                    f"AutogradStepper: {title} is a {type(each).__name__}, not a record; give what engine_run gave, "
                    f'such as {title}=xray.engine_run("z = a * a", torch, a=2).'
                )
        chosen = {title.replace("_", " "): each for title, each in runs.items()} or _programs_of_mini()
        self.records: Sequence[EngineRun] = tuple(chosen.values())
        super().__init__(titles=list(chosen), shown=[as_data(each) for each in self.records])

    @traitlets.validate("run")
    def _known_run(self, proposal: dict[str, Any]) -> int:
        if not 0 <= proposal["value"] < len(self.records):
            raise traitlets.TraitError(f"AutogradStepper: there is no run {proposal['value']}.")
        return proposal["value"]

    @traitlets.validate("step")
    def _known_step(self, proposal: dict[str, Any]) -> int:
        last = len(self.records[self.run].frames) - 1
        if not 0 <= proposal["value"] <= last:
            raise traitlets.TraitError(f"AutogradStepper: the steps are 0 to {last}, not {proposal['value']}.")
        return proposal["value"]

    @traitlets.observe("run")
    def _begin_anew(self, change: dict[str, Any]) -> None:
        self.step = min(self.step, len(self.records[self.run].frames) - 1)

    def static_html(self) -> str:
        """The graph as it is in the middle of the backward pass, and all that happens, in words."""
        record = self.records[self.run]
        at = self.step or next(nr for nr, frame in enumerate(record.frames) if frame.running is not None)
        told = "".join(f"<li>{html.escape(frame.text)}</li>" for frame in record.frames)
        lines = "".join(f"<code>{html.escape(line)}</code><br>" for line in record.program)
        return (
            f"<p>{lines}</p>{record.figure(at)._repr_html_()}"
            f"<p>The picture shows step {at + 1} of {len(record.frames)}:</p><ol>{told}</ol>"
        )

    def __str__(self) -> str:
        record = self.records[self.run]
        return f"AutogradStepper: {'; '.join(record.program)}, step {self.step + 1} of {len(record.frames)}"


def as_data(record: EngineRun) -> dict[str, Any]:
    """What the browser needs of a run: one picture, and what changes in it."""
    return {
        "program": list(record.program),
        "leaves": [f"{name} = {record.values[record.graph.named(name).id]}" for name, _ in record.grads],
        "labels": [record.label(node.id) for node in record.graph],
        "sources": [source for source, _, _, _ in record.graph.edges()],
        "svg": record.figure(0).text,
        "frames": [frame.as_data() for frame in record.frames],
    }


def _programs_of_mini() -> dict[str, EngineRun]:
    from .. import mini

    return {title: engine_run(program, mini, **leaves) for title, program, leaves in PROGRAMS}
