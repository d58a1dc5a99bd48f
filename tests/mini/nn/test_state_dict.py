"""state_dict and load_state_dict: the same names, order, errors and effects as PyTorch's."""

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini import nn

from .twins import LIBRARIES, Programs, agree, close, same_state

programs = Programs()


def net(lib: Any) -> Any:
    shared = lib.nn.Linear(2, 2)
    made = lib.nn.Sequential(shared, lib.nn.BatchNorm1d(2), lib.nn.Sequential(lib.nn.ReLU(), shared))
    made.register_buffer("kept", lib.ones(2))
    made.register_buffer("passing", lib.zeros(3), persistent=False)
    return made


def ones(lib: Any, m: Any) -> Any:
    return OrderedDict((name, lib.ones_like(value)) for name, value in m.state_dict().items())


@programs
def names_in_order(lib: Any) -> Any:
    return list(net(lib).state_dict()), list(net(lib).state_dict(prefix="m."))


@programs
def versions_of_layers(lib: Any) -> Any:
    state = net(lib).state_dict(prefix="m.")
    return type(state) is OrderedDict or isinstance(state, OrderedDict), dict(state._metadata)


@programs
def into_a_dict_of_ones_own(lib: Any) -> Any:
    mine = {"before": 1}
    state = net(lib).state_dict(destination=mine, prefix="m.")
    return state is mine, list(mine)


@programs
def the_state_is_detached_and_shares_the_elements(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    state = m.state_dict()
    state["weight"].fill_(3)
    weight = m.state_dict(keep_vars=True)["weight"]
    kinds = isinstance(state["weight"], lib.nn.Parameter), weight is m.weight
    return state["weight"], m.weight, m.weight._version, kinds


@programs
def loaded(lib: Any) -> Any:
    m = net(lib)
    before = list(m.parameters()), m.kept
    result = m.load_state_dict(ones(lib, m))
    same = [a is b for a, b in zip(before[0], m.parameters(), strict=True)]
    return result, repr(result), m.state_dict(), same, m.kept is before[1], m[0].weight._version


@programs
def loaded_in_another_dtype(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    m.load_state_dict({"weight": lib.ones(1, 2, dtype=lib.float64), "bias": lib.tensor([3])})
    return m.state_dict()


@programs
def loaded_from_a_graph(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    m.load_state_dict({"weight": lib.ones(1, 2, requires_grad=True) * 2, "bias": lib.ones(1)})
    return m.weight, m.weight.is_leaf


@programs
def names_missing_and_left_over(lib: Any) -> Any:
    m = net(lib)
    state = ones(lib, m)
    del state["0.bias"]
    state["new"] = lib.ones(1)
    state["1.new"] = lib.ones(1)
    result = m.load_state_dict(state, strict=False)
    return result.missing_keys, result.unexpected_keys, m[0].weight, m[0].bias


@programs
def passing_buffers_are_left_over(lib: Any) -> Any:
    m = net(lib)
    return m.load_state_dict({"passing": lib.ones(3)}, strict=False).unexpected_keys, m.passing


@programs
def before_batches_were_counted(lib: Any) -> Any:
    m = lib.nn.BatchNorm1d(2)
    m(lib.ones(3, 2))
    state = {name: value for name, value in ones(lib, m).items() if name != "num_batches_tracked"}
    return m.load_state_dict(state), m.state_dict()


@programs
def batches_uncounted_today(lib: Any) -> Any:
    m = lib.nn.BatchNorm1d(2)
    state = m.state_dict()
    del state["num_batches_tracked"]
    m.load_state_dict(state)


@programs
def one_number_where_there_are_no_dimensions(lib: Any) -> Any:
    m = lib.nn.Module()
    m.p = lib.nn.Parameter(lib.zeros(()))
    m.load_state_dict({"p": lib.tensor([5.0])})
    return m.p


@programs
def assigned(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1).requires_grad_(False)
    m.bias.requires_grad_()
    state = {"weight": lib.ones(1, 2, dtype=lib.float64), "bias": lib.nn.Parameter(lib.zeros(1), False)}
    m.load_state_dict(state, assign=True)
    kept = m.weight.data_ptr() == state["weight"].data_ptr(), m.bias is state["bias"]
    return m.state_dict(keep_vars=True), kept, isinstance(m.weight, lib.nn.Parameter)


for _nr, _wrong in enumerate(
    (
        lambda lib: net(lib).load_state_dict(3),
        lambda lib: net(lib).load_state_dict({}),
        lambda lib: net(lib).load_state_dict({**net(lib).state_dict(), "x": lib.ones(1)}),
        lambda lib: lib.nn.Linear(2, 1).load_state_dict({"weight": lib.ones(1, 2), "bias": 3}),
        lambda lib: lib.nn.Linear(2, 1).load_state_dict({"weight": lib.ones(2, 1)}, strict=False),
        lambda lib: lib.nn.Linear(2, 1).load_state_dict({"weight": lib.ones(2), "bias": lib.ones(1)}),
        lambda lib: lib.nn.Linear(2, 1).state_dict(3, 4, 5, 6),
    )
):
    _wrong.__name__ = f"what cannot be loaded {_nr}"
    programs(_wrong)


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_a_program_ends_alike_in_both(program: Callable[[Any], Any]) -> None:
    agree(program)


def test_the_message_names_all_that_does_not_fit() -> None:
    texts = []
    for lib in LIBRARIES:
        m = net(lib)
        state = dict(ones(lib, m), extra=lib.ones(1))
        del state["0.bias"]
        state["1.weight"] = lib.ones(3)
        with pytest.raises(RuntimeError) as caught:
            m.load_state_dict(state)
        texts.append(str(caught.value).replace(f"{lib.__name__.split('.')[-1]}.Size", "Size"))
    assert texts[0] == texts[1]


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    m = net(mini)
    before = {name: value.tolist() for name, value in m.state_dict().items()}
    state = {name: value + 1 for name, value in m.state_dict().items()}
    state["2.1.weight"] = mini.ones(3, 3)
    for strict in (True, False):
        with pytest.raises(RuntimeError, match="size mismatch for 2.1.weight.*3, 3.*2, 2"):
            m.load_state_dict(state, strict=strict)
    assert {name: value.tolist() for name, value in m.state_dict().items()} == before
    assert m[0].weight._version == net(mini)[0].weight._version


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_pytorchs_state_loads(dtype: str) -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(getattr(torch, dtype))
    theirs[1].running_mean.fill_(0.7)
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(getattr(mini, dtype))
    ours.load_state_dict(theirs.state_dict())
    same_state(ours, theirs, 0, 0)


def test_pytorch_loads_our_state() -> None:
    ours = nn.Linear(3, 4)
    theirs = torch.nn.Linear(3, 4)
    theirs.load_state_dict({name: torch.from_numpy(value.numpy()) for name, value in ours.state_dict().items()})
    same_state(ours, theirs, 0, 0)


def test_arrays_load() -> None:
    ours = nn.Linear(3, 4)
    values = np.arange(12.0).reshape(4, 3)
    ours.load_state_dict({"weight": values, "bias": np.zeros(4)})
    assert ours.weight.tolist() == values.tolist()
    values[:] = 0
    assert ours.weight[3, 2].item() == 11


def test_state_loads_from_and_to_the_simulated_device() -> None:
    host, device = nn.Linear(3, 4), nn.Linear(3, 4).sim()
    device.load_state_dict(host.state_dict())
    assert device.weight.device.type == "sim"
    assert device.weight.tolist() == host.weight.tolist()
    device.weight.data.fill_(2)
    host.load_state_dict(device.state_dict())
    assert host.weight.device.type == "cpu"
    assert host.weight.tolist() == [[2.0] * 3] * 4


def test_a_state_that_was_pickled_loads() -> None:
    m = net(mini)
    m(mini.arange(6.0).reshape(3, 2))
    state = pickle.loads(pickle.dumps(m.state_dict()))
    assert state._metadata["1"] == {"version": 2}
    other = net(mini)
    other.load_state_dict(state)
    for name, value in m.state_dict().items():
        close(value, copy.deepcopy(other).state_dict()[name], 0, 0)
    # What two names held is one storage still.
    assert state["0.weight"].data_ptr() == state["2.1.weight"].data_ptr()
