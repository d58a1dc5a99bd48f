"""What a task is: seeded cases in named properties, an oracle, and the words around them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Case = tuple[Any, ...]
"""The plain arguments of one call of the learner's function."""

Draw = Callable[[random.Random], Case]


@dataclass(frozen=True)
class Property:
    """One thing that must hold, tried on several cases; it is won when all of them are right.

    `corners` are drawn once each, every time; `draws` then fill up to `count` cases in turn. A property mixes
    kinds of answers, so that no constant and no exception wins it.
    """

    name: str
    weight: float
    corners: tuple[Draw, ...]
    draws: tuple[Draw, ...]
    why: str
    slip: str
    count: int = 14


@dataclass(frozen=True)
class Task:
    """One function that a learner writes.

    `oracle(*case)` gives the right answer or raises the right exception; `canon(case, value)` brings a value
    (the oracle's or the learner's) into the form in which they are compared. `views(case, value)` gives what
    to draw: the keyword arguments of a layout (shape, stride, offset), or None where a drawing does not help.
    Where `builds` names something, the first argument of a case is the text of a program, and the learner's function
    gets what that text gives these names in its place; see `building`. The lab is then about PyTorch itself, which
    its `unplugged` leaves out, and dotted names there are the parts of it that would do the work.

    `core` tasks rebuild the piece of the mini-framework called `piece`; extension tasks have none.

    Where many answers are right, `verify(case, value)` judges the learner's: "" for a right one, else one
    sentence on what is wrong with it. `oracle` then says in words what is asked for, and `canon` has no part.
    """

    id: str
    title: str
    function: str
    points: float
    minutes: int
    difficulty: int
    properties: tuple[Property, ...]
    oracle: Callable[..., Any]
    hints: tuple[str, ...]
    read: str
    piece: str | None = None
    canon: Callable[[Case, Any], Any] = lambda case, value: value
    verify: Callable[[Case, Any], str] | None = None
    views: Callable[[Case, Any], dict[str, Any] | None] | None = None
    unplugged: tuple[str, ...] = ("torch", "torchvision", "numpy", "glassbox")
    seconds: float = 2.0
    builds: tuple[str, ...] = ()

    @property
    def lab(self) -> str:
        """The short name of the lab, "lab1" in "lab1.expand"."""
        return self.id.partition(".")[0]


def cases(task: Task, seed: str) -> list[list[Case]]:
    """Draws the cases of each property of `task`, the same for the same seed. No case stands twice in a
    property.
    """
    return [_draw(prop, random.Random(f"{seed}/{task.id}/{prop.name}")) for prop in task.properties]


def _draw(prop: Property, rng: random.Random) -> list[Case]:
    seen: dict[Case, None] = {}
    for corner in prop.corners:
        _add_new(seen, corner, rng)
    turn = 0
    while prop.draws and len(seen) < prop.count:
        _add_new(seen, prop.draws[turn % len(prop.draws)], rng)
        turn += 1
    # A stateful answer must not find the corner kinds by their place.
    drawn = list(seen)
    rng.shuffle(drawn)
    return drawn


def _add_new(seen: dict[Case, None], draw: Draw, rng: random.Random) -> None:
    for _ in range(50):
        case = draw(rng)
        if case not in seen:
            seen[case] = None
            return
    raise ValueError(f"{draw!r} has fewer distinct cases than its property asks for")
