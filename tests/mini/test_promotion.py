"""Type promotion: any dtypes, as tensors, 0-d tensors and numbers, meet where PyTorch's do."""

import itertools

import pytest
import torch

from glassbox import mini
from glassbox.mini.c10 import dtype as dtypes
from glassbox.mini.c10 import promotion

NAMES = [each.name for each in dtypes.ALL]


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def torch_operand(name: str, category: str) -> torch.Tensor | bool | int | float:
    dtype = getattr(torch, name)
    if category == promotion.NUMBER:
        return {"bool": True, "int64": 1, "float64": 1.0}[name]
    return torch.ones((2,) if category == promotion.TENSOR else (), dtype=dtype)


@pytest.mark.parametrize("a", NAMES)
def test_promote_types_is_torchs_for_every_pair(a: str) -> None:
    for b in NAMES:
        expected = name_of(torch.promote_types(getattr(torch, a), getattr(torch, b)))
        assert promotion.promote_types(a, b) == expected, (a, b)
        assert promotion.promote(dtypes.by_name(a), dtypes.by_name(b)).name == expected


OPERANDS = [
    *itertools.product(NAMES, (promotion.TENSOR, promotion.ZERO_DIM)),
    *itertools.product(("bool", "int64", "float64"), (promotion.NUMBER,)),
]


@pytest.mark.parametrize("first", OPERANDS, ids=str)
def test_result_type_is_torchs_for_every_two_operands(first: tuple[str, str]) -> None:
    for second in OPERANDS:
        expected = torch.result_type(torch_operand(*first), torch_operand(*second))
        assert promotion.result_type((first, second)) == name_of(expected), (first, second)
        assert promotion.common_dtype((first, second)).name == name_of(expected)


def test_result_type_of_three_operands_is_the_one_that_addcmul_gives() -> None:
    tried = 0
    for operands in itertools.product(OPERANDS[:18:3] + OPERANDS[1:18:3], repeat=3):
        tensors = [torch_operand(*operand) for operand in operands]
        try:
            expected = torch.addcmul(*tensors).dtype  # type: ignore[arg-type]
        except NotImplementedError:
            # bool has no addcmul.
            continue
        assert promotion.result_type(operands) == name_of(expected), operands
        tried += 1
    assert tried > 1000


def test_a_number_alone_is_of_the_default_dtype() -> None:
    assert promotion.result_type((("float64", promotion.NUMBER),)) == "float32"
    assert promotion.result_type((("int64", promotion.NUMBER),)) == "int64"


def test_can_cast_is_torchs() -> None:
    for a, b in itertools.product(NAMES, repeat=2):
        expected = torch.can_cast(getattr(torch, a), getattr(torch, b))
        assert promotion.can_cast(dtypes.by_name(a), dtypes.by_name(b)) is expected, (a, b)


def test_the_framework_runs_on_a_replaced_promotion() -> None:
    int64, int32 = dtypes.int64, dtypes.int32
    assert promotion.promote(int32, int64) is int64
    with mini.using(promote_types=lambda a, b: a):
        assert promotion.promote(int32, int64) is int32
        assert promotion.common_dtype((("int32", "tensor"), ("int64", "tensor"))) is int32
    assert promotion.promote(int32, int64) is int64


def test_a_replaced_promotion_that_names_no_dtype_is_refused() -> None:
    with (
        mini.using(promote_types=lambda a, b: "float128"),
        pytest.raises(TypeError, match=r"promote_types.*float128"),
    ):
        promotion.promote(dtypes.int32, dtypes.int64)
    with mini.using(result_type=lambda operands: 3), pytest.raises(TypeError, match="name of a dtype"):
        promotion.common_dtype((("int32", "tensor"),))
