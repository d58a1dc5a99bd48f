"""Saved tensors: what is kept, for how long, hooks on what is packed, what the graph's records say of it."""

from importlib import import_module
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.records import Graph, GraphNode

from .both import Programs, agree, raised

programs = Programs()


def graph_of(m: Any) -> Any:
    return import_module("glassbox.mini.autograd.graph" if m is mini else "torch.autograd.graph")


@programs
def what_mul_and_add_keep(m: Any) -> Any:
    a, b = m.ones(3, requires_grad=True), m.ones(3)
    both = a * m.ones(3, requires_grad=True)
    one, none = a * b, a + b
    return (
        (both.grad_fn._saved_self is None, both.grad_fn._saved_other is None),
        (one.grad_fn._saved_self is None, one.grad_fn._saved_other is b),
        [name for name in dir(none.grad_fn) if name.startswith("_saved")],
        none.grad_fn._saved_alpha,
    )


@programs
def saved_inputs_and_outputs_hang_on_the_graph(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    e = y.exp()
    return (
        z.grad_fn._saved_self is y,
        e.grad_fn._saved_result.grad_fn is e.grad_fn,
        e.grad_fn._saved_result is e,
        e.grad_fn._saved_result,
        x.exp().grad_fn._saved_result.requires_grad,
    )


@programs
def saved_tensors_after_release(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    y = x * x
    e = y.exp()
    c = m.cat([x, y])
    i = x[m.tensor([0, 1])]
    (e.sum() + c.sum() + i.sum()).backward()
    return (
        raised(lambda: y.grad_fn._saved_self),
        raised(lambda: e.grad_fn._saved_result),
        raised(lambda: i.grad_fn._saved_indices),
        c.grad_fn._saved_dim,
    )


@programs
def lists_are_saved_as_tuples(m: Any) -> Any:
    x = m.ones(3, 3, requires_grad=True)
    index = m.tensor([0, 1])
    y = x[:, index]
    found = y.grad_fn._saved_indices
    return isinstance(found, tuple), [each is None for each in found], found[-1]


@programs
def hooks_pack_and_unpack(m: Any) -> Any:
    seen: list[Any] = []

    def pack(tensor: Any) -> Any:
        seen.append(("pack", tensor.requires_grad, m.is_grad_enabled(), tuple(tensor.shape)))
        return tensor * 2

    def unpack(packed: Any) -> Any:
        seen.append("unpack")
        return packed

    a, b = m.full((3,), 2.0, requires_grad=True), m.full((3,), 3.0, requires_grad=True)
    with graph_of(m).saved_tensors_hooks(pack, unpack):
        y = a * b
        e = y.exp()
    plain = a * b
    (y + e.detach() + plain).sum().backward()
    return seen, a.grad, b.grad


@programs
def inner_hooks_win(m: Any) -> Any:
    seen: list[str] = []
    x = m.ones(3, requires_grad=True)

    def named(name: str) -> Any:
        return graph_of(m).saved_tensors_hooks(lambda t: (seen.append(name), t)[1], lambda t: t)

    with named("outer"):
        a = x.exp()
        with named("inner"):
            b = a.exp()
        b.exp().sum().backward()
    return seen, x.grad


@programs
def a_hook_that_gives_nonsense(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    with graph_of(m).saved_tensors_hooks(lambda t: "packed", lambda p: p):
        y = x.exp()
    with graph_of(m).saved_tensors_hooks(lambda t: t, lambda p: p * 2):
        z = x.exp()
    z.sum().backward()
    return raised(lambda: y.sum().backward()), x.grad


@programs
def a_pack_hook_may_not_write(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)

    def run() -> None:
        with graph_of(m).saved_tensors_hooks(lambda t: t.add_(1), lambda p: p):
            (x * 2).exp()

    return raised(run)


@programs
def hooks_on_one_saved_tensor(m: Any) -> Any:
    x = m.full((3,), 2.0, requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda p: m.tensor(p) * 10)
    again = raised(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t))
    saved = y.grad_fn._raw_saved_other
    y.sum().backward()
    return again, x.grad, raised(lambda: saved.register_hooks(lambda t: t, lambda t: t))


@programs
def unpacked_inputs_lead_back_to_the_graph(m: Any) -> Any:
    x = m.full((2,), 3.0, requires_grad=True)
    with graph_of(m).saved_tensors_hooks(lambda t: t.clone(), lambda p: p):
        y = x * 2
        z = (y * y * y).sum()
        e = x.exp()
    (g,) = m.autograd.grad(z, x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    (g,) = m.autograd.grad(e.sum(), x, create_graph=True)
    (k,) = m.autograd.grad(g.sum(), x)
    return h, k


@programs
def hooks_that_are_forbidden(m: Any) -> Any:
    graph = graph_of(m)
    x = m.ones(2, requires_grad=True)

    def inside() -> None:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    with graph.disable_saved_tensors_hooks("not here"):
        problem = raised(inside)
        y = x.exp()
    y.sum().backward()
    return problem, raised(inside), x.grad


@programs
def saved_on_the_cpu(m: Any) -> Any:
    x = m.full((2,), 3.0, requires_grad=True)
    with graph_of(m).save_on_cpu():
        y = (x * x).exp().sum()
    y.backward()
    return x.grad


@programs
def an_inference_tensor_cannot_be_saved(m: Any) -> Any:
    with m.inference_mode():
        frozen = m.ones(3)
    x = m.ones(3, requires_grad=True)
    return raised(lambda: x * frozen), (x + frozen), raised(lambda: x * frozen.clone())


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_agrees_with_pytorch(program: Any) -> None:
    agree(program)


def test_the_graph_as_records() -> None:
    x = mini.ones(4, 3, requires_grad=True)
    w = mini.ones(3, 2, requires_grad=True)
    h = (x @ w).relu()
    loss = (h * h).sum()
    graph = mini.autograd.graph.nodes(loss)
    assert isinstance(graph, Graph)
    assert all(isinstance(node, GraphNode) for node in graph)
    names = [node.name for node in graph]
    assert names == ["SumBackward0", "MulBackward0", "ReluBackward0", "MmBackward0", "AccumulateGrad", "AccumulateGrad"]
    mm = graph[3]
    assert mm.outputs == ((4, 2),)
    assert {each.name: (each.shape, each.nbytes) for each in mm.saved} == {"self": ((4, 3), 48), "mat2": ((3, 2), 24)}
    assert [graph[edge[0]].leaf for edge in mm.edges if edge] == [(4, 3), (3, 2)]
    assert mm.sequence_nr is not None and graph[-1].sequence_nr is None
    # mul keeps h twice and relu keeps it as its result: one storage.
    storages = {each.storage for node in graph.nodes[:3] for each in node.saved}
    assert len(storages) == 1
    assert graph.saved_bytes() == 48 + 24 + 32
    assert "MmBackward0" in str(graph) and "6 nodes, 2 leaves" in graph.caption()
    assert "<table>" in graph._repr_html_()
    loss.backward()
    assert mini.autograd.graph.nodes(loss).saved_bytes() == 0


def test_every_edge_of_the_records_points_forward_or_at_itself_never() -> None:
    x = mini.ones(6, requires_grad=True)
    y = x.clone()
    y[:3].mul_(2)
    a, b = y.split(3)
    z = (mini.cat([a, b * a]) * y).sum()
    graph = mini.autograd.graph.nodes(z)
    order = {node.id: node for node in graph}
    for node in graph:
        for edge in node.edges:
            if edge is not None:
                assert edge[0] in order and edge[0] != node.id
                assert edge[1] < max(1, len(order[edge[0]].outputs))


@pytest.mark.parametrize("m", [torch, mini])
def test_a_pack_hook_may_keep_an_array(m: Any) -> None:
    x = m.tensor([1.0, 2.0], requires_grad=True)
    with m.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), m.from_numpy):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
