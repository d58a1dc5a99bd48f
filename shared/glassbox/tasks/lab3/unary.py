"""Lab 3: the derivatives of sum, relu and softmax (PyTorch: derivatives.yaml, FunctionsManual.cpp)."""

from __future__ import annotations

import random
from typing import Any

from ..model import Case, Draw, Property, Task
from .products import as_floats, matrix

# Parts of 1 that are exact in binary, so that every order of the same arithmetic gives the same floats.
PARTS = ((1.0,), (0.5, 0.5), (0.75, 0.25), (0.5, 0.25, 0.25), (0.625, 0.25, 0.125), (0.5, 0.25, 0.125, 0.125))


def _true_unary(op: str, grad: Any, saved: Any) -> Any:
    import torch

    given = torch.tensor(grad, dtype=torch.float64)
    match op:
        case "softmax":
            result = torch.tensor(saved[0], dtype=torch.float64)
            return torch.ops.aten._softmax_backward_data(given, result, saved[1], torch.float64).tolist()
        case "relu":
            x = torch.tensor(saved, dtype=torch.float64, requires_grad=True)
            x.relu().backward(given)
        case _:
            shape, dim, keepdim = saved
            x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
            (x.sum() if dim is None else x.sum(dim, keepdim)).backward(given)
    assert x.grad is not None
    return x.grad.tolist()


def _sum(dim: int | None, keepdim: bool = False, square: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        shape = rng.randint(2, 4), rng.randint(2, 5)
        shape = (shape[0], shape[0]) if square else shape
        if dim is None:
            return "sum", rng.randint(-99, 99), (shape, None, False)
        grad: Any = matrix(rng, (1, shape[1]) if dim == 0 else (shape[0], 1))
        if not keepdim:
            grad = tuple(number for row in grad for number in row)
        return "sum", grad, (shape, dim, keepdim)

    return draw


def _relu(rng: random.Random) -> Case:
    shape = rng.randint(1, 4), rng.randint(3, 5)
    result = tuple(tuple(rng.choice((0, rng.randint(1, 9))) for _ in range(shape[1])) for _ in range(shape[0]))
    return "relu", matrix(rng, shape), result


def _relu_of_halves(rng: random.Random) -> Case:
    """Results below 1, and whole rows of zeros."""
    columns = rng.randint(3, 5)
    rows = [tuple(rng.choice((0.0, 0.25, 0.5)) for _ in range(columns)), (0.0,) * columns, (0.5,) * columns]
    rng.shuffle(rows)
    return "relu", matrix(rng, (3, columns)), tuple(rows)


def _softmax(dim: int, certain: bool = False) -> Draw:
    """`certain`: one row has a probability of 1 and zeros beside it."""

    def draw(rng: random.Random) -> Case:
        count, length = rng.randint(1, 4), rng.randint(2, 4)
        rows = [list(rng.choice([each for each in PARTS if len(each) == length])) for _ in range(count)]
        if certain:
            rows[0] = [1.0] + [0.0] * (length - 1)
        for row in rows:
            rng.shuffle(row)
        if dim == 0:
            rows = [list(column) for column in zip(*rows, strict=True)]
        grad = matrix(rng, (len(rows), len(rows[0])))
        return "softmax", grad, (tuple(map(tuple, rows)), dim)

    return draw


unary_backward = Task(
    id="lab3.unary_backward",
    title="The derivatives of sum, relu and softmax",
    function="unary_backward",
    points=7,
    minutes=25,
    difficulty=3,
    piece="sum_backward",
    oracle=_true_unary,
    canon=as_floats,
    properties=(
        Property(
            "sum",
            weight=2,
            corners=(
                *(_sum(dim, keepdim) for dim in (0, 1) for keepdim in (False, True)),
                *(_sum(dim, square=True) for dim in (0, 1)),
                _sum(None),
            ),
            draws=(_sum(0), _sum(1), _sum(0, True), _sum(1, True), _sum(None)),
            why="each element went into one sum with factor 1, so it gets that sum's gradient",
            slip="which row or column a number of the gradient belongs to; with keepdim the 1 is there already",
            count=16,
        ),
        Property(
            "relu",
            weight=2,
            corners=(_relu, _relu_of_halves),
            draws=(_relu, _relu_of_halves),
            why="what was cut off has no influence, so it gets no gradient: at exactly 0, too",
            slip="the result only says where the gradient passes; it is not a factor, and 0 does not pass",
        ),
        Property(
            "softmax",
            weight=3,
            corners=(_softmax(0), _softmax(1), _softmax(0, True), _softmax(1, True)),
            draws=(_softmax(1), _softmax(0)),
            why="the parts sum to 1: when one grows the others shrink, so each element feels the whole row's gradient",
            slip="the mean that is taken off is weighted with the result, and it runs along dim",
        ),
    ),
    hints=(
        "sum: make the gradient a full matrix again. relu: look at the result only, element by element.",
        "softmax, for one row with result y and gradient g: every element's gradient is y[i] * (g[i] - s), with one "
        "number s for the whole row.",
        "s is the sum of y[j] * g[j] over the row. For dim 0 do the same with columns: zip(*rows) turns one into the "
        "other.",
    ),
    read="notebook 03, 4. What a derivative needs",
)
