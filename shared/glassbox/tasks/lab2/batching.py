"""Lab 2, extension: a batching rule for an operator that vmap does not know (PyTorch: torch.library.register_vmap)."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

CHOICES = ("error", "same", "different")


def _true_pick(
    batch_size: int, randomness: str, in_dim: int | None, shape: Sequence[int], count: int, numbers: Sequence[int]
) -> Any:
    """Runs torch.vmap over torch.take of a tensor in which each element is its own position."""
    import torch

    x = torch.arange(math.prod(shape)).view(tuple(shape))
    elements = math.prod(shape) // (1 if in_dim is None else batch_size)
    drawn = torch.tensor(numbers, dtype=torch.int64) % elements
    same = drawn[:count]
    different = drawn[: batch_size * count].view(batch_size, count)
    lanes = torch.zeros(batch_size)

    def one(x: Any, lane: Any, mine: Any) -> Any:
        if randomness == "error":
            return torch.take(x, torch.randint(0, elements, (count,)))
        return torch.take(x, same if randomness == "same" else mine)

    shared = in_dim is None and randomness == "same"
    # The lanes are there so that something is mapped where x is not.
    with warnings.catch_warnings():
        # PyTorch has no rule for take and goes through the examples one by one, which is all that is wanted here.
        warnings.simplefilter("ignore")
        picked = torch.vmap(one, in_dims=(in_dim, 0, 0), randomness=randomness)(x, lanes, different)
    if shared:
        return (count,), None, tuple(picked[0].tolist())
    return tuple(picked.shape), 0, tuple(picked.flatten().tolist())


def _numbers(rng: random.Random, count: int, most: int = 10**6) -> tuple[int, ...]:
    return tuple(rng.randrange(most) for _ in range(count))


def _pick(
    randomness: Sequence[str], dims: str, ndim: tuple[int, int] = (1, 3), more: bool = False, count: int | None = None
) -> Draw:
    """A call under vmap. dims: where the batch dimension is: "first", "last", "between", "none", "any"."""

    def draw(rng: random.Random) -> Case:
        batch = rng.randint(2, 5)
        own = [rng.randint(2, 5) for _ in range(rng.randint(*ndim))]
        if dims == "scalar":
            own = []
        at: int | None = {
            "first": 0,
            "last": len(own),
            "between": rng.randint(1, max(1, len(own) - 1)),
            "none": None,
            "scalar": 0,
            "any": rng.choice([None, *range(len(own) + 1)]),
        }[dims]
        shape = tuple(own) if at is None else (*own[:at], batch, *own[at:])
        picks = rng.randint(1, 5) if count is None else count
        given = batch * picks + (rng.randint(1, 4) if more else 0)
        return batch, rng.choice(randomness), at, shape, picks, _numbers(rng, given)

    return draw


pick_rule = Task(
    id="lab2.pick_rule",
    title="A random operator under vmap",
    function="pick_rule",
    points=12,
    minutes=30,
    difficulty=4,
    oracle=_true_pick,
    properties=(
        Property(
            "the batch comes first",
            weight=2,
            corners=(
                _pick(("same",), "first"),
                _pick(("different",), "first"),
                _pick(("different",), "scalar"),
                _pick(("same",), "first", count=1),
            ),
            draws=(_pick(("same",), "first"), _pick(("different",), "first")),
            why="one call for all examples: each one's elements begin where the one before ends",
            slip="`numbers` are taken modulo the elements of one example, not of all of them",
        ),
        Property(
            "the batch lies elsewhere",
            weight=3,
            corners=(
                _pick(("same",), "last"),
                _pick(("different",), "between", (2, 3)),
                _pick(("different",), "last", (2, 3)),
                _pick(("same",), "between", (3, 3)),
            ),
            draws=(
                _pick(("same", "different"), "last"),
                _pick(("same", "different"), "between", (2, 3)),
            ),
            why="vmap moves nothing: a rule gets x as it lies, and in_dims says where the examples are",
            slip="what lies behind the batch dimension runs fastest, so a position splits into a part before and a "
            "part behind it",
        ),
        Property(
            "the same or different elements, of a tensor that is not mapped",
            weight=2,
            corners=(
                _pick(("same",), "none"),
                _pick(("different",), "none"),
                _pick(("same",), "none", count=1),
                _pick(("different",), "none", count=1),
                _pick(("same",), "any", more=True),
            ),
            draws=(
                _pick(("same",), "none", more=True),
                _pick(("different",), "none", more=True),
                _pick(("same", "different"), "any", more=True),
            ),
            why="what is the same for all examples is computed once, and says so by out_dim None",
            slip="out_dim is None only where neither x nor the numbers differ; different draws always have a batch",
        ),
        Property(
            "randomness that was not decided on",
            weight=1,
            corners=(_pick(("error",), "first"), _pick(("error",), "none"), _pick(("error",), "last")),
            draws=(_pick(("same", "different"), "any"), _pick(("same", "different"), "any", more=True)),
            why="vmap cannot know whether ten examples should get ten draws or one, so it asks",
            slip="RuntimeError for 'error', also where x is not mapped; the other two always have an answer",
        ),
    ),
    hints=(
        "First without a batch: position i of the result is element numbers[i] % n of x in order.",
        "With the batch in front, example b begins at b * n. Elsewhere: inner = the product of the sizes behind it; "
        "element e of an example is (e // inner, e % inner), what lies before and behind.",
        "Its position in x is (e // inner * batch_size + b) * inner + e % inner. in_dim 0 is a case of it.",
    ),
    read="notebook 02, 9. Operators of one's own, also under vmap",
)
