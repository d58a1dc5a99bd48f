"""Copying a folder that someone else may have written: regular files only, within bounds, never through a
link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ENTRIES = 2_000
DEPTH = 8
CHUNK = 1 << 20
Folders = tuple[str, ...]


class UnfitError(Exception):
    """A folder that cannot be carried at all; the message says why, and a second one may say more."""


@dataclass(frozen=True)
class Bounds:
    """How much may be carried: bytes in one file, bytes in all, and files."""

    file: int
    total: int
    files: int = 500


@dataclass
class Carried:
    """What a folder was found to hold: the names of the files copied, and a phrase for each thing that stayed
    behind.
    """

    files: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    bytes: int = 0

    def leave(self, name: str, why: str) -> None:
        """Notes that `name` stayed behind."""
        self.left_out.append(f"{name!r} ({why})")

    def told(self) -> str:
        """The things left out, as one phrase; "" where there are none."""
        more = len(self.left_out) - 5
        return ", ".join(self.left_out[:5]) + (f" and {more} more" if more > 0 else "")


@contextmanager
def opened(folder: Path, *, link: bool = False) -> Iterator[int]:
    """A descriptor of `folder`, which stays the same folder whatever is put in its place.

    UnfitError where it is a link (unless `link`) or no folder, OSError where it may not be opened.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if link else os.O_NOFOLLOW)
    try:
        descriptor = os.open(folder, flags)
    except NotADirectoryError:
        raise UnfitError("a link, or no folder") from None
    except OSError as error:
        if folder.is_symlink():
            raise UnfitError("a link") from None
        raise error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def carry(
    source: int, target: Path, bounds: Bounds, ignore: Callable[[str], bool], first: Iterable[str] = ()
) -> Carried:
    """Copies what lies in the open folder `source` into the folder `target`, which is there already.

    `ignore` says of a name that it stays behind without a word. The files called `first` come before others,
    which come by depth and size, so that what is large is left out first. OSError where `target` cannot be
    written.
    """
    done = Carried()
    owner = os.fstat(source).st_uid
    found = dict(regular(source, first))
    others = dict(_survey(source, done, ignore))
    found.update(sorted(others.items(), key=lambda item: (len(item[0]), item[1], item[0])))
    for names, size in found.items():
        if size > bounds.file:
            done.leave("/".join(names), f"{megabytes(size)}; one file may have {megabytes(bounds.file)}")
    for names, size in found.items():
        if size > bounds.file:
            continue
        if done.bytes + size > bounds.total or len(done.files) >= bounds.files:
            why = f"more than {megabytes(bounds.total)} or {bounds.files} files in all"
            done.leave("/".join(names), why)
        else:
            _copy(source, names, target, done, min(bounds.file, bounds.total - done.bytes), owner)
    return done


def regular(source: int, files: Iterable[str]) -> Iterator[tuple[Folders, int]]:
    """Those of the files so called in an open folder that are files and not links, with their sizes."""
    for name in files:
        with suppress(OSError):
            state = os.stat(name, dir_fd=source, follow_symlinks=False)
            if stat.S_ISREG(state.st_mode):
                yield tuple(name.split("/")), state.st_size


def _survey(source: int, done: Carried, ignore: Callable[[str], bool]) -> Iterator[tuple[Folders, int]]:
    """The files under a folder, with their sizes as they seem."""
    seen = 0
    todo: list[Folders] = [()]
    while todo:
        folders = todo.pop()
        try:
            descriptor = _enter(source, folders)
        except OSError:
            done.leave("/".join(folders), "cannot be read")
            continue
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if ignore(entry.name):
                        continue
                    seen += 1
                    if seen > ENTRIES:
                        done.leave("/".join((*folders, "...")), f"more than {ENTRIES} entries")
                        return
                    names = (*folders, entry.name)
                    why = _unfit(entry, len(names))
                    if why:
                        done.leave("/".join(names), why)
                    elif entry.is_dir(follow_symlinks=False):
                        todo.append(names)
                    else:
                        yield names, entry.stat(follow_symlinks=False).st_size
        except OSError:
            done.leave("/".join(folders) or ".", "cannot be read")
        finally:
            os.close(descriptor)


def _unfit(entry: os.DirEntry[str], depth: int) -> str:
    if not entry.name.isprintable():
        return "a name with signs that cannot be shown"
    if entry.is_symlink():
        return "a link"
    if entry.is_dir(follow_symlinks=False):
        return "too deep" if depth > DEPTH else ""
    return "" if entry.is_file(follow_symlinks=False) else "a pipe, socket or device"


def _enter(source: int, folders: Folders) -> int:
    """A descriptor of a folder below `source`, reached through no link."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=source)
    for name in folders:
        try:
            below = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor
            )
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _copy(source: int, names: Folders, target: Path, done: Carried, most: int, owner: int) -> None:
    name = "/".join(names)
    try:
        folder = _enter(source, names[:-1])
        try:
            # A pipe put here since would hold up an open that waits.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(names[-1], flags, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:
        done.leave(name, "cannot be read")
        return
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            done.leave(name, "no file any more")
            return
        if state.st_nlink > 1 and state.st_uid != owner:
            done.leave(name, "another user's file")
            return
        place = target.joinpath(*names)
        place.parent.mkdir(parents=True, exist_ok=True)
        copied = 0
        with place.open("xb") as out:
            while copied <= most:
                try:
                    chunk = file.read(CHUNK)
                except OSError:
                    copied = most + 1
                    break
                if not chunk:
                    break
                copied += len(chunk)
                out.write(chunk)
    if copied > most:
        place.unlink()
        done.leave(name, "grew or failed while it was read")
        return
    done.files.append(name)
    done.bytes += copied


def megabytes(size: int) -> str:
    """A size in bytes, in words."""
    return f"{size / 1e6:.0f} MB"
