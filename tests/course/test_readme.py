"""Every command in the README is a command that works, and every place that it names is there."""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import course
from autograder import exchanging
from autograder.__main__ import parser
from glassbox import start

ROOT = Path(course.__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLASSROOM = (ROOT / "autograder" / "README.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """The lines of a text's blocks of commands."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


COMMANDS = commands(README)

CPU = "https://download.pytorch.org/whl/cpu"
# How each command is run by a test: the words that course.py starts in the end, after `python`.
STARTS: dict[str, list[list[str]]] = {
    "python3 course.py lab": [["-m", "jupyterlab"]],
    "python3 course.py test": [["-m", "ruff"], ["-m", "mypy"], ["-m", "pytest"]],
    f"python3 course.py lab --torch-index {CPU}": [["-m", "jupyterlab"]],
    "python3 course.py doctor": [["-P", str(ROOT / "shared" / "glassbox" / "doctor.py")]],
    "python3 course.py grade lab1_storage": [["-m", "autograder", "grade", "lab1_storage"]],
    "python3 course.py reset lab1_storage": [["-m", "autograder", "reset", "lab1_storage"]],
    "python3 course.py bundle glassbox-student.zip": [["-m", "autograder", "bundle", "glassbox-student.zip"]],
    "python3 course.py lab --instructor": [["-m", "jupyterlab"]],
    "python3 course.py lab --instructor --exchange /srv/class": [["-m", "jupyterlab"]],
    **{
        f"python3 course.py nbgrader {words}": [["-m", "autograder", "nbgrader", *words.split()]]
        for words in (
            "generate_assignment lab1_storage --force",
            "release_assignment lab1_storage",
            "collect lab1_storage --update",
            "autograde lab1_storage",
            "generate_feedback lab1_storage",
            "release_feedback lab1_storage",
            "zip_collect lab1_storage",
            "export",
        )
    },
    "python3 course.py labs": [["-m", "autograder", "labs"]],
    "python3 course.py test tests/notebooks": [["-m", "pytest", "tests/notebooks"]],
    "python3 course.py test tests/mini": [["-m", "pytest", "tests/mini"]],
    "python3 course.py test tests/autograder": [["-m", "pytest", "tests/autograder"]],
}
# conda cannot be run by a test; what these lines name is looked at instead.
CONDA = (
    "conda env create -f environment.yml",
    "conda activate glassbox",
    "jupyter lab notebooks/00_start.ipynb",
)


class Ready(course.Environment):
    def prepare(self, extras: frozenset[str], torch_index: str | None = None) -> None:
        assert torch_index in (None, CPU)


def test_every_command_is_known_here() -> None:
    assert len(COMMANDS) == len(set(COMMANDS))
    assert {*COMMANDS, *commands(CLASSROOM)} == {*STARTS, *CONDA}


def test_the_two_commands_come_first() -> None:
    assert COMMANDS[:2] == ["python3 course.py lab", "python3 course.py test"]


@pytest.mark.parametrize("command", STARTS)
def test_a_command_starts_what_it_should(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def note(argv: Sequence[str], *args: Any, **options: Any) -> int:
        started.append(list(argv)[1:])
        return 0

    monkeypatch.setattr(course, "hand_over", note)
    monkeypatch.setattr(course.subprocess, "call", note)
    monkeypatch.setattr(exchanging, "choose", lambda root, place: None)
    python, script, *words = shlex.split(command)
    assert (python, script) == ("python3", "course.py")
    assert course.main(words, Ready(ROOT)) == 0
    wanted = [argv for argv in started if "browser" not in argv]
    assert [argv[: len(want)] for argv, want in zip(wanted, STARTS[command], strict=True)] == STARTS[command]


@pytest.mark.parametrize(
    "command", [c for c in STARTS if "autograder" in STARTS[c][0] and "pytest" not in STARTS[c][0]]
)
def test_the_autograder_understands_what_it_is_handed(command: str) -> None:
    words = STARTS[command][0][2:]
    options, rest = parser().parse_known_args(words)
    assert isinstance(options, argparse.Namespace)
    # What follows `nbgrader` is nbgrader's own.
    assert rest == (words[1:] if words[0] == "nbgrader" else [])


@pytest.mark.parametrize("command", [c for c in STARTS if c.startswith("python3 course.py test tests/")])
def test_the_tests_that_a_command_names_are_there(command: str) -> None:
    for folder in command.split()[3:]:
        assert list((ROOT / folder).glob("test_*.py")), folder


def test_the_lines_for_conda_name_what_there_is() -> None:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert "name: glassbox\n" in text
    assert (ROOT / "notebooks" / "00_start.ipynb").is_file()


def test_the_layout_names_folders_that_are_there() -> None:
    (layout,) = re.findall(r"^## Layout\n(.*?)^## ", README, flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"^    ([a-z_/.]+)  ?", layout, flags=re.MULTILINE)
    assert len(named) == 8
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_path_in_the_text_is_there() -> None:
    paths = set(re.findall(r"`([a-z_0-9]+/[a-z_0-9/.]*)`", README)) | set(
        re.findall(r'"(docs/[^"]+)"', README)
    )
    assert len(paths) >= 7
    assert {path for path in paths - {"submitted/"} if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("section", ["storage", "dispatcher", "autograd"])
def test_the_picture_is_drawn_by_the_course(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words and numbers in it are those that draw gives today; its colours may be yesterday's.

    The other two show times and the interpreter's own lines, which differ by machine.
    """
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import pictures

    def words(svg: str) -> list[str]:
        said = re.findall(r"<text[^>]*>(.*?)</text>", svg)
        return [word for word in said if ".cpp:" not in word]    # a line number is the wheel's

    for name, drawn in pictures.picture(getattr(pictures, section)).items():
        stored = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert words(stored) == words(drawn) != []
    sys.modules.pop("pictures")


def test_each_section_has_a_line_and_a_picture() -> None:
    row = r"^\| \[(.*?)\]\(notebooks/(.*?)\.ipynb\) \| (\d+) \| (.*?) \| `?(.*?)`? ?\|$"
    rows = re.findall(row, README, re.MULTILINE)
    assert rows == [(s.title, s.notebook, str(s.minutes), s.able, s.lab) for s in start.SECTIONS]
    assert re.findall(r'src="docs/(.*?)\.svg"', README) == [s.lab.split("_", 1)[1] for s in start.SECTIONS if s.lab]


def test_the_classroom_shows_what_the_browser_tests_see() -> None:
    shown = re.findall(r"\]\(\.\./docs/classroom/(.*?)\)", CLASSROOM)
    walk = (ROOT / "tests" / "e2e" / "test_classroom.py").read_text(encoding="utf-8")
    assert len(shown) >= 8
    assert {name.removesuffix(".png") for name in shown} <= set(re.findall(r'shot\(page, "(.*?)"\)', walk))
    for name in shown:
        picture = (ROOT / "docs" / "classroom" / name).read_bytes()
        assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) < 150_000
