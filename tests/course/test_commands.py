"""The commands of course.py: what each starts, and with which exit code it ends."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import course
from autograder import exchanging
from course import Environment

ROOT = Path(course.__file__).parent


class Ready(Environment):
    """An environment that needs no set-up and notes what it was asked to hold."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[tuple[set[str], str | None]] = []

    def prepare(self, extras: frozenset[str], torch_index: str | None = None) -> None:
        self.asked.append((set(extras), torch_index))


@pytest.fixture
def env(tmp_path: Path) -> Ready:
    for name in ("tests/one/test_a.py", "notebooks/00_start.ipynb"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("")
    return Ready(tmp_path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines that would have replaced this process or been called by it."""
    found: list[list[str]] = []

    def note(argv: Sequence[str], *args: Any, **options: Any) -> int:
        found.append(list(argv))
        return 5

    monkeypatch.setattr(course, "hand_over", note)
    monkeypatch.setattr(subprocess, "call", note)
    return found


# lab


def test_lab_opens_the_start_notebook_with_the_course_as_its_root(
    env: Ready, started: list[list[str]]
) -> None:
    assert course.main(["lab", "--no-browser"], env) == 5
    (argv,) = started
    assert argv[:3] == [str(env.python), "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={env.root}" in argv
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start.ipynb" in argv
    assert "--no-browser" in argv
    assert not [word for word in argv if "port" in word]
    assert env.asked == [({"course"}, None)]


def test_lab_opens_a_browser_unless_told_not_to(env: Ready, started: list[list[str]]) -> None:
    course.main(["lab"], env)
    assert "--no-browser" not in started[0]


def test_lab_takes_the_named_port_or_fails(env: Ready) -> None:
    argv = course.lab_argv(env, 8899, no_browser=True)
    assert "--ServerApp.port=8899" in argv and "--ServerApp.port_retries=0" in argv


@pytest.mark.parametrize(("user", "told"), [(0, True), (1000, False)])
def test_jupyterlab_is_told_where_its_user_is_root(
    env: Ready, monkeypatch: pytest.MonkeyPatch, user: int, told: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--allow-root" in course.lab_argv(env, None, no_browser=True)) is told


def test_lab_and_test_take_a_torch_index(env: Ready, started: list[list[str]]) -> None:
    course.main(["lab", "--torch-index", "https://x"], env)
    course.main(["test", "--torch-index", "https://x"], env)
    assert env.asked == [({"course"}, "https://x"), ({"course", "test"}, "https://x")]


PANELS = {False: "learner", True: "instructor"}


@pytest.mark.parametrize("instructor", PANELS)
def test_lab_comes_with_the_panels_of_a_learner_or_an_instructor(
    env: Ready, monkeypatch: pytest.MonkeyPatch, instructor: bool
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/mine")
    found = course.lab_variables(env, instructor)["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert found == [str(env.root / "autograder" / "jupyter" / PANELS[instructor]), "/mine"]
    assert (ROOT / "autograder" / "jupyter" / PANELS[instructor] / "jupyter_server_config.json").is_file()


def test_an_instructor_comes_in_by_a_door_of_their_own(env: Ready, started: list[list[str]]) -> None:
    (env.root / "solutions").mkdir()
    assert course.main(["lab", "--instructor"], env) == 5
    assert "--LabApp.default_url=/instructor" in started[0]


def test_a_students_copy_has_no_instructor(
    env: Ready, started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert course.main(["lab", "--instructor"], env) == 2
    assert "student's copy" in capsys.readouterr().err
    assert started == [] and env.asked == []


def test_lab_keeps_the_exchange_folder_until_told_otherwise(
    env: Ready, started: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, kept in [
        (["--exchange", "class"], tmp_path / "class"),
        ([], tmp_path / "class"),
        (["--exchange", "default"], None),
    ]:
        assert course.main(["lab", *words], env) == 5
        assert exchanging.chosen(env.root) == kept


def test_an_exchange_folder_that_is_a_file_is_refused_before_anything_starts(
    env: Ready, started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    (env.root / "class").write_text("")
    assert course.main(["lab", "--exchange", str(env.root / "class")], env) == 2
    assert "is a file" in capsys.readouterr().err
    assert started == [] and env.asked == [] and exchanging.chosen(env.root) is None


@pytest.mark.parametrize("words", ["", "  ", "~nobody-of-this-name/x"])
def test_an_exchange_folder_that_is_none_is_refused(
    env: Ready, started: list[list[str]], capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert course.main(["lab", "--exchange", words], env) == 2
    assert "--exchange" in capsys.readouterr().err
    assert started == [] and exchanging.chosen(env.root) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"exchange": 1}', '{"exchange": "here"}', "[" * 99999])
def test_a_choice_that_cannot_be_read_has_a_way_out(
    env: Ready, started: list[list[str]], capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (env.root / exchanging.FILE).write_text(content)
    assert course.main(["lab"], env) == 2
    assert "--exchange FOLDER" in capsys.readouterr().err
    assert course.main(["lab", "--exchange", "default"], env) == 5


# test

PYTEST = ["-m", "pytest"]
RUFF, MYPY = ["-m", "ruff", "check", "."], ["-m", "mypy"]
ROWS = {
    (): [RUFF, MYPY, PYTEST],
    ("--full",): [RUFF, MYPY, [*PYTEST, "--full"]],
    ("-k", "views"): [RUFF, MYPY, [*PYTEST, "-k", "views"]],
    ("tests/one",): [[*PYTEST, "tests/one"]],
    ("-x", "tests/one/test_a.py::test_b"): [[*PYTEST, "-x", "tests/one/test_a.py::test_b"]],
}


@pytest.mark.parametrize("args", ROWS)
def test_what_test_runs(env: Ready, args: tuple[str, ...]) -> None:
    found = course.checks(args, env)
    assert [argv[0] for _, argv in found] == [str(env.python)] * len(found)
    assert [argv[1:] for _, argv in found] == ROWS[args]


def test_a_students_copy_has_no_tests_and_says_so(env: Ready, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(env.root / "tests")
    assert course.main(["test"], env) == 2
    assert capsys.readouterr().err.startswith("course.py: this is a student's copy")
    assert env.asked == []


def test_browser_tests_get_a_pytest_of_their_own(env: Ready) -> None:
    # In two parts, or this file would count as one of them.
    (env.root / "tests" / "one" / "test_a.py").write_text("pytestmark = pytest.mark." + "browser\n")
    runs = [argv[1:] for name, argv in course.checks(["--full"], env) if "pytest" in name]
    assert runs == [
        [*PYTEST, "-m", "browser", "--full"],
        # the rest over the cores, a file's tests together
        [*PYTEST, "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "-m", "not browser", "--full"],
    ]


def test_all_checks_run_though_the_first_fails(
    env: Ready, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = []

    def call(argv: Sequence[str], **options: Any) -> int:
        ran.append(argv[2])
        assert options["cwd"] == env.root
        return int(argv[2] == "ruff")

    monkeypatch.setattr(subprocess, "call", call)
    assert course.main(["test"], env) == 1
    assert ran == ["ruff", "mypy", "pytest"]
    assert capsys.readouterr().err == "course.py: not clean: ruff\n"


@pytest.mark.parametrize(("browser", "rest", "code"), [(5, 0, 0), (1, 0, 1), (0, 5, 1)])
def test_only_the_browser_run_may_select_nothing(
    env: Ready, monkeypatch: pytest.MonkeyPatch, browser: int, rest: int, code: int
) -> None:
    monkeypatch.setattr(course, "browser_tests", lambda root: True)
    ends = {"browser": browser, "not browser": rest}
    monkeypatch.setattr(subprocess, "call", lambda argv, **options: next((ends[w] for w in argv if w in ends), 0))
    assert course.main(["test"], env) == code


def test_a_clean_run_ends_with_0(env: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "call", lambda argv, **options: 0)
    assert course.main(["test"], env) == 0


# doctor


def test_doctor_runs_on_this_python_where_there_is_no_venv(env: Ready, started: list[list[str]]) -> None:
    assert course.main(["doctor"], env) == 5
    assert started == [[sys.executable, "-P", str(env.root / "shared" / "glassbox" / "doctor.py")]]
    assert env.asked == []


def test_doctor_runs_in_the_venv_where_there_is_one(env: Ready, started: list[list[str]]) -> None:
    env.bin.mkdir(parents=True)
    env.python.write_text("")
    course.main(["doctor"], env)
    assert started[0][0] == str(env.python)


# The rest is the autograder's

HANDED = {
    ("grade", "lab1_storage", "my work.ipynb"): [
        "-m",
        "autograder",
        "grade",
        "lab1_storage",
        "my work.ipynb",
    ],
    ("labs",): ["-m", "autograder", "labs"],
    ("reset", "lab1_storage"): ["-m", "autograder", "reset", "lab1_storage"],
    ("nbgrader", "--help"): ["-m", "autograder", "nbgrader", "--help"],
    ("bundle", "a.zip"): ["-m", "autograder", "bundle", "a.zip"],
}


@pytest.mark.parametrize("argv", HANDED)
def test_a_command_of_the_autograder_is_handed_on_as_it_is(
    env: Ready, started: list[list[str]], argv: tuple[str, ...]
) -> None:
    assert course.main(argv, env) == 5
    assert started == [[str(env.python), *HANDED[argv]]]
    assert env.asked == [({"course"}, None)]


def test_every_command_is_listed() -> None:
    assert {argv[0] for argv in HANDED} == set(course.HANDED_ON)
    assert set(course.COMMANDS) == {"lab", "test", "doctor", *course.HANDED_ON}


def test_handing_over_passes_the_exit_code_and_words_with_spaces_on() -> None:
    child = "import sys; print(sys.argv[1]); raise SystemExit(7)"
    argv = [sys.executable, "-c", child, "a b"]
    code = f"import course, os, sys; sys.exit(course.hand_over({argv!r}, os.environ))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (7, "a b\n")


@pytest.mark.parametrize(("argv", "code"), [([], 2), (["--help"], 0)])
def test_help_lists_the_commands(argv: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert course.main(argv) == code
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in course.COMMANDS)
