"""What is running now: the autograd node that a backward pass is at, and the counter that numbers nodes
(torch/csrc/autograd/engine.cpp, aten/src/ATen/SequenceNumber.h).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .access import missing, private


def current_node() -> Any:
    """The backward node that this thread is evaluating; None outside of backward."""
    return node_getter()()


def node_getter() -> Callable[[], Any]:
    """current_node without the search for PyTorch's own function at each call, for a loop."""
    getter: Callable[[], Any] = private("torch._C._current_autograd_node")
    return getter


def sequence_counter() -> Callable[[], int]:
    """next_sequence_nr without the search for PyTorch's own function at each call, for a loop."""
    counter: Callable[[], int] = private("torch._C._autograd._get_sequence_nr")
    return counter


def sequence_nr(node: Any) -> int:
    """The number that a node got when it was made; AccumulateGrad has the largest of all."""
    try:
        return int(node._sequence_nr())
    except AttributeError:
        raise missing("Node._sequence_nr") from None


def next_sequence_nr() -> int:
    """The number that this thread's next node will get."""
    return int(sequence_counter()())
