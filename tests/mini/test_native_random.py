"""A seed gives PyTorch's own random numbers, in the same order, whatever is asked for in between."""

import itertools
import threading
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.native import random_ops
from glassbox.mini.c10.dtype import by_name
from glassbox.mini.c10.generator import DEFAULT_SEED, Generator, default_generator

FLOATS = (torch.float32, torch.float64, torch.bfloat16)
ALL = (*FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
SEEDS = (0, 42, 12345678901, -1, 2**64 - 1)
SHAPES = ((), (1,), (5,), (15,), (16,), (17,), (3, 11), (100,), (0, 3), (1000,))


def empty(dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...] | None = None) -> Any:
    found = by_name(str(dtype).split(".")[1])
    return mini.Tensor.allocate(shape, stride or torch.empty(shape).stride(), found, mini.device("cpu"))


def pair(seed: int) -> tuple[Generator, torch.Generator]:
    return Generator().manual_seed(seed), torch.Generator().manual_seed(seed)


def same(ours: Any, theirs: torch.Tensor, ulps: int = 0) -> None:
    expected = theirs.double().numpy()
    values = ours.values().astype(np.float64)
    assert ours._stride == theirs.stride()
    if ulps == 0:
        np.testing.assert_array_equal(values, expected)
    else:
        digits = {torch.float32: 24, torch.float64: 53, torch.bfloat16: 8}[theirs.dtype]
        np.testing.assert_allclose(values, expected, ulps * 2.0**-digits, ulps * 2.0**-digits)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers(seed: int, dtype: torch.dtype) -> None:
    ours, theirs = pair(seed)
    for shape, bounds in itertools.product(SHAPES, ((0, 1), (-2, 3), (0.1, 0.2), (5, 5))):
        target = torch.empty(shape, dtype=dtype)
        # For float64 bounds, PyTorch's processor multiplies and adds with one rounding, NumPy with two.
        ulps = 2 if dtype is torch.float64 and bounds != (0, 1) else 0
        mine = random_ops.uniform_(0, empty(dtype, shape), *bounds, ours)
        same(mine, target.uniform_(*bounds, generator=theirs), ulps)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_normal_numbers(seed: int, dtype: torch.dtype) -> None:
    # Logarithms, sines and cosines are other libraries'; the bits behind them are the same.
    ours, theirs = pair(seed)
    for shape, (mean, std) in itertools.product(SHAPES, ((0, 1), (2, 0.5), (0, 0))):
        target = torch.empty(shape, dtype=dtype)
        same(
            random_ops.normal_(0, empty(dtype, shape), mean, std, ours),
            target.normal_(mean, std, generator=theirs),
            8,
        )


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_whole_numbers(dtype: torch.dtype) -> None:
    ours, theirs = pair(7)
    spans: list[tuple[int, int | None]] = [(0, 2), (0, 10), (3, 100), (-5, 5), (0, 2**28 - 1), (0, 2**28)]
    spans += [(0, 2**40), (-(2**62), 2**62), (5, 3), (0, 300), (1, None), (-3, None)]
    whole = {torch.float32: 2**24, torch.float64: 2**53, torch.bfloat16: 2**8}.get(dtype, 2**63)
    for (low, high), shape in itertools.product(spans, ((9,), (3, 4))):
        if not -whole <= low < (high or 0) <= whole:
            continue  # beyond what the dtype can tell apart PyTorch warns and moves the bounds
        target = torch.empty(shape, dtype=dtype)
        try:
            target.random_(low, high, generator=theirs)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                random_ops.random_from(0, empty(dtype, shape), low, high, ours)
            continue
        same(random_ops.random_from(0, empty(dtype, shape), low, high, ours), target)
    target = torch.empty(9, dtype=dtype)
    same(random_ops.random_(0, empty(dtype, (9,)), ours), target.random_(generator=theirs))
    same(random_ops.random_to(0, empty(dtype, (9,)), 2, ours), target.random_(2, generator=theirs))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_bernoulli(dtype: torch.dtype) -> None:
    ours, theirs = pair(3)
    for shape, p in itertools.product(SHAPES, (0.5, 0.1, 0, 1)):
        target = torch.empty(shape, dtype=dtype)
        same(
            random_ops.bernoulli_float(0, empty(dtype, shape), p, ours),
            target.bernoulli_(p, generator=theirs),
        )
    for chance, shape in itertools.product(FLOATS, ((3, 4), (17,))):
        p = torch.rand(shape, generator=torch.Generator().manual_seed(1)).to(chance)
        mine = empty(chance, shape)
        mine.strided_array()[...] = (
            p.view(torch.int16).numpy().view(np.uint16) if chance is torch.bfloat16 else p
        )
        target = torch.empty(shape, dtype=dtype)
        same(
            random_ops.bernoulli_tensor(0, empty(dtype, shape), mine, ours),
            target.bernoulli_(p, generator=theirs),
        )


def test_permutations() -> None:
    ours, theirs = pair(11)
    for n, dtype in itertools.product((0, 1, 2, 10, 1000), (torch.int64, torch.int32, torch.float32)):
        mine = random_ops.randperm_generator(0, n, ours, by_name(str(dtype).split(".")[1]), None)
        same(mine, torch.randperm(n, dtype=dtype, generator=theirs))
    assert random_ops.randperm_generator(0, 3, ours, "long", None)._dtype is mini.int64
    for n, dtype in ((-1, mini.int64), (300, mini.uint8)):
        with pytest.raises(RuntimeError):
            random_ops.randperm_generator(0, n, ours, dtype, None)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layouts_are_filled_in_the_order_of_memory(dtype: torch.dtype) -> None:
    ours, theirs = pair(5)
    for shape, stride in (
        ((4, 5), (1, 4)),
        ((3, 4, 5), (1, 3, 12)),
        ((3, 4), (8, 2)),
        ((2, 3, 4), (4, 8, 1)),
    ):
        for name, args in (("uniform_", (0, 1)), ("normal_", (0, 1)), ("bernoulli_float", (0.5,))):
            target = torch.empty_strided(shape, stride, dtype=dtype)
            getattr(target, name.replace("_float", "_"))(*args, generator=theirs)
            same(getattr(random_ops, name)(0, empty(dtype, shape, stride), *args, ours), target, 8)


def test_a_mixed_program_keeps_in_step() -> None:
    ours, theirs = pair(2)
    steps: list[tuple[str, tuple[Any, ...]]] = [
        ("normal_", (0, 1)),
        ("uniform_", (0, 1)),
        ("random_from", (0, 9)),
    ]
    for nr in range(60):
        name, args = steps[nr * nr % 3]
        dtype, shape = FLOATS[nr % 2], (1 + nr * 7 % 23,)
        target = torch.empty(shape, dtype=dtype)
        getattr(target, name.replace("random_from", "random_"))(*args, generator=theirs)
        same(getattr(random_ops, name)(0, empty(dtype, shape), *args, ours), target, 8)


def test_the_state_is_pytorchs_own_format() -> None:
    ours, theirs = pair(9)
    for draws in (0, 3, 620, 5, 1300):
        random_ops.normal_(0, empty(torch.float64, (draws % 16,)), 0, 1, ours)
        torch.empty(draws % 16, dtype=torch.float64).normal_(generator=theirs)
        random_ops.uniform_(0, empty(torch.float32, (draws,)), 0, 1, ours)
        torch.empty(draws).uniform_(generator=theirs)
        # Each goes on from the other's state.
        crossed = Generator().set_state(
            mini.Tensor.adopt(theirs.get_state().numpy().copy(), mini.uint8, mini.device("cpu"))
        )
        other = torch.Generator().set_state(torch.from_numpy(ours.get_state().values().copy()))
        target = torch.empty(700, dtype=torch.float64)
        for generator, partner in ((crossed, other), (ours, theirs)):
            ulps = random_ops.normal_(0, empty(torch.float64, (3,)), 0, 1, generator)
            same(ulps, target[:3].clone().normal_(generator=partner), 8)
            same(
                random_ops.uniform_(0, empty(torch.float64, (700,)), 0, 1, generator),
                target.uniform_(generator=partner),
            )
    assert crossed.initial_seed() == 9


def test_seeds_and_states_that_are_refused() -> None:
    generator = Generator()
    assert generator.initial_seed() == torch.Generator().initial_seed() == DEFAULT_SEED
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed()
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            generator.manual_seed(seed)
    with pytest.raises(TypeError, match="uint8"):
        generator.set_state(empty(torch.float32, (5056,)))
    with pytest.raises(RuntimeError, match="5056"):
        generator.set_state(empty(torch.uint8, (3,)))


@pytest.mark.parametrize(
    ("name", "args", "error"),
    [
        ("uniform_", (1, 0), RuntimeError),
        ("uniform_", (0, 1e39), RuntimeError),
        ("uniform_", (float("nan"), 1), RuntimeError),
        ("normal_", (0, -1), RuntimeError),
        ("bernoulli_float", (2,), RuntimeError),
        ("bernoulli_float", (-0.1,), RuntimeError),
        ("random_from", (5, 5), RuntimeError),
    ],
)
def test_wrong_arguments(name: str, args: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        getattr(torch.empty(3), name.replace("_float", "_").replace("random_from", "random_"))(*args)
    with pytest.raises(error):
        getattr(random_ops, name)(0, empty(torch.float32, (3,)), *args, None)


def test_dtypes_without_fractions_and_repeated_elements_are_refused() -> None:
    for name in ("uniform_", "normal_"):
        with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
            getattr(random_ops, name)(0, empty(torch.int64, (3,)), 0, 1, None)
        with pytest.raises(RuntimeError, match="single memory location"):
            getattr(random_ops, name)(0, empty(torch.float32, (3,), (0,)), 0, 1, None)
    p = empty(torch.float32, (2,))
    p.strided_array()[...] = 2
    with pytest.raises(RuntimeError, match=r"\[0, 1\]"):
        random_ops.bernoulli_tensor(0, empty(torch.float32, (2,)), p, None)
    p = empty(torch.int64, (2,))
    with pytest.raises(NotImplementedError, match="bernoulli"):
        random_ops.bernoulli_tensor(0, empty(torch.float32, (2,)), p, None)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dropout(dtype: torch.dtype) -> None:
    for p, train in itertools.product((0, 0.3, 0.5, 1), (True, False, None)):
        x = torch.arange(1, 25).reshape(4, 6).to(dtype).t()
        mine = empty(dtype, (6, 4), (1, 6))
        mine.strided_array()[...] = (
            x.view(torch.int16).numpy().view(np.uint16) if dtype is torch.bfloat16 else x
        )
        torch.manual_seed(4)
        default_generator.manual_seed(4)
        out, mask = torch.native_dropout(x, p, train)
        ours, kept = random_ops.native_dropout(0, mine, p, train)
        same(ours, out, 1)
        same(kept, mask)
        back = random_ops.native_dropout_backward(0, mine, kept, 1.5)
        same(back, torch.ops.aten.native_dropout_backward(x, mask, 1.5), 1)
    with pytest.raises(RuntimeError, match="p to be in"):
        random_ops.native_dropout(0, mine, 1.5, True)
    with pytest.raises(RuntimeError, match="can't be cast"):
        random_ops.native_dropout(0, empty(torch.int64, (3,)), 0.5, True)


def test_two_threads_share_one_generator_without_losing_a_number() -> None:
    generator = Generator().manual_seed(1)
    drawn: list[Any] = []

    def draw() -> None:
        for _ in range(50):
            drawn.append(random_ops.uniform_(0, empty(torch.float64, (7,)), 0, 1, generator).values().copy())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = random_ops.uniform_(0, empty(torch.float64, (1400,)), 0, 1, Generator().manual_seed(1)).values()
    blocks = {tuple(block) for block in alone.reshape(200, 7).tolist()}
    assert {tuple(block.tolist()) for block in drawn} == blocks
