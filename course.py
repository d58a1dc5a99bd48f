"""One command for the whole course: makes .venv from the pins, then runs what is asked for.

    python3 course.py lab       read, play and work in JupyterLab
    python3 course.py test      the linter, the type checker and the tests

Standard library only. The set-up leaves a stamp in .venv, written last, so that an interrupted one is
finished by the next run and a finished one is not repeated until the pins change.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  (an old Python gets a sentence in place of a traceback)
    sys.stderr.write(
        "course.py: this is Python {}.{}, the course needs 3.11 or newer: install one from python.org "
        "or your package manager and run e.g. python3.11 course.py lab\n".format(*sys.version_info[:2])
    )
    raise SystemExit(2)

import argparse
import contextlib
import difflib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent
START = "notebooks/00_start.ipynb"

COMMANDS = {
    "lab": "open the course in JupyterLab [--instructor] [--exchange FOLDER] [--no-browser] [--port N]",
    "test": "run ruff, mypy and pytest [--full] [--torch-index URL] [any pytest arguments]",
    "doctor": "try everything that the course needs and say how to get what is missing",
    "grade": "grade a notebook: grade LAB [NOTEBOOK]",
    "labs": "write labs/ anew from solutions/",
    "reset": "a fresh copy of a lab, the old one kept aside: reset LAB",
    "nbgrader": "nbgrader with the course's configuration: nbgrader COMMAND ...",
    "bundle": "write the student's copy: bundle [FOLDER or FILE.zip]",
}
BROWSER = "pytest in a browser"
HANDED_ON = ("grade", "labs", "reset", "nbgrader", "bundle")

EXTRAS = frozenset({"course", "test"})
ADDRESS = re.compile(r"(https?|file)://")
DEFAULT = "default"

# Read by every Jupyter program of .venv: nbconvert's command line and JupyterLab's export menu alike.
JUPYTER = {
    "HTMLExporter": {
        "preprocessors": ["glassbox.widgets.export.StaticFigures"],
        "filters": {
            "clean_html": "glassbox.widgets.export.CleanHTML",
            "highlight_code": "glassbox.widgets.export.FoldedCode",
        },
    }
}

MOVE = "copy the course to a folder of your own"
SMALLER = "take a CPU build of torch with --torch-index URL (see README)"

GB = 1_000_000_000
# What a set-up takes on disk, with room to unpack: torch from PyPI is a CUDA build on Linux.
NEEDS_CUDA_BUILD = 7 * GB
NEEDS_CPU_BUILD = 3 * GB
NEEDS_UPDATE = 1 * GB

# Run by the new environment: fails, or prints the versions that it has.
CHECK = """
import importlib, json
names = ["torch", "torchvision", "jupyterlab", "nbgrader", "glassbox"]
found = {}
for name in names:
    try:
        found[name] = getattr(importlib.import_module(name), "__version__", "")
    except Exception as error:
        raise SystemExit(f"{name} cannot be imported: {type(error).__name__}: {error}")
print(json.dumps(found))
"""


class CourseError(Exception):
    """Something the reader can put right: one sentence with the way out; exit code 2."""


@dataclass
class Finished:
    """How a child process ended: its exit code and the lines that it printed."""

    code: int
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


BUSY = re.compile(r"\s*(Collecting|Downloading|Using cached|Building|Installing|Preparing)\s+(.*)")


class Step:
    """One line of progress: what is being done, the detail that pip last named, the seconds so far."""

    QUIET_SECONDS = 20.0

    def __init__(self, title: str) -> None:
        self.title = title
        self.detail = ""
        self.begun = time.monotonic()
        self.live = sys.stdout.isatty()
        self._spoken = self.begun
        if not self.live:
            print(f"  {title} ...", flush=True)

    def note(self, line: str) -> None:
        busy = BUSY.match(line)
        if not busy:
            return
        verb, what = busy.groups()
        if verb == "Installing" and what.startswith("collected packages:"):
            what = f"{what.count(',') + 1} packages"
        elif verb in ("Downloading", "Using cached"):
            what = what.rsplit("/", 1)[-1]
        self.detail = f"{verb.lower()} {what}"[:60]

    def tick(self) -> None:
        now = time.monotonic()
        if self.live:
            self._rewrite(f"  {self.title}: {self.detail}  {now - self.begun:.0f} s")
        elif now - self._spoken >= self.QUIET_SECONDS:
            self._spoken = now
            print(f"    {self.detail or 'working'}, {now - self.begun:.0f} s", flush=True)

    def done(self, word: str = "done") -> None:
        line = f"  {self.title}: {word}, {time.monotonic() - self.begun:.0f} s"
        if self.live:
            self._rewrite(line)
            print(flush=True)
        else:
            print(line, flush=True)

    @staticmethod
    def _rewrite(line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        print("\r" + line[:width].ljust(width), end="", flush=True)


def run_logged(argv: Sequence[str], step: Step, log: Path, env: dict[str, str]) -> Finished:
    """Runs `argv`, its output going to `log` and its progress to `step`; ends it if we are interrupted."""
    lines: list[str] = []
    with log.open("a", encoding="utf-8", errors="replace") as out:
        out.write("\n$ " + subprocess.list2cmdline(list(argv)) + "\n")
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=env,
        )

        def pump() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                out.write(line)
                lines.append(line.rstrip("\n"))
                step.note(line)

        reader = threading.Thread(target=pump, daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(0.5)
                step.tick()
            return Finished(process.wait(), lines)
        except BaseException:
            process.terminate()
            process.wait()
            reader.join(5)
            raise


Runner = Callable[[Sequence[str], Step, Path, dict[str, str]], Finished]


class Environment:
    """The course's virtual environment: whether it is ready, and how it gets so."""

    def __init__(self, root: Path = ROOT, run: Runner = run_logged) -> None:
        self.root = root
        self.path = root / ".venv"
        self.bin = self.path / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / ("python.exe" if os.name == "nt" else "python")
        self.stamp_file = self.path / "glassbox-setup.json"
        self.lock_file = self.path / "glassbox-setup.lock"
        self.log = self.path / "install.log"
        self.jupyter = self.path / "etc" / "jupyter" / "jupyter_config.json"
        self.run = run

    def variables(self) -> dict[str, str]:
        """The process environment as if .venv were activated, without settings that would lead pip astray."""
        env = dict(os.environ)
        for name in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
            env.pop(name, None)
        env.update(
            VIRTUAL_ENV=str(self.path),
            PATH=str(self.bin) + os.pathsep + env.get("PATH", ""),
            PYTHONNOUSERSITE="1",
            PYTHONUNBUFFERED="1",
            PIP_USER="0",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PIP_NO_INPUT="1",
        )
        if env.get("PIP_RETRIES") == "0":
            # pip names a broken connection only where it tries again.
            env["PIP_RETRIES"] = "1"
        return env

    # What the stamp says

    def stamp(self) -> dict[str, Any]:
        """What the last set-up left; {} where that is nothing that a set-up writes."""
        try:
            stamp = json.loads(self.stamp_file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return stamp if well_formed(stamp) else {}

    def wanted(self, extras: frozenset[str], torch_index: str | None) -> dict[str, Any]:
        """The stamp of a finished set-up. `base` cannot be changed in place, `pins` can."""
        pins = hashlib.sha256(json.dumps(JUPYTER).encode())
        for name in ("pyproject.toml", "constraints.txt"):
            pins.update(self.part(name))
        return {
            "base": {
                "python": f"{sys.version_info.major}.{sys.version_info.minor}",
                "folder": str(self.path),
                "torch_index": torch_index,
            },
            "pins": pins.hexdigest(),
            "extras": sorted(extras),
            # The index that torch was last installed from, which an interrupted set-up may not have reached.
            "torch_from": torch_index,
            "ready": True,
        }

    def ready(self, extras: frozenset[str], torch_index: str | None) -> bool:
        stamp, wanted = self.stamp(), self.wanted(extras, torch_index)
        return (
            stamp != {}
            and stamp["ready"] is True
            and stamp["base"] == wanted["base"]
            and stamp["pins"] == wanted["pins"]
            and extras <= set(stamp["extras"])
            and self.python.exists()
        )

    def write_stamp(self, stamp: dict[str, Any]) -> None:
        fresh = self.stamp_file.with_suffix(".new")
        fresh.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.stamp_file)

    # Getting ready

    def prepare(self, extras: frozenset[str], torch_index: str | None = None) -> None:
        """Makes .venv hold the pins of `extras`; nothing to do when it does already.

        Without a `torch_index` the one chosen before is kept; "default" leaves it again. Raises CourseError
        with the way out.
        """
        if torch_index is None:
            torch_index = self.stamp().get("base", {}).get("torch_index")
        elif torch_index == DEFAULT:
            torch_index = None
        elif not ADDRESS.match(torch_index):
            raise CourseError(f"--torch-index takes an index address (https://...), not {torch_index!r}")
        if self.ready(extras, torch_index):
            return
        if not self.path.is_dir() and (self.path.exists() or self.path.is_symlink()):
            what = "a file" if self.path.exists() else "a link to nowhere"
            raise CourseError(f"{self.path} is {what}, not a folder: move it away and run the command again")
        try:
            self.path.mkdir(exist_ok=True)
            with self.locked():
                self._prepare(extras, torch_index)
        except PermissionError as error:
            where = error.filename or self.path
            raise CourseError(f"no permission to write {where}: {MOVE}") from None
        except OSError as error:
            raise CourseError(
                f"the set-up could not write to {self.path}: {error.strerror or error}"
            ) from None

    def _prepare(self, extras: frozenset[str], torch_index: str | None) -> None:
        begun = time.monotonic()
        before = self.stamp()
        torch_from = before.get("torch_from")
        wanted = self.wanted(extras | set(before.get("extras", [])), torch_index)
        works = self.works()
        keep = works and before.get("base", wanted["base"]) == wanted["base"]
        self.check_disk(torch_index)
        print(f"Setting up {self.path} (Python {wanted['base']['python']}); pip's own words go to {self.log}")
        pip = [str(self.python), "-m", "pip", "install", "--progress-bar", "off"]
        constraints = ["-c", str(self.root / "constraints.txt")]
        torch: list[str] = []
        if torch_index:
            # --no-deps: that index holds other versions of the rest than the pins say.
            torch = [*pip, "--no-deps", "--index-url", torch_index, *self.torch_pair()]
            constraints += ["--extra-index-url", torch_index]
        if torch_index and works and torch_index != before.get("base", {}).get("torch_index"):
            # A mistyped address must not cost the environment that is there.
            about = about_index(torch_index, torch_from)
            self.install("torch's index", [*torch, "--dry-run", "--ignore-installed"], about)
        if not keep:
            self.clear()
        # Said before the work starts: what is there from here on is unfinished, and which torch was chosen.
        unfinished = {**wanted, "torch_from": torch_from, "ready": False}
        self.write_stamp(unfinished)
        if not keep:
            self.make()
        else:
            self.drop_torn_packages()
        if torch_index:
            try:
                self.install("torch and torchvision", torch, about_index(torch_index, torch_from))
            except CourseError:
                self.write_stamp({**unfinished, "base": {**wanted["base"], "torch_index": torch_from}})
                raise
            self.write_stamp({**unfinished, "torch_from": torch_index})
        target = f"{self.root}[{','.join(wanted['extras'])}]"
        about = about_index(torch_index, torch_index) if torch_index else ""
        self.install("packages", [*pip, *constraints, "-e", target], about)
        self.write_settings()
        self.check()
        self.write_stamp(wanted)
        print(f"Ready after {time.monotonic() - begun:.0f} s.", flush=True)

    def works(self) -> bool:
        """Whether .venv is of this Python and has a pip that starts."""
        probe = "import sys, pip; print('%d.%d' % sys.version_info[:2])"
        try:
            argv = [str(self.python), "-c", probe]
            said = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=self.variables())
        except (OSError, subprocess.TimeoutExpired):
            return False
        return said.returncode == 0 and said.stdout.strip() == "{}.{}".format(*sys.version_info[:2])

    def clear(self) -> None:
        """Empties .venv, the lock apart, which this process holds."""
        for entry in self.path.iterdir():
            if entry == self.lock_file:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def make(self) -> None:
        step = Step("virtual environment")
        ended = self.run([sys.executable, "-m", "venv", str(self.path)], step, self.log, dict(os.environ))
        if ended.code == 0:
            step.done()
            return
        step.done("failed")
        if "ensurepip" in ended.text or "No module named venv" in ended.text:
            version = "{}.{}".format(*sys.version_info[:2])
            raise CourseError(
                f"this Python cannot make virtual environments (venv or ensurepip is missing): "
                f"on Debian and Ubuntu run: sudo apt install python{version}-venv"
            )
        raise CourseError(explain(ended, self.log))

    def drop_torn_packages(self) -> None:
        """Removes what an interrupted pip left.

        It writes RECORD last, and would take a half-unpacked package without one as installed.
        """
        for folder in self.path.glob("**/site-packages"):
            for info in folder.glob("*.dist-info"):
                if not (info / "RECORD").exists():
                    shutil.rmtree(info)
            for torn in folder.glob("~*"):
                shutil.rmtree(torn, ignore_errors=True)

    def install(self, title: str, argv: list[str], about: str = "") -> None:
        step = Step(title)
        ended = self.run(argv, step, self.log, self.variables())
        if ended.code != 0:
            step.done("failed")
            raise CourseError(explain(ended, self.log, about))
        step.done()

    def write_settings(self) -> None:
        """Puts the course's settings where the Jupyter programs of .venv look."""
        self.jupyter.parent.mkdir(parents=True, exist_ok=True)
        self.jupyter.write_text(json.dumps(JUPYTER, indent=1) + "\n", encoding="utf-8")

    def check(self) -> None:
        """Imports what the course stands on, in the new environment, and compares torch with torchvision."""
        step = Step("check")
        ended = self.run([str(self.python), "-c", CHECK], step, self.log, self.variables())
        way_out = f"delete {self.path} and run the command again; details in {self.log}"
        if ended.code != 0:
            step.done("failed")
            last = ended.lines[-1] if ended.lines else "no output"
            raise CourseError(f"the set-up is not usable: {last}; {way_out}")
        found = json.loads(ended.lines[-1])
        pair = f"torch {found['torch']} and torchvision {found['torchvision']}"
        if not pair_fits(found["torch"], found["torchvision"]):
            step.done("failed")
            raise CourseError(f"{pair} do not belong together; {way_out}")
        step.done(pair)

    def check_disk(self, torch_index: str | None) -> None:
        if any(self.path.glob("**/site-packages/torch/__init__.py")):
            needed = NEEDS_UPDATE
        elif sys.platform == "linux" and not torch_index:
            needed = NEEDS_CUDA_BUILD
        else:
            needed = NEEDS_CPU_BUILD
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise CourseError(
                f"{free / GB:.1f} GB free in {self.root}, the set-up needs {needed / GB:.0f} GB: make room"
                + (f", or {SMALLER}" if needed > NEEDS_CPU_BUILD else "")
            )

    def part(self, name: str) -> bytes:
        """The content of a file that the set-up goes by."""
        try:
            return (self.root / name).read_bytes()
        except OSError as error:
            raise CourseError(
                f"{self.root / name} cannot be read ({error.strerror}): get a complete copy of the course"
            ) from None

    def pins(self) -> dict[str, str]:
        """name -> version, from constraints.txt."""
        text = self.part("constraints.txt").decode("utf-8", errors="replace")
        return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", text, flags=re.MULTILINE))

    def torch_pair(self) -> list[str]:
        """torch and torchvision as pip is asked for them."""
        pins = self.pins()
        try:
            return [f"{name}=={pins[name]}" for name in ("torch", "torchvision")]
        except KeyError as absent:
            where = self.root / "constraints.txt"
            raise CourseError(
                f"{where} does not pin {absent.args[0]}: get a complete copy of the course"
            ) from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One set-up at a time. The system frees the lock when its holder dies: a stale one cannot block."""
        with self.lock_file.open("a+", encoding="utf-8") as handle:
            try:
                _lock(handle.fileno())
            except OSError:
                raise CourseError(
                    f"another set-up is running in {self.path}: wait until it is done"
                ) from None
            yield


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def well_formed(stamp: Any) -> bool:
    """Whether JSON data has the form of a stamp: `Environment.wanted` with any values."""
    try:
        base, extras = stamp["base"], stamp["extras"]
        texts = [base["python"], base["folder"], stamp["pins"], *extras]
        addresses = [base["torch_index"], stamp["torch_from"]]
        ready = stamp["ready"]
    except (TypeError, KeyError):
        return False
    return (
        all(isinstance(text, str) for text in texts)
        and all(a is None or (isinstance(a, str) and ADDRESS.match(a)) for a in addresses)
        and isinstance(ready, bool)
        and isinstance(extras, list)
        and EXTRAS.issuperset(extras)
    )


def about_index(torch_index: str, torch_from: str | None) -> str:
    """Which address a failed install went by, and the way to another."""
    if torch_index == torch_from:
        back = f"--torch-index {DEFAULT} goes back to PyPI"
        return f"torch's index is {torch_index}, kept from before: {back}"
    return (
        f"torch was looked for at {torch_index}, which is not kept: correct the address, "
        f"or leave --torch-index out to use {torch_from or 'PyPI'}"
    )


def pair_fits(torch: str, torchvision: str) -> bool:
    """torch 2.N goes with torchvision 0.(N + 15), by the table in torchvision's README."""
    ours, theirs = torch.split("."), torchvision.split(".")
    return ours[0] == "2" and theirs[0] == "0" and int(theirs[1]) == int(ours[1]) + 15


CAUSES = (
    (r"No space left on device|Errno 28", f"the disk is full: make room, or {SMALLER}"),
    (
        r"SSLError|confirming the ssl certificate",
        "the package index's certificate is not accepted: check its address, and behind a proxy that has a "
        "certificate of its own, set PIP_CERT to that file",
    ),
    (
        r"not a trusted or secure host",
        "pip takes nothing from another machine over plain http: use the index's https:// address",
    ),
    (
        r"NewConnectionError|NameResolutionError|name resolution|getaddrinfo failed|Network is unreachable"
        r"|Connection refused|ConnectTimeout|Read timed out|ReadTimeout|ProxyError|Max retries exceeded",
        "the package index cannot be reached: check the network or proxy and run the command again",
    ),
    (r"Permission denied|Errno 13", f"no permission to write: {MOVE}"),
    # All that pip says where it made one try, of an address without an index, and of builds for others only.
    (
        r"\(from versions: none\)",
        "the index was not reached or has nothing for this machine: check the network and the index's "
        "address, or try Python 3.11 to 3.13",
    ),
    (
        r"No matching distribution found|ResolutionImpossible",
        "the index has no such release for this machine: try Python 3.11 to 3.13 or another --torch-index",
    ),
)


def explain(ended: Finished, log: Path, about: str = "") -> str:
    """The likely cause of a failed step in one sentence, then the last lines that pip printed."""
    sentence = f"the set-up stopped (exit code {ended.code}): run the command again to go on"
    for pattern, known in CAUSES:
        if re.search(pattern, ended.text):
            sentence = known
            break
    if about:
        sentence += f"; {about}"
    return "\n".join([sentence, *("    " + line for line in ended.lines[-8:]), f"  all of it: {log}"])


# Commands


class OneLine(argparse.ArgumentParser):
    """An argument parser whose errors are ours: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise CourseError(f"{message}; see python3 course.py {self.prog.split()[-1]} --help")


def hand_over(argv: Sequence[str], env: dict[str, str], cwd: Path | None = None) -> int:
    """Becomes `argv` where the system can, so that signals and the terminal reach it unchanged."""
    sys.stdout.flush()
    if os.name == "posix":
        if cwd is not None:
            os.chdir(cwd)
        os.execve(argv[0], list(argv), env)
    return subprocess.call(argv, env=env, cwd=cwd)


def lab(args: Sequence[str], environment: Environment) -> int:
    parser = OneLine(prog="course.py lab", description=COMMANDS["lab"], allow_abbrev=False)
    parser.add_argument("--instructor", action="store_true", help="open Formgrader to release and grade labs")
    parser.add_argument(
        "--exchange",
        metavar="FOLDER",
        help=f"the folder that your class hands labs out and in by (kept; {DEFAULT!r}: the course's own)",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument("--port", type=int, help="port to listen on; the next free one from 8888 by default")
    parser.add_argument("--torch-index", metavar="URL", help="package index to take torch from (kept)")
    options = parser.parse_args(args)
    if options.port is not None:
        check_port(options.port)
    if options.instructor and not (environment.root / "solutions").is_dir():
        raise CourseError("this is a student's copy, with no solutions to release: leave out --instructor")
    settle_exchange(environment.root, options.exchange)
    environment.prepare(frozenset({"course"}), options.torch_index)
    argv = lab_argv(environment, options.port, options.no_browser, options.instructor)
    return hand_over(argv, lab_variables(environment, options.instructor), environment.root)


def settle_exchange(root: Path, chosen: str | None) -> None:
    """Keeps the class's folder where one is named; CourseError where that one, or the kept one, is none."""
    from autograder import exchanging
    from autograder.errors import PlainError

    try:
        if chosen is not None and not chosen.strip():
            raise PlainError(f"--exchange takes a folder, or {DEFAULT} for the course's own")
        if chosen is not None:
            exchanging.choose(root, None if chosen == DEFAULT else Path(chosen).expanduser())
        exchanging.folder(root)
    except RuntimeError as problem:  # "~" before a name that is no user's
        raise CourseError(f"--exchange {chosen}: {problem}") from None
    except PlainError as problem:
        raise CourseError(str(problem)) from None


def lab_variables(environment: Environment, instructor: bool) -> dict[str, str]:
    """The process environment of JupyterLab, with the panels of a learner or of an instructor."""
    env = environment.variables()
    panels = environment.root / "autograder" / "jupyter" / ("instructor" if instructor else "learner")
    env["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(panels), env.get("JUPYTER_CONFIG_PATH")]))
    return env


def lab_argv(
    environment: Environment, port: int | None, no_browser: bool, instructor: bool = False
) -> list[str]:
    root = environment.root
    start = f"/lab/tree/{START}" if (root / START).exists() else "/lab"
    start = "/instructor" if instructor else start
    argv = [str(environment.python), "-m", "jupyterlab", f"--ServerApp.root_dir={root}"]
    argv += [f"--LabApp.default_url={start}"]
    if port is not None:
        argv += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if no_browser:
        argv.append("--no-browser")
    if os.name == "posix" and os.geteuid() == 0:
        argv.append("--allow-root")
    return argv


def check_port(port: int) -> None:
    if not 0 < port < 65536:
        raise CourseError(f"--port {port}: a port is a number from 1 to 65535")
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise CourseError(f"port {port} is reserved for the system: choose one above 1023") from None
        except OSError:
            raise CourseError(f"port {port} is taken: choose another, or leave --port out") from None


def test(args: Sequence[str], environment: Environment) -> int:
    parser = OneLine(prog="course.py test", description=COMMANDS["test"], allow_abbrev=False)
    parser.add_argument("--torch-index", metavar="URL", help="package index to take torch from (kept)")
    options, rest = parser.parse_known_args(args)
    if not (environment.root / "tests").is_dir():
        raise CourseError("this is a student's copy, which has no tests: see lab, doctor and grade")
    environment.prepare(frozenset({"course", "test"}), options.torch_index)
    failed = []
    for name, argv in checks(rest, environment):
        print(f"== {name}", flush=True)
        code = subprocess.call(argv, env=environment.variables(), cwd=environment.root)
        # pytest ends with 5 where a selection such as -k leaves nothing of the browser's share.
        if code not in ((0, 5) if name == BROWSER else (0,)):
            failed.append(name)
    if failed:
        print(f"course.py: not clean: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def checks(args: Sequence[str], environment: Environment) -> list[tuple[str, list[str]]]:
    """What `test` runs, in order, as (name, command). Where arguments name tests, only pytest, on those."""
    python = str(environment.python)
    pytest = [python, "-m", "pytest"]
    named = [a for a in args if not a.startswith("-") and (environment.root / a.split("::")[0]).exists()]
    if named:
        return [("pytest", [*pytest, *args])]
    found = [("ruff", [python, "-m", "ruff", "check", "."]), ("mypy", [python, "-m", "mypy"])]
    if "-m" in args or not browser_tests(environment.root):
        return [*found, ("pytest", [*pytest, *args])]
    # Apart: playwright leaves an event loop running, and asyncio.run fails in every later test.
    found.append((BROWSER, [*pytest, "-m", "browser", *args]))
    # A file's tests stay in one process, since they share what is dear to make, such as a classroom.
    shared_out = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    found.append(("pytest", [*pytest, *shared_out, "-m", "not browser", *args]))
    return found


def browser_tests(root: Path) -> bool:
    return any(
        "mark.browser" in path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py")
    )


def doctor(args: Sequence[str], environment: Environment) -> int:
    if args:
        raise CourseError(f"doctor takes no arguments, not {' '.join(args)!r}")
    python = str(environment.python) if environment.python.exists() else sys.executable
    # By its path and with -P, so that it runs on a bare Python and nothing beside it is taken for a module.
    script = environment.root / "shared" / "glassbox" / "doctor.py"
    return subprocess.call([python, "-P", str(script)], env={**environment.variables(), "PYTHONUTF8": "1"})


def hand_on(command: str, args: Sequence[str], environment: Environment) -> int:
    if command != "nbgrader":
        understood([command, *args])
    environment.prepare(frozenset({"course"}))
    argv = [str(environment.python), "-m", "autograder", command, *args]
    return hand_over(argv, environment.variables())


def understood(argv: list[str]) -> None:
    """Lets the autograder read its words before anything is installed for it; CourseError where it cannot."""
    # Neither needs more than the standard library; --help is answered there, too.
    from autograder import labs
    from autograder.__main__ import PlainError, parser

    try:
        options = parser().parse_args(argv)
        if "lab" in options:
            labs.require(options.lab)
    except PlainError as problem:
        raise CourseError(str(problem)) from None


def usage() -> str:
    rows = [f"  {name:<9} {text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: python3 course.py COMMAND ...", "", *rows])


def main(argv: Sequence[str], environment: Environment | None = None) -> int:
    environment = environment or Environment()
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if argv else 2
    command, args = argv[0], list(argv[1:])
    try:
        if command in HANDED_ON:
            return hand_on(command, args, environment)
        if command in COMMANDS:
            return {"lab": lab, "test": test, "doctor": doctor}[command](args, environment)
        close = difflib.get_close_matches(command, COMMANDS, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(COMMANDS)}"
        raise CourseError(f"no command {command!r}: {hint}")
    except CourseError as problem:
        print(f"course.py: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ncourse.py: stopped. The same command goes on from here.", file=sys.stderr)
        return 130


def _end(signum: int, frame: Any) -> NoReturn:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    # So that a set-up that is ended from outside ends its pip too.
    signal.signal(signal.SIGTERM, _end)
    raise SystemExit(main(sys.argv[1:]))
