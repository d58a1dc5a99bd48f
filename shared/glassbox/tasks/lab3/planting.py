"""Lab 3, extension: formulas for derivatives, some of them planted wrong (PyTorch: tools/autograd/derivatives.yaml).

An expression is a number, a name, or (op, operand, ...).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Expression = Any
Domains = tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class Slope:
    """What one argument's formula multiplies the gradient with: the right expression, and wrong ones.

    wrong   off nearly everywhere
    partly  right in a part of the domain
    """

    right: Expression
    wrong: tuple[Expression, ...]
    partly: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Entry:
    """An op with the slope of each argument, and where the arguments come from."""

    forward: Expression
    domains: Domains
    slopes: dict[str, Slope]


def mul(rng: random.Random, *factors: Expression) -> Expression:
    """A product, its factors in any order."""
    left = list(factors)
    rng.shuffle(left)
    product = left.pop()
    while left:
        pair = [product, left.pop()]
        rng.shuffle(pair)
        product = ("mul", *pair)
    return product


def minus(a: Expression, b: Expression) -> Expression:
    return ("sub", a, b)


def _factor(rng: random.Random, positive: bool = False) -> float:
    """Never 1, which would make a forgotten factor right."""
    size = rng.choice((0.5, 1.5, 2.0, 2.5, 3.0))
    return size if positive or rng.random() < 0.5 else -size


def _line(rng: random.Random, k: float, c: float) -> Expression:
    pair = [("mul", k, "x"), c]
    rng.shuffle(pair)
    return ("add", *pair)


def _sin(rng: random.Random) -> Entry:
    k = _factor(rng)
    u = _line(rng, k, rng.randint(1, 6) / 4)
    slope = Slope(mul(rng, k, ("cos", u)), (("cos", u), mul(rng, k, ("sin", u)), ("neg", mul(rng, k, ("cos", u)))))
    return Entry(("sin", u), (("x", -2.0, 2.0),), {"x": slope})


def _exp(rng: random.Random) -> Entry:
    k = _factor(rng)
    u = _line(rng, k, rng.randint(-2, 2) / 4)
    slope = Slope(mul(rng, k, "result"), ("result", mul(rng, k, u), mul(rng, "x", "result")))
    return Entry(("exp", u), (("x", -1.0, 1.0),), {"x": slope})


def _log(rng: random.Random) -> Entry:
    k = _factor(rng, positive=True)
    u = _line(rng, k, rng.randint(3, 9) / 4)
    slope = Slope(("div", k, u), (("div", 1.0, u), ("div", k, "x"), mul(rng, k, u)))
    return Entry(("log", u), (("x", 0.5, 3.0),), {"x": slope})


def _sqrt(rng: random.Random) -> Entry:
    k = _factor(rng, positive=True)
    u = _line(rng, k, rng.randint(5, 9) / 2)
    twice = mul(rng, 2.0, "result")
    wrong = (("div", k, "result"), ("div", 1.0, twice), mul(rng, k / 2, "result"), ("div", k / 2, u))
    return Entry(("sqrt", u), (("x", 0.5, 3.0),), {"x": Slope(("div", k, twice), wrong)})


def _pow(rng: random.Random) -> Entry:
    k, n = _factor(rng), rng.randint(3, 4)
    u = _line(rng, k, rng.choice((-1, 1)) * rng.randint(2, 5) / 4)
    one_less = ("pow", u, n - 1)
    wrong = (mul(rng, n * k, "result"), mul(rng, k, one_less), mul(rng, float(n), one_less))
    return Entry(("pow", u, n), (("x", -1.5, 1.5),), {"x": Slope(mul(rng, n * k, one_less), wrong)})


def _softplus(rng: random.Random) -> Entry:
    k = _factor(rng)
    u = _line(rng, k, rng.randint(-3, 3) / 4)
    down = ("exp", ("neg", "result"))
    wrong = (mul(rng, k, down), minus(1.0, down), mul(rng, k, ("add", 1.0, down)))
    slope = Slope(mul(rng, k, minus(1.0, down)), wrong)
    return Entry(("log", ("add", 1.0, ("exp", u))), (("x", -1.5, 1.5),), {"x": slope})


def _corner(rng: random.Random) -> tuple[float, float]:
    """k and c of a line that crosses 0 well inside of -2 ... 2, and well away from x = 0."""
    k = _factor(rng)
    return k, -k * rng.choice((-1, 1)) * rng.randint(3, 5) / 4


def _abs(rng: random.Random) -> Entry:
    k, c = _corner(rng)
    u = _line(rng, k, c)
    partly = (k, -k, mul(rng, k, ("sign", "x")))
    slope = Slope(mul(rng, k, ("sign", u)), (("sign", u), mul(rng, -k, ("sign", u))), partly)
    return Entry(("abs", u), (("x", -2.0, 2.0),), {"x": slope})


def _relu(rng: random.Random) -> Entry:
    k, c = _corner(rng)
    u = _line(rng, k, c)
    partly = (k, mul(rng, k, ("step", "x")), mul(rng, k, ("step", ("neg", "x"))))
    passes = ("step", rng.choice((u, "result")))
    slope = Slope(mul(rng, k, passes), (passes, mul(rng, k, "result")), partly)
    return Entry(("relu", u), (("x", -2.0, 2.0),), {"x": slope})


def _one_sided(side: int) -> Callable[[random.Random], Entry]:
    """relu of a line that falls below 0 on this side only, and well away from x = 0."""

    def make(rng: random.Random) -> Entry:
        k = -side * _factor(rng, positive=True)
        u = _line(rng, k, abs(k) * rng.randint(3, 5) / 4)
        slope = Slope(mul(rng, k, ("step", u)), (("step", u), mul(rng, k, "result")), (k,))
        return Entry(("relu", u), (("x", -2.0, 2.0),), {"x": slope})

    return make


def _clamp(rng: random.Random) -> Entry:
    k = _factor(rng, positive=True)
    u = ("mul", k, "x")
    low, high = -k * rng.randint(3, 5) / 4, k * rng.randint(3, 5) / 4
    over, under = ("step", minus(u, low)), ("step", minus(high, u))
    partly = (k, mul(rng, k, over), mul(rng, k, under))
    slope = Slope(mul(rng, k, over, under), (mul(rng, over, under), mul(rng, k * 2, over, under)), partly)
    forward = ("maximum", low, ("minimum", u, high))
    return Entry(forward, (("x", -2.0, 2.0),), {"x": slope})


def _xy(low: float, high: float) -> Domains:
    return ("x", low, high), ("y", low, high)


def _product(rng: random.Random) -> Entry:
    k = _factor(rng)
    slopes = {
        "x": Slope(mul(rng, k, "y"), ("y", mul(rng, k, "x"), mul(rng, k, "x", "y"))),
        "y": Slope(mul(rng, k, "x"), ("x", mul(rng, k, "y"), "result")),
    }
    return Entry(mul(rng, k, "x", "y"), _xy(-2.0, 2.0), slopes)


def _quotient(rng: random.Random) -> Entry:
    k = _factor(rng)
    below = mul(rng, k, "y")
    square = ("pow", "y", 2)
    right = rng.choice((("neg", ("div", "result", "y")), ("neg", ("div", "x", mul(rng, k, square)))))
    slopes = {
        "x": Slope(("div", 1.0, below), (("div", 1.0, "y"), below, ("neg", ("div", 1.0, below)))),
        "y": Slope(right, (("div", "result", "y"), ("neg", ("div", "x", square)), ("neg", "result"))),
    }
    return Entry(("div", "x", below), _xy(0.5, 2.5), slopes)


def _length(rng: random.Random) -> Entry:
    k = _factor(rng, positive=True)
    slopes = {
        "x": Slope(("div", "x", "result"), (("div", 0.5, "result"), "x", ("div", mul(rng, 2.0, "x"), "result"))),
        "y": Slope(("div", mul(rng, k, "y"), "result"), (("div", "y", "result"), mul(rng, k, "y"))),
    }
    squares = [("pow", "x", 2), mul(rng, k, ("pow", "y", 2))]
    rng.shuffle(squares)
    return Entry(("sqrt", ("add", *squares)), _xy(0.5, 2.5), slopes)


def _wave(rng: random.Random) -> Entry:
    k = _factor(rng)
    u = mul(rng, k, "y")
    slopes = {
        "x": Slope(("sin", u), (("cos", u), "result", mul(rng, k, ("sin", u)))),
        "y": Slope(mul(rng, k, "x", ("cos", u)), (mul(rng, k, ("cos", u)), mul(rng, "x", ("cos", u)))),
    }
    return Entry(mul(rng, "x", ("sin", u)), _xy(-1.5, 1.5), slopes)


def _larger(rng: random.Random) -> Entry:
    k = _factor(rng, positive=True)
    u = ("mul", k, "y")
    first, second = ("step", minus("x", u)), ("step", minus(u, "x"))
    slopes = {
        "x": Slope(first, (second, mul(rng, k, first)), (1.0,)),
        "y": Slope(mul(rng, k, second), (mul(rng, k, first), second), (k,)),
    }
    return Entry(("maximum", "x", u), _xy(-2.0, 2.0), slopes)


Maker = Callable[[random.Random], Entry]
ONE: tuple[Maker, ...] = (_sin, _exp, _log, _sqrt, _pow, _softplus)
CORNERS: tuple[Maker, ...] = (_abs, _relu, _clamp, _larger)
LEFT, RIGHT = _one_sided(-1), _one_sided(1)
TWO: tuple[Maker, ...] = (_product, _quotient, _length, _wave)
