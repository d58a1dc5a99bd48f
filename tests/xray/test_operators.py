"""Facts about operators by name: what a reader may write, and what the messages offer."""

from typing import Any

import pytest
import torch

from glassbox.xray._operators import find_operator

ADD = torch.ops.aten.add.Tensor


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("add.Tensor", ADD),
        ("aten.add.Tensor", ADD),
        ("aten::add.Tensor", ADD),
        (ADD, ADD),
        ("relu", torch.ops.aten.relu.default),
        ("aten::relu.default", torch.ops.aten.relu.default),
        (torch.ops.aten.relu, torch.ops.aten.relu.default),
        ("relu_", torch.ops.aten.relu_.default),
        ("sum", torch.ops.aten.sum.default),
        # aten::add without an overload adds two numbers, in TorchScript.
        ("add", ADD),
        ("mul", torch.ops.aten.mul.Tensor),
        ("bitwise_and", torch.ops.aten.bitwise_and.Tensor),
        (torch.ops.aten.add, ADD),
        ("prims::add", torch.ops.prims.add.default),
    ],
)
def test_a_name_means_an_operator(written: Any, meant: Any) -> None:
    assert find_operator(written, "table") is meant


@pytest.mark.parametrize(
    ("written", "error", "said"),
    [
        ("ad.Tensor", ValueError, "table: there is no operator 'ad.Tensor'; did you mean"),
        ("no_such_thing", ValueError, "table: there is no operator 'no_such_thing'"),
        ("mine::add", ValueError, "table: there is no operator 'mine::add'."),
        ("add.Tenso", ValueError, """'add.Tenso' is no operator; its overloads are "add.Tensor", "add.Scalar", """),
        ("max_pool2d_with_indices.oops", ValueError, "max_pool2d_with_indices.default"),
        ("empty", ValueError, """'empty' means several operators; say one of "empty.memory_format","""),
        (7, TypeError, "table: int is no operator; give a name"),
        (torch.relu, TypeError, "is no operator"),
    ],
)
def test_what_is_none_is_a_sentence(written: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        find_operator(written, "table")
    assert said in str(raised.value)
