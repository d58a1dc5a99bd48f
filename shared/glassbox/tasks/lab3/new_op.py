"""Lab 3, extension: a new op and its derivative, the running product (PyTorch: cumprod in FunctionsManual.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..lab1.cases import always
from ..model import Case, Draw, Property, Task


def _true_product(x: Sequence[int], grad: Sequence[int]) -> Any:
    import torch

    numbers = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    result = numbers.cumprod(0)
    result.backward(torch.tensor(grad, dtype=torch.float64))
    assert numbers.grad is not None
    return [int(number) for number in result], [round(number) for number in numbers.grad.tolist()]


def _row(least: int, most: int, zeros: int = 0, where: str = "anywhere") -> Draw:
    """Rows of small numbers with so many zeros: anywhere, at the first or the last place, or side by side."""

    def draw(rng: random.Random) -> Case:
        count = rng.randint(least, most)
        x = [rng.choice((-3, -2, -1, 1, 2, 3, 4, 5)) for _ in range(count)]
        places = {
            "first": [0],
            "last": [count - 1],
            "side by side": list(range(start := rng.randint(0, count - 2), start + 2)) if count > 1 else [],
        }.get(where) or rng.sample(range(count), zeros)
        for place in places if zeros else ():
            x[place] = 0
        return tuple(x), tuple(rng.choice((-4, -3, -2, -1, 1, 2, 3, 5)) for _ in range(count))

    return draw


running_product = Task(
    id="lab3.running_product",
    title="A new op: the running product",
    function="running_product",
    points=11,
    minutes=30,
    difficulty=3,
    oracle=_true_product,
    properties=(
        Property(
            "no zeros",
            weight=3,
            corners=(_row(2, 3), _row(7, 8)),
            draws=(_row(3, 8),),
            why="the number at place i is a factor of every product from place i on",
            slip="the gradient gathers from all the later products, each with its own gradient",
        ),
        Property(
            "one zero",
            weight=3,
            corners=(_row(3, 7, 1, "first"), _row(3, 7, 1, "last"), _row(4, 8, 1)),
            draws=(_row(4, 8, 1),),
            why="relu and dropout make zeros all the time, and a derivative by division gives NaN there",
            slip="a product is 0 there, but its derivative at the zero is the product of the others",
        ),
        Property(
            "several zeros",
            weight=2,
            corners=(_row(3, 7, 2, "side by side"), _row(5, 8, 2), _row(5, 8, 3)),
            draws=(_row(4, 8, 2), _row(5, 8, 3)),
            why="a second zero makes every product behind it flat",
            slip="behind the second zero nothing reaches anybody; before it, the first one behaves as if alone",
        ),
        Property(
            "short rows",
            weight=1,
            corners=(always((), ()), _row(1, 1), _row(1, 1, 1), _row(2, 2, 1, "first"), _row(2, 2, 1, "last")),
            draws=(_row(2, 2), _row(2, 2, 1), _row(2, 3)),
            why="a batch of one, or of none, goes through every op",
            slip="an empty row has an empty result and an empty gradient",
        ),
    ),
    hints=(
        "The result at place k is the product of x[0], ..., x[k]. What is its derivative by x[i]?",
        "0 for i > k; else the product of all x[j] with j <= k but j != i.",
        "Add grad[k] times that over all k >= i. Multiply only: a division by x[i] cannot be done at a zero.",
    ),
    read="notebook 03, 8. A layer of the dispatcher",
)
