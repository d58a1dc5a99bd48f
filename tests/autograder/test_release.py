"""Making labs from solutions, and fresh copies of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder import labs
from autograder import release as release_module
from autograder.__main__ import main
from autograder.errors import PlainError
from autograder.release import release, reset
from glassbox.tasks import catalogue

ALL = labs.known()
LAB = ALL[0]


@pytest.mark.parametrize("lab", ALL)
def test_labs_are_in_step_with_solutions(lab: str, tmp_path: Path) -> None:
    fresh = release(lab, tmp_path / lab)
    committed = labs.LABS / lab / f"{lab}.ipynb"
    assert committed.read_text() == fresh.read_text(), "run `python3 course.py labs`"


@pytest.mark.parametrize("lab", ALL)
def test_every_check_has_a_task_of_the_same_worth_and_every_task_a_check(lab: str) -> None:
    notebook = nbformat.read(labs.SOLUTIONS / lab / f"{lab}.ipynb", as_version=4)
    checks = {}
    for cell in notebook.cells:
        record = cell.metadata.get("nbgrader", {})
        if record.get("grade") and not record.get("solution"):
            short = lab.partition("_")[0]
            checks[f"{short}.{record['grade_id'].removeprefix('check_')}"] = record["points"]
            assert record["locked"]
    tasks = catalogue.tasks(lab)
    assert checks == {name: task.points for name, task in tasks.items()}
    assert sum(checks.values()) == 100


@pytest.mark.parametrize("lab", ALL)
def test_a_release_holds_no_solution_and_no_marking_scheme(lab: str, tmp_path: Path) -> None:
    text = release(lab, tmp_path / lab).read_text()
    for trace in ("BEGIN SOLUTION", "END SOLUTION", "MARK SCHEME", "HIDDEN TESTS"):
        assert trace not in text
    assert "raise NotImplementedError" in text


@pytest.mark.parametrize("lab", ALL)
def test_cells_are_named_as_their_grade_ids_so_that_lost_metadata_can_be_restored(lab: str) -> None:
    notebook = json.loads((labs.LABS / lab / f"{lab}.ipynb").read_text())
    for cell in notebook["cells"]:
        record = cell["metadata"].get("nbgrader")
        if record:
            assert cell["id"] == record["grade_id"]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(labs, "ROOT", tmp_path)
    monkeypatch.setattr(labs, "LABS", tmp_path / "labs")
    return tmp_path


def test_reset_gives_a_fresh_copy_and_keeps_the_old_one(room: Path) -> None:
    fresh, kept = reset("lab1_storage")
    assert kept is None
    whole = fresh.read_text()
    fresh.write_text("my work")
    (fresh.parent / "notes.txt").write_text("mine")
    again, kept = reset("lab1_storage")
    assert again.read_text() == whole
    assert kept is not None
    assert kept.parent == room / "kept"
    assert (kept / "lab1_storage.ipynb").read_text() == "my work"
    assert (kept / "notes.txt").read_text() == "mine"
    assert [path.name for path in (room / "labs").iterdir()] == ["lab1_storage"]


def test_resets_in_the_same_second_keep_every_copy(room: Path) -> None:
    kept = set()
    for number in range(3):
        fresh, old = reset("lab1_storage")
        kept.add(old)
        fresh.write_text(str(number))
    assert sorted(path.joinpath("lab1_storage.ipynb").read_text() for path in kept if path) == ["0", "1"]


def test_a_failed_reset_leaves_the_work_where_it_was(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, _ = reset("lab1_storage")
    fresh.write_text("my work")

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("autograder.release.shutil.move", full)
    with pytest.raises(PlainError, match="no space left"):
        reset("lab1_storage")
    assert fresh.read_text() == "my work"
    assert [path.name for path in (room / "labs").iterdir()] == ["lab1_storage"]


def test_an_unknown_lab_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PlainError, match="did you mean lab1_storage"):
        labs.require("lab1_store")
    with pytest.raises(PlainError, match="the labs are lab1_storage"):
        labs.require("zzz")


@pytest.mark.parametrize("lab", ALL)
def test_what_a_task_gives_to_read_again_stands_in_the_notebook(lab: str) -> None:
    for task in catalogue.tasks(lab).values():
        number, heading = task.read.removeprefix("notebook ").split(", ", 1)
        (path,) = (labs.ROOT / "notebooks").glob(f"{number}_*.ipynb")
        headings = [
            line.lstrip("# ").replace("`", "")
            for cell in nbformat.read(path, as_version=4).cells
            if cell.cell_type == "markdown"
            for line in cell.source.splitlines()
            if line.startswith("#")
        ]
        assert heading in headings, task.id


def written(folder: Path, lab: str) -> Path:
    """A lab in which somebody has written a piece."""
    path = folder / lab / f"{lab}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cell = next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("solution"))
    cell.source = "my_work = 1"
    nbformat.write(notebook, path)
    return path


@pytest.mark.slow
def test_somebodys_work_is_kept_when_labs_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(labs, "LABS", tmp_path / "labs")
    monkeypatch.setattr(labs, "ROOT", tmp_path)
    fresh = tmp_path / "labs" / LAB / f"{LAB}.ipynb"
    assert main(["labs"]) == 0 and main(["labs"]) == 0
    assert not (tmp_path / "kept").exists()
    released = fresh.read_bytes()
    work = written(tmp_path / "labs", LAB).read_bytes()
    capsys.readouterr()
    assert main(["labs"]) == 0
    assert "is kept in" in capsys.readouterr().err
    (kept,) = (tmp_path / "kept").glob(f"{LAB}-*/{LAB}.ipynb")
    assert (kept.read_bytes(), fresh.read_bytes()) == (work, released)


@pytest.mark.parametrize("text", ["", "no notebook"])
def test_what_cannot_be_read_is_kept_too(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.ipynb"
    path.write_text(text)
    assert release_module.worked_in(path)


def test_steps_wait_for_each_other(tmp_path: Path) -> None:
    order = tmp_path / "order"
    code = (
        "import sys, time; from pathlib import Path; from autograder.turns import turn\n"
        "with turn(Path(sys.argv[1])):\n"
        "    with open(sys.argv[2], 'a') as f: f.write('in '); f.flush(); time.sleep(0.5); f.write('out ')\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path), str(order)]
    running = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[1] for process in running]
    assert order.read_text().split() == ["in", "out"] * 3
    assert sum("waiting for it" in text for text in said) == 2
