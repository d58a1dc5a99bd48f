"""Lab 3, extension: derivatives forward, by dual numbers (PyTorch: torch/autograd/forward_ad.py)."""

from __future__ import annotations

import functools
import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

VALUES: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, n: a**n,
    "sin": math.sin,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "relu": lambda a: max(a, 0.0),
    "abs": abs,
    "maximum": max,
    "detach": lambda a: a,
}
"""What each op computes, for the making of cases that stay in range."""

CLOSE = 1e-6
LARGE = 200.0


@functools.lru_cache(4096)
def _true_duals(program: Sequence[Any], inputs: Sequence[float], tangents: Sequence[float]) -> Any:
    import torch
    from torch.autograd import forward_ad

    def number(value: float) -> Any:
        return torch.tensor(value, dtype=torch.float64)

    # The first dual number makes torch load decompositions, which warn of torch.jit; that is nothing to a learner.
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", FutureWarning)
        made = [forward_ad.make_dual(number(x), number(t)) for x, t in zip(inputs, tangents, strict=True)]
        for op, *operands in program:
            first, *rest = operands
            other = rest if op == "pow" else [made[each] for each in rest]
            made.append(getattr(torch, op)(made[first], *other))
        parts = [forward_ad.unpack_dual(each) for each in made]
        return [(p.primal.item(), 0.0 if p.tangent is None else p.tangent.item()) for p in parts]


def _wrong_with(case: Case, answer: Any) -> str:
    """Which number is off; "" where all are right up to rounding."""
    truth = _true_duals(*case)
    if len(answer) != len(truth):
        return f"{len(truth)} pairs are asked for: one for each input and one for each step"
    for place, (pair, right) in enumerate(zip(answer, truth, strict=True)):
        value, tangent = pair
        for what, given, true in (("value", value, right[0]), ("tangent", tangent, right[1])):
            if type(given) not in (int, float):
                return f"the {what} of number {place} is not a number"
            if not abs(given - true) <= CLOSE * max(1.0, abs(true)):
                return f"the {what} of number {place} is {given:.6g}, it should be {true:.6g}"
    return ""


class _Writer:
    """Writes a program step by step and knows the numbers so far, so that no step leaves its domain."""

    def __init__(self, rng: random.Random, count: int, still: float = 0.15) -> None:
        """still: the share of inputs with a tangent of 0."""
        self.rng, self.steps = rng, list[tuple[Any, ...]]()
        self.values = [rng.choice((-1, 1)) * rng.randint(1, 12) / 4 for _ in range(count)]
        self.inputs = tuple(self.values)
        moves = [rng.choice((-1, 1)) * rng.randint(1, 8) / 2 for _ in range(count)]
        self.tangents = tuple(0.0 if rng.random() < still else move for move in moves)
        if not any(self.tangents):
            self.tangents = (1.5, *self.tangents[1:])

    def step(self, op: str, first: int, *second: Any) -> int | None:
        """The new number's place; None, and no step, where the op would leave its domain."""
        operands = [self.values[first], *(second if op == "pow" else [self.values[each] for each in second])]
        if op in ("log", "sqrt") and operands[0] < 0.05 or op == "div" and abs(operands[1]) < 0.2:
            return None
        if op == "exp" and operands[0] > 4 or op == "pow" and second[0] < 1 and abs(operands[0]) < 0.2:
            return None
        # At a corner to which rounding leads, either side would be right.
        if op in ("relu", "abs") and 0 < abs(operands[0]) < 1e-3:
            return None
        if op == "maximum" and 0 < abs(operands[0] - operands[1]) < 1e-3:
            return None
        value = float(VALUES[op](*operands))
        if abs(value) > LARGE:
            return None
        self.steps.append((op, first, *second))
        self.values.append(value)
        return len(self.values) - 1

    def any_step(self, ops: Sequence[str]) -> None:
        for _ in range(50):
            op, last = self.rng.choice(ops), len(self.values) - 1
            # Most steps go on from a recent number, so that the numbers depend on each other.
            first = self.rng.choice((last, last, self.rng.randint(0, last)))
            if op in ("add", "sub", "mul", "div", "maximum"):
                pair = [first, self.rng.randint(0, last)]
                self.rng.shuffle(pair)
                made = self.step(op, *pair)
            else:
                made = self.step(op, first, *([self.rng.choice((-2, -1, 0, 1, 2, 3))] if op == "pow" else []))
            if made is not None:
                return


def _case(w: _Writer) -> Case:
    return tuple(w.steps), w.inputs, w.tangents


def _program(ops: str, inputs: tuple[int, int] = (2, 3), steps: tuple[int, int] = (3, 6), still: float = 0.15) -> Draw:
    def draw(rng: random.Random) -> Case:
        w = _Writer(rng, rng.randint(*inputs), still)
        for _ in range(rng.randint(*steps)):
            w.any_step(ops.split())
        return _case(w)

    return draw


def _twice(op: str) -> Draw:
    """The same number as both operands."""

    def draw(rng: random.Random) -> Case:
        w = _Writer(rng, 2, 0.0)
        w.any_step(("add", "mul", "sub"))
        w.step(op, 2, 2)
        w.any_step(("add", "mul", "sub"))
        return _case(w)

    return draw


def _tie(rng: random.Random) -> Case:
    """Two equal numbers with tangents of their own."""
    w = _Writer(rng, 2, 0.0)
    w.values[1] = w.values[0]
    w.inputs = tuple(w.values)
    w.any_step(("add", "mul"))
    w.step("maximum", *rng.sample((0, 1), 2))
    w.any_step(("mul", "add"))
    return _case(w)


def _at_zero(op: str) -> Draw:
    """An input of 0 that moves, through relu, abs or a power."""

    def draw(rng: random.Random) -> Case:
        w = _Writer(rng, 2, 0.0)
        w.values[0] = 0.0
        w.inputs = tuple(w.values)
        w.step(op, 0, *([rng.choice((1, 2))] if op == "pow" else []))
        w.step("add", *rng.sample((2, 1), 2))
        w.any_step(("mul", "sin", "add"))
        return _case(w)

    return draw


dual_numbers = Task(
    id="lab3.dual_numbers",
    title="Derivatives forward, by dual numbers",
    function="dual_numbers",
    points=13,
    minutes=35,
    difficulty=3,
    oracle=_true_duals,
    verify=_wrong_with,
    properties=(
        Property(
            "sums and products",
            weight=2,
            corners=(_program("add sub mul"), _twice("mul"), _twice("sub"), _program("pow mul")),
            draws=(_program("add sub mul pow"), _program("mul sub"), _program("pow add mul")),
            why="each number carries its tangent along: no graph, nothing saved, one pass",
            slip="a product moves by both of its factors, and a number times itself is no exception",
        ),
        Property(
            "quotients and functions",
            weight=3,
            corners=(
                _program("div", steps=(2, 4)),
                _program("exp log add", steps=(4, 6)),
                _program("sin sqrt mul", steps=(4, 6)),
                _program("sin exp log sqrt div", steps=(5, 8)),
            ),
            draws=(_program("sin exp log sqrt div mul"), _program("div add sqrt"), _program("pow div exp sin")),
            why="a function's tangent is its derivative at the value, times the tangent that comes in",
            slip="the derivative is taken at the operand's value; of a quotient both parts move",
        ),
        Property(
            "corners and ties",
            weight=2,
            corners=(_tie, *map(_at_zero, ("relu", "abs", "pow")), _program("relu maximum abs sub", steps=(4, 7))),
            draws=(
                _tie,
                _at_zero("relu"),
                _program("relu maximum abs sub mul"),
                _at_zero("abs"),
                _program("maximum sub"),
            ),
            why="in a corner there is no derivative, and PyTorch must say something all the same",
            slip="relu and abs give 0 at 0; at a tie maximum moves by half of both",
        ),
        Property(
            "what stands still",
            weight=1,
            corners=(
                _program("detach mul add", steps=(4, 7)),
                _program("mul sin exp", still=0.6),
                _program("detach sub mul", steps=(4, 7)),
            ),
            draws=(_program("detach mul sin add sub", steps=(5, 8)), _program("mul div add", still=0.6)),
            why="detach means: from here on this counts as a constant",
            slip="a detached number keeps its value and has the tangent 0; what it was made of goes on moving",
        ),
    ),
    hints=(
        "Keep a list of pairs (value, tangent); each step appends one.",
        "If an op's value is f(a, b), its tangent is (df/da) * tangent of a + (df/db) * tangent of b.",
        "pow: n * a ** (n - 1), but 0 for n = 0. sqrt: 1 / (2 * value). maximum: the larger one's tangent, at a tie "
        "the mean of the two.",
    ),
    read="notebook 03, 10. Derivatives forward, and a derivative you can trust",
)
