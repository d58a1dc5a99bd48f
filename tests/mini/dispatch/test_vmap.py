"""Facts about vmap: a function mapped over a batch gives what torch.func.vmap gives, by the same keys."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.mini.c10.local_dispatch_key_set import local_keys
from glassbox.mini.modes.batched_tensor import BatchedTensor
from glassbox.mini.modes.dynamic_layer import current_layer

from .programs import approx, log_of, numbers


def values(t: Any, shape: tuple[int, ...], kind: str = "float32") -> Any:
    count = 1
    for n in shape:
        count *= n
    x = t.arange(count)
    if kind == "float32":
        return ((x * 7 % 11) * 0.25 - 1.0).view(shape)
    if kind == "bool":
        return (x % 3 == 0).view(shape)
    return (x * 5 % 4).view(shape).to(getattr(t, kind))


def both(
    function: Callable[..., Any],
    *inputs: Any,
    in_dims: Any = 0,
    out_dims: Any = 0,
    nested: bool = False,
    **options: Any,
) -> Any:
    """vmap(function(t, ...)) in both; asserts equal values, shapes and dtypes and gives mini's result."""
    results = []
    for t in (torch, mini):
        made = [
            values(t, *each) if isinstance(each, tuple) and each and isinstance(each[0], tuple) else values(t, each)
            for each in inputs
        ]

        def on(*args: Any, t: Any = t) -> Any:
            return function(t, *args)

        mapped = t.vmap(on, in_dims=in_dims, out_dims=out_dims, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(t.vmap(mapped)(*made) if nested else mapped(*made))
    flat = [result if isinstance(result, list | tuple) else (result,) for result in results]
    for its, ours in zip(*flat, strict=True):
        assert tuple(ours.shape) == tuple(its.shape)
        assert str(ours.dtype).rpartition(".")[2] == str(its.dtype).rpartition(".")[2]
        assert numbers(ours) == approx(numbers(its))
    return results[1]


POINTWISE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sin": (lambda t, x: x.sin(), ((2, 3),)),
    "a chain": (lambda t, x: (x * 2 + 1).relu().exp(), ((2, 3),)),
    "ranks differ": (lambda t, x, y: x + y, ((2, 3, 4), (2, 4))),
    "ranks differ the other way": (lambda t, x, y: x * y, ((2, 4), (2, 3, 4))),
    "0-d against 1-d": (lambda t, x, y: x - y, ((2,), (2, 3))),
    "0-d float against int": (lambda t, x, y: x * y, ((2,), ((2, 3), "int64"))),
    "0-d int against float": (lambda t, x, y: x + y, (((2,), "int64"), (2, 3))),
    "comparison": (lambda t, x, y: x > y, ((2, 3), (2,))),
    "where": (lambda t, c, x, y: t.where(c, x, y), (((2, 3), "bool"), (2, 3), (2,))),
    "clamp": (lambda t, x: x.clamp(min=-0.5, max=0.5), ((2, 3),)),
    "pow": (lambda t, x: x.pow(2) + 2.0**x, ((2, 3),)),
    "division": (lambda t, x, y: x / (y + 2.5), ((2, 3), (2, 3))),
    "numbers": (lambda t, x: 1 - x / 3 + 2, ((2, 3),)),
    "to": (lambda t, x: x.to(t.float64).sigmoid(), ((2, 3),)),
    "clone and contiguous": (lambda t, x: x.t().contiguous().clone(), ((2, 3, 4),)),
    "zeros_like": (lambda t, x: t.zeros_like(x) + t.ones_like(x) * x, ((2, 3),)),
    "masked_fill": (lambda t, x, m: x.masked_fill(m, 9.0), ((2, 3), ((2, 3), "bool"))),
    "closed over": (lambda t, x: x + t.arange(3), ((2, 3),)),
    "nothing of it": (lambda t, x: t.ones(3), ((2, 3),)),
    "lerp and addcmul": (lambda t, x, y: x.lerp(y, 0.25).addcmul(x, y), ((2, 3), (2, 3))),
    "logic": (lambda t, x, y: x.logical_and(y).logical_not(), (((2, 3), "bool"), ((2, 3), "bool"))),
}
REDUCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (lambda t, x: x.sum(), ((2, 3, 4),)),
    "sum of a 0-d": (lambda t, x: x.sum(), ((2,),)),
    "sum over a dim": (lambda t, x: x.sum(-1), ((2, 3, 4),)),
    "sum over dims": (lambda t, x: x.sum((0, 1), keepdim=True), ((2, 3, 4),)),
    "mean": (lambda t, x: x.mean(), ((2, 3, 4),)),
    "mean over a dim": (lambda t, x: x.mean(0), ((2, 3, 4),)),
    "max": (lambda t, x: x.max(), ((2, 3, 4),)),
    "max over a dim": (lambda t, x: x.max(1), ((2, 3, 4),)),
    "min over a dim": (lambda t, x: x.min(-2, keepdim=True), ((2, 3, 4),)),
    "amax": (lambda t, x: x.amax(1), ((2, 3, 4),)),
    "argmax": (lambda t, x: x.argmax(), ((2, 3, 4),)),
    "argmin over a dim": (lambda t, x: x.argmin(1), ((2, 3, 4),)),
    "prod": (lambda t, x: x.prod(), ((2, 3),)),
    "any and all": (lambda t, x: (x.any(), x.all(0)), (((2, 3), "bool"),)),
    "var": (lambda t, x: x.var(0), ((2, 3, 4),)),
    "std of all": (lambda t, x: x.std(), ((2, 3, 4),)),
    "logsumexp": (lambda t, x: x.logsumexp(1), ((2, 3, 4),)),
    "cumsum": (lambda t, x: x.cumsum(-1), ((2, 3, 4),)),
    "softmax": (lambda t, x: x.softmax(-1), ((2, 3, 4),)),
    "log_softmax": (lambda t, x: x.log_softmax(0), ((2, 3, 4),)),
    "sort": (lambda t, x: x.sort(0, descending=True)[0], ((2, 3, 4),)),
    "topk": (lambda t, x: x.topk(2)[0], ((2, 3, 4),)),
}
VIEWS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "view": (lambda t, x: x.view(-1), ((2, 3, 4),)),
    "view to two": (lambda t, x: x.view(4, -1), ((2, 3, 4),)),
    "reshape of a transposed": (lambda t, x: x.t().reshape(12), ((2, 3, 4),)),
    "expand": (lambda t, x: x.expand(5, 3), ((2, 3),)),
    "expand with -1": (lambda t, x: x.expand(5, -1), ((2, 3),)),
    "permute": (lambda t, x: x.permute(2, 0, 1), ((2, 3, 4, 5),)),
    "transpose": (lambda t, x: x.transpose(-1, 0), ((2, 3, 4),)),
    "t": (lambda t, x: x.t(), ((2, 3, 4),)),
    "t of a vector": (lambda t, x: x.t(), ((2, 3),)),
    "squeeze": (lambda t, x: x.squeeze(), ((1, 1, 3, 1),)),
    "squeeze a dim": (lambda t, x: x.squeeze(-1), ((2, 3, 1),)),
    "unsqueeze": (lambda t, x: x.unsqueeze(-1) + x.unsqueeze(0), ((2, 3),)),
    "select": (lambda t, x: x[-1], ((2, 3, 4),)),
    "slice": (lambda t, x: x[1:, ::2], ((2, 3, 4),)),
    "split": (lambda t, x: x.split(2, 1), ((2, 3, 5),)),
    "split with sizes": (lambda t, x: x.split([1, 2]), ((2, 3, 4),)),
    "unbind": (lambda t, x: x.unbind(1), ((2, 3, 2),)),
    "chunk": (lambda t, x: x.chunk(2), ((2, 4, 2),)),
    "flatten": (lambda t, x: x.flatten(), ((2, 3, 4),)),
    "movedim": (lambda t, x: x.movedim(0, 1), ((2, 3, 4),)),
    "flip": (lambda t, x: x.flip(0), ((2, 3, 4),)),
    "T and mT": (lambda t, x: x.mT + x.mT, ((2, 3, 4),)),
    "detach and alias": (lambda t, x: x.detach()[...], ((2, 3),)),
}
PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mm": (lambda t, x, y: x.mm(y), ((2, 3, 4), (2, 4, 5))),
    "mm with a shared one": (lambda t, x: x.mm(values(t, (4, 5))), ((2, 3, 4),)),
    "mm of a shared one": (lambda t, x: values(t, (5, 3)).mm(x), ((2, 3, 4),)),
    "bmm": (lambda t, x, y: x.bmm(y), ((2, 6, 3, 4), (2, 6, 4, 5))),
    "bmm with a shared one": (lambda t, x: x.bmm(values(t, (6, 4, 5))), ((2, 6, 3, 4),)),
    "mv": (lambda t, x, y: x.mv(y), ((2, 3, 4), (2, 4))),
    "mv of a shared one": (lambda t, x: values(t, (3, 4)).mv(x), ((2, 4),)),
    "dot": (lambda t, x, y: x.dot(y), ((2, 4), (2, 4))),
    "matmul": (lambda t, x, y: x @ y, ((2, 6, 3, 4), (2, 4))),
    "outer": (lambda t, x, y: x.outer(y), ((2, 3), (2, 4))),
    "addmm": (lambda t, b, x, y: b.addmm(x, y, beta=2, alpha=0.5), ((2, 5), (2, 3, 4), (2, 4, 5))),
    "addmm of a shared bias": (lambda t, x, y: values(t, (5,)).addmm(x, y), ((2, 3, 4), (2, 4, 5))),
    "baddbmm": (lambda t, b, x, y: b.baddbmm(x, y), ((2, 6, 3, 5), (2, 6, 3, 4), (2, 6, 4, 5))),
    "linear": (lambda t, x: linear(t)(x, values(t, (5, 4)), values(t, (5,))), ((2, 3, 4),)),
    "linear of each's own": (lambda t, x, w, b: linear(t)(x, w, b), ((2, 4), (2, 5, 4), (2, 5))),
}
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cat": (lambda t, x, y: t.cat([x, y, values(t, (1, 4))], 0), ((2, 3, 4), (2, 1, 4))),
    "stack": (lambda t, x, y: t.stack([x, y], -1), ((2, 3), (2, 3))),
    "gather": (lambda t, x, i: x.gather(1, i), ((2, 3, 4), ((2, 3, 1), "int64"))),
    "gather by a shared index": (lambda t, x: x.gather(0, values(t, (1, 4), "int64") % 3), ((2, 3, 4),)),
    "index_select": (lambda t, x: x.index_select(0, t.arange(2)), ((2, 3, 4),)),
    "index_select by each's own": (lambda t, x, i: x.index_select(0, i % 3), ((2, 3, 4), ((2, 2), "int64"))),
    "index": (lambda t, x, i: x[i % 3], ((2, 3, 4), ((2, 2), "int64"))),
    "index by a shared one": (lambda t, x: x[t.arange(2), 1:], ((2, 3, 4),)),
    "embedding": (lambda t, i: embedding(t)(values(t, (4, 3)), i), (((2, 5), "int64"),)),
    "scatter_add": (lambda t, x, i, s: x.scatter_add(1, i, s), ((2, 3, 4), ((2, 3, 2), "int64"), (2, 3, 2))),
    "tril": (lambda t, x: x.tril(), ((2, 3, 3),)),
    "conv2d": (lambda t, x: t.conv2d(x, values(t, (2, 3, 2, 2)), padding=1), ((2, 4, 3, 5, 5),)),
    "conv2d of each's own weight": (lambda t, x, w: t.conv2d(x, w), ((2, 1, 3, 5, 5), (2, 2, 3, 2, 2))),
    "max_pool2d": (lambda t, x: t.max_pool2d(x, 2), ((2, 3, 4, 4),)),
    "adaptive_avg_pool2d": (lambda t, x: pool(t)(x, (1, 1)), ((2, 2, 3, 4, 4),)),
    "layer_norm": (lambda t, x: t.layer_norm(x, (4,), values(t, (4,))), ((2, 3, 4),)),
    "cross entropy": (lambda t, x, y: entropy(t)(x, y), ((2, 3, 4), ((2, 3), "int64"))),
    "new_zeros written to": (lambda t, x: written(x.new_zeros(3), x), ((2, 3),)),
    "repeat": (lambda t, x: x.repeat(2, 2), ((2, 3, 4),)),
}


def linear(t: Any) -> Any:
    return t.nn.functional.linear


def embedding(t: Any) -> Any:
    return t.ops.aten.embedding


def pool(t: Any) -> Any:
    return t.ops.aten.adaptive_avg_pool2d


def entropy(t: Any) -> Any:
    return t.ops.aten.cross_entropy_loss


def written(target: Any, source: Any) -> Any:
    target[0] = source.sum()
    target[1:] = source[:2]
    return target


ALL = POINTWISE | REDUCTIONS | VIEWS | PRODUCTS | OTHERS


@pytest.mark.parametrize("name", ALL)
def test_a_function_mapped_over_the_first_dimension(name: str) -> None:
    function, inputs = ALL[name]
    both(function, *inputs)


@pytest.mark.parametrize("name", ALL)
def test_a_function_mapped_over_the_last_dimension(name: str) -> None:
    function, inputs = ALL[name]

    def turned(t: Any, *args: Any) -> Any:
        return function(t, *args)

    shapes = [each[0] if isinstance(each[0], tuple) else each for each in inputs]
    kinds = [each[1] if isinstance(each[0], tuple) else "float32" for each in inputs]
    last = [((*shape[1:], shape[0]), kind) for shape, kind in zip(shapes, kinds, strict=True)]
    both(turned, *last, in_dims=-1, out_dims=0)


@pytest.mark.parametrize("name", ALL)
def test_a_function_mapped_twice(name: str) -> None:
    function, inputs = ALL[name]
    twice = [((3, *each[0]), each[1]) if isinstance(each[0], tuple) else (3, *each) for each in inputs]
    both(function, *twice, nested=True)


@pytest.mark.parametrize(
    ("in_dims", "out_dims"), itertools.product([(0, 0), (1, 0), (None, 1), (0, None), (-1, 1)], [0, 1, -1])
)
def test_in_and_out_dims(in_dims: tuple[Any, Any], out_dims: int) -> None:
    shapes = {0: (3, 2), 1: (2, 3), None: (2,), -1: (2, 3)}
    both(lambda t, x, y: x * 2 + y, shapes[in_dims[0]], shapes[in_dims[1]], in_dims=in_dims, out_dims=out_dims)


def test_structures_of_inputs_and_outputs() -> None:
    for t in (torch, mini):

        def function(pair: Any, *, scale: Any) -> Any:
            x, named = pair
            return {"sum": x + named["y"], "both": [x * scale[0], (named["y"],)]}

        x, y = values(t, (2, 3)), values(t, (3, 2))
        result = t.vmap(function, in_dims=((0, {"y": 1}),), out_dims={"sum": 0, "both": 1})(
            (x, {"y": y}), scale=values(t, (2,))
        )
        assert list(result) == ["sum", "both"]
        assert tuple(result["sum"].shape) == (2, 3) and tuple(result["both"][0].shape) == (3, 2)
        assert numbers(result["sum"]) == numbers(x + y.t())
        assert numbers(result["both"][1][0]) == numbers(y)


def test_pairwise_products_by_two_vmaps() -> None:
    for t in (torch, mini):
        x, y = values(t, (3, 4)), values(t, (5, 4))
        inner = t.vmap(lambda a, b: (a * b).sum(), in_dims=(None, 0))
        assert numbers(t.vmap(inner, in_dims=(0, None))(x, y)) == approx(numbers(x @ y.t()))


def test_in_place_writes_reach_the_batch() -> None:
    def function(t: Any, x: Any, y: Any) -> Any:
        z = x.clone()
        z.add_(y)
        z[0].mul_(2)
        z.t().sub_(1)
        z[:, 0] = 5
        z[1].zero_()
        z.copy_(z + y)
        return z

    both(function, (2, 3, 3), (2, 3, 3))


def test_a_write_into_what_is_not_mapped_is_refused() -> None:
    for t in (torch, mini):
        shared = t.zeros(3)
        with pytest.raises(RuntimeError, match="is not possible because|doesn't match the broadcast shape"):
            t.vmap(lambda x, shared=shared: shared.add_(x))(t.ones(2, 3))


def test_what_hangs_on_an_element_is_refused() -> None:
    for t in (torch, mini):
        with pytest.raises(RuntimeError, match=r"\.item\(\)"):
            t.vmap(lambda x: x.item())(t.ones(2))
        with pytest.raises(RuntimeError, match="data-dependent control flow"):
            t.vmap(lambda x: x if x.sum() > 0 else -x)(t.ones(2, 3))
        with pytest.raises(RuntimeError, match="dynamic shape"):
            t.vmap(lambda x: x.nonzero())(t.ones(2, 3))


ERRORS: list[tuple[Any, ...]] = [
    (lambda t: t.vmap(lambda x: x)(), ValueError, "no inputs"),
    (lambda t: t.vmap(lambda x: x)(5), ValueError, "type .* non-Tensor|of type"),
    (lambda t: t.vmap(lambda x, y: x + y)(t.ones(2), t.ones(3)), ValueError, "same size in the mapped dimension"),
    (lambda t: t.vmap(lambda x: x, in_dims=2)(t.ones(2, 3)), ValueError, "-2 <= in_dim < 2"),
    (lambda t: t.vmap(lambda x: x, in_dims=(0, 0))(t.ones(2)), ValueError, "not compatible with the structure of"),
    (lambda t: t.vmap(lambda x: x, in_dims="a")(t.ones(2)), ValueError, "expected `in_dims` to be int or"),
    (lambda t: t.vmap(lambda x: x, in_dims=(None,))(t.ones(2)), ValueError, "at least one Tensor to vmap over"),
    (lambda t: t.vmap(lambda x: 5)(t.ones(2)), ValueError, "must only return Tensors"),
    (lambda t: t.vmap(lambda x: x, out_dims=4)(t.ones(2, 3)), (IndexError, ValueError), "out of range"),
    (
        lambda t: t.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(t.ones(2)),
        ValueError,
        "not compatible with the structure of",
    ),
    (
        lambda t: t.vmap(lambda x: x, randomness="perhaps")(t.ones(2)),
        RuntimeError,
        "Only allowed values for randomness",
    ),
]


@pytest.mark.parametrize("nr", range(len(ERRORS)))
def test_calls_that_do_not_fit(nr: int) -> None:
    call, kind, words = ERRORS[nr]
    for t in (torch, mini):
        with pytest.raises(kind, match=words):
            call(t)
    assert current_layer() is None


def test_an_exception_leaves_no_vmap_behind() -> None:
    before = local_keys.get()
    with pytest.raises(ZeroDivisionError):
        mini.vmap(mini.vmap(lambda x: 1 / 0))(mini.ones(2, 2))
    assert local_keys.get() == before and current_layer() is None


def test_a_tensor_that_escaped_is_refused() -> None:
    kept: list[Any] = []
    mini.vmap(lambda x: kept.append(x) or x)(mini.ones(2))  # type: ignore[func-returns-value]
    assert isinstance(kept[0], BatchedTensor)
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] + 1


def test_its_elements_cannot_be_looked_at_but_it_prints() -> None:
    texts: list[str] = []

    def look(x: Any) -> Any:
        texts.append(repr(x))
        with pytest.raises(RuntimeError, match="only stands for"):
            x.tolist()
        return x

    mini.vmap(look)(mini.ones(2))
    assert texts == ["BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1., 1.])\n)"]


# Randomness


def test_random_operators_are_an_error_unless_allowed() -> None:
    for t in (torch, mini):
        for function in (
            lambda x, t=t: t.randn(2),
            lambda x, t=t: t.rand_like(x),
            lambda x, t=t: t.dropout(x, 0.5, True),
            lambda x: x.clone().uniform_(),
        ):
            with pytest.raises(
                RuntimeError,
                match="called random operation while in randomness error mode|called random operation .* while",
            ):
                t.vmap(function)(t.ones(2, 3))


RANDOM: dict[str, Callable[..., Any]] = {
    "rand": lambda t, x: t.rand(3),
    "randn": lambda t, x: t.randn(20),
    "randint": lambda t, x: t.randint(10, (3,)),
    "rand_like": lambda t, x: t.rand_like(x),
    "uniform_": lambda t, x: x.clone().uniform_(),
    "bernoulli_": lambda t, x: x.clone().bernoulli_(0.5),
}


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_torchs(name: str, randomness: str) -> None:
    torch.manual_seed(3)
    mini.manual_seed(3)
    result = both(RANDOM[name], (2, 3), randomness=randomness)
    assert (result[0].tolist() == result[1].tolist()) == (randomness == "same")


def test_dropout_drops_the_same_or_different_elements() -> None:
    x = mini.ones(2, 64)
    same = mini.vmap(lambda x: mini.dropout(x, 0.5, True), randomness="same")(x).tolist()
    other = mini.vmap(lambda x: mini.dropout(x, 0.5, True), randomness="different")(x).tolist()
    assert same[0] == same[1] and set(same[0]) == {0.0, 2.0}
    assert other[0] != other[1]


def test_random_writes_into_what_is_not_mapped_cannot_differ() -> None:
    for t in (torch, mini):
        shared = t.zeros(3)
        with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an unbatched tensor"):
            t.vmap(lambda x, shared=shared: x + shared.uniform_(), randomness="different")(t.ones(2, 3))


# With autograd


def test_gradients_flow_through_a_vmap() -> None:
    grads = []
    for t in (torch, mini):
        x, w = values(t, (2, 3)).requires_grad_(), values(t, (4, 3)).requires_grad_()
        inside: list[bool] = []

        def function(x: Any, w: Any = w, inside: list[bool] = inside) -> Any:
            inside.append(x.requires_grad)
            return (w @ x).tanh().sum()

        t.vmap(function)(x).sum().backward()
        assert inside == [False]
        grads.append([numbers(x.grad), numbers(w.grad)])
    assert grads[1] == approx(grads[0])


def test_a_jacobian_is_a_vmap_over_the_backward_pass() -> None:
    found = []
    for t in (torch, mini):
        x = values(t, (3,)).requires_grad_()
        y = (x * x * x).cumsum(0)

        def row(v: Any, t: Any = t, x: Any = x, y: Any = y) -> Any:
            return t.autograd.grad(y, x, v, retain_graph=True)[0]

        found.append(numbers(t.vmap(row)(t.eye(3))))
    assert found[1] == approx(found[0])
    assert found[1][2][0] == pytest.approx(3 * (-1.0) ** 2)


# By which way


def test_the_hops_of_a_mapped_call_are_torchs() -> None:
    x = mini.ones(2, 3)
    with mini.record() as seen:
        mini.vmap(mini.sin)(x)
    assert [(hop.depth, hop.key) for hop in seen.hops if hop.op == "aten.sin.default"] == [
        (0, "FuncTorchDynamicLayerFrontMode"),
        (1, "FuncTorchBatched"),
        (2, "FuncTorchDynamicLayerBackMode"),
        (3, "AutogradCPU"),
        (4, "CPU"),
    ]


def test_composites_are_taken_apart_and_most_operators_have_a_rule() -> None:
    kinds = {op.schema.key: op.row(mini.DispatchKey.FuncTorchBatched).reason for op in dispatcher.operators.values()}
    assert kinds["matmul"] == "batched kernel"
    assert kinds["add.Tensor"] == kinds["mm"] == kinds["sum.dim_IntList"] == "kernel"
    assert kinds["index_put"] == "backend fallback"
    for name in ("matmul", "reshape", "linear"):
        table = torch._C._dispatch_dump_table(f"aten::{name}")
        assert "[batched kernel]" in next(line for line in table.splitlines() if line.startswith("FuncTorchBatched:"))


def test_an_operator_without_a_rule_is_called_per_example_with_a_warning() -> None:
    x = values(mini, (2, 3, 4))
    with pytest.warns(UserWarning, match="no batching rule for aten::tril"):
        result = mini.vmap(lambda x: x.tril())(x)
    assert numbers(result) == [numbers(each.tril()) for each in x]


def test_a_new_operator_with_a_rule_of_its_own() -> None:
    for t in (torch, mini):
        lib = t.library.Library("mapped", "DEF")
        lib.define("double(Tensor x) -> Tensor")
        lib.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
        called: list[int] = []

        def rule(info: Any, in_dims: Any, x: Any, called: list[int] = called) -> Any:
            called.append(info.batch_size)
            return x * 2, in_dims[0]

        t.library.register_vmap("mapped::double", rule, lib=lib)
        x = values(t, (3, 2))
        assert numbers(t.vmap(t.ops.mapped.double, in_dims=1)(x)) == numbers((x * 2).t())
        assert called == [2]
        lib._destroy()


def test_a_mode_inside_and_outside_sees_the_operators_on_the_whole_batch() -> None:
    def program(t: Any) -> None:
        t.vmap(lambda x: (x @ x).sin().sum())(t.ones(2, 3, 3))

    assert log_of(mini, program) == log_of(torch, program)
