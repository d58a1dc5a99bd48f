"""Figures: records in, SVG text out (pure functions; PyTorch has no part that draws)."""

from .call_path import call_path_figure
from .compare import Panel, layout_comparison
from .course import course_map
from .dispatch_steps import DispatchStep, dispatch_steps
from .forward import forward_figure, forward_layout
from .graph import graph_figure, graph_layout
from .key_set import key_set_figure
from .lifetime import lifetime_figure
from .onion import onion_figure
from .overhead import overhead_figure
from .portrait import portrait_figure
from .reason import reason_figure
from .saved_memory import saved_memory_figure
from .storage import tensor_over_storage, views_over_storage
from .svg import Svg
from .timeline import timeline_figure, timeline_layout

__all__ = [
    "DispatchStep",
    "Panel",
    "Svg",
    "call_path_figure",
    "course_map",
    "dispatch_steps",
    "forward_figure",
    "forward_layout",
    "graph_figure",
    "graph_layout",
    "key_set_figure",
    "layout_comparison",
    "lifetime_figure",
    "onion_figure",
    "overhead_figure",
    "portrait_figure",
    "reason_figure",
    "saved_memory_figure",
    "tensor_over_storage",
    "timeline_figure",
    "timeline_layout",
    "views_over_storage",
]
