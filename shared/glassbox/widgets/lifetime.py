"""Lifetime stepper: a program line by line, and who keeps which storage alive (c10/core/StorageImpl.h)."""

from __future__ import annotations

from typing import Any

from ..draw.lifetime import lifetime_figure
from ..records.lifetime import Lifetime
from ..xray.lifetimes import lifetime
from ._frames import FramesWidget, Lane


class LifetimeStepper(FramesWidget):
    """A program that runs here and now, and what is alive after each of its lines.

    program      Python text that makes tensors with `torch`; each statement is a step
    frameworks   what goes by that name, by the name of its lane: PyTorch=torch, mini=mini; PyTorch alone without any

    Traits: `step`, which may be read and set, and `steps`. `lives` has the records by lane.
    TypeError for a program that is no text and for a lane that is no framework;
    ValueError for a program without a statement; whatever a statement raises is raised.
    """

    def __init__(self, program: str, **frameworks: Any) -> None:
        self.lives: dict[str, Lifetime] = {
            name: lifetime(program, framework) for name, framework in (frameworks or {"PyTorch": None}).items()
        }
        if not all(len(each) for each in self.lives.values()):
            raise ValueError("LifetimeStepper: the program has no statement, so there is nothing to step through.")
        super().__init__([_lane(name, each) for name, each in self.lives.items()], "lifetime of storages", code=True)


def _lane(name: str, lives: Lifetime) -> Lane:
    return Lane(
        name,
        tuple(moment.code for moment in lives),
        tuple(moment.says() for moment in lives),
        tuple(lifetime_figure(lives, nr) for nr in range(len(lives))),
    )
