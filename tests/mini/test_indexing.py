"""Indexing against PyTorch: masks without dimensions, lists as tuples, writes that overlap what they read."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from glassbox import mini

Program = Callable[[Any], Any]


def outcome(program: Program, m: Any) -> Any:
    """What a program over the package m gives, or which exception it ends in, and how often it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = program(m)
        except Exception as error:
            return type(error).__name__
    if hasattr(result, "tolist"):
        result = (tuple(result.shape), str(result.dtype).split(".")[-1], result.tolist())
    return result, [each.category for each in caught if issubclass(each.category, UserWarning)]


def agree(program: Program) -> Any:
    theirs = outcome(program, torch)
    assert outcome(program, mini) == theirs
    return theirs


def cube(m: Any) -> Any:
    return m.arange(24.0).reshape(4, 3, 2)


def scalar(m: Any) -> Any:
    return m.tensor(5.0)


def read(start: Program, key: Program) -> Program:
    return lambda m: start(m)[key(m)]


def write(start: Program, key: Program, value: Program) -> Program:
    def program(m: Any) -> Any:
        x = start(m)
        x[key(m)] = value(x)
        return x

    return program


MASKS_WITHOUT_DIMENSIONS: dict[str, Program] = {
    "true": lambda m: m.tensor(True),
    "false": lambda m: m.tensor(False),
    "byte": lambda m: m.tensor(7, dtype=m.uint8),
    "byte 0": lambda m: m.tensor(0, dtype=m.uint8),
    "twice": lambda m: (m.tensor(True), m.tensor(True)),
    "true and false": lambda m: (m.tensor(True), m.tensor(False)),
    "after an int": lambda m: (0, m.tensor(True)),
    "before an int": lambda m: (m.tensor(True), 0),
    "beside indices": lambda m: (m.tensor(True), m.tensor([0, 1])),
    "false beside indices": lambda m: (m.tensor(False), m.tensor([0, 1])),
    "apart from indices": lambda m: (m.tensor(True), slice(None), m.tensor([0, 1])),
    "last": lambda m: (..., m.tensor(True)),
    "after None": lambda m: (None, m.tensor(True)),
    "in a list": lambda m: [m.tensor(True), m.tensor(False)],
    "with a bool": lambda m: (True, m.tensor(True)),
    "bool": lambda m: True,
    "bool no": lambda m: False,
}


@pytest.mark.parametrize("start", [scalar, cube])
@pytest.mark.parametrize("key", MASKS_WITHOUT_DIMENSIONS.values(), ids=MASKS_WITHOUT_DIMENSIONS)
def test_a_mask_without_dimensions_picks_all_or_nothing(start: Program, key: Program) -> None:
    agree(read(start, key))
    agree(write(start, key, lambda x: 0.0))
    agree(write(start, key, lambda x: x.new_ones(1)))


def test_writes_under_a_comparison_of_a_number() -> None:
    def nan_to_zero(m: Any) -> Any:
        loss = m.tensor(float("nan"))
        loss[m.isnan(loss)] = 0
        return loss

    def large_to_zero(m: Any, limit: float) -> Any:
        x = cube(m)
        x[x.sum() > limit] = 0
        return x

    assert agree(nan_to_zero) == (((), "float32", 0.0), [])
    assert agree(lambda m: large_to_zero(m, 100).sum())[0][2] == 0.0
    assert agree(lambda m: large_to_zero(m, 1000).sum())[0][2] == 276.0
    assert agree(lambda m: scalar(m)[scalar(m) > 1]) == (((1,), "float32", [5.0]), [])


def test_a_true_mask_keeps_the_dtype_that_a_bool_converts() -> None:
    for key in (lambda m: True, lambda m: m.tensor(True)):
        for dtype in ("float64", "int64"):
            agree(lambda m, key=key, dtype=dtype: write(cube, key, lambda x: m.tensor(2, dtype=getattr(m, dtype)))(m))


@pytest.mark.parametrize("held", [True, False])
def test_gradients_through_a_mask_without_dimensions(held: bool) -> None:
    def through_read(m: Any) -> Any:
        x = cube(m).requires_grad_()
        (x[0, m.tensor(held)] * 3).sum().backward()
        return x.grad

    def through_write(m: Any) -> Any:
        x, value = cube(m).requires_grad_(), m.tensor([2.0]).requires_grad_()
        y = x * 2
        y[m.tensor(held)] = value
        (y * y).sum().backward()
        return [x.grad.tolist(), value.grad.tolist()]

    def through_number(m: Any) -> Any:
        x = m.tensor(3.0, requires_grad=True)
        y = x * 2
        y[(y > 1) == held] = 1.0
        y.backward()
        return x.grad

    for program in (through_read, through_write, through_number):
        agree(program)


def test_masks_without_dimensions_given_to_the_operators() -> None:
    for start in (scalar, cube):
        for held in (True, False):
            agree(lambda m, start=start, held=held: m.ops.aten.index.Tensor(start(m), [m.tensor(held)]))
            agree(lambda m, start=start, held=held: m.index_put(start(m), [m.tensor(held)], m.tensor(0.0)))
            agree(lambda m, start=start, held=held: m.index_put(start(m), [m.tensor(held)], m.zeros(2)))
            agree(
                lambda m, start=start, held=held: m.index_put(
                    start(m), [m.tensor(held), m.tensor([0, 1])], m.tensor(0.0)
                )
            )


def test_a_mask_of_several_dimensions_beside_other_indices() -> None:
    def mask(m: Any) -> Any:
        return m.tensor([[True, False, True]] * 4)

    def square(m: Any) -> Any:
        return m.arange(16.0).reshape(2, 2, 2, 2)

    def corner(m: Any) -> Any:
        return m.tensor([[True, False], [True, True]])

    agree(read(cube, lambda m: (mask(m), m.tensor([0] * 8))))
    agree(read(cube, lambda m: (mask(m), 0)))
    agree(read(cube, lambda m: (mask(m), None)))
    agree(read(square, lambda m: (corner(m), slice(None), m.tensor([0, 1, 1]))))
    agree(read(square, lambda m: (corner(m), corner(m))))
    agree(write(square, lambda m: (corner(m), slice(None), m.tensor([0, 1, 1])), lambda x: -1.0))


LISTS: dict[str, Program] = {
    "lists": lambda m: [[0, 1], [1, 2]],
    "one list": lambda m: [[0, 1]],
    "tuples": lambda m: [(0, 1), (1, 2)],
    "ranges": lambda m: [range(2), range(1, 3)],
    "ragged": lambda m: [[0, 1], [2]],
    "deep": lambda m: [[[0, 1], [1, 2]], [[0, 0], [1, 1]]],
    "empty lists": lambda m: [[], []],
    "tensors": lambda m: [m.tensor([0, 1]), m.tensor([1, 2])],
    "one tensor": lambda m: [m.tensor([0, 1])],
    "numbers": lambda m: [m.tensor(0), m.tensor(1)],
    "arrays": lambda m: [np.array([0, 1]), np.array([1, 2])],
    "int and tensor": lambda m: [0, m.tensor([0, 1])],
    "none": lambda m: [None, 0],
    "ellipsis": lambda m: [..., 0],
    "slice": lambda m: [slice(0, 1), [1, 2]],
    "slices": lambda m: [slice(None), 0, 0],
    "masks": lambda m: [[True, False, True, True], [0, 1, 0]],
    "too many": lambda m: [[0]] * 31,
    "long": lambda m: [[0, 1, 2]] * 32,
    "ints": lambda m: [0, 1],
    "bools": lambda m: [True, False, True, True],
    "nothing": lambda m: [],
    "range": lambda m: range(2),
    "string": lambda m: ["a"],
    "inside a tuple": lambda m: ([[0, 1], [1, 2]],),
    "inside a tuple, second": lambda m: (0, [[0, 1], [1, 2]]),
    "none inside a tuple": lambda m: ([None, 0],),
    "numbers inside a tuple": lambda m: ([m.tensor(0), m.tensor(1)],),
}


@pytest.mark.parametrize("key", LISTS.values(), ids=LISTS)
def test_a_list_of_more_than_numbers_is_a_tuple(key: Program) -> None:
    agree(read(cube, key))
    agree(write(cube, key, lambda x: -1.0))


def test_the_warning_of_a_list_taken_as_a_tuple_names_the_line_that_indexed() -> None:
    with pytest.warns(UserWarning, match="tuple") as caught:
        cube(mini)[[[0, 1], [1, 2]]]
    assert [each.filename for each in caught] == [__file__]


ROWS: Program = lambda m: m.tensor([0, 1])  # noqa: E731
MASK: Program = lambda m: m.tensor([[True, False, True]] * 4)  # noqa: E731
PARTS: dict[str, Program] = {
    "same rows": lambda x: x[:2],
    "other rows": lambda x: x[2:],
    "a row": lambda x: x[0],
    "an element": lambda x: x[0, 0, 0],
    "one element": lambda x: x[:1, :1, :1].reshape(1),
    "a copy": lambda x: x[:2].clone(),
}


@pytest.mark.parametrize("key", [ROWS, MASK], ids=["rows", "mask"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_indexed_writes_refuse_values_that_share_cells(key: Program, part: Program) -> None:
    agree(write(cube, key, part))
    for accumulate in (True, False):

        def put(m: Any, accumulate: bool = accumulate) -> Any:
            x = cube(m)
            return x.index_put_((key(m),), part(x), accumulate=accumulate)

        agree(put)


def test_indexed_writes_refuse_indices_that_share_cells() -> None:
    assert agree(write(lambda m: m.tensor([0, 1, 2]), lambda m: m.tensor([0, 1, 2]), lambda x: 0))[0][2] == [0, 0, 0]

    def own(m: Any, x: Any, value: Any) -> Any:
        x[x] = value
        return x

    assert agree(lambda m: own(m, m.tensor([0, 1, 2]), 0)) == "RuntimeError"
    assert agree(lambda m: own(m, m.tensor([0, 1, 2]), m.tensor([0, 1, 2]))) == "RuntimeError"
    assert agree(lambda m: own(m, m.tensor([True, True]), m.tensor([False, True]))) == "RuntimeError"
    assert agree(lambda m: own(m, m.tensor([True, False]), False))[0][2] == [False, False]


def test_a_write_of_one_value_under_one_mask_converts_it() -> None:
    for value in (lambda m: m.tensor([1.5], dtype=m.float64), lambda m: m.tensor([[1]]), lambda m: m.tensor(True)):
        agree(lambda m, value=value: m.index_put(cube(m), [MASK(m)], value(m)))
        agree(lambda m, value=value: m.ops.aten.index_put(cube(m), [None, MASK(m)[0]], value(m)))
        agree(lambda m, value=value: m.index_put(cube(m), [ROWS(m)], value(m)))
    agree(lambda m: m.index_put(m.tensor([1, 2]), [m.tensor([True, False])], m.tensor([1.7])))
    agree(lambda m: m.index_put(m.tensor([1, 2], dtype=m.uint8), [m.tensor([True, False])], m.tensor([300])))
    agree(write(cube, lambda m: m.tensor([1, 0, 1, 0], dtype=m.uint8), lambda x: 0.0))
    agree(lambda m: m.index_put(cube(m), [m.tensor([True])], m.tensor(0.0)))


SCATTERS: dict[str, Program] = {
    "scatter_": lambda x, i, s: x.scatter_(0, i, s),
    "scatter_add_": lambda x, i, s: x.scatter_add_(0, i, s),
    "scatter_ add": lambda x, i, s: x.scatter_(0, i, s, reduce="add"),
    "index_add_": lambda x, i, s: x.index_add_(0, i[:, 0, 0], s[: len(i)]),
}


@pytest.mark.parametrize("call", SCATTERS.values(), ids=SCATTERS)
def test_scatters_refuse_a_source_that_shares_cells(call: Any) -> None:
    def with_source(source: Program, rows: int = 2) -> Program:
        def program(m: Any) -> Any:
            x = cube(m)
            return call(x, m.zeros(rows, 3, 2, dtype=m.int64), source(x))

        return program

    assert agree(with_source(lambda x: x[:2])) == "RuntimeError"
    assert agree(with_source(lambda x: x, 4)) == "RuntimeError"
    assert agree(with_source(lambda x: x[2:])) == "RuntimeError"
    assert agree(with_source(lambda x: x.clone())) != "RuntimeError"
    agree(with_source(lambda x: x, 0))
    assert agree(lambda m: (lambda x: call(x[:2], m.zeros(2, 3, 2, dtype=m.int64), x[2:]))(cube(m))) != "RuntimeError"


def test_scatters_refuse_an_index_that_shares_cells() -> None:
    def square(m: Any) -> Any:
        return m.tensor([[0, 1], [1, 0]])

    assert agree(lambda m: (lambda x: x.scatter_(0, x, 1))(square(m))) == "RuntimeError"
    assert agree(lambda m: (lambda x: x.scatter_(0, x, m.ones(2, 2).long()))(square(m))) == "RuntimeError"
    assert agree(lambda m: (lambda x: x.scatter_add_(0, x, m.ones(2, 2).long()))(square(m))) == "RuntimeError"
    assert agree(lambda m: (lambda x: x.index_add_(0, x, m.tensor([1, 1])))(m.tensor([0, 1]))) == "RuntimeError"
    assert agree(lambda m: (lambda x: m.index_select(x, 0, x, out=x))(m.tensor([0, 1]))) == "RuntimeError"
    assert agree(lambda m: (lambda x: m.index_select(x, 0, ROWS(m), out=x[:2]))(cube(m))) == "RuntimeError"
    assert agree(lambda m: m.index_select(cube(m), 0, ROWS(m), out=m.zeros(0)))[0][0] == (2, 3, 2)


def test_index_add_to_and_of_tensors_without_dimensions() -> None:
    cases = [
        (1.0, [0], [2.0]),
        (1.0, [0], 2.0),
        (1.0, 0, 2.0),
        (1.0, 0, [2.0]),
        (1.0, [0, 0], [2.0, 3.0]),
        (1.0, [0, 0], 2.0),
        (1.0, [0], [2.0, 3.0]),
        (1.0, [0], [[2.0]]),
        (1.0, [1], 2.0),
        (1.0, [-1], 2.0),
        ([1.0, 2.0], [1], 2.0),
        ([1.0, 2.0], 1, 2.0),
        ([1.0, 2.0], 1, [2.0]),
        ([1.0, 2.0], [0, 0], 2.0),
        ([1.0, 2.0], [2], [2.0]),
        ([1.0, 2.0], [-1], [2.0]),
        ([[1.0], [2.0]], [2], [[2.0]]),
    ]
    for x, index, source in cases:
        agree(lambda m, x=x, i=index, s=source: m.tensor(x).index_add_(0, m.tensor(i), m.tensor(s)))
        agree(lambda m, x=x, i=index, s=source: m.tensor(x).index_add(-1, m.tensor(i), m.tensor(s), alpha=3))
    agree(lambda m: cube(m).index_add_(1, m.tensor([0]), m.ones(1)))
    agree(lambda m: cube(m).index_add_(1, m.tensor([0]), m.tensor(1.0)))


def test_joining_nothing() -> None:
    assert agree(lambda m: m.stack([])) == "RuntimeError"
    assert agree(lambda m: m.stack((), dim=1)) == "RuntimeError"
    assert agree(lambda m: m.cat([])) == "ValueError"


def test_index_select_where_there_is_nothing() -> None:
    shapes = [(0, 3), (2, 0), (0,), (3,), (2, 3), (2, 3, 2), (2, 0, 2), ()]
    for shape in shapes:
        for dim in range(max(len(shape), 1)):
            for index in ([0], [3], [-1], [0, 0], 0):
                agree(lambda m, s=shape, d=dim, i=index: m.zeros(s).index_select(d, m.tensor(i)))
            agree(lambda m, s=shape, d=dim: m.zeros(s).index_select(d, m.zeros(0, dtype=m.int64)))
    assert agree(lambda m: m.zeros(0, 3).index_select(0, m.tensor([0]))) == "RuntimeError"


def test_bernoulli_of_chances_that_do_not_fit() -> None:
    for x, chances in [((2,), (3,)), ((2,), (3, 2)), ((), (1,)), ((2, 1), (2, 3))]:
        assert agree(lambda m, x=x, p=chances: m.zeros(x).bernoulli_(m.zeros(p))) == "RuntimeError"
    for x, chances in [((3, 2), (2,)), ((2,), ()), ((2, 3), (2, 1))]:
        assert agree(lambda m, x=x, p=chances: m.zeros(x).bernoulli_(m.ones(p)))[0][2] == torch.ones(x).tolist()
