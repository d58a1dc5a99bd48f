"""Facts about TorchDispatchMode: what a mode sees, forward and backward, is what PyTorch's sees."""

import threading
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.modes import current_modes, enable_reentrant_dispatch

from .programs import MODES, log_of, numbers

PROGRAMS: dict[str, Any] = {}


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


def x23(t: Any, grad: bool = True) -> Any:
    return (t.arange(6) * 0.5 - 1.0).view(2, 3).detach().requires_grad_(grad)


@program
def the_briefs_experiment(t: Any) -> None:
    a, b = t.ones(2, 3, requires_grad=True), t.ones(2, 3)
    (a + b).relu().sum().backward()


@program
def scalars_and_keywords(t: Any) -> None:
    a = x23(t)
    y = t.add(a, a, alpha=2) + 1.5
    y = 1 - (y * 2 - 3)
    y = y / 4
    y = y.sum(1, keepdim=True, dtype=t.float64)
    y.mean().backward()


@program
def views(t: Any) -> None:
    a = x23(t)
    b = a.t().reshape(2, 3).unsqueeze(0).expand(4, 2, 3).permute(2, 0, 1)
    c = b[0, 1:].transpose(0, 1).contiguous().view(-1)
    c.sum().backward()


@program
def several_results(t: Any) -> None:
    a = x23(t)
    values, _ = a.detach().max(1)
    left, right = a.split([1, 2], 1)
    p, q = a.unbind(0)
    (values.sum() + left.sum() * right.sum() + (p * q).sum()).backward()


@program
def in_place(t: Any) -> None:
    a = x23(t)
    b = a * 2
    b.add_(1).mul_(a)
    b[0].zero_()
    b.relu_()
    b.sum().backward()


@program
def a_layer_and_a_loss(t: Any) -> None:
    x, w, bias = x23(t, False), x23(t), t.ones(2, requires_grad=True)
    h = (x @ w.t() + bias).tanh()
    loss = -(h.log_softmax(1) * t.eye(2)).sum(1).mean()
    loss.backward()


@program
def softmax_and_products(t: Any) -> None:
    a = x23(t)
    s = a.softmax(-1)
    y = s.mm(a.t()).exp().log().sigmoid()
    (y.pow(2) + y.sqrt()).sum().backward()


@program
def composites(t: Any) -> None:
    a = x23(t)
    b = t.ones(2, 3, 4).matmul(t.ones(4, 2)).flatten()
    (a.square().sum() + b.sum()).backward()


@program
def composites_whole_in_inference_mode(t: Any) -> None:
    with t.inference_mode():
        a = t.ones(2, 3)
        a.matmul(a.t()).square().flatten()


@program
def no_grad(t: Any) -> None:
    a = x23(t)
    with t.no_grad():
        (a * a).sum()
        a.add_(1)


@program
def factories(t: Any) -> None:
    t.zeros(2, 3)
    t.ones(2, dtype=t.int64)
    t.full((2,), 3.0)
    t.arange(3)
    t.arange(1, 7, 2)
    t.rand(2)
    t.randn(2)
    t.empty(2)
    a = x23(t)
    t.zeros_like(a)
    a.new_zeros(3)


@program
def copies_and_casts(t: Any) -> None:
    a = x23(t)
    b = a.to(t.float64).clone()
    c = a.to(t.float32)
    d = a.detach()
    assert c is a and not d.requires_grad
    (b.to(t.bfloat16).sum() + a.sum()).backward()


@program
def indexing(t: Any) -> None:
    a = x23(t)
    b = a[:, 1] + a[0, 0]
    with t.no_grad():
        a[a > 0]
        a.index_select(1, t.arange(2))
        t.where(a > 0, a, a * 2)
        a[t.arange(2), 1:]
    c = a.clone()
    c[0] = 7.0
    c[:, 1:] = a[:, :2]
    (b.sum() + c.sum()).backward()


@program
def joining(t: Any) -> None:
    a = x23(t)
    t.stack([a.detach(), a.detach()], 1)
    t.cat([a, a * 2], 0).sum().backward()


@program
def gradients_twice(t: Any) -> None:
    a = x23(t)
    y = (a * a * a).sum()
    (g,) = t.autograd.grad(y, a, create_graph=True)
    g.sum().backward()


@program
def under_autocast(t: Any) -> None:
    a, w = x23(t), x23(t)
    with t.autocast("cpu", dtype=t.bfloat16):
        y = a @ w.t() + 1
    y.sum().backward()


@program
def looked_at(t: Any) -> None:
    a = x23(t)
    a.sum().item()
    float(a.detach()[0, 0])
    a.tolist()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_sees_what_pytorchs_sees(name: str) -> None:
    expected = log_of(torch, PROGRAMS[name])
    assert log_of(mini, PROGRAMS[name]) == expected
    assert len(expected) >= 2


def test_the_log_of_the_briefs_experiment() -> None:
    assert log_of(mini, lambda t: (t.ones(2, 3) + t.ones(2, 3)).relu().sum()) == [
        "f32[2, 3] = aten.ones.default(list(2, 3))",
        "f32[2, 3] = aten.ones.default(list(2, 3))",
        "f32[2, 3] = aten.add.Tensor(f32[2, 3], f32[2, 3])",
        "f32[2, 3] = aten.relu.default(f32[2, 3])",
        "f32[] = aten.sum.default(f32[2, 3])",
    ]


def handling(t: Any, handler: Any) -> Any:
    """A mode of t that does handler(func, args, kwargs)."""

    class Handling(MODES[t]):  # type: ignore[misc]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return handler(func, args, kwargs or {})

    return Handling()


def local(t: Any) -> tuple[int, int]:
    c = t._C
    return c._dispatch_tls_local_include_set().raw_repr(), c._dispatch_tls_local_exclude_set().raw_repr()


@pytest.mark.parametrize("modes", [1, 2, 3])
@pytest.mark.parametrize("inference", [False, True])
def test_a_handler_runs_with_torchs_key_sets(modes: int, inference: bool) -> None:
    found: dict[Any, list[Any]] = {torch: [], mini: []}
    for t in (torch, mini):

        def look(func: Any, args: Any, kwargs: Any, t: Any = t) -> Any:
            found[t].append((str(func), local(t)))
            return func(*args, **kwargs)

        before = local(t)
        stack = [handling(t, look) for _ in range(modes)]
        x = t.ones(2)
        with t.inference_mode(inference):
            for mode in stack:
                mode.__enter__()
            found[t].append(local(t))
            x + x
            for mode in reversed(stack):
                mode.__exit__(None, None, None)
        assert local(t) == before
    assert found[mini] == found[torch]
    assert len(found[mini]) == modes + 1


def test_the_innermost_mode_sees_a_call_first_and_may_answer_alone() -> None:
    for t in (torch, mini):
        seen: list[str] = []

        def naming(name: str, seen: list[str] = seen) -> Any:
            def handler(func: Any, args: Any, kwargs: Any) -> Any:
                seen.append(name)
                return func(*args, **kwargs)

            return handler

        x = t.ones(2)
        with handling(t, naming("outer")), handling(t, naming("inner")):
            x + x
        assert seen == ["inner", "outer"]
        seen.clear()
        with handling(t, naming("outer")), handling(t, lambda func, args, kwargs, x=x: x * 0 + 7):
            assert (x + x).tolist() == [7.0, 7.0]
        assert seen == ["outer", "outer"]


def test_what_a_handler_returns_gets_its_grad_fn_above() -> None:
    for t in (torch, mini):
        a = t.ones(2, requires_grad=True)
        inside: list[Any] = []

        def plain(func: Any, args: Any, kwargs: Any, inside: list[Any] = inside) -> Any:
            result = func(*args, **kwargs)
            inside.append(result.grad_fn)
            return result

        with handling(t, plain):
            y = a * 3
        assert inside == [None]
        assert y.grad_fn.name() == "MulBackward0"


def test_an_exception_leaves_no_mode_behind() -> None:
    for t in (torch, mini):
        before = local(t)
        x = t.ones(2)

        def fail(func: Any, args: Any, kwargs: Any) -> Any:
            raise ZeroDivisionError(str(func))

        with (
            pytest.raises(ZeroDivisionError, match="aten.add.Tensor"),
            handling(t, lambda f, a, k: f(*a, **k)),
            handling(t, fail),
        ):
            x + x
        assert local(t) == before
        assert (x + x).tolist() == [2.0, 2.0]
    assert current_modes() == ()


@pytest.mark.parametrize("wrong", [5, "x", [1], (2, 3)])
def test_an_answer_that_is_no_tensor_is_a_runtime_error(wrong: Any) -> None:
    for t in (torch, mini):
        x = t.ones(2)
        with handling(t, lambda func, args, kwargs: wrong), pytest.raises(RuntimeError, match="Unable to cast"):
            x + x


def test_an_answer_with_the_wrong_number_of_results_is_an_error() -> None:
    x = mini.ones(2, 2)
    with handling(mini, lambda func, args, kwargs: (x,)), pytest.raises(RuntimeError, match="2 results"):
        x.max(0)
    with (
        handling(mini, lambda func, args, kwargs: None),
        pytest.raises(RuntimeError, match="Unable to cast None to a Tensor"),
    ):
        x + x
    for t in (torch, mini):
        y = t.ones(2, 2)
        with handling(t, lambda func, args, kwargs, y=y: y), pytest.raises(RuntimeError):
            y.split(1)
        with handling(t, lambda func, args, kwargs, y=y: [y.clone()]), t.no_grad():
            (only,) = y.split(1)
            assert only.shape == y.shape


def test_an_op_that_writes_returns_what_it_wrote_to_whatever_the_handler_says() -> None:
    for t in (torch, mini):
        x, out = t.ones(2), t.zeros(2)
        other = t.full((2,), 9.0)
        with handling(t, lambda func, args, kwargs, other=other: other):
            assert x.add_(1) is x
            assert t.add(x, x, out=out) is out
        assert x.tolist() == [1.0, 1.0]
        assert out.tolist() == [0.0, 0.0]


def test_a_handler_can_call_from_outside_again() -> None:
    for t, reentrant in ((torch, torch.overrides.enable_reentrant_dispatch), (mini, enable_reentrant_dispatch)):
        names: list[str] = []

        def handler(func: Any, args: Any, kwargs: Any, reentrant: Any = reentrant, names: list[str] = names) -> Any:
            with reentrant():
                inner = args[0].detach().requires_grad_()
                y = func(inner, *args[1:], **kwargs)
                names.append(y.grad_fn.name())
            return y.detach()

        before = local(t)
        a = t.ones(2, requires_grad=True)
        with handling(t, handler):
            y = a * 3
        assert names == ["MulBackward0"]
        assert y.tolist() == [3.0, 3.0] and y.grad_fn.name() == "MulBackward0"
        assert local(t) == before
    with pytest.raises(RuntimeError, match="is for a handler"), enable_reentrant_dispatch():
        pass


def test_what_a_handler_is_given_names_its_operator() -> None:
    facts: dict[Any, list[Any]] = {torch: [], mini: []}
    for t in (torch, mini):

        def handler(func: Any, args: Any, kwargs: Any, t: Any = t) -> Any:
            schema = func._schema
            facts[t].append(
                (
                    str(func),
                    repr(func),
                    func.name(),
                    func.namespace,
                    func._opname,
                    func._overloadname,
                    func.__name__,
                    str(func.overloadpacket),
                    func.overloadpacket == getattr(t.ops.aten, func._opname),
                    func == getattr(getattr(t.ops.aten, func._opname), func._overloadname),
                    (schema.name, schema.overload_name, schema.is_mutable),
                    [(a.name, a.kwarg_only, a.alias_info and a.alias_info.is_write) for a in schema.arguments],
                )
            )
            return func(*args, **kwargs)

        x = t.ones(2, 3)
        with handling(t, handler):
            (x + 1).relu_().t().sum(0)
    assert facts[mini] == facts[torch]
    assert [fact[0] for fact in facts[mini]] == [
        "aten.add.Tensor",
        "aten.relu_.default",
        "aten.t.default",
        "aten.sum.dim_IntList",
    ]


def test_a_mode_without_a_handler_says_what_is_missing() -> None:
    with mini.TorchDispatchMode(), pytest.raises(NotImplementedError, match="__torch_dispatch__"):
        mini.ones(2)


def test_a_boxed_fallback_at_a_key_of_ones_own_sees_every_op_whole() -> None:
    seen: dict[Any, list[str]] = {torch: [], mini: []}
    for t in (torch, mini):
        c = t._C
        key = c._parse_dispatch_key("TESTING_ONLY_GenericMode")
        lib = t.library.Library("_", "IMPL")

        def fallback(op: Any, *args: Any, t: Any = t, key: Any = key, **kwargs: Any) -> Any:
            seen[t].append(str(op))
            with t._C._ExcludeDispatchKeyGuard(t._C.DispatchKeySet(key)):
                return op(*args, **kwargs)

        lib.fallback(fallback, "TESTING_ONLY_GenericMode")
        x, w = t.ones(2, 3), t.ones(4, 3)
        linear = t.nn.functional.linear
        included = c._dispatch_tls_local_include_set() | c.DispatchKeySet(key)
        with c._ForceDispatchKeyGuard(included, c._dispatch_tls_local_exclude_set()):
            y = (linear(x, w) + 1).relu().sum()
        assert y.item() == 32.0
        lib._destroy()
        assert not c._dispatch_tls_is_dispatch_key_included(key)
    assert (
        seen[mini] == seen[torch] == ["aten.linear.default", "aten.add.Tensor", "aten.relu.default", "aten.sum.default"]
    )


def test_a_mode_belongs_to_the_thread_that_entered_it() -> None:
    seen: list[str] = []

    def look(func: Any, args: Any, kwargs: Any) -> Any:
        seen.append(threading.current_thread().name)
        return func(*args, **kwargs)

    x = mini.ones(2)
    with handling(mini, look):
        other = threading.Thread(target=lambda: x + x, name="other")
        other.start()
        other.join()
        x + x
    assert seen == [threading.current_thread().name]


@pytest.mark.parametrize("t", [torch, mini], ids=["torch", "mini"])
def test_results_and_gradients_are_the_same_with_a_mode_on(t: Any) -> None:
    def compute() -> Any:
        x, w = x23(t), x23(t)
        y = (x @ w.t()).tanh().softmax(1)
        (y * y).sum().backward()
        return numbers([y, x.grad, w.grad])

    plain = compute()
    with handling(t, lambda func, args, kwargs: func(*args, **kwargs)):
        assert compute() == plain
