"""Untouched: runs that leave everything as it was: random numbers, buffers, gradients, inputs (PyTorch has none)."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parameter import is_lazy

from ._looking import is_freed
from ._torch_internals import profiling, version_of
from ._torch_internals.graph import unobserved


class Untouched:
    """`with Untouched(where, module, tensors) as kept:` and kept.rewind() before each run: every run meets the same
    state, and at the end all is as before.

    where             the instrument, for messages
    module, tensors   what is run, or None, and what it is given

    That is the random numbers (torch's, Python's, NumPy's), the buffers and the gradients of every module that ran, the
    inputs, and the grad of other leaves that `keep_grads` was told of. Compiled functions run eagerly inside.
    """

    def __init__(self, where: str, module: Any, tensors: Iterable[Any]) -> None:
        self._where, self._module, self._inputs = where, module, list(tensors)
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
            if self._module is not None:
                self._capture(self._module)
            for each in self._inputs:
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
                    f"{self._where}: a parameter of shape {tuple(leaf.shape)} has a hook that runs once its "
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
        """A sentence about the parameters that the runs wrote to, which are not put back; [] where there are none."""
        names = [name for name, each, version in self._versions.values() if version_of(each) != version]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return [f"The runs wrote to parameter {names[0]}{more}, which is not put back."] if names else []

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
        if is_freed(tensor):
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
