"""What holds of lab 1 alone: its layouts fit the oracle's storage, and mini's tensors lack what its extensions do."""

import math

import pytest

from glassbox import mini
from glassbox.mini.c10 import layout
from glassbox.tasks.lab1 import TASKS
from glassbox.tasks.lab1.cases import CELLS
from glassbox.tasks.model import cases


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.function)
def test_layouts_stay_inside_the_oracles_storage(task):
    """And lists of indices below what may cross."""
    for seed in range(10):
        for group in cases(task, f"small/{seed}"):
            for case in group:
                assert all(isinstance(number, int | None) and abs(number or 0) < CELLS for number in _flat(case))
                if task.function == "aliased_indices":
                    assert math.prod(case[0]) * (len(case[0]) + 1) < 4096


def _flat(value):
    return [n for item in value for n in _flat(item)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", ["unfold", "diagonal", "channels_last", "memory_format"])
def test_a_mini_tensor_has_no_such_method(name):
    assert not hasattr(mini.Tensor, name)
    assert not hasattr(mini, name)
    assert not hasattr(layout, name)


def test_a_mini_tensor_cannot_be_viewed_as_another_dtype():
    with pytest.raises(Exception, match=r"."):
        mini.zeros(4, 4).view(mini.uint8)
