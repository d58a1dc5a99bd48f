"""The `glassbox` command: the instruments from a shell (PyTorch has torch.utils.collect_env and the profiler's own)."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .records import Table

T = TypeVar("T")


class PlainError(Exception):
    """What the user can mend, said in one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise PlainError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and prints its record; 0 when done, 2 for what the user can mend, 130 when interrupted."""
    try:
        options = parser().parse_args(arguments)
        print(options.run(options))
        sys.stdout.flush()
    except PlainError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; what Python would flush at its end has nowhere to go.
        sys.stdout = None
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = _Parser(prog="glassbox", description="Opens PyTorch's black box.", allow_abbrev=False)
    groups = top.add_subparsers(required=True, metavar="COMMAND")
    xray = groups.add_parser("xray", help="instruments for the installed PyTorch", allow_abbrev=False)
    commands = xray.add_subparsers(required=True, metavar="INSTRUMENT")

    def add(name: str, run: Callable[[argparse.Namespace], Any], about: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        one.add_argument("--format", choices=("text", "md", "json"), default="text", help="text by default")
        one.set_defaults(run=lambda options: written(run(options), options.format))
        return one

    for name, run, about in (
        ("portrait", portrait, "the operators that a model runs, counted and timed"),
        ("ops", ops, "each operator call of a model's forward, in order"),
    ):
        one = add(name, run, about)
        one.add_argument("model", help="a torchvision model such as resnet18, or module:name of your own")
        one.add_argument(
            "--input",
            action="append",
            metavar="SHAPE[:DTYPE]",
            help="shape of an input, 1x3x224x224 by default, and its dtype, float32 by default, such as 2x16:int64; "
            "floats are drawn from a normal distribution, integers from 0 to 9; repeatable",
        )
        one.add_argument("--mode", choices=("grad", "no_grad", "inference_mode"), help="no_grad by default")
        if name == "portrait":
            one.add_argument(
                "--train", action="store_true", help="in train mode, with a backward pass and so with grad"
            )
    for name, run, about in (
        ("table", table, "an operator's dispatch table: which kernel runs for which key"),
        ("native-function", native_function, "an operator's entry in native_functions.yaml, explained"),
        ("derivative", derivative, "an operator's entry in derivatives.yaml, explained"),
    ):
        add(name, run, about).add_argument("op", help="such as add.Tensor")
    add("cheat-sheet", cheat_sheet, "all dispatch keys of the installed PyTorch, in the order of their priority")
    add("notes", notes, "write what you take home, from this machine").add_argument(
        "folder", type=Path, help="where the files go; it is made if need be"
    )
    return top


def written(record: Table, form: str) -> str:
    """The record as text, as Markdown or as JSON with its caption and rows."""
    if form == "json":
        return json.dumps({"caption": record.caption(), "rows": record.rows()}, indent=2, default=str)
    return record.to_markdown() if form == "md" else str(record)


def portrait(options: argparse.Namespace) -> Table:
    from . import xray

    if options.train and options.mode not in (None, "grad"):
        raise PlainError(f"--train goes backward, for which grad is on: leave out --train or --mode {options.mode}")
    model, inputs = _model(options.model), _inputs(options)
    if options.train:
        return _tried(lambda: xray.profile(model.train(), *inputs, backward=True))
    with _mode(options.mode):
        return _tried(lambda: xray.profile(model.eval(), *inputs))


def ops(options: argparse.Namespace) -> Table:
    from . import xray

    model, inputs = _model(options.model).eval(), _inputs(options)

    def run() -> Table:
        with _mode(options.mode), xray.op_log() as log:
            model(*inputs)
        return log.ops

    return _tried(run)


def table(options: argparse.Namespace) -> Table:
    from . import xray

    return _tried(lambda: xray.table(options.op))


def native_function(options: argparse.Namespace) -> Table:
    from . import xray

    return _tried(lambda: xray.native_function(options.op))


def derivative(options: argparse.Namespace) -> Table:
    from . import xray

    return _tried(lambda: xray.derivative(options.op))


def cheat_sheet(options: argparse.Namespace) -> Table:
    from . import xray

    return _tried(xray.cheat_sheet)


def notes(options: argparse.Namespace) -> Table:
    from . import xray

    return _tried(lambda: xray.notes(options.folder))


def _tried(run: Callable[[], T]) -> T:
    """The instrument's own refusals are sentences for the user; a model's errors are too, by their first line."""
    try:
        return run()
    except Exception as error:
        raise PlainError(_in_a_line(error)) from error


def _in_a_line(error: Exception) -> str:
    said = str(error).strip() or "no message"
    return f"{type(error).__name__}: {said.splitlines()[0]}"


def _mode(name: str | None) -> Any:
    import torch

    modes = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
    return modes[name or "no_grad"]()


def _model(name: str) -> Any:
    """A torchvision model with random weights, or what `module:name` gives: a module, or a callable that makes one."""
    import torch

    if ":" in name:
        where, _, attribute = name.partition(":")
        # As `python -m` does: what lies in the current folder can be named.
        sys.path.insert(0, str(Path.cwd()))
        try:
            found = getattr(importlib.import_module(where), attribute)
        except Exception as error:
            said = _in_a_line(error)
            raise PlainError(f"{name!r} cannot be imported ({said}); give module:name of a model") from error
        finally:
            sys.path.remove(str(Path.cwd()))
        made = found if isinstance(found, torch.nn.Module) else _tried(found) if callable(found) else None
        if not isinstance(made, torch.nn.Module):
            raise PlainError(f"{name!r} is no torch.nn.Module and makes none; give module:name of a model")
        return made
    try:
        from torchvision import models
    except ImportError:
        raise PlainError(
            f"{name!r} is looked for in torchvision, which is not installed: install it, or give module:name of a model"
        ) from None
    try:
        return models.get_model(name, weights=None)
    except ValueError:
        known = _alike(name, models.list_models())
        raise PlainError(f"torchvision has no model {name!r}; names that it has are {known}") from None


def _alike(name: str, names: Sequence[str]) -> str:
    import difflib

    return ", ".join(difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names[:3])


def _inputs(options: argparse.Namespace) -> list[Any]:
    return [_input(text) for text in options.input or ["1x3x224x224"]]


def _input(text: str) -> Any:
    """A random tensor as "2x16:int64" says."""
    import torch

    sizes, colon, name = text.partition(":")
    try:
        shape = [int(part) for part in sizes.split("x")]
    except ValueError:
        shape = [-1]
    if min(shape) < 0:
        raise PlainError(f"--input {text!r} is no shape; write sizes with x between, such as 1x3x224x224")
    dtype = getattr(torch, name, None) if colon else torch.float32
    if not isinstance(dtype, torch.dtype):
        raise PlainError(f"--input {text!r} has no dtype of PyTorch behind the colon; write one such as int64")
    if dtype.is_floating_point or dtype.is_complex:
        return _tried(lambda: torch.randn(shape, dtype=dtype if dtype.is_complex else None).to(dtype))
    return _tried(lambda: torch.randint(2 if dtype is torch.bool else 10, shape).to(dtype))


if __name__ == "__main__":
    sys.exit(main())
