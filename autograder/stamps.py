"""Times of submissions: lengths of time in words, and times that cannot be read."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from nbgrader.utils import parse_utc

DAY = timedelta(days=1)
STAMP = "timestamp.txt"
ASIDE = "timestamp.unreadable"


def read(text: str) -> datetime | None:
    """The time that a text says, in UTC without saying so; None where it says none that a clock can show."""
    try:
        moment = parse_utc(text.strip())
        _ = moment - DAY, moment + DAY  # in other zones too
    except Exception:  # dateutil lets out whatever comes up in it, decimal.InvalidOperation for one
        return None
    return moment


def set_aside(submitted: Path) -> list[str]:
    """Takes unreadable timestamp.txt files below `submitted` out of nbgrader's sight, which one of them would
    stop for the whole class; returns a sentence for each. Their submissions then count as without a time.
    """
    told = []
    for path in sorted(submitted.glob(f"*/*/{STAMP}")):
        with suppress(OSError, ValueError):
            if read(path.read_text(encoding="utf-8")):
                continue
        path.rename(path.with_name(ASIDE))
        told.append(f"{path} holds no time that can be read: it is called {ASIDE} now and does not count.")
    return told


def span(seconds: float) -> str:
    """A length of time in words, in its largest whole unit of which there are at least two: "5 hours"."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return "a minute" if seconds >= 60 else "less than a minute"
