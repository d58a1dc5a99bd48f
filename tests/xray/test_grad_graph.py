"""Facts about backward graphs: what is in them, what each node keeps, and that looking changes nothing."""

import gc
import itertools
import subprocess
import sys
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from glassbox import mini, xray
from glassbox.records import ForwardGraph, Graph, OpCall, OpLog, TensorMeta
from glassbox.xray import grad_graph


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def kept(graph: Graph, name: str) -> dict[str, Any]:
    """The saved tensors of the first node of that name, by name."""
    node = next(node for node in graph if node.name == name)
    return {each.name: each for each in node.saved}


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, x * x)
        ctx.hint = x
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        x, square = ctx.saved_tensors
        return 3 * square * grad


# The graph of z = (a + b) * c


@pytest.mark.parametrize("m", [torch, mini], ids=["torch", "mini"])
def test_the_graph_of_a_plus_b_times_c(m: Any) -> None:
    a, b, c = (m.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    s = a + b
    z = s * c
    graph = grad_graph(z)
    assert [(node.name, node.variable, node.kind) for node in graph][:3] == [
        ("MulBackward0", "z", ""),
        ("AddBackward0", "s", ""),
        ("AccumulateGrad", "c", "leaf"),
    ]
    assert {node.variable for node in graph.leaves()} == {"a", "b", "c"}
    mul, add = graph[0], graph[1]
    assert mul.edges == ((1, 0), (2, 0))
    assert [graph[edge[0]].variable for edge in add.edges if edge] == ["a", "b"]
    assert graph.roots == ((0, 0, "z"),)
    assert [(each.name, each.kind, each.variable, each.origin) for each in mul.saved] == [
        ("other", "leaf", "c", (2, 0)),
        ("self", "inner", "s", (1, 0)),
    ]
    assert graph.saved_bytes() == 8
    z.backward()
    assert (float(a.grad), float(b.grad), float(c.grad)) == (4.0, 4.0, 5.0)


def test_it_prints_as_a_table() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = (a * b).sum()
    text = str(grad_graph(z))
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("4 nodes, 2 leaves, 16 B saved for backward\n")
    assert lines[1] == ["id", "node", "variable", "number", "goes", "to", "shape", "saved", "bytes"]
    assert lines[2][:3] == ["0", "SumBackward0", "z"]
    assert lines[3][:2] == ["1", "MulBackward0"]
    assert lines[3][-5:] == ["other", "[2],", "self", "[2]", "16"]
    assert len(grad_graph(z).rows()) == 4
    assert grad_graph(z).to_markdown().startswith("| id | node | variable | number |")


@pytest.mark.parametrize("m", [torch, mini], ids=["torch", "mini"])
def test_add_keeps_alpha_alone(m: Any) -> None:
    x, y = m.ones(3, requires_grad=True), m.ones(3, requires_grad=True)
    add = grad_graph(m.add(x, y, alpha=2))[0]
    assert (add.name, add.saved, add.values) == ("AddBackward0", (), (("alpha", "2"),))


@pytest.mark.parametrize("m", [torch, mini], ids=["torch", "mini"])
def test_mul_keeps_both_operands_or_the_one_that_is_needed(m: Any) -> None:
    x, y, plain = m.ones(3, requires_grad=True), m.ones(3, requires_grad=True), m.ones(3)
    assert set(kept(grad_graph(x * y), "MulBackward0")) == {"self", "other"}
    one = kept(grad_graph(x * plain), "MulBackward0")
    assert [(each.name, each.kind, each.variable) for each in one.values()] == [("other", "constant", "plain")]
    assert grad_graph(x * plain)[0].edges == ((1, 0), None)


def test_accumulate_grad_has_the_largest_sequence_number() -> None:
    x = leaf(1.0)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    assert node.name() == "torch::autograd::AccumulateGrad"
    assert node._sequence_nr() == 2**64 - 1 > y.grad_fn._sequence_nr()
    graph = grad_graph(y)
    assert [each.sequence_nr for each in graph] == [y.grad_fn._sequence_nr(), None]


def test_sequence_numbers_are_those_of_the_nodes_and_newest_come_first() -> None:
    x = leaf(1.0, 2.0)
    a = x.sin()
    b = x.cos()
    c = a * b
    graph = grad_graph(c)
    assert [each.sequence_nr for each in graph][:3] == [t.grad_fn._sequence_nr() for t in (c, b, a)]


# The engine's order


def engine_ran(graph: Graph, *outputs: torch.Tensor) -> list[int]:
    """The ids in the order in which the real engine ran the nodes."""
    order: list[int] = []
    seen: dict[Any, int] = {}
    stack = [out.grad_fn for out in outputs]
    for (nr, _, _), node in zip(graph.roots, stack, strict=True):
        seen[node] = nr
    while stack:
        node = stack.pop()
        for edge, (to, _) in zip(graph[seen[node]].edges, node.next_functions, strict=True):
            if to is not None and edge is not None and to not in seen:
                seen[to] = edge[0]
                stack.append(to)
    handles = [node.register_prehook(lambda grads, nr=nr: order.append(nr)) for node, nr in seen.items()]
    torch.autograd.backward(outputs, [torch.ones_like(out) for out in outputs])
    for handle in handles:
        handle.remove()
    return order


def diamond() -> list[torch.Tensor]:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, b = x.sin() * w, x.cos().exp()
    return [((a + b) * a).sum()]


def two_roots() -> list[torch.Tensor]:
    x = leaf(1.0, 2.0)
    h = x.sin()
    return [h.cos().sum(), (h * h).sum()]


def layer() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(torch.randn(1, 3, 8)).sum()]


@pytest.mark.parametrize("make", [diamond, two_roots, layer], ids=lambda make: make.__name__)
def test_engine_order_is_the_real_engines(make: Any) -> None:
    outputs = make()
    graph = grad_graph(*outputs)

    def sorted_leaves(order: Any) -> list[list[int]]:
        """Leaves that run one after the other have equal numbers, and no order among them."""
        return [sorted(run) for _, run in itertools.groupby(order, key=lambda nr: nr if graph[nr].leaf is None else -1)]

    assert sorted_leaves(graph.engine_order()) == sorted_leaves(engine_ran(graph, *outputs))


def test_the_engine_takes_the_newest_first_and_leaves_before_all() -> None:
    x, w = leaf(1.0), leaf(2.0)
    old, new = x * 2, w.exp()
    z = old + new
    graph = grad_graph(z)
    order = [f"{graph[nr].name} {graph[nr].variable}" for nr in graph.engine_order()]
    assert order == [
        "AddBackward0 z", "ExpBackward0 new", "AccumulateGrad w", "MulBackward0 old", "AccumulateGrad x",
    ]  # fmt: skip
    assert list(graph.engine_order()) == engine_ran(graph, z)


def test_mini_steps_in_the_order_that_its_record_says() -> None:
    x, w = mini.tensor([1.0, 2.0], requires_grad=True), mini.tensor([3.0, 4.0], requires_grad=True)
    a, b = x.exp() * w, x.relu().exp()
    z = ((a + b) * a).sum()
    graph = grad_graph(z)
    place = {node: nr for nr, node in enumerate(mini.autograd.graph.ordered_nodes(z))}
    assert [place[node] for node, _ in mini.autograd.graph.steps(z)] == list(graph.engine_order())


# What is kept


def test_each_node_has_its_own_saved_tensors_also_of_the_same_memory() -> None:
    """torchviz merges the two; here they are two that share a storage, counted once."""
    x = leaf(1.0, 2.0)
    h = x * 3
    z = (h * h).sum() + h.exp().sum()
    graph = grad_graph(z)
    mul = next(node for node in graph if node.name == "MulBackward0" and len(node.saved) == 2)
    one, two = mul.saved
    assert (one.name, two.name) == ("other", "self") and one.storage == two.storage
    assert one.variable == two.variable == "h"
    # h once, exp's result, and the 3 in a tensor of a number's 8 bytes
    assert graph.saved_bytes() == 8 + 8 + 8


def test_whose_a_saved_tensor_is() -> None:
    model = nn.Linear(2, 2)
    x, y = torch.ones(3, 2), torch.ones(3, 2, requires_grad=True)
    out = (model(x) * y).exp()
    graph = grad_graph(out.sum())
    exp = kept(graph, "ExpBackward0")["result"]
    assert (exp.kind, exp.variable, exp.origin) == ("result", "out", (1, 0))
    mul = kept(graph, "MulBackward0")
    assert mul["other"].kind == "leaf" and mul["other"].variable == "y"
    assert mul["self"].kind == "inner" and graph[mul["self"].origin[0]].name == "AddmmBackward0"
    assert kept(graph, "AddmmBackward0")["mat1"].kind == "constant"
    assert kept(graph, "AddmmBackward0")["mat1"].variable == "x"
    w = model.weight
    direct = kept(grad_graph((w * y[:2]).sum()), "MulBackward0")
    assert direct["self"].kind == "parameter" and direct["self"].variable == "weight"
    assert direct["other"].view


def test_lists_of_saved_tensors_are_told_one_by_one() -> None:
    x, index = torch.ones(3, 3, requires_grad=True), torch.tensor([0, 1])
    node = grad_graph(x[:, index])[0]
    assert [(each.name, each.shape, each.dtype, each.variable) for each in node.saved] == [
        ("indices[1]", (2,), "int64", "index")
    ]
    assert dict(node.values)["self_sym_sizes"] == "(3, 3)"


def test_outputs_of_one_node_are_told_apart() -> None:
    x = leaf(1.0, 2.0, 3.0)
    first, second, _ = x.unbind()
    graph = grad_graph(first * second)
    unbind = next(node for node in graph if node.name == "UnbindBackward0")
    assert unbind.variables == ((0, "first"), (1, "second"))
    assert unbind.outputs == ((), (), ())
    assert graph[0].edges == ((unbind.id, 0), (unbind.id, 1))
    assert {each.variable: each.origin for each in graph[0].saved} == {
        "first": (unbind.id, 0), "second": (unbind.id, 1),
    }  # fmt: skip


def test_a_freed_graph_says_so() -> None:
    x = leaf(1.0, 2.0)
    index = torch.tensor([0])
    z = (x.exp() * x)[index].sum() + Cube.apply(x).sum()
    before = grad_graph(z)
    assert "freed" not in before.caption()
    z.backward()
    after = grad_graph(z)
    assert len(after) == len(before)
    assert {each.state for _, each in after.saved_tensors() if each.kind != "attribute"} == {"freed"}
    assert "saved tensors freed by a backward pass" in after.caption()
    assert str(kept(after, "MulBackward0")["self"]) == "self: freed"


def test_what_a_function_sets_on_ctx_is_not_freed() -> None:
    x = leaf(1.0, 2.0)
    z = Cube.apply(x).sum()
    graph = grad_graph(z)
    node = next(node for node in graph if node.name == "CubeBackward")
    assert node.kind == "custom"
    assert [(each.name, each.kind, each.variable) for each in node.saved] == [
        ("tensors[0]", "leaf", "x"),
        ("tensors[1]", "constant", ""),
        ("ctx.hint", "attribute", "x"),
    ]
    z.backward()
    assert [str(each) for each in grad_graph(z)[1].saved] == [
        "tensors: freed",
        "ctx.hint: float32[2], 8 B, attribute, x",
    ]


def test_a_functions_own_output_is_its_result() -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * ctx.saved_tensors[0]

    out = Exp.apply(leaf(1.0, 2.0))
    saved = grad_graph(out)[0].saved[0]
    assert (saved.kind, saved.variable, saved.origin) == ("result", "out", (0, 0))


def test_detach_is_caught_and_data_is_silent() -> None:
    """A write through .detach() counts a version, so backward refuses; through .data it does not, and lies."""
    for how, state in (("detach", "changed"), ("data", "kept")):
        x = leaf(1.0, 2.0)
        h = x * 1
        z = h.sin().sum()
        other = h.detach() if how == "detach" else h.data
        other.zero_()
        graph = grad_graph(z)
        saved = kept(graph, "SinBackward0")["self"]
        assert (saved.state, saved.version, saved.now) == (state, 0, int(how == "detach"))
        if how == "detach":
            assert "1 saved tensor changed in place since they were saved, so backward will fail" in graph.caption()
            with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
                z.backward()
        else:
            z.backward()
            assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]


def test_a_changed_result_is_told_from_a_changed_input() -> None:
    x = leaf(1.0, 2.0)
    e = x.exp()
    z = e.sum()
    e.detach().mul_(2)
    saved = kept(grad_graph(z), "ExpBackward0")["result"]
    assert (saved.state, saved.version, saved.now, saved.nbytes) == ("changed", 0, 1, 8)
    assert (saved.kind, saved.variable) == ("result", "e")
    h = x * 1
    s = h.sin().sum()
    h.add_(1)
    changed = kept(grad_graph(s), "SinBackward0")["self"]
    assert (changed.state, changed.kind) == ("changed", "inner")
    assert "changed in place since, now version 1" in str(changed)


def test_the_version_is_that_of_saving() -> None:
    x = leaf(1.0, 2.0)
    h = x * 1
    h.add_(1)
    assert kept(grad_graph(h.sin().sum()), "SinBackward0")["self"].version == 1


def test_what_a_hook_packed_is_told_without_unpacking_it() -> None:
    called: list[str] = []

    def pack(tensor: torch.Tensor) -> Any:
        called.append("pack")
        return ("disk", tensor.numpy(force=True))

    def unpack(packed: Any) -> torch.Tensor:
        called.append("unpack")
        return torch.from_numpy(packed[1])

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, unpack):
        z = x.exp().sum()
    called.clear()
    graph = grad_graph(z)
    saved = kept(graph, "ExpBackward0")["result"]
    assert called == []
    assert (saved.state, saved.packed, saved.nbytes) == ("packed", "tuple of str, ndarray", 8)
    assert str(saved) == "result: packed by a hook as tuple of str, ndarray, 8 B in it"
    assert "1 saved tensor packed by hooks" in graph.caption()
    z.backward()
    assert called == ["unpack"]


def test_hooks_of_one_saved_tensor_are_not_called_either() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda p: 1 / 0)
    assert kept(grad_graph(y), "MulBackward0")["self"].packed == "list of float, float"


def test_checkpoints() -> None:
    x = leaf(1.0, 2.0)

    def body(t: torch.Tensor) -> torch.Tensor:
        return t.sin().cos()

    ran = grad_graph(checkpoint(body, x, use_reentrant=False))
    assert names(ran) == ["CosBackward0", "SinBackward0", "AccumulateGrad"]
    assert {each.state for _, each in ran.saved_tensors()} == {"packed"}
    reentrant = grad_graph(checkpoint(body, x, use_reentrant=True))
    assert [(node.name, node.kind) for node in reentrant] == [
        ("CheckpointFunctionBackward", "checkpoint"),
        ("AccumulateGrad", "leaf"),
    ]


def test_sparse_and_other_dtypes_are_counted() -> None:
    dense = torch.ones(3, 2, requires_grad=True)
    sparse = torch.eye(3).to_sparse()
    saved = kept(grad_graph(torch.sparse.mm(sparse, dense).sum()), "SparseAddmmBackward0")
    assert any(each.nbytes == 3 * (2 * 8 + 4) for each in saved.values())
    half = torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
    assert kept(grad_graph(half.exp()), "ExpBackward0")["result"].nbytes == 8


# Views, writes, leaves


def test_views_are_known_by_their_operators_schemas() -> None:
    x = torch.ones(4, 3, requires_grad=True)
    z = x.t().reshape(3, 2, 2)[0].unsqueeze(0).expand(2, 2, 2).relu()
    kinds = {node.name: node.kind for node in grad_graph(z)}
    assert kinds.pop("ReluBackward0") == "" and kinds.pop("AccumulateGrad") == "leaf"
    assert set(kinds.values()) == {"view"} and "TBackward0" in kinds
    assert {node.name: node.kind for node in grad_graph((x + 1).clone()) if node.leaf is None} == {
        "AddBackward0": "",
        "CloneBackward0": "",
    }


def test_a_write_through_a_view_is_a_copy_slices_with_the_writers_node_in_it() -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    base = x * 1
    row = base[0]
    row.mul_(w)
    graph = grad_graph(base.sum())
    node = next(node for node in graph if node.name == "CopySlices")
    assert node.kind == "write"
    assert node.variables == ((0, "base"),)
    if torch.__version__ >= "2.14":
        assert node.notes == ("a write through a view, by MulBackward0",)
        assert {each.name for each in node.saved} == {"MulBackward0.self", "MulBackward0.other"}
    else:
        assert node.notes == ("a write through a view",)
    assert {graph[edge[0]].variable or graph[edge[0]].name for edge in node.edges if edge} == {"MulBackward0", "w"}


def test_a_view_says_whose() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    h = x * 1
    row = h[0]
    graph = grad_graph(row.sum())
    assert graph.named("row").notes == ("a view of h",)
    assert graph.named("h").notes == ()


def test_hooks_on_tensors_are_told() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda grad: None)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    h = x * 2
    h.retain_grad()
    graph = grad_graph(h.sum())
    assert graph.named("x").notes == ("1 gradient hook", "1 hook after accumulation")
    assert graph.named("h").notes == ("retains its gradient",)
    assert "notes" in graph.rows()[0]


# Names


def test_parameters_are_called_by_their_paths_in_the_model() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    loss = net(torch.ones(4, 2)).sum()
    graph = grad_graph(loss)
    assert {node.variable for node in graph.leaves()} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert {node.kind for node in graph.leaves()} == {"parameter"}
    assert graph.named("0.weight").module == "0"
    assert [(node.name, node.module) for node in graph if node.leaf is None] == [
        ("SumBackward0", ""),
        ("AddmmBackward0", "2"),
        ("TBackward0", "2"),
        ("ReluBackward0", ""),
        ("AddmmBackward0", "0"),
        ("TBackward0", "0"),
    ]


def test_a_variable_for_a_part_of_a_model_renames_nothing() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    first = net[0]
    loss = net(torch.ones(1, 2)).sum()
    assert {node.variable for node in grad_graph(loss).leaves()} == {"0.weight", "0.bias"}
    assert first is net[0]


def test_what_comes_after_a_module_is_not_counted_as_part_of_it() -> None:
    net = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.ReLU(), nn.Sequential(nn.Conv2d(1, 1, 1, bias=False)))
    loss = net(torch.ones(1, 1, 2, 2)).sum()
    assert [(node.name, node.module) for node in grad_graph(loss) if node.leaf is None] == [
        ("SumBackward0", ""),
        ("ConvolutionBackward0", "2.0"),
        ("ReluBackward0", ""),
        ("ConvolutionBackward0", "0"),
    ]


def test_of_several_models_each_ones_parameters_carry_its_variable() -> None:
    left, right = nn.Linear(2, 2), nn.Linear(2, 2)
    loss = (left(torch.ones(1, 2)) * right(torch.ones(1, 2))).sum()
    assert {node.variable for node in grad_graph(loss).leaves()} == {
        "left.weight", "left.bias", "right.weight", "right.bias",
    }  # fmt: skip
    assert "weight" in {node.variable for node in grad_graph(loss, model=left).leaves()}


def test_a_model_beside_that_has_no_part_in_it_is_left_out() -> None:
    net, other = nn.Linear(2, 2), nn.Linear(2, 2)
    loss = net(torch.ones(1, 2)).sum()
    assert {node.variable for node in grad_graph(loss).leaves()} == {"weight", "bias"}
    assert other is not net


def test_a_compiled_models_parameters_have_their_own_paths() -> None:
    net = torch.compile(nn.Sequential(nn.Linear(2, 2)), backend="eager")
    loss = net._orig_mod(torch.ones(1, 2)).sum()
    assert {node.variable for node in grad_graph(loss).leaves()} == {"0.weight", "0.bias"}


def test_names_come_from_lists_dicts_and_objects_too() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w = leaf(1.0)

    weights, table, layer = [leaf(1.0), leaf(2.0)], {"b": leaf(3.0)}, Layer()
    z = weights[0] * weights[1] + table["b"] * layer.w
    assert {node.variable for node in grad_graph(z).leaves()} == {"weights[0]", "weights[1]", "table['b']", "layer.w"}


def test_names_can_be_given() -> None:
    def make() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        first = leaf(1.0)
        second = first * 2
        return first, second, second.exp()

    parts = make()
    graph = grad_graph(parts[2], names={"in": parts[0], "mid": parts[1]})
    assert [node.variable for node in graph] == ["parts[2]", "mid", "in"]
    assert [root[2] for root in grad_graph(loss=parts[2]).roots] == ["loss"]


def test_several_roots_share_what_is_behind_them() -> None:
    x = leaf(1.0, 2.0)
    h = x.exp()
    one, two = h.sum(), h.mean()
    graph = grad_graph(one, two)
    assert names(graph) == ["MeanBackward0", "SumBackward0", "ExpBackward0", "AccumulateGrad"]
    assert graph.roots == ((1, 0, "one"), (0, 0, "two"))


def test_unknown_names_are_listed_in_the_error() -> None:
    x = leaf(1.0)
    y = x * 2
    with pytest.raises(KeyError, match="no tensor of the graph is called 'w'; the names are y, x"):
        grad_graph(y).named("w")


# What is refused


def test_what_has_no_graph_is_refused_with_the_reason() -> None:
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        cut = x * 2
    with torch.inference_mode():
        frozen = torch.ones(2) * 2
    for tensor, words in (
        (x, "tensor is a leaf, which a graph ends at"),
        (cut, "has requires_grad=False, so there is no graph behind it.*computed under no_grad, or detached"),
        ((x * 2).detach(), "has requires_grad=False"),
        (frozen, "made under inference_mode"),
        (x.argmax(), "holds int64, through which no gradient flows"),
        (3.0, "tensor is a float, no tensor"),
        (mini.ones(3), "has requires_grad=False"),
        (mini.ones(3, requires_grad=True), "is a leaf"),
    ):
        with pytest.raises(TypeError, match=f"^grad_graph: .*{words}"):
            grad_graph(tensor)
    with pytest.raises(ValueError, match="nothing to start from"):
        grad_graph()
    with pytest.raises(TypeError, match="have no graph in common"):
        grad_graph(x * 2, mini.ones(2, requires_grad=True) * 2)


# Nothing changes and nothing stays


def test_looking_changes_neither_gradients_nor_numbers_nor_randomness() -> None:
    def run(look: bool) -> tuple[Any, ...]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
        loss = net(torch.randn(5, 3)).square().sum()
        before = torch._C._autograd._get_sequence_nr()
        if look:
            grad_graph(loss, model=net)
            grad_graph(loss)
        counted = torch._C._autograd._get_sequence_nr() - before
        loss.backward()
        state = torch.get_rng_state().sum().item()
        return [p.grad.clone() for p in net.parameters()], loss.detach(), counted, state

    (plain, loss, _, state), (looked, loss_too, counted, state_too) = run(False), run(True)
    assert all(torch.equal(a, b) for a, b in zip(plain, looked, strict=True))
    assert torch.equal(loss, loss_too) and state == state_too
    assert counted == 0


def test_no_mode_and_no_subclass_sees_the_look() -> None:
    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += 1
            return func(*args, **(kwargs or {}))

    class Functions(torch.overrides.TorchFunctionMode):
        count = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += 1
            return func(*args, **(kwargs or {}))

    x = leaf(1.0, 2.0)
    z = (x.exp().relu() * x).sum()
    with Counting() as dispatch, Functions() as functions:
        graph = grad_graph(z)
        assert (dispatch.count, functions.count) == (0, 0)
        x.sin()
        assert dispatch.count == 1
    assert len(graph) == 5


def test_nothing_is_kept_alive() -> None:
    class Once(Cube):
        pass

    x = leaf(1.0, 2.0)
    h = Once.apply(x)
    z = h.sum()
    alive = [weakref.ref(each) for each in (h, z)]
    graph = grad_graph(z)
    graph.figure()
    del h, z
    assert [each() for each in alive] == [None, None]
    assert not any(type(each).__name__ == "OnceBackward" for each in gc.get_objects())
    assert [node.name for node in graph][:2] == ["SumBackward0", "OnceBackward"]


def test_a_callers_variable_dies_when_the_caller_deletes_it() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        unrelated = torch.ones(1000)
        watch = weakref.ref(unrelated)
        grad_graph((x * 2).sum())
        del unrelated
        return watch()

    assert program() is None


def test_a_views_grad_fn_that_would_be_made_anew_is_not_asked_for() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    base = x * 1
    stale = base[0]
    base.mul_(2)
    total = base.sum()
    before = torch._C._autograd._get_sequence_nr()
    grad_graph(total)
    assert torch._C._autograd._get_sequence_nr() == before
    assert stale.grad_fn is not None and torch._C._autograd._get_sequence_nr() > before


def test_an_exception_leaves_no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    from glassbox.xray import graphs

    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(graphs, "_in_order", broken)
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="broken"):
        grad_graph(x * 2)
    with torch.overrides.BaseTorchFunctionMode() as mode:
        assert mode is not None and torch.overrides._get_current_function_mode() is mode
    assert not torch._C._dispatch_tls_local_exclude_set().has(torch._C.DispatchKey.Python)


# Size, and other kinds of tensors


@pytest.mark.slow
def test_a_graph_of_100_000_nodes_needs_no_recursion() -> None:
    def looked_at() -> int:
        """How many products' nodes Python holds: other tests may have left some."""
        return sum(type(each).__name__ == "MulBackward0" for each in gc.get_objects())

    before = looked_at()
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y * 1.0 + 0.0
    graph = grad_graph(y)
    assert len(graph) == 100_001
    assert len(graph.engine_order()) == 100_001
    assert graph[-1].variable == "x"
    last = y.grad_fn
    del y
    # Freeing a graph that Python has looked at is PyTorch's recursion: by itself this would overflow the stack.
    del last
    assert looked_at() <= before


DEEP = """
import torch
from glassbox.xray import grad_graph
y = torch.ones((), requires_grad=True)
for _ in range(100_000):
    y = y * 1.0
print(len(grad_graph(y)))
"""


@pytest.mark.slow
def test_a_deep_graph_that_was_looked_at_can_be_there_when_python_ends() -> None:
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("100001", 0)


def test_a_graph_of_mini_is_deep_too() -> None:
    x = mini.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(3_000):
        y = y * 1.0
    assert len(grad_graph(y)) == 3_001


def test_fake_tensors_and_compiled_modules() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(3, requires_grad=True)
        graph = grad_graph((x * x).sum())
    assert names(graph) == ["SumBackward0", "MulBackward0", "AccumulateGrad"]
    assert kept(graph, "MulBackward0")["self"].nbytes == 12
    meta = torch.ones(3, device="meta", requires_grad=True)
    assert grad_graph(meta * 2)[0].device == "meta"


def test_nodes_of_two_threads_are_in_order() -> None:
    import threading

    x = leaf(1.0, 2.0)
    made: list[torch.Tensor] = []
    h = x.sin().cos().tan().exp()
    thread = threading.Thread(target=lambda: made.append(h.sum()))
    thread.start()
    thread.join()
    graph = grad_graph(made[0])
    assert graph[0].name == "SumBackward0"
    assert all(node.id < edge[0] for node in graph for edge in node.edges if edge)


# Forward graphs


def test_a_forward_graph_ties_each_call_to_its_backward_node() -> None:
    x, w, b = torch.ones(3, 4), torch.ones(4, 2, requires_grad=True), torch.ones(2, requires_grad=True)

    def net(x: torch.Tensor) -> torch.Tensor:
        h = x @ w + b
        first = h[0]
        y = h.relu() * h
        return y.sum() + first.sum()

    graph = xray.forward_graph(net, x)
    assert graph.backward is not None
    assert [(node.name, [graph.backward[nr].name for nr in node.backward]) for node in graph] == [
        ("mm", ["MmBackward0"]),
        ("add.Tensor", ["AddBackward0"]),
        ("select.int", ["SelectBackward0"]),
        ("relu", ["ReluBackward0"]),
        ("detach", []),
        ("mul.Tensor", ["MulBackward0"]),
        ("sum", ["SumBackward0"]),
        ("sum", ["SumBackward0"]),
        ("add.Tensor", ["AddBackward0"]),
    ]
    assert [row["from"] for row in graph.rows()][:3] == ["x, w", "$2, b", "h"]
    assert graph.rows()[2]["gives"] == "first f32[2]"
    assert graph.tensor(5).base == 4 and graph.tensor(4).name == "h"
    assert [graph.tensor(nr).kind for nr in (0, 1, 3, 4)] == ["argument", "outside", "outside", ""]
    assert graph.results == ((11, "result"),)


def test_every_backward_node_of_a_model_belongs_to_one_call() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    graph = xray.forward_graph(layer, torch.randn(1, 3, 8))
    assert graph.backward is not None
    tied = [nr for node in graph for nr in node.backward]
    assert sorted(tied) == [node.id for node in graph.backward if node.leaf is None]


def test_modules_of_a_forward_graphs_backward_are_those_that_ran() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.lin(x)) + x

    net = nn.Sequential(Block(), Block())
    graph = xray.forward_graph(net, torch.ones(1, 2, requires_grad=True))
    assert graph.backward is not None
    assert [(node.name, node.module) for node in graph.backward if node.leaf is None] == [
        ("AddBackward0", "1"),
        ("ReluBackward0", "1"),
        ("AddmmBackward0", "1.lin"),
        ("TBackward0", "1.lin"),
        ("AddBackward0", "0"),
        ("ReluBackward0", "0"),
        ("AddmmBackward0", "0.lin"),
        ("TBackward0", "0.lin"),
    ]


def test_a_write_is_seen_by_who_reads_the_same_memory_through_another_view() -> None:
    x = torch.ones(3, 2)

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y[0].mul_(2)
        return y.sum()

    graph = xray.forward_graph(fn, x)
    kinds = [(edge.source, edge.target, edge.kind) for edge in graph.edges()]
    assert kinds == [(None, 0, "value"), (0, 1, "view"), (1, 2, "value"), (0, 3, "value"), (2, 3, "memory")]
    assert graph.backward is None
    assert [node.numbers for node in graph] == [()] * 4


def test_what_was_written_comes_from_the_writer_also_if_it_returns_nothing() -> None:
    x, y, z = (TensorMeta(nr, (2,), storage=nr + 1) for nr in range(3))
    log = OpLog(
        (
            OpCall("aten.sin.default", inputs=(x,), outputs=(y,)),
            OpCall("aten._foreach_add_.Scalar", inputs=(y,), mutates=(1,)),
            OpCall("aten.cos.default", inputs=(y,), outputs=(z,)),
        )
    )
    graph = ForwardGraph.of_log(log, names={0: "x"}, results=[(2, "z")])
    assert [(edge.source, edge.target, edge.tensor, edge.kind) for edge in graph.edges()] == [
        (None, 0, 0, "value"),
        (0, 1, 1, "value"),
        (1, 2, 1, "value"),
    ]
    assert graph.made_by() == {1: 1, 2: 2}


def test_no_grad_and_inference_record_no_nodes() -> None:
    net = nn.Linear(2, 2)
    with torch.no_grad():
        assert xray.forward_graph(net, torch.ones(1, 2)).backward is None
    with torch.inference_mode():
        whole = xray.forward_graph(net, torch.ones(1, 2))
    assert [node.name for node in whole] == ["linear"]


def test_a_backward_pass_inside_is_left_out_and_counted() -> None:
    x = leaf(1.0, 2.0)

    def step() -> None:
        (x * x).sum().backward()

    graph = xray.forward_graph(step)
    assert [node.name for node in graph] == ["mul.Tensor", "sum"]
    assert graph.left_out > 0 and "calls of a backward pass left out" in graph.caption()


def test_results_and_gradients_are_the_same_with_and_without() -> None:
    def run(look: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 2))
        kept_result: list[torch.Tensor] = []

        def fn(x: torch.Tensor) -> torch.Tensor:
            kept_result.append(net(x).square().sum())
            return kept_result[0]

        data = torch.randn(5, 3)
        if look:
            xray.forward_graph(fn, data)
        else:
            fn(data)
        kept_result[0].backward()
        return [
            kept_result[0].detach(),
            torch.get_rng_state(),
            *(p.grad for p in net.parameters() if p.grad is not None),
        ]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


def test_an_exception_in_the_program_comes_through_and_leaves_nothing() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    hooks = len(nn.modules.module._global_forward_hooks)
    with pytest.raises(ZeroDivisionError):
        xray.forward_graph(fn, torch.ones(1))
    assert torch._C._len_torch_dispatch_stack() == 0
    assert len(nn.modules.module._global_forward_hooks) == hooks
    with pytest.raises(TypeError, match="^forward_graph: int cannot be called"):
        xray.forward_graph(3)  # type: ignore[arg-type]


def test_a_forward_graph_of_mini_is_the_same_record() -> None:
    def net(x: Any, w: Any) -> Any:
        h = x @ w
        return h.relu().sum()

    def seen(m: Any) -> list[tuple[Any, ...]]:
        x, w = m.ones(3, 4), m.ones(4, 2, requires_grad=True)
        graph = xray.forward_graph(net, x, w)
        assert graph.backward is not None
        return [
            (node.name, node.call.effect, tuple(each.type() for each in node.call.outputs))
            for node in graph
            if node.name != "detach"
        ] + [(node.name,) for node in graph.backward]

    assert seen(torch) == seen(mini)


@pytest.mark.slow
def test_every_torchvision_classifier_can_be_graphed(full: bool) -> None:
    torchvision = pytest.importorskip("torchvision")
    few = ["mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1"]
    listed = torchvision.models.list_models(module=torchvision.models) if full else few
    for name in listed:
        torch.manual_seed(0)
        model = torchvision.models.get_model(name, weights=None).eval()
        size = 299 if name == "inception_v3" else 64 if "vit" not in name and "maxvit" not in name else 224
        out = model(torch.randn(1, 3, size, size))
        graph = grad_graph(out if isinstance(out, torch.Tensor) else out[0], model=model)
        assert len(graph.leaves()) > 0, name
        assert all(node.variable for node in graph.leaves()), name
        assert graph.figure().width > 0, name
        del model, out, graph
