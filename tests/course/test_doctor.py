"""doctor tries each thing that the course uses, and says what it is for and how to get it."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from glassbox import doctor as module
from glassbox.doctor import CHECKS, Finding, Lacking, Report, doctor, findings


@pytest.fixture(scope="module")
def report() -> Report:
    return doctor()


def test_all_that_is_needed_is_here(report: Report) -> None:
    assert [finding for finding in report if finding.state == "missing"] == []
    assert report.ok


def test_each_check_has_a_line_and_a_purpose(report: Report) -> None:
    assert [finding.name for finding in report] == [name for name, *_ in CHECKS]
    assert all(finding.found and finding.needed_for for finding in report)


def test_what_is_missing_comes_with_a_way_to_get_it(report: Report) -> None:
    # Of what is not needed either, only a GPU is nothing to go and get.
    assert all(finding.how for finding in report if finding.state != "ok" and finding.name != "GPU")


def test_versions_are_those_installed(report: Report) -> None:
    found = {finding.name: finding.found for finding in report}
    assert importlib.metadata.version("torch") in found["torch"]
    assert importlib.metadata.version("jupyterlab") in found["JupyterLab"]
    assert importlib.metadata.version("nbgrader") in found["nbgrader"]


def test_it_shows_as_a_table(report: Report) -> None:
    html = report._repr_html_()
    assert html.count("<tr>") == len(CHECKS) + 1
    text = str(report).splitlines()
    assert [line.split()[1] for line in text if line.startswith("ok")] == [
        finding.name for finding in report if finding.state == "ok"
    ]


def test_each_column_of_the_table_is_headed_and_aligned_as_its_heading(report: Report) -> None:
    html = report._repr_html_()
    heads = re.findall(r"<th scope='col' (.*?)>(.*?)</th>", html)
    assert [text for _, text in heads] == ["what", "state", "found", "needed for"]
    cells = re.findall(r"<t[hd](?: scope='\w+')? ?(.*?)>", html.replace("<thead>", ""))
    assert cells == ["style='text-align:left'"] * (4 * (len(CHECKS) + 1))
    assert str(report).splitlines()[0].split()[:3] == ["state", "what", "found"]


def test_a_machine_without_a_gpu_is_told_to_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    lone = Report(findings((("GPU", module.gpu, False, "x"),)))
    assert (lone[0].state, lone[0].found) == ("optional", "none that torch can use; a CPU is enough")
    assert "what to do" not in lone._repr_html_() and "->" not in str(lone)


def lacking() -> str:
    raise Lacking("nothing <here>", "get it")


def broken() -> str:
    raise RuntimeError("slip")


def test_a_needed_thing_that_lacks_fails_the_report_and_an_optional_one_does_not() -> None:
    needed, optional = (Report(findings((("x", lacking, flag, "y"),))) for flag in (True, False))
    assert not needed.ok and needed[0].state == "missing"
    assert optional.ok and optional[0].state == "optional"
    assert "MISSING" in str(needed) and "-> get it" in str(needed)
    assert "nothing &lt;here&gt;" in needed._repr_html_() and "what to do: get it" in needed._repr_html_()


def test_a_check_that_breaks_does_not_hide_the_next() -> None:
    first, second = findings((("a", broken, True, "x"), ("b", lambda: "fine", True, "x")))
    assert first == Finding("a", "missing", "RuntimeError: slip", "x", "report this")
    assert second.state == "ok"


# Tried, not just looked for: programs that are there and do not work


def program(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("name", "check", "script", "found"),
    [
        ("chromium", module.chromium, "exit 0", "did not render a page"),
        ("chromium", module.chromium, "echo broken >&2; exit 1", "chromium fails: broken"),
        ("bwrap", module.bubblewrap, "echo 'No permissions' >&2; exit 1", "bwrap fails: No permissions"),
    ],
)
def test_a_program_that_is_there_and_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, check, script: str, found: str
) -> None:
    program(tmp_path, name, script)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(Lacking) as caught:
        check()
    assert found in caught.value.found and caught.value.how


def test_a_browser_that_renders_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "chromium", "echo '<html><body><p id=\"p\">glass</p></body></html>'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert module.chromium() == f"{path}, renders a page"


def test_programs_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "CHROMIUMS", ("chromium",))
    for check in (module.chromium, module.bubblewrap):
        with pytest.raises(Lacking, match="none found|for Linux only"):
            check()


def test_a_program_that_hangs_is_given_up() -> None:
    with pytest.raises(Lacking, match=r"-c gave no answer in 0 s|gave no answer"):
        module.said_by([sys.executable, "-c", "import time; time.sleep(30)"], "how", seconds=0.3)


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = module.shutil.disk_usage(".")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=10_000_000))
    with pytest.raises(Lacking) as caught:
        module.disk()
    assert caught.value.found == "0.0 GB free, 1 needed"


def test_versions_off_the_pins_are_told_and_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_pins", lambda: {"numpy": "1.0"})
    monkeypatch.setenv("CONDA_PREFIX", "/anywhere")
    assert f"numpy {importlib.metadata.version('numpy')}, pinned 1.0" in module.environment()


def test_another_build_of_the_same_version_is_the_pin() -> None:
    assert module.same("2.14.1+cpu", "2.14.1")
    assert not module.same("2.13.0", "2.14.1") and not module.same(None, "2.14.1")


def test_on_a_bare_python_it_says_how_to_set_up_and_ends_with_1() -> None:
    base = str(Path(sys.base_prefix) / ("python.exe" if os.name == "nt" else "bin/python3"))
    bare = [base, "-S", "-P", str(Path(module.__file__))]
    ended = subprocess.run(bare, capture_output=True, text=True)
    assert ended.returncode == 1, ended.stderr
    lines = ended.stdout.splitlines()
    assert any(line.startswith("MISSING  environment") for line in lines)
    assert any(line.strip() == "-> python3 course.py lab" for line in lines)


def test_it_loads_torch_only_when_torch_is_tried() -> None:
    code = "import sys, glassbox.doctor; raise SystemExit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
