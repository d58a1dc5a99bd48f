"""nbgrader's settings for this course; nbgrader's own commands and Formgrader read them through the root's
one line.
"""

from pathlib import Path

from autograder.settings import configure

configure(get_config(), Path(__file__).resolve().parent.parent)  # type: ignore[name-defined]  # noqa: F821
