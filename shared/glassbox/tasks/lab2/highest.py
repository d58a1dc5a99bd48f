"""Lab 2: which key of a set is the highest (PyTorch: c10/core/DispatchKeySet.h, highestPriorityTypeId)."""

from __future__ import annotations

import random

from ...mini.c10.dispatch_key import BACKENDS
from ..lab1.cases import always
from ..model import Case, Draw, Property, Task
from . import real
from .key_sets import BACKEND_MASK, FULL, PLACES, bit
from .real import NUM_BACKENDS


def _true_highest_functionality(key_set: int) -> int:
    # The functionality does not hang on the backends: with CPU alone PyTorch can name each.
    return _functionality_of(real.top_name(key_set & ~BACKEND_MASK | 1))


def _functionality_of(name: str) -> int:
    if name == "Undefined":
        return 0
    return next(place for place in PLACES if real.name_of((place, 1)) == name)


def _true_highest_backend(key_set: int) -> int:
    # With Dense as the only functionality the highest key is the highest backend's own.
    name = real.top_name(key_set & BACKEND_MASK | bit(1))
    return 0 if name == "Undefined" else BACKENDS.index(name) + 1


def _bits(functionalities: tuple[int, int], backends: tuple[int, int], top: int = PLACES[-1]) -> Draw:
    """Some functionality bits, at most `top`, and some backend bits."""

    def draw(rng: random.Random) -> Case:
        high = rng.sample(range(1, top + 1), min(top, rng.randint(*functionalities)))
        low = rng.sample(range(1, NUM_BACKENDS + 1), rng.randint(*backends))
        return (sum(map(bit, high)) + sum(1 << (place - 1) for place in low),)

    return draw


def _dense(rng: random.Random) -> Case:
    """All bits below one: where a logarithm with floats rounds up."""
    return ((1 << rng.randint(50, NUM_BACKENDS + PLACES[-1])) - 1 - rng.getrandbits(12),)


def _only_backends(rng: random.Random) -> Case:
    return (rng.randint(1, BACKEND_MASK),)


def _no_backend(rng: random.Random) -> Case:
    return (_bits((1, 5), (0, 0))(rng)[0],)


highest_functionality = Task(
    id="lab2.highest_functionality",
    title="The highest functionality",
    function="highest_functionality",
    points=3,
    minutes=6,
    difficulty=1,
    piece="highest_functionality",
    oracle=_true_highest_functionality,
    properties=(
        Property(
            "sets of a few keys",
            weight=2,
            corners=(_bits((1, 1), (1, 1)), _bits((2, 6), (2, 4))),
            draws=(_bits((1, 5), (1, 2)), _bits((2, 4), (1, 3), top=12)),
            why="the dispatcher goes to the highest bit, found with one count of leading zeros",
            slip="places are counted from 1, and the 16 backend bits below do not count",
        ),
        Property(
            "long sets",
            weight=1,
            corners=(_dense, always(FULL), _bits((30, 45), (16, 16))),
            draws=(_dense, _bits((10, 40), (1, 8))),
            why="a key set is a 64-bit number; a float holds 53 bits of it",
            slip="int.bit_length() is exact, math.log2 rounds",
        ),
        Property(
            "no functionality, no backend",
            weight=1,
            corners=(always(0), _only_backends, _no_backend),
            draws=(_no_backend, _only_backends, _no_backend),
            why="backend bits alone name no key: such a call finds no kernel",
            slip="0 where no functionality bit is set, whatever the backend bits are",
        ),
    ),
    hints=(
        "What is left of the number without its 16 lowest bits?",
        "The place of the highest bit, counted from 1, is how many binary digits the number has.",
        "(5).bit_length() is 3, (0).bit_length() is 0.",
    ),
    read="notebook 02, 3. Which key is the highest?",
)

highest_backend = Task(
    id="lab2.highest_backend",
    title="The highest backend",
    function="highest_backend",
    points=3,
    minutes=6,
    difficulty=1,
    piece="highest_backend",
    oracle=_true_highest_backend,
    properties=(
        Property(
            "sets of one backend",
            weight=1,
            corners=(_bits((1, 1), (1, 1)), _bits((3, 6), (1, 1))),
            draws=(_bits((1, 5), (1, 1)),),
            why="with the functionality it makes the pair that names a key such as AutogradCUDA",
            slip="places are counted from 1: backend 1 is bit 0",
        ),
        Property(
            "sets of several backends",
            weight=2,
            corners=(_bits((1, 3), (2, 2)), _bits((1, 3), (16, 16)), always(FULL)),
            draws=(_bits((1, 5), (2, 4)), _bits((1, 5), (2, 12))),
            why="arguments on two backends: a CPU scalar beside a CUDA tensor runs the CUDA kernel",
            slip="the highest of the low 16 bits, not the lowest, nor how many there are",
        ),
        Property(
            "no backend, no functionality",
            weight=1,
            corners=(always(0), _only_backends, _no_backend),
            draws=(_only_backends, _no_backend, _only_backends),
            why="a factory call has functionalities only, until BackendSelect adds the backend",
            slip="0 where no backend bit is set, whatever lies above",
        ),
    ),
    hints=(
        "What is left of the number when only its 16 lowest bits are kept?",
        "A mask of 16 ones is 0xFFFF, or (1 << 16) - 1.",
        "Then it is the same question as for the functionality.",
    ),
    read="notebook 02, 3. Which key is the highest?",
)
