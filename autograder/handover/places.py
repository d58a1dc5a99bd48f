"""Folders that appear whole or not at all: filled under a hidden name, then renamed."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl


class BusyError(Exception):
    """Another process has the lock."""


@contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """A new hidden folder beside `place`; afterwards it is gone, unless it was renamed."""
    fresh = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}")
    fresh.mkdir()
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def put(fresh: Path, place: Path) -> None:
    """Renames the folder `fresh` to `place`; what was there goes, and comes back where that fails."""
    old = _old(place)
    had = place.is_dir()
    if had:
        place.rename(old)
    try:
        fresh.rename(place)
    except BaseException:
        if had:
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def recover(place: Path) -> None:
    """Undoes a `put` that was cut short, and clears away what it left behind."""
    old = _old(place)
    if old.is_dir() and not place.exists():
        old.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def remove(place: Path) -> None:
    """Removes a folder, if there is one."""
    shutil.rmtree(place, ignore_errors=True)


def take_away(place: Path) -> None:
    """Removes a folder; it is gone at once, as a whole."""
    hidden = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}")
    place.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def write(path: Path, content: bytes, mode: int) -> None:
    """Writes a file whole, over one that is there."""
    fresh = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        fresh.write_bytes(content)
        fresh.chmod(mode)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds the lock of `folder`, which ends with the process. BusyError where another process has it."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)


def _old(place: Path) -> Path:
    return place.with_name(f".{place.name}.old")
