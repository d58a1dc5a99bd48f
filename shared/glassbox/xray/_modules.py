"""Modules and phase: which nn.Module called an operator, forward and backward (torch/utils/module_tracker.py).

Global forward hooks keep a stack for each thread. A backward call is traced to the module through the autograd node
that is running: its sequence number is the one that the forward call made it with. Both need no change of the model,
and PyTorch's own tracker, which hooks gradients, cannot say in which order modules are nested.
"""

from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Any

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from . import _torch_internals as internals


class ModuleTracker:
    """`with ModuleTracker(model) as where:`; where.path() is "layer1.0.conv1", where.phase() "forward" or "backward".

    root   names are as in root.named_modules(), and "" for the root; without a root each outermost module that runs is
           one, and paths begin with its class name

    In forward call `made_node()` after (or inside) an operator call, so that its backward is known.
    """

    def __init__(self, root: Any = None) -> None:
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._local = threading.local()
        self._of_node: dict[int, str] = {}
        self._handles: list[Any] = []
        self._first_nr = 0
        if root is not None:
            self._name(root, "")

    def __enter__(self) -> ModuleTracker:
        self._first_nr = internals.next_sequence_nr()
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
        """The innermost module whose forward is running in this thread; in backward, whose forward made the node."""
        node = internals.current_node()
        if node is None:
            stack = self._stack()
            return stack[-1][1] if stack else ""
        return self._of_node.get(internals.sequence_nr(node), "")

    def phase(self) -> str:
        return "forward" if internals.current_node() is None else "backward"

    def made_node(self) -> None:
        """Remember that the last node of this thread was made in the module that is running."""
        nr = internals.next_sequence_nr() - 1
        if nr >= self._first_nr and internals.current_node() is None:
            self._of_node.setdefault(nr, self.path())

    def _stack(self) -> list[tuple[Any, str]]:
        stack: list[tuple[Any, str]] | None = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack

    def _enter(self, module: Any, _inputs: Any) -> None:
        if module not in self._names:
            stack = self._stack()
            # A module that no parent has as a child is called by its class, under what called it.
            outer = f"{stack[-1][1]}." if stack and stack[-1][1] else ""
            self._name(module, outer + type(module).__name__)
        self._stack().append((module, self._names[module]))

    def _leave(self, module: Any, _inputs: Any, _output: Any) -> None:
        stack = self._stack()
        # Where a forward raised inside of a forward pre-hook of its own, what it entered is gone with it.
        for nr in range(len(stack) - 1, -1, -1):
            if stack[nr][0] is module:
                del stack[nr:]
                return

    def _name(self, root: Any, name: str) -> None:
        for path, module in root.named_modules():
            self._names.setdefault(module, ".".join(part for part in (name, path) if part))
