"""Figures: records in, SVG text out (pure functions; PyTorch has no part that draws)."""

from .compare import Panel, layout_comparison
from .course import course_map
from .key_set import key_set_figure
from .storage import tensor_over_storage, views_over_storage
from .svg import Svg

__all__ = [
    "Panel",
    "Svg",
    "course_map",
    "key_set_figure",
    "layout_comparison",
    "tensor_over_storage",
    "views_over_storage",
]
