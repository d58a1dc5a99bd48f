"""The engine: order, accumulation, what is kept and freed, grad() and backward() with all their options, errors."""

import gc
import sys
import threading
import weakref
from typing import Any

import pytest

from glassbox import mini
from glassbox.mini.autograd import accumulate_grad
from glassbox.mini.autograd.engine import GraphTask
from glassbox.mini.autograd.graph import get_gradient_edge

from .both import Programs, agree, name_of, raised

programs = Programs()


def leaf(m: Any, *shape: int, fill: float = 1.0) -> Any:
    return m.full(shape, fill, requires_grad=True)


@programs
def the_brief_s_graph(m: Any) -> Any:
    a, b, c = (m.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    z = (a + b) * c
    found = [z.grad_fn, [each for each, _ in z.grad_fn.next_functions]]
    z.backward()
    return found, a.grad, b.grad, c.grad


@programs
def edges_count_inputs(m: Any) -> Any:
    a, b = leaf(m, 4), m.ones(4)
    parts = leaf(m, 6).split(2)
    y = a * b + parts[1].sum()
    return [[(name_of(node), nr) for node, nr in each.grad_fn.next_functions] for each in (y, a * b, parts[2] + 1)]


@programs
def the_newest_node_runs_first(m: Any) -> Any:
    seen: list[str] = []
    x = leaf(m, 2)
    old = x.exp()
    middle = x.sin()
    new = x.cos()
    total = old + middle + new
    for name, each in (("old", old), ("middle", middle), ("new", new)):
        each.grad_fn.register_hook(lambda *_, name=name: seen.append(name))
    x.register_hook(lambda grad: seen.append("leaf"))
    total.sum().backward()
    return seen


@programs
def a_leaf_that_is_ready_goes_before_older_nodes(m: Any) -> Any:
    seen: list[str] = []
    x, y = leaf(m, 2), leaf(m, 2)
    early = x.exp()
    late = early * y
    early.grad_fn.register_hook(lambda *_: seen.append("exp"))
    y.register_post_accumulate_grad_hook(lambda leaf: seen.append("y"))
    late.sum().backward()
    return seen


@programs
def a_diamond_adds_up(m: Any) -> Any:
    x = leaf(m, 3, fill=2.0)
    y = x * x
    (y * y + y).sum().backward()
    return x.grad


@programs
def gradients_accumulate_in_place(m: Any) -> Any:
    x = leaf(m, 3)
    (x * 2).sum().backward()
    first, version = x.grad, x.grad._version
    (x * 3).sum().backward()
    return x.grad is first, x.grad._version - version, x.grad


@programs
def accumulating_with_a_graph_makes_a_new_tensor(m: Any) -> Any:
    x = leaf(m, 3, fill=2.0)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x * x).sum().backward(create_graph=True)
    return x.grad is first, x.grad.requires_grad, x.grad, first


@programs
def the_freed_graph(m: Any) -> Any:
    x = leaf(m, 3)
    y = (x * x).sum()
    y.backward()
    plain = (x + x).sum()
    plain.backward()
    plain.backward()
    return raised(y.backward), x.grad


@programs
def a_kept_graph_runs_again(m: Any) -> Any:
    x = leaf(m, 3)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, raised(y.backward)


@programs
def create_graph_keeps_it_unless_told(m: Any) -> Any:
    x = leaf(m, 3)
    y = (x * x * x).sum()
    (g,) = m.autograd.grad(y, x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    z = (x * x).sum()
    (k,) = m.autograd.grad(z, x, create_graph=True, retain_graph=False)
    return g, h, k.requires_grad, raised(lambda: m.autograd.grad(z, x))


@programs
def only_scalars_start_by_themselves(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    return (
        raised(y.backward),
        raised(lambda: m.autograd.backward([x.sum(), y])),
        raised(lambda: y.backward(m.ones(2))),
        raised(lambda: y.backward(2.0)),
        raised(lambda: leaf(m, 1).backward()),
    )


@programs
def what_has_no_graph(m: Any) -> Any:
    x = leaf(m, 3)
    return (
        raised(lambda: m.ones(1).backward()),
        raised(lambda: x.detach().sum().backward()),
        raised(lambda: m.autograd.grad(m.ones(1), x)),
        raised(lambda: m.autograd.grad(x.sum(), m.ones(3))),
        raised(lambda: m.autograd.backward([])),
        raised(lambda: m.autograd.grad([], x)),
        raised(lambda: m.autograd.grad(x.sum(), [])),
        raised(lambda: x.sum().backward(inputs=[])),
        raised(lambda: x.sum().backward(inputs=m.ones(3))),
        raised(lambda: m.autograd.backward([x.sum(), x.sum()], [m.tensor(1.0)])),
    )


@programs
def seeds_are_made_to_fit(m: Any) -> Any:
    x = leaf(m, 3)
    (x * 2).backward(m.ones(3, dtype=m.float64))
    first = x.grad.clone()
    (x * 2).backward(m.ones(3, dtype=m.int64))
    (x.double() * 2).backward(m.ones(3))
    return first, x.grad


@programs
def several_roots(m: Any) -> Any:
    x = leaf(m, 3)
    y, z = x * 2, x * x
    m.autograd.backward([y, z.sum(), y], [m.ones(3), None, m.full((3,), 10.0)])
    return x.grad


@programs
def the_same_root_twice(m: Any) -> Any:
    x = leaf(m, 2)
    y = (x * x).sum()
    m.autograd.backward([y, y])
    return x.grad


@programs
def a_root_above_another(m: Any) -> Any:
    x = leaf(m, 2, fill=3.0)
    y = x * x
    z = (y * y).sum()
    m.autograd.backward([z, y.sum()])
    return x.grad


@programs
def a_leaf_as_root(m: Any) -> Any:
    x = leaf(m, 2)
    x.backward(m.full((2,), 5.0))
    (g,) = m.autograd.grad(x, x, m.full((2,), 7.0))
    return x.grad, g


@programs
def grad_touches_no_leaf(m: Any) -> Any:
    x, w = leaf(m, 3), leaf(m, 3, fill=2.0)
    y = x * w
    found = m.autograd.grad(y.sum(), [w, x, w])
    return found, x.grad, w.grad


@programs
def grad_at_a_tensor_inside(m: Any) -> Any:
    x = leaf(m, 3, fill=2.0)
    y = x * x
    z = (y * 3).sum()
    return m.autograd.grad(z, [y], retain_graph=True), m.autograd.grad(z, [x, y]), x.grad


@programs
def grad_of_what_takes_no_part(m: Any) -> Any:
    x, other = leaf(m, 3), leaf(m, 2)
    y = (x * 2).sum()
    return (
        raised(lambda: m.autograd.grad(y, [x, other], retain_graph=True)),
        m.autograd.grad(y, [x, other], allow_unused=True, retain_graph=True),
        m.autograd.grad(y, [x, other], materialize_grads=True, retain_graph=True),
        raised(lambda: m.autograd.grad(y, [other], allow_unused=False, materialize_grads=True)),
    )


@programs
def grad_runs_only_what_leads_there(m: Any) -> Any:
    seen: list[str] = []
    x, w = leaf(m, 3), leaf(m, 3)
    a, b = x.exp(), w.exp()
    a.grad_fn.register_hook(lambda *_: seen.append("a"))
    b.grad_fn.register_hook(lambda *_: seen.append("b"))
    m.autograd.grad((a * b).sum(), x)
    return seen


@programs
def backward_to_some_inputs(m: Any) -> Any:
    x, w = leaf(m, 3), leaf(m, 3)
    y = x * 2
    z = (y * w).sum()
    z.backward(inputs=[w], retain_graph=True)
    first = w.grad.clone(), x.grad
    z.backward(inputs=y)
    return first, w.grad, x.grad, y.grad, y.retains_grad


@programs
def an_output_that_no_gradient_reaches(m: Any) -> Any:
    x = leaf(m, 4)
    a, b = x.split(2)
    (a * 2).sum().backward()
    y = leaf(m, 4)
    values, _ = (y * m.tensor([1.0, 3.0, 2.0, 0.0])).sort()
    values[3].backward()
    return x.grad, y.grad


@programs
def strides_of_grad_follow_the_leaf(m: Any) -> Any:
    found = []
    for shape, stride, given in (
        ((2, 3), (1, 2), (3, 1)),
        ((2, 3), (3, 1), (1, 2)),
        ((2, 3), (6, 2), (1, 2)),
        ((2, 3), (0, 1), (1, 2)),
        ((1, 3), (7, 1), (3, 1)),
    ):
        x = m.empty_strided(shape, stride).fill_(1.0).requires_grad_()
        seed = m.empty_strided(shape, given).fill_(2.0)
        (x * 1).backward(seed)
        x2 = m.empty_strided(shape, stride).fill_(1.0).requires_grad_()
        x2.backward(seed)
        found.append((x.grad.stride(), x2.grad.stride()))
    x = leaf(m, 2, 3)
    x.t().sum().backward()
    w = leaf(m, 4, 3)
    (x @ w.t()).sum().backward()
    return found, x.grad.stride(), w.grad.stride()


@programs
def grad_is_no_view_and_shares_nothing(m: Any) -> Any:
    x, y = leaf(m, 2, 3), leaf(m, 2, 3)
    (x + y).sum().backward()
    z = leaf(m, 2, 3)
    z.t().mul(2).sum().backward()
    return x.grad.data_ptr() == y.grad.data_ptr(), x.grad._is_view(), z.grad._is_view(), x.grad._version


@programs
def a_gradient_that_others_hold_is_copied(m: Any) -> Any:
    held: list[Any] = []
    x = leaf(m, 3)
    x.register_hook(held.append)
    (x * 2).sum().backward()
    seed = m.ones(3)
    y = leaf(m, 3)
    y.backward(seed)
    return held[0].data_ptr() == x.grad.data_ptr(), y.grad.data_ptr() == seed.data_ptr()


@programs
def dtypes_of_gradients_are_those_of_the_inputs(m: Any) -> Any:
    x, y = leaf(m, 3), m.ones(3, dtype=m.float64, requires_grad=True)
    (x * y).sum().backward()
    z = leaf(m, 3)
    z.to(m.bfloat16).sum().backward()
    return x.grad, y.grad, z.grad


@programs
def broadcasting_is_undone(m: Any) -> Any:
    x, y, z = leaf(m, 3, 1), leaf(m, 1, 4), leaf(m)
    (x * y + z).sum().backward()
    return x.grad, y.grad, z.grad


@programs
def grad_can_be_set_and_dropped(m: Any) -> Any:
    x = leaf(m, 3)
    x.grad = m.full((3,), 5.0)
    (x * 2).sum().backward()
    first = x.grad.clone()
    x.grad = None
    (x * 2).sum().backward()

    def assign(value: Any) -> Any:
        x.grad = value

    return first, x.grad, [raised(lambda v=v: assign(v)) for v in (m.ones(2), m.ones(3, dtype=m.float64), 3.0, x)]


@programs
def a_leaf_turned_off_gets_nothing(m: Any) -> Any:
    x = leaf(m, 3)
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    return x.grad


@programs
def a_hook_that_runs_backward(m: Any) -> Any:
    x, w = leaf(m, 2), leaf(m, 2, fill=3.0)

    def inner(grad: Any) -> Any:
        with m.enable_grad():
            (w * w).sum().backward()
        return grad * w.grad.sum()

    y = x * 2
    y.register_hook(inner)
    y.sum().backward()
    return x.grad, w.grad


@programs
def double_backward_by_hand(m: Any) -> Any:
    x = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x.sin() * x * x).sum()
    (g,) = m.autograd.grad(y, x, create_graph=True)
    penalty = (g * g).sum()
    penalty.backward()
    (h,) = m.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    (k,) = m.autograd.grad(h.sum(), x, create_graph=True)
    (third,) = m.autograd.grad(k.sum(), x)
    return x.grad, third


@programs
def an_edge_stands_for_its_tensor(m: Any) -> Any:
    from importlib import import_module

    graph = import_module("glassbox.mini.autograd.graph" if m is mini else "torch.autograd.graph")
    x = leaf(m, 3)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    z = (y * 3).sum()
    (g,) = m.autograd.grad(z, [edge])
    return g, edge.node, edge.output_nr, raised(lambda: graph.get_gradient_edge(m.ones(2)))


@programs
def a_wrong_number_of_gradients(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (m.ones(4),))
    return raised(lambda: y.sum().backward())


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_agrees_with_pytorch(program: Any) -> None:
    agree(program)


def test_an_exception_in_the_middle_leaves_grad_mode_as_it_was() -> None:
    x = mini.ones(3, requires_grad=True)
    y = x * 2

    def fail(grad: Any) -> None:
        raise KeyError("here")

    y.register_hook(fail)
    with pytest.raises(KeyError):
        y.sum().backward()
    assert mini.is_grad_enabled()
    z = (x * 2 + y).sum()
    with mini.no_grad():
        with pytest.raises(KeyError):
            mini.autograd.grad(z, x)
        assert not mini.is_grad_enabled()
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5, 5, 5]


def test_a_pass_can_be_watched_step_by_step() -> None:
    x = mini.ones(2, requires_grad=True)
    y = (x * 2).exp().sum()
    edge = get_gradient_edge(y)
    task = GraphTask([tuple(edge)], [mini.tensor(1.0)], False, False)
    assert task.dependencies == dict.fromkeys(task.dependencies, 1)
    names = []
    for node in task.run():
        names.append(node.name())
        assert node not in task.buffers
    assert names == ["SumBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad"]
    steps = [node.name() for node, _ in mini.autograd.graph.steps((x.sin() * x).sum())]
    assert steps == ["SumBackward0", "MulBackward0", "AccumulateGrad"][:2] + ["SinBackward0", "AccumulateGrad"]


def test_references_are_counted_for_this_python() -> None:
    # The one that only the engine holds is taken over; one that is held elsewhere has a reference more.
    assert accumulate_grad._references_of_running() == accumulate_grad._OWN
    assert 1 < accumulate_grad._OWN < 10
    x = mini.ones(3, requires_grad=True)
    made = []
    node = (x * 1).grad_fn
    original = type(node).apply

    def spy(self: Any, grad: Any) -> Any:
        results = original(self, grad)
        made.append(id(results[0]))
        return results

    type(node).apply = spy
    try:
        (x * 1).backward(mini.ones(3))
    finally:
        type(node).apply = original
    assert made == [id(x.grad)]


@pytest.mark.parametrize("kind", ["add", "mul", "view", "inplace"])
def test_long_chains_neither_recurse_nor_linger(kind: str) -> None:
    limit = sys.getrecursionlimit()
    length = 100_000 if kind == "add" else 20_000
    x = mini.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(length):
        if kind == "add":
            y = y + 1
        elif kind == "mul":
            y = y * 1.0
        elif kind == "view":
            y = y.view(2)
        else:
            y.add_(1)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [1, 1]
    assert sys.getrecursionlimit() == limit
    last = weakref.ref(y.grad_fn)
    del y
    assert last() is None


def test_a_wide_graph_is_linear() -> None:
    x = mini.ones(2, requires_grad=True)

    def diamond(depth: int) -> None:
        y = x
        for _ in range(depth):
            y = y + y
            y = y * 0.5
        y.sum().backward()

    diamond(300)
    # Each level has two paths: walking all of them would never end.
    diamond(3000)
    assert x.grad.tolist() == [2, 2]


def test_nothing_is_left_after_a_pass() -> None:
    gc.collect()
    x = mini.ones(3, requires_grad=True)
    y = (x * x).exp()
    node = weakref.ref(y.grad_fn)
    saved = weakref.ref(y.grad_fn._raw_saved_result.tensor)
    y.sum().backward()
    del y
    assert node() is None
    assert saved() is None


def test_an_abandoned_graph_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        x = mini.ones(3, requires_grad=True)
        for make in (lambda: x.exp(), lambda: x.relu(), lambda: x.sigmoid() * x.tanh(), lambda: x.clone().exp_()):
            y = make()
            node = weakref.ref(y.grad_fn)
            del y
            assert node() is None
    finally:
        gc.enable()


def test_threads_run_their_own_passes() -> None:
    results: dict[int, list[float]] = {}

    def work(nr: int) -> None:
        x = mini.full((4,), float(nr), requires_grad=True)
        for _ in range(20):
            x.grad = None
            (x * x * x).sum().backward()
        results[nr] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(nr,)) for nr in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {nr: [3.0 * nr * nr] * 4 for nr in range(1, 5)}


def test_a_bad_gradient_is_told_by_its_own_place() -> None:
    class Bad(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad.new_ones(7)

    x = mini.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"BadBackward returned an invalid gradient at index 1 - got \[7\]"):
        Bad.apply(x, x).sum().backward()


def test_grad_with_respect_to_many_takes_each_its_own() -> None:
    leaves = [mini.full((2,), float(n), requires_grad=True) for n in range(200)]
    total = sum(((leaf * n).sum() for n, leaf in enumerate(leaves)), mini.zeros(()))
    found = mini.autograd.grad(total, [*leaves, leaves[3]])
    assert [grad.tolist() for grad in found] == [[float(n)] * 2 for n in [*range(200), 3]]
