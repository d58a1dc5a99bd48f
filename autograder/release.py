"""Making labs/ from solutions/, and giving a learner a fresh copy of one lab."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import nbformat

from . import labs
from .errors import PlainError


def release(lab: str, folder: Path) -> Path:
    """Writes what students get of `lab` into `folder`, which it makes; returns the notebook's path there."""
    labs.require(lab)
    if labs.source(lab).is_relative_to(labs.SOLUTIONS):
        from .classroom import Classroom

        with Classroom(lab) as classroom:
            _copy(classroom.generate(), folder)
    else:
        _copy(labs.source(lab), folder)
    return folder / f"{lab}.ipynb"


def _copy(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))


def keep(lab: str) -> Path | None:
    """Moves labs/ of `lab` to kept/ where somebody has worked in it; returns its place there, else None.

    What is made anew from solutions/ would take its place.
    """
    folder = labs.LABS / lab
    path = folder / f"{lab}.ipynb"
    if not path.is_file() or not worked_in(path):
        return None
    return _aside(lab)


def worked_in(path: Path) -> bool:
    """Whether a notebook that was handed out has other words in the cells that are to be written in."""
    from nbgrader.utils import compute_checksum, is_solution

    try:
        cells = nbformat.read(path, as_version=4).cells
        return any(
            compute_checksum(cell) != cell.metadata.nbgrader.get("checksum")
            for cell in cells
            if is_solution(cell)
        )
    except Exception:  # no notebook at all, or none of ours: not ours to throw away
        return True


def _aside(lab: str) -> Path:
    kept = _free(labs.ROOT / "kept" / f"{lab}-{datetime.now():%Y%m%d-%H%M%S}")
    kept.parent.mkdir(exist_ok=True)
    shutil.move(labs.LABS / lab, kept)
    return kept


def reset(lab: str) -> tuple[Path, Path | None]:
    """Puts a fresh copy of `lab` in labs/; returns its path and where the old one is kept (None: there was
    none).

    The old folder is moved to kept/ before the new one is put in its place, so nothing is ever lost.
    """
    labs.require(lab)
    folder = labs.LABS / lab
    kept = None
    fresh = labs.LABS / f".{lab}.fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        release(lab, fresh)
        if folder.exists():
            kept = _aside(lab)
        fresh.rename(folder)
    except OSError as error:
        raise PlainError(
            f"{folder} could not be replaced ({error}); close what uses it and try again."
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder / f"{lab}.ipynb", kept


def _free(path: Path) -> Path:
    number = 2
    candidate = path
    while candidate.exists():
        candidate = path.with_name(f"{path.name}-{number}")
        number += 1
    return candidate
