"""One of nbgrader's steps at a time: they write one gradebook, and replace each other's folders."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

LOCK = ".steps.lock"


@contextmanager
def turn(root: Path) -> Iterator[list[int]]:
    """Waits until no other step works on the course in `root`, and is at work inside.

    Gives the descriptors to hand down to a child process (`pass_fds`): the turn then lasts as long as that,
    whatever becomes of this one. Where there are no locks, and where the folder cannot be written, nobody
    waits.
    """
    if sys.platform == "win32":
        yield []
        return
    try:
        file = (root / LOCK).open("a")
    except OSError:
        yield []
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another step is at work on this course: waiting for it ...", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield [file.fileno()]
