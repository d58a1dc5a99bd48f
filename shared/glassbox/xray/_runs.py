"""Runs: a program run again and again, forward and backward, that leaves everything as it was (PyTorch has none)."""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parameter import is_lazy

from ._flops import tensors_in
from ._torch_internals import profiling, version_of
from ._torch_internals.graph import unobserved


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


class Untouched:
    """`with Untouched(program) as kept:` and kept.rewind() before each run: every run meets the same state, and at the
    end all is as before.

    That is the random numbers (torch's, Python's, NumPy's), the buffers and the gradients of every module that ran, the
    inputs, and the grad of other leaves that `keep_grads` was told of. Compiled functions run eagerly inside.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._buffers: list[tuple[Any, str, Any]] = []
        self._contents: dict[int, tuple[Any, Any]] = {}
        self._grads: dict[int, tuple[Any, Any]] = {}
        self._modules: dict[int, Any] = {}
        self._versions: dict[int, tuple[str, Any, int | None]] = {}
        self._looking: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Untouched:
        with ExitStack() as stack:
            stack.callback(self._restore)
            with unobserved():
                self._random = _random_state()
            if self.program.module is not None:
                self._capture(self.program.module)
            for each in tensors_in((self.program.args, dict(self.program.kwargs))):
                self._keep_content(each)
                self.keep_grads([each])
            if "torch._dynamo" in sys.modules:
                stack.enter_context(torch.compiler.set_stance("force_eager"))
                # That hooks are seen twice where a compiled module lies in another one is taken care of.
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)
            self._looking = register_module_forward_pre_hook(lambda module, _inputs: self._capture(module))
            stack.callback(self.seen)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()

    def keep_grads(self, tensors: Iterable[Any]) -> None:
        """Take these tensors' grad away for the runs, and give it back at the end."""
        for each in tensors:
            if each.is_leaf and id(each) not in self._grads:
                self._grads[id(each)] = (each, each.grad)
                if each.grad is not None:
                    each.grad = None

    def keep_leaves(self, roots: list[Any]) -> None:
        """`keep_grads` for every leaf that backward from the roots reaches.

        ValueError for a leaf with a hook that runs once its gradient is there, since that may step an optimizer.
        """
        leaves = leaves_of(roots)
        for leaf in leaves:
            if profiling.steps_in_backward(leaf):
                raise ValueError(
                    f"{self.program.where}: a parameter of shape {tuple(leaf.shape)} has a hook that runs once its "
                    "gradient is there, which may step an optimizer; remove it, or say backward=False."
                )
        self.keep_grads(leaves)

    def seen(self) -> None:
        """One run has shown which modules there are; no more need be looked for."""
        if self._looking is not None:
            self._looking.remove()
            self._looking = None

    def rewind(self) -> None:
        """As it was before the first run, without gradients."""
        self._put_back()
        for leaf, _ in self._grads.values():
            leaf.grad = None

    def modules(self) -> list[Any]:
        """Every module that ran, and what is inside of it."""
        return list(self._modules.values())

    def written_parameters(self) -> list[str]:
        """Parameters that the runs wrote to, which are not put back."""
        return [name for name, each, version in self._versions.values() if version_of(each) != version]

    def _capture(self, module: Any) -> None:
        if id(module) in self._modules:
            return
        for path, each in module.named_modules():
            if id(each) in self._modules:
                continue
            self._modules[id(each)] = each
            for name, buffer in each.named_buffers(recurse=False):
                self._buffers.append((each, name, buffer))
                self._keep_content(buffer)
            for name, parameter in each.named_parameters(recurse=False):
                if not is_lazy(parameter):
                    self.keep_grads([parameter])
                    full = ".".join(part for part in (path, name) if part)
                    self._versions.setdefault(id(parameter), (full, parameter, version_of(parameter)))

    def _keep_content(self, tensor: Any) -> None:
        # What has no data has no content; a wrapper's lies in the tensors that it wraps.
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        if tensor.device.type == "meta" or not plain or tensor.layout != torch.strided or tensor.is_nested:
            return
        with _over(tensor):
            self._contents[id(tensor)] = (tensor, tensor.detach().clone())

    def _put_back(self) -> None:
        # What autocast has cast once it keeps, with the graph that the cast is in.
        torch.clear_autocast_cache()
        for module, name, buffer in self._buffers:
            if getattr(module, name, None) is not buffer:
                setattr(module, name, buffer)
        for tensor, content in self._contents.values():
            with _over(tensor):
                if tensor.shape != content.shape:
                    tensor.data = content.clone()
                elif not torch.equal(tensor, content):
                    # A write through .data is none that a graph of the caller's could trip over.
                    tensor.data.copy_(content)
        with unobserved():
            _set_random_state(self._random)

    def _restore(self) -> None:
        self._put_back()
        for leaf, grad in self._grads.values():
            leaf.grad = grad


@contextmanager
def _over(tensor: Any) -> Iterator[None]:
    """Where a plain tensor's content may be read and written: no mode sees it, no graph records it."""
    with unobserved(), torch.inference_mode(tensor.is_inference()), torch.no_grad():
        yield


def leaves_of(roots: Iterable[Any]) -> list[Any]:
    """The leaves into which backward from the roots would accumulate."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    found = [root for root in roots if root.grad_fn is None and root.requires_grad]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        leaf = getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None
        if leaf is not None:
            found.append(leaf)
        for each, _ in node.next_functions:
            if each is not None and each not in seen:
                seen.add(each)
                waiting.append(each)
    return found


class Progress:
    """A line on a terminal's stderr about what is going on, once it has gone on for a second."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began, self._shown = time.monotonic(), False

    def __call__(self, text: str) -> None:
        if sys.stderr.isatty() and time.monotonic() - self._began > 1:
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
    if type(value) is list:
        return [_cut(each) for each in value]
    if type(value) is dict:
        return {key: _cut(each) for key, each in value.items()}
    return value


def _random_state() -> dict[str, Any]:
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state["numpy"] = numpy.random.get_state()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        sys.modules["numpy"].random.set_state(state["numpy"])
