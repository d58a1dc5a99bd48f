"""EngineRun: a program, the backward graph that it builds, and the engine's steps through it
(torch/csrc/autograd/engine.cpp: GraphTask, ReadyQueue, InputBuffer).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .graph import Graph
from .table import Rows, Table, html_table

if TYPE_CHECKING:
    from ..draw import Svg

PHASES = ("forward", "count", "backward", "done")
STATES = ("absent", "made", "waiting", "ready", "running", "done")


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node at one moment.

    state   "absent" before the forward made it, "made"; in backward "waiting" for gradients, "ready" in the queue,
            "running", "done"
    waits   how many gradients it still waits for; None before they were counted and after it ran
    grad    the sum of what has arrived, as text; for a leaf that has run its .grad
    freed   whether what it saved was let go of
    """

    state: str
    waits: int | None = None
    grad: str = ""
    freed: bool = False


@dataclass(frozen=True, slots=True)
class EngineFrame:
    """One moment of the run.

    phase   one of PHASES
    line    the place of the program's line that was just run, -1 for none
    text    what happens, in a sentence or two
    nodes   one per node of the graph
    queue   ids of the nodes that are ready, the next one first
    flows   (edge, gradient as text) for each edge, by its place in Graph.edges(), that a gradient has just gone along
    """

    phase: str
    line: int
    text: str
    nodes: tuple[NodeState, ...]
    queue: tuple[int, ...] = ()
    flows: tuple[tuple[int, str], ...] = ()

    @property
    def running(self) -> int | None:
        """The node that runs in this frame, None where none does."""
        states = [node.state for node in self.nodes]
        return states.index("running") if "running" in states else None

    def as_data(self) -> dict[str, Any]:
        """The frame in types that JSON knows."""
        return {
            "phase": self.phase,
            "line": self.line,
            "text": self.text,
            "nodes": [asdict(node) for node in self.nodes],
            "queue": list(self.queue),
            "flows": [list(flow) for flow in self.flows],
        }


@dataclass(frozen=True, slots=True)
class EngineRun(Table):
    """A program run forward, then backward from its last result.

    program   its lines, without those that make the leaves
    graph     as it was before the backward pass
    values    per node what its forward output, or the leaf, held, as text
    saved     per node what it kept: (name, variable or "", value as text)
    frames    the moments in their order
    grads     (leaf, its .grad as text) at the end
    """

    program: tuple[str, ...]
    graph: Graph
    values: tuple[str, ...]
    saved: tuple[tuple[tuple[str, str, str], ...], ...]
    frames: tuple[EngineFrame, ...]
    grads: tuple[tuple[str, str], ...]

    def label(self, node: int) -> str:
        """What a node is called in sentences and in the queue: "MulBackward0 of z", "AccumulateGrad of a"."""
        name, variable = self.graph[node].name, self.graph[node].variable
        return f"{name} of {variable}" if variable else name

    def order(self) -> tuple[str, ...]:
        """The labels of the nodes in the order in which the engine ran them."""
        return tuple(self.label(frame.running) for frame in self.frames if frame.running is not None)

    def rows(self) -> Rows:
        return [
            {
                "step": nr,
                "phase": frame.phase,
                "queue": ", ".join(map(self.label, frame.queue)),
                "what happens": frame.text,
            }
            for nr, frame in enumerate(self.frames)
        ]

    def caption(self) -> str:
        return f"{'; '.join(self.program)}: {len(self.graph)} nodes, {len(self.order())} of them run"

    def figure(self, at: int = -1) -> Svg:
        """The graph at one of the frames, the last one if none is named."""
        from ..draw.engine_run import engine_run_figure

        return engine_run_figure(self, at)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + html_table(self.rows(), self.caption())
