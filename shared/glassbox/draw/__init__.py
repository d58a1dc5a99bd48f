"""Figures: records in, SVG text out (pure functions; PyTorch has no part that draws)."""

from .compare import Panel, layout_comparison
from .course import course_map
from .storage import tensor_over_storage, views_over_storage
from .svg import Svg

__all__ = ["Panel", "Svg", "course_map", "layout_comparison", "tensor_over_storage", "views_over_storage"]
