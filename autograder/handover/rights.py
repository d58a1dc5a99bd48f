"""Who else on this machine can reach a file or folder, by its mode and by those of the folders above it."""

from __future__ import annotations

from pathlib import Path

ENTER = 0o001
READ = 0o004


def closed_to_others(folder: Path) -> list[Path]:
    """Which of a folder and those above it others may not enter, outermost first."""
    folder = folder.resolve()
    return [place for place in (*reversed(folder.parents), folder) if not place.stat().st_mode & ENTER]


def open_to_others(path: Path) -> bool:
    """Whether others can read a file, or anything in a folder; not so for what is not there."""
    path = path.resolve()
    if not path.exists() or closed_to_others(path.parent):
        return False
    return bool(path.stat().st_mode & (READ | ENTER if path.is_dir() else READ))
