"""Lab 4: the dtype that the operands of an operator meet in (PyTorch: ATen/native/TypeProperties.cpp)."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Operand = tuple[str, str]
"""(name of a dtype, "tensor" or "0-d tensor" or "number")."""

TENSOR, ZERO_DIM, NUMBER = "tensor", "0-d tensor", "number"
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("bfloat16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
NUMBERS = {"bool": True, "int64": 1, "float64": 1.0}
"""What Python's own numbers are; there are no others."""


def _true_result_type(operands: Sequence[Operand]) -> str:
    """Asks PyTorch: promote_types within a category, torch.result_type between one category and the next."""
    import torch

    of: dict[str, list[Any]] = {TENSOR: [], ZERO_DIM: [], NUMBER: []}
    for name, category in operands:
        of[category].append(NUMBERS[name] if category == NUMBER else getattr(torch, name))
    found: Any = None
    if of[NUMBER]:
        found = functools.reduce(torch.promote_types, [torch.result_type(n, n) for n in of[NUMBER]])
        # Only whether it is bool, integer or floating point can matter from here on.
        found = True if found == torch.bool else 1.0 if found.is_floating_point else 1
    for category, shape in ((ZERO_DIM, ()), (TENSOR, (2,))):
        if of[category]:
            dtype = functools.reduce(torch.promote_types, of[category])
            lower = torch.empty((), dtype=found, device="meta") if isinstance(found, torch.dtype) else found
            mine = torch.empty(shape, dtype=dtype, device="meta")
            found = dtype if lower is None else torch.result_type(mine, lower)
    if not isinstance(found, torch.dtype):
        found = torch.result_type(found, found)
    return str(found).removeprefix("torch.")


def _of(category: str, names: Sequence[str] = DTYPES) -> Callable[[random.Random], Operand]:
    return lambda rng: (rng.choice(names), category)


def _shuffled(*makers: Callable[[random.Random], Operand], more: bool = True) -> Draw:
    """One operand of each maker, with `more` some of them twice, in any order."""

    def draw(rng: random.Random) -> Case:
        chosen = [*makers, *(rng.choice(makers) for _ in range(rng.randint(0, 2) if more else 0))]
        rng.shuffle(chosen)
        return (tuple(make(rng) for make in chosen),)

    return draw


def _several(category: str, names: Sequence[str], least: int = 2, most: int = 4) -> Draw:
    def draw(rng: random.Random) -> Case:
        return (tuple((rng.choice(names), category) for _ in range(rng.randint(least, most))),)

    return draw


def _exactly(*names: str, category: str = TENSOR, more: int = 0) -> Draw:
    """These dtypes in any order, and `more` of them again."""

    def draw(rng: random.Random) -> Case:
        chosen = [*names, *(rng.choice(names) for _ in range(more))]
        rng.shuffle(chosen)
        return (tuple((name, category) for name in chosen),)

    return draw


_NUMBER = _of(NUMBER, tuple(NUMBERS))
_LOW = ("bool", *INTEGERS)

result_type = Task(
    id="lab4.result_type",
    title="The dtype that the operands meet in",
    function="result_type",
    points=15,
    minutes=25,
    difficulty=3,
    piece="result_type",
    oracle=_true_result_type,
    properties=(
        Property(
            "tensors with dimensions",
            weight=3,
            corners=(
                _exactly("uint8", "int8"),
                _exactly("uint8", "int32", more=1),
                _exactly("uint8", "int64", more=1),
                _exactly("uint8", "int8", "int16", more=1),
                _exactly("bfloat16", "float32", more=1),
                _exactly("int64", "bfloat16", more=1),
                _exactly("bool", "uint8", more=1),
            ),
            draws=(
                _several(TENSOR, INTEGERS),
                _several(TENSOR, FLOATS, 3),
                _several(TENSOR, DTYPES, 2),
                _several(TENSOR, ("uint8", "int8", "bool", "int16"), 2, 5),
            ),
            why="within a kind the wider dtype wins; a higher kind wins whatever its width",
            slip="uint8 with int8 needs int16, and int64 with bfloat16 is bfloat16",
            count=18,
        ),
        Property(
            "0-d tensors beside tensors with dimensions",
            weight=3,
            corners=(
                _shuffled(_of(TENSOR, ("float32", "bfloat16")), _of(ZERO_DIM, ("float64",))),
                _shuffled(_of(TENSOR, ("int8", "int16")), _of(ZERO_DIM, ("int64",))),
                _shuffled(_of(TENSOR, INTEGERS), _of(ZERO_DIM, ("float64", "bfloat16"))),
                _shuffled(_of(TENSOR, ("int8", "int16")), _of(ZERO_DIM, ("bfloat16",)), more=False),
                _shuffled(_of(TENSOR, ("bool",)), _of(ZERO_DIM, INTEGERS)),
            ),
            draws=(
                _shuffled(_of(TENSOR, _LOW), _of(ZERO_DIM, FLOATS)),
                _shuffled(_of(TENSOR), _of(ZERO_DIM)),
                _shuffled(_of(TENSOR, INTEGERS), _of(ZERO_DIM, INTEGERS)),
                _shuffled(_of(TENSOR, FLOATS), _of(ZERO_DIM, FLOATS)),
            ),
            why="a 0-d tensor is often a single number that came out of a sum; it should not widen a batch",
            slip="within a kind the tensors with dimensions decide alone; a higher kind of the 0-d one takes over",
            count=18,
        ),
        Property(
            "Python numbers beside tensors",
            weight=3,
            corners=(
                _shuffled(_of(TENSOR, INTEGERS), _of(NUMBER, ("float64",))),
                _shuffled(_of(TENSOR, ("bfloat16",)), _of(NUMBER, ("float64",))),
                _shuffled(_of(TENSOR, ("int8", "uint8")), _of(NUMBER, ("int64",))),
                _shuffled(_of(TENSOR, ("bool",)), _of(NUMBER, ("int64",))),
                _shuffled(_of(ZERO_DIM, ("int8", "int16")), _of(NUMBER, ("int64",))),
                _shuffled(_of(ZERO_DIM, ("bfloat16",)), _of(NUMBER, ("float64",))),
            ),
            draws=(
                _shuffled(_of(TENSOR), _NUMBER),
                _shuffled(_of(TENSOR, _LOW), _NUMBER),
                _shuffled(_of(TENSOR), _of(ZERO_DIM), _NUMBER),
                _shuffled(_of(ZERO_DIM), _NUMBER),
            ),
            why="x + 1 keeps the dtype of x, and int tensors times 0.5 are float32, not float64",
            slip="a float of Python's counts as the default dtype, float32, and only its kind counts beside tensors",
            count=18,
        ),
        Property(
            "no tensor with dimensions",
            weight=1,
            corners=(
                _several(NUMBER, tuple(NUMBERS), 4, 7),
                _several(NUMBER, ("bool", "int64"), 4, 7),
                _several(ZERO_DIM, DTYPES, 1, 3),
                _shuffled(_of(ZERO_DIM, ("float64",)), _of(NUMBER, ("float64",))),
                _shuffled(_of(ZERO_DIM, ("uint8", "bool")), _of(NUMBER, ("float64",))),
            ),
            draws=(
                _several(ZERO_DIM, DTYPES, 2, 4),
                _shuffled(_of(ZERO_DIM), _NUMBER),
                _shuffled(_of(ZERO_DIM, _LOW), _NUMBER),
            ),
            why="what is the lesser operand in one call is the greatest in another",
            slip="0-d tensors among themselves promote as tensors do, and decide over numbers as tensors do",
            count=16,
        ),
    ),
    hints=(
        "Solve it for one category first: of all the dtypes in it, which is the smallest that holds them all?",
        "Do that for each category. Then combine two of them: the higher one decides, "
        "unless the lower one is of a higher kind (bool, integer, floating point).",
        "Combine 0-d tensors with numbers first, then tensors with what came out. "
        "Turn a number's float64 into float32 before anything else.",
    ),
    read="notebook 04, 4. Station 7: shape and dtype",
)
