"""Folders that appear whole or not at all: filled under a hidden name, then renamed."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl


STALE_SECONDS = 24 * 3600
"""After how long a hidden folder is no longer at work, but was left by a process that was killed."""


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
    """Undoes a `put` that was cut short, and clears away what it and others before it left behind."""
    clear(place)
    old = _old(place)
    if old.is_dir() and not place.exists():
        old.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def clear(place: Path) -> None:
    """Removes the hidden folders of one's own that were to become `place` long ago."""
    for hidden in place.parent.glob(f".{glob.escape(place.name[:100])}.{'[0-9a-f]' * 16}"):
        if stale(hidden):
            remove(hidden)


def stale(hidden: Path) -> bool:
    """Whether a hidden folder is one's own and was left behind."""
    try:
        state = hidden.lstat()
    except FileNotFoundError:
        return False
    return state.st_uid == os.getuid() and state.st_mtime < time.time() - STALE_SECONDS


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
