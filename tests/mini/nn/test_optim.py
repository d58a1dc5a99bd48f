"""Optimizers: every option takes the same steps as PyTorch's; groups, state and errors are the same."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini import nn, optim

from .twins import LIBRARIES, Programs, agree, array, close, of, pair

RNG = np.random.default_rng(11)
SHAPES = ((3, 2), (2,), (), (2, 1, 2))
BEGIN = [RNG.standard_normal(shape) for shape in SHAPES]
STEPS = 20
# None: no gradient in that step.
GRADS = [
    [None if (step + nr) % 7 == 6 else RNG.standard_normal(shape) for nr, shape in enumerate(SHAPES)]
    for step in range(STEPS)
]

SGD: list[dict[str, Any]] = [
    {},
    {"lr": 0.1},
    {"lr": 0.0},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "weight_decay": 0.2},
    {"lr": 0.1, "weight_decay": 0.2, "momentum": 0.5, "maximize": True},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True},
    {"lr": 0.1, "foreach": False},
    {"lr": 0.1, "momentum": 0.9, "foreach": True},
    {"lr": 0.1, "momentum": 0.9, "fused": True},
]
ADAM: list[dict[str, Any]] = [
    {},
    {"lr": 0.1},
    {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3},
    {"lr": 0.1, "betas": (0.0, 0.0)},
    {"lr": 0.1, "weight_decay": 0.2},
    {"lr": 0.1, "amsgrad": True},
    {"lr": 0.1, "maximize": True},
    {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True, "maximize": True, "betas": (0.8, 0.9)},
    {"lr": 0.1, "foreach": True, "amsgrad": True},
    {"lr": 0.1, "fused": True},
]
OPTIONS = (
    [("SGD", each) for each in SGD]
    + [("Adam", each) for each in [*ADAM, {"weight_decay": 0.1, "decoupled_weight_decay": True}]]
    + [("AdamW", each) for each in ADAM]
)


def parameters(lib: Any, dtype: str = "float64") -> list[Any]:
    return [lib.nn.Parameter(of(lib, np.asarray(values), dtype)) for values in BEGIN]


def give_grads(lib: Any, params: list[Any], step: int) -> None:
    for parameter, grad in zip(params, GRADS[step], strict=True):
        parameter.grad = None if grad is None else of(lib, np.asarray(grad)).to(parameter.dtype)


def same_optimizer(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    left, right = ours.state_dict(), theirs.state_dict()
    assert left["param_groups"] == right["param_groups"]
    assert [list(each) for each in left["param_groups"]] == [list(each) for each in right["param_groups"]]
    assert set(left["state"]) == set(right["state"])
    for number, state in right["state"].items():
        assert list(left["state"][number]) == list(state)
        for name, value in state.items():
            close(left["state"][number][name], value, rtol, atol, f"{name} of {number}")


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[f"{name} {options}" for name, options in OPTIONS])
def test_twenty_steps(name: str, options: dict[str, Any]) -> None:
    """In float64 up to its last digits, state and all; some gradients are missing in some steps."""
    made = [(lib, params := parameters(lib), getattr(lib.optim, name)(params, **options)) for lib in LIBRARIES]
    assert repr(made[0][2]) == repr(made[1][2])
    for step in range(STEPS):
        for lib, params, optimizer in made:
            give_grads(lib, params, step)
            grads = [None if p.grad is None else array(p.grad).copy() for p in params]
            assert optimizer.step() is None
            for parameter, before in zip(params, grads, strict=True):
                assert before is None or np.array_equal(array(parameter.grad), before)
        for a, b in zip(made[0][1], made[1][1], strict=True):
            close(a, b, 1e-12, 1e-13)
            if not options.get("foreach") and not options.get("fused"):
                assert a._version == b._version
    same_optimizer(made[0][2], made[1][2], 1e-12, 1e-13)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_other_dtypes(name: str, dtype: str, rtol: float) -> None:
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    made = [(lib, params := parameters(lib, dtype), getattr(lib.optim, name)(params, **options)) for lib in LIBRARIES]
    for step in range(STEPS):
        for lib, params, optimizer in made:
            give_grads(lib, params, step)
            optimizer.step()
    for a, b in zip(made[0][1], made[1][1], strict=True):
        close(a, b, rtol, rtol)
    same_optimizer(made[0][2], made[1][2], rtol, rtol)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Optimizer"])
def test_a_class_takes_what_pytorchs_takes(name: str) -> None:
    ours, theirs = (
        [
            (each.name, each.kind, each.default)
            for each in inspect.signature(getattr(lib.optim, name)).parameters.values()
        ]
        for lib in LIBRARIES
    )
    assert ours == theirs


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_state_goes_on_where_it_was(name: str) -> None:
    """Ten steps, a round trip of model and optimizer by pickle, ten more: as twenty at once."""
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1, "amsgrad": True}
    params = parameters(mini)
    optimizer = getattr(optim, name)(params, **options)
    for step in range(10):
        give_grads(mini, params, step)
        optimizer.step()
    values, state = pickle.loads(pickle.dumps((params, optimizer.state_dict())))
    resumed = getattr(optim, name)(values, lr=5.0)
    resumed.load_state_dict(state)
    assert resumed.param_groups[0]["lr"] == 0.1
    assert all(isinstance(each, nn.Parameter) for each in values)
    for step in range(10, STEPS):
        for each, by in ((params, optimizer), (values, resumed)):
            give_grads(mini, each, step)
            by.step()
    for a, b in zip(params, values, strict=True):
        close(a, b, 0, 0)


def test_the_loaded_state_is_a_copy() -> None:
    params = parameters(mini)
    first = optim.SGD(params, momentum=0.9)
    give_grads(mini, params, 0)
    first.step()
    second = optim.SGD(params, momentum=0.9)
    state = first.state_dict()
    second.load_state_dict(state)
    ours = second.state[params[0]]["momentum_buffer"]
    assert ours.data_ptr() != state["state"][0]["momentum_buffer"].data_ptr()
    assert second.param_groups[0]["params"][0] is params[0]


def test_an_optimizer_is_copied_whole() -> None:
    params = parameters(mini)
    optimizer = optim.Adam(params)
    give_grads(mini, params, 0)
    optimizer.step()
    other, others = copy.deepcopy((optimizer, params))
    assert other.param_groups[0]["params"][0] is others[0]
    assert set(map(id, other.state)) == set(map(id, others))


def test_pytorchs_state_is_taken_up_after_conversion() -> None:
    """The two write the same dict; only the tensors in it are of another kind."""
    params, theirs = parameters(mini), parameters(torch)
    ours, other = optim.Adam(params, lr=0.1), torch.optim.Adam(theirs, lr=0.1)
    for step in range(5):
        give_grads(torch, theirs, step)
        other.step()
    saved = other.state_dict()
    converted = {
        number: {name: mini.from_numpy(value.numpy().copy()) for name, value in entries.items()}
        for number, entries in saved["state"].items()
    }
    ours.load_state_dict({"state": converted, "param_groups": saved["param_groups"]})
    for a, b in zip(params, theirs, strict=True):
        a.data = mini.from_numpy(b.detach().numpy().copy())
    for step in range(5, STEPS):
        for lib, each, by in ((mini, params, ours), (torch, theirs, other)):
            give_grads(lib, each, step)
            by.step()
    for a, b in zip(params, theirs, strict=True):
        close(a, b, 1e-12, 1e-13)


programs = Programs()


def two(lib: Any) -> list[Any]:
    made = [lib.nn.Parameter(lib.ones(2)), lib.nn.Parameter(lib.full((3,), 2.0))]
    for parameter in made:
        parameter.grad = lib.ones_like(parameter)
    return made


@programs
def groups(lib: Any) -> Any:
    a, b = two(lib)
    given = [{"params": [a]}, {"params": b, "lr": 1.0, "mine": 5}]
    optimizer = lib.optim.SGD(given, lr=0.5, momentum=0.1)
    optimizer.step()
    return a, b, optimizer.state_dict(), repr(optimizer), optimizer.param_groups[1] is given[1]


@programs
def a_group_added_later(lib: Any) -> Any:
    a, b = two(lib)
    optimizer = lib.optim.Adam([a], lr=0.5)
    optimizer.step()
    optimizer.add_param_group({"params": b, "betas": (0.5, 0.5)})
    optimizer.step()
    return a, b, optimizer.state_dict()


@programs
def settings_changed_on_the_way(lib: Any) -> Any:
    a, b = two(lib)
    optimizer = lib.optim.SGD([a, b], lr=0.5)
    optimizer.step()
    optimizer.param_groups[0]["lr"] *= 0.1
    optimizer.step()
    return a, b


@programs
def named_parameters(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    optimizer = lib.optim.SGD(m.named_parameters(), lr=0.1)
    m(lib.ones(1, 2)).sum().backward()
    optimizer.step()
    return optimizer.state_dict(), repr(optimizer), m.state_dict()


@programs
def settings_as_tensors(lib: Any) -> Any:
    a, b = two(lib)
    lib.optim.SGD([a], lr=lib.tensor(0.5), foreach=False).step()
    lib.optim.Adam([b], lr=lib.tensor(0.5), foreach=False).step()
    return a, b


@programs
def a_closure(lib: Any) -> Any:
    a, _ = two(lib)
    optimizer = lib.optim.SGD([a], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with lib.no_grad():
        loss = optimizer.step(closure)
    return loss, a, lib.is_grad_enabled()


@programs
def a_closure_that_raises(lib: Any) -> Any:
    a, _ = two(lib)
    seen = []
    try:
        lib.optim.SGD([a], lr=0.5).step(lambda: 1 // 0)
    except ZeroDivisionError:
        seen.append(lib.is_grad_enabled())
    with lib.no_grad():
        try:
            lib.optim.SGD([a], lr=0.5).step(lambda: 1 // 0)
        except ZeroDivisionError:
            seen.append(lib.is_grad_enabled())
    return seen, a


@programs
def gradients_forgotten(lib: Any) -> Any:
    a, b = two(lib)
    optimizer = lib.optim.SGD([a, b])
    grad = a.grad
    optimizer.zero_grad(set_to_none=False)
    zeroed = a.grad is grad, a.grad.clone()
    optimizer.zero_grad()
    optimizer.zero_grad(set_to_none=False)
    return zeroed, a.grad, b.grad


@programs
def step_hooks(lib: Any) -> Any:
    a, _ = two(lib)
    optimizer, seen = lib.optim.SGD([a], lr=0.5), []
    before = optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append(("pre", opt is optimizer)))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append(("post", a.tolist())))
    optimizer.step()
    before.remove()
    optimizer.step()
    return seen


@programs
def a_differentiable_step(lib: Any) -> Any:
    x = lib.ones(2, requires_grad=True)
    weights = x * 2
    weights.grad = x * 3
    optimizer = lib.optim.SGD([weights], lr=0.5, differentiable=True)
    optimizer.step()
    weights.sum().backward()
    return x.grad, weights


@programs
def a_leaf_in_a_differentiable_step(lib: Any) -> Any:
    a, _ = two(lib)
    lib.optim.SGD([a], lr=0.5, differentiable=True).step()


@programs
def the_step_leaves_no_history(lib: Any) -> Any:
    a, b = two(lib)
    lib.optim.SGD([a, b], lr=0.5, momentum=0.5, weight_decay=0.1).step()
    return a.is_leaf, a.grad_fn is None, a.requires_grad, a.grad


@programs
def saved_weights_changed_by_the_step(lib: Any) -> Any:
    a, _ = two(lib)
    loss = (a * a).sum()
    lib.optim.SGD([a], lr=0.5).step()
    loss.backward()


@programs
def gradients_laid_out_otherwise(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.arange(6.0).reshape(3, 2).t())
    p.grad = lib.ones(2, 3)
    optimizer = lib.optim.SGD([p], lr=0.5, momentum=0.5)
    optimizer.step()
    optimizer.step()
    adam = lib.optim.Adam([p])
    adam.step()
    return p, adam.state[p]["exp_avg"]


@programs
def a_parameter_twice_in_a_group(lib: Any) -> Any:
    a, _ = two(lib)
    lib.optim.SGD([a, a], lr=0.5, foreach=False).step()
    return a


for _nr, _wrong in enumerate(
    (
        lambda lib: lib.optim.SGD([]),
        lambda lib: lib.optim.SGD(lib.ones(2)),
        lambda lib: lib.optim.SGD([3]),
        lambda lib: lib.optim.SGD([{"params": {lib.ones(1)}}]),
        lambda lib: lib.optim.SGD([{"lr": 1.0}]),
        lambda lib: lib.optim.SGD([lib.ones(1, requires_grad=True) * 2]),
        lambda lib: lib.optim.SGD([{"params": [p := lib.ones(1)]}, {"params": [p]}]),
        lambda lib: lib.optim.SGD([lib.ones(1)], lr=-1.0),
        lambda lib: lib.optim.SGD([lib.ones(1)], momentum=-1.0),
        lambda lib: lib.optim.SGD([lib.ones(1)], weight_decay=-1.0),
        lambda lib: lib.optim.SGD([lib.ones(1)], nesterov=True),
        lambda lib: lib.optim.SGD([lib.ones(1)], momentum=0.5, dampening=0.1, nesterov=True),
        lambda lib: lib.optim.SGD([lib.ones(1)], lr=lib.ones(2)),
        lambda lib: lib.optim.Adam([lib.ones(1)], lr=-1.0),
        lambda lib: lib.optim.Adam([lib.ones(1)], eps=-1.0),
        lambda lib: lib.optim.Adam([lib.ones(1)], betas=(1.0, 0.9)),
        lambda lib: lib.optim.Adam([lib.ones(1)], betas=(0.9, -0.1)),
        lambda lib: lib.optim.Adam([lib.ones(1)], weight_decay=-1.0),
        lambda lib: lib.optim.AdamW([lib.ones(1)], weight_decay=-1.0),
        lambda lib: lib.optim.SGD([lib.ones(1)]).add_param_group(3),
        lambda lib: lib.optim.SGD([("a", lib.ones(1)), lib.ones(1)]),
        lambda lib: lib.optim.SGD([("a", lib.ones(1))]).add_param_group({"params": [lib.ones(1)]}),
        lambda lib: lib.optim.SGD([lib.ones(1)]).load_state_dict(lib.optim.SGD(two(lib)).state_dict()),
        lambda lib: lib.optim.SGD([lib.ones(1)]).load_state_dict({"state": {}, "param_groups": []}),
        lambda lib: lib.optim.Optimizer([lib.ones(1)], {}).step(),
    )
):
    _wrong.__name__ = f"misused optimizer {_nr}"
    programs(_wrong)


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_a_program_ends_alike_in_both(program: Callable[[Any], Any]) -> None:
    agree(program)


def test_steps_on_the_simulated_device_are_those_of_the_cpu() -> None:
    for name in ("SGD", "Adam"):
        finals = []
        for device in ("cpu", "sim"):
            params = [nn.Parameter(of(mini, np.asarray(values), "float32").to(device)) for values in BEGIN]
            optimizer = getattr(optim, name)(params, lr=0.1, weight_decay=0.1)
            for step in range(5):
                for parameter, grad in zip(params, GRADS[step], strict=True):
                    if grad is not None:
                        parameter.grad = of(mini, np.asarray(grad), "float32").to(device)
                optimizer.step()
            finals.append([p.detach().cpu().numpy() for p in params])
            assert all(p.device.type == device for p in params)
        for a, b in zip(*finals, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_optimizer_of_ones_own() -> None:
    class SignSGD(optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        def update(self, group: dict[str, Any], params: list[Any]) -> None:
            for parameter in params:
                parameter.add_(parameter.grad.sign(), alpha=-group["lr"])

    ours, _ = pair([1.0, 2.0])
    parameter = nn.Parameter(ours)
    parameter.grad = mini.tensor([-5.0, 3.0], dtype=mini.float64)
    SignSGD([parameter], lr=0.5).step()
    assert parameter.tolist() == [1.5, 1.5]
