"""Random programs of views, writes and arithmetic with a backward pass at the end: the same in mini and in PyTorch.

A program is a list of steps over a pool of tensors. After every step the new or changed tensor is compared: shape,
strides, values, version, whether it requires grad, its node; a step that raises must raise the same type in both. At
the end come the gradients of all leaves, and those of their squared sum.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassbox import mini
from glassbox.mini.c10.layout import has_overlap

from .both import alike, array, facts, name_of

Step = tuple[str, int, int, int, int]

UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": lambda t: t.tanh(),
    "sigmoid": lambda t: t.sigmoid(),
    "relu": lambda t: t.relu(),
    "neg": lambda t: -t,
    "abs": lambda t: t.abs(),
    "exp": lambda t: (t * 0.1).exp(),
    "square": lambda t: t * t,
    "pow": lambda t: t.pow(3) * 0.1,
    "clone": lambda t: t.clone(),
    "detach": lambda t: t.detach(),
    "sum": lambda t: t.sum(),
    "mean": lambda t: t.mean(),
    "contiguous": lambda t: t.contiguous(),
    "to": lambda t: t.float(),
    "log_softmax": lambda t: t.log_softmax(-1),
    "logsumexp": lambda t: t.logsumexp(0),
    "amax": lambda t: t.amax(0),
    "cumsum": lambda t: t.cumsum(0),
    "flip": lambda t: t.flip(0),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1),
    "matmul": lambda a, b: (a @ b).tanh(),
}
VIEWS: dict[str, Callable[[Any, int, int], Any]] = {
    "select": lambda t, i, j: t.select(i % max(t.dim(), 1), j % 3),
    "slice": lambda t, i, j: t[i % 3 : j % 5],
    "step": lambda t, i, j: t[..., :: 1 + i % 2],
    "index": lambda t, i, j: t[i % 2],
    "transpose": lambda t, i, j: t.transpose(0, i % max(t.dim(), 1)),
    "view": lambda t, i, j: t.view(-1) if i % 2 else t.view(t.shape[::-1]),
    "reshape": lambda t, i, j: t.reshape(-1) if i % 2 else t.reshape(t.shape[::-1]),
    "expand": lambda t, i, j: t.expand(2, *t.shape),
    "unsqueeze": lambda t, i, j: t.unsqueeze(i % (t.dim() + 1)),
    "squeeze": lambda t, i, j: t.squeeze(),
    "narrow": lambda t, i, j: t.narrow(0, i % 2, 1 + j % 2),
    "split": lambda t, i, j: t.split(2)[i % 2],
    "chunk": lambda t, i, j: t.chunk(2, -1)[j % 2],
    "unbind": lambda t, i, j: t.unbind(0)[i % 2],
    "strided": lambda t, i, j: t.as_strided((2, 2), (1 + i % 2, 1), j % 3),
    "pick": lambda t, i, j: t[[i % 2, j % 2]],
}
WRITES: dict[str, Callable[[Any, Any, int], Any]] = {
    "add_": lambda t, o, i: t.add_(o),
    "mul_": lambda t, o, i: t.mul_(o),
    "sub_": lambda t, o, i: t.sub_(o, alpha=2),
    "copy_": lambda t, o, i: t.copy_(o),
    "scale_": lambda t, o, i: t.mul_(0.5),
    "plus_": lambda t, o, i: t.add_(1),
    "zero_": lambda t, o, i: t.zero_(),
    "fill_": lambda t, o, i: t.fill_(0.5),
    "fill_with_": lambda t, o, i: t.fill_(o.sum()),
    "relu_": lambda t, o, i: t.relu_(),
    "tanh_": lambda t, o, i: t.tanh_(),
    "sigmoid_": lambda t, o, i: t.sigmoid_(),
    "pow_": lambda t, o, i: t.pow_(2),
    "clamp_": lambda t, o, i: t.clamp_(-0.5, 0.5),
    "masked_fill_": lambda t, o, i: t.masked_fill_(t.detach() > 0.3, 0.25),
    "set": lambda t, o, i: t.__setitem__(i % 2, o),
    "set_slice": lambda t, o, i: t.__setitem__(slice(i % 2, None), 0.75),
    "set_picked": lambda t, o, i: t.__setitem__([-1], o),
    "data": lambda t, o, i: t.data.add_(0.125),
    "detached": lambda t, o, i: t.detach().add_(0.125),
    "requires_grad_": lambda t, o, i: t.requires_grad_(bool(i % 3)),
    "retain_grad": lambda t, o, i: t.retain_grad(),
}
STEPS = [*UNARY, *BINARY, *VIEWS, *VIEWS, *WRITES, *WRITES]
SHAPES = ((2, 3), (3,), (2, 2), (4,))


def overlaps(tensor: Any) -> bool:
    """Whether elements share places in a way that is not refused: what a write leaves there depends on its order."""
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    return 0 not in [step for step, n in zip(stride, shape, strict=True) if n > 1] and has_overlap(shape, stride)


def one_step(m: Any, pool: list[Any], step: Step) -> Any:
    """Runs a step; returns the tensor to look at afterwards, which goes into the pool where it is new."""
    name, first, second, i, j = step
    a, b = pool[first % len(pool)], pool[second % len(pool)]

    def run() -> Any:
        if name in UNARY:
            return UNARY[name](a)
        if name in BINARY:
            return BINARY[name](a, b)
        if name in VIEWS:
            return VIEWS[name](a, i, j)
        if overlaps(a):
            return a
        # What overlaps in part is read and written in an order that nobody promises.
        shared = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        other = b.clone() if shared and (a is not b or name.startswith("set")) else b
        WRITES[name](a, other, i)
        return a

    if j % 5 == 0:
        with m.no_grad():
            result = run()
    else:
        result = run()
    if all(result is not each for each in pool):
        pool.append(result)
    return result


def look(tensor: Any) -> Any:
    """What is compared of a tensor."""
    try:
        node = name_of(tensor.grad_fn) if tensor.grad_fn is not None else None
    except RuntimeError:
        node = "refused"
    return facts(tensor), tensor.requires_grad, node, tensor._version, tensor._is_view()


def trace(m: Any, steps: list[Step], flags: int) -> list[Any]:
    """Everything that a program lets be seen."""
    rng = np.random.default_rng(flags)
    leaves = []
    for nr, shape in enumerate(SHAPES):
        values = rng.uniform(-1, 1, shape).tolist()
        leaves.append(m.tensor(values, dtype=m.float64, requires_grad=bool(flags >> nr & 1)))
    pool = list(leaves)
    pool.append(leaves[0] * 1)
    seen: list[Any] = []
    for step in steps:
        try:
            seen.append((step, look(one_step(m, pool, step))))
        except Exception as problem:  # noqa: BLE001 - its type is what is compared
            seen.append((step, type(problem).__name__))
    seen.extend(look(each) for each in pool)

    def loss() -> Any:
        total = m.zeros((), dtype=m.float64)
        for nr, each in enumerate(pool):
            total = total + (each.double() * (1 + 0.1 * nr)).sum()
        return total

    wanted = [each for each in leaves if each.requires_grad and each.is_leaf]
    try:
        found = m.autograd.grad(loss(), wanted, create_graph=True, allow_unused=True)
        seen.append([None if each is None else facts(each) for each in found])
        squares = [(each * each).sum() for each in found if each is not None and each.requires_grad]
        if squares:
            again = m.autograd.grad(sum(squares[1:], squares[0]), wanted, allow_unused=True)
            # Behind a saved tensor's back, what is divided by may be 0, and what that makes is nobody's promise.
            tampered = any(step[0] == "data" for step in steps)
            seen.append([None if each is None or tampered else array(each) for each in again])
    except Exception as problem:  # noqa: BLE001
        seen.append(type(problem).__name__)
    try:
        loss().backward()
    except Exception as problem:  # noqa: BLE001
        seen.append(type(problem).__name__)
    seen.extend(None if each.grad is None else facts(each.grad) for each in leaves)
    return seen


def check(steps: list[Step], flags: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = trace(mini, steps, flags), trace(torch, steps, flags)
    for left, right in zip(ours, theirs, strict=True):
        assert alike(tuple_of(left), tuple_of(right)), f"\nmini:  {left}\ntorch: {right}"


def tuple_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(tuple_of(each) for each in value) if isinstance(value, list | tuple) else value


numbers = st.integers(0, 19)
step = st.tuples(st.sampled_from(STEPS), numbers, numbers, numbers, numbers)


@settings(max_examples=settings.default.max_examples * 5)
@given(st.lists(step, min_size=1, max_size=12), st.integers(0, 15))
def test_random_programs(steps: list[Step], flags: int) -> None:
    check(steps, flags)


def test_programs_do_what_they_are_for() -> None:
    """Enough of the programs get somewhere: most steps run, and most programs have gradients."""
    rng = np.random.default_rng(0)
    ran = failed = with_grad = 0
    for _ in range(60):
        steps = [(STEPS[rng.integers(len(STEPS))], *(int(each) for each in rng.integers(0, 20, 4))) for _ in range(10)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = trace(mini, steps, 15)  # type: ignore[arg-type]
        outcomes = [isinstance(each[1], str) for each in seen[: len(steps)]]
        failed += sum(outcomes)
        ran += len(outcomes) - sum(outcomes)
        with_grad += seen[-1] is not None
    assert ran > 1.5 * failed
    assert with_grad > 20
