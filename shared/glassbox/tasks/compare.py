"""Right or wrong: an answer against the oracle's, property by property. The notebook's check and the judge
share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .model import Case, Property, Task
from .plain import freeze, plain, same, show
from .seeing import effort

Answer = dict[str, Any]
"""{"value": plain} or {"raised": name, "message": str}, or what kept an answer from coming; see
`answering.ask`.
"""

NEVER_RIGHT = frozenset(
    {"UnpluggedError", "NotImplementedError", "RecursionError", "MemoryError", "SystemExit"}
)
"""Exceptions that say that the piece is not there, or fell over. They are no answer, whatever the oracle
raised.
"""

KINDS = {bool: "a bool", int: "an int", float: "a float", str: "a string", list: "a tuple", dict: "a dict"}


@dataclass(frozen=True)
class Failure:
    """A case of a property that went wrong; `problem` is what `verify` says of a value."""

    case: Case
    expected: Answer
    yours: Answer
    problem: str = ""

    @property
    def unlike(self) -> str:
        """One sentence where a number or a sequence of yours is of another kind than what is asked for, such
        as 5.0 for 5; "" otherwise.
        """
        return "" if self.problem else _unlike(self.expected.get("value"), self.yours.get("value"))

    @property
    def ending(self) -> tuple[Any, ...] | None:
        """What came in place of a value: the same for two failures that went wrong in the same way; None for
        a value.
        """
        if "value" in self.yours:
            return None
        if self.yours.keys() & {"raised", "notplain"}:
            # The same error where a value and where another error is asked for are two things to think about.
            return *self.yours.items(), self.expected.get("raised")
        return tuple(self.yours)


def _unlike(truth: Any, value: Any) -> str:
    if isinstance(truth, list | tuple) and isinstance(value, list | tuple):
        if len(truth) != len(value):
            return ""
        return next((said for pair in zip(truth, value, strict=True) if (said := _unlike(*pair))), "")
    # None says that there is nothing, which is a wrong answer, not one of another kind.
    asked, given = _kind(truth), _kind(value)
    return f"{show(value, 40)} is {given}, {asked} is asked for" if asked and given and asked != given else ""


def _kind(value: Any) -> str:
    if isinstance(value, dict) and "float" in value:
        return KINDS[float]
    return KINDS.get(list if isinstance(value, tuple) else type(value), "")


@dataclass(frozen=True)
class PropertyResult:
    """How one property came out; `simplest` is the failure that is easiest to read."""

    prop: Property
    cases: int
    wrong: int
    simplest: Failure | None

    @property
    def slipped(self) -> bool:
        """True where part is right: the slip of the property is then worth reading."""
        return 0 < self.wrong < self.cases

    @property
    def won(self) -> bool:
        """True where every case was right, and there was at least one."""
        return self.cases > 0 and self.wrong == 0


def expected(task: Task, case: Case) -> Answer:
    """The oracle's answer to one case."""
    try:
        return {"value": plain(task.oracle(*case))}
    except Exception as error:
        if type(error).__name__ in NEVER_RIGHT:
            raise
        return {"raised": type(error).__name__, "message": str(error)}


def right(task: Task, case: Case, truth: Answer, answer: Any) -> bool:
    """True where `answer` is the oracle's `truth`, both in canonical form. Anything malformed is wrong, never
    an error.
    """
    if not isinstance(answer, dict):
        return False
    if "raised" in truth:
        return answer.get("raised") == truth["raised"] and truth["raised"] not in NEVER_RIGHT
    if "value" not in answer or "raised" in answer:
        return False
    if task.verify is not None:
        return problem(task, case, answer) == ""
    try:
        return same(plain(task.canon(case, truth["value"])), plain(task.canon(case, answer["value"])))
    except (
        Exception
    ):  # a learner's value may be of any shape; where canon cannot read it, it is not the right one
        return False


def problem(task: Task, case: Case, answer: Answer) -> str:
    """What `verify` says of an answer's value, "" where it is right; also "" for a task that has no `verify`
    and for an answer without a value.
    """
    if task.verify is None or "value" not in answer:
        return ""
    try:
        return str(task.verify(case, freeze(answer["value"])))
    except Exception:  # a learner's value may be of any shape
        return "this is not of the form that is asked for"


def unwritten(answers: Sequence[Sequence[Any] | None]) -> bool:
    """True where every property was answered, and every answer is that the function is not written yet."""
    return bool(answers) and all(
        given and all(isinstance(one, dict) and one.get("raised") == "NotImplementedError" for one in given)
        for given in answers
    )


def compare(
    task: Task, drawn: Sequence[Sequence[Case]], answers: Sequence[Sequence[Any] | None]
) -> tuple[PropertyResult, ...]:
    """Compares the answers, one sequence a property as in `task.properties`; None where none came."""
    results = []
    for prop, cases, given in zip(task.properties, drawn, answers, strict=True):
        complete = (
            given if given is not None and len(given) == len(cases) else [{"missing": True}] * len(cases)
        )
        failures = []
        for case, answer in zip(cases, complete, strict=True):
            truth = expected(task, case)
            if not right(task, case, truth, answer):
                yours = answer if isinstance(answer, dict) else {"missing": True}
                wrong = "" if "raised" in truth else problem(task, case, yours)
                failures.append(Failure(case, truth, yours, wrong))
        simplest = min(failures, key=lambda failure: readability(task, failure), default=None)
        results.append(PropertyResult(prop, len(cases), len(failures), simplest))
    return tuple(results)


def readability(task: Task, failure: Failure) -> tuple[Any, ...]:
    """Sorts failures, those first in which it is easy to see what went wrong; a call that was skipped shows
    nothing.
    """
    return "skipped" in failure.yours, *effort(task, failure.case, failure.expected.get("value"))


def points(task: Task, results: Sequence[PropertyResult]) -> float:
    """The points won: the share of the weights of the properties won; exactly `task.points` for all."""
    if all(result.won for result in results):
        return float(task.points)
    total = sum(result.prop.weight for result in results)
    won = sum(result.prop.weight for result in results if result.won)
    return round(task.points * won / total, 2)
