"""Functions with a backward of their own, and checkpoint."""

import gc
import warnings
import weakref
from importlib import import_module
from typing import Any

import pytest

from glassbox import mini

from .both import Programs, agree, raised

programs = Programs()


def leaf(m: Any, *shape: int, fill: float = 2.0) -> Any:
    return m.full(shape, fill, requires_grad=True)


@programs
def a_square(m: Any) -> Any:
    class Square(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.note = "kept"
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 2 * x * (1 if ctx.note == "kept" else 0)

    x = leaf(m, 3)
    y = Square.apply(x)
    found = y.grad_fn, [each for each, _ in y.grad_fn.next_functions], y.requires_grad, y.is_leaf
    y.sum().backward()
    return found, x.grad, raised(lambda: y.sum().backward()), raised(lambda: y.grad_fn.saved_tensors)


@programs
def with_setup_context(m: Any) -> Any:
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(x: Any, factor: float) -> Any:
            return x * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factor = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (output,) = ctx.saved_tensors
            return grad * ctx.factor + output * 0, None

    x = leaf(m, 3)
    Scale.apply(x, 5.0).sum().backward()
    return x.grad


@programs
def forward_is_not_recorded(m: Any) -> Any:
    seen: list[Any] = []

    class Look(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, n: int) -> Any:
            seen.append((m.is_grad_enabled(), x.requires_grad, (x * 2).requires_grad, ctx.needs_input_grad))
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((m.is_grad_enabled(), grad.requires_grad, ctx.needs_input_grad))
            return grad, grad, None

    x, y = leaf(m, 3), m.ones(3)
    Look.apply(x, y, 3).sum().backward()
    m.autograd.grad(Look.apply(x, y, 3).sum(), x, create_graph=True)
    with m.no_grad():
        plain = Look.apply(x, y, 3)
    other = Look.apply(y, y, 3)
    return seen, plain.requires_grad, other.requires_grad, other.grad_fn, x.grad, y.grad


@programs
def several_outputs(m: Any) -> Any:
    seen: list[Any] = []

    class Split(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3, "text", (x > 1)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.append([None if grad is None else grad.sum().item() for grad in grads])
            return grads[0] * 2 + grads[1] * 3

    class Raw(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a is None, b is None))
            return b

    x = leaf(m, 3)
    a, b, text, mask = Split.apply(x)
    b.sum().backward()
    first = x.grad.clone()
    c, d = Raw.apply(x)
    d.sum().backward()
    return seen, first, x.grad, text, mask.requires_grad, b.output_nr, a.grad_fn is b.grad_fn


@programs
def wrong_results_of_backward(m: Any) -> Any:
    def make(result: Any) -> Any:
        class Wrong(m.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, n: int, y: Any) -> Any:
                return x + y

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return result(grad)

        return Wrong

    found = []
    for result in (
        lambda g: g,
        lambda g: (g, None),
        lambda g: (g, None, g, None),
        lambda g: (g, None, g, g),
        lambda g: (g, g, g),
        lambda g: (g, None, 5),
        lambda g: (g, None, None),
        lambda g: (g[:1], None, g),
        lambda g: (m.ones(4), None, g),
        lambda g: (g.double(), None, g),
    ):
        x, y = leaf(m, 3), leaf(m, 3)
        out = make(result).apply(x, 3, y)
        found.append((raised(lambda out=out: out.sum().backward()), x.grad, y.grad))
    return found


@programs
def what_is_not_written(m: Any) -> Any:
    class Bare(m.autograd.Function):
        pass

    class Half(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    x = leaf(m, 3)
    y = Half.apply(x)
    return raised(lambda: Bare.apply(x)), raised(lambda: y.sum().backward()), raised(lambda: Half()(x))


@programs
def what_is_saved_must_be_tensors(m: Any) -> Any:
    class Number(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, 3)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    class Nothing(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, none = ctx.saved_tensors
            return grad * x if none is None else None

    x = leaf(m, 3)
    Nothing.apply(x).sum().backward()
    return raised(lambda: Number.apply(x)), x.grad


@programs
def a_saved_tensor_that_changed(m: Any) -> Any:
    class Keep(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * x * y

    x = leaf(m, 3)
    a, b = x * 1, x * 1
    one, two, three = Keep.apply(a), Keep.apply(b), Keep.apply(x)
    a.add_(1)
    two.add_(1)
    three.sum().backward()
    return raised(lambda: one.sum().backward()), raised(lambda: two.sum().backward()), x.grad


@programs
def a_saved_output_leads_back(m: Any) -> Any:
    class Exp(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            return grad * y

    x = leaf(m, 2, fill=0.5)
    (g,) = m.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = m.autograd.grad(h.sum(), x)
    return g, h, k


@programs
def outputs_without_gradient(m: Any) -> Any:
    class Top(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, mask = x * 2, (x > 1).float()
            ctx.mark_non_differentiable(mask)
            return values, mask

        @staticmethod
        def backward(ctx: Any, grad: Any, none: Any) -> Any:
            return grad * 2 + none

    x = leaf(m, 3)
    values, mask = Top.apply(x)
    found = values.requires_grad, mask.requires_grad, mask.grad_fn
    (values * mask).sum().backward()
    return found, x.grad


@programs
def writing_into_an_input(m: Any) -> Any:
    class Double(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Forgets(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = leaf(m, 4)
    y = x * 1
    z = Double.apply(y)
    found = z is y, y.grad_fn, y._version
    base = x * 1
    view = Double.apply(base[:2])
    names = base.grad_fn, view.grad_fn
    (y.sum() + (base * m.arange(4)).sum()).backward()
    return found, names, x.grad, raised(lambda: Double.apply(x)), raised(lambda: Forgets.apply(x * 1))


@programs
def returning_an_input_or_a_view(m: Any) -> Any:
    class Same(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 7

    class Part(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:2]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return m.cat([grad * 7, grad * 0])

    class Parts(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:2], x[2:]

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return m.cat([a * 7, b * 9])

    x = leaf(m, 4)
    same, part, parts = Same.apply(x), Part.apply(x), Parts.apply(x)
    found = same is x, same._is_view(), same.grad_fn, part._is_view(), part.grad_fn, parts[1]._is_view()
    writes = [raised(lambda t=t: t.mul_(2)) for t in (same, part, *parts)]
    (same.sum() + part.sum() + parts[0].sum() + parts[1].sum()).backward()
    plain = Same.apply(m.ones(4))
    return found, writes, x.grad, plain.requires_grad, plain._is_view()


@programs
def differentiable_once(m: Any) -> Any:
    function = import_module("glassbox.mini.autograd.function" if m is mini else "torch.autograd.function")

    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        @function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = leaf(m, 3)
    Cube.apply(x).sum().backward()
    y = Cube.apply(x)
    w = leaf(m, 3)
    (g,) = m.autograd.grad((y * w).sum(), x, create_graph=True)
    return x.grad, g.requires_grad, raised(lambda: g.sum().backward())


@programs
def differentiable_twice(m: Any) -> Any:
    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = leaf(m, 3)
    (g,) = m.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    return g, h


@programs
def hooks_and_graphs_of_functions(m: Any) -> Any:
    seen: list[Any] = []

    class Twice(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = leaf(m, 3)
    y = Twice.apply(x)
    y.register_hook(lambda grad: seen.append("tensor"))
    y.grad_fn.register_hook(lambda *_: seen.append("post"))
    y.grad_fn.register_prehook(lambda *_: seen.append("pre"))
    y.retain_grad()
    (y * 3).sum().backward(retain_graph=True)
    y.sum().backward()
    return seen, y.grad, x.grad, y.grad_fn.name()


@programs
def saved_tensors_hooks_reach_functions(m: Any) -> Any:
    seen: list[Any] = []

    class Square(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(m, 3)
    with m.autograd.graph.saved_tensors_hooks(lambda t: (seen.append("pack"), t * 10)[1], lambda t: t):
        y = Square.apply(x)
    y.sum().backward()
    return seen, x.grad


@programs
def a_straight_through_estimator(m: Any) -> Any:
    class Round(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    x = m.tensor([0.2, 1.7], requires_grad=True)
    (Round.apply(x) * m.tensor([3.0, 4.0])).sum().backward()
    return x.grad


# checkpoint


def checkpoint_of(m: Any) -> Any:
    if m is mini:
        return m.autograd.checkpoint
    from functools import partial

    from torch.utils.checkpoint import checkpoint

    return partial(checkpoint, use_reentrant=False)


@programs
def checkpointed_is_the_same(m: Any) -> Any:
    checkpoint = checkpoint_of(m)
    runs: list[int] = []

    def block(x: Any, w: Any, scale: float = 1.0) -> Any:
        runs.append(1)
        return ((x * w).exp() * scale).sin()

    x, w = leaf(m, 3, fill=0.5), leaf(m, 3, fill=0.25)
    y = checkpoint(block, x, w, scale=2.0)
    z = checkpoint(block, y, w)
    z.sum().backward()
    return z, x.grad, w.grad, len(runs)


@programs
def checkpointed_twice_and_again(m: Any) -> Any:
    checkpoint = checkpoint_of(m)
    runs: list[int] = []

    def block(x: Any) -> Any:
        runs.append(1)
        return (x * x).exp()

    x = leaf(m, 2, fill=0.5)
    y = checkpoint(block, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    first = x.grad.clone()
    (g,) = m.autograd.grad(checkpoint(block, x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    nested = checkpoint(lambda t: checkpoint(block, t) * 2, x)
    (k,) = m.autograd.grad(nested.sum(), x)
    return first, g, h, k


@programs
def checkpoint_draws_the_same_numbers(m: Any) -> Any:
    checkpoint = checkpoint_of(m)

    def block(x: Any) -> Any:
        noise = m.rand(4)
        return x * noise * x, noise

    m.manual_seed(3)
    x = leaf(m, 4)
    y, noise = checkpoint(block, x)
    after = m.rand(2)
    y.sum().backward()
    m.manual_seed(3)
    m.rand(4)
    return bool((x.grad == noise * 4).all().item()), bool((after == m.rand(2)).all().item())


@programs
def a_checkpoint_that_does_otherwise_the_second_time(m: Any) -> Any:
    checkpoint = checkpoint_of(m)
    sizes = [3, 2]

    def block(x: Any) -> Any:
        return x[: sizes.pop(0)].exp()

    counts = [1, 2, 0]

    def counted(x: Any) -> Any:
        for _ in range(counts.pop(0)):
            x = x.exp()
        return x * 2

    x = leaf(m, 3, fill=0.1)
    y = checkpoint(block, x)
    return raised(lambda: y.sum().backward()), raised(lambda: checkpoint(block, x, determinism_check="odd"))


@programs
def checkpoint_without_gradients(m: Any) -> Any:
    checkpoint = checkpoint_of(m)
    x = leaf(m, 3)
    with m.no_grad():
        y = checkpoint(lambda t: t * t, x)
    z = checkpoint(lambda t: t * t, m.ones(3))
    return y.requires_grad, z.requires_grad, y, z


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_agrees_with_pytorch(program: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(program)


def test_messages_name_the_function() -> None:
    class Short(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    x = mini.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"ShortBackward returned an incorrect number of gradients \(expected 2, got 1\)"
    ):
        Short.apply(x, x).sum().backward()


def test_checkpoint_saves_memory_and_lets_go_of_it() -> None:
    x = mini.ones(1000, requires_grad=True)

    def block(t: mini.Tensor) -> mini.Tensor:
        for _ in range(5):
            t = t.exp().sigmoid()
        return t

    plain = mini.autograd.graph.nodes(block(x)).saved_bytes()
    y = mini.autograd.checkpoint(block, x)
    assert plain == 10 * 4000
    assert mini.autograd.graph.nodes(y).saved_bytes() == 0
    made: list[Any] = []

    def watched(t: mini.Tensor) -> mini.Tensor:
        inner = t.exp()
        made.append(weakref.ref(inner))
        return inner.sigmoid() * 2

    z = mini.autograd.checkpoint(watched, x)
    gc.collect()
    assert made[0]() is None
    z.sum().backward()
    del z
    gc.collect()
    assert len(made) == 2 and made[1]() is None


def test_what_one_checkpoint_computed_is_gone_when_the_next_begins() -> None:
    alive: list[int] = []
    made: list[Any] = []

    def block(t: mini.Tensor) -> mini.Tensor:
        alive.append(sum(each() is not None for each in made))
        inner = t.exp()
        made.append(weakref.ref(inner._storage))
        return inner.sigmoid() * 2

    x = mini.full((10,), 0.1, requires_grad=True)
    y = x
    for _ in range(3):
        y = mini.autograd.checkpoint(block, y)
    made.clear()
    y.sum().backward()
    # Three runs forward, three again: nothing of one is left when another begins.
    assert alive == [0, 0, 0, 0, 0, 0]


def test_checkpoint_has_one_way() -> None:
    with pytest.raises(NotImplementedError, match="use_reentrant=False"):
        mini.autograd.checkpoint(lambda t: t, mini.ones(1), use_reentrant=True)


def test_checkpoint_contexts() -> None:
    seen: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            seen.append(self.name)

        def __exit__(self, *_: object) -> None:
            pass

    x = mini.ones(2, requires_grad=True)
    y = mini.autograd.checkpoint(lambda t: t.exp(), x, context_fn=lambda: (Named("first"), Named("second")))
    y.sum().backward()
    assert seen == ["first", "second"]
