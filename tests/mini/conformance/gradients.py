"""Gradients: first and second ones of an entry's results, weighted by fixed numbers, in float64."""

from typing import Any

import numpy as np
import torch

from glassbox import mini
from glassbox.mini.autograd.python_engine import grad as mini_grad
from glassbox.mini.c10.tensor_impl import TensorImpl

from . import database
from .compare import flatten, is_tensor, largest, layout_problem, value_problem
from .database import Entry
from .ledger import Ledger
from .translate import Unsupported, for_mini, for_torch, leaves
from .variants import LAYOUTS, variant


def check(entry: Entry, most: int | None, full: bool, ledger: Ledger) -> None:
    """Gradients on at most so many samples; full: in every layout."""
    found = database.samples(entry.info, torch.float64, requires_grad=True)
    layouts = tuple(LAYOUTS)
    for nr, sample in enumerate(database.picked(found, most)):
        call = ((sample.input, *sample.args), sample.kwargs)
        try:
            for_mini(call)
        except Unsupported:
            # Counted with the same sample's other checks.
            continue
        for layout in ("plain", *layouts) if full else ("plain", layouts[nr % len(layouts)])[nr % 2 :]:
            _check_sample(entry, variant(call, layout), f"{layout} #{nr} {_shapes(call)}", ledger)


def _check_sample(entry: Entry, call: Any, where: str, ledger: Ledger) -> None:
    seeded = entry.info.name in database.RANDOM
    their_call, our_call = for_torch(call), for_mini(call)
    their_inputs = [t for t in leaves(their_call, torch.Tensor) if t.requires_grad]
    our_inputs = [t for t in leaves(our_call, TensorImpl) if t.requires_grad]
    if not their_inputs:
        return
    twice = entry.info.supports_gradgrad
    try:
        if seeded:
            torch.manual_seed(database.SEED)
        theirs = _gradients(entry.info.op(*their_call[0], **their_call[1]), their_inputs, torch_side, twice)
    except Exception as error:  # noqa: BLE001 - whatever PyTorch raises, mini must raise
        theirs = error
    try:
        if seeded:
            mini.manual_seed(database.SEED)
        ours = _gradients(entry.function(*our_call[0], **our_call[1]), our_inputs, mini_side, twice)
    except Exception as error:  # noqa: BLE001
        ours = error
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        alike = type(theirs).__name__ == type(ours).__name__
        problem = "" if alike else f"{_told(ours)} instead of {_told(theirs)}"
        ledger.note("gradgrad" if isinstance(ours, SecondFailed) else "grad", problem, where)
        return
    scale = max(1.0, largest(their_inputs))
    for kind, wanted, found in zip(("grad", "gradgrad"), theirs, ours, strict=True):
        if len(wanted) != len(found):
            ledger.note(kind, f"{len(found)} gradients instead of {len(wanted)}", where)
            continue
        for place, (t, m) in enumerate(zip(wanted, found, strict=True)):
            ledger.note(kind, _problem(t, m, scale), f"input {place}, {where}")


class SecondFailed(Exception):  # noqa: N818
    """The second backward pass raised."""


def _told(outcome: Any) -> str:
    if not isinstance(outcome, Exception):
        return "nothing raised"
    cause = outcome.__cause__ or outcome
    return f"{type(cause).__name__}({str(cause)[:200]})"


def _problem(expected: Any, actual: Any, scale: float) -> str:
    if expected is None or actual is None:
        return "" if expected is actual else f"{'None' if actual is None else 'a gradient'} instead of the other"
    # Strides of gradients are not compared: sums in another order leave them otherwise.
    problem = layout_problem(expected.detach(), actual.detach(), strides=False)
    return problem or value_problem(expected, actual, "sum", scale)


class torch_side:  # noqa: N801 - a namespace
    grad = staticmethod(torch.autograd.grad)

    @staticmethod
    def tensor(array: np.ndarray) -> Any:
        return torch.from_numpy(array)


class mini_side:  # noqa: N801 - a namespace
    grad = staticmethod(mini_grad)

    @staticmethod
    def tensor(array: np.ndarray) -> Any:
        return mini.from_numpy(array)


def _gradients(result: Any, inputs: list[Any], side: Any, twice: bool) -> tuple[list[Any], list[Any]]:
    """The first gradients of sum(result * numbers), and the second ones of a like sum of those."""
    outputs = [leaf for leaf in flatten(result) if is_tensor(leaf) and leaf.requires_grad]
    if not outputs:
        return [], []
    rng = np.random.default_rng(0)
    weights = [side.tensor(np.asarray(rng.uniform(0.5, 1.5, tuple(o.shape)))) for o in outputs]
    for weight in weights:
        weight.requires_grad_(twice)
    first = side.grad(outputs, inputs, weights, create_graph=twice, allow_unused=True)
    if not twice:
        return list(first), []
    differentiable = [g for g in first if g is not None and g.requires_grad]
    if not differentiable:
        return list(first), []
    again = [side.tensor(np.asarray(rng.uniform(0.5, 1.5, tuple(g.shape)))) for g in differentiable]
    try:
        second = side.grad(differentiable, [*inputs, *weights], again, allow_unused=True)
    except Exception as error:
        raise SecondFailed from error
    return list(first), list(second)


def _shapes(call: Any) -> str:
    shown = [f"{list(t.shape)}" for t in leaves(call, torch.Tensor)]
    return " ".join(shown) + f" {[a for a in call[0] if not isinstance(a, torch.Tensor)]} {call[1]}"[:80]
