"""The grading kernel: where a learner's code runs for a grade.

Its Python sees the standard library, ipykernel with what that needs, and four small modules of glassbox that
carry calls and answers. torch, NumPy and the rest of glassbox have stand-ins that can be imported but not
used; for a lab that is about PyTorch itself, the first two are the real ones. No oracle, no reference piece
and no seed is on its path. It starts with an environment of its own and
in a private copy of the submission's folder. It is not yet a sandbox: code that goes looking on the disk or
the network finds them.
"""

from __future__ import annotations

import atexit
import functools
import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from traitlets import Bool

from glassbox.tasks import answering, building, plain, unplug

STAND_INS = (
    *("torch", "torchvision", "numpy", "matplotlib", "ipywidgets", "anywidget", "sklearn", "scipy", "pandas"),
    "glassbox",
)
"""Packages that can be imported but not used; of glassbox, the modules that are really there come first."""
REAL = ("torch", "numpy")
"""What of these is real in the kernel of a lab that is about PyTorch itself."""
MESSAGE_LIMIT = 4 << 20
WAITING_MESSAGES = 250
KEPT_VARIABLES = ("LANG", "LC_ALL", "TZ", "SYSTEMROOT", "TEMP", "TMP", "OPENBLAS_CORETYPE")

BOOT = '''"""Starts ipykernel on the path prepared for it, with stand-ins for the packages that are absent."""
import ast, os, sys

site, sys.argv = sys.argv[1], [sys.argv[0], *sys.argv[2:]]
# The learner's own modules lie beside the notebook. Last, so that none takes the name of another.
sys.path = [place for place in sys.path if "-packages" not in place] + [site, os.getcwd()]
from glassbox.tasks.unplug import StandIns

sys.meta_path.append(StandIns({packages!r}))
# What takes seconds to import is there before the clock of a cell runs.
for package in {real!r}:
    __import__(package)
if {real!r}:
    from glassbox.tasks.building import warm
    warm()

class KeepGoing(ast.NodeTransformer):
    """A statement that fails costs itself, not what stands below it in its cell."""

    def visit_Module(self, module):
        *before, last = module.body or [ast.Pass()]
        module.body = [self.guarded(statement) for statement in before] + [last]
        return ast.fix_missing_locations(module)

    def guarded(self, statement):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            return statement
        show = ast.parse("get_ipython().showtraceback()").body
        handler = ast.ExceptHandler(type=ast.Name("Exception", ast.Load()), name=None, body=show)
        return ast.copy_location(ast.Try([statement], [handler], [], []), statement)

from ipykernel.kernelapp import IPKernelApp
app = IPKernelApp.instance()
app.initialize()
app.shell.ast_transformers.append(KeepGoing())
app.start()
'''


PLAY = '''"""Play cells in a grading kernel: they say that they play elsewhere, and show nothing else."""
from contextlib import contextmanager, suppress

from .answering import quiet

@contextmanager
def running_on(*mine, **pieces):
    with quiet(), suppress(Exception):
        yield
    print("This cell plays in your notebook; the mini-framework is not here while you are graded.")

@contextmanager
def trying(*names):
    with quiet(), suppress(Exception):
        yield
    print("This cell plays in your notebook; the instruments are not here while you are graded.")
'''


def requirements(distribution: str) -> set[str]:
    """The installed distributions that `distribution` needs, itself included, by name; markers applied."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        waiting += [
            need.name
            for need in map(Requirement, needs)
            if need.marker is None or need.marker.evaluate({"extra": ""})
        ]
    return found


@functools.cache
def kernel_site(with_torch: bool = False) -> Path:
    """A folder, made once in this process and removed at its end, that holds all that a grading kernel may
    import.
    """
    real = REAL if with_torch else ()
    folder = Path(tempfile.mkdtemp(prefix="glassbox-kernel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    site = folder / "site"
    site.mkdir()
    for name in sorted(set().union(*map(requirements, ("ipykernel", *real)))):
        _link(importlib.metadata.distribution(name), site)
    tasks = site / "glassbox" / "tasks"
    tasks.mkdir(parents=True)
    for module in (answering, building, plain, unplug):
        assert module.__file__
        shutil.copy(module.__file__, tasks)
    (tasks.parent / "__init__.py").write_text('"""What a grading kernel holds of glassbox."""\n')
    (tasks / "__init__.py").write_text(
        '"""The kernel\'s side of a grade."""\n\nfrom .answering import check\n\n__all__ = ["check"]\n'
    )
    (tasks / "play.py").write_text(PLAY)
    absent = tuple(name for name in STAND_INS if name not in real)
    (folder / "boot.py").write_text(BOOT.format(packages=absent, real=real))
    return site


def _link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Puts the top-level files and folders of a distribution into `site`, as links where there are links."""
    tops = {Path(str(file)).parts[0] for file in distribution.files or []}
    for top in sorted(tops - {"..", "__pycache__"}):
        source = Path(str(distribution.locate_file(top)))
        target = site / top
        if target.exists() or not source.exists():
            continue
        try:
            target.symlink_to(source)
        except OSError:  # Windows lets only some users make links
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


class GradingKernelSpecManager(KernelSpecManager):
    """Knows one kernel, whatever a notebook asks for. A provisioner named in its metadata would run it
    elsewhere.
    """

    with_torch = Bool(False)

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The grading kernel's specification; messages interrupt it, since a signal may not reach through a
        sandbox.
        """
        site = kernel_site(self.with_torch)
        argv = [
            sys.executable,
            "-I",
            "-S",
            str(site.parent / "boot.py"),
            str(site),
            "-f",
            "{connection_file}",
        ]
        quiet = ["--HistoryManager.enabled=False", "--Application.log_level=50"]
        return KernelSpec(
            argv=argv + quiet, display_name="Grading", language="python", interrupt_mode="message"
        )


class GradingKernelManager(AsyncKernelManager):
    """Manages a grading kernel, and bounds the size of the messages that it may send. `with_torch`: PyTorch is
    real in it.
    """

    def __init__(self, with_torch: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_spec_manager = GradingKernelSpecManager(with_torch=with_torch)

    def client(self, **kwargs: Any) -> Any:
        """A client whose sockets refuse messages above the limit: their sender runs out of time, not we out
        of memory.
        """
        client = super().client(**kwargs)
        client.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE_LIMIT)  # type: ignore[attr-defined]
        client.context.setsockopt(zmq.RCVHWM, WAITING_MESSAGES)  # type: ignore[attr-defined]
        return client


def environment(home: Path) -> dict[str, str]:
    """The environment of a grading kernel: a few neutral variables, and `home` for everything that looks for
    a home.
    """
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"), str(home))
    # Only the system's own programs: nbgrader needs the course's scripts on its path, a submission does not.
    path = os.defpath if os.name == "posix" else os.environ.get("PATH", "")
    return {
        **kept,
        **homes,
        "PATH": path,
        "NBGRADER_EXECUTION": "autograde",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        # Answers come from forked children, where a team of OpenMP threads would not be.
        "OMP_NUM_THREADS": "1",
    }
