"""The student's copy holds what a student needs and nothing that holds an answer."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

import course
from autograder import bundle as module
from autograder import exchanging, labs
from autograder.bundle import bundle
from autograder.errors import PlainError

ROOT = Path(course.__file__).parent
REGION = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle(tmp_path_factory.mktemp("out") / "a copy")


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """(path, text without white space) of each file; of a notebook, the cells' text as it is shown."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix == ".ipynb":
            cells = nbformat.read(path, as_version=4).cells
            yield path, squeezed("\n".join(cell.source for cell in cells))
        elif path.is_file():
            yield path, squeezed(path.read_text(encoding="utf-8", errors="replace"))


def marks(region: str) -> Iterator[str]:
    """What gives an answer away: two of its lines in a row, or a long one, or a short answer's only line.

    One short line is no evidence: `except Exception as error:` stands in many a file.
    """
    lines = [squeezed(line) for line in region.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "import", "from"))]
    yield from (one + two for one, two in pairwise(lines) if len(one + two) >= 24)
    yield from (line for line in lines if len(line) >= 40 or (len(lines) == 1 and len(line) >= 12))


class Lab:
    """A solution notebook taken apart: the marks of its answers, and all that a student is shown."""

    def __init__(self, path: Path) -> None:
        self.answers: set[str] = set()
        self.shown = ""
        for cell in nbformat.read(path, as_version=4).cells:
            regions = [match.group(2) for match in REGION.finditer(cell.source)]
            if cell.metadata.get("nbgrader", {}).get("solution") and not regions:
                regions = [cell.source]
            else:
                self.shown += squeezed(REGION.sub("", cell.source))
            self.answers.update(mark for region in regions for mark in marks(region))


LABS = {path.stem: Lab(path) for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}


def leaks(folder: Path) -> list[tuple[str, str]]:
    """(file, mark) for each mark of an answer that a student could find and that only an answer holds.

    The pieces of the mini-framework and the instruments are there to be read, and what a lab itself shows is
    no secret.
    """
    package = folder / "shared" / "glassbox"
    readable = "".join(text for part in ("mini", "xray") for _, text in texts(package / part))
    held = list(texts(folder))
    return [
        (str(path.relative_to(folder)), mark)
        for lab in LABS.values()
        for mark in sorted(lab.answers)
        if mark not in readable and mark not in lab.shown
        for path, text in held
        if mark in text
    ]


def test_there_are_answers_to_look_for() -> None:
    assert list(LABS) == labs.known() != []
    assert min(len(lab.answers) for lab in LABS.values()) > 30


def test_it_holds_no_answer(copy: Path) -> None:
    assert leaks(copy) == []


HINT = """
    for dim in (1, *range(ndim - 1, 1, -1), 0):
        strides[dim] = step
"""


@pytest.mark.parametrize("place", ["labs/lab1_storage/lab1_storage.ipynb", "shared/glassbox/tasks/hint.py"])
def test_an_answer_put_into_it_would_be_found(copy: Path, tmp_path: Path, place: str) -> None:
    spoilt = tmp_path / "spoilt"
    shutil.copytree(copy, spoilt)
    path = spoilt / place
    if path.suffix == ".ipynb":
        shutil.copy(ROOT / "solutions" / "lab1_storage" / path.name, path)
    else:
        path.write_text(HINT)
    assert {where for where, _ in leaks(spoilt)} == {place}


def test_it_holds_these_and_nothing_else(copy: Path) -> None:
    allowed = {*module.FILES, *module.FOLDERS, "labs"}
    assert {path.name for path in copy.iterdir()} <= allowed
    for name in (
        "README.md",
        "LICENSE",
        "course.py",
        "notebooks/00_start.ipynb",
        "shared/glassbox/__init__.py",
        "shared/glassbox/widgets/export.py",
    ):
        assert (copy / name).is_file()
    names = {part for path in copy.rglob("*") for part in path.relative_to(copy).parts}
    unwanted = {"solutions", "tests", ".git", ".venv", "__pycache__", "gradebook.db", "submitted", "results"}
    assert names & unwanted == set()


def test_every_lab_is_in_it_and_as_the_master_that_grading_goes_by(copy: Path) -> None:
    assert [path.name for path in sorted((copy / "labs").iterdir())] == labs.known()
    for lab in labs.known():
        handed_out = (copy / "labs" / lab / f"{lab}.ipynb").read_bytes()
        assert handed_out == (copy / "autograder" / "masters" / lab / f"{lab}.ipynb").read_bytes()


def test_its_notebooks_hold_no_outputs(copy: Path) -> None:
    for path in copy.rglob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == [], path


def test_outputs_are_taken_out_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    output = {"output_type": "stream", "name": "stdout", "text": ["secret"]}
    code = {"cell_type": "code", "source": ["1"], "outputs": [output], "execution_count": 3, "metadata": {}}
    words = {"cell_type": "markdown", "source": ["é"], "metadata": {}}
    path.write_text(json.dumps({"cells": [code, words], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    module.strip(path)
    assert json.loads(path.read_text(encoding="utf-8"))["cells"] == [
        {**code, "outputs": [], "execution_count": None},
        words,
    ]


def test_the_copy_works_by_itself(copy: Path) -> None:
    """Its own autograder knows the labs, though there are no solutions."""
    code = "import autograder.labs as labs; print(labs.ROOT, *labs.known())"
    ended = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    assert ended.stdout.split("\n")[0] == " ".join([str(copy.resolve()), *labs.known()]), ended.stderr


def test_a_zip_holds_the_same_under_one_folder(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "fill", lambda folder: shutil.copytree(copy, folder))
    with zipfile.ZipFile(bundle(tmp_path / "mine.zip")) as packed:
        names = set(packed.namelist())
    here = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert names == {f"mine/{name}" for name in here}
    assert [path.name for path in tmp_path.iterdir()] == ["mine.zip"]


def test_without_a_target_it_is_a_zip_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "fill", Path.mkdir)
    assert bundle() == tmp_path / "glassbox-student.zip"


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "mine.zip"
    mine.write_text("mine")
    with pytest.raises(PlainError, match="exists already: move it away or name another place"):
        bundle(mine)
    assert mine.read_text() == "mine"


def test_a_target_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(PlainError, match="There is no folder .*nowhere to put a into"):
        bundle(tmp_path / "nowhere" / "a")


def test_a_bundle_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILES", (*module.FILES, "absent.txt"))
    with pytest.raises(PlainError, match=r"absent\.txt is missing"):
        bundle(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_class_with_an_exchange_gets_its_labs_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "FOLDERS", ("docs", "notebooks", "autograder")
    )  # the rest changes nothing and is large
    root = tmp_path / "clone"
    root.mkdir()
    for name in (*module.FILES, *module.FOLDERS):
        if (ROOT / name).exists():
            (root / name).symlink_to(ROOT / name)
    monkeypatch.setattr(labs, "ROOT", root)
    exchanging.choose(root, tmp_path / "class")
    made = bundle(tmp_path / "copy")
    assert exchanging.chosen(made) == tmp_path / "class"
    assert list((made / "labs").iterdir()) == []
    assert (made / "autograder" / "masters" / "lab1_storage" / "lab1_storage.ipynb").is_file()
