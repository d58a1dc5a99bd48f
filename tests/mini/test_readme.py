"""What the mini-framework's own page says works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from glassbox import mini

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "shared" / "glassbox" / "mini"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_its_programs_run() -> None:
    programs = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    names: dict[str, object] = {}
    for program in programs:
        exec(program, names)
    grad = names["a"].grad  # type: ignore[attr-defined]
    assert repr(grad) == "tensor([2., 4.])"
    assert "CPU: registered at" in mini.ops.aten.add.Tensor.table()


def test_its_files_are_there() -> None:
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", PAGE, flags=re.MULTILINE)[2:]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 30
    folders = [FOLDER, *(FOLDER / part for part in ("c10", "aten", "aten/core", "autograd"))]
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.parametrize("command", re.findall(r"^\.venv/bin/python (-m .*)$", PAGE, flags=re.MULTILINE))
def test_its_commands_are_there(command: str) -> None:
    asked = subprocess.run(
        [sys.executable, *command.split(), "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "usage: python -m" in asked.stdout
