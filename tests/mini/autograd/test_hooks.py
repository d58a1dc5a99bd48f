"""Hooks: on leaves, on tensors inside, on nodes, after accumulation; retain_grad; what they may return."""

import gc
import weakref
from typing import Any

import pytest

from glassbox import mini

from .both import Programs, agree, raised

programs = Programs()


def leaf(m: Any, *shape: int, fill: float = 1.0) -> Any:
    return m.full(shape, fill, requires_grad=True)


def pre(m: Any, result: Any, at_leaf: bool) -> Any:
    x = leaf(m, 3)
    y = x * 2
    (x if at_leaf else y).register_hook(lambda grad: result)
    return raised(lambda: y.sum().backward()), x.grad


@programs
def tensor_hooks_may_change_the_gradient(m: Any) -> Any:
    return [pre(m, m.full((3,), 5.0), at_leaf) for at_leaf in (True, False)]


@programs
def tensor_hooks_must_return_what_fits(m: Any) -> Any:
    wrong = (5, m.ones(2), m.ones(3, dtype=m.float64), m.ones(3, dtype=m.int64), (m.ones(3),))
    return [pre(m, result, at_leaf) for result in wrong for at_leaf in (True, False)]


@programs
def node_hooks_must_return_what_fits(m: Any) -> Any:
    found = []
    for kind in ("register_hook", "register_prehook"):
        for result in (
            5,
            m.ones(3),
            (m.ones(3),),
            (m.ones(3), None),
            (m.ones(3), None, None),
            (m.ones(2), None),
            [m.ones(3)],
            (5, None),
            (None, None),
            (None,),
        ):
            x = leaf(m, 3)
            y = x * 2
            getattr(y.grad_fn, kind)(lambda *_, result=result: result)
            found.append((raised(lambda y=y: y.sum().backward()), x.grad))
    return found


@programs
def hooks_run_in_their_order(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 3)
    y = x * 2
    y.register_hook(lambda grad: seen.append("first"))
    y.retain_grad()
    y.register_hook(lambda grad: (seen.append("second"), grad * 2)[1])
    y.grad_fn.register_prehook(lambda grads: seen.append(f"pre {grads[0].sum().item()}"))
    y.grad_fn.register_hook(lambda ins, outs: seen.append(f"post {len(ins)} {len(outs)} {ins[0].sum().item()}"))
    x.register_hook(lambda grad: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(f"after {leaf.grad.sum().item()}"))
    (y * 3).sum().backward()
    return seen, y.grad, x.grad


@programs
def removed_hooks_do_not_run(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 3)
    y = x * 2
    handles = [
        x.register_hook(lambda grad: seen.append("leaf")),
        y.register_hook(lambda grad: seen.append("inside")),
        y.grad_fn.register_hook(lambda *_: seen.append("post")),
        y.grad_fn.register_prehook(lambda *_: seen.append("pre")),
        x.register_post_accumulate_grad_hook(lambda leaf: seen.append("after")),
    ]
    y.sum().backward(retain_graph=True)
    first = list(seen)
    for handle in handles:
        handle.remove()
        handle.remove()
    y.sum().backward()
    with x.register_hook(lambda grad: seen.append("in the block")):
        x.sum().backward()
    x.sum().backward()
    return first, seen


@programs
def the_same_function_twice(m: Any) -> Any:
    x = leaf(m, 3)

    def double(grad: Any) -> Any:
        return grad * 2

    first = x.register_hook(double)
    x.register_hook(double)
    (x * 1).sum().backward()
    both = x.grad.clone()
    x.grad = None
    first.remove()
    (x * 1).sum().backward()
    return both, x.grad


@programs
def a_leaf_s_hooks_outlive_its_graphs(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 3)
    x.register_hook(lambda grad: seen.append("pre"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("after"))
    for _ in range(2):
        (x * 2).sum().backward()
    early = x * 2
    x.register_hook(lambda grad: seen.append("late"))
    early.sum().backward()
    return seen


@programs
def a_hook_that_is_registered_in_a_hook(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 3)
    y = x * 2

    def hook(grad: Any) -> None:
        seen.append("outer")
        x.register_hook(lambda grad: seen.append("inner"))

    y.register_hook(hook)
    y.sum().backward()
    return seen


@programs
def grad_captures_before_or_after_hooks(m: Any) -> Any:
    found = []
    x = leaf(m, 3)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    x.register_hook(lambda grad: grad * 100)
    z = (y * 3).sum()
    found.append(m.autograd.grad(z, [y], retain_graph=True))
    found.append(m.autograd.grad(z, [x], retain_graph=True))
    found.append(m.autograd.grad(z, [y, x], retain_graph=True))
    return found


@programs
def grad_runs_no_hooks_of_accumulation(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 3)
    y = x * 2
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate.register_hook(lambda *_: seen.append("post"))
    accumulate.register_prehook(lambda *_: seen.append("pre"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("after"))
    m.autograd.grad(y.sum(), x, retain_graph=True)
    before = list(seen)
    y.sum().backward()
    return before, seen


@programs
def retained_gradients(m: Any) -> Any:
    x = leaf(m, 3, fill=2.0)
    y = x * x
    y.retain_grad()
    x.retain_grad()
    z = (y * 3).sum()
    z.backward(retain_graph=True)
    first = y.grad.clone(), x.retains_grad, y.retains_grad, z.retains_grad
    z.backward()
    return first, y.grad, x.grad, raised(lambda: m.ones(2).retain_grad())


@programs
def a_retained_gradient_does_not_change_later(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    y.retain_grad()
    kept: list[Any] = []
    y.register_hook(kept.append)
    y.sum().backward()
    return y.grad, y.grad.data_ptr() == kept[0].data_ptr(), y.grad.stride()


@programs
def in_place_moves_what_is_retained_and_no_other_hook(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 3)
    y = x * 2
    y.register_hook(lambda grad: seen.append("before"))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda grad: seen.append("after"))
    y.sum().backward()
    return seen, y.grad, x.grad, y.retains_grad


@programs
def retained_through_a_view_s_write(m: Any) -> Any:
    x = leaf(m, 4)
    base = x * 2
    view = base[:2]
    base.retain_grad()
    view.retain_grad()
    view.mul_(5)
    (base * m.arange(4)).sum().backward()
    return base.grad, view.grad, base.retains_grad, view.retains_grad


@programs
def hooks_of_several_outputs(m: Any) -> Any:
    seen: list[Any] = []
    x = leaf(m, 6)
    a, b, c = x.split(2)
    a.register_hook(lambda grad: (seen.append("a"), grad * 10)[1])
    c.register_hook(lambda grad: seen.append("c"))
    b.retain_grad()
    a.grad_fn.register_prehook(lambda grads: seen.append([grad is None for grad in grads]))
    (a + b).sum().backward()
    return seen, x.grad, b.grad


@programs
def where_hooks_cannot_be(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    return (
        raised(lambda: m.ones(3).register_hook(print)),
        raised(lambda: m.ones(3).register_post_accumulate_grad_hook(print)),
        raised(lambda: y.register_post_accumulate_grad_hook(print)),
    )


@programs
def after_accumulation_a_leaf_may_be_stepped(m: Any) -> Any:
    x = leaf(m, 3)

    def step(leaf: Any) -> None:
        with m.no_grad():
            leaf -= 0.5 * leaf.grad
        leaf.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    return x, x.grad


@programs
def a_multi_grad_hook(m: Any) -> Any:
    from importlib import import_module

    graph = import_module("glassbox.mini.autograd.graph" if m is mini else "torch.autograd.graph")
    seen: list[Any] = []
    x, y = leaf(m, 2), leaf(m, 2, fill=2.0)
    handle = graph.register_multi_grad_hook([x, y], lambda grads: seen.append(tuple(grads)))
    (x * y).sum().backward()
    (x * y).sum().backward()
    handle.remove()
    (x * y).sum().backward()
    return seen


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_agrees_with_pytorch(program: Any) -> None:
    agree(program)


def test_a_handle_keeps_no_tensor_alive() -> None:
    x = mini.ones(3, requires_grad=True)
    y = x * 2
    node = weakref.ref(y.grad_fn)
    handle = y.register_hook(lambda grad: None)
    del y
    gc.collect()
    assert node() is None
    handle.remove()


def test_messages_name_the_hook() -> None:
    def shrink(grad: mini.Tensor) -> mini.Tensor:
        return grad[:1]

    x = mini.ones(3, requires_grad=True)
    x.register_hook(shrink)
    with pytest.raises(RuntimeError, match="hook 'shrink' has changed the size of value"):
        (x * 2).sum().backward()
