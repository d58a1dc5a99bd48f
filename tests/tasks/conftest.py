"""What the tests of `check` share: lab 1's solutions as functions."""

from typing import Any

import pytest

from glassbox.tasks.model import Task

from .labs import LABS


@pytest.fixture(scope="session")
def solved() -> dict[str, Any]:
    """The namespace after all solution cells of lab 1 have run."""
    return LABS[0].solved


@pytest.fixture(scope="session")
def lab1() -> dict[str, Task]:
    """Lab 1's tasks by the name of their function."""
    return LABS[0].remembering
