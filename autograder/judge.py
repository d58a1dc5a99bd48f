"""The judge: what is asked of one task in one attempt, which answers count, and what they are worth.

Pure: it knows neither nbgrader nor kernels. Answers come from a process that a learner controls, so nothing
in a record is trusted: only an answer set with the right nonce counts, exactly one a group, and what is
malformed is wrong.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from glassbox.tasks.compare import PropertyResult, compare, points, unwritten
from glassbox.tasks.model import Case, Task, cases
from glassbox.tasks.plain import NotPlainError, received, writable


def new_seed() -> str:
    """A fresh seed: 128 random bits as hex. One is good for one attempt at one notebook."""
    return secrets.token_hex(16)


def attempt_name(seed: str) -> str:
    """A name for an attempt that can be shown: a hash, from which the seed cannot be found."""
    return hashlib.sha256(seed.encode()).hexdigest()[:12]


@dataclass
class Sheet:
    """What is asked in one check cell, and the answers that have come. Groups are shuffled and go without
    names.
    """

    task: Task
    drawn: list[list[Case]]
    order: list[int]
    nonce: str
    received: dict[int, list[Any]] = field(default_factory=dict)

    def orders(self) -> str:
        """What the kernel is told, as JSON: calls, nonce and time; no seed, no names, no answers."""
        groups = [self.drawn[place] for place in self.order]
        orders = {"v": 1, "nonce": self.nonce, "seconds": self.task.seconds, "groups": groups}
        if self.task.builds:
            orders |= {"build": self.task.builds, "unplugged": self.task.unplugged}
        return json.dumps(orders)

    def seconds(self) -> float:
        """How long the check cell may take, in seconds: every group's time, and some for the rest."""
        return self.task.seconds * len(self.order) + 5

    def take(self, payload: Any) -> bool:
        """Takes one message; returns whether it counts as an answer set of this sheet (a second one voids its
        group).
        """
        if not isinstance(payload, dict) or payload.get("v") != 1 or payload.get("nonce") != self.nonce:
            return False
        group, answers = payload.get("group"), payload.get("answers")
        if type(group) is not int or not 0 <= group < len(self.order) or not isinstance(answers, list):
            return False
        sets = self.received.setdefault(group, [])
        if len(sets) < 2:
            sets.append(answers)
        return True

    def answers(self) -> list[Sequence[Any] | None]:
        """The answers in the order of the task's properties; None where no set came, or several did."""
        found: list[Sequence[Any] | None] = [None] * len(self.drawn)
        for group, place in enumerate(self.order):
            sets = self.received.get(group, [])
            if len(sets) == 1:
                found[place] = [_clean(answer) for answer in sets[0]]
        return found


def _clean(answer: Any) -> dict[str, Any]:
    """An answer in one of its known forms and within the limits; {"missing": True} for anything else."""
    if not isinstance(answer, dict):
        return {"missing": True}
    if answer.keys() == {"value"}:
        try:
            return {"value": received(answer["value"])}
        except NotPlainError as error:
            return {"notplain": str(error)}
    if answer.keys() == {"raised", "message"} and all(isinstance(text, str) for text in answer.values()):
        return {name: writable(text)[:300] for name, text in answer.items()}
    if answer.keys() == {"notplain"} and isinstance(answer["notplain"], str):
        return {"notplain": writable(answer["notplain"])[:300]}
    for ending in ("timeout", "died", "skipped"):
        if answer.keys() == {ending} and answer[ending] is True:
            return {ending: True}
    return {"missing": True}


def sheet(task: Task, seed: str) -> Sheet:
    """Draws what is asked of `task` in the attempt with this seed. The nonce is fresh, since it enters the
    kernel.
    """
    drawn = cases(task, seed)
    order = list(range(len(drawn)))
    random.Random(f"{seed}/{task.id}/order").shuffle(order)
    return Sheet(task, drawn, order, secrets.token_hex(16))


@dataclass(frozen=True)
class Report:
    """What one task earned, and why; `answered` is False where there is nothing to compare."""

    task: Task
    attempt: str
    points: float
    results: tuple[PropertyResult, ...]
    note: str = ""
    printed: str = ""
    answered: bool = True

    @property
    def of(self) -> float:
        """The points that the task is worth."""
        return float(self.task.points)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, as it is kept in a notebook's metadata and in a results file."""
        return {
            "v": 1,
            "task": self.task.id,
            "title": self.task.title,
            "attempt": self.attempt,
            "points": self.points,
            "of": self.of,
            "note": self.note,
            "properties": [
                {
                    "name": result.prop.name,
                    "weight": result.prop.weight,
                    "won": result.won,
                    "wrong": result.wrong,
                    "cases": result.cases,
                }
                for result in self.results
            ],
        }


def judge(asked: Sheet, attempt: str, problem: str = "", printed: str = "") -> Report:
    """Compares what came with what is right. `problem` is what went wrong in the cell itself, in words, if
    anything did.
    """
    answers = asked.answers()
    results = compare(asked.task, asked.drawn, answers)
    won = points(asked.task, results)
    note = problem if won < asked.task.points else ""
    answered = any(given is not None for given in answers)
    if unwritten(answers):
        note, answered = "not written yet", False
    elif any(len(sets) > 1 for sets in asked.received.values()):
        note = "several answer sets came for one group; it counts as unanswered"
    elif not note and not answered:
        note = "no answers came from this cell"
    return Report(asked.task, attempt, won, results, note, printed[:4000], answered)
