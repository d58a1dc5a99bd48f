"""Facts about mini.library and mini.ops: operators and kernels from outside, and how they are called."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher

from .programs import numbers


@pytest.fixture(params=[torch, mini], ids=["torch", "mini"])
def t(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def lib(t: Any) -> Iterator[Any]:
    made = t.library.Library("mine", "DEF")
    yield made
    made._destroy()


def test_an_op_in_ten_lines(t: Any, lib: Any) -> None:
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    x = t.ones(2, requires_grad=True)
    y = t.ops.mine.twice(x)
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [2.0, 2.0]
    assert numbers(t.vmap(t.ops.mine.twice)(t.ones(2, 3))) == [[2.0] * 3] * 2
    table = t._C._dispatch_dump_table("mine::twice")
    assert "[math kernel]" in table and "CPU: registered at" in table


def test_an_op_with_a_kernel_per_backend_and_a_derivative(t: Any, lib: Any) -> None:
    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: x * x * x, "CPU")

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad

    t.library.register_autograd("mine::cube", backward, setup_context=setup_context, lib=lib)
    x = t.arange(3).to(t.float32).requires_grad_()
    y = t.ops.mine.cube(x)
    y.sum().backward()
    assert y.tolist() == [0.0, 1.0, 8.0] and x.grad.tolist() == [0.0, 3.0, 12.0]
    assert y.grad_fn.name().startswith("GeneratedBackwardFor_mine_cube_default")
    (second,) = t.autograd.grad(t.autograd.grad(t.ops.mine.cube(x).sum(), x, create_graph=True)[0].sum(), x)
    assert second.tolist() == [0.0, 6.0, 12.0]
    with t.no_grad():
        assert t.ops.mine.cube(x).grad_fn is None


def test_a_derivative_of_an_op_with_options(t: Any, lib: Any) -> None:
    lib.define("scale(Tensor x, int times=2, *, float by=1.5) -> Tensor")
    lib.impl("scale", lambda x, times=2, *, by=1.5: x * (times * by), "CPU")
    seen: list[Any] = []

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.append((len(inputs), inputs[1], keyword_only_inputs))
        ctx.factor = inputs[1] * keyword_only_inputs["by"]

    t.library.register_autograd(
        "mine::scale", lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup_context, lib=lib
    )
    x = t.ones(2, requires_grad=True)
    t.ops.mine.scale(x, by=2.0).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    assert seen == [(2, 2, {"by": 2.0})]


def test_a_derivative_of_what_writes_is_refused(t: Any, lib: Any) -> None:
    lib.define("bump(Tensor(a!) x) -> Tensor(a!)")
    with pytest.raises(RuntimeError, match="non-functional operator"):
        t.library.register_autograd("mine::bump", lambda ctx, grad: grad, lib=lib)


def test_an_autograd_kernel_by_hand(t: Any, lib: Any) -> None:
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    below = t._C._dispatch_keyset_full_after(t._C._parse_dispatch_key("AutogradOther"))
    kept: list[str] = []

    class Twice(t.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, keys: Any, x: Any) -> Any:
            kept.append(str(keys))
            return t.ops.mine.twice.default.redispatch(keys & below, x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None, grad * 2

    lib.impl("twice", lambda keys, x: Twice.apply(keys, x), "AutogradCPU", with_keyset=True)
    x = t.ones(2, requires_grad=True)
    t.ops.mine.twice(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert kept == ["DispatchKeySet(CPU, AutogradCPU)"]


def test_an_op_without_a_derivative_warns_when_a_gradient_comes(t: Any, lib: Any) -> None:
    lib.define("opaque(Tensor x) -> Tensor")
    lib.impl("opaque", lambda x: t.from_numpy(x.detach().numpy() * 2), "CPU")
    x = t.ones(2, requires_grad=True)
    y = t.ops.mine.opaque(x)
    assert y.requires_grad
    with pytest.warns(UserWarning, match="mine::opaque: an autograd kernel was not registered"):
        y.sum().backward()
    assert x.grad is None


def test_what_a_kernel_makes_of_operators_has_their_history(t: Any, lib: Any) -> None:
    lib.define("plain(Tensor x) -> Tensor")
    lib.impl("plain", lambda x: x * 2, "CPU")
    x = t.ones(2, requires_grad=True)
    y = t.ops.mine.plain(x)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_defining_an_op_twice_is_an_error(t: Any, lib: Any) -> None:
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="mine::f"):
        lib.define("f(Tensor x, int n) -> Tensor")
    lib.define("f.two(Tensor x, int n) -> Tensor")
    assert t.ops.mine.f.overloads() == ["default", "two"]


def test_a_namespace_is_defined_once(t: Any, lib: Any) -> None:
    with pytest.raises(RuntimeError, match="namespace mine"):
        t.library.Library("mine", "DEF")
    more = t.library.Library("mine", "FRAGMENT")
    more.define("g(Tensor x) -> Tensor")
    assert str(t.ops.mine.g.default) == "mine.g.default"
    more._destroy()


def test_kinds_keys_and_kernels_that_are_none(t: Any, lib: Any) -> None:
    with pytest.raises(ValueError, match="kind"):
        t.library.Library("other", "SOME")
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="CPUU"):
        lib.impl("f", lambda x: x, "CPUU")
    with pytest.raises(TypeError, match="int"):
        lib.impl("f", 5, "CPU")
    with pytest.raises(RuntimeError):
        t.library.Library("mine", "IMPL").define("h(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match='"_"'):
        t.library.Library("mine", "IMPL").fallback(lambda op, *args: None, "CPU")


def test_a_second_kernel_can_be_refused(t: Any, lib: Any) -> None:
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    with pytest.raises(RuntimeError, match="This is not allowed since there's already a kernel registered from"):
        lib.impl("f", lambda x: x + 2, "CPU", allow_override=False)
    lib.impl("f", lambda x: x + 3, "CPU")
    assert t.ops.mine.f(t.ones(1)).item() == 4.0


def test_an_alias_key_has_no_fallback_and_undefined_no_kernel() -> None:
    with pytest.raises(ValueError, match="backend fallback needs a runtime key"):
        mini.library.Library("_", "IMPL").fallback(lambda op, *args: None, "Autograd")
    with mini.library.Library("mine", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        with pytest.raises(ValueError, match="cannot be registered to Undefined"):
            lib.impl("f", lambda x: x, "Undefined")
        with pytest.raises(RuntimeError, match="no operator is called 'mine::g'"):
            lib.impl("g", lambda x: x, "CPU")
        with pytest.raises(RuntimeError, match="its overloads are mine::f"):
            lib.impl("f.nope", lambda x: x, "CPU")


def test_taking_a_library_back_leaves_nothing() -> None:
    before = {op.name: op.dump() for op in dispatcher.operators.values()}
    fallbacks = {key.name: len(kernels) for key, kernels in dispatcher.fallbacks.items() if kernels}
    with mini.library.Library("mine", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x, "CPU")
        held = mini.ops.mine.f.default
        with mini.library.Library("aten", "IMPL") as more:
            more.impl("add.Tensor", lambda x, y, *, alpha=1: x, "CPU")
            more.impl("sin", mini.library.fallthrough_kernel, "AutogradCPU")
        with mini.library.Library("_", "IMPL") as rest:
            rest.fallback(lambda op, *args, **kwargs: None, "TESTING_ONLY_GenericMode")
    assert {op.name: op.dump() for op in dispatcher.operators.values()} == before
    assert {key.name: len(kernels) for key, kernels in dispatcher.fallbacks.items() if kernels} == fallbacks
    assert (mini.ones(1) + mini.ones(1)).item() == 2.0
    with pytest.raises(AttributeError, match="no op is called mine.f"):
        _ = mini.ops.mine.f
    with pytest.raises(NotImplementedError, match="mine::f"):
        held(mini.ones(1))


def test_module_level_registration() -> None:
    with mini.library.Library("mine", "FRAGMENT") as lib:
        mini.library.define("mine::f(Tensor x) -> Tensor", lib=lib)

        @mini.library.impl("mine::f", "CPU", lib=lib)
        def kernel(x: Any) -> Any:
            return x + 1

        assert kernel(mini.ones(1)).item() == 2.0
        assert mini.ops.mine.f(mini.ones(1)).item() == 2.0


def test_a_kernel_that_was_fetched_can_be_called_from_a_hook(t: Any) -> None:
    fetched = t.library.get_kernel("aten::sin", "CPU")
    seen: list[str] = []

    def hook(keys: Any, x: Any) -> Any:
        seen.append(str(keys))
        return fetched.call_boxed(keys, x)

    hooks = t.library.Library("aten", "IMPL")
    hooks.impl("sin", hook, "CPU", with_keyset=True, allow_override=True)
    try:
        assert t.zeros(2).sin().tolist() == [0.0, 0.0]
    finally:
        hooks._destroy()
    t.zeros(2).sin()
    assert seen == ["DispatchKeySet(CPU)"]


def test_a_row_without_a_kernel_has_none_to_fetch() -> None:
    with pytest.raises(RuntimeError, match="no kernel of aten::relu can be called for FPGA"):
        mini.library.get_kernel("aten::relu", "FPGA")


# mini.ops


def test_packets_find_the_overload(t: Any) -> None:
    x = t.ones(2, 3)
    aten = t.ops.aten
    assert aten.add(x, 1).sum().item() == 12.0
    assert aten.sum(x).item() == 6.0
    assert aten.sum(x, [1]).tolist() == [3.0, 3.0]
    assert [each.tolist() for each in aten.max(x, 1)] == [[1.0, 1.0], [0, 0]]
    assert type(aten.split(x, 1)) is type(aten.split.Tensor(x, 1)) is list
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        aten.add("a", x)
    with pytest.raises(RuntimeError, match="aten::add"):
        aten.add.Tensor(x)
    with pytest.raises(AttributeError, match="nope"):
        _ = aten.nope
    with pytest.raises(AttributeError, match="nope"):
        _ = aten.add.nope


def test_overloads_say_what_they_are(t: Any) -> None:
    add, relu = t.ops.aten.add.Tensor, t.ops.aten.relu.default
    assert (str(add), repr(add), add.name(), add.__name__) == (
        "aten.add.Tensor",
        "<OpOverload(op='aten.add', overload='Tensor')>",
        "aten::add.Tensor",
        "add.Tensor",
    )
    assert (str(relu), relu.name(), relu._overloadname, relu._schema.overload_name) == (
        "aten.relu.default",
        "aten::relu",
        "default",
        "",
    )
    assert str(t.ops.aten.add) == "aten.add" and repr(t.ops.aten.add) == "<OpOverloadPacket(op='aten.add')>"
    assert add.overloadpacket == t.ops.aten.add and t.ops.aten.add.Tensor is add
    assert {"Tensor", "out"} <= set(t.ops.aten.add.overloads())
    assert add.namespace == "aten"


def test_a_composite_can_be_taken_apart(t: Any) -> None:
    x = t.ones(2, 2)
    assert t.ops.aten.matmul.default.decompose(x, x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert t.ops.aten.mm.default.decompose(x, x) is NotImplemented


def test_names_can_be_listed() -> None:
    assert {"aten"} <= set(dir(mini.ops))
    assert {"add", "relu", "mm"} <= set(dir(mini.ops.aten)) and "add" in list(mini.ops.aten)
    assert {"Tensor", "out"} <= set(dir(mini.ops.aten.add))


def test_dump_and_table_read_as_torchs() -> None:
    text = mini._C._dispatch_dump("aten::add.Tensor")
    assert (
        text.splitlines()[0] == torch._C._dispatch_dump("aten::add.Tensor").splitlines()[0] == "name: aten::add.Tensor"
    )
    assert "Autograd[alias]: registered at" in text
    line = next(
        line for line in mini._C._dispatch_dump_table("aten::add.Tensor").splitlines() if line.startswith("CPU:")
    )
    assert line.startswith("CPU: registered at glassbox/mini/aten/native/") and line.endswith("[kernel]")


def test_a_kernel_without_a_key_is_for_composite_implicit_autograd() -> None:
    for lib, namespace in ((torch, "keyless_torch"), (mini, "keyless_mini")):
        library = lib.library.Library(namespace, "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x)
        x = lib.ones(2, requires_grad=True)
        getattr(lib.ops, namespace).twice(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        library._destroy()


def test_an_op_of_two_results_without_a_derivative_warns_and_sends_nothing_on() -> None:
    for lib, namespace in ((torch, "pair_torch"), (mini, "pair_mini")):
        library = lib.library.Library(namespace, "DEF")
        library.define("pair(Tensor x) -> (Tensor, Tensor)")
        library.impl("pair", lambda x: (x.detach().sum(), x.detach() * 2), "CPU")
        x = lib.ones(3, requires_grad=True)
        total, double = getattr(lib.ops, namespace).pair(x)
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            (total + double.sum() + x.sum()).backward()
        assert x.grad.tolist() == [1.0, 1.0, 1.0]
        library._destroy()


@pytest.mark.parametrize(
    ("returns", "given"),
    [("(Tensor, Tensor)", "tensor"), ("Tensor", 3), ("Tensor[]", "tensor"), ("(Tensor, Tensor)", 3)],
)
def test_a_kernel_must_return_what_its_schema_says(returns: str, given: object) -> None:
    for lib, namespace in ((torch, "wrong_torch"), (mini, "wrong_mini")):
        x = lib.ones(2)
        library = lib.library.Library(namespace, "DEF")
        library.define(f"f(Tensor x) -> {returns}")
        library.impl("f", lambda x: x if given == "tensor" else given, "CPU")
        with pytest.raises((RuntimeError, TypeError)):
            getattr(lib.ops, namespace).f(x)
        library._destroy()
