"""Playing with one's own pieces: a lab's cell in which something larger runs on what the learner wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import mini
from . import capstone


@contextmanager
def running_on(*mine: Any, **pieces: Callable[..., Any]) -> Iterator[None]:
    """`mini.using(...)` for the cells of a lab: a missing or wrong piece costs one line, no traceback.

    mine: functions of the learner's that are made into pieces first (`capstone.as_pieces`), or what
    `capstone.gathered` gave. So a lab runs from top to bottom at every stage of the work. ValueError for a name
    that is no piece.
    """
    names = ", ".join([*(each.__name__ for each in mine if callable(each)), *pieces]) or "function"
    for each in mine:
        pieces = {**(capstone.as_pieces(each) if callable(each) else each.pieces), **pieces}
    with mini.using(**pieces):
        try:
            yield
        except NotImplementedError:
            print(f"{names}: not written yet; this cell will run on yours then.")
        except (
            Exception
        ) as error:  # whatever a learner's piece brings about is news, not a reason to stop the lab
            print(f"The mini-framework cannot run on your {names} yet. {type(error).__name__}: {error}")


@contextmanager
def trying(*names: str) -> Iterator[None]:
    """Like `running_on`, for functions of these names that are no pieces: they look at PyTorch itself."""
    written = ", ".join(names)
    try:
        yield
    except NotImplementedError:
        print(f"{written}: not written yet; this cell will use yours then.")
    except Exception as error:
        print(f"This cell cannot use your {written} yet. {type(error).__name__}: {error}")
