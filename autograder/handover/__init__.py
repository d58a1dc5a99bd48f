"""nbgrader's exchange with plain words: nothing is lost half-way, and what others wrote is never trusted."""

from __future__ import annotations

from .collect import Collect
from .feedback import FetchFeedback, ReleaseFeedback
from .fetch import FetchAssignment
from .listing import ListLabs
from .release import ReleaseAssignment
from .submit import Submit

__all__ = [
    "Collect",
    "FetchAssignment",
    "FetchFeedback",
    "ListLabs",
    "ReleaseAssignment",
    "ReleaseFeedback",
    "Submit",
]
