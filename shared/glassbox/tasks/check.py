"""The learner's check: the open cases of a task, tried in the notebook, with the work-savers unplugged."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from . import answering, catalogue, show
from .building import built
from .compare import PropertyResult, compare, unwritten
from .model import Case, Task, cases
from .plain import freeze
from .unplug import unplugged

PUBLIC_SEED = "public"


class Checked:
    """What a check found: prints as text, shows as a table with a drawing. `passed` tells whether all
    properties hold.
    """

    def __init__(self, task: Task, results: tuple[PropertyResult, ...], untouched: bool) -> None:
        self.task = task
        self.results = results
        self.passed = all(result.won for result in results)
        self.untouched = untouched

    @property
    def heading(self) -> str:
        """One line: which task, how it stands, what it is worth."""
        worth = f"{self.task.points:g} points"
        if self.untouched:
            return f"{self.task.id}: not written yet ({worth})"
        won = sum(result.won for result in self.results)
        if self.passed:
            return f"{self.task.id}: all {won} properties hold here ({worth}; a grade draws fresh cases)"
        return f"{self.task.id}: {won} of {len(self.results)} properties hold ({worth})"

    def __str__(self) -> str:
        return self.heading if self.untouched else show.as_text(self.task, self.results, self.heading)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.untouched:
            return f"<p><strong>{self.heading}</strong></p>"
        return show.as_html(self.task, self.results, self.heading)


def check(task: str, function: Callable[..., Any]) -> None:
    """Tries `function` on the open cases of the task with this id and shows input, expected and yours.

    In a notebook it shows a table and raises nothing, so that the cells below still run; under nbgrader's
    Validate it raises AssertionError with the same words. Raises KeyError for an unknown task, TypeError
    where `function` cannot be called.
    """
    checked = try_out(catalogue.find(task), function)
    if "NBGRADER_VALIDATING" in os.environ or "NBGRADER_EXECUTION" in os.environ:
        if not checked.passed:
            raise AssertionError(str(checked))
        return
    _show(checked)


def try_out(task: Task, function: Callable[..., Any], seed: str = PUBLIC_SEED) -> Checked:
    """Like `check`, but returns what it found instead of showing it."""
    if not callable(function):
        raise TypeError(
            f'check("{task.id}", ...) needs your function {task.function}, not {type(function).__name__}'
        )
    drawn = cases(task, seed)
    with answering.quiet() as printed, unplugged(function, task.unplugged):
        answers = [_answers(task, function, group) for group in drawn]
    if printed.getvalue():
        print(printed.getvalue())
    return Checked(task, compare(task, drawn, answers), unwritten(answers))


def _answers(task: Task, function: Callable[..., Any], group: Sequence[Case]) -> list[dict[str, Any]]:
    names = task.builds
    return [answering.answer(function, built(names, freeze(case)), names) for case in group]


def _show(checked: Checked) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(checked)
        return
    if get_ipython() is None:
        print(checked)
    else:
        display(checked)
