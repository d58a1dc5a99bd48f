"""Lab 4: joining the dimensions of a loop (PyTorch: ATen/TensorIterator.cpp, coalesce_dimensions)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..lab1.cases import always, strides_that_count
from ..model import Case, Draw, Property, Task

Run = list[tuple[int, tuple[int, ...]]]
"""Neighbouring dimensions, innermost first: a size and a stride for each operand."""


def _true_coalesce(shape: Sequence[int], operand_strides: Sequence[Sequence[int]]) -> Any:
    """The piece itself: PyTorch shows nobody what is left of a loop."""
    from ...mini.c10 import pieces

    return pieces.reference("coalesce_dimensions")(shape, operand_strides)


def _canon(case: Case, value: Any) -> Any:
    shape, operand_strides = value
    if len(operand_strides) != len(case[1]):
        raise ValueError("strides of every operand")
    return [shape, [strides_that_count(shape, stride) for stride in operand_strides]]


def _run(rng: random.Random, steps: Sequence[int], length: int) -> Run:
    """`length` dimensions that every operand walks in one go, beginning with these strides."""
    run: Run = []
    for _ in range(length):
        size = rng.randint(2, 7)
        run.append((size, tuple(steps)))
        steps = [step * size for step in steps]
    return run


def _steps_after(rng: random.Random, run: Run, breaking: Sequence[bool]) -> list[int]:
    """Strides for the next dimension out: those that fit, but for the operands that break."""
    size, steps = run[-1]
    return [
        rng.choice((size * step + rng.randint(1, 4), size * step * 2, step)) if breaks else size * step
        for step, breaks in zip(steps, breaking, strict=True)
    ]


def _case(rng: random.Random, dims: Run) -> Case:
    sizes = tuple(size for size, _ in dims)
    count = len(dims[0][1])
    return sizes, tuple(tuple(steps[at] for _, steps in dims) for at in range(count))


def _runs(operands: int, runs: Sequence[int], breaking: str = "some", zeros: bool = False) -> Draw:
    """Runs of these lengths; between two of them one operand breaks ("one"), or all do, or some."""

    def draw(rng: random.Random) -> Case:
        first = [rng.choice((1, 1, 2, 4)) for _ in range(operands)]
        if zeros:
            first[rng.randrange(operands)] = 0
        dims = _run(rng, first, runs[0])
        for length in runs[1:]:
            breaks = [breaking == "all" or breaking == "some" and rng.random() < 0.5 for _ in range(operands)]
            breaks[rng.randrange(operands)] = True
            steps = _steps_after(rng, dims, breaks)
            if zeros:
                # A repeated operand begins to move here, or a moving one begins to be repeated.
                at = rng.randrange(operands)
                steps[at] = 0 if dims[-1][1][at] else rng.randint(1, 9)
            dims += _run(rng, steps, length)
        return _case(rng, dims)

    return draw


def _any_runs(zeros: bool = False, breaking: str = "some") -> Draw:
    def draw(rng: random.Random) -> Case:
        runs = [rng.randint(1, 3) for _ in range(rng.randint(2, 3))]
        return _runs(rng.randint(2, 4), runs, breaking, zeros)(rng)

    return draw


def _in_reverse(rng: random.Random) -> Case:
    """Outermost first would be joined; innermost first is not."""
    shape, strides = _runs(rng.randint(1, 2), (rng.randint(2, 4),))(rng)
    return shape[::-1], tuple(stride[::-1] for stride in strides)


def _equal_steps(rng: random.Random) -> Case:
    """Two dimensions with one stride, as windows over a sequence have."""
    run = _run(rng, [rng.randint(1, 9)], 1)
    return _case(rng, [*run, (rng.randint(2, 7), run[0][1])])


def _turning(to_zero: bool) -> Draw:
    """One operand begins to be repeated, or ceases to be; the others could go on."""

    def draw(rng: random.Random) -> Case:
        count = rng.randint(2, 3)
        at = rng.randrange(count)
        first = [rng.randint(1, 4) if other != at or to_zero else 0 for other in range(count)]
        dims = _run(rng, first, rng.randint(1, 2))
        size, steps = dims[-1]
        after = [size * step for step in steps]
        after[at] = 0 if to_zero else rng.randint(1, 9)
        return _case(rng, dims + _run(rng, after, 1))

    return draw


def _with_ones(draw: Draw, inner: bool = False) -> Draw:
    """Sizes of 1 put in, whose strides may be anything; with `inner` the innermost is one of them."""

    def drawn(rng: random.Random) -> Case:
        shape, strides = draw(rng)
        for turn in range(rng.randint(1, 2)):
            at = 0 if inner and not turn else rng.randint(0, len(shape))
            shape = (*shape[:at], 1, *shape[at:])
            strides = tuple((*each[:at], rng.randint(0, 40), *each[at:]) for each in strides)
        return shape, strides

    return drawn


def _all_ones(rng: random.Random) -> Case:
    ndim = rng.randint(2, 5)
    return (1,) * ndim, tuple(tuple(rng.randint(0, 40) for _ in range(ndim)) for _ in range(rng.randint(1, 3)))


def _one_dimension(rng: random.Random) -> Case:
    return _case(rng, _run(rng, [rng.randint(0, 9) for _ in range(rng.randint(1, 3))], 1))


coalesce_dimensions = Task(
    id="lab4.coalesce_dimensions",
    title="As few loops as the layouts allow",
    function="coalesce_dimensions",
    points=8,
    minutes=15,
    difficulty=3,
    piece="coalesce_dimensions",
    oracle=_true_coalesce,
    canon=_canon,
    properties=(
        Property(
            "one operand: dense, with gaps, in another order",
            weight=1,
            corners=(
                _runs(1, (3,)),
                _runs(1, (2, 2)),
                _in_reverse,
                _equal_steps,
                _one_dimension,
                always((), ((),)),
                always((), ((), ())),
            ),
            draws=(_runs(1, (2, 1)), _runs(1, (1, 2, 1)), _runs(1, (4,)), _in_reverse, _runs(1, (1, 3))),
            why="a contiguous tensor of any shape is one loop over all its elements",
            slip="the next dimension joins where its stride is the size times the stride of the one inside it",
        ),
        Property(
            "several operands: one in the way is enough",
            weight=2,
            corners=(
                _runs(2, (3,)),
                _runs(2, (2, 2), "one"),
                _runs(3, (1, 1), "one"),
                _runs(4, (2, 2), "one"),
                _runs(2, (4,)),
            ),
            draws=(_any_runs(), _any_runs(breaking="one"), _runs(3, (2, 2), "one"), _any_runs(breaking="all")),
            why="one loop counter serves all operands, so each must be able to follow it",
            slip="all operands are asked, not only the first; where one refuses a new dimension begins for all",
            count=16,
        ),
        Property(
            "sizes of 1",
            weight=2,
            corners=(
                _with_ones(_runs(2, (3,)), inner=True),
                _with_ones(_any_runs(), inner=True),
                _with_ones(_runs(1, (2, 2))),
                _all_ones,
            ),
            draws=(_with_ones(_any_runs()), _with_ones(_any_runs(), inner=True), _all_ones),
            why="a dimension of one step needs no loop, and its stride is never used",
            slip="a size of 1 joins with anything; a run that so far has size 1 takes the strides of what joins it",
        ),
        Property(
            "operands that are repeated",
            weight=2,
            corners=(
                _runs(2, (3,), zeros=True),
                _runs(1, (2, 2), zeros=True),
                _turning(to_zero=True),
                _turning(to_zero=False),
            ),
            draws=(_any_runs(zeros=True), _runs(3, (2, 3), zeros=True)),
            why="two repeated dimensions side by side are one: 0 is size times 0",
            slip="stride 0 needs no rule of its own; it joins with 0 alone",
        ),
    ),
    hints=(
        "Take the two innermost dimensions and one operand: when is one loop over both the same walk?",
        "Keep a list of dimensions that you have joined so far; each new one joins the last of them or is added.",
        "Join where one of the two sizes is 1, or where for every operand the stride is the last one's size times "
        "its stride. If the last one's size is 1, its strides are replaced.",
    ),
    read="notebook 04, 6. Station 7: as few loops as the layouts allow",
)
