"""Lab 3, extension: which formulas of a table of derivatives are wrong (PyTorch: torch/autograd/gradcheck.py).

The truth is PyTorch's: each forward expression is run with its tensors and differentiated by its engine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task
from .planting import CORNERS, LEFT, ONE, RIGHT, TWO, Entry, Maker, Slope, mul

POINTS = 600
CLOSE = 1e-6


def _torch_value(expression: Any, names: dict[str, Any]) -> Any:
    import torch

    if isinstance(expression, str):
        return names[expression]
    if isinstance(expression, tuple | list):
        op, *parts = expression
        given = [_torch_value(each, names) for each in parts]
        if op == "step":
            return (given[0] > 0).double()
        return getattr(torch, op)(*given) if op != "pow" else given[0] ** expression[2]
    return torch.tensor(float(expression), dtype=torch.float64)


def _differences(entry: Sequence[Any]) -> dict[str, Any]:
    """How far each formula of an entry is off, relative to its size, at random points of the domain."""
    import torch

    forward, formulas, domains = entry
    rng = random.Random(0)
    names = {
        name: torch.tensor([rng.uniform(low, high) for _ in range(POINTS)], dtype=torch.float64, requires_grad=True)
        for name, low, high in domains
    }
    grad = torch.tensor([rng.choice((-1, 1)) * rng.uniform(1.5, 3) for _ in range(POINTS)], dtype=torch.float64)
    result = _torch_value(forward, names)
    result.backward(grad)
    known = {name: tensor.detach() for name, tensor in names.items()} | {"grad": grad, "result": result.detach()}
    return {
        name: (_torch_value(formula, known) - names[name].grad).abs() / names[name].grad.abs().clamp(min=1.0)
        for name, formula in formulas
    }


def _true_wrong(table: Sequence[Any]) -> Any:
    return [
        (place, name)
        for place, entry in enumerate(table)
        for name, off in _differences(entry).items()
        if float(off.max()) > CLOSE
    ]


def _formula(rng: random.Random, slope: Slope, how: str) -> Any:
    """`how` it comes out: right, wrong, partly wrong, without the gradient, or with it twice."""
    if how == "without":
        return slope.right
    if how == "twice":
        return mul(rng, "grad", "grad", slope.right)
    chosen = slope.right if how == "right" else rng.choice(slope.partly if how == "partly" else slope.wrong)
    return mul(rng, "grad", chosen)


def _table(pool: Sequence[Maker], ways: str, least: int = 1, share: float = 0.4) -> Draw:
    """Tables of four or five entries of the pool, with `least` formulas planted in one of these ways and more beside.

    Without a `least` one nothing is planted.
    """

    def draw(rng: random.Random) -> Case:
        entries: list[Entry] = [rng.choice(pool)(rng) for _ in range(rng.randint(4, 5))]
        places = [(at, name) for at, entry in enumerate(entries) for name in entry.slopes]
        planted = set(rng.sample(places, least))
        planted |= {place for place in places if least and rng.random() < share}
        if len(planted) == len(places):
            planted.pop()
        table = []
        for at, entry in enumerate(entries):
            formulas = []
            for name, slope in entry.slopes.items():
                how = rng.choice(ways.split()) if (at, name) in planted else "right"
                formulas.append((name, _formula(rng, slope, how)))
            table.append((entry.forward, tuple(formulas), entry.domains))
        return (tuple(table),)

    return draw


wrong_derivatives = Task(
    id="lab3.wrong_derivatives",
    title="The derivative that was planted wrong",
    function="wrong_derivatives",
    points=13,
    minutes=45,
    difficulty=4,
    seconds=6.0,
    oracle=_true_wrong,
    canon=lambda case, value: sorted([place, name] for place, name in value),
    properties=(
        Property(
            "one argument",
            weight=2,
            corners=(_table(ONE, "wrong"), _table(ONE, "wrong", 0), _table(ONE, "wrong", 2)),
            draws=(_table(ONE, "wrong"), _table(ONE, "wrong", 2)),
            why="a forgotten factor trains all the same, only worse: nobody notices without a check",
            slip="compare with what the forward expression really does, at several points",
            count=6,
        ),
        Property(
            "two arguments",
            weight=3,
            corners=(_table(TWO, "wrong"), _table(TWO, "wrong", 0), _table(TWO, "wrong", 3)),
            draws=(_table(TWO, "wrong"), _table(TWO, "wrong", 2), _table((*TWO, *ONE), "wrong", 1)),
            why="each argument has a formula of its own, and one may be right while the other is not",
            slip="move one argument and hold the other",
            count=6,
        ),
        Property(
            "the gradient forgotten, or taken twice",
            weight=2,
            corners=(_table(ONE, "without"), _table(TWO, "twice"), _table((*ONE, *TWO), "without twice", 2)),
            draws=(_table((*ONE, *TWO), "without twice"), _table(CORNERS, "without twice", 0)),
            why="a loss that ends in the op itself hides this: there the gradient is 1",
            slip="try gradients other than 1",
            count=6,
        ),
        Property(
            "wrong in a part of the domain",
            weight=3,
            corners=(
                _table((LEFT,), "partly"),
                _table((RIGHT,), "partly"),
                _table(CORNERS, "partly", 2),
                _table(CORNERS, "wrong partly", 0),
            ),
            draws=(
                _table(CORNERS, "partly"),
                _table(CORNERS, "partly wrong", 2),
                _table((*CORNERS, *ONE[:2]), "wrong"),
            ),
            why="a formula that is right for positive numbers passes every test that has no others",
            slip="try points all over the domain, many of them; but in a corner itself no difference quotient is right",
            count=6,
        ),
    ),
    hints=(
        "Write a function that evaluates an expression, given a dict of names. Then result, x, y and grad are names "
        "like any other.",
        "The slope of the forward expression at a point is about (f(x + h) - f(x - h)) / (2 h), with h around 1e-5. "
        "The formula should be grad times that.",
        "Try 100 points drawn from the domains, with a gradient that is not 1. A wrong formula is off by more than "
        "1e-4 at many of them; near a corner a right one may be off at a single one.",
    ),
    read="notebook 03, 10. Derivatives forward, and a derivative you can trust",
)
