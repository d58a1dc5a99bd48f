"""Running a submission for a grade: a kernel of ours, armed checks, answers taken off the channel."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir
from nbclient.client import NotebookClient
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import Execute
from traitlets import Bool, Integer, Unicode, default

from glassbox.tasks import catalogue
from glassbox.tasks.answering import MIME

from . import kernel
from .cells import ANSI, is_check, runs, task_id
from .judge import Sheet, attempt_name, new_seed, sheet

CELL_BYTES = 200_000
OVERRUN = "CellTimeoutError"
"""What nbclient calls the error in a cell that was interrupted since its time was up."""
DIED = "DeadKernelError"
NOT_RUN = "NotRun"
STOPPED = {
    OVERRUN: "did not end in time and was stopped",
    DIED: "ended the process that it ran in",
    NOT_RUN: "was not run, since the notebook used up its time or its kernels",
}
"""Errors that say how a cell was stopped, in words."""
CELL_FILE = re.compile(r"\(\S*\.py, line (\d+)\)$")


def trouble(cell: NotebookNode) -> tuple[str, str]:
    """What went wrong in a cell that ran: the kind of error, and words to be read after the cell's name; two
    empty texts where nothing did.
    """
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if not errors:
        return "", ""
    # What stopped a cell explains what else it raised.
    error = next((one for one in errors if one.ename in STOPPED), errors[0])
    if error.ename in STOPPED:
        return error.ename, STOPPED[error.ename]
    # Of the file that IPython makes of a cell, only the line means something to a reader.
    message = CELL_FILE.sub(r"(line \1 of the cell)", ANSI.sub("", error.evalue))
    return error.ename, f"raised {error.ename}: {message}" if message else f"raised {error.ename}"


class GradedExecute(Execute):
    """Runs a submission in a grading kernel, arms each check cell just before it runs, and takes the answers
    off.

    A cell that kills or blocks the kernel costs only itself: a fresh kernel replays the cells before it.
    Leaves the sheets in `resources["glassbox"]`, by grade id.
    """

    seed = Unicode(help="Replays the attempt with this seed instead of drawing a fresh one.").tag(config=True)
    attempt_log = Unicode(help="Private log of attempts, in lines of JSON; empty: none.").tag(config=True)
    timeout = Integer(10, help="Time for a cell that is no check, in seconds.").tag(config=True)
    notebook_seconds = Integer(
        300, help="Time for a whole notebook, in seconds; cells after that are not run."
    ).tag(config=True)
    max_losses = Integer(6, help="How many overruns and lost kernels a notebook may have.").tag(config=True)
    coalesce_streams = Bool(True)
    # Widgets' states are of no use to a grade, and grow without bound if a kernel likes.
    store_widget_state = Bool(False)

    @default("attempt_log")
    def _attempt_log_default(self) -> str:
        return str(Path(jupyter_data_dir()) / "glassbox" / "attempts.jsonl")

    @default("shutdown_kernel")
    def _shutdown_kernel_default(self) -> str:
        return "immediate"

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Executes the notebook in place."""
        assert resources is not None
        NotebookClient.__init__(self, nb, km)
        self.reset_execution_trackers()
        self._check_assign_resources(resources)
        place = resources["nbgrader"]
        seed = self.seed or new_seed()
        self._assignment = place["assignment"]
        self._sheets: dict[str, Sheet] = {}
        self._problems: dict[str, str] = {}
        self._open: Sheet | None = None
        self._spent: dict[int, int] = {}
        self._losses = 0
        self._lost: set[int] = set()
        self._group: int | None = None
        try:
            with _private_copy(resources.get("metadata", {}).get("path")) as (folder, home):
                self._folder, self._home = folder, home
                self._run_all(nb, seed)
        finally:
            # Only now, so that the seed of an attempt is nowhere on disk while its code runs.
            self._log_attempt(place, seed)
        resources["glassbox"] = {
            "attempt": attempt_name(seed),
            "sheets": self._sheets,
            "problems": self._problems,
        }
        return nb, resources

    def _log_attempt(self, place: dict[str, Any], seed: str) -> None:
        if not self.attempt_log:
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "student": place["student"],
            "assignment": place["assignment"],
            "notebook": place["notebook"],
            "attempt": attempt_name(seed),
            "seed": seed,
        }
        path = Path(self.attempt_log)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _run_all(self, nb: NotebookNode, seed: str) -> None:
        self._deadline = time.monotonic() + self.notebook_seconds
        self._begin()
        try:
            for index, cell in enumerate(nb.cells):
                if not runs(cell):
                    continue
                if self.kc is None or self._late():
                    self._fail(cell, NOT_RUN, STOPPED[NOT_RUN])
                    continue
                try:
                    self._run_cell(cell, index, seed)
                except Exception as error:
                    # A dead kernel, a loop, a message that cannot be parsed: this cell's loss and no other's.
                    self._lost.add(index)
                    self._fail(cell, type(error).__name__, _first_line(error))
                    self._end()
                    self._replay(nb, index)
                finally:
                    self._open = None
        finally:
            self._end()

    def _run_cell(self, cell: NotebookNode, index: int, seed: str) -> None:
        if is_check(cell):
            self._arm(cell.metadata.nbgrader["grade_id"], seed)
        self.execute_cell(cell, index, store_history=True)
        kind, what = trouble(cell)
        if what:
            self._note(cell, what)
        if kind == OVERRUN:
            self._lost.add(index)
            self._losses += 1
            if self._losses > self.max_losses:
                raise TimeoutError("too many cells ran out of time")

    def _arm(self, grade_id: str, seed: str) -> None:
        try:
            task = catalogue.find(task_id(self._assignment, grade_id))
        except KeyError as error:
            self.log.error("The check cell %s has no task, so it scores 0: %s", grade_id, error)
            return
        asked = sheet(task, seed)
        self._sheets[grade_id] = asked
        assert self.kc is not None
        request = f"__import__('glassbox.tasks.answering', fromlist=['arm']).arm({asked.orders()!r})"
        self.wait_for_reply(self.kc.execute(request, silent=True, store_history=False, stop_on_error=False))
        self._open = asked

    def _replay(self, nb: NotebookNode, upto: int) -> None:
        """Starts a fresh kernel and runs the cells before `upto` again, without checks and lost ones."""
        while self._losses < self.max_losses and not self._late():
            self._losses += 1
            self._begin()
            for index in range(upto):
                cell = nb.cells[index]
                if not runs(cell) or is_check(cell) or index in self._lost:
                    continue
                if self._late():
                    return
                try:
                    self.execute_cell(copy.deepcopy(cell), index, store_history=True)
                except Exception:
                    self._lost.add(index)
                    self._end()
                    break
                finally:
                    nb.cells[index] = cell
            else:
                return

    def _late(self) -> bool:
        return time.monotonic() > self._deadline

    def _fail(self, cell: NotebookNode, name: str, message: str) -> None:
        cell.outputs = [new_output("error", ename=name, evalue=message, traceback=[f"{name}: {message}"])]
        self._note(cell, trouble(cell)[1])

    def _note(self, cell: NotebookNode, what: str) -> None:
        """Keeps what went wrong in a piece's cell or in its check; the first explains the second."""
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if is_check(cell):
            self._problems.setdefault(name, f"the check cell {what}"[:300])
        elif name is not None:
            self._problems.setdefault(f"check_{name}", f"the cell of your function {what}"[:300])

    def _begin(self) -> None:
        self.km = self.create_kernel_manager()
        # A process that a cell detached would hold streams open that our caller reads to their end.
        self.start_new_kernel(
            cwd=str(self._folder),
            env=kernel.environment(self._home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        provisioner = self.km.provisioner
        self._group = getattr(provisioner, "pgid", None)
        self.start_new_kernel_client()
        assert self.kc is not None
        self.wait_for_reply(self.kc.kernel_info())

    def _end(self) -> None:
        if self.km is not None:
            with contextlib.suppress(Exception):
                self._cleanup_kernel()
        # Children that a cell started in the background end with their kernel.
        if self._group and hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)
        self._group = None
        self.km = self.kc = None

    def create_kernel_manager(self) -> Any:
        """A manager of the grading kernel, whatever kernel the notebook names."""
        with_torch = catalogue.uses_torch(self._assignment)
        return kernel.GradingKernelManager(with_torch, config=self.config)

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        if self._open is not None and cell is not None:
            return int(self._open.seconds())
        return super()._get_timeout(cell)

    def output(self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str, cell_index: int) -> Any:
        """Takes answers off the channel as they arrive, and bounds what a cell may leave in the notebook."""
        data = msg["content"].get("data")
        if isinstance(data, dict) and MIME in data:
            if self._open is not None and msg["msg_type"] == "display_data":
                self._open.take(data[MIME])
            return None
        size = len(json.dumps(msg["content"], default=str))
        spent = self._spent.get(cell_index, 0)
        self._spent[cell_index] = spent + size
        if spent + size > CELL_BYTES:
            return None
        return super().output(outs, msg, display_id, cell_index)


@contextlib.contextmanager
def _private_copy(path: str | None) -> Iterator[tuple[Path, Path]]:
    """A copy of the submission's folder without notebooks and links, and an empty home; both go at the end.

    In the folder itself a submission could put a link in the place of the notebook that nbgrader is about to
    write.
    """
    with tempfile.TemporaryDirectory(prefix="glassbox-grade-", ignore_cleanup_errors=True) as top:
        folder, home = Path(top) / "work", Path(top) / "home"
        home.mkdir()
        if path:
            shutil.copytree(path, folder, symlinks=True, ignore=_notebooks_and_links)
        else:
            folder.mkdir()
        yield folder, home


def _notebooks_and_links(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(".ipynb") or (Path(folder) / name).is_symlink()]


def _first_line(error: Exception) -> str:
    text = ANSI.sub("", str(error)).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__
