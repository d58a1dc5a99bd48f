"""Times that submissions say of themselves: one that cannot be read would stop nbgrader for a whole class."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from dateutil.parser import parse

STAMP = "timestamp.txt"
ASIDE = "timestamp.unreadable"


def set_aside(submitted: Path) -> list[str]:
    """Takes unreadable timestamp.txt files below `submitted` out of nbgrader's sight; returns a sentence for
    each. Their submissions then count as handed in without a time.
    """
    told = []
    for path in sorted(submitted.glob(f"*/*/{STAMP}")):
        try:
            text = path.read_text(encoding="utf-8").strip()
            if text:
                parse(text).astimezone(UTC)
            continue
        except (ValueError, OverflowError, OSError):
            pass
        path.rename(path.with_name(ASIDE))
        told.append(f"{path} holds no time that can be read: it is called {ASIDE} now and does not count.")
    return told
