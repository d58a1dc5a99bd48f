"""Runs: a program run again and again, forward and backward, and what is told meanwhile (PyTorch has none)."""

from __future__ import annotations

import copy
import dataclasses
import operator
import sys
import time
from collections import UserList
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from ._flops import tensors_in
from ._looking import on_a_terminal
from ._torch_internals.graph import unobserved
from ._untouched import Untouched


@dataclass
class Program:
    """What is run: target(*args, **kwargs), then loss(output), then backward from what came out.

    loss      a function of the output that gives a tensor; without one backward starts from every floating point
              tensor of the output, each with ones as its gradient
    backward  None: as by_default says, and that None: where there is a loss or the target is a module in training mode;
              but only where something that came out requires a gradient
    """

    where: str
    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    loss: Callable[[Any], Any] | None = None
    backward: bool | None = None
    by_default: bool | None = None

    def __post_init__(self) -> None:
        if not callable(self.target):
            raise TypeError(
                f"{self.where}: {type(self.target).__name__} cannot be called; pass a module or a function, then its "
                "arguments."
            )
        if self.loss is not None and not callable(self.loss):
            raise TypeError(f"{self.where}: loss is a function of the model's output, not {type(self.loss).__name__}.")
        for name, each in _members(self.target):
            if is_lazy(each):
                raise ValueError(
                    f"{self.where}: {name} is not initialized yet; run the model once, which gives its lazy layers "
                    "their shapes."
                )
        # A graph that the caller goes on to use would be walked and freed by backward.
        self.args = _cut(self.args)
        self.kwargs = _cut(dict(self.kwargs))

    def untouched(self) -> Untouched:
        """A context in which every run starts from the state that there is now, and which puts it back."""
        return Untouched(self.where, self.module, tensors_in((self.args, self.kwargs)))

    @property
    def module(self) -> Any:
        """The target where it is a module, else None."""
        return self.target if isinstance(self.target, torch.nn.Module) else None

    def forward(self) -> Any:
        return self.target(*self.args, **self.kwargs)

    def roots(self, output: Any) -> list[Any]:
        """Where backward would begin. ValueError where it was asked for and cannot be."""
        if self.loss is not None:
            lost = self.loss(output)
            if not isinstance(lost, torch.Tensor):
                raise TypeError(f"{self.where}: loss gave {type(lost).__name__}, not a tensor.")
            output = lost
        found = list({id(each): each for each in tensors_in(output) if each.requires_grad}.values())
        if self.backward and not found:
            raise ValueError(
                f"{self.where}: backward=True, but nothing that came out requires a gradient; leave no_grad or "
                "inference_mode, or give a parameter or an input that requires one."
            )
        return found

    def wants_backward(self) -> bool:
        for said in (self.backward, self.by_default):
            if said is not None:
                return said
        return self.loss is not None or bool(self.module is not None and self.module.training)

    def run(
        self,
        kept: Untouched,
        mark: Callable[[str], None] = lambda stage: None,
        inside: AbstractContextManager[Any] | None = None,
        ready: Callable[[list[Any]], None] = lambda roots: None,
    ) -> Any:
        """One run from the state that `kept` has, within the context `inside`; gives the output.

        `mark` is told "forward", "loss", "ready", "backward" and "end" as each begins. Between "ready" and "backward"
        nothing of the program runs; there `ready` is given the tensors that backward begins at.
        """
        kept.rewind()
        with inside or nullcontext():
            mark("forward")
            output = self.forward()
            mark("loss")
            roots = self.roots(output)
            mark("ready")
            ready(roots)
            if roots and self.wants_backward():
                kept.keep_leaves(roots)
                mark("backward")
                torch.autograd.backward(roots, [torch.ones_like(each) for each in roots])
            mark("end")
        kept.seen()
        return output


class Progress:
    """A line on a terminal's stderr about what is going on, once it has gone on for a second."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began, self._shown = time.monotonic(), False

    def __call__(self, text: str) -> None:
        if on_a_terminal(sys.stderr) and time.monotonic() - self._began > 1:
            print(f"\r{f'{self._what}: {text}':70}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def done(self) -> None:
        if self._shown:
            print(f"\r{'':70}\r", end="", file=sys.stderr, flush=True)


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    shown = Progress(what)
    try:
        yield shown
    finally:
        shown.done()


def name_of(target: Any) -> str:
    if isinstance(target, torch.nn.Module):
        return type(target).__name__
    if isinstance(target, BuiltinFunctionType):
        return target.__name__
    name: str = getattr(target, "__qualname__", "") or type(target).__name__
    return name.rpartition("<locals>.")[2].strip("<>")


def autocast_of(devices: tuple[str, ...]) -> str:
    """ "autocast(bfloat16)" where it is on for a device in use, else ""."""
    for kind in dict.fromkeys(name.partition(":")[0] for name in devices):
        try:
            if torch.is_autocast_enabled(kind):
                return f"autocast({str(torch.get_autocast_dtype(kind)).rsplit('.', 1)[-1]})"
        except RuntimeError:
            continue
    return ""


def mode_of(module: Any, devices: tuple[str, ...]) -> str:
    words = [] if module is None else ["train" if module.training else "eval"]
    words.append(_grad_mode())
    return ", ".join([*words, *filter(None, [autocast_of(devices)])])


def _grad_mode() -> str:
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "grad" if torch.is_grad_enabled() else "no_grad"


def _members(target: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(target, torch.nn.Module):
        yield from target.named_parameters()
        yield from target.named_buffers()


def _cut(value: Any) -> Any:
    """The same structure, a tensor with a history replaced by a leaf over the same memory."""
    if isinstance(value, torch.Tensor):
        if value.grad_fn is None:
            return value
        # A subclass is cut by its own detach.
        with unobserved() if type(value) is torch.Tensor else nullcontext():
            return value.detach().requires_grad_()
    if isinstance(value, tuple):
        cut = [_cut(each) for each in value]
        if all(a is b for a, b in zip(cut, value, strict=True)):
            return value
        return type(value)(*cut) if hasattr(value, "_fields") else type(value)(cut)
    # plain ones are always copied, so that what the program does to them is not done to the caller's
    if type(value) is list:
        return [_cut(each) for each in value]
    if type(value) is dict:
        return {key: _cut(each) for key, each in value.items()}
    if isinstance(value, (list, UserList)):
        return _with(value, enumerate(value), operator.setitem)
    if isinstance(value, MutableMapping):
        return _with(value, value.items(), operator.setitem)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
        # not by setattr, which a frozen one refuses
        return _with(value, parts, object.__setattr__)
    return value


def _with(value: Any, parts: Iterable[tuple[Any, Any]], put: Callable[[Any, Any, Any], None]) -> Any:
    """A shallow copy whose parts are cut; the very object where none has a history."""
    changed = [(key, new) for key, old in parts if (new := _cut(old)) is not old]
    if not changed:
        return value
    copied = copy.copy(value)
    for key, new in changed:
        put(copied, key, new)
    return copied
