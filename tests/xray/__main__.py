"""`python -m tests.xray VERSION`: xray's tests on another PyTorch, in an environment that has the base package alone.

What needs torchvision is skipped there, since each torchvision belongs to one torch.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("pytest", "expecttest", "hypothesis")


def main() -> int:
    """Makes .venv-torch-VERSION if need be and runs the tests in it; the exit code is pip's or pytest's."""
    about = argparse.ArgumentParser(prog="python -m tests.xray", description=__doc__)
    about.add_argument("version", help="of torch, such as 2.13.0")
    about.add_argument("rest", nargs=argparse.REMAINDER, help="handed to pytest")
    options = about.parse_args()
    folder = ROOT / f".venv-torch-{options.version}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pins = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if line.startswith(TOOLS)]
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--editable", ROOT, f"torch=={options.version}", *pins]
    code = subprocess.call(list(map(str, install)))
    if code:
        return code
    rest = options.rest or ["-q"]
    return subprocess.call([str(python), "-m", "pytest", "tests/xray", *rest], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
