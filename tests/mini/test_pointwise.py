"""Pointwise kernels give PyTorch's values, dtypes, shapes, strides and errors on any dtypes and layouts."""

import itertools
import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from glassbox import mini
from glassbox.mini.aten.native import activation_ops, binary_ops, compare_ops, erf, unary_ops
from glassbox.mini.aten.native.loops import wrapped_number
from glassbox.mini.c10 import dtype as dtypes
from glassbox.mini.c10.device import CPU
from glassbox.mini.c10.tensor_impl import TensorImpl

NAMES = [each.name for each in dtypes.ALL]
EXACT, CLOSE = 0, 2  # in units of the last place

BINARY: dict[str, tuple[Any, Callable[..., torch.Tensor], str | None, int]] = {
    "add": (binary_ops.add, torch.add, "add_", EXACT),
    "sub": (binary_ops.sub, torch.sub, "sub_", EXACT),
    "mul": (binary_ops.mul, torch.mul, "mul_", EXACT),
    "div": (binary_ops.div, torch.div, "div_", EXACT),
    "floor_divide": (binary_ops.floor_divide, torch.floor_divide, "floor_divide_", EXACT),
    "remainder": (binary_ops.remainder, torch.remainder, "remainder_", EXACT),
    "fmod": (binary_ops.fmod, torch.fmod, "fmod_", EXACT),
    "pow": (binary_ops.pow_tensor_tensor, torch.pow, "pow_", CLOSE),
    "maximum": (binary_ops.maximum, torch.maximum, None, EXACT),
    "minimum": (binary_ops.minimum, torch.minimum, None, EXACT),
    "bitwise_and": (binary_ops.bitwise_and, torch.bitwise_and, "bitwise_and_", EXACT),
    "bitwise_or": (binary_ops.bitwise_or, torch.bitwise_or, "bitwise_or_", EXACT),
    "bitwise_xor": (binary_ops.bitwise_xor, torch.bitwise_xor, "bitwise_xor_", EXACT),
    "eq": (compare_ops.eq, torch.eq, "eq_", EXACT),
    "ne": (compare_ops.ne, torch.ne, "ne_", EXACT),
    "lt": (compare_ops.lt, torch.lt, "lt_", EXACT),
    "le": (compare_ops.le, torch.le, "le_", EXACT),
    "gt": (compare_ops.gt, torch.gt, "gt_", EXACT),
    "ge": (compare_ops.ge, torch.ge, "ge_", EXACT),
    "logical_and": (compare_ops.logical_and, torch.logical_and, "logical_and_", EXACT),
    "logical_or": (compare_ops.logical_or, torch.logical_or, "logical_or_", EXACT),
    "logical_xor": (compare_ops.logical_xor, torch.logical_xor, "logical_xor_", EXACT),
    "clamp_min": (compare_ops.clamp_min, torch.clamp_min, "clamp_min_", EXACT),
    "clamp_max": (compare_ops.clamp_max, torch.clamp_max, "clamp_max_", EXACT),
}

# Ops of a tensor and a number; those of BINARY take the number as a wrapped tensor.
WITH_NUMBER = {
    **{name: (BINARY[name][0], BINARY[name][1]) for name in ("add", "sub", "mul", "div", "floor_divide")},
    **{name: (getattr(compare_ops, f"{name}_scalar"), BINARY[name][1]) for name in ("eq", "ne", "lt", "le")},
    "gt": (compare_ops.gt_scalar, torch.gt),
    "ge": (compare_ops.ge_scalar, torch.ge),
    "pow": (binary_ops.pow_tensor_scalar, torch.pow),
    "remainder": (binary_ops.remainder_scalar, torch.remainder),
    "fmod": (binary_ops.fmod_scalar, torch.fmod),
    "bitwise_and": (binary_ops.bitwise_and_scalar, torch.bitwise_and),
    "bitwise_or": (binary_ops.bitwise_or_scalar, torch.bitwise_or),
    "bitwise_xor": (binary_ops.bitwise_xor_scalar, torch.bitwise_xor),
    "clamp_min": (compare_ops.clamp_min, torch.clamp_min),
    "clamp_max": (compare_ops.clamp_max, torch.clamp_max),
}

UNARY_EXACT = ["neg", "abs", "sign", "bitwise_not", "floor", "ceil", "trunc", "round", "reciprocal", "relu"]
UNARY_CLOSE = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "erf"]
UNARY: dict[str, tuple[Any, Callable[..., torch.Tensor], tuple[Any, ...], int]] = {
    **{name: (getattr(unary_ops, name), getattr(torch, name), (), EXACT) for name in UNARY_EXACT},
    **{name: (getattr(unary_ops, name), getattr(torch, name), (), CLOSE) for name in UNARY_CLOSE},
    "logical_not": (compare_ops.logical_not, torch.logical_not, (), EXACT),
    "isnan": (compare_ops.isnan, torch.isnan, (), EXACT),
    "silu": (activation_ops.silu, F.silu, (), 4),
    "leaky_relu": (activation_ops.leaky_relu, F.leaky_relu, (0.01,), EXACT),
    "softplus": (activation_ops.softplus, F.softplus, (1, 20), 4),
}


def to_mini(theirs: torch.Tensor) -> Any:
    """The same layout over a copy of the storage."""
    flat = torch.empty(0, dtype=theirs.dtype).set_(theirs.untyped_storage()).clone()  # type: ignore[call-overload]
    array = (flat.view(torch.uint16) if theirs.dtype == torch.bfloat16 else flat).numpy()
    whole = TensorImpl.adopt(array, dtypes.by_name(str(theirs.dtype)[6:]), CPU)
    return whole.alias(tuple(theirs.shape), tuple(theirs.stride()), theirs.storage_offset())


# The last place of a dtype in places of float64, to which a result was cast. Whole numbers are float32.
PLACE = dict.fromkeys(NAMES, 2**29) | {"float64": 1, "bfloat16": 2**45}

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, math.inf, -math.inf, math.nan, 88.0, -1e-3]


def values(shape: tuple[int, ...], name: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, name)
    if dtype.is_floating_point:
        found = torch.randn(shape, generator=generator, dtype=torch.float64) * 3
        special = torch.tensor(SPECIAL, dtype=torch.float64)
        picks = special[torch.randint(0, len(SPECIAL), shape, generator=generator)]
        return torch.where(torch.rand(shape, generator=generator) < 0.3, picks, found).to(dtype)
    if name == "bool":
        return torch.randint(0, 2, shape, generator=generator).bool()
    return torch.randint(0 if name == "uint8" else -6, 7, shape, generator=generator).to(dtype)


# Each makes a pair of tensors that broadcast, out of dtype names and a seed.
Pair = tuple[torch.Tensor, torch.Tensor]
PAIRS: dict[str, Callable[[str, str, int], Pair]] = {
    "vectors": lambda a, b, s: (values((37,), a, s), values((37,), b, s + 1)),
    "0-d": lambda a, b, s: (values((), a, s), values((), b, s + 1)),
    "0-d second": lambda a, b, s: (values((5,), a, s), values((), b, s + 1)),
    "0-d first": lambda a, b, s: (values((), a, s), values((2, 3), b, s + 1)),
    "empty": lambda a, b, s: (values((2, 0), a, s), values((1,), b, s + 1)),
    "rows and columns": lambda a, b, s: (values((4, 1), a, s), values((1, 3), b, s + 1)),
    "transposed": lambda a, b, s: (values((3, 4), a, s).t(), values((4, 3), b, s + 1)),
    "both transposed": lambda a, b, s: (values((3, 4), a, s).t(), values((3, 4), b, s + 1).t()),
    "sliced": lambda a, b, s: (values((6, 8), a, s)[1::2, 2:7], values((3, 9), b, s + 1)[:, 1:6]),
    "expanded": lambda a, b, s: (values((1, 3), a, s).expand(4, 3), values((4, 3), b, s + 1)),
    "permuted": lambda a, b, s: (values((2, 3, 4), a, s).permute(2, 0, 1), values((2, 1), b, s + 1)),
}
MIXED = list(zip(NAMES, NAMES, strict=True)) + [
    ("int64", "float32"),
    ("float32", "float64"),
    ("bfloat16", "float32"),
    ("bool", "int32"),
    ("uint8", "int8"),
    ("int32", "bfloat16"),
    ("int16", "uint8"),
    ("float64", "bool"),
]


def compare(ours: Callable[[], Any], theirs: Callable[[], torch.Tensor], units: float, what: object) -> bool:
    """Assert that both raise alike or give the same result; True where they gave one."""
    try:
        expected = theirs()
    except (RuntimeError, TypeError, IndexError) as error:
        with pytest.raises(type(error)):
            ours()
        return False
    got = ours()
    assert got._dtype.name == str(expected.dtype)[6:], what
    assert got._shape == tuple(expected.shape), what
    assert got._stride == expected.stride(), what
    assert_values(got, expected, units, what)
    return True


def assert_values(got: Any, expected: torch.Tensor, units: float, what: object) -> None:
    wide = expected.float() if expected.dtype == torch.bfloat16 else expected
    theirs, ours = wide.numpy(), got.values()
    if theirs.dtype.kind != "f":
        assert (ours == theirs).all(), what
        return
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    place = np.spacing(np.abs(theirs)) * (65536 if expected.dtype == torch.bfloat16 else 1)
    with np.errstate(all="ignore"):
        near = np.abs(ours - theirs) <= units * place
    assert (same | near).all(), (what, ours[~(same | near)], theirs[~(same | near)])


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors_of_any_dtypes_and_layouts(name: str) -> None:
    kernel, function, _, units = BINARY[name]
    extra = (1,) if name in ("add", "sub") else ()
    gave = 0
    for (a, b), (layout, make) in itertools.product(MIXED, PAIRS.items()):
        one, two = make(a, b, len(layout))
        mine = to_mini(one), to_mini(two)
        gave += compare(
            lambda: kernel.functional(0, *mine, *extra),  # noqa: B023
            lambda: function(one, two),  # noqa: B023
            units,
            (a, b, layout),
        )
    # At least half the dtypes work for every op, in every layout.
    assert gave >= len(MIXED) * len(PAIRS) // 2 - 10


@pytest.mark.parametrize("name", [name for name, found in BINARY.items() if found[2]])
def test_in_place_on_any_dtypes_and_layouts(name: str) -> None:
    kernel, _, method, units = BINARY[name]
    extra = (1,) if name in ("add", "sub") else ()
    for (a, b), (layout, make) in itertools.product(MIXED, PAIRS.items()):
        one, two = make(a, b, len(layout))
        mine = to_mini(one), to_mini(two)

        def ours() -> Any:
            assert kernel.inplace(0, *mine, *extra) is mine[0]  # noqa: B023
            return mine[0]  # noqa: B023

        assert method is not None
        done = compare(ours, lambda: getattr(one, method)(two), units, (a, b, layout))  # noqa: B023
        if layout == "sliced" and done:
            # What lies between the elements of a slice is left alone.
            base = torch.empty(0, dtype=one.dtype).set_(one.untyped_storage())  # type: ignore[call-overload]
            all_mine = mine[0].alias((base.numel(),), (1,), 0)
            assert_values(all_mine, base, units, (a, b))


@pytest.mark.parametrize("name", BINARY)
def test_out_tensors_of_any_dtype(name: str) -> None:
    kernel, function, _, units = BINARY[name]
    extra = (1,) if name in ("add", "sub") else ()
    for a, target in itertools.product(NAMES, NAMES):
        one, two = values((2, 3), a, 1), values((3,), a, 2)
        out = torch.zeros((3, 2), dtype=getattr(torch, target)).t()
        mine = to_mini(one), to_mini(two)
        mine_out = to_mini(out)
        compare(
            lambda: kernel.out(0, *mine, *extra, mine_out),  # noqa: B023
            lambda: function(one, two, out=out),  # noqa: B023
            units * PLACE[a],
            (a, target),
        )


NUMBERS = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    300,
    0.0,
    -0.0,
    0.1,
    0.5,
    -0.5,
    2.5,
    -2.0,
    1e10,
    math.inf,
    math.nan,
    True,
    False,
]


@pytest.mark.parametrize("name", WITH_NUMBER)
def test_a_tensor_and_a_number(name: str) -> None:
    kernel, function = WITH_NUMBER[name]
    extra = (1,) if name in ("add", "sub") else ()
    units = CLOSE if name == "pow" else EXACT
    shapes: list[Callable[[str], torch.Tensor]] = [
        lambda dtype: values((37,), dtype, 5),
        lambda dtype: values((), dtype, 6),
        lambda dtype: values((4, 3), dtype, 7).t(),
        lambda dtype: values((0, 3), dtype, 8),
    ]
    for dtype, number, make in itertools.product(NAMES, NUMBERS, shapes):
        one = make(dtype)
        mine = to_mini(one)
        takes_tensors = name in ("add", "sub", "mul", "div", "floor_divide")
        other = wrapped_number(number, mine) if takes_tensors else number
        compare(
            lambda: kernel.functional(0, mine, other, *extra),  # noqa: B023
            lambda: function(one, number),  # noqa: B023
            units,
            (dtype, number, one.shape),
        )


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e-8, 16777217, 3.4e38, -2.7])
def test_a_number_has_the_precision_of_the_tensor(number: float) -> None:
    for dtype in ("float32", "bfloat16", "float64"):
        one = values((101,), dtype, 3)
        mine = to_mini(one)
        for name in ("add", "sub", "mul", "div"):
            kernel, function, _, _ = BINARY[name]
            extra = (1,) if name in ("add", "sub") else ()
            compare(
                lambda: kernel.functional(0, mine, wrapped_number(number, mine), *extra),  # noqa: B023
                lambda: function(one, number),  # noqa: B023
                EXACT,
                (dtype, name),
            )
        equal = torch.full((3,), number).to(getattr(torch, dtype))
        assert (
            compare_ops.eq_scalar.functional(0, to_mini(equal), number).tolist() == (equal == number).tolist()
        )


def test_numbers_before_the_tensor() -> None:
    for dtype, number in itertools.product(NAMES, [0, 2, -1, 0.5, 2.5, True]):
        one = values((3, 4), dtype, 11).t()
        mine = to_mini(one)
        compare(
            lambda: binary_ops.rsub_scalar(0, mine, number, 1),  # noqa: B023
            lambda: torch.rsub(one, number),  # noqa: B023
            EXACT,
            (dtype, number),
        )
        compare(
            lambda: binary_ops.remainder_scalar_tensor(0, number, mine),  # noqa: B023
            lambda: torch.remainder(number, one),  # noqa: B023
            EXACT,
            (dtype, number),
        )
        compare(
            lambda: binary_ops.pow_scalar.functional(0, number, mine),  # noqa: B023
            lambda: torch.pow(number, one),  # noqa: B023
            CLOSE,
            (dtype, number),
        )


@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(name: str) -> None:
    kernel, function, numbers, units = UNARY[name]
    gave = 0
    for dtype, (layout, make) in itertools.product(NAMES, PAIRS.items()):
        one = make(dtype, dtype, 17)[0]
        mine = to_mini(one)
        gave += compare(
            lambda: kernel.functional(0, mine, *numbers),  # noqa: B023
            lambda: function(one),  # noqa: B023
            units,
            (dtype, layout),
        )
    assert gave >= 3 * len(PAIRS)


@pytest.mark.parametrize("name", [name for name in UNARY if hasattr(torch.Tensor, f"{name}_")])
def test_one_tensor_in_place_and_out(name: str) -> None:
    kernel, function, _, units = UNARY[name]
    for dtype, (layout, make) in itertools.product(NAMES, PAIRS.items()):
        one = make(dtype, dtype, 17)[0]
        mine = to_mini(one)
        if name != "relu":
            out = torch.zeros(one.shape, dtype=torch.float64)
            mine_out = to_mini(out)
            compare(
                lambda: kernel.out(0, mine, mine_out),  # noqa: B023
                lambda: function(one, out=out),  # noqa: B023
                units * PLACE[dtype],
                (dtype, layout, "out"),
            )
        compare(
            lambda: kernel.inplace(0, mine),  # noqa: B023
            lambda: getattr(one, f"{name}_")(),  # noqa: B023
            units,
            (dtype, layout),
        )


@pytest.mark.parametrize("decimals", [0, 1, 3, -1])
def test_round_to_decimals(decimals: int) -> None:
    for dtype in NAMES:
        one = values((50,), dtype, 4)
        mine = to_mini(one)
        compare(
            lambda: unary_ops.round_decimals.functional(0, mine, decimals),  # noqa: B023
            lambda: torch.round(one, decimals=decimals),  # noqa: B023
            EXACT,
            dtype,
        )


def test_isinf_of_floats_and_whole_numbers() -> None:
    for dtype, (layout, make) in itertools.product(NAMES, PAIRS.items()):
        one = make(dtype, dtype, 3)[0]
        mine = to_mini(one)
        compare(
            lambda: compare_ops.isinf(0, mine),  # noqa: B023
            lambda: torch.isinf(one),  # noqa: B023
            EXACT,
            (dtype, layout),
        )


def test_erf_is_exact_to_two_units_over_its_whole_range() -> None:
    x = np.concatenate(
        [np.linspace(-7, 7, 40001), 10.0 ** -np.arange(0, 300, 7), [0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    exact = np.array([math.erf(each) for each in x])
    ours = erf.erf(x)
    finite = ~np.isnan(exact)
    assert (np.abs(ours - exact)[finite] <= 2 * np.spacing(np.abs(exact[finite]))).all()
    assert np.isnan(ours[-1])
    assert np.signbit(ours[-4])
    assert erf.erf(x.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_and_its_backward(approximate: str) -> None:
    for dtype in NAMES:
        one, grad = values((4, 25), dtype, 8).t(), values((25, 4), dtype, 9)
        one, grad = (torch.nan_to_num(each, 0.5, 2.0, -2.0) for each in (one, grad))
        mine, mine_grad = to_mini(one), to_mini(grad)
        # The tails are differences of nearly equal numbers: the error is that of 1.
        units = {"float32": 2**24 * 3e-6, "float64": 2**53 * 3e-15}.get(dtype, 2)
        for ours, theirs in (
            (
                lambda: activation_ops.gelu.functional(0, mine, approximate),  # noqa: B023
                lambda: F.gelu(one, approximate=approximate),  # noqa: B023
            ),
            (
                lambda: activation_ops.gelu_backward.functional(0, mine_grad, mine, approximate),  # noqa: B023
                lambda: torch.ops.aten.gelu_backward(grad, one, approximate=approximate),  # noqa: B023
            ),
        ):
            if not one.is_floating_point():
                compare(ours, theirs, units, dtype)
                continue
            expected, got = theirs().double(), torch.from_numpy(ours().values().astype(np.float64))
            assert ours()._stride == theirs().stride()
            tolerance = {"float32": 3e-6, "float64": 1e-13, "bfloat16": 0.05}[dtype]
            torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def test_alpha_scales_the_second_operand() -> None:
    for (a, b), alpha in itertools.product(MIXED, [2, 1, 0, -3, 0.3, True, False, 2.0]):
        one, two = values((40,), a, 1), values((40,), b, 2)
        one, two = (torch.nan_to_num(each, 0.5, 2.0, -2.0) for each in (one, two))
        for kernel, function in ((binary_ops.add, torch.add), (binary_ops.sub, torch.sub)):
            ours, theirs = to_mini(one), to_mini(two)
            try:
                expected = function(one, two, alpha=alpha)
            except RuntimeError as error:
                with pytest.raises(type(error)):
                    kernel.functional(0, ours, theirs, alpha)
                continue
            got = kernel.functional(0, ours, theirs, alpha)
            assert got._dtype.name == str(expected.dtype)[6:]
            # PyTorch rounds once, here the product is rounded too: an error of the product's last place.
            tolerance = {"float32": 1e-5, "float64": 1e-14, "bfloat16": 0.3}.get(got._dtype.name, 0.0)
            assert np.abs(got.values().astype(float) - expected.double().numpy()).max() <= tolerance, (
                a,
                b,
                alpha,
            )


@pytest.mark.parametrize("mode", [None, "floor", "trunc", "nearest"])
def test_division_with_a_rounding_mode(mode: str | None) -> None:
    for (a, b), (layout, make) in itertools.product(MIXED, PAIRS.items()):
        one, two = make(a, b, 3)
        mine = to_mini(one), to_mini(two)
        # PyTorch's vectors round the quotient to bfloat16 before they truncate it.
        units = 3 if "bfloat16" in (a, b) else EXACT
        compare(
            lambda: binary_ops.div_mode.functional(0, *mine, mode),  # noqa: B023
            lambda: torch.div(one, two, rounding_mode=mode),  # noqa: B023
            units,
            (a, b, layout),
        )
        compare(
            lambda: binary_ops.div_mode.inplace(0, *mine, mode),  # noqa: B023
            lambda: one.div_(two, rounding_mode=mode),  # noqa: B023
            units,
            (a, b, layout),
        )


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_whole_numbers_are_not_divided_by_zero(dtype: str) -> None:
    one, zero = mini.ones(2, dtype=dtypes.by_name(dtype)), mini.zeros(2, dtype=dtypes.by_name(dtype))
    for kernel in (binary_ops.floor_divide, binary_ops.trunc_divide, binary_ops.remainder, binary_ops.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            kernel.functional(0, one, zero)
    assert binary_ops.div.functional(0, one, zero).tolist() == [math.inf] * 2


def test_whole_numbers_to_negative_powers() -> None:
    base = torch.tensor([-2, -1, 0, 1, 2, -1])
    exponent = torch.tensor([-1, -3, -1, -5, -1, -2])
    got = binary_ops.pow_tensor_tensor.functional(0, to_mini(base), to_mini(exponent))
    assert got.tolist() == torch.pow(base, exponent).tolist() == [0, -1, 0, 1, 0, 1]
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        binary_ops.pow_tensor_scalar.functional(0, to_mini(base), -1)


def test_bools_are_not_subtracted_or_negated() -> None:
    true = mini.tensor([True])
    for call in (
        lambda: binary_ops.sub.functional(0, true, true, 1),
        lambda: binary_ops.sub.functional(0, mini.tensor([1]), true, 1),
        lambda: binary_ops.sub.functional(0, mini.tensor([1]), wrapped_number(True, true), 1),
        lambda: unary_ops.neg.functional(0, true),
    ):
        with pytest.raises(NotImplementedError, match="operator, .* is not supported"):
            call()
    assert binary_ops.add.functional(0, true, true, 1).tolist() == [True]


LIMITS = [
    (0, 1),
    (0.5, 2.5),
    (None, 1),
    (-1, None),
    (2, 1),
    (math.nan, 1.0),
    (-0.0, 0),
    (1, 2.5),
    (True, None),
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_clamp_between_numbers(limits: tuple[Any, Any]) -> None:
    for dtype, (layout, make) in itertools.product(NAMES, PAIRS.items()):
        one = make(dtype, dtype, 13)[0]
        mine = to_mini(one)
        if not one.is_floating_point() and any(
            isinstance(each, float) and math.isnan(each) for each in limits
        ):
            continue
        compare(
            lambda: compare_ops.clamp.functional(0, mine, *limits),  # noqa: B023
            lambda: torch.clamp(one, *limits),  # noqa: B023
            EXACT,
            (dtype, layout),
        )
        compare(
            lambda: compare_ops.clamp.inplace(0, mine, *limits),  # noqa: B023
            lambda: one.clamp_(*limits),  # noqa: B023
            EXACT,
            (dtype, layout, "in place"),
        )


def test_clamp_without_bounds_is_refused() -> None:
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        compare_ops.clamp.functional(0, mini.zeros(2), None, None)


THREE: dict[str, tuple[Callable[..., Any], Callable[..., torch.Tensor], float]] = {
    "clamp": (compare_ops.clamp.functional, torch.clamp, EXACT),
    "where": (compare_ops.where, torch.where, EXACT),
    "addcmul": (
        lambda ks, *t: activation_ops.addcmul.functional(ks, *t, 0.5),
        lambda *t: torch.addcmul(*t, value=0.5),
        64,
    ),
    "addcdiv": (
        lambda ks, *t: activation_ops.addcdiv.functional(ks, *t, 0.5),
        lambda *t: torch.addcdiv(*t, value=0.5),
        64,
    ),
    "lerp": (activation_ops.lerp_tensor.functional, torch.lerp, 64),
}


@pytest.mark.parametrize("name", THREE)
def test_three_tensors(name: str) -> None:
    kernel, function, units = THREE[name]
    chance = random.Random(1)
    for (a, b), (layout, make) in itertools.product(MIXED, PAIRS.items()):
        one, two = make(a, b, 21)
        three = values(tuple(one.shape), chance.choice([a, a, b]), 22)
        if name == "where":
            two, three, one = one, two, values(tuple(one.shape), "bool", 23)
        tensors = (one, two, three)
        mine = tuple(to_mini(each) for each in tensors)
        compare(
            lambda: kernel(0, *mine),  # noqa: B023
            lambda: function(*tensors),  # noqa: B023
            units,
            (a, b, three.dtype, layout),
        )


@pytest.mark.parametrize("weight", [0, 0.3, 0.5, 0.7, 1, 2.5])
def test_lerp_by_a_number(weight: float) -> None:
    for a, (layout, make) in itertools.product(NAMES, PAIRS.items()):
        one, two = make(a, a, 21)
        mine = to_mini(one), to_mini(two)
        compare(
            lambda: activation_ops.lerp_scalar.functional(0, *mine, weight),  # noqa: B023
            lambda: torch.lerp(one, two, weight),  # noqa: B023
            64,
            (a, layout),
        )
    ends = mini.tensor([1e8]), mini.tensor([1.0])
    assert activation_ops.lerp_scalar.functional(0, *ends, 1).tolist() == [1.0]


def test_where_wants_a_bool_condition() -> None:
    x = mini.ones(2)
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        compare_ops.where(0, x, x, x)
    with pytest.warns(UserWarning, match="uint8"):
        assert compare_ops.where(
            0, mini.tensor([1, 0], dtype=mini.uint8), x, -1 * 0 or mini.zeros(2)
        ).tolist() == [1, 0]
    out = mini.zeros(0)
    compare_ops.where_out(0, mini.tensor([True, False]), x, mini.zeros(2), out)
    assert out.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match="Expected out type to be Float but got Long"):
        compare_ops.where_out(0, mini.tensor([True, False]), x, x, mini.zeros(2, dtype=mini.int64))


BACKWARD = {
    "threshold_backward": (activation_ops.threshold_backward, torch.ops.aten.threshold_backward, (0,), EXACT),
    "tanh_backward": (activation_ops.tanh_backward, torch.ops.aten.tanh_backward, (), 8),
    "sigmoid_backward": (activation_ops.sigmoid_backward, torch.ops.aten.sigmoid_backward, (), 8),
    "silu_backward": (activation_ops.silu_backward, torch.ops.aten.silu_backward, (), 64),
    "softplus_backward": (activation_ops.softplus_backward, torch.ops.aten.softplus_backward, (1, 20), 8),
    "leaky_relu_backward": (
        activation_ops.leaky_relu_backward,
        torch.ops.aten.leaky_relu_backward,
        (0.1, False),
        EXACT,
    ),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_formulas(name: str) -> None:
    kernel, function, numbers, units = BACKWARD[name]
    for dtype, (layout, make) in itertools.product(NAMES, PAIRS.items()):
        grad, one = make(dtype, dtype, 31)
        if name == "softplus_backward":
            # Of an infinity PyTorch's own answer depends on whether it stands in a vector or in its tail.
            one = torch.nan_to_num(one, 0.5, 2.0, -2.0)
        mine = to_mini(grad), to_mini(one)
        compare(
            lambda: kernel.functional(0, *mine, *numbers),  # noqa: B023
            lambda: function(grad, one, *numbers),  # noqa: B023
            units,
            (dtype, layout),
        )


def test_the_gradient_of_relu_stops_infinities_and_keeps_no_minus_zero() -> None:
    x = torch.tensor([-1.0, 1.0, 0.0, math.nan, 2.0])
    grad = torch.tensor([math.inf, math.inf, -3.0, 5.0, math.nan])
    got = activation_ops.threshold_backward.functional(0, to_mini(grad), to_mini(x), 0).values()
    expected = torch.ops.aten.threshold_backward(grad, x, 0).numpy()
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["relu", "clamp_min", "abs", "round", "neg", "sign", "floor", "trunc"])
def test_zeros_keep_torchs_sign(name: str) -> None:
    zeros = torch.tensor([0.0, -0.0, 0.3, -0.3] * 5)
    mine = to_mini(zeros)
    if name == "clamp_min":
        expected, got = torch.clamp_min(zeros, 0), compare_ops.clamp_min.functional(0, mine, 0)
    else:
        expected, got = getattr(torch, name)(zeros), getattr(unary_ops, name).functional(0, mine)
    assert got.values().tobytes() == expected.numpy().tobytes()


def test_operands_are_never_written() -> None:
    one, two = values((3, 4), "float32", 1), values((3, 4), "float32", 2)
    mine = to_mini(one), to_mini(two)
    for kernel, _, _, _ in BINARY.values():
        if kernel in (binary_ops.bitwise_and, binary_ops.bitwise_or, binary_ops.bitwise_xor):
            continue
        kernel.functional(0, *mine)
    for kernel, _, numbers, _ in UNARY.values():
        if kernel is not unary_ops.bitwise_not:
            kernel.functional(0, mine[0], *numbers)
    for ours, theirs in zip(mine, (one, two), strict=True):
        assert ours.values().tobytes() == theirs.numpy().tobytes()


def test_results_share_no_memory_with_their_operands() -> None:
    for name, (kernel, _, numbers, _) in UNARY.items():
        one = mini.ones(3, dtype=mini.int64 if name == "bitwise_not" else mini.float32)
        result = kernel.functional(0, one, *numbers)
        assert not np.shares_memory(result.strided_array(), one.strided_array()), name
    whole = mini.ones(3, dtype=mini.int64)
    for kernel in (unary_ops.floor, unary_ops.ceil, unary_ops.trunc, unary_ops.round):
        assert not np.shares_memory(kernel.functional(0, whole).strided_array(), whole.strided_array())


def test_a_wrapped_number_is_0d_and_knows_its_kind() -> None:
    x = mini.zeros(2)
    for number, dtype in (
        (True, mini.bool),
        (3, mini.int64),
        (2.5, mini.float64),
        (np.float32(1), mini.float64),
    ):
        wrapped = wrapped_number(number, x)
        assert (wrapped._shape, wrapped._dtype, wrapped.item()) == ((), dtype, number)
    assert math.copysign(1, wrapped_number(-0.0, x).item()) == -1
    assert math.copysign(1, wrapped_number(0.0, x).item()) == 1
    with pytest.raises(RuntimeError, match="without overflow"):
        wrapped_number(2**70, x)
    with pytest.raises(TypeError, match="expected a number or a tensor, got str"):
        wrapped_number("3", x)


def test_nothing_warns() -> None:
    extreme = to_mini(torch.tensor([1e30, -1e30, 0.0, math.inf, math.nan]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        binary_ops.div.functional(0, extreme, extreme)
        binary_ops.mul.functional(0, extreme, extreme)
        unary_ops.log.functional(0, extreme)
        unary_ops.exp.functional(0, extreme)
