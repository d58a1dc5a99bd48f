"""Node: one step of the backward graph (PyTorch: torch/csrc/autograd/function.h, edge.h).

A node's inputs are the gradients of its forward op's outputs, its outputs the gradients of that op's inputs. An edge
is a pair (node, input_nr): the node that a gradient goes to, and which of its inputs it is. The graph is made during
the forward pass, from the end back: each new node points at the nodes of its op's inputs.
"""

import itertools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from .hooks import NodeHooks, RemovableHandle, register_node_hook

Edge = tuple["Node", int]
# (shape, dtype, device) of a forward output: what its gradient must fit.
InputMetadata = tuple[tuple[int, ...], Any, Any]

# AccumulateGrad goes before anything else: a leaf's gradient is of no use to wait for.
LEAF_FIRST = sys.maxsize
next_sequence_nr = itertools.count().__next__


class Node:
    """One backward step.

    next_edges       one per differentiable input of the forward op; None where no gradient is wanted
    sequence_nr      the order of creation: the engine takes the newest that is ready
    input_metadata   one per forward output: the shape, dtype and device its gradient has
    hooks            None until one is registered
    metadata         a dict for people, None until asked for (anomaly mode keeps the forward's place there)

    A class of nodes has apply(*gradients) -> a tuple with one gradient or None per next edge.
    """

    __slots__ = ("next_edges", "sequence_nr", "input_metadata", "hooks", "_metadata", "__weakref__")

    # Of the forward op; a node with one output is handed its gradient bare.
    n_outputs = 1
    # Whether there is something to let go of once the node has run.
    saves = True

    # No __init__, which would cost as much as a small op: generated kernels set the slots, others call begin().
    next_edges: Any
    sequence_nr: int
    input_metadata: Any
    hooks: NodeHooks | None
    _metadata: dict[str, Any] | None

    def begin(self) -> None:
        """Set what every node has; the edges are for the caller to give."""
        self.sequence_nr = next_sequence_nr()
        self.input_metadata = ()
        self.hooks = None
        self._metadata = None

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"{self.name()} has no apply")

    def release_variables(self) -> None:
        """Let go of what was saved for backward."""

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple["Node | None", int], ...]:
        """The nodes that this one's gradients go to, as (node or None, input_nr)."""
        return tuple((None, 0) if edge is None else edge for edge in self.next_edges)

    @property
    def metadata(self) -> dict[str, Any]:
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @property
    def _input_metadata(self) -> list[Any]:
        return list(self.input_metadata)

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(grad_inputs, grad_outputs) runs after this node and may return other grad_inputs."""
        return register_node_hook(self, "post", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(grad_outputs) runs before this node and may return other grad_outputs."""
        return register_node_hook(self, "pre", hook)

    def __call__(self, *grads: Any) -> Any:
        """Run this one step by hand."""
        result = self.apply(*grads)
        return result[0] if len(result) == 1 else result

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class GradientEdge(NamedTuple):
    """A place in the graph, for backward and grad to begin or end at."""

    node: Node
    output_nr: int


class NotImplementedNode(Node):
    """Stands where an op has no derivative, and says so when a gradient arrives."""

    __slots__ = ("op_name",)

    def __init__(self, op_name: str) -> None:
        self.begin()
        self.op_name = op_name

    def name(self) -> str:
        return "NotImplemented"

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        raise RuntimeError(f"derivative for {self.op_name} is not implemented")
