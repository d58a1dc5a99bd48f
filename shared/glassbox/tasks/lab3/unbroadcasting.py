"""Lab 3: the dimensions that a gradient is summed over (PyTorch: sum_to in ATen/ExpandUtils.h)."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

from ..lab1.cases import always
from ..model import Case, Draw, Property, Task

Ints = tuple[int, ...]


@functools.cache
def _log_of_sums() -> Any:
    """A mode that notes which dimensions PyTorch sums over."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class LogOfSums(TorchDispatchMode):
        dims: list[Any]

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket.__name__ == "sum":
                self.dims.extend(args[1] if len(args) > 1 else range(args[0].dim()))
            return func(*args, **(kwargs or {}))

    return LogOfSums


def _true_unbroadcast(shape: Sequence[int], grad_shape: Sequence[int]) -> Any:
    import torch

    grad, log = torch.empty(grad_shape, device="meta"), _log_of_sums()()
    log.dims = []
    try:
        with log:
            grad.sum_to_size(shape)
    except RuntimeError:
        return None
    return log.dims


def _sizes(rng: random.Random, ndim: int) -> Ints:
    return tuple(rng.randint(2, 19) for _ in range(ndim))


def _narrowed(rng: random.Random, grad_shape: Ints, share: float) -> Ints:
    """A shape that stretches to this one: each dimension is 1 with the probability `share`."""
    return tuple(1 if rng.random() < share else n for n in grad_shape)


def _stretched(least: int = 1, share: float = 0.5) -> Draw:
    def draw(rng: random.Random) -> Case:
        grad_shape = _sizes(rng, rng.randint(least, 5))
        return _narrowed(rng, grad_shape, share), grad_shape

    return draw


def _lacking(share: float = 0.0) -> Draw:
    """The shape lacks dimensions on the left, and has some ones beside."""

    def draw(rng: random.Random) -> Case:
        grad_shape = _sizes(rng, rng.randint(2, 5))
        return _narrowed(rng, grad_shape, share)[rng.randint(1, len(grad_shape) - 1) :], grad_shape

    return draw


def _a_scalar(rng: random.Random) -> Case:
    return (), _sizes(rng, rng.randint(1, 4))


def _ones_there_already(rng: random.Random) -> Case:
    """The gradient has sizes of 1 itself: where the shape has one, too, and where it has nothing."""
    grad_shape = tuple(rng.choice((1, rng.randint(2, 19))) for _ in range(rng.randint(2, 5)))
    at = rng.randrange(len(grad_shape))
    grad_shape = (*grad_shape[:at], 1, *grad_shape[at + 1 :])
    return _narrowed(rng, grad_shape, 0.3)[rng.randint(0, len(grad_shape) - 1) :], grad_shape


def _empty(rng: random.Random) -> Case:
    """A size of 0 in the gradient; the shape has 1 there, or 0, or nothing."""
    grad_shape = list(_sizes(rng, rng.randint(1, 4)))
    grad_shape[rng.randrange(len(grad_shape))] = 0
    return _narrowed(rng, tuple(grad_shape), 0.5)[rng.randint(0, 1) :], tuple(grad_shape)


def _unfit(kind: str) -> Draw:
    """The shape cannot have been broadcast to that of the gradient."""

    def draw(rng: random.Random) -> Case:
        grad_shape = _sizes(rng, rng.randint(2, 4))
        shape = _narrowed(rng, grad_shape, 0.3)
        at = rng.randrange(len(shape))
        if kind == "longer":
            return (rng.choice((1, rng.randint(2, 9))), *shape), grad_shape
        if kind == "wider":
            return (*shape[:at], grad_shape[at], *shape[at + 1 :]), (*grad_shape[:at], 1, *grad_shape[at + 1 :])
        if kind == "multiple":
            size = grad_shape[at]
            grad_shape = (*grad_shape[:at], size * rng.randint(2, 3), *grad_shape[at + 1 :])
        else:
            size = 0 if kind == "empty" else grad_shape[at] + rng.randint(1, 4)
        return (*shape[:at], size, *shape[at + 1 :]), grad_shape

    return draw


def _from_the_left(rng: random.Random) -> Case:
    """Shapes that would fit if they were matched from the left."""
    first, last = rng.sample(range(2, 15), 2)
    return (first,), (first, *_sizes(rng, rng.randint(0, 2)), last)


unbroadcast = Task(
    id="lab3.unbroadcast",
    title="What broadcasting repeated",
    function="unbroadcast",
    points=6,
    minutes=10,
    difficulty=1,
    piece="unbroadcast",
    oracle=_true_unbroadcast,
    canon=lambda case, value: None if value is None else sorted(value),
    properties=(
        Property(
            "sizes of 1 that were stretched",
            weight=2,
            corners=(_stretched(share=0.0), _stretched(2, share=1.0), _stretched(3)),
            draws=(_stretched(), _stretched(2)),
            why="one number was used many times, so its gradient is the sum over all the uses",
            slip="only a 1 in the shape where the gradient has another size was stretched",
        ),
        Property(
            "dimensions that the shape lacks",
            weight=2,
            corners=(always((), ()), _lacking(), _lacking(0.5), _a_scalar),
            draws=(_lacking(), _lacking(0.4), _a_scalar, _lacking(0.8)),
            why="a bias of shape (C,) is added to every row: its gradient is the sum over the rows",
            slip="shapes are matched from the right; what the shape lacks on the left is summed over",
        ),
        Property(
            "sizes of 1 and 0 in the gradient",
            weight=1,
            corners=(always((1,), (0,)), always((1,), (1, 1)), _ones_there_already, _ones_there_already, _empty),
            draws=(_ones_there_already, _empty, _ones_there_already),
            why="a batch of one example, or of none, goes through backward like any other",
            slip="1 and 1 is no stretch, 1 and 0 is one; a leading size of 1 is still a dimension too many",
        ),
        Property(
            "shapes that do not fit, and those next to them",
            weight=2,
            corners=(*(_unfit(kind) for kind in ("longer", "wider", "empty", "multiple", "other")), _from_the_left),
            draws=(_stretched(), _unfit("other"), _lacking(0.4), _unfit("wider"), _ones_there_already),
            why="a derivative with a bug gives a gradient of another shape: the engine must refuse it, not bend it",
            slip="broadcasting goes one way: the gradient may have more than the shape, never less",
            count=20,
        ),
    ),
    hints=(
        "Line the shapes up at their right ends. How many dimensions has the gradient too many?",
        "Those come first; then go through the others pair by pair: equal, 1 against something else, or no fit.",
        "lead = len(grad_shape) - len(shape) dimensions are missing; dimension d of the shape is d + lead of the "
        "gradient.",
    ),
    read="notebook 03, 3. Broadcasting, backwards",
)
