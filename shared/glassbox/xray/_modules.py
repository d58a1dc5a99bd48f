"""Modules and phase: which nn.Module called an operator, forward and backward (torch/utils/module_tracker.py).

Global forward hooks keep a stack for each thread, and note at each step in and out the number that the next autograd
node will get. A backward call is traced to the module through the node that is running: its number lies between two of
those notes. Both need no change of the model, and PyTorch's own tracker, which hooks gradients, cannot say in which
order modules are nested.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
import weakref
from bisect import bisect_right
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from . import _torch_internals as internals
from ._torch_internals.modes import uncompiled

# AccumulateGrad nodes all have one number beyond this.
NO_NODE = 1 << 62
# By this name torch.compile's wrapper has the module.
_WRAPPED = "_orig_mod"
_ENGINE = frozenset(each.__code__ for each in map(inspect.unwrap, (torch.autograd.backward, torch.autograd.grad)))
_STARTS = tuple(code.co_name for code in _ENGINE)
# Handlers that work on behalf of what called an operator.
_HANDLERS = ("__torch_dispatch__", "__torch_function__")
# Whether a file is PyTorch's or this package's own.
_on_the_way: dict[str, bool] = {}
_OF_TORCH = (f"{Path(inspect.getfile(torch)).parent}{os.sep}", f"{Path(__file__).parent}{os.sep}")


def starts_backward() -> bool:
    """Whether torch.autograd.backward or grad called this, where no node is running: before and after the engine runs.

    They make the first gradient with ones_like, those of unused inputs with zeros_like, in Python.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file not in _on_the_way:
            _on_the_way[file] = file.startswith(_OF_TORCH)
        if _on_the_way[file]:
            # To hash a code object takes longer than to look at its name.
            if code.co_name in _STARTS and code in _ENGINE:
                return True
        elif code.co_name not in _HANDLERS:
            return False
        frame = frame.f_back
    return False


class ModuleTracker:
    """`with ModuleTracker(model) as where:`; where.path() is "layer1.0.conv1", where.phase() "forward" or "backward".

    root   names are as in root.named_modules(), and "" for the root; without a root each outermost module that runs is
           one, and paths begin with its class name
    """

    def __init__(self, root: Any = None) -> None:
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._local = threading.local()
        self._home = _Steps()
        self._owners: dict[int, str] = {}
        self._owners_of = 0
        self._handles: list[Any] = []
        self._current_node: Any = None
        self._next_nr: Any = None
        if root is not None:
            self._name(root, "")

    def __enter__(self) -> ModuleTracker:
        self._current_node = internals.node_getter()
        self._next_nr = internals.sequence_counter()
        self._home = self._steps()
        self._home.note(self._next_nr())
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def path(self) -> str:
        """The innermost module whose forward is running in this thread; in backward, whose forward made the node.

        What a checkpoint computes again in backward belongs to the module that it runs in.
        """
        stack = self._steps().stack
        node = self._current_node()
        if node is None or stack and stack[-1][2]:
            return stack[-1][1] if stack else ""
        return self.path_of_node(node)

    def path_of_node(self, node: Any) -> str:
        """The module in whose forward a backward node was made; for AccumulateGrad the one that has the parameter."""
        nr = internals.sequence_nr(node)
        return self.path_of(nr) if nr < NO_NODE else self._owner(getattr(node, "variable", None))

    def path_of(self, sequence_nr: int) -> str:
        """The module in whose forward the node of this number was made; "" where there was none, or no telling.

        Numbers are counted thread by thread: those of this thread where modules ran in it, else of the one that entered
        the tracker, as backward passes on a GPU run in a thread of their own.
        """
        steps = self._steps()
        return (steps if steps.numbers else self._home).path_of(sequence_nr)

    def phase(self) -> str:
        """ "backward" for all that runs within torch.autograd.backward or grad, else "forward"."""
        return "forward" if self._current_node() is None and not starts_backward() else "backward"

    def running(self) -> list[tuple[Any, str, bool]]:
        """The modules that are running in this thread, outermost first: (module, path, whether within backward).

        The list itself, which changes as they come and go.
        """
        return self._steps().stack

    def _steps(self) -> _Steps:
        steps: _Steps | None = getattr(self._local, "steps", None)
        if steps is None:
            steps = self._local.steps = _Steps()
        return steps

    def _enter(self, module: Any, _inputs: Any) -> None:
        if is_compiling():
            # The compiler would take the hook into the graph.
            return
        steps = self._steps()
        if module not in self._names:
            # A module that no parent has as a child is called by its class, under what called it.
            outer = f"{steps.stack[-1][1]}." if steps.stack and steps.stack[-1][1] else ""
            self._name(module, outer + type(uncompiled(module)).__name__)
        steps.stack.append((module, self._names[module], self._current_node() is not None))
        steps.note(self._next_nr())

    def _leave(self, module: Any, _inputs: Any, _output: Any) -> None:
        if is_compiling():
            return
        steps = self._steps()
        # Where a forward raised inside of a forward pre-hook of its own, what it entered is gone with it.
        for nr in range(len(steps.stack) - 1, -1, -1):
            if steps.stack[nr][0] is module:
                del steps.stack[nr:]
                steps.note(self._next_nr())
                return

    def _owner(self, parameter: Any) -> str:
        modules = list(self._names.items())
        if self._owners_of != len(modules):
            self._owners_of = len(modules)
            self._owners = {id(each): path for module, path in modules for each in module.parameters(recurse=False)}
        return self._owners.get(id(parameter), "")

    def _name(self, root: Any, name: str) -> None:
        for path, module in root.named_modules():
            parts = [part for part in (name, *path.split(".")) if part and part != _WRAPPED]
            self._names.setdefault(module, ".".join(parts))


class _Steps:
    """One thread's modules, and from which node number on which of them was the innermost."""

    def __init__(self) -> None:
        self.stack: list[tuple[Any, str, bool]] = []
        self.numbers: list[int] = []
        self.paths: list[str] = []

    def note(self, next_nr: int) -> None:
        path = self.stack[-1][1] if self.stack else ""
        if self.numbers and self.numbers[-1] == next_nr:
            self.paths[-1] = path
        elif not self.paths or self.paths[-1] != path:
            self.numbers.append(next_nr)
            self.paths.append(path)

    def path_of(self, nr: int) -> str:
        if nr > NO_NODE or not self.numbers:
            return ""
        place = bisect_right(self.numbers, nr) - 1
        return self.paths[place] if place >= 0 else ""
