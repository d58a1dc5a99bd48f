"""Lab 4, extension: a cost model from a ledger of measurements (PyTorch: torch/utils/benchmark).

Which line a ledger lies on is not worked out here: a line is verified by how many measurements it passes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Ledger = tuple[tuple[int, float], ...]
"""(elements, microseconds) of each measurement."""

ROUNDING = 1e-6


def _needed(ledger: Sequence[Any]) -> int:
    """How many measurements a right line passes: two thirds of them."""
    return math.ceil(2 * len(ledger) / 3)


def _asked(ledger: Ledger, noise: float) -> str:
    return f"a line within {2 * noise:g} us of {_needed(ledger)} of the {len(ledger)} measurements, and its crossing"


def _wrong_with(case: Case, answer: Any) -> str:
    """What is wrong with (overhead, per element, crossing); "" where nothing is."""
    ledger, noise = case
    overhead, each, crossing = answer
    if type(overhead) is not float or type(each) is not float or type(crossing) is not int:
        return "a float, a float and an int are asked for"
    passed = sum(abs(us - overhead - n * each) <= 2 * noise + ROUNDING for n, us in ledger)
    if passed < _needed(ledger):
        return f"only {passed} of the {len(ledger)} measurements lie within {2 * noise:g} us of this line"
    # Where the two are equal up to rounding, either neighbour will do.
    if each <= 0 or not overhead / each - ROUNDING * crossing <= crossing <= overhead / each + 1 + ROUNDING * crossing:
        return f"{crossing} is not the first size at which the elements cost at least as much as the overhead"
    return ""


def _ledger(
    noise: tuple[float, float],
    disturbed: float = 0.0,
    where: str = "anywhere",
    repeats: int = 1,
    small: float = 0.4,
) -> Draw:
    """Ledgers with noise of up to so many microseconds, of which a share is disturbed: too long by any amount.

    `where` the disturbed ones lie: anywhere, or at the smallest or largest sizes. `small`: the share of sizes
    that are below the crossing.
    """

    def draw(rng: random.Random) -> Case:
        overhead, each = rng.randint(15, 120) / 10, rng.randint(20, 99) / 10 ** rng.randint(4, 6)
        bound = round(rng.uniform(*noise), 3)
        crossing = overhead / each
        count = rng.randint(6, 9) if repeats > 1 else rng.randint(12, 18)
        few = max(2, round(count * small))
        exponents = [rng.uniform(-2.5, 0) for _ in range(few)] + [rng.uniform(0.3, 1.4) for _ in range(count - few)]
        sizes = sorted({max(1, round(crossing * 10**power)) for power in exponents} | {round(30 * crossing)})
        sizes = sorted(sizes * repeats)
        times = [overhead + n * each + rng.uniform(-0.95, 0.95) * bound for n in sizes]
        wrong = _disturbed(rng, len(sizes), disturbed, where)
        for at in wrong:
            times[at] += rng.choice((1, 3, 10)) * overhead * rng.uniform(0.5, 2) + 20 * bound
        ledger = [(n, round(us, 4)) for n, us in zip(sizes, times, strict=True)]
        rng.shuffle(ledger)
        return tuple(ledger), bound

    return draw


def _disturbed(rng: random.Random, count: int, share: float, where: str) -> list[int]:
    """The places of the disturbed measurements: never more than a third."""
    number = min(round(count * share), count - math.ceil(2 * count / 3))
    if where == "largest":
        return list(range(count - number, count))
    if where == "smallest":
        return list(range(number))
    return rng.sample(range(count), number)


_CLEAN, _NOISY = (0.001, 0.004), (0.05, 0.3)

fit_cost = Task(
    id="lab4.fit_cost",
    title="What a call costs, and what an element costs",
    function="fit_cost",
    points=11,
    minutes=30,
    difficulty=4,
    oracle=_asked,
    verify=_wrong_with,
    seconds=4.0,
    properties=(
        Property(
            "clean measurements",
            weight=1,
            corners=(_ledger(_CLEAN), _ledger(_CLEAN, small=0.6), _ledger(_CLEAN, small=0.2)),
            draws=(_ledger(_CLEAN), _ledger(_CLEAN, repeats=2)),
            why="two numbers describe every pointwise op: what a call costs and what an element costs",
            slip="the slope comes from measurements far apart; the overhead is what is left at no elements",
            count=10,
        ),
        Property(
            "measurements with noise, some sizes more than once",
            weight=2,
            corners=(_ledger(_NOISY), _ledger(_NOISY, repeats=2), _ledger(_NOISY, repeats=3)),
            draws=(_ledger(_NOISY), _ledger(_NOISY, repeats=2), _ledger(_NOISY, small=0.6)),
            why="a clock ticks, a cache is warm or cold: no two runs take equally long",
            slip="two measurements of one size give no slope; two sizes close together give a wild one",
            count=12,
        ),
        Property(
            "up to a third of the measurements disturbed",
            weight=3,
            corners=(
                _ledger(_NOISY, 0.34),
                _ledger(_NOISY, 0.34, repeats=2),
                _ledger(_CLEAN, 0.34),
                _ledger(_NOISY, 0.15),
            ),
            draws=(_ledger(_NOISY, 0.34), _ledger(_NOISY, 0.25), _ledger(_NOISY, 0.34, repeats=2)),
            why="another process, a page fault, the garbage collector: on a real machine there is always something",
            slip="least squares follows what is far off; count instead how many measurements a line passes",
            count=12,
        ),
        Property(
            "disturbed at the smallest or the largest sizes",
            weight=2,
            corners=(
                _ledger(_NOISY, 0.2, "largest"),
                _ledger(_NOISY, 0.2, "smallest"),
                _ledger(_NOISY, 0.34, "largest"),
                _ledger(_NOISY, 0.34, "smallest"),
            ),
            draws=(_ledger(_NOISY, 0.34, "largest"), _ledger(_NOISY, 0.34, "smallest"), _ledger(_NOISY, 0.34)),
            why="the first call warms everything up, the largest one no longer fits into the cache",
            slip="no measurement is safe: neither the smallest, nor the largest, nor the one in the middle",
            count=12,
        ),
    ),
    hints=(
        "A line through two undisturbed measurements far apart is close to the true one. Which two are undisturbed?",
        "Nobody says; but a wrong line passes few measurements. Try the line through every pair of sizes.",
        "For each line count the measurements within 2 * noise; the line that passes the most is right. "
        "The crossing is overhead / per_element rounded up.",
    ),
    read="notebook 04, 9. What a call costs",
)
