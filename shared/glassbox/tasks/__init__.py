"""The labs' tasks: what a learner writes, the cases it is tried on, the explanation, and `check`."""

from .check import check

__all__ = ["check"]
