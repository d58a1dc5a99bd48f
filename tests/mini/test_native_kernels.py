"""The kernels that are not pointwise give what PyTorch's give: values, dtype, shape, strides, error types."""

import importlib
import itertools
import math
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from glassbox import mini
from glassbox.mini.aten import native
from glassbox.mini.aten.native.structured import Structured
from glassbox.mini.c10.dtype import by_name
from glassbox.mini.c10.storage import Storage

FLOATS = (torch.float32, torch.float64, torch.bfloat16)
NUMBERS = (*FLOATS, torch.int64, torch.int32, torch.uint8)
ALL = (*NUMBERS, torch.bool)
# Sums and products of a few elements in another order; exp and log of other libraries.
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-11, torch.bfloat16: 1.6e-2}


@cache
def kernels() -> dict[str, Any]:
    """Per operator of the list its kernel, in the form that the operator needs."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(native.__path__):
        module = importlib.import_module(f"{native.__name__}.{info.name}")
        found.update({k: v for k, v in vars(module).items() if not k.startswith("_") and _own(v, module)})
    text = Path(native.__file__).parents[1].joinpath("native_functions.yaml").read_text(encoding="utf-8")
    entries = {entry["func"].split("(")[0]: entry for entry in yaml.safe_load(text)}
    forms: dict[str, Any] = {}
    for name, entry in entries.items():
        lender = entries.get(entry.get("structured_delegate", ""), entry)
        kernel = found.get((lender.get("dispatch") or {}).get("CPU", ""))
        if isinstance(kernel, Structured):
            inplace = name.split(".")[0].endswith("_")
            writes = "Tensor(a!)" in entry["func"]
            kernel = kernel.inplace if inplace else kernel.out if writes else kernel.functional
        forms[name] = kernel
    return forms


def _own(value: Any, module: Any) -> bool:
    return isinstance(value, Structured) or getattr(value, "__module__", "") == module.__name__


def to_mini(value: Any) -> Any:
    """The same argument for mini: a tensor with the same bytes, shape, strides, offset; tuples for lists."""
    if isinstance(value, torch.Tensor):
        flat = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage()).clone().numpy()
        dtype = to_mini(value.dtype)
        whole = mini.Tensor.fresh(
            Storage.over(flat), tuple(value.shape), value.stride(), dtype, mini.device("cpu")
        )
        return whole.alias(tuple(value.shape), value.stride(), value.storage_offset())
    if isinstance(value, torch.dtype):
        return by_name(str(value).split(".")[1])
    if isinstance(value, list | tuple):
        return tuple(to_mini(item) for item in value)
    return value


def arguments(op: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """PyTorch's operator and the arguments of a kernel: every one of the schema's, defaults filled in."""
    base, _, overload = op.partition(".")
    packet = getattr(torch.ops.aten, base)
    function = getattr(packet, overload or "default")
    filled = []
    for nr, argument in enumerate(function._schema.arguments):
        if argument.name in ("layout", "pin_memory"):
            continue
        default = argument.default_value if argument.has_default_value() else None
        value = args[nr] if nr < len(args) else options.get(argument.name, default)
        if "int[" in str(argument.type) or "List[int]" in str(argument.type):
            value = (value,) if isinstance(value, int) else value
        filled.append(to_mini(value))
    return function, tuple(filled)


def same(ours: Any, theirs: Any, tolerance: float | None = None) -> None:
    if isinstance(theirs, tuple | list):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            same(mine, other, tolerance)
        return
    if theirs is None:
        assert ours is None
        return
    assert ours._dtype is to_mini(theirs.dtype)
    assert ours._shape == tuple(theirs.shape)
    assert ours._stride == theirs.stride()
    expected = theirs.double().numpy() if theirs.is_floating_point() else theirs.numpy()
    if tolerance is None:
        tolerance = TOLERANCE.get(theirs.dtype, 0)
    np.testing.assert_allclose(ours.values().astype(expected.dtype), expected, tolerance, tolerance)


def check(op: str, *args: Any, tolerance: float | None = None, **options: Any) -> None:
    """Kernel and operator give the same, or raise errors of the same type."""
    ours_args = arguments(op, args, options)[1]
    function = arguments(op, args, options)[0]
    kernel = kernels()[op]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = function(*args, **options)
        except (RuntimeError, IndexError, ValueError, TypeError) as problem:
            try:
                ours = kernel(0, *ours_args)
            except (RuntimeError, IndexError, ValueError, TypeError) as own:
                assert type(own) is type(problem), f"{own!r} where PyTorch has {problem!r}"
                return
            raise AssertionError(f"{ours} where PyTorch raises {problem!r}") from None
        ours = kernel(0, *ours_args)
    same(ours, theirs, tolerance)


def layouts(dtype: torch.dtype, shape: tuple[int, ...] = (3, 4, 5)) -> Iterator[torch.Tensor]:
    """Tensors of one shape: contiguous, permuted, sliced with an offset, expanded."""
    generator = torch.Generator().manual_seed(len(shape))

    def make(size: tuple[int, ...]) -> torch.Tensor:
        values = torch.randint(-6, 7, size, generator=generator).double() / 2
        if dtype.is_floating_point:
            return values.to(dtype)
        return (values > 0) if dtype is torch.bool else values.abs().to(dtype)

    yield make(shape)
    yield make(shape[::-1]).permute(*reversed(range(len(shape))))
    yield make((shape[0] + 1, *(2 * n for n in shape[1:])))[
        (slice(1, None), *(slice(None, None, 2),) * (len(shape) - 1))
    ]
    yield make((1, *shape[1:])).expand(shape)


def edges(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """0-d, empty, one element, NaN and infinities."""
    yield torch.tensor(3).to(dtype)
    yield torch.zeros(0, dtype=dtype)
    yield torch.zeros(2, 0, 3, dtype=dtype)
    yield torch.ones(1, 1, dtype=dtype)
    if dtype.is_floating_point:
        yield torch.tensor([[1.0, math.nan, 3.0], [math.inf, 2.0, -math.inf], [4.0, 4.0, -4.0]], dtype=dtype)


def inputs(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    yield from layouts(dtype)
    yield from edges(dtype)


DIMS: list[Any] = [[], [0], [-1], [1, -1], [0, 1, 2], [0, 0], [5], None]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_sums_means_and_products(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        check("sum", x)
        check("prod", x)
        check("mean", x)
        check("sum", x, dtype=torch.float64)
        check("sum", x, dtype=torch.bfloat16, tolerance=2e-2)
        check("mean", x, dtype=torch.float32)
        for dim, keepdim in itertools.product(DIMS, (False, True)):
            check("sum.dim_IntList", x, dim, keepdim)
            check("mean.dim", x, dim, keepdim)
            check("sum.dim_IntList", x, dim, keepdim, dtype=torch.int64)
        for dim in (0, -1, 2, 7):
            check("prod.dim_int", x, dim)
            check("cumsum", x, dim)
            check("cumsum", x, dim, dtype=torch.float64)


def test_large_sums_are_accurate() -> None:
    generator = torch.Generator().manual_seed(1)
    for shape in ((1_000_003,), (700, 1501), (200_003, 3), (100, 50, 40)):
        x = torch.rand(shape, generator=generator)
        exact = x.double()
        ours = kernels()["sum"](0, to_mini(x), None)
        assert abs(ours.values().item() / exact.sum().item() - 1) < 1e-6
        for dim in range(len(shape)):
            rows = kernels()["sum.dim_IntList"](0, to_mini(x), (dim,), False, None)
            np.testing.assert_allclose(rows.values(), exact.sum(dim).numpy(), 1e-6)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_variance_and_norms(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        for dim, keepdim in itertools.product(DIMS, (False, True)):
            check("var.correction", x, dim, keepdim=keepdim)
            check("std.correction", x, dim, correction=0, keepdim=keepdim)
            # The mean beside an infinity depends on the order of PyTorch's running sums.
            if not x.is_floating_point() or x.isfinite().all():
                check("var_mean.correction", x, dim, correction=2.5, keepdim=keepdim)
            check("linalg_vector_norm", x, 2, dim, keepdim)
        for order in (0, 1, 2, 3, -1, 0.5, math.inf, -math.inf):
            check("linalg_vector_norm", x, order)
            check("linalg_vector_norm", x, order, [-1])
        check("linalg_vector_norm", x, 2, dtype=torch.float64)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_extremes(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        check("max", x)
        check("min", x)
        check("argmax", x)
        check("argmin", x, None, True)
        for dim, keepdim in itertools.product((0, -1, 1, 9), (False, True)):
            for op in ("max.dim", "min.dim", "argmax", "argmin", "amax", "amin"):
                check(op, x, [dim] if op.startswith("am") else dim, keepdim)
        for dim in DIMS[:-1]:
            check("amax", x, dim, True)
            if dim:  # with none PyTorch trips over its own shape
                check("logsumexp", x, dim)
                check("logsumexp", x, dim, True)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_truth(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        for base in ("all", "any"):
            check(base, x)
            for dim, keepdim in itertools.product(DIMS, (False, True)):
                check(f"{base}.dims", x, dim, keepdim)
            for dim in (0, -1, 4):
                check(f"{base}.dim", x, dim)
        check("count_nonzero", x)
        check("count_nonzero.dim_IntList", x, [0])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_order(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        for dim, descending in itertools.product((0, -1, 4), (False, True)):
            check("sort.stable", x, stable=True, dim=dim, descending=descending)
            values = kernels()["sort"](0, to_mini(x), dim, descending)[0] if dim < 1 else None
            if values is not None:
                same(values, x.sort(dim, descending)[0])
    x = torch.tensor([[3.0, 1.0, 7.0, 5.0], [0.0, 8.0, -2.0, 4.0]]).to(dtype)
    for k, dim, largest in itertools.product((0, 1, 2, 5), (-1, 0, 3), (True, False)):
        if dtype not in (torch.bool, torch.uint8):
            check("topk", x, k, dim, largest)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_products_of_matrices(dtype: torch.dtype) -> None:
    lefts, rights = list(layouts(dtype, (3, 4))), list(layouts(dtype, (4, 2)))
    for a, b in itertools.product(lefts, rights):
        check("mm", a, b)
        check("addmm", torch.ones(2, dtype=dtype), a, b, beta=2, alpha=3)
        check("mv", a, b[:, 1])
        check("dot", a[0], b[:, 0])
        check("bmm", torch.stack([a, a]), torch.stack([b, b + b]))
    a, b = lefts[0], rights[0]
    for wrong in (a, a[0], b.double(), b.int(), b[:3], b[:, :0]):
        check("mm", a, wrong)
        check("mv", a, wrong)
        check("dot", a[0], wrong)
        check("bmm", a[None], wrong)
        check("bmm", a[None], wrong[None])
        check("addmm", b[:3], a, wrong)
        check("addmm", wrong, a, b)
        check("baddbmm", wrong, a[None], b[None])
    check("mm", a[:, :0], b[:0])
    check("dot", a[0, :0], b[:0, 0])
    for beta, alpha in ((0, 1), (1, 0), (2, 2), (0, 2)):
        check("addmm", b[:3], a, b, beta=beta, alpha=alpha)
        check("baddbmm", b[None, :1, :1], a[None], b[None], beta=beta, alpha=alpha)
    if dtype.is_floating_point:
        check("addmm", torch.full((3, 2), math.nan, dtype=dtype), a, b, beta=0)


def index(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_rows_by_index(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        for dim, rows in itertools.product((0, 1, -1, 6), (index(), index(0, 0), index(2), index(-1))):
            # Out of range along other dimensions PyTorch raises now this, now that.
            if x.numel() and (dim in (0, 6) or rows.numel() == 2):
                check("index_select", x, dim, rows)
            check("index_add", x, dim, rows, x)
    x = next(layouts(dtype))
    for rows in (index(0, 2).int(), index(1).to(torch.uint8), torch.tensor(1), index(0, 1).reshape(1, 2)):
        check("index_select", x, 0, rows)
        check("index_add", x, 0, rows, x[: rows.numel()])
    check("index_add", x, 0, index(1, 1, 0), x, alpha=2)
    check("index_add", x, 0, index(1, 1, 0), x.double())
    check("index_add", x, 0, index(1, 1, 0), x[:, :2])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gather_and_scatter(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    for x, dim in itertools.product(layouts(dtype), (0, 1, -1)):
        places = torch.stack(
            [torch.randperm(x.shape[dim], generator=generator) for _ in range(60 // x.shape[dim])]
        )
        places = places.reshape(*(x.movedim(dim, -1).shape)).movedim(-1, dim)
        for found in (places, places[:2, :2, :2], places[:0], places.int(), places - 9, places.float()):
            check("gather", x, dim, found)
            check("scatter.src", x, dim, found, x)
            check("scatter.value", x, dim, found, 1)
            check("scatter_add", x, dim, torch.zeros_like(found), x)
    x = next(layouts(dtype))
    for wrong in (index(0), index(0).reshape(1, 1), torch.zeros(4, 4, 9, dtype=torch.int64)):
        check("gather", x, 0, wrong)
        check("scatter.src", x, 0, wrong, x)
    check("scatter.src", x, 0, torch.zeros(1, 1, 1, dtype=torch.int64), x.to(torch.int16))
    check("gather", x[0, 0, 0], 0, torch.tensor(0))
    check("gather", x[0, 0, 0], 0, index(0))
    check("scatter.value", x[0, 0, 0], 0, index(0), 2)


INDICES: list[list[Any]] = [
    [index(1, 0)],
    [None, index(1, 0, 3, -1)],
    [None, None, index(4)],
    [index(1, 0), None, index(2, 2)],
    [None, index(0, 1).reshape(2, 1), index(0, 1, 4)],
    [index(0, 1).reshape(2, 1), index(1, 2)],
    [None, torch.arange(4).reshape(2, 2).t(), index(3)],
    [torch.tensor(1)],
    [None, torch.tensor(1), torch.tensor(2)],
    [torch.tensor(0), None, torch.tensor(2)],
    [torch.tensor([True, False, True])],
    [None, torch.tensor([True, False, True, True])],
    [torch.arange(12).reshape(3, 4) % 3 == 0],
    [torch.tensor([True, False, True]), None, torch.tensor([True, False, True, False, False])],
    [index(2).int()],
    [index()],
    [index(3)],
    [None, index(-5)],
    [index(0, 1), index(0, 1, 2)],
    [torch.tensor([True, False])],
    [index(0)] * 4,
    [torch.tensor([0.0])],
    [],
]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_advanced_indexing(dtype: torch.dtype) -> None:
    for x, indices in itertools.product(layouts(dtype), INDICES):
        check("index.Tensor", x, indices)
        if not indices:
            continue
        values = torch.ones((), dtype=dtype)
        check("index_put", x, indices, values)
        check("index_put", x, indices, values, True)
    x = next(layouts(dtype))
    for values in (torch.ones(5, dtype=dtype), torch.ones(7, dtype=dtype), torch.ones(2, 4, 5, dtype=dtype)):
        check("index_put", x, [index(1, 0)], values)
    check("index_put", x, [index(0, 0, 1)], x[:1], True)
    check("index_put", x, [index(1)], torch.ones((), dtype=torch.int16))
    for empty in edges(dtype):
        check("index.Tensor", empty, [index(0)])
        check("index.Tensor", empty, [index()])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_masks(dtype: torch.dtype) -> None:
    mask = torch.arange(20).reshape(4, 5) % 3 == 0
    for x in layouts(dtype):
        for where in (mask, mask[0], mask[:, :1], mask[None], mask[:2], mask.int(), torch.tensor(True)):
            check("masked_select", x, where)
            for value in (0, 2, True, -1, 1.5, 300, 1e300):
                check("masked_fill.Scalar", x, where, value)
            check("masked_fill.Tensor", x, where, torch.tensor(1.5))
            check("masked_fill.Tensor", x, where, torch.ones(2))
        check("nonzero", x)
        for diagonal in (0, 1, -2, 9):
            check("tril", x, diagonal)
            check("triu", x, diagonal)
    for x in edges(dtype):
        check("nonzero", x)
        check("tril", x)
        check("masked_fill.Scalar", x, torch.tensor([True]), 0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_joining(dtype: torch.dtype) -> None:
    parts = list(layouts(dtype))
    for dim in (0, 1, -1, 3, -4):
        check("cat", parts, dim)
        check("stack", parts, dim)
        check("cat", [parts[0], torch.zeros(0, dtype=dtype), parts[1].narrow(0, 0, 1)], dim)
    for wrong in ([], [parts[0], parts[0][0]], [parts[0], parts[1][:, :2]], [torch.tensor(1)] * 2):
        check("cat", wrong)
        check("stack", wrong)
    for other in ALL:
        check("cat", [parts[0], parts[1].to(other)])
        check("stack", [parts[0], parts[1].to(other)])
    image = parts[0][None].contiguous(memory_format=torch.channels_last)
    check("cat", [image, image], 1)
    check("cat", [image, image.contiguous()], 1)
    check("stack", [image, image], 1)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_rearranging(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        for dims in ([], [0], [0, -1], [0, 0], [7]):
            check("flip", x, dims)
        for shifts, dims in (([1], []), ([1], [0]), ([2, -1], [0, -1]), ([1, 2], [0]), ([], []), ([1], [9])):
            check("roll", x, shifts, dims)
        for repeats in ([], [2], [1, 2, 1], [2, 1, 0, 2], [1, 1, -1], [1, 2, 3, 4]):
            check("repeat", x, repeats)
        for pad, value in (
            ([1, 1], 0),
            ([0, 2, 1, 0], 1),
            ([-1, 1], 0),
            ([1], 0),
            ([-9, 0], 0),
            ([1] * 8, 0),
            ([], 0),
        ):
            check("constant_pad_nd", x, pad, value)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_softmax(dtype: torch.dtype) -> None:
    for x in inputs(dtype):
        for dim in (0, -1, 1, 8):
            check("_softmax", x, dim, False)
            check("_log_softmax", x, dim, False)
            if dtype.is_floating_point and (dim < 1 or x.dim() > 1) and dim < 8:
                # Where the output is of the same layout the gradient has it too.
                output = torch.ones(x.shape, dtype=dtype) / 3
                check("_softmax_backward_data", x, output, dim, dtype)
                check("_log_softmax_backward_data", x, -output, dim, dtype)
    check("_softmax", torch.ones(2, 3), 0, True)


@pytest.mark.parametrize("dtype", (*FLOATS, torch.int64), ids=str)
def test_nll_loss(dtype: torch.dtype) -> None:
    scores = next(layouts(dtype, (4, 3)))
    weights = torch.tensor([1.0, 0.5, 2.0]).to(dtype)
    targets = (index(0, 2, 1, 2), index(0, 1, 1, 1).to(torch.uint8), index(1, 1, 1, 1))
    wrong = (index(0, 3, 1, 1), index(0, 1, -1, 1), index(0, 1), index(0, 1, 1, 1).int(), scores)
    for target, weight, reduction, ignored in itertools.product(
        (*targets, *wrong), (None, weights, weights[:2], weights.double()), (0, 1, 2), (-100, 1)
    ):
        check("nll_loss_forward", scores, target, weight, reduction, ignored)
        if any(target is each for each in targets):
            grad = torch.ones(4 if reduction == 0 else (), dtype=dtype)
            total = torch.tensor(2.0).to(dtype)
            check("nll_loss_backward", grad, scores, target, weight, reduction, ignored, total)
    for target, reduction in itertools.product((torch.tensor(1), index(2), torch.tensor(5)), (0, 1, 2)):
        check("nll_loss_forward", scores[0], target, weights, reduction, -100)
    for reduction in (0, 1, 2):
        check(
            "nll_loss_backward",
            scores[0, 0],
            scores[0],
            torch.tensor(1),
            weights,
            reduction,
            -100,
            weights[2],
        )
    check("nll_loss_forward", scores[:0], index(), None, 1, -100)
    check("nll_loss_forward", scores[:0], index(), None, 0, -100)
    check("nll_loss_forward", scores[None], index(0), None, 0, -100)
    image, classes = next(layouts(dtype, (2, 3, 2, 2))), torch.arange(8).reshape(2, 2, 2) % 3
    for weight, reduction, ignored in itertools.product((None, weights), (0, 1, 2), (-100, 1)):
        check("nll_loss2d_forward", image, classes, weight, reduction, ignored)
        grad = torch.ones(classes.shape if reduction == 0 else (), dtype=dtype)
        total = torch.tensor(2.0).to(dtype)
        check("nll_loss2d_backward", grad, image, classes, weight, reduction, ignored, total)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_mse_loss(dtype: torch.dtype) -> None:
    others = [*layouts(torch.float32), next(layouts(torch.float64)), torch.ones(5), torch.ones(4)]
    for x, other, reduction in itertools.product(layouts(dtype), others, (0, 1, 2)):
        check("mse_loss", x, other.to(dtype) if reduction == 0 else other, reduction)
    for x, reduction in itertools.product(layouts(dtype), (1, 2)):
        if dtype.is_floating_point:
            check("mse_loss_backward", torch.tensor(3.0).to(dtype), x, x * 2 + 1, reduction)


@pytest.mark.parametrize("dtype", (*FLOATS, torch.int64, torch.bool), ids=str)
def test_convolution(dtype: torch.dtype) -> None:
    def options(**changed: Any) -> list[Any]:
        names = {
            "stride": [1, 1],
            "padding": [0, 0],
            "dilation": [1, 1],
            "transposed": False,
            "extra": [0, 0],
        }
        return [*{**names, **changed}.values()]

    exact = {"tolerance": 3e-2} if dtype is torch.bfloat16 else {}
    variants = [
        ({}, 1, 3),
        ({"padding": [1, 1]}, 1, 3),
        ({"stride": [2, 1], "padding": [1, 2]}, 1, 3),
        ({"dilation": [2, 1], "padding": [2, 0]}, 1, 3),
        ({"padding": [1, 0]}, 2, 3),
        ({}, 4, 3),
        ({}, 1, 1),
        ({"stride": [2, 2]}, 1, 1),
        ({"padding": [1, 1]}, 2, 1),
    ]
    for changed, groups, size in variants:
        for x in layouts(dtype, (2, 4, 6, 5)):
            weight = next(layouts(dtype, (4, 4 // groups, size, size)))
            bias = torch.tensor([1, 2, 3, 4]).to(dtype)
            given = options(**changed)
            check("convolution", x, weight, bias, *given, groups, **exact)
            check("convolution", x, weight, None, *given, groups, **exact)
            if dtype.is_floating_point:
                out = torch.ops.aten.convolution(x, weight, bias, *given, groups)
                grad = next(layouts(dtype, tuple(out.shape)))
                for mask in ([True, True, True], [False, True, False], [True, False, False]):
                    check("convolution_backward", grad, x, weight, [4], *given, groups, mask, **exact)
    x, weight = next(layouts(dtype, (2, 4, 6, 5))), next(layouts(dtype, (2, 4, 3, 3)))
    for layout in (torch.channels_last, torch.contiguous_format):
        check("convolution", x.contiguous(memory_format=layout), weight, None, *options(), 1, **exact)
        check("convolution", x, weight.contiguous(memory_format=layout), None, *options(), 1, **exact)
    line, kernel = next(layouts(dtype, (2, 4, 7))), next(layouts(dtype, (3, 4, 3)))
    given = [[2], [1], [1], False, [0]]
    check("convolution", line, kernel, None, *given, 1, **exact)
    if dtype.is_floating_point:
        check(
            "convolution_backward",
            torch.ones(2, 3, 4, dtype=dtype),
            line,
            kernel,
            None,
            *given,
            1,
            [True] * 3,
            **exact,
        )
    for wrong in (
        weight[:, :3],
        weight.double(),
        weight.float(),
        weight[0],
        torch.ones(2, 4, 9, 9, dtype=dtype),
    ):
        check("convolution", x, wrong, None, *options(), 1, **exact)
    for changed in ({"stride": [0, 1]}, {"padding": [-1, 0]}, {"dilation": [0, 1]}):
        check("convolution", x, weight, None, *options(**changed), 1)
    for groups in (0, 3, 4):
        check("convolution", x, weight, None, *options(), groups)
    check("convolution", x, weight, torch.ones(3, dtype=dtype), *options(), 1)


def images(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    yield from layouts(dtype, (2, 3, 7, 6))
    x = next(layouts(dtype, (2, 3, 7, 6)))
    yield x.contiguous(memory_format=torch.channels_last)
    yield x[0]
    yield x[:0]
    if dtype.is_floating_point:
        odd = x.clone()
        odd[0, 0, 2] = math.nan
        odd[1, :, :4, :4] = -math.inf
        yield odd


POOLS: list[list[Any]] = [
    [[2]],
    [[3, 2], [2, 1]],
    [[3], [2], [1]],
    [[2], [2], [1], "ceil"],
    [[3, 3], [2, 2], [0, 1], "ceil"],
    [[2], [0, 0]],
    [[2], [], [2]],
    [[9]],
    [[2, 2, 2]],
]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_max_pool(dtype: torch.dtype) -> None:
    for x, (kernel, *rest) in itertools.product(images(dtype), POOLS):
        stride, padding = [*rest, [], []][:2] if rest else ([], [0])
        padding = padding or [0]
        for dilation in ([1], [2, 1]):
            given = [kernel, stride, padding, dilation, "ceil" in rest]
            check("max_pool2d_with_indices", x, *given)
            if not dtype.is_floating_point or not x.numel() or x.isnan().any():
                continue
            try:
                out, found = torch.ops.aten.max_pool2d_with_indices(x, *given)
            except RuntimeError:
                continue
            full = [given[0], given[1] or given[0], *given[2:]]
            grad = torch.ones_like(out)
            check("max_pool2d_with_indices_backward", grad, x, *full, found)
    check("max_pool2d_with_indices", torch.ones(2, 3, dtype=dtype), [1])


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_average_pools(dtype: torch.dtype) -> None:
    for x, (kernel, *rest) in itertools.product(images(dtype), POOLS):
        stride, padding = [*rest, [], []][:2] if rest else ([], [0])
        padding = padding or [0]
        for include, divisor in ((True, None), (False, None), (True, 3), (True, 0)):
            given = [kernel, stride, padding, "ceil" in rest, include, divisor]
            check("avg_pool2d", x, *given)
            if not dtype.is_floating_point or not x.numel():
                continue
            try:
                out = torch.ops.aten.avg_pool2d(x, *given)
            except RuntimeError:
                continue
            full = [given[0], given[1] or given[0], *given[2:]]
            check("avg_pool2d_backward", torch.ones_like(out), x, *full)
    for x, size in itertools.product(images(dtype), ([1, 1], [3, 2], [7, 6], [9, 9], [0, 2], [2])):
        check("_adaptive_avg_pool2d", x, size)
        if dtype.is_floating_point and x.numel() and min(size) > 0 and len(size) == 2:
            out = torch.ops.aten._adaptive_avg_pool2d(x, size)
            check("_adaptive_avg_pool2d_backward", torch.ones_like(out), x)
    check("_adaptive_avg_pool2d", torch.ones(2, 3, dtype=dtype), [1, 1])


@pytest.mark.parametrize("dtype", (*FLOATS, torch.int64), ids=str)
def test_batch_norm(dtype: torch.dtype) -> None:
    exact = {"tolerance": 4e-2} if dtype is torch.bfloat16 else {}
    ones = torch.arange(1, 4).to(dtype)
    shapes = [*layouts(dtype, (4, 3)), *layouts(dtype, (2, 3, 5)), *images(dtype)]
    for x in shapes[:8] + shapes[8:13]:
        for weight, training in itertools.product((None, ones), (True, False)):
            running = [ones.clone(), ones.clone()]
            mine = [to_mini(each) for each in running]
            try:
                theirs = torch.ops.aten.native_batch_norm(x, weight, weight, *running, training, 0.1, 1e-5)
            except (RuntimeError, NotImplementedError) as problem:
                with pytest.raises(type(problem)):
                    kernels()["native_batch_norm"](
                        0, *map(to_mini, (x, weight, weight)), *mine, training, 0.1, 1e-5
                    )
                continue
            ours = kernels()["native_batch_norm"](
                0, *map(to_mini, (x, weight, weight)), *mine, training, 0.1, 1e-5
            )
            same(ours, theirs, exact.get("tolerance"))
            same(tuple(mine), running, exact.get("tolerance"))
            grad = next(layouts(dtype, tuple(x.shape))) * 2 + 1
            for mask in ([True, True, True], [False, True, False]):
                saved = theirs[1:] if training else (None, None)
                given = (grad, x, weight, *running, *saved, training, 1e-5, mask)
                if dtype is not torch.bfloat16:
                    check(
                        "native_batch_norm_backward",
                        *given,
                        tolerance=5e-4 if dtype is torch.float32 else None,
                    )
    for wrong in (ones.double(), ones.to(torch.int32)):
        check("native_batch_norm", shapes[0], wrong, None, None, None, True, 0.1, 1e-5)
    check("native_batch_norm", shapes[0][:0], ones, None, None, None, True, 0.1, 1e-5)
    mixed = torch.ones(3)
    check("native_batch_norm", shapes[0], mixed, mixed, mixed, mixed, False, 0.1, 1e-5, **exact)


@pytest.mark.parametrize("dtype", (*FLOATS, torch.int64), ids=str)
def test_layer_norm(dtype: torch.dtype) -> None:
    exact = {"tolerance": 4e-2} if dtype is torch.bfloat16 else {}
    for x, dims in itertools.product((*layouts(dtype), *edges(dtype)), (1, 2, 0)):
        shape = list(x.shape[x.dim() - dims :])
        if not x.numel() or not x.dim():
            continue
        for weight in (None, torch.ones(shape, dtype=dtype) * 2):
            check("native_layer_norm", x, shape, weight, weight, 1e-5, **exact)
            if dtype in (torch.float32, torch.float64) and shape and not x.isnan().any():
                _, mean, rstd = torch.ops.aten.native_layer_norm(x, shape, weight, weight, 1e-5)
                grad = next(layouts(dtype, tuple(x.shape))) if x.dim() else x
                given = (grad, x, shape, mean, rstd, weight, weight)
                loose = 1e-3 if dtype is torch.float32 else 1e-9
                for mask in ([True, weight is not None, weight is not None], [True, False, False]):
                    check("native_layer_norm_backward", *given, mask, tolerance=loose)
    x = next(layouts(dtype))
    check("native_layer_norm", x, [4], None, None, 1e-5)
    check("native_layer_norm", x, [5], torch.ones(4, dtype=dtype), None, 1e-5)


@pytest.mark.parametrize("dtype", (*FLOATS, torch.int64, torch.bool), ids=str)
def test_embedding(dtype: torch.dtype) -> None:
    for table in layouts(dtype, (4, 3)):
        for found in (
            index(0, 3, 3),
            torch.tensor(2),
            index(0, 1).reshape(2, 1).int(),
            index(),
            index(4),
            index(-1),
        ):
            check("embedding", table, found)
        check("embedding", table, torch.tensor([0.0]))
        check("embedding", table[0], index(0))
        if dtype.is_floating_point:
            for padding, scale in itertools.product((-1, 2), (False, True)):
                check("embedding_dense_backward", table, index(2, 2, 0, 2), 5, padding, scale)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_factories(dtype: torch.dtype) -> None:
    for start, end, step in (
        (0, 5, 1),
        (0, 5.5, 1),
        (5, 0, -2),
        (0, 0, 1),
        (1, 4, 0.5),
        (0, 5, 0),
        (0, 5, -1),
    ):
        check("arange.start_step", start, end, step, dtype=dtype)
        check("arange.start_step", start, end, step)
    for n, m in ((3, 3), (2, 4), (0, 2), (-1, 2)):
        check("eye.m", n, m, dtype=dtype)
    for start, end, steps in (
        (0, 1, 5),
        (13, 2, 4),
        (2, 2, 3),
        (0, 1, 1),
        (0, 1, 0),
        (0, 1, -1),
        (1.5, 9, 6),
    ):
        check("linspace", start, end, steps, dtype=dtype)
    for x in inputs(dtype):
        check("clone", x)
        for other in ALL:
            check("_to_copy", x, dtype=other)
    for value in (1, 2.5, True, -1, 300, 1e300, torch.tensor(2.5), torch.ones(2)):
        op = "fill_.Tensor" if isinstance(value, torch.Tensor) else "fill_.Scalar"
        for x in layouts(dtype):
            check(op, x.clone(), value)
        check(op, torch.zeros(2, dtype=dtype).expand(3, 2), value)
    for x, src in itertools.product(layouts(dtype), (*layouts(torch.float32), torch.ones(5), torch.ones(4))):
        check("copy_", x.clone(), src)
    x = next(layouts(dtype))
    for wrong in (torch.ones(2, 3, 4, 5), x[None]):
        check("copy_", x, wrong)
    check("copy_", torch.zeros(1, dtype=dtype).expand(3), torch.ones(3))


IN_PLACE = [
    ("cumsum_", (1,)),
    ("tril_", (1,)),
    ("index_add_", (0, index(0, 0, 1), "self")),
    ("scatter_.src", (0, torch.zeros(1, 2, 3, dtype=torch.int64), "self")),
    ("scatter_.value", (0, torch.zeros(1, 2, 3, dtype=torch.int64), 1)),
    ("scatter_add_", (0, torch.zeros(1, 2, 3, dtype=torch.int64), "self")),
    ("index_put_", ([index(1)], "one", True)),
    ("masked_fill_.Scalar", (torch.tensor([True, False, True, False, True]), 1)),
    ("masked_fill_.Scalar", (torch.ones(2, 3, 4, 5, dtype=torch.bool), 1)),
    ("zero_", ()),
]


@pytest.mark.parametrize(("op", "rest"), IN_PLACE, ids=[op for op, _ in IN_PLACE])
def test_in_place_forms_write_into_self(op: str, rest: tuple[Any, ...]) -> None:
    for dtype, nr in itertools.product((torch.float32, torch.int32, torch.bfloat16), range(3)):
        x = list(layouts(dtype))[nr]
        source, one = x.clone(), torch.ones((), dtype=dtype)
        args = tuple(source if each == "self" else one if isinstance(each, str) else each for each in rest)
        function, filled = arguments(op, (x, *args), {})
        target = filled[0]
        try:
            function(x, *args)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                kernels()[op](0, *filled)
            continue
        assert kernels()[op](0, *filled) is target
        same(target, x)


OUTS = [
    ("sum.IntList_out", (torch.arange(6.0).reshape(2, 3), [0])),
    ("amax.out", (torch.arange(6.0).reshape(2, 3), [0])),
    ("all.out", (torch.arange(6.0).reshape(2, 3), 0)),
    ("cumsum.out", (torch.arange(3.0), 0)),
    ("mm.out", (torch.arange(6.0).reshape(2, 3), torch.ones(3, 3))),
    ("cat.out", ([torch.arange(2.0), torch.ones(1)],)),
    ("index.Tensor_out", (torch.arange(4.0), [index(0, 3, 1)])),
    ("_softmax.out", (torch.arange(3.0), 0, False)),
]


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize(("op", "args"), OUTS, ids=[op for op, _ in OUTS])
def test_out_forms_resize_and_check_the_dtype(op: str, args: tuple[Any, ...]) -> None:
    targets = [torch.zeros(0), torch.zeros(3), torch.zeros(6)[::2], torch.zeros(7, 2), torch.zeros(2, 3).t()]
    targets += [
        torch.zeros(3).to(dtype) for dtype in (torch.float64, torch.int64, torch.bool, torch.bfloat16)
    ]
    for out in targets:
        if op == "_softmax.out" and not out.is_contiguous():
            continue  # PyTorch takes it for contiguous and writes past it
        function, filled = arguments(op, args, {"out": out})
        target = filled[-1]
        try:
            function(*args, out=out)
        except (RuntimeError, TypeError) as problem:
            try:
                kernels()[op](0, *filled)
            except (RuntimeError, TypeError) as own:
                assert type(own) is type(problem)
                continue
            raise AssertionError(f"no error where PyTorch raises {problem!r}") from None
        assert kernels()[op](0, *filled) is target
        same(target, out)


def test_resizing_a_used_output_warns_and_an_empty_one_does_not() -> None:
    x = to_mini(torch.ones(2, 3))
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        kernels()["amax.out"](0, x, (0,), False, to_mini(torch.zeros(7)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernels()["amax.out"](0, x, (0,), False, to_mini(torch.zeros(0)))


def test_resize_keeps_what_was_there() -> None:
    for size in ([2, 2], [9], [0], [3], []):
        ours, theirs = to_mini(torch.arange(3)), torch.arange(3)
        kernels()["resize_"](0, ours, tuple(size), None)
        theirs.resize_(size)
        assert (ours._shape, ours._stride) == (tuple(theirs.shape), theirs.stride())
        shared = min(3, theirs.numel())
        assert ours.values().reshape(-1)[:shared].tolist() == theirs.reshape(-1)[:shared].tolist()
    with pytest.raises(RuntimeError, match="negative"):
        kernels()["resize_"](0, to_mini(torch.arange(3)), (-1,), None)


def test_results_stay_on_the_device_of_the_input() -> None:
    x = mini.Tensor.adopt(np.ones((2, 3), np.float32), mini.float32, mini.device("sim"))
    for op, args in (
        ("sum", (None,)),
        ("max.dim", (0, False)),
        ("mm", (x.alias((3, 2), (1, 3), 0),)),
        ("_softmax", (0, False)),
        ("index.Tensor", ((to_mini(index(0)),),)),
        ("clone", (None,)),
        ("flip", ((0,),)),
    ):
        result = kernels()[op](0, x, *args)
        for each in result if isinstance(result, tuple) else (result,):
            assert each._device == x._device
