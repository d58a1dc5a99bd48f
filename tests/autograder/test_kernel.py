"""The grading kernel: what its Python can reach, and what it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import kernel


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """Runs code with a grading kernel's path and stand-ins; gives its last printed line as JSON."""
    site = kernel.kernel_site()
    boot = (site.parent / "boot.py").read_text().split("from ipykernel.kernelapp")[0]
    home = tmp_path_factory.mktemp("home")

    def run(code: str) -> object:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"{boot}\n{code}", str(site)],
            capture_output=True,
            text=True,
            env=kernel.environment(home),
            cwd=home,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_it_can_import_ipykernel_and_the_learners_own_tools(python) -> None:  # type: ignore[no-untyped-def]
    assert python("import ipykernel, IPython, math, functools, json; print(json.dumps(True))")


@pytest.mark.parametrize(
    "package", ["torch", "numpy", "torchvision", "glassbox.mini", "glassbox.xray", "glassbox.tasks.model"]
)
def test_what_would_do_the_work_can_be_imported_but_not_used(python, package: str) -> None:  # type: ignore[no-untyped-def]
    code = f"""
import json
import {package} as whole
import {package}.deeper.still
from {package} import anything
seen = []
from glassbox.tasks.unplug import trial
for use in (lambda: whole.zeros(3), lambda: anything(), lambda: anything.more + 1):
    use()
    try:
        with trial():
            use()
    except Exception as error:
        seen.append(type(error).__name__)
print(json.dumps(seen))
"""
    assert python(code) == ["UnpluggedError"] * 3


def test_no_oracle_reference_piece_task_or_seed_is_on_its_path(python) -> None:  # type: ignore[no-untyped-def]
    code = """
import glassbox, json, pathlib
print(json.dumps(sorted(path.name for path in pathlib.Path(glassbox.__file__).parent.rglob("*.py"))))
"""
    files = python(code)
    assert files == ["__init__.py", "__init__.py", "answering.py", "building.py", "plain.py", "play.py", "unplug.py"]


def test_without_the_stand_ins_the_packages_are_simply_absent(python) -> None:  # type: ignore[no-untyped-def]
    code = """
import sys, json
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "StandIns"]
for name in [name for name in sys.modules if name.split(".")[0] in ("torch", "numpy")]:
    del sys.modules[name]
missing = []
for name in ("torch", "numpy", "glassbox.mini", "glassbox.tasks.model", "nbgrader", "autograder"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        missing.append(name)
print(json.dumps(missing))
"""
    assert python(code) == [
        "torch",
        "numpy",
        "glassbox.mini",
        "glassbox.tasks.model",
        "nbgrader",
        "autograder",
    ]


def test_its_environment_holds_nothing_of_the_graders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", "x")
    environment = kernel.environment(tmp_path)
    assert "SECRET_TOKEN" not in environment
    assert "PYTHONPATH" not in environment
    assert environment["HOME"] == str(tmp_path)


def test_the_kernel_of_a_lab_about_pytorch_holds_the_real_one(tmp_path: Path) -> None:
    """With the arithmetic of one thread, and none of glassbox's instruments."""
    site = kernel.kernel_site(True)
    boot = (site.parent / "boot.py").read_text().split("class KeepGoing")[0]
    code = """
import json, torch, numpy
from glassbox import xray
kinds = type(xray).__name__, torch.arange(3).sum().item(), torch.ones(2).numpy().tolist()
print(json.dumps([*kinds, torch.get_num_threads(), "torch" in str(site)]))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{boot}\n{code}", str(site)],
        capture_output=True,
        text=True,
        env=kernel.environment(tmp_path),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["UnpluggedModule", 3, [1.0, 1.0], 1, False]


def test_requirements_follow_markers_and_know_no_torch() -> None:
    needed = kernel.requirements("ipykernel")
    assert {"ipykernel", "ipython", "pyzmq", "traitlets"} <= needed
    assert not needed & {"torch", "numpy", "nbgrader", "pytorch-glassbox"}
