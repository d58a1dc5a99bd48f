"""Lab 3: the derivatives of two products (PyTorch: mul and mm in derivatives.yaml, FunctionsManual.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Matrix = tuple[tuple[int, ...], ...]
Shape = tuple[int, int]


def _true_products(op: str, grad: Matrix, a: Any, b: Any, shapes: Sequence[Any]) -> Any:
    import torch

    operands = [
        torch.zeros(shape, dtype=torch.float64) if value is None else torch.tensor(value, dtype=torch.float64)
        for value, shape in zip((a, b), shapes, strict=True)
    ]
    for operand, shape in zip(operands, shapes, strict=True):
        operand.requires_grad_(shape is not None)
    result = getattr(torch, op)(*operands)
    result.backward(torch.tensor(grad, dtype=torch.float64))
    return [None if each.grad is None else each.grad.long().tolist() for each in operands]


def as_floats(case: Case, value: Any) -> Any:
    """Numbers as floats, so that 2 and 2.0 are one answer."""
    if isinstance(value, list | tuple):
        return [as_floats(case, each) for each in value]
    return float(value) if type(value) is int else value


def matrix(rng: random.Random, shape: Shape, low: int = -6, high: int = 9) -> Matrix:
    """Whole numbers, with which every order of the same arithmetic gives the same floats."""
    return tuple(tuple(rng.randint(low, high) for _ in range(shape[1])) for _ in range(shape[0]))


def _case(rng: random.Random, op: str, a: Shape, b: Shape, wanted: str) -> Case:
    result = (a[0], b[1]) if op == "mm" else (max(a[0], b[0]), max(a[1], b[1]))
    to_a, to_b = "a" in wanted, "b" in wanted
    return (
        op,
        matrix(rng, result),
        matrix(rng, a) if to_b else None,
        matrix(rng, b) if to_a else None,
        (a if to_a else None, b if to_b else None),
    )


def _size(rng: random.Random) -> int:
    return rng.randint(2, 4)


def _equal(wanted: str = "ab") -> Draw:
    def draw(rng: random.Random) -> Case:
        shape = rng.choice((1, _size(rng))), _size(rng)
        return _case(rng, "mul", shape, shape, wanted)

    return draw


def _broadcast(wanted: str = "ab", kind: str = "any") -> Draw:
    """Sizes of 1 in one operand or in both; `row`, `column` and `number`: the first one is this."""

    def draw(rng: random.Random) -> Case:
        full = _size(rng), _size(rng)
        if kind == "both":
            shapes = [(1, full[1]), (full[0], 1)]
        else:
            narrow = {"row": (1, full[1]), "column": (full[0], 1), "number": (1, 1)}
            shapes = [narrow[rng.choice(sorted(narrow)) if kind == "any" else kind], full]
        rng.shuffle(shapes)
        return _case(rng, "mul", shapes[0], shapes[1], wanted)

    return draw


def _mm(wanted: str = "ab", square: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        n, k, m = (rng.choice((1, 2, 3, 4)) for _ in range(3))
        if square:
            n = k = m = _size(rng)
        return _case(rng, "mm", (n, k), (k, m), wanted)

    return draw


product_backward = Task(
    id="lab3.product_backward",
    title="The derivatives of two products",
    function="product_backward",
    points=9,
    minutes=25,
    difficulty=3,
    piece="mm_mat1_backward",
    oracle=_true_products,
    canon=as_floats,
    properties=(
        Property(
            "mul, element by element",
            weight=1,
            corners=(_equal(), _equal()),
            draws=(_equal(),),
            why="each operand's gradient is the result's gradient times the other operand",
            slip="to the left goes grad times the right operand, and the other way round",
        ),
        Property(
            "mul of operands that broadcast",
            weight=3,
            corners=(*(_broadcast(kind=kind) for kind in ("row", "column", "number", "both")),),
            draws=(_broadcast(), _broadcast(kind="both")),
            why="a scale of one number per channel learns from all the places where it was used",
            slip="multiply first, then sum over what was repeated; the size of 1 stays",
        ),
        Property(
            "mm",
            weight=3,
            corners=(_mm(), _mm(square=True)),
            draws=(_mm(), _mm(square=True), _mm()),
            why="two matrix products per layer are nearly all the work of a backward pass",
            slip="the shapes leave one way only: (n, m) times (m, k) for the left, (k, n) times (n, m) for the right",
        ),
        Property(
            "one gradient alone",
            weight=2,
            corners=(*(draw(wanted) for draw in (_equal, _broadcast, _mm) for wanted in ("a", "b")),),
            draws=(_broadcast("a"), _mm("b"), _broadcast("b"), _mm("a")),
            why="a frozen weight gets no gradient, and what nobody needs was never saved",
            slip="None where no gradient is wanted; the operand's own values are not needed for its own gradient",
        ),
    ),
    hints=(
        "Write c = a * b for one element, and c[i][j] as a sum over k for mm: who is multiplied with whom?",
        "mul: a full matrix of grad * other first; then sum its rows into one where the shape has one row, and its "
        "columns into one where it has one column.",
        "mm: the left gradient is grad times b transposed, the right one a transposed times grad.",
    ),
    read="notebook 03, 4. What a derivative needs",
)
