"""Lab 4, extension: a pointwise expression as one loop (PyTorch: torch/_inductor, ATen/native/cuda/Loops.cuh)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Ints = tuple[int, ...]
Operand = tuple[tuple[float, ...], Ints, Ints, int]
"""(storage, shape, stride, offset)."""
Expression = Any
"""(name of an op, one or two expressions); an int is an operand's number, a float is itself."""

UNARY, BINARY = ("neg", "relu"), ("add", "sub", "mul", "maximum")


def _postfix(expression: Expression) -> list[Any]:
    """Its names, operands and numbers as a program for a stack: what is worked on stands before the op."""
    left, program = [expression], []
    while left:
        part = left.pop()
        is_op = isinstance(part, tuple)
        program.append(part[0] if is_op else part)
        left += part[1:] if is_op else ()
    return program[::-1]


def _true_fused(expression: Expression, operands: Sequence[Operand]) -> Any:
    """Runs it in PyTorch as programs for a stack run, op by op, in float64; what the ops move is counted beside
    it. How one loop does the same stands nowhere here.
    """
    import torch

    ops = {name: (getattr(torch, name), count) for count, names in ((1, UNARY), (2, BINARY)) for name in names}
    sources = {
        at: torch.tensor(held, dtype=torch.float64).as_strided(*layout) for at, (held, *layout) in enumerate(operands)
    }
    program = _postfix(expression)
    stack: list[Any] = []
    loads = stores = 0
    for word in program:
        if not isinstance(word, str):
            if not isinstance(word, float) and word not in sources:
                raise IndexError(f"no operand {word}")
            stack.append(word if isinstance(word, float) else sources[word])
            continue
        if word not in ops:
            raise ValueError(f"no op {word!r}")
        op, count = ops[word]
        taken, stack = stack[-count:], stack[:-count]
        stack.append(op(*(torch.as_tensor(each, dtype=torch.float64) for each in taken)))
        loads += stack[-1].numel() * sum(isinstance(each, torch.Tensor) for each in taken)
        stores += stack[-1].numel()
    [result] = stack
    sources_used = {word for word in program if type(word) is int}
    once = result.numel()
    return tuple(result.shape), result.flatten().tolist(), (once * len(sources_used), once), (loads, stores)


def _number(rng: random.Random) -> float:
    return rng.randint(-8, 8) / 2


def _operand(rng: random.Random, shape: Ints, kind: str) -> Operand:
    """An operand of this shape over a storage of its own: dense, permuted, with gaps, or with a stride of 0."""
    order = list(range(len(shape)))
    if kind == "permuted":
        rng.shuffle(order)
    stride, step = [0] * len(shape), rng.choice((2, 3)) if kind == "gaps" else 1
    for dim in reversed(order):
        if kind == "repeated" and dim == order[-1]:
            continue
        stride[dim] = step
        step *= shape[dim] + (kind == "gaps" and rng.random() < 0.5)
    offset = rng.randint(0, 4)
    cells = offset + 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True) if size)
    return tuple(_number(rng) for _ in range(cells + rng.randint(0, 3))), shape, tuple(stride), offset


def _shape(rng: random.Random) -> Ints:
    while True:
        shape = tuple(rng.randint(2, 6) for _ in range(rng.randint(1, 3)))
        if len(shape) < 3 or shape[0] * shape[1] * shape[2] <= 36:
            return shape


def _part_of(rng: random.Random, shape: Ints) -> Ints:
    """A shape that broadcasts to this one and is smaller."""
    if rng.random() < 0.5:
        return shape[rng.randint(1, len(shape)) :]
    at = rng.randrange(len(shape))
    return tuple(1 if dim == at or rng.random() < 0.3 else size for dim, size in enumerate(shape))


KINDS = ("dense", "permuted", "gaps", "repeated")


def _tree(rng: random.Random, leaves: Sequence[Any]) -> Expression:
    """An expression with these leaves from left to right; a unary op here and there."""
    if len(leaves) == 1:
        node = leaves[0]
        return (rng.choice(UNARY), node) if isinstance(node, int) and rng.random() < 0.3 else node
    # Two numbers beside each other would be an expression of no operand.
    cuts = [
        at
        for at in range(1, len(leaves))
        if any(isinstance(leaf, int) for leaf in leaves[:at]) and any(isinstance(leaf, int) for leaf in leaves[at:])
    ] or [1]
    at = rng.choice(cuts)
    node = (rng.choice(BINARY), _tree(rng, leaves[:at]), _tree(rng, leaves[at:]))
    return (rng.choice(UNARY), node) if rng.random() < 0.2 else node


def _expression(
    leaves: Callable[[random.Random], list[Any]],
    kinds: Sequence[str] = KINDS,
    broadcast: bool = False,
    unused: bool = False,
) -> Draw:
    """Expressions over what `leaves` gives; with `broadcast` all operands but one are smaller."""

    def draw(rng: random.Random) -> Case:
        chosen = leaves(rng)
        count = max(leaf for leaf in chosen if isinstance(leaf, int)) + 1
        shape = _shape(rng)
        shapes = [shape] * count
        if broadcast:
            whole = rng.randrange(count)
            shapes = [shape if at == whole else _part_of(rng, shape) for at in range(count)]
        operands = [_operand(rng, each, rng.choice(kinds) if each else "dense") for each in shapes]
        if unused:
            # It would not even broadcast.
            operands.append(_operand(rng, (*shape[:-1], shape[-1] + 1), "dense"))
        return _tree(rng, chosen), tuple(operands)

    return draw


def _each_once(rng: random.Random) -> list[Any]:
    return rng.sample(range(3), 3)[: rng.randint(2, 3)] if rng.random() < 0.5 else [0, 1]


def _with_numbers(rng: random.Random) -> list[Any]:
    leaves: list[Any] = [0, 1, 2][: rng.randint(1, 3)]
    for _ in range(rng.randint(1, 2)):
        leaves.insert(rng.randint(0, len(leaves)), _number(rng))
    return leaves


def _again(rng: random.Random) -> list[Any]:
    """The same operand several times."""
    leaves: list[Any] = [0, 1, *(rng.randint(0, 1) for _ in range(rng.randint(1, 3)))]
    rng.shuffle(leaves)
    return leaves


def _only_one(rng: random.Random) -> list[Any]:
    return [0] * rng.randint(2, 4)


def _smaller_inside(rng: random.Random) -> Case:
    """An op over small operands whose result meets a larger one: it would be a small kernel of its own."""
    shape = _shape(rng)
    small = _part_of(rng, shape)
    operands = tuple(_operand(rng, each, "dense") for each in (shape, small, small))
    inner = (rng.choice(BINARY), 1, rng.choice((1, 2, 2)))
    return (rng.choice(BINARY), *rng.sample((0, inner), 2)), operands


def _a_bias(rng: random.Random) -> Case:
    """A row for a matrix: what it lacks on the left is matched from the right."""
    rows, columns = rng.sample(range(2, 7), 2)
    operands = _operand(rng, (rows, columns), rng.choice(KINDS)), _operand(rng, (columns,), "dense")
    return _tree(rng, rng.sample((0, 1, 1, _number(rng)), 4)), operands


def _without_elements(rng: random.Random) -> Case:
    shape = _shape(rng)
    at = rng.randrange(len(shape))
    shape = (*shape[:at], 0, *shape[at + 1 :])
    return _tree(rng, [0, 1, 0]), tuple(_operand(rng, each, "dense") for each in (shape, shape))


def _scalars(rng: random.Random) -> Case:
    return _tree(rng, [0, _number(rng), 1]), tuple(_operand(rng, (), "dense") for _ in range(2))


def _wrong(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        expression, operands = _expression(_again)(rng)
        if kind == "op":
            name = rng.choice(("div", "plus", "sin", "fma"))
            return ("add", (name, 0, 1), expression), operands
        if kind == "operand":
            return (rng.choice(BINARY), expression, len(operands)), operands
        if kind == "negative operand":
            return (rng.choice(BINARY), expression, -1), operands
        shape = operands[0][1]
        return (rng.choice(BINARY), expression, 2), (*operands, _operand(rng, (*shape[:-1], shape[-1] + 1), "dense"))

    return draw


fused_kernel = Task(
    id="lab4.fused_kernel",
    title="Many ops in one pass",
    function="fused_kernel",
    points=14,
    minutes=35,
    difficulty=4,
    oracle=_true_fused,
    properties=(
        Property(
            "each operand once, all of one shape",
            weight=2,
            corners=(
                *(_expression(_each_once, (kind,)) for kind in KINDS),
                _expression(_with_numbers),
            ),
            draws=(_expression(_each_once), _expression(_with_numbers)),
            why="one loop evaluates the whole expression for one element, then goes on to the next",
            slip="each operand finds its element by its own strides and offset; numbers are not loaded from memory",
        ),
        Property(
            "operands that stand there more than once, or not at all",
            weight=2,
            corners=(
                _expression(_again),
                _expression(_only_one),
                _expression(_each_once, unused=True),
                _expression(_again, unused=True),
            ),
            draws=(_expression(_again), _expression(_only_one), _expression(_again, unused=True)),
            why="what is in a register need not be loaded again: this is what fusion saves",
            slip="loads are counted by operands that are used, not by places where they stand",
        ),
        Property(
            "operands that broadcast",
            weight=3,
            corners=(
                _expression(_each_once, broadcast=True),
                _expression(_again, broadcast=True),
                _smaller_inside,
                _a_bias,
            ),
            draws=(
                _a_bias,
                _expression(_each_once, broadcast=True),
                _smaller_inside,
                _expression(_with_numbers, broadcast=True),
                _expression(_again, broadcast=True),
            ),
            why="a bias or a mask is read along stride 0, in the same loop as everything else",
            slip="without fusion an op over small operands is a small kernel; the fused loop runs over the whole shape",
            count=16,
        ),
        Property(
            "no dimension, no element, and what cannot be",
            weight=1,
            corners=(
                *(_wrong(kind) for kind in ("op", "operand", "negative operand", "shape", "shape")),
                _without_elements,
                _scalars,
            ),
            draws=(_without_elements, _scalars, _expression(_with_numbers)),
            why="a kernel is launched for whatever comes, also for nothing",
            slip="ValueError for an op that is not known, IndexError for an operand that is not there, "
            "RuntimeError for shapes that do not meet",
            count=18,
        ),
    ),
    hints=(
        "Write a function of an expression and a list with one loaded value for each operand; it calls itself.",
        "Broadcast the shapes of the operands that are used; an operand's stride is 0 where its size is 1 or missing. "
        "Then itertools.product over the shape gives the indices.",
        "For the unfused counts walk through the expression from the inside and give back each part's shape: every op "
        "stores its own result's elements and loads as many for each argument that is no number.",
    ),
    read="notebook 04, 7. A new pointwise op in ten lines",
)
