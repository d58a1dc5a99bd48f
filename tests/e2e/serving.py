"""A JupyterLab of a course folder, as `course.py lab` starts it, for one person with a home of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar
from urllib.parse import quote

import course

TOKEN = "e2e"
START_SECONDS = 90  # many times what a start takes, since other work may share the machine
STOP_SECONDS = 15

# The system's colours are followed; a cell that is not on the screen has no DOM otherwise.
LAB_SETTINGS = {
    "apputils-extension/themes": {"adaptive-theme": True},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
# Settings of this process that would lead a server to somebody else's files or user.
FOREIGN = ("JUPYTER", "IPYTHON", "NBGRADER", "XDG_", "PYTEST_")
FOLDERS = {
    "HOME": ".",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
    "MPLCONFIGDIR": "matplotlib",
}


def copy_course(folder: Path) -> Path:
    """Copies the course, as it stands and without what running it has left, into a new `folder`."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=course.ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = course.ROOT / name, folder / name
        # git still lists a file that was deleted and not committed
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Apart(course.Environment):
    """The environment of a course folder, with this Python in place of the one in .venv, for one person."""

    def __init__(self, folder: Path, home: Path, user: str) -> None:
        super().__init__(folder)
        self.path, self.bin = Path(sys.prefix), Path(sys.executable).parent
        self.python = Path(sys.executable)
        self.jupyter = home / "config" / "jupyter_config.json"
        self.home, self.user = home, user

    def variables(self) -> dict[str, str]:
        """The process environment of whatever this person runs; the folder's own packages come first."""
        kept = {name: value for name, value in super().variables().items() if not name.startswith(FOREIGN)}
        kept.update({name: str(self.home / place) for name, place in FOLDERS.items()})
        kept.update(dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME"), self.user))
        kept["PYTHONPATH"] = os.pathsep.join([str(self.root / "shared"), str(self.root)])
        return kept


class Jupyter:
    """A server to use in a `with` statement; it is up inside.

    folder      the course's folder, whose own `autograder` and `shared` are used
    home        a folder for all that belongs to the person: settings, data, workspaces
    user        their login name
    extra_argv  further arguments for the server
    instructor  what `course.py lab --instructor` starts
    """

    running: ClassVar[list[Jupyter]] = []

    def __init__(
        self,
        folder: Path,
        home: Path,
        user: str = "reader",
        extra_argv: Sequence[str] = (),
        instructor: bool = False,
    ) -> None:
        self.folder, self.home, self.user = folder.resolve(), home.resolve(), user
        self.extra_argv, self.instructor = list(extra_argv), instructor
        self.environment = Apart(self.folder, self.home, user)
        self.port = 0
        self.log = self.home / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.seed()

    def seed(self) -> None:
        """Makes the home and puts into it what the course's set-up and the tests need there."""
        for name, settings in LAB_SETTINGS.items():
            path = self.home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings), encoding="utf-8")
        self.environment.write_settings()

    # Start and stop

    def argv(self) -> list[str]:
        ours = [
            f"--IdentityProvider.token={TOKEN}",
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
        ]
        lab = course.lab_argv(self.environment, self.port, True, self.instructor)
        return [*lab, *ours, *self.extra_argv]

    def start(self) -> Jupyter:
        """Starts the server and waits until it answers; RuntimeError with its log if it does not."""
        self.port = free_port()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv(),
                cwd=self.folder,
                env=course.lab_variables(self.environment, self.instructor),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        Jupyter.running.append(self)
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"JupyterLab of {self.user} did not start:\n{self.tail()}")
            time.sleep(0.1)
        return self

    def answers(self) -> bool:
        try:
            self.get("/api/status")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def stop(self) -> None:
        """Ends the server, its kernels and all else that it started."""
        if self.process is None:
            return
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        Jupyter.running.remove(self)

    def __enter__(self) -> Jupyter:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def end_kernels(self) -> None:
        """Shuts down every kernel, so that the next notebook starts from nothing."""
        for session in self.get("/api/sessions"):
            request = urllib.request.Request(self.address(f"/api/sessions/{session['id']}"), method="DELETE")
            urllib.request.urlopen(request, timeout=30).close()

    # What it is asked

    def address(self, path: str, **query: str) -> str:
        """The full address of a path on this server, signed in."""
        more = "".join(f"&{name}={quote(value)}" if value else f"&{name}" for name, value in query.items())
        return f"http://127.0.0.1:{self.port}{quote(path)}?token={TOKEN}{more}"

    def get(self, path: str) -> Any:
        """What a REST address of the server gives, as JSON."""
        with urllib.request.urlopen(self.address(path), timeout=10) as answer:
            return json.load(answer)

    def ask(self, path: str, body: bytes | None = None, token: bool = True) -> tuple[int, str, Message]:
        """The status, the text and the headers of an answer; a request with a body is a POST."""
        address = self.address(path) if token else self.address(path).partition("?")[0]
        try:
            with urllib.request.urlopen(urllib.request.Request(address, data=body), timeout=300) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def tail(self, lines: int = 60) -> str:
        """The end of the server's log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
