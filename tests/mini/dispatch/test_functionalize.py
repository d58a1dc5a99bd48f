"""Facts about functionalize: the same results as the program, and no operator below it that writes."""

from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.mini.c10.local_dispatch_key_set import local_keys
from glassbox.mini.modes.functional_form import functional_form

from .programs import approx, log_of, numbers

PROGRAMS: dict[str, Any] = {}


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


@program
def in_place(t: Any, x: Any) -> Any:
    y = x.clone()
    y.add_(1).mul_(2)
    y.relu_()
    return y


@program
def through_select(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0].add_(1)
    return y


@program
def through_slice(t: Any, x: Any) -> Any:
    y = x.clone()
    y[1:].mul_(2)
    y[:, ::2].sub_(1)
    return y


@program
def views_of_views(t: Any, x: Any) -> Any:
    y = x.clone()
    v = y.view(-1)
    v[2:5].relu_()
    w = y.t()
    w.add_(1)
    return y + 1, v, w


@program
def indexed_writes(t: Any, x: Any) -> Any:
    y = x.clone()
    y[:, 1] = x[:, 0]
    return y


@program
def zero_and_fill(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0].zero_()
    y[1].fill_(3.0)
    y.copy_(y + x)
    return y


@program
def split(t: Any, x: Any) -> Any:
    y = x.clone()
    a, b = y.split(1)
    a.add_(1)
    b.mul_(a)
    return y


@program
def unbind(t: Any, x: Any) -> Any:
    y = x.clone()
    a, b = y.unbind(0)
    a.add_(b)
    return y


@program
def permuted(t: Any, x: Any) -> Any:
    y = x.clone()
    y.permute(1, 0).sub_(1)
    y.transpose(0, 1).add_(2)
    y.unsqueeze(0).mul_(3)
    return y


@program
def as_strided(t: Any, x: Any) -> Any:
    y = x.clone()
    y.as_strided((2, 2), (3, 1), 1).add_(1)
    return y


@program
def out_variant(t: Any, x: Any) -> Any:
    y = t.empty_like(x)
    t.add(x, x, out=y)
    return y * y


@program
def factory(t: Any, x: Any) -> Any:
    y = t.zeros(3)
    y.add_(x[0])
    return y


@program
def through_detach(t: Any, x: Any) -> Any:
    y = x.clone()
    y.detach().add_(1)
    return y


@program
def pure(t: Any, x: Any) -> Any:
    return (x + 1).view(-1).sum()


@program
def composites(t: Any, x: Any) -> Any:
    y = x.reshape(6).clone()
    y.view(2, 3).add_(1)
    return y.flatten(), y.view(3, 2) @ x


def value(t: Any) -> Any:
    return (t.arange(6) * 0.5 - 1.0).view(2, 3)


def transformed(t: Any) -> Any:
    return torch.func.functionalize if t is torch else mini.functionalize


def log_below(t: Any, name: str) -> list[str]:
    x = value(t)
    return log_of(t, lambda t: transformed(t)(lambda x: PROGRAMS[name](t, x))(x))


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_programs_own(name: str) -> None:
    found = []
    for t in (torch, mini):
        found.append(numbers(PROGRAMS[name](t, value(t))))
        found.append(numbers(transformed(t)(lambda x, t=t: PROGRAMS[name](t, x))(value(t))))
    assert found[3] == approx(found[2])
    assert found[3] == approx(found[1])
    assert found[1] == approx(found[0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_operator_below_writes(name: str) -> None:
    with mini.record() as seen:
        mini.functionalize(lambda x: PROGRAMS[name](mini, x))(value(mini))
    assert len(seen.ops) >= 3 or name == "pure"
    assert [str(call) for call in seen.ops if call.effect == "write"] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_operators_below_are_torchs(name: str) -> None:
    assert log_below(mini, name) == log_below(torch, name)


def test_the_log_of_a_write_through_a_view() -> None:
    assert [line.split("(")[0].split()[-1] for line in log_below(mini, "through_select")] == [
        "aten.clone.default",
        "aten.select.int",
        "aten.add.Tensor",
        "aten.select_scatter.default",
        "aten.select.int",
    ]


def test_a_write_to_an_argument_is_one_copy_at_the_end() -> None:
    logs = []
    for t in (torch, mini):

        def function(x: Any) -> Any:
            x.add_(1)
            x[0].mul_(3)
            return x * 2

        x = value(t)
        plain = value(t)
        expected = numbers(function(plain))
        result: list[Any] = []
        logs.append(log_of(t, lambda t, x=x, result=result: result.append(transformed(t)(function)(x))))
        assert numbers(result[0]) == expected
        assert numbers(x) == numbers(plain)
    assert logs[1] == logs[0]
    assert [line.split("(")[0] for line in logs[1] if "_." in line] == ["f32[2, 3] = aten.copy_.default"]


def test_gradients_flow_through_it() -> None:
    grads = []
    for t in (torch, mini):
        x = value(t).requires_grad_()

        def function(x: Any) -> Any:
            y = x.clone()
            y[0].mul_(2)
            y[1:].mul_(x[:1])
            return y.sum()

        transformed(t)(function)(x).backward()
        grads.append(numbers(x.grad))
        z = value(t).requires_grad_()
        function(z).backward()
        grads.append(numbers(z.grad))
    assert grads[0] == grads[1] == grads[2] == grads[3]


def test_inside_vmap_and_with_structures() -> None:
    def function(pair: Any) -> Any:
        x, y = pair
        z = x.clone()
        z.add_(y)
        return {"sum": z, "y": y}

    for t in (torch, mini):
        x = value(t)
        result = t.vmap(lambda x, t=t: transformed(t)(function)((x, x))["sum"])(x)
        assert numbers(result) == numbers(x + x)
    assert list(mini.functionalize(function)((value(mini), value(mini)))) == ["sum", "y"]


def test_an_in_place_operator_keeps_its_rules() -> None:
    for t in (torch, mini):
        with pytest.raises(RuntimeError, match="can't be cast|are not possible"):
            transformed(t)(lambda x: x.clone().add_(1.5))(t.arange(3))
        with pytest.raises(RuntimeError):
            transformed(t)(lambda x, t=t: x.clone().add_(t.ones(2, 3)))(t.ones(3))


def test_a_write_of_the_programs_values_to_a_tensor_outside_is_refused() -> None:
    for t in (torch, mini):
        outside = t.zeros(3)
        with pytest.raises(RuntimeError):
            transformed(t)(lambda x, outside=outside: outside.add_(x))(t.ones(3))


def test_only_mutations_can_be_removed() -> None:
    with pytest.raises(RuntimeError, match="mutations_and_views"):
        mini.functionalize(lambda x: x, remove="mutations_and_views")
    with pytest.raises(RuntimeError):
        torch.func.functionalize(lambda x: x, remove="nonsense")(torch.ones(2))


def test_an_exception_leaves_nothing_behind() -> None:
    before = local_keys.get()
    with pytest.raises(ZeroDivisionError):
        mini.functionalize(lambda x: 1 / 0)(mini.ones(2))
    assert local_keys.get() == before


def test_its_hops_are_torchs() -> None:
    x = mini.ones(2)
    with mini.record() as seen:
        mini.functionalize(mini.sin)(x)
    assert [(hop.depth, hop.key, hop.kind) for hop in seen.hops] == [
        (0, "FuncTorchDynamicLayerFrontMode", "backend fallback"),
        (1, "Functionalize", "backend fallback"),
        (2, "FuncTorchDynamicLayerBackMode", "backend fallback"),
        (3, "AutogradCPU", "autograd kernel"),
        (4, "CPU", "kernel"),
    ]


def test_functional_forms_have_the_same_arguments() -> None:
    def of(name: str) -> str:
        form = functional_form(dispatcher.find_schema_or_throw(name))
        return form.schema.key if form is not None else ""

    assert [
        of(name) for name in ("add_.Tensor", "add.out", "eq_.Scalar", "eq_.Tensor", "transpose_", "max.dim_max")
    ] == [
        "add.Tensor",
        "add.Tensor",
        "eq.Scalar",
        "eq.Tensor",
        "transpose.int",
        "max.dim",
    ]
    assert of("uniform_") == ""


def test_the_scatters_are_torchs() -> None:
    for t in (torch, mini):
        x = value(t)
        assert t.select_scatter(x, t.ones(3), 0, -1).tolist()[1] == [1.0, 1.0, 1.0]
        assert numbers(x) == numbers(value(t))
    for name, args in {
        "slice_scatter": lambda t: (t.zeros(2, 2), 1, 0, 3, 2),
        "select_scatter": lambda t: (t.zeros(2), 1, 2),
        "as_strided_scatter": lambda t: (t.zeros(2, 2), (2, 2), (1, 2), 1),
    }.items():
        its = getattr(torch, name)(value(torch).t().contiguous().t(), *args(torch))
        ours = getattr(mini, name)(value(mini).t().contiguous().t(), *args(mini))
        assert numbers(ours) == numbers(its) and ours.stride() == its.stride()
        with pytest.raises(RuntimeError, match="size"):
            getattr(mini, name)(value(mini), mini.zeros(7), *args(mini)[1:])
