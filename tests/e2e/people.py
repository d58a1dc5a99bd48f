"""Other users of this system, as whom a test run by root can start programs."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

from serving import Jupyter

import course


def become(name: str) -> list[str]:
    """What to put before a command so that the system user `name` runs it, with no right of root's.

    Where this Python or the course lies in a folder that others may not enter, such as root's home, that
    user gets a view of the system in which only these are in its place.
    """
    user = pwd.getpwnam(name)
    words = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/"]
    for path in {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), course.ROOT}:
        shut = [folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001]
        if shut:
            if str(shut[0]) not in words:
                words += ["--tmpfs", str(shut[0])]
            between = [folder for folder in reversed(path.parents) if shut[0] in folder.parents]
            words += [word for folder in between for word in ("--perms", "0755", "--dir", str(folder))]
            words += ["--ro-bind", str(path), str(path)]
    ids = ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
    return [*words, "--", "setpriv", *ids, "--"]


def give(folder: Path, name: str) -> None:
    """Makes `folder` and all in it the user's own, closed to others."""
    user = pwd.getpwnam(name)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    folder.chmod(0o700)


def run(name: str, server: Jupyter, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python command line as that user, in their copy of the course."""
    argv = [*become(name), sys.executable, *words]
    return subprocess.run(
        argv, cwd=server.folder, env=server.environment.variables(), capture_output=True, text=True
    )


class Person(Jupyter):
    """A server that runs as the system user whose name it gets."""

    def seed(self) -> None:
        """Makes the home, which is theirs."""
        super().seed()
        give(self.home, self.user)

    def argv(self) -> list[str]:
        """The command line, run by that user."""
        return [*become(self.user), *super().argv()]
