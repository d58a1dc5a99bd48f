"""The one list of what may differ, each with its reason; the report shows how much each one covers."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Exclusion:
    """entry, dtype and kind are patterns as for file names."""

    entry: str
    dtype: str
    kind: str
    reason: str


EXCLUSIONS: tuple[Exclusion, ...] = ()


def excluded(entry: str, dtype: str, kind: str) -> str:
    """The reason why failures of this kind do not count; "" if they do."""
    for each in EXCLUSIONS:
        if fnmatchcase(entry, each.entry) and fnmatchcase(dtype, each.dtype) and fnmatchcase(kind, each.kind):
            return each.reason
    return ""
