"""Facts about forward graphs that names, fake tensors and compiled functions could spoil; the rest is in
test_grad_graph.py.
"""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from glassbox import xray


def test_a_variable_that_is_bound_anew_names_two_tensors() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x
        x = x + 1
        return x * y

    found = xray.forward_graph(program, torch.ones(3, requires_grad=True))
    assert [(row["op"], row["from"], row["gives"]) for row in found.rows()] == [
        ("add.Tensor", "x", "x $1 f32[3]"),
        ("mul.Tensor", "x $1, x", "$2: f32[3]"),
    ]


def test_what_a_fake_tensor_asks_for_is_no_call_and_takes_no_node() -> None:
    linear = nn.Linear(3, 2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        found = xray.forward_graph(linear, torch.ones(2, 3))
    assert [(row["op"], row["backward node"].split()[0]) for row in found.rows()] == [
        ("t", "TBackward0"),
        ("addmm", "AddmmBackward0"),
    ]
    assert found.left_out == 0


def test_what_was_compiled_is_refused() -> None:
    for compiled in (torch.compile(lambda x: x + 1), torch.compile(nn.Linear(2, 2))):
        with pytest.raises(ValueError, match="forward_graph: a compiled function runs kernels that were generated"):
            xray.forward_graph(compiled, torch.ones(2))
