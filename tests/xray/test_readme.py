"""What the instruments' own page says works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from glassbox import xray
from glassbox.__main__ import parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "shared" / "glassbox" / "xray" / "README.md").read_text(encoding="utf-8")


def test_its_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(program, {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "$2: f32[4, 8] = aten.add.Tensor($0, $1)"
    assert re.search(r"# (\$2.*?) \.\.\.", program)[1] == lines[0]  # type: ignore[index]


def test_it_names_every_instrument() -> None:
    cells = re.findall(r"^\| [^|]+ \| ([^|]+) \|", PAGE, flags=re.MULTILINE)[2:]
    named = {name for cell in cells for name in re.findall(r"\b([a-z_]+)\(", cell)}
    functions = {name for name in xray.__all__ if name[0].islower()}
    assert named == functions - {"use_count", "view_of"}


COMMANDS = re.findall(r"^glassbox (.*)$", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_understood(command: str) -> None:
    assert callable(parser().parse_args(command.split()).run)


def test_there_is_one_line_for_each_command() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "glassbox", "xray", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    known = set(re.findall(r"^    ([a-z-]+)(?: |$)", listed.stdout, flags=re.MULTILINE))
    assert {command.split()[1] for command in COMMANDS} == known


def test_the_command_for_another_torch_is_there() -> None:
    (command,) = re.findall(r"^\.venv/bin/python (-m .*)$", PAGE, flags=re.MULTILINE)
    words = command.split()[:2]
    asked = subprocess.run([sys.executable, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "usage: python -m tests.xray" in asked.stdout
