"""Every derivative against PyTorch's: values, gradients, gradients of gradients, the node and what it saves."""

from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini
from glassbox.mini.autograd.load_derivatives import differentiability_infos
from glassbox.mini.python_arg_parser import make_binder

from .both import T, build, dispatcher, flat, mini_op, same
from .cases import CASES, KEYWORDS

CALLS = [(key, args, {}) for key, several in CASES.items() for args in several] + KEYWORDS
# Their second derivatives are not PyTorch's own choice there: at such points finite differences say nothing either.
FIRST_ONLY = {"nll_loss_backward", "nll_loss2d_backward"}
# PyTorch keeps further sizes to decide what it saves, and its enumerations as other things.
NAMES_OF_OURS = {"self_sym_numel"}


def call(key: str, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> list[Any]:
    """(results, differentiable inputs) for mini and for PyTorch."""
    rng = np.random.default_rng(seed)
    pairs = [build(each, rng) for each in args]
    named = {name: build(each, rng) for name, each in kwargs.items()}
    op = dispatcher.find_schema_or_throw(f"aten::{key}")
    left = op.call(*make_binder(op.schema)(tuple(a for a, _ in pairs), {name: a for name, (a, _) in named.items()}))
    base, _, overload = key.partition(".")
    theirs = getattr(getattr(torch.ops.aten, base), overload or "default")
    right = theirs(*[b for _, b in pairs], **{name: b for name, (_, b) in named.items()})
    inputs = [[each for each in flat([pair[side] for pair in pairs]) if each.requires_grad] for side in (0, 1)]
    return [(flat(left), inputs[0]), (flat(right), inputs[1])]


def cotangents(results: list[Any], seed: int, module: Any) -> list[Any]:
    rng = np.random.default_rng(seed + 1)
    found = []
    for result in results:
        if result.requires_grad:
            values = rng.uniform(-1, 1, tuple(result.shape))
            made = module.tensor(values.tolist(), dtype=result.dtype).reshape(values.shape)
            found.append(made.requires_grad_())
    return found


def uneven(like: Any, module: Any) -> Any:
    """Values that no sum makes disappear."""
    count = like.numel()
    values = np.cos(np.arange(count) * 1.7) + 0.3
    return module.tensor(values.tolist(), dtype=like.dtype).reshape(tuple(like.shape))


@pytest.mark.parametrize(("key", "args", "kwargs"), CALLS, ids=[f"{key}-{nr}" for nr, (key, _, _) in enumerate(CALLS)])
def test_first_and_second_derivatives_are_pytorchs(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    sides = call(key, args, kwargs, seed=0)
    (ours, _), (theirs, _) = sides
    assert len(ours) == len(theirs)
    for nr, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        assert left.requires_grad == right.requires_grad, f"result {nr}"
        same(left, right, where=f"result {nr}", rtol=1e-6 if "float32" in str(left.dtype) else 1e-9)
        if left.requires_grad:
            assert left.grad_fn.name() == right.grad_fn.name()
    firsts, seconds = [], []
    for module, (results, inputs) in zip((mini, torch), sides, strict=True):
        outputs = [each for each in results if each.requires_grad]
        seeds = cotangents(results, 0, module)
        grads = module.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)
        firsts.append(grads)
        again = [each for each in grads if each is not None and each.requires_grad]
        if not again or key in FIRST_ONLY:
            seconds.append([None])
            continue
        weights = [uneven(each, module) for each in again]
        seconds.append(module.autograd.grad(again, [*inputs, *seeds], weights, allow_unused=True))
    loose = any("float32" in str(each.dtype) for each in sides[1][1])
    for order, (left, right) in enumerate(((firsts[0], firsts[1]), (seconds[0], seconds[1]))):
        assert len(left) == len(right)
        for nr, (a, b) in enumerate(zip(left, right, strict=True)):
            if order == 1 and (a is None) != (b is None):
                # None and zeros say the same: PyTorch's own formulas choose one or the other.
                known = a if a is not None else b
                assert not known.detach().abs().sum().item(), f"second derivative {nr}: {a} and {b}"
                continue
            same(
                a, b, where=f"derivative {order + 1}, {nr}", rtol=1e-5 if loose else 1e-8, atol=1e-6 if loose else 1e-9
            )


def test_every_formula_is_tried() -> None:
    tried = {key for key, _, _ in CALLS}
    in_place = {key for key, info in differentiability_infos().items() if info.schema.is_inplace}
    reached_by_others = {"native_batch_norm_backward", "native_layer_norm_backward", "max_pool2d_with_indices_backward"}
    formulas = {key for key, info in differentiability_infos().items() if info.formulas}
    assert formulas - in_place - reached_by_others - set(BY_DIFFERENCES) - tried == set()
    assert tried - formulas == set()


# What PyTorch has no derivative for (copy), a wrong one (as_strided_scatter), or draws at random.
BY_DIFFERENCES = {
    "copy": lambda a: mini_op("copy")(a, a[0] * 2),
    "as_strided_scatter": lambda a: mini_op("as_strided_scatter")(a, a[:2, :2] * 3, [2, 2], [4, 1], 1),
    "native_dropout": lambda a: mini_op("native_dropout")(a, 0.0, True)[0],
}


@pytest.mark.parametrize("key", BY_DIFFERENCES)
def test_the_rest_by_finite_differences(key: str) -> None:
    a = mini.tensor(np.random.default_rng(0).uniform(-1, 1, (3, 4)).tolist(), dtype=mini.float64, requires_grad=True)
    assert mini.autograd.gradcheck(BY_DIFFERENCES[key], (a,))


def test_dropout_sends_back_what_it_let_through() -> None:
    x = mini.ones(200, requires_grad=True)
    y, mask = mini_op("native_dropout")(x, 0.25, True)
    assert y.grad_fn.name() == "NativeDropoutBackward0"
    assert not mask.requires_grad
    y.sum().backward()
    assert 0 < mask.sum().item() < 200
    assert x.grad.tolist() == pytest.approx((mask.float() / 0.75).tolist())


def saved_names(node: Any) -> set[str]:
    return {name for name in dir(node) if name.startswith("_saved_")}


@pytest.mark.parametrize(("key", "args", "kwargs"), CALLS, ids=[f"{key}-{nr}" for nr, (key, _, _) in enumerate(CALLS)])
def test_nodes_save_the_tensors_that_pytorchs_save(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    (ours, _), (theirs, _) = call(key, args, kwargs, seed=1)
    for left, right in zip(ours, theirs, strict=True):
        if not left.requires_grad:
            continue
        for name in saved_names(right.grad_fn):
            expected = getattr(right.grad_fn, name)
            if not isinstance(expected, torch.Tensor):
                continue
            found = getattr(left.grad_fn, name)
            same(found, expected, where=name, rtol=1e-6)
        for name in saved_names(left.grad_fn):
            if isinstance(getattr(left.grad_fn, name), mini.Tensor):
                assert isinstance(getattr(right.grad_fn, name, None), torch.Tensor), f"{name} is saved here alone"


def test_numbers_are_saved_under_pytorchs_names() -> None:
    rng = np.random.default_rng(0)
    programs = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "sum": lambda a, b: a.sum(),
        "sum of dims": lambda a, b: a.sum(1),
        "log_softmax": lambda a, b: a.log_softmax(1),
        "select": lambda a, b: a[0],
        "slice": lambda a, b: a[1:],
        "view": lambda a, b: a.view(12),
        "expand": lambda a, b: a.expand(2, 3, 4),
        "permute": lambda a, b: a.permute(1, 0),
        "transpose": lambda a, b: a.transpose(0, 1),
        "pow": lambda a, b: a.pow(2),
        "clamp": lambda a, b: a.clamp(0),
        "amax": lambda a, b: a.amax(1),
        "var": lambda a, b: a.var(),
        "max": lambda a, b: a.max(1)[0],
    }
    values = rng.uniform(-1, 1, (3, 4)).tolist()
    for name, program in programs.items():
        nodes = [
            program(module.tensor(values, requires_grad=True), module.tensor(values)).grad_fn
            for module in (mini, torch)
        ]
        assert saved_names(nodes[0]) - {f"_saved_{each}" for each in NAMES_OF_OURS} == saved_names(nodes[1]), name
        for each in saved_names(nodes[1]):
            left, right = getattr(nodes[0], each), getattr(nodes[1], each)
            if not isinstance(right, torch.Tensor) and each != "_saved_end":
                assert left == right, f"{name}: {each}"


def test_half_precision_gradients_keep_the_dtype() -> None:
    for program in (lambda a, b: a * b, lambda a, b: a @ b.t(), lambda a, b: (a.exp() / (b * b + 1)).sum()):
        grads = []
        for module in (mini, torch):
            a = module.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=module.bfloat16, requires_grad=True)
            b = module.tensor([[0.5, 1.5], [2.0, 1.0]], dtype=module.bfloat16, requires_grad=True)
            y = program(a, b)
            y.sum().backward()
            grads.append((a.grad, b.grad))
        for left, right in zip(*grads, strict=True):
            same(left, right, rtol=2e-2, atol=2e-2)


T.__test__ = False
