"""What this machine has for the course, each thing tried. PyTorch's own: torch/utils/collect_env.py.

Standard library only, torch loaded when it is tried: `course.py doctor` runs this file by its path on a bare
Python too, so it imports nothing of ours. In a notebook: `from glassbox.doctor import doctor; doctor()`.
"""

from __future__ import annotations

import html
import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SET_UP = "python3 course.py lab"
GB = 1_000_000_000


@dataclass(frozen=True)
class Finding:
    """One line of the report. `state` is 'ok', 'missing' (needed) or 'optional' (not there, not needed).

    `how` says what to do where it is not ok; "" where nothing need be done.
    """

    name: str
    state: str
    found: str
    needed_for: str
    how: str = ""


class Report(tuple[Finding, ...]):
    """The findings in order; prints as a table, shows as one in a notebook."""

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """True when everything that the course cannot do without is there."""
        return all(finding.state != "missing" for finding in self)

    def __str__(self) -> str:
        head = ("state", "what", "found", "needed for")
        marks = {"ok": "ok", "missing": "MISSING", "optional": "-"}
        rows = [head, *((marks[f.state], f.name, f.found, f.needed_for) for f in self)]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = []
        for row, finding in zip(rows, (None, *self), strict=True):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            lines.append("  ".join([*cells, row[3]]).rstrip())
            if finding is not None and finding.how:
                lines.append(" " * (widths[0] + 2) + f"-> {finding.how}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        words = {"ok": "ok", "missing": "missing", "optional": "not here"}
        left = "style='text-align:left'"
        rows = []
        for f in self:
            how = f"<br>what to do: {html.escape(f.how)}" if f.how else ""
            rows.append(
                f"<tr><th scope='row' {left}>{html.escape(f.name)}</th>"
                f"<td {left}>{words[f.state]}</td>"
                f"<td {left}>{html.escape(f.found)}{how}</td>"
                f"<td {left}>{html.escape(f.needed_for)}</td></tr>"
            )
        heads = ("what", "state", "found", "needed for")
        head = "".join(f"<th scope='col' {left}>{cell}</th>" for cell in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def _repr_pretty_(self, printer: object, cycle: bool) -> None:
        printer.text(str(self))  # type: ignore[attr-defined]


class Lacking(Exception):  # noqa: N818  (a finding, not an error of ours)
    """A check did not pass: what was found in its place, and what to do about it, "" for nothing."""

    def __init__(self, found: str, how: str) -> None:
        super().__init__(found)
        self.found = found
        self.how = how


# The checks: each returns what it found, or raises Lacking. They take no arguments.


def python() -> str:
    # An older one does not get here: course.py and the package both refuse it.
    return f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"


def disk() -> str:
    free = shutil.disk_usage(ROOT).free
    needed = 1 * GB if pinned("torch") else 7 * GB
    said = f"{free / GB:.1f} GB free, {needed / GB:.0f} needed"
    if free < needed:
        raise Lacking(said, "make room; a CPU build of torch takes less: " + SET_UP + " --torch-index URL")
    try:
        with tempfile.TemporaryFile(dir=ROOT) as probe:
            probe.write(b"x")
    except OSError as error:
        raise Lacking(f"{ROOT} cannot be written: {error.strerror}", "copy the course elsewhere") from None
    return said


def environment() -> str:
    """Whether this Python holds the versions that constraints.txt names."""
    if sys.prefix == sys.base_prefix and not os.environ.get("CONDA_PREFIX"):
        raise Lacking(f"no virtual environment, this is {sys.prefix}", SET_UP)
    pins = read_pins()
    if not pins:
        return f"{sys.prefix} (no constraints.txt beside this copy)"
    core = ("torch", "torchvision", "numpy", "PyYAML", "jupyterlab", "nbgrader", "ipywidgets", "anywidget")
    absent = [name for name in core if pinned(name) is None]
    if absent:
        raise Lacking(f"not installed: {', '.join(absent)}", SET_UP)
    off = [f"{n} {pinned(n)}, pinned {pins[n]}" for n in core if n in pins and not same(pinned(n), pins[n])]
    if off:
        # Other versions inside the ranges of pyproject.toml may work: said, not failed.
        return f"{sys.prefix}; differs from the pins: {'; '.join(off)}"
    return f"{sys.prefix}, as pinned"


def torch_op() -> str:
    try:
        torch = importlib.import_module("torch")
        total = torch.arange(12.0).view(3, 4).t().sum().item()
    except Exception as error:
        raise Lacking(f"{type(error).__name__}: {error}", SET_UP) from None
    if total != 66.0:
        raise Lacking(f"a sum over 0..11 gave {total}", "delete .venv, then " + SET_UP)
    return f"{torch.__version__}, a small sum is right"


def torchvision_model() -> str:
    how = "delete .venv, then " + SET_UP if pinned("torchvision") else SET_UP
    try:
        torch = importlib.import_module("torch")
        torchvision = importlib.import_module("torchvision")
        boxes, scores = torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.ones(1)
        # Its compiled ops load only beside the torch that they were built for.
        importlib.import_module("torchvision.ops").nms(boxes, scores, 0.5)
    except Exception as error:
        raise Lacking(f"{type(error).__name__}: {error}", how) from None
    return f"{torchvision.__version__}, fits this torch"


def gpu() -> str:
    how = "look at its driver; the course runs on a CPU, too"
    try:
        torch = importlib.import_module("torch")
        for kind in ("cuda", "mps"):
            backend = torch.cuda if kind == "cuda" else torch.backends.mps
            if backend.is_available():
                if torch.ones(2, device=kind).sum().item() != 2.0:
                    raise Lacking(f"{kind} adds wrongly", how)
                return torch.cuda.get_device_name() if kind == "cuda" else "Apple GPU (mps)"
    except Lacking:
        raise
    except Exception as error:
        raise Lacking(f"{type(error).__name__}: {error}".splitlines()[0], how) from None
    raise Lacking("none that torch can use; a CPU is enough", "")


def jupyterlab() -> str:
    # Started as the lab command starts it; its version line comes from the process.
    return said_by([sys.executable, "-m", "jupyterlab", "--version"], SET_UP)


def nbgrader() -> str:
    return said_by([sys.executable, "-m", "nbgrader", "--version"], SET_UP).splitlines()[-1]


def chromium() -> str:
    how = (
        "sudo apt install chromium"
        if sys.platform == "linux"
        else "install Chromium, Chrome or Edge from its maker's page"
    )
    program = first_program(CHROMIUMS)
    if program is None:
        raise Lacking("none found", how)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        argv = [program, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        argv += [f"--user-data-dir={profile}", "--dump-dom", "data:text/html,<p id=p>glass</p>"]
        if sys.platform == "linux" and os.geteuid() == 0:
            # Chromium's own sandbox refuses to start for root.
            argv.insert(1, "--no-sandbox")
        page = said_by(argv, how, seconds=60)
    if ">glass</p>" not in page:
        raise Lacking(f"{program} did not render a page", how)
    return f"{program}, renders a page"


def bubblewrap() -> str:
    if sys.platform != "linux":
        raise Lacking("for Linux only", "grade on Linux where submissions are not trusted")
    program = shutil.which("bwrap")
    if program is None:
        raise Lacking("none found", "sudo apt install bubblewrap")
    how = "allow unprivileged user namespaces (kernel setting), or grade on a machine that does"
    said_by([program, "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "/bin/true"], how)
    return f"{program}, runs a program in its own namespaces"


CHROMIUMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "msedge",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)

# (name, check, needed, what for)
CHECKS: tuple[tuple[str, Callable[[], str], bool, str], ...] = (
    ("Python", python, True, "everything"),
    ("disk", disk, True, "the virtual environment"),
    ("environment", environment, True, "everything, at the versions that were tested"),
    ("torch", torch_op, True, "everything but the mini-framework"),
    ("torchvision", torchvision_model, True, "the models in notebook 05"),
    ("JupyterLab", jupyterlab, True, "the notebooks"),
    ("nbgrader", nbgrader, True, "the labs' grades"),
    ("GPU", gpu, False, "the cells that compare it with the CPU"),
    ("chromium", chromium, False, "the browser tests"),
    ("bubblewrap", bubblewrap, False, "grading other people's notebooks in a sandbox"),
)


def doctor() -> Report:
    """Tries everything that the course uses. Takes some ten seconds; raises nothing."""
    return Report(findings(CHECKS))


def findings(checks: tuple[tuple[str, Callable[[], str], bool, str], ...]) -> Iterator[Finding]:
    for name, check, needed, needed_for in checks:
        lacking = "missing" if needed else "optional"
        try:
            yield Finding(name, "ok", check(), needed_for)
        except Lacking as what:
            yield Finding(name, lacking, what.found, needed_for, what.how)
        except Exception as error:
            # A check that breaks must not hide the others.
            yield Finding(name, lacking, f"{type(error).__name__}: {error}", needed_for, "report this")


def read_pins() -> dict[str, str]:
    """name -> version, from the constraints.txt of a clone; empty in an installed copy."""
    try:
        text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", text, flags=re.MULTILINE))


def pinned(name: str) -> str | None:
    """The installed version of a distribution, None when it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def same(version: str | None, pin: str) -> bool:
    """2.14.1+cpu is the pin 2.14.1 in another build."""
    return version is not None and version.split("+")[0] == pin


def first_program(names: tuple[str, ...]) -> str | None:
    return next((path for path in map(shutil.which, names) if path), None)


def said_by(argv: list[str], how: str, seconds: float = 30) -> str:
    """What `argv` prints; Lacking when it does not start, fails or takes longer than `seconds`."""
    name = Path(argv[0]).name if argv[0] != sys.executable else argv[2]
    try:
        ended = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise Lacking(f"{name} gave no answer in {seconds:.0f} s", how) from None
    except OSError as error:
        raise Lacking(f"{name}: {error.strerror}", how) from None
    if ended.returncode != 0:
        last = (ended.stderr.strip() or "no message").splitlines()[-1]
        raise Lacking(f"{name} fails: {last}", how)
    return ended.stdout.strip()


def main() -> int:
    report = doctor()
    print(report)
    print("\nAll that is needed is here." if report.ok else "\nSomething that is needed is missing, see ->.")
    return 0 if report.ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
