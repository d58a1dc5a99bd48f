"""The set-up that course.py makes: what it runs, what it remembers, what it says when something is wrong."""

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import course
from course import CourseError, Environment, Finished

SOURCE = Path(course.__file__)
COURSE, BOTH = frozenset({"course"}), frozenset({"course", "test"})
GOOD = json.dumps({"torch": "2.14.1+cpu", "torchvision": "0.29.1"})


class FakeRun:
    """Stands for venv, pip and the check: notes what it is asked to run and does as little as they would."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[str]]] = []
        self.ends: dict[str, Finished | BaseException] = {}
        self.before: Callable[[str], None] = lambda title: None

    def __call__(self, argv: Sequence[str], step: Any, log: Path, env: dict[str, str]) -> Finished:
        self.steps.append((step.title, list(argv)))
        self.before(step.title)
        end = self.ends.pop(step.title, None)
        if isinstance(end, BaseException):
            raise end
        if end is None and step.title == "virtual environment":
            bin_folder = Path(argv[-1]) / "bin"
            bin_folder.mkdir(parents=True)
            (bin_folder / "python").symlink_to(sys.executable)
        return end or Finished(0, [GOOD])

    @property
    def titles(self) -> list[str]:
        titles = [title for title, _ in self.steps]
        self.steps = []
        return titles


FRESH = ["virtual environment", "packages", "check"]
ON_TOP = ["packages", "check"]


@pytest.fixture
def run() -> FakeRun:
    return FakeRun()


@pytest.fixture
def env(tmp_path: Path, run: FakeRun) -> Environment:
    root = tmp_path / "a course"
    root.mkdir()
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(SOURCE.parent / name, root)
    return Environment(root, run)


# What a set-up does


def test_a_fresh_one_makes_the_venv_then_installs_then_checks(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    (_, make), (_, install), (_, check) = run.steps
    assert make == [sys.executable, "-m", "venv", str(env.path)]
    assert install[:4] == [str(env.python), "-m", "pip", "install"]
    assert install[-2:] == ["-e", f"{env.root}[course]"]
    assert install[install.index("-c") + 1] == str(env.root / "constraints.txt")
    assert check[0] == str(env.python)


def test_a_second_start_runs_nothing(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    run.steps = []
    env.prepare(COURSE)
    assert run.steps == []


def test_changed_pins_are_installed_into_the_same_venv(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    (env.root / "constraints.txt").open("a").write("\nextra==1\n")
    run.steps = []
    env.prepare(COURSE)
    assert run.titles == ON_TOP


def test_the_test_extra_comes_on_top_and_stays(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    run.steps = []
    env.prepare(BOTH)
    assert run.steps[0][1][-1] == f"{env.root}[course,test]"
    run.steps = []
    env.prepare(COURSE)
    env.prepare(BOTH)
    assert run.steps == []


@pytest.mark.parametrize("step", FRESH)
def test_what_was_interrupted_is_finished_by_the_next_run(env: Environment, run: FakeRun, step: str) -> None:
    run.ends[step] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        env.prepare(COURSE)
    assert not env.ready(COURSE, None)
    run.steps = []
    env.prepare(COURSE)
    assert run.titles == (FRESH if step == "virtual environment" else ON_TOP)
    assert env.ready(COURSE, None)


def test_an_interrupted_update_is_not_taken_for_ready(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    before = (env.root / "constraints.txt").read_text()
    (env.root / "constraints.txt").write_text(before + "extra==1\n")
    run.ends["packages"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        env.prepare(COURSE)
    # Even back at the old pins: nobody knows how far pip came.
    (env.root / "constraints.txt").write_text(before)
    assert not env.ready(COURSE, None)


def test_a_package_that_pip_left_half_unpacked_is_forgotten_and_a_whole_one_kept(
    env: Environment, run: FakeRun
) -> None:
    env.prepare(COURSE)
    (env.root / "constraints.txt").open("a").write("extra==1\n")
    site = env.path / "lib" / "python3" / "site-packages"
    for name in ("torn-1.dist-info", "whole-1.dist-info", "~olled_back"):
        (site / name).mkdir(parents=True)
        (site / name / "METADATA").write_text("Name: x\n")
    (site / "whole-1.dist-info" / "RECORD").write_text("")
    env.prepare(COURSE)
    assert [path.name for path in site.iterdir()] == ["whole-1.dist-info"]


def test_a_moved_course_makes_its_venv_anew(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    (env.path / "left over").write_text("")
    there = env.root.rename(env.root.with_name("elsewhere"))
    run.steps = []
    moved = Environment(there, run)
    moved.prepare(COURSE)
    assert run.titles == FRESH
    assert not (moved.path / "left over").exists()


def test_another_python_makes_it_anew(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    stamp = env.stamp()
    stamp["base"]["python"] = "3.10"
    env.write_stamp(stamp)
    run.steps = []
    env.prepare(COURSE)
    assert run.titles == FRESH


def test_a_venv_whose_python_is_gone_is_made_anew(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    env.python.unlink()
    run.steps = []
    env.prepare(COURSE)
    assert run.titles == FRESH


DAMAGED = {
    "nothing": "",
    "cut off": '{"ready": true, "ba',
    "too deep": "[" * 100_000,
    "not text": b"\xff\xfe",
    "a list": "[]",
    "a part": '{"ready": true}',
    "base": {"base": 5},
    "base as a list": {"base": [1]},
    "index": {"base": {"python": "3.11", "folder": "/", "torch_index": 7}},
    "no address": {"torch_from": "cpu"},
    "python": {"base": {"python": 3.11, "folder": "/", "torch_index": None}},
    "pins": {"pins": None},
    "extras": {"extras": None},
    "extras of another kind": {"extras": {"course": 1}},
    "numbers as extras": {"extras": [[1]]},
    "unknown extras": {"extras": ["course", "x]; y"]},
    "ready": {"ready": "yes"},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_stamp_counts_as_none(env: Environment, run: FakeRun, damage: str) -> None:
    env.prepare(COURSE)
    run.steps = []
    content = DAMAGED[damage]
    if isinstance(content, dict):
        content = json.dumps({**env.stamp(), **content})
    env.stamp_file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert env.stamp() == {}
    env.prepare(COURSE)
    assert run.titles == ON_TOP
    assert env.ready(COURSE, None)


def test_jupyter_finds_the_settings_of_the_course(env: Environment) -> None:
    env.prepare(COURSE)
    assert json.loads(env.jupyter.read_text()) == course.JUPYTER


def test_changed_settings_are_written_anew(
    env: Environment, run: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.prepare(COURSE)
    monkeypatch.setattr(course, "JUPYTER", {"other": {}})
    env.prepare(COURSE)
    assert json.loads(env.jupyter.read_text()) == {"other": {}}


# --torch-index

CPU = "https://example.org/whl/cpu"
WRONG_INDEX = "http://127.0.0.1:9/simple"
TORCH = "torch and torchvision"
NO_NETWORK = Finished(1, ["broken by 'NewConnectionError(: Failed to establish a new connection)'"])


def test_torch_comes_first_and_alone_from_the_index_at_the_pins(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE, CPU)
    assert [title for title, _ in run.steps] == [FRESH[0], "torch and torchvision", *ON_TOP]
    first, rest = run.steps[1][1], run.steps[2][1]
    assert first[-5:] == ["--no-deps", "--index-url", CPU, "torch==2.14.1", "torchvision==0.29.1"]
    assert rest[rest.index("--extra-index-url") + 1] == CPU


def test_the_index_is_remembered(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE, CPU)
    run.steps = []
    env.prepare(COURSE)
    assert run.steps == []
    env.prepare(BOTH)
    assert run.titles == ["torch and torchvision", *ON_TOP]


def test_the_index_is_remembered_over_an_interruption(env: Environment, run: FakeRun) -> None:
    run.ends["torch and torchvision"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        env.prepare(COURSE, CPU)
    run.steps = []
    env.prepare(COURSE)
    assert run.titles == ["torch and torchvision", *ON_TOP]


def test_another_index_is_tried_and_makes_the_venv_anew(env: Environment, run: FakeRun) -> None:
    env.prepare(COURSE)
    run.steps = []
    env.prepare(COURSE, CPU)
    assert {"--dry-run", "--no-deps", "--ignore-installed", CPU} < set(run.steps[0][1])
    assert run.titles == ["torch's index", FRESH[0], TORCH, *ON_TOP]


def test_a_mistyped_index_is_not_kept_and_the_message_says_the_way_back(
    env: Environment, run: FakeRun
) -> None:
    run.ends[TORCH] = NO_NETWORK
    with pytest.raises(CourseError) as caught:
        env.prepare(COURSE, WRONG_INDEX)
    sentence = str(caught.value).splitlines()[0]
    assert sentence.startswith("the package index cannot be reached: ")
    assert sentence.endswith(
        f"; torch was looked for at {WRONG_INDEX}, which is not kept: correct the address, "
        "or leave --torch-index out to use PyPI"
    )
    run.steps = []
    env.prepare(COURSE)
    assert not any(WRONG_INDEX in argv for _, argv in run.steps)
    assert run.titles == ON_TOP


def test_a_mistyped_index_costs_nothing_of_an_environment_that_is_there(
    env: Environment, run: FakeRun
) -> None:
    env.prepare(COURSE, CPU)
    run.steps = []
    run.ends["torch's index"] = NO_NETWORK
    with pytest.raises(CourseError, match=f"or leave --torch-index out to use {re.escape(CPU)}"):
        env.prepare(COURSE, WRONG_INDEX)
    assert run.titles == ["torch's index"]
    assert env.ready(COURSE, CPU)


def test_an_index_that_was_interrupted_and_then_fails_is_forgotten(env: Environment, run: FakeRun) -> None:
    run.ends[TORCH] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        env.prepare(COURSE, WRONG_INDEX)
    run.ends[TORCH] = NO_NETWORK
    with pytest.raises(CourseError, match=f"looked for at {re.escape(WRONG_INDEX)}, which is not kept"):
        env.prepare(COURSE)
    run.steps = []
    env.prepare(COURSE)
    assert not any(WRONG_INDEX in argv for _, argv in run.steps)


@pytest.mark.parametrize("step", [TORCH, "packages"])
def test_an_index_that_served_before_is_kept_and_named_when_it_fails(
    env: Environment, run: FakeRun, step: str
) -> None:
    env.prepare(COURSE, CPU)
    run.ends[step] = NO_NETWORK
    back = f"torch's index is {CPU}, kept from before: --torch-index default goes back to PyPI"
    with pytest.raises(CourseError, match=re.escape(back)):
        env.prepare(BOTH)
    run.steps = []
    env.prepare(BOTH)
    assert run.titles == [TORCH, *ON_TOP]
    env.prepare(COURSE, "default")
    assert env.stamp()["base"]["torch_index"] is None


def test_a_first_index_whose_packages_fail_is_kept(env: Environment, run: FakeRun) -> None:
    run.ends["packages"] = NO_NETWORK
    with pytest.raises(CourseError, match=f"torch's index is {re.escape(CPU)}"):
        env.prepare(COURSE, CPU)
    # Torch was installed from it: one more failure is no reason to forget it.
    run.ends[TORCH] = NO_NETWORK
    with pytest.raises(CourseError, match=f"{re.escape(CPU)}, kept from before"):
        env.prepare(COURSE)
    run.steps = []
    env.prepare(COURSE)
    assert run.titles == [TORCH, *ON_TOP]


def test_an_index_is_an_address(env: Environment, run: FakeRun) -> None:
    with pytest.raises(CourseError, match="--torch-index takes an index address"):
        env.prepare(COURSE, "cpu")
    assert run.steps == []


# The check

PAIRS = {("2.14.1", "0.29.1"): True, ("2.13.0+cpu", "0.28.0"): True, ("2.14.1", "0.28.0"): False}


@pytest.mark.parametrize("pair", PAIRS)
def test_torch_2_n_goes_with_torchvision_0_n_plus_15(pair: tuple[str, str]) -> None:
    assert course.pair_fits(*pair) is PAIRS[pair]


def test_a_pair_that_does_not_fit_is_refused_and_not_ready(env: Environment, run: FakeRun) -> None:
    run.ends["check"] = Finished(0, [GOOD.replace("0.29.1", "0.28.0")])
    with pytest.raises(
        CourseError, match=r"torch 2\.14\.1\+cpu and torchvision 0\.28\.0 do not belong together"
    ):
        env.prepare(COURSE)
    assert not env.ready(COURSE, None)


def test_what_cannot_be_imported_is_named(env: Environment, run: FakeRun) -> None:
    run.ends["check"] = Finished(1, ["nbgrader cannot be imported: ImportError: no"])
    with pytest.raises(CourseError, match="not usable: nbgrader cannot be imported: ImportError: no; delete"):
        env.prepare(COURSE)
    assert not env.ready(COURSE, None)


def test_the_check_itself_passes_here() -> None:
    said = subprocess.run([sys.executable, "-c", course.CHECK], capture_output=True, text=True, check=True)
    found = json.loads(said.stdout)
    assert course.pair_fits(found["torch"], found["torchvision"])


# Two at once

HOLD = """
import sys, time, pathlib, course
env = course.Environment(pathlib.Path(sys.argv[1]))
with env.locked():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_set_up_is_refused_while_one_runs_and_goes_ahead_when_that_one_has_died(
    env: Environment, run: FakeRun
) -> None:
    env.path.mkdir()
    child_env = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    argv = [sys.executable, "-c", HOLD, str(env.root)]
    holder = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=child_env)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(CourseError, match="another set-up is running"):
            env.prepare(COURSE)
        assert run.steps == []
    finally:
        holder.kill()
        holder.communicate()
    env.prepare(COURSE)
    assert run.titles == FRESH


def test_the_lock_outlives_the_clearing_of_a_venv(env: Environment, run: FakeRun) -> None:
    refused = []

    def try_another(title: str) -> None:
        with pytest.raises(CourseError):
            Environment(env.root, FakeRun()).prepare(COURSE)
        refused.append(title)

    run.before = try_another
    env.prepare(COURSE)
    assert refused == FRESH


# Children


def test_a_logged_run_returns_the_lines_and_keeps_them(tmp_path: Path) -> None:
    log = tmp_path / "install.log"
    argv = [sys.executable, "-c", "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"]
    ended = course.run_logged(argv, course.Step("t"), log, dict(os.environ))
    assert ended.code == 3
    assert sorted(ended.lines) == ["one", "two"]
    assert "one\n" in log.read_text() and "two\n" in log.read_text()


def test_an_interrupted_run_ends_its_child(tmp_path: Path) -> None:
    step = course.Step("t")
    number = tmp_path / "pid"

    def interrupt() -> None:
        if number.exists() and number.read_text():
            raise KeyboardInterrupt

    step.tick = interrupt  # type: ignore[method-assign]
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        argv = [sys.executable, "-c", code, str(number)]
        course.run_logged(argv, step, tmp_path / "log", dict(os.environ))
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)
    assert time.monotonic() - begun < 50


SEEN = {
    "Collecting torch==2.14.1": "collecting torch==2.14.1",
    "  Downloading https://host/a/torch-2.14.1.whl (5 MB)": "downloading torch-2.14.1.whl (5 MB)",
    "Installing collected packages: a, b, c": "installing 3 packages",
    "Requirement already satisfied: a": "",
}


@pytest.mark.parametrize("line", SEEN)
def test_progress_names_what_pip_is_busy_with(line: str) -> None:
    step = course.Step("t")
    step.note(line)
    assert step.detail == SEEN[line]


def test_settings_that_lead_pip_astray_do_not_reach_it(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_TARGET", "PYTHONHOME", "PYTHONPATH"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_USER", "1")
    variables = env.variables()
    assert not {"PIP_TARGET", "PYTHONHOME", "PYTHONPATH"} & set(variables)
    assert variables["PIP_USER"] == "0"
    assert variables["PATH"].startswith(str(env.bin) + os.pathsep)


# What is said when it cannot be done: one sentence and a way out, exit code 2

FAILURES = {
    "OSError: [Errno 28] No space left on device": "the disk is full: make room, or take a CPU build",
    "broken by 'NewConnectionError(: Failed to establish a new connection)'": "cannot be reached",
    "broken by 'NameResolutionError(: Failed to resolve'": "the package index cannot be reached",
    "urllib3.exceptions.ReadTimeoutError: Read timed out.": "cannot be reached: check the network",
    "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: 'x'": "no permission",
    "ERROR: No matching distribution found for torch==2.14.1": "no such release for this machine: try Python",
    "ERROR: Could not find a version that satisfies x==1 (from versions: none)": "not reached or has nothing",
    "after connection broken by 'SSLError(SSLError(1, 'x'))'": "certificate is not accepted: check",
    "There was a problem confirming the ssl certificate: Max retries exceeded": "certificate is not accepted",
    "WARNING: The repository located at x is not a trusted or secure host": "use the index's https",
    "something else": "run the command again to go on",
}


@pytest.mark.parametrize("line", FAILURES)
def test_a_failed_install_says_why_shows_pips_last_lines_and_names_the_log(
    env: Environment, run: FakeRun, line: str
) -> None:
    run.ends["packages"] = Finished(1, ["first"] + ["between"] * 20 + [line, "last"])
    with pytest.raises(CourseError) as caught:
        env.prepare(COURSE)
    sentence, *rest = str(caught.value).splitlines()
    assert FAILURES[line] in sentence
    assert "    " + line in rest and "    last" in rest and "    first" not in rest
    assert str(env.log) in rest[-1]


def asked_of_pip(env: Environment, folder: Path, index: str, more: dict[str, str]) -> str:
    """What is said when pip, with no settings but `more`, is asked for what the index has not got."""
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder), "--index-url", index]
    variables = {**env.variables(), **settings, **more}
    ended = course.run_logged([*argv, "glassbox-x==2"], course.Step("t"), folder / "log", variables)
    assert ended.code != 0
    return course.explain(ended, folder / "log").splitlines()[0]


@pytest.mark.parametrize("retries", ["0", "1"])
def test_pips_own_words_for_no_network(
    env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retries: str
) -> None:
    monkeypatch.setenv("PIP_RETRIES", retries)
    said = asked_of_pip(env, tmp_path, "https://127.0.0.1:9/", {})
    assert said.startswith("the package index cannot be reached: ")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an index, served here, that holds another release of glassbox-x."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "glassbox-x").mkdir()
    wheel = "glassbox_x-1-py3-none-any.whl"
    (folder / "glassbox-x" / "index.html").write_text(f"<!DOCTYPE html><a href='{wheel}'>{wheel}</a>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("retries", ["0", "1"])
def test_pips_own_words_for_a_release_that_the_index_has_not(
    env: Environment, tmp_path: Path, index: str, retries: str
) -> None:
    said = asked_of_pip(env, tmp_path, index, {"PIP_RETRIES": retries})
    assert said.startswith("the index has no such release for this machine")


def test_pips_own_words_for_an_address_without_an_index(env: Environment, tmp_path: Path, index: str) -> None:
    said = asked_of_pip(env, tmp_path, index + "nothing", {})
    assert said.startswith("the index was not reached or has nothing for this machine")


def test_where_pip_tries_once_no_more_is_claimed_than_is_known(env: Environment, tmp_path: Path) -> None:
    said = asked_of_pip(env, tmp_path, "https://127.0.0.1:9/", {"PIP_RETRIES": "0"})
    assert said.startswith("the index was not reached or has nothing for this machine")


def test_a_python_without_ensurepip_is_told_the_debian_package(env: Environment, run: FakeRun) -> None:
    words = "The virtual environment was not created successfully because ensurepip is not available."
    run.ends["virtual environment"] = Finished(1, [words])
    version = "{}.{}".format(*sys.version_info[:2])
    with pytest.raises(CourseError, match=re.escape(f"sudo apt install python{version}-venv")):
        env.prepare(COURSE)


def test_a_full_disk_is_found_before_anything_is_made(
    env: Environment, run: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, 4 * course.GB))
    with pytest.raises(
        CourseError, match=r"4\.0 GB free in .*needs 7 GB: make room, or take a CPU build.*--torch-index"
    ):
        env.prepare(COURSE)
    assert run.steps == []
    # A CPU build fits, and so does an update of a torch that is there.
    env.prepare(COURSE, CPU)


def test_a_folder_that_cannot_be_written(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, **options: Any) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CourseError, match=r"no permission to write .*\.venv: copy the course"):
        env.prepare(COURSE)


def test_a_file_in_the_place_of_the_venv(env: Environment) -> None:
    env.path.write_text("")
    with pytest.raises(CourseError, match=r"\.venv is a file, not a folder: move it away and run"):
        env.prepare(COURSE)


def test_a_link_to_nowhere_in_the_place_of_the_venv(env: Environment) -> None:
    env.path.symlink_to(env.root / "gone")
    with pytest.raises(CourseError, match=r"\.venv is a link to nowhere, not a folder: move it away and run"):
        env.prepare(COURSE)


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_copy_that_lacks_a_part(
    env: Environment, run: FakeRun, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (env.root / name).unlink()
    assert course.main(["lab"], env) == 2
    assert f"{env.root / name} cannot be read (No such file or directory): get a complete" in one_line(capsys)
    assert run.steps == [] and not env.path.exists()


def test_constraints_that_do_not_pin_torch(env: Environment, run: FakeRun) -> None:
    (env.root / "constraints.txt").write_text("numpy==2\n")
    with pytest.raises(CourseError, match=r"constraints\.txt does not pin torch: get a complete copy"):
        env.prepare(COURSE, CPU)
    assert run.steps == []


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.startswith("course.py: ") and said.count("\n") == 1
    return said


def test_a_taken_port(env: Environment, run: FakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert course.main(["lab", "--port", str(port)], env) == 2
    assert f"port {port} is taken" in one_line(capsys)
    assert run.steps == []


WRONG = {
    ("labb",): "no command 'labb': did you mean lab?",
    ("zzz",): "no command 'zzz': there are lab, test,",
    ("lab", "--port", "high"): "argument --port: invalid int value: 'high'",
    ("lab", "--port", "70000"): "a port is a number from 1 to 65535",
    ("lab", "--browser"): "unrecognized arguments: --browser",
    ("doctor", "who"): "doctor takes no arguments",
    ("test", "--torch-index"): "expected one argument",
    ("grade",): "the following arguments are required: LAB; see python3 course.py grade --help",
    ("grade", "lab1_storag"): "no lab called 'lab1_storag'; did you mean lab1_storage?",
    ("reset",): "the following arguments are required: LAB; see python3 course.py reset --help",
    ("labs", "lab1_storage"): "unrecognized arguments: lab1_storage",
    ("bundle", "a.zip", "b.zip"): "unrecognized arguments: b.zip",
}


@pytest.mark.parametrize("argv", WRONG)
def test_a_wrong_command_line(
    env: Environment, run: FakeRun, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    assert course.main(argv, env) == 2
    assert WRONG[argv] in one_line(capsys)
    assert run.steps == []


def test_an_interruption_says_that_the_same_command_goes_on(
    env: Environment, run: FakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.ends["packages"] = KeyboardInterrupt()
    assert course.main(["lab"], env) == 130
    assert "The same command goes on from here." in capsys.readouterr().err


def test_a_command_line_of_the_autograder_is_read_by_a_bare_python() -> None:
    """So that `grade` without its LAB is told before anything is installed."""
    for words, code in ((["grade"], 2), (["grade", "--help"], 0)):
        argv = [sys.executable, "-S", str(SOURCE), *words]
        said = subprocess.run(argv, capture_output=True, text=True, cwd=os.sep)
        assert said.returncode == code, said.stderr
        assert "LAB" in (said.stderr if code else said.stdout)


def test_an_old_python_parses_the_file_and_gets_one_sentence() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    # Everything before the version check must also run there, and annotations must not need the future.
    assert [type(node) for node in tree.body[:3]] == [ast.Expr, ast.Import, ast.If]
    assert "__future__" not in source
    pretend = f"import sys; sys.version_info = (3, 8, 1); exec(open({str(SOURCE)!r}).read())"
    said = subprocess.run([sys.executable, "-c", pretend], capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.startswith("course.py: this is Python 3.8, the course needs 3.11 or newer: ")
    assert said.stderr.count("\n") == 1
