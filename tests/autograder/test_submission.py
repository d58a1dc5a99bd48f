"""What is read of a notebook that was handed in: bounds, repairs, and sentences where neither helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder import submission
from autograder.errors import PlainError
from autograder.intake import CELL_TEXT, SubmissionExporter
from autograder.submission import opened

Change = Callable[[dict[str, Any]], None]


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def plain() -> dict[str, Any]:
    record = {"grade_id": "address", "grade": False, "solution": True, "locked": False, "schema_version": 3}
    ours = new_code_cell("def address(): pass", id="address", metadata={"nbgrader": record})
    return json.loads(nbformat.writes(new_notebook(cells=[new_markdown_cell("words", id="words"), ours])))


def saved(folder: Path, change: Change) -> Path:
    data = plain()
    change(data)
    path = folder / "lab1_storage.ipynb"
    path.write_text(json.dumps(data))
    return path


REPAIRED: dict[str, Change] = {
    "kernelspec is a text": lambda data: data["metadata"].update(kernelspec="x"),
    "kernelspec is of another language": lambda data: data["metadata"].update(
        kernelspec={"name": "ir", "display_name": "R"}
    ),
    "language_info is a list": lambda data: data["metadata"].update(language_info=["python"]),
    "language_info without a name": lambda data: data["metadata"].update(language_info={}),
    "language is a number": lambda data: data["metadata"].update(language=3),
    "jupyter is a text": lambda data: data["metadata"].update(jupyter="x"),
    "metadata is a text": lambda data: data.update(metadata="x"),
    "metadata is nested deeply": lambda data: data["metadata"].update(deep=deep(400)),
    "a cell's metadata is nested deeply": lambda data: data["cells"][0]["metadata"].update(deep=deep(400)),
    "a cell's metadata is a text": lambda data: data["cells"][0].update(metadata="x"),
    "a cell's own marks are of a wrong kind": lambda data: data["cells"][0]["metadata"].update(
        jupyter="x", tags=3
    ),
    "outputs are nonsense": lambda data: data["cells"][1].update(outputs=[{"a": deep(400)}, 3]),
    "a count is a text": lambda data: data["cells"][1].update(execution_count="many"),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_what_does_not_count_is_repaired(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, REPAIRED[name])
    before = path.read_bytes()
    whole = opened(saved(tmp_path, lambda data: None))
    path.write_bytes(before)
    assert opened(path) == whole
    # nbgrader's first reading is where the wrong kinds stopped it.
    text, _ = SubmissionExporter().from_filename(str(path))
    assert nbformat.reads(text, as_version=4).cells == whole.cells
    assert path.read_bytes() == before


def test_what_counts_stays(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["cells"][0]["attachments"] = {"a.png": {"image/png": "AAAA"}}

    words, code = opened(saved(tmp_path, change)).cells
    assert (words.source, words.attachments) == ("words", {"a.png": {"image/png": "AAAA"}})
    assert (code.source, code.id) == ("def address(): pass", "address")
    assert code.metadata == plain()["cells"][1]["metadata"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(cells=3), "is not a valid notebook"),
        (lambda data: data["cells"].append("x"), "is not a valid notebook"),
        (lambda data: data["cells"][0].update(source=3), "is not a valid notebook"),
        (lambda data: data["cells"][0].update(attachments={"a": deep(400)}), "is not a valid notebook"),
        (lambda data: data.update(nbformat="4"), "is not a valid notebook"),
        (lambda data: data["cells"].extend(plain()["cells"] * 1000), "too large to be graded (2,002 cells"),
        (lambda data: data["cells"][1].update(source="x" * 10_000_001), "too large to be graded (2 cells"),
    ],
)
def test_what_cannot_be_graded_is_one_sentence(tmp_path: Path, change: Change, said: str) -> None:
    path = saved(tmp_path, change)
    with pytest.raises(PlainError) as error:
        opened(path)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_outputs_do_not_count_against_a_notebook_but_a_file_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(data: dict[str, Any]) -> None:
        data["cells"][1]["outputs"] = [new_output("stream", text="x" * 11_000_000)]

    path = saved(tmp_path, change)
    assert opened(path).cells[1].outputs == []
    monkeypatch.setattr(submission, "FILE_BYTES", 10_000_000)
    with pytest.raises(PlainError, match=r"too large to be read \(11 MB\): clear its outputs"):
        opened(path)


def test_a_long_text_is_cut_for_a_grade_and_says_so(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["cells"][0]["source"] = "\\\\(a" * 80_000
        data["cells"][1]["source"] = "#" * 30_000

    path = saved(tmp_path, change)
    text, _ = SubmissionExporter().from_filename(str(path))
    words, code = nbformat.reads(text, as_version=4).cells
    assert words.source.startswith("*Cut for grading: 320,000 characters are too many.*\n\n\\\\(a")
    assert len(words.source) == CELL_TEXT
    assert code.source == "#" * 30_000
    path.write_text(text)
    assert SubmissionExporter().from_filename(str(path))[0] == text
