"""Lab 3, extension: reversible blocks, which save nothing for backward (PyTorch has no twin; RevNets are built so).

What the inputs were is not worked out here: an answer is verified by running the blocks on it.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from ..plain import freeze

Ints = tuple[int, ...]
Matrix = tuple[Ints, ...]
Block = tuple[Matrix, Matrix]


def _layer(weight: Matrix, x: Sequence[int]) -> Ints:
    """relu(weight @ x)."""
    return tuple(max(0, sum(w * each for w, each in zip(row, x, strict=True))) for row in weight)


def _forward(blocks: Sequence[Block], first: Sequence[int], second: Sequence[int]) -> tuple[Ints, Ints]:
    """What the blocks make of the two halves."""
    one, two = tuple(first), tuple(second)
    for f, g in blocks:
        one = tuple(a + b for a, b in zip(one, _layer(f, two), strict=True))
        two = tuple(a + b for a, b in zip(two, _layer(g, one), strict=True))
    return one, two


def _asked(blocks: Sequence[Block], outputs: Any, grads: Any) -> str:
    return "(inputs, gradients of the inputs, gradients of the weights) of the blocks with these outputs"


@functools.lru_cache(4096)
def _true_grads(blocks: Sequence[Block], inputs: Any, grads: Any) -> Any:
    import torch

    one, two = (torch.tensor(half, dtype=torch.float64, requires_grad=True) for half in inputs)
    start = one, two
    weights = [[torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in block] for block in blocks]
    for f, g in weights:
        one = one + (f @ two).relu()
        two = two + (g @ one).relu()
    torch.autograd.backward([one, two], [torch.tensor(grad, dtype=torch.float64) for grad in grads])

    def whole(tensor: Any) -> Any:
        return torch.zeros_like(tensor).tolist() if tensor.grad is None else tensor.grad.tolist()

    return [whole(x) for x in start], [[whole(w) for w in block] for block in weights]


def _same(given: Any, true: Any) -> bool:
    if isinstance(true, list):
        return len(given) == len(true) and all(_same(a, b) for a, b in zip(given, true, strict=True))
    return type(given) in (int, float) and given == true


def _wrong_with(case: Case, answer: Any) -> str:
    """What is wrong with (inputs, gradients of the inputs, gradients of the weights); "" where nothing is."""
    blocks, outputs, grads = case
    inputs, input_grads, weight_grads = answer
    if not all(type(each) in (int, float) for half in inputs for each in half) or len(inputs) != 2:
        return "the inputs are two tuples of numbers"
    if [len(half) for half in inputs] != [len(half) for half in outputs]:
        return "each half of the inputs is as long as that of the outputs"
    made = _forward(blocks, *inputs)
    if not _same(made, [list(half) for half in outputs]):
        return f"the blocks make {made} of these inputs, not {outputs}"
    true_inputs, true_weights = _true_grads(blocks, freeze(inputs), grads)
    if not _same(input_grads, true_inputs):
        return f"the gradients of the inputs should be {true_inputs}"
    if not _same(weight_grads, true_weights):
        return f"the gradients of the weights should be {true_weights}"
    return ""


def _blocks(count: tuple[int, int], size: tuple[int, int], off: float = 0.0, least: int = -2) -> Draw:
    """So many blocks of halves of such a size. `off`: the share of rows whose layer is cut off by its relu."""

    def draw(rng: random.Random) -> Case:
        n = rng.randint(*size)
        blocks: list[Block] = []
        for _ in range(rng.randint(*count)):
            pair = [[[rng.randint(least, 3) for _ in range(n)] for _ in range(n)] for _ in range(2)]
            for matrix in pair:
                for row in matrix:
                    if rng.random() < off:
                        row[:] = rng.choice(([0] * n, [-abs(each) for each in row]))
            f, g = (tuple(tuple(row) for row in matrix) for matrix in pair)
            blocks.append((f, g))
        inputs = [tuple(rng.randint(-4, 6) for _ in range(n)) for _ in range(2)]
        grads = tuple(tuple(rng.choice((-3, -2, -1, 1, 2, 3, 4)) for _ in range(n)) for _ in range(2))
        return tuple(blocks), _forward(blocks, *inputs), grads

    return draw


reversible_backward = Task(
    id="lab3.reversible_backward",
    title="Blocks that save nothing",
    function="reversible_backward",
    points=13,
    minutes=40,
    difficulty=4,
    oracle=_asked,
    verify=_wrong_with,
    properties=(
        Property(
            "one block of single numbers",
            weight=2,
            corners=(_blocks((1, 1), (1, 1)), _blocks((1, 1), (1, 1), least=1)),
            draws=(_blocks((1, 1), (1, 1)), _blocks((1, 1), (1, 1), least=1)),
            why="the second half comes out of the block's last line, the first one then out of the line before",
            slip="what was added last is taken off first",
            count=10,
        ),
        Property(
            "one block",
            weight=3,
            corners=(_blocks((1, 1), (2, 2)), _blocks((1, 1), (3, 3)), _blocks((1, 1), (2, 3), least=0)),
            draws=(_blocks((1, 1), (2, 3)), _blocks((1, 1), (2, 3), least=0)),
            why="a half goes two ways, into the sum and into a layer, so two gradients meet there",
            slip="the first half's gradient is whole only when what comes through G has been added",
            count=10,
        ),
        Property(
            "several blocks",
            weight=3,
            corners=(_blocks((2, 2), (2, 2)), _blocks((3, 3), (1, 2))),
            draws=(_blocks((2, 3), (1, 2)), _blocks((2, 2), (2, 3))),
            why="the memory that a deep network needs no longer grows with its depth",
            slip="blocks are undone from the last to the first; the gradients of the weights keep the blocks' order",
            count=10,
        ),
        Property(
            "layers that are cut off",
            weight=2,
            corners=(_blocks((1, 1), (2, 2), 0.6), _blocks((2, 2), (2, 2), 0.5), _blocks((1, 2), (1, 1), 0.5)),
            draws=(_blocks((1, 2), (2, 3), 0.5), _blocks((2, 2), (1, 2), 0.5)),
            why="where relu is off, and at exactly 0, nothing goes back through the layer, only past it",
            slip="a row that relu cut off gets no gradient and passes none on",
            count=10,
        ),
    ),
    hints=(
        "Solve the block's two lines for its inputs: from y1 and y2 first x2, then x1.",
        "Backward through y2 = x2 + G(y1): the gradient of y2 reaches x2 as it is, and y1 through G. Only then is y1's "
        "gradient whole, and the same goes for y1 = x1 + F(x2).",
        "Through relu(W v) with gradient g: keep g where the row's sum is over 0, else 0. Row i of W gets g[i] * v, "
        "and v[j] gets the sum over i of g[i] * W[i][j].",
    ),
    read="notebook 03, 5. What is saved, and what it costs",
)
