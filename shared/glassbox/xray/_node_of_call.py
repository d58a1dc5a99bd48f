"""The node of one call: which backward node an operator call made, however the program goes on
(torch/csrc/autograd/function.h numbers nodes as they are made).

The Autograd kernel makes its node before it calls what is below, so inside of a dispatch mode the call's node is the
latest one of the thread; an in-place call's may be followed by that of the clone that it saves. It becomes grad_fn only
later, when the mode is left; so it is looked up from the call's results, at the next operator call or at the end,
whichever finds a result alive.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.weak import TensorWeakRef

from . import _torch_internals as internals
from ._modules import NO_NODE
from ._torch_internals import graph
from ._torch_internals.schemas import promise_of
from ._which import node_in_words

_NONE = "its Autograd kernel makes none"


class NodeOfCall:
    """What a dispatch mode asks at each of its calls about the node of one of them. No tensor is kept alive."""

    def __init__(self) -> None:
        # By thread, the number that was next when the last call ended, and when the last but a clone did.
        self._next = {threading.get_ident(): internals.next_sequence_nr()}
        self._next_but_clones = dict(self._next)
        self._results: list[Any] = []
        self._oldest = self._number = -1
        self._found = ""
        self._why_not = ""
        self._around = False

    def begins(self, func: Any, inputs: Sequence[Any] | None) -> None:
        """A call reaches the mode; inputs are its tensors if it is the one that is asked about, None for others."""
        self._look()
        if inputs is None:
            return
        self._number = internals.next_sequence_nr() - 1
        # What was made before the last call that was seen is another's.
        known = self._next_but_clones if promise_of(func).writes else self._next
        is_new = self._number >= (oldest := known.get(threading.get_ident(), 0))
        self._oldest = oldest if promise_of(func).writes else self._number
        with graph.unobserved():
            wanted = any(each.requires_grad for each in inputs)
        if not torch.is_grad_enabled():
            self._why_not, self._around = "grad mode is off", is_new
        elif not wanted:
            self._why_not = "no input requires a gradient"
        elif not is_new:
            self._why_not = _NONE

    def ends(self, func: Any, results: Sequence[Any] | None) -> None:
        """The call is over below Autograd; results are its tensors if it is the one that is asked about."""
        if results is not None:
            self._results = [TensorWeakRef(each) for each in results]
        thread, following = threading.get_ident(), internals.next_sequence_nr()
        self._next[thread] = following
        if str(func) != "aten.clone.default":
            self._next_but_clones[thread] = following

    def in_words(self) -> tuple[str, bool]:
        """What is known of the node once the function has returned, and whether one was made."""
        alive = self._look()
        if self._found:
            return self._found, True
        if self._why_not:
            return self._why_not, False
        if alive and not any(each.requires_grad for each in alive):
            return _NONE, False
        return f"a node was made, number {self._number}; its tensor was gone before it could be asked which", True

    def _look(self) -> list[Any]:
        """Look the node up from those results that are alive, and give these."""
        alive = [each for ref in self._results if (each := ref()) is not None]
        if self._found or not alive:
            return alive
        with graph.unobserved():
            for each in alive:
                node = self._node_from(each.grad_fn)
                if node is not None:
                    self._found = node_in_words(node.name(), internals.sequence_nr(node), _saved(node))
                    if self._why_not:
                        self._found += "; it was made around the call, in which grad mode is off"
                    break
        return alive

    def _node_from(self, start: Any) -> Any:
        """The call's node, from the latest one of a result. Where the call itself made none, the result may still get
        one that was made around it: by an autograd.Function whose forward it is called in.
        """
        if self._why_not:
            around = start is not None and self._around and internals.sequence_nr(start) == self._number
            return start if around else None
        waiting, seen, found = [start], set(), []
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            number = internals.sequence_nr(node)
            if self._oldest <= number <= self._number:
                found.append(node)
            elif self._number < number < NO_NODE:
                # Nodes lead to older ones only.
                waiting += [graph.wrapped_node(node), *(each for each, _ in node.next_functions)]
        return max(found, key=internals.sequence_nr, default=None)


def _saved(node: Any) -> list[str]:
    """What a node keeps, by name; no hook that packs and unpacks is called."""
    raw = [(name, saved) for name, saved in graph.raw_saved(node) if saved is not None]
    tensors = [name for name, saved in raw if graph.content(saved)[0] is not None]
    return tensors + [name for name, value in graph.saved_values(node) if value is not None]
