"""What plugs into nbgrader's autograding: repair the submission's cells, run them with armed checks, write
the verdict.

nbgrader itself is unchanged; `nbgrader_config.py` names these classes in its two lists of preprocessors.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from glassbox.tasks import catalogue
from glassbox.tasks.answering import MIME
from jupyter_core.paths import jupyter_data_dir
from nbclient.client import NotebookClient
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets import Bool, Integer, Unicode, default

from . import kernel
from .judge import Sheet, attempt_name, judge, new_seed, sheet
from .report import Verdict

CELL_BYTES = 200_000
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def task_id(assignment: str, grade_id: str) -> str:
    """The task behind a check cell: "lab1.expand" for the cell "check_expand" of "lab1_storage"."""
    return f"{assignment.partition('_')[0]}.{grade_id.removeprefix('check_')}"


def is_check(cell: NotebookNode) -> bool:
    """True for a locked code cell that is worth points."""
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def _runs(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.source.strip())


class RestoreCells(NbGraderPreprocessor):
    """Brings a submission's cells back to what was handed out, whatever was done to their metadata.

    Cells are known by their grade id, or by their cell id where the metadata is gone. Check cells get their
    source, place in the gradebook and points back; a missing one is put at the end; of several copies the
    last one stays. Tags go, since one of them would keep a cell from running.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Repairs the notebook in place."""
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(place["notebook"], place["assignment"])
            points = {cell.name: float(cell.max_score) for cell in notebook.grade_cells}
            solutions = {cell.name for cell in notebook.solution_cells}
            known = {
                source.name: {
                    "source": source.source,
                    "cell_type": source.cell_type,
                    "metadata": {
                        "schema_version": 3,
                        "grade_id": source.name,
                        "grade": source.name in points,
                        "solution": source.name in solutions,
                        "locked": bool(source.locked),
                        "task": False,
                        "cell_type": source.cell_type,
                        "checksum": source.checksum,
                        **({"points": points[source.name]} if source.name in points else {}),
                    },
                }
                for source in notebook.source_cells
            }
        self.restore(nb, known)
        return nb, resources

    def restore(self, nb: NotebookNode, known: dict[str, dict[str, Any]]) -> None:
        """The repair itself; `known` maps grade ids to source, cell type and metadata as handed out."""
        seen: set[str] = set()
        for place in range(len(nb.cells) - 1, -1, -1):
            cell = nb.cells[place]
            cell.metadata.pop("tags", None)
            cell.source = cell.source.replace("\r\n", "\n")
            name = _name(cell, known)
            cell.metadata.pop("nbgrader", None)
            if name is None or name in seen:
                continue
            seen.add(name)
            given = known[name]
            if given["metadata"]["locked"] or cell.cell_type != given["cell_type"]:
                source = given["source"] if given["metadata"]["locked"] else cell.source
                cell = _new_cell(given["cell_type"], source, cell.get("id"))
                nb.cells[place] = cell
            cell.metadata["nbgrader"] = copy.deepcopy(given["metadata"])
        for name, given in known.items():
            if name not in seen and given["metadata"]["grade"]:
                self.log.warning("The cell %s was missing; it is put back at the end.", name)
                cell = _new_cell(given["cell_type"], given["source"], None)
                cell.metadata["nbgrader"] = copy.deepcopy(given["metadata"])
                nb.cells.append(cell)


def _name(cell: NotebookNode, known: dict[str, dict[str, Any]]) -> str | None:
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    for candidate in (name, cell.get("id")):
        if isinstance(candidate, str) and candidate in known:
            return candidate
    return None


def _new_cell(cell_type: str, source: str, identity: str | None) -> NotebookNode:
    make = new_code_cell if cell_type == "code" else new_markdown_cell
    return make(source, id=identity) if identity else make(source)


class GradedExecute(Execute):
    """Runs a submission in a grading kernel, arms each check cell just before it runs, and takes the answers
    off.

    A cell that kills or blocks the kernel costs only itself: a fresh kernel replays the cells before it.
    Leaves the sheets in `resources["glassbox"]`, by grade id.
    """

    seed = Unicode(help="Replays the attempt with this seed instead of drawing a fresh one.").tag(config=True)
    attempt_log = Unicode(help="Private log of attempts and seeds, a line of JSON each.").tag(config=True)
    timeout = Integer(10, help="Time for a cell that is no check, in seconds.").tag(config=True)
    # A cell that overruns loses its kernel: waiting for an interrupt to work is what a hostile cell plays on.
    interrupt_on_timeout = Bool(False)
    notebook_seconds = Integer(
        300, help="Time for a whole notebook, in seconds; cells after that are not run."
    ).tag(config=True)
    max_restarts = Integer(3, help="How many kernels a submission may lose.").tag(config=True)
    coalesce_streams = Bool(True)

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
        self._restarts = 0
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
        lost: set[int] = set()
        self._begin()
        try:
            for index, cell in enumerate(nb.cells):
                if not _runs(cell):
                    continue
                if self.kc is None or self._late():
                    self._fail(
                        cell, "NotRun", "this cell was not run: the notebook used up its time or its kernels"
                    )
                    continue
                try:
                    self._run_cell(cell, index, seed)
                except Exception as error:
                    # A dead kernel, a loop, a message that cannot be parsed: this cell's loss and no other's.
                    lost.add(index)
                    self._fail(cell, type(error).__name__, _first_line(error))
                    self._end()
                    self._replay(nb, index, lost)
                finally:
                    self._open = None
        finally:
            self._end()

    def _run_cell(self, cell: NotebookNode, index: int, seed: str) -> None:
        if is_check(cell):
            self._arm(cell.metadata.nbgrader["grade_id"], seed)
        self.execute_cell(cell, index, store_history=True)
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors and is_check(cell):
            error = errors[-1]
            self._problems[cell.metadata.nbgrader["grade_id"]] = (
                f"the check cell raised {error.ename}: {error.evalue}"[:300]
            )

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

    def _replay(self, nb: NotebookNode, upto: int, lost: set[int]) -> None:
        """Starts a fresh kernel and runs the cells before `upto` again, without checks and lost ones."""
        while self._restarts < self.max_restarts and not self._late():
            self._restarts += 1
            self._begin()
            for index in range(upto):
                cell = nb.cells[index]
                if not _runs(cell) or is_check(cell) or index in lost:
                    continue
                if self._late():
                    return
                try:
                    self.execute_cell(copy.deepcopy(cell), index, store_history=True)
                except Exception:
                    lost.add(index)
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
        if is_check(cell):
            self._problems[cell.metadata.nbgrader["grade_id"]] = message

    def _begin(self) -> None:
        self.km = self.create_kernel_manager()
        self.start_new_kernel(cwd=str(self._folder), env=kernel.environment(self._home))
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
        return kernel.GradingKernelManager(config=self.config)

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


class Judge(NbGraderPreprocessor):
    """Writes the verdict on each check cell into its outputs, where nbgrader looks for a partial score. Fails
    closed.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Replaces the outputs of a check cell by the score with its report, then what was printed."""
        if not is_check(cell):
            if cell.cell_type == "code":
                cell.outputs = _within(cell.outputs)
            return cell, resources
        grade_id = cell.metadata.nbgrader["grade_id"]
        held = resources.get("glassbox", {})
        asked = held.get("sheets", {}).get(grade_id)
        problem = held.get("problems", {}).get(grade_id, "")
        printed = _printed(cell.outputs)
        if asked is None:
            verdict = Verdict.unknown(grade_id, problem or "the judge has no record of this cell")
            self.log.error("No record of the check cell %s; it scores 0.", grade_id)
        else:
            verdict = Verdict.of(judge(asked, held["attempt"], problem, printed))
        cell.outputs = verdict.outputs(float(cell.metadata.nbgrader["points"]))
        return cell, resources


def _within(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Drops outputs above the size limit: an update of a display does not pass where others are counted."""
    return [output for output in outputs if len(json.dumps(output, default=str)) <= CELL_BYTES]


def _printed(outputs: list[NotebookNode]) -> str:
    """What a check cell printed, and its traceback, as text."""
    parts = [output.text for output in outputs if output.output_type == "stream"]
    parts += ["\n".join(output.traceback) for output in outputs if output.output_type == "error"]
    return ANSI.sub("", "".join(parts))[:4000]
