"""Take home: what the reader made with the course, written as files from their own machine (PyTorch has no twin)."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..records import Rows, Table, human_bytes
from . import _torch_internals as internals
from ._looking import on_a_terminal
from .call_paths import call_path
from .key_families import cheat_sheet
from .portraits import profile
from .storage import storage_map

INTERCEPTOR = '''"""Prints every operator that PyTorch runs in a block: `with Interceptor(): ...`."""

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


class Interceptor(TorchDispatchMode):
    """The handler stands below autograd and autocast: what reaches it is what the backend is about to run."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        given = tree_map_only(Tensor, lambda t: tuple(t.shape), args)
        made = tree_map_only(Tensor, lambda t: tuple(t.shape), result)
        print(f"{func}{given} -> {made}")
        return result


if __name__ == "__main__":
    import torch

    a, b = torch.randn(2, 3), torch.randn(3)
    with Interceptor():
        (a + b).relu().sum()
'''


@dataclass(frozen=True, slots=True)
class Notes(Table):
    """The files that `notes` wrote: (path, what it is) each. `left_out` says what could not be made, and why."""

    folder: Path
    files: tuple[tuple[Path, str], ...]
    left_out: tuple[str, ...] = ()

    def rows(self) -> Rows:
        return [
            {"file": path.name, "what": what, "size": human_bytes(path.stat().st_size)} for path, what in self.files
        ]

    def caption(self) -> str:
        return "\n".join([f"{len(self.files)} files in {self.folder}", *self.left_out])


def notes(
    folder: str | Path,
    *,
    tensors: Mapping[str, torch.Tensor] | None = None,
    model: torch.nn.Module | None = None,
    inputs: tuple[Any, ...] = (),
) -> Notes:
    """Writes five things to take home to `folder`, as Markdown and SVG; files of the same names are replaced.

    storage.svg           your tensors over their storages: `tensors` by name, or a 3 x 4 grid, its transpose and a part
    dispatch_keys.md      all dispatch keys of the installed torch, in the order of their priority
    interceptor.py        a dispatch mode that prints each operator, ready to run
    call_path.md, .svg    the stations of a + b with the frames that were seen here
    operators.md, .svg    the operator portrait of `model` on `inputs`; without one resnet18.md, .svg of torchvision's
                          ResNet-18 with random weights
    README.md             what these are, and on which machine they were made

    What needs a package that is not installed is left out, and the record says so. NotADirectoryError where `folder` is
    a file, ValueError for a model without inputs.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"notes: {folder} is a file; give the name of a folder.")
    if model is not None and not inputs:
        raise ValueError("notes: a model needs inputs to run on; give them as inputs=(x,).")
    folder.mkdir(parents=True, exist_ok=True)
    files: list[tuple[Path, str]] = []
    left_out: list[str] = []

    def add(name: str, what: str, make: Callable[[], str]) -> None:
        _say(f"writing {name} ...")
        files.append((_write(folder / name, make()), what))

    grid = torch.arange(12.0).view(3, 4)
    seen = storage_map(**(tensors or {"A": grid, "A_T": grid.T, "part": grid[1:, :2]}))
    for nr, figure in enumerate(seen.figures()):
        suffix = f"_{nr + 1}" if nr else ""
        add(f"storage{suffix}.svg", "your tensors over the storage that they share", figure.file_text)
    add("dispatch_keys.md", "the dispatch keys in the order of their priority", cheat_sheet().to_markdown)
    add("interceptor.py", "a dispatch mode that prints each operator", lambda: INTERCEPTOR)
    a, b = torch.ones(4, requires_grad=True), torch.ones(4)
    _say("following a + b ...")
    path = call_path(lambda: a + b)
    add("call_path.md", "the stations of a + b, with the frames seen here", path.to_markdown)
    add("call_path.svg", "the same as a picture", path.figure().file_text)
    name = "operators" if model is not None else "resnet18"
    if model is None:
        try:
            from torchvision.models import resnet18
        except ImportError:
            left_out.append("resnet18.md is left out: torchvision is not installed; give model= and inputs= instead.")
        else:
            model, inputs = resnet18(weights=None).eval(), (torch.randn(1, 3, 224, 224),)
    if model is not None:
        _say("taking the operator portrait ...")
        with torch.no_grad():
            portrait = profile(model, *inputs)
        add(f"{name}.md", f"the operators that a forward of {type(model).__name__} runs", portrait.to_markdown)
        add(f"{name}.svg", "their shares of the time", portrait.figure().file_text)
    add("README.md", "what these files are", lambda: _index(files, left_out))
    _say("")
    return Notes(folder, tuple(files), tuple(left_out))


def _index(files: list[tuple[Path, str]], left_out: list[str]) -> str:
    lines = [f"- [{path.name}]({path.name}): {what}" for path, what in files]
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    about = f"Made by glassbox with PyTorch {internals.version()}, {machine}."
    return "\n".join(["# What I take home", "", about, "", *lines, *left_out]) + "\n"


def _write(path: Path, content: str) -> Path:
    """The whole file or none of it: an interrupted run leaves the old one."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".tmp", delete=False) as file:
        file.write(content if content.endswith("\n") else content + "\n")
    try:
        Path(file.name).replace(path)
    except OSError:
        Path(file.name).unlink()
        raise
    path.chmod(0o644)
    return path


def _say(words: str) -> None:
    """One line that the next one writes over, on a terminal."""
    if on_a_terminal(sys.stderr):
        print(f"\r{words:60}" + ("" if words else "\r"), end="", file=sys.stderr, flush=True)
