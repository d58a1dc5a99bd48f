"""Grades the labs: nbgrader settings, the judge, the command line. `grade("lab1_storage", path)` is the short
way in.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .grading import Grade

__all__ = ["grade"]


def grade(lab: str, notebook: str | os.PathLike[str] | None = None, *, seed: str | None = None) -> Grade:
    """Grades one notebook of `lab` ("lab1_storage") with nbgrader and the judge; see
    `autograder.grading.grade`.
    """
    from .grading import (
        grade as run,  # nbgrader takes seconds to import, which `import autograder` should not cost
    )

    return run(lab, notebook, seed=seed)
