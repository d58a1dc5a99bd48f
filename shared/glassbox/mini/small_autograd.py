"""A whole autograd in one file, over NumPy arrays: what mini.autograd does, in its shortest form.

A Tensor is an array and, where gradients are wanted, the node that made it. A node knows where its gradients go, one
edge per operand, and how to compute them from its own. `backward` counts how many gradients each node waits for,
keeps those that wait for none in a queue, newest first, and adds up gradients where paths meet.

    x = Tensor([[1.0, 2.0]], requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    x.grad   # 2 * x
"""

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
# From a node's gradient to the gradient of one operand.
Derivative = Callable[[Array], Array]

recording = True
_sequence = itertools.count().__next__


class Node:
    """One step of the backward graph.

    name          of the operator whose step it is
    edges         per operand (the node that its gradient goes to, how to compute it); operands without gradient are
                  left out
    sequence_nr   the order of creation
    """

    def __init__(self, name: str, edges: list[tuple["Node", Derivative]]) -> None:
        self.name = name
        self.edges = edges
        self.sequence_nr = _sequence()

    def __repr__(self) -> str:
        return f"<{self.name}>"


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to the leaf's grad. It goes before any other node."""

    def __init__(self, leaf: "Tensor") -> None:
        super().__init__("AccumulateGrad", [])
        self.leaf = leaf
        self.sequence_nr = 2**62

    def accumulate(self, grad: Array) -> None:
        self.leaf.grad = grad.copy() if self.leaf.grad is None else self.leaf.grad + grad


class Tensor:
    """A NumPy array that remembers how it came about."""

    # So that array + tensor asks the tensor.
    __array_priority__ = 1.0

    def __init__(self, data: Any, requires_grad: bool = False, node: Node | None = None) -> None:
        self.data = np.asarray(data, np.float64)
        self.grad: Array | None = None
        self.requires_grad = requires_grad or node is not None
        self.node = AccumulateGrad(self) if requires_grad and node is None else node

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def __repr__(self) -> str:
        made_by = f", made by {self.node}" if self.node is not None else ""
        return f"Tensor({self.data}{made_by})"

    def item(self) -> float:
        return self.data.item()

    def detach(self) -> "Tensor":
        """The same numbers outside of the graph."""
        return Tensor(self.data)

    def backward(self, grad: Any = None) -> None:
        """Add the gradient of this tensor to the grad of every leaf it was made of; ValueError without a start."""
        if self.node is None:
            raise ValueError("this tensor was made of nothing that requires grad")
        if grad is None:
            if self.data.size != 1:
                raise ValueError("only a tensor of one element can begin a backward pass by itself")
            grad = np.ones_like(self.data)
        run(self.node, np.asarray(grad, np.float64))

    # Arithmetic

    def __add__(self, other: Any) -> "Tensor":
        other = as_tensor(other)
        return record("add", self.data + other.data, (self, lambda g: g), (other, lambda g: g))

    def __mul__(self, other: Any) -> "Tensor":
        other = as_tensor(other)
        a, b = self.data, other.data
        return record("mul", a * b, (self, lambda g: g * b), (other, lambda g: g * a))

    def __neg__(self) -> "Tensor":
        return record("neg", -self.data, (self, lambda g: -g))

    def __sub__(self, other: Any) -> "Tensor":
        return self + -as_tensor(other)

    def __truediv__(self, other: Any) -> "Tensor":
        return self * as_tensor(other) ** -1

    def __pow__(self, exponent: float) -> "Tensor":
        x = self.data
        return record("pow", x**exponent, (self, lambda g: g * exponent * x ** (exponent - 1)))

    def __matmul__(self, other: "Tensor") -> "Tensor":
        a, b = self.data, other.data
        return record("mm", a @ b, (self, lambda g: g @ b.T), (other, lambda g: a.T @ g))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> "Tensor":
        return as_tensor(other) - self

    def __rtruediv__(self, other: Any) -> "Tensor":
        return as_tensor(other) / self

    # Functions

    def exp(self) -> "Tensor":
        result = np.exp(self.data)
        return record("exp", result, (self, lambda g: g * result))

    def log(self) -> "Tensor":
        x = self.data
        return record("log", np.log(x), (self, lambda g: g / x))

    def tanh(self) -> "Tensor":
        result = np.tanh(self.data)
        return record("tanh", result, (self, lambda g: g * (1 - result * result)))

    def relu(self) -> "Tensor":
        result = np.maximum(self.data, 0)
        return record("relu", result, (self, lambda g: g * (result > 0)))

    def sum(self, axis: int | None = None, keepdims: bool = False) -> "Tensor":
        shape = self.shape

        def spread(g: Array) -> Array:
            if axis is not None and not keepdims:
                g = np.expand_dims(g, axis)
            return np.broadcast_to(g, shape)

        return record("sum", self.data.sum(axis, keepdims=keepdims), (self, spread))

    def mean(self, axis: int | None = None) -> "Tensor":
        count = self.data.size if axis is None else self.shape[axis]
        return self.sum(axis) * (1 / count)

    def log_softmax(self) -> "Tensor":
        """Over the last axis."""
        shifted = self.data - self.data.max(-1, keepdims=True)
        result = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        return record("log_softmax", result, (self, lambda g: g - np.exp(result) * g.sum(-1, keepdims=True)))

    # Shapes

    def reshape(self, *shape: int) -> "Tensor":
        before = self.shape
        return record("reshape", self.data.reshape(shape), (self, lambda g: g.reshape(before)))

    def transpose(self) -> "Tensor":
        return record("t", self.data.T, (self, lambda g: g.T))

    T = property(transpose)

    def __getitem__(self, key: Any) -> "Tensor":
        shape = self.shape

        def place(g: Array) -> Array:
            result = np.zeros(shape)
            np.add.at(result, key, g)
            return result

        return record("index", self.data[key], (self, place))


def as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)


def record(name: str, result: Array, *operands: tuple[Tensor, Derivative]) -> Tensor:
    """The result as a tensor; with a node where an operand wants a gradient."""
    edges = [
        (operand.node, unbroadcast(operand.shape, derivative))
        for operand, derivative in operands
        if operand.node is not None
    ]
    return Tensor(result, node=Node(name, edges) if edges and recording else None)


def unbroadcast(shape: tuple[int, ...], derivative: Derivative) -> Derivative:
    """The derivative, with what broadcasting repeated added up again."""

    def fitted(grad: Array) -> Array:
        grad = derivative(grad)
        if grad.shape == shape:
            return grad
        grad = grad.sum(tuple(range(grad.ndim - len(shape))))
        repeated = tuple(axis for axis, n in enumerate(shape) if n == 1 and grad.shape[axis] != 1)
        return grad.sum(repeated, keepdims=True)

    return fitted


def count_dependencies(root: Node) -> dict[Node, int]:
    """Node -> how many gradients it waits for."""
    waits = {root: 0}
    stack = [root]
    while stack:
        for node, _ in stack.pop().edges:
            if node not in waits:
                waits[node] = 0
                stack.append(node)
            waits[node] += 1
    return waits


def run(root: Node, grad: Array) -> None:
    """The engine: each node once, when all its gradients are there; of those that are ready the newest first."""
    waits, grads = count_dependencies(root), {root: grad}
    ready = [(-root.sequence_nr, _sequence(), root)]
    while ready:
        node = heapq.heappop(ready)[2]
        grad = grads.pop(node)
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
        for successor, derivative in node.edges:
            part = derivative(grad)
            grads[successor] = grads[successor] + part if successor in grads else part
            waits[successor] -= 1
            if waits[successor] == 0:
                heapq.heappush(ready, (-successor.sequence_nr, _sequence(), successor))


class no_grad:  # noqa: N801 - PyTorch's own name
    """`with no_grad():` nothing is recorded."""

    def __enter__(self) -> None:
        global recording
        self._before, recording = recording, False

    def __exit__(self, *_: object) -> None:
        global recording
        recording = self._before
