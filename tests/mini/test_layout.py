"""Facts about shape, stride and offset, each with the figures that PyTorch gives."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassbox.mini.c10 import layout

sizes = st.lists(st.sampled_from([0, 1, 1, 2, 3, 4]), max_size=4)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    shape = draw(sizes)
    stride = [draw(st.integers(0, 6)) for _ in shape]
    return shape, stride, draw(st.integers(0, 3))


def strided(shape: list[int], stride: list[int], offset: int = 0) -> torch.Tensor:
    return torch.empty(100).as_strided(shape, stride, offset)


def cells(shape: list[int], stride: list[int]) -> list[int]:
    return [layout.address(index, shape, stride) for index in itertools.product(*map(range, shape))]


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((), ()),
        ((5,), (1,)),
        ((3, 4), (4, 1)),
        ((2, 3, 4), (12, 4, 1)),
        ((0, 3, 1, 2), (6, 2, 2, 1)),
        ((2, 0, 3), (3, 3, 1)),
        ((2, 1, 1), (1, 1, 1)),
    ],
)
def test_contiguous_strides(shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    assert layout.contiguous_strides(shape) == stride == torch.empty(shape).stride()


@given(sizes)
def test_contiguous_strides_are_those_of_torch_empty(shape: list[int]) -> None:
    assert layout.contiguous_strides(shape) == torch.empty(shape).stride()
    assert layout.contiguous_strides(tuple(shape)) == layout.contiguous_strides(shape)


def test_address_is_offset_plus_index_times_stride() -> None:
    assert layout.address((1, 2), (3, 4), (4, 1)) == 6
    assert layout.address([1, 2], [3, 4], [4, 1], 10) == 16
    assert layout.address((), (), (), 5) == 5


def test_address_counts_negative_indices_from_the_end() -> None:
    assert layout.address((-1, -4), (3, 4), (4, 1)) == 8


@pytest.mark.parametrize("index", [(3, 0), (0, 4), (-4, 0), (0, -5), (0,), (0, 0, 0), ()])
def test_address_refuses_an_index_outside_or_of_the_wrong_length(index: tuple[int, ...]) -> None:
    with pytest.raises(IndexError):
        layout.address(index, (3, 4), (4, 1))


@given(layouts())
def test_address_finds_the_elements_that_torch_finds(case: tuple[list[int], list[int], int]) -> None:
    shape, stride, offset = case
    x = torch.arange(100).as_strided(shape, stride, offset)
    for index in itertools.product(*map(range, shape)):
        assert layout.address(index, shape, stride, offset) == x[index].item()


def test_contiguity_is_not_about_descending_strides() -> None:
    assert not layout.is_contiguous((4, 3), (6, 1))
    assert layout.is_contiguous((1, 4), (1, 1))
    assert layout.is_contiguous((4, 1), (1, 99))
    assert layout.is_contiguous((0, 3), (5, 7))
    assert layout.is_contiguous((), ())
    assert not layout.is_contiguous((2,), (0,))


@given(layouts())
def test_contiguity_is_that_of_torch(case: tuple[list[int], list[int], int]) -> None:
    shape, stride, offset = case
    assert layout.is_contiguous(shape, stride) is strided(shape, stride, offset).is_contiguous()


def test_permute_moves_size_and_stride_together() -> None:
    assert layout.permute((2, 3, 4), (12, 4, 1), (2, 0, 1)) == ((4, 2, 3), (1, 12, 4))
    assert layout.permute([2, 3], [3, 1], [-1, 0]) == ((3, 2), (1, 3))
    assert layout.permute((), (), ()) == ((), ())


@pytest.mark.parametrize(
    ("dims", "error"),
    [((0,), RuntimeError), ((0, 1, 1), RuntimeError), ((0, 0), RuntimeError), ((0, -2), RuntimeError)]
    + [((0, 2), IndexError), ((-3, 0), IndexError), ((0, 5, 1), RuntimeError)],
)
def test_permute_refuses_what_is_no_order(dims: tuple[int, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        layout.permute((2, 3), (3, 1), dims)
    with pytest.raises(error):
        torch.zeros(2, 3).permute(dims)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((1, None, None), ((2, 4), (4, 1), 4)),
        ((None, None, 2), ((2, 4), (8, 1), 0)),
        ((-2, None, None), ((2, 4), (4, 1), 4)),
        ((None, -1, None), ((2, 4), (4, 1), 0)),
        ((2, 1, None), ((0, 4), (4, 1), 8)),
        ((9, None, None), ((0, 4), (4, 1), 12)),
        ((-9, 9, 5), ((1, 4), (20, 1), 0)),
    ],
)
def test_slice_follows_python(bounds: tuple, expected: tuple) -> None:
    assert layout.slice_view((3, 4), (4, 1), 0, 0, *bounds) == expected
    x = torch.zeros(3, 4)[slice(*bounds)]
    assert (tuple(x.shape), x.stride(), x.storage_offset()) == expected


def test_slice_refuses_steps_that_are_not_positive_and_dims_that_are_not_there() -> None:
    for step in (0, -1):
        with pytest.raises(ValueError, match="greater than zero"):
            layout.slice_view((3,), (1,), 0, 0, None, None, step)
    for dim in (1, -2):
        with pytest.raises(IndexError):
            layout.slice_view((3,), (1,), 0, dim, None, None, None)
    with pytest.raises(IndexError):
        layout.slice_view((), (), 0, 0, None, None, None)


@pytest.mark.parametrize(
    ("shape", "size", "stride"),
    [
        ((3, 1), (3, 4), (1, 0)),
        ((3, 1), (-1, 4), (1, 0)),
        ((3,), (2, 3), (0, 1)),
        ((3,), (1, 3), (3, 1)),
        ((3, 1), (1, 1, 3, 1), (3, 3, 1, 1)),
        ((3,), (1, 2, 3), (0, 0, 1)),
        ((), (1, 1), (0, 0)),
        ((), (2, 1), (0, 0)),
        ((1, 3), (0, 3), (0, 1)),
        ((0, 3), (1, 0, 3), (0, 3, 1)),
        ((3, 1), (3, 0), (1, 0)),
    ],
)
def test_expand_repeats_with_stride_0(shape: tuple, size: tuple, stride: tuple) -> None:
    assert layout.expand(shape, layout.contiguous_strides(shape), size) == stride
    assert torch.zeros(shape).expand(size).stride() == stride


@pytest.mark.parametrize("size", [(4,), (2, 4), (-1, 3, 4), (3, 5), (0, 4), ()])
def test_expand_refuses_what_is_no_repetition(size: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError):
        layout.expand((3, 4), (4, 1), size)
    with pytest.raises(RuntimeError):
        torch.zeros(3, 4).expand(size)


def test_expand_to_a_negative_size_is_refused_where_torch_lets_it_through() -> None:
    assert torch.zeros(0, 1).expand(0, -2).shape == (0, -2)
    assert torch.zeros(()).expand(0, -1).shape == (0, -1)
    with pytest.raises(RuntimeError, match=r"-2"):
        layout.expand((0, 1), (1, 1), (0, -2))
    with pytest.raises(RuntimeError, match="write its size"):
        layout.expand((), (), (0, -1))


@pytest.mark.parametrize(
    ("shape", "stride", "size", "expected"),
    [
        ((3, 4), (4, 1), (12,), (1,)),
        ((3, 4), (4, 1), (2, 6), (6, 1)),
        ((4, 3), (1, 4), (12,), None),
        ((4, 3), (6, 1), (2, 2, 3), (12, 6, 1)),
        ((4, 3), (6, 1), (12,), None),
        ((3, 4), (0, 1), (3, 2, 2), (0, 2, 1)),
        ((3, 4), (0, 1), (12,), None),
        ((2, 3), (0, 0), (6,), (0,)),
        ((1, 4), (9, 2), (2, 1, 2), (4, 4, 2)),
        ((2, 1, 3), (3, 99, 1), (6,), (1,)),
        ((2, 3, 1), (3, 1, 99), (3, 2), (2, 1)),
        ((), (), (1, 1), (1, 1)),
        ((1,), (7,), (), ()),
        ((0, 3), (3, 1), (3, 0), (1, 1)),
        ((0, 3), (3, 1), (0, 7), (7, 1)),
        ((3, 0), (1, 3), (3, 0), (1, 3)),
    ],
)
def test_view_strides(shape: tuple, stride: tuple, size: tuple, expected: tuple | None) -> None:
    assert layout.view_strides(shape, stride, size) == expected
    x = torch.empty(100).as_strided(shape, stride)
    if expected is None:
        with pytest.raises(RuntimeError):
            x.view(size)
    else:
        assert x.view(size).stride() == expected


def test_view_strides_needs_the_same_number_of_elements() -> None:
    with pytest.raises(RuntimeError, match="invalid for input of size 12"):
        layout.view_strides((3, 4), (4, 1), (5, 2))


def test_reshape_says_whether_data_must_move() -> None:
    assert layout.reshape((3, 4), (4, 1), (2, -1)) == ((2, 6), (6, 1), False)
    assert layout.reshape((4, 3), (1, 4), (12,)) == ((12,), (1,), True)
    assert layout.reshape((4, 3), (6, 1), (2, 2, 3)) == ((2, 2, 3), (12, 6, 1), False)


@pytest.mark.parametrize("size", [(-1, -1), (5,), (-1, 5), (-2, 6), (0, -1)])
def test_reshape_refuses_what_does_not_fit(size: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError):
        layout.reshape((3, 4), (4, 1), size)
    with pytest.raises(RuntimeError):
        torch.zeros(3, 4).reshape(size)


def test_an_unknown_size_of_an_empty_tensor_is_ambiguous_beside_a_0() -> None:
    assert layout.infer_size((-1, 3), 0) == (0, 3)
    assert layout.infer_size((-1,), 0) == (0,)
    with pytest.raises(RuntimeError, match="any size"):
        layout.infer_size((-1, 0), 0)


@given(st.data())
def test_a_view_reads_the_elements_in_the_same_order(data: st.DataObject) -> None:
    shape, stride, _ = data.draw(layouts())
    total = math.prod(shape)
    size = data.draw(st.sampled_from([(total,), (1, total), (*shape, 1), (*reversed(shape),)]))
    strides = layout.view_strides(shape, stride, size)
    if strides is not None:
        assert cells(list(size), list(strides)) == cells(shape, stride)
    assert (strides is None) == (strided(shape, stride).reshape(size)._base is None)


def test_transpose_select_squeeze_unsqueeze() -> None:
    assert layout.transpose((2, 3, 4), (12, 4, 1), 0, -1) == ((4, 3, 2), (1, 4, 12))
    assert layout.transpose((), (), 0, -1) == ((), ())
    assert layout.select((3, 4), (4, 1), 2, 1, -1) == ((3,), (4,), 5)
    assert layout.squeeze((1, 3, 1), (3, 1, 1)) == ((3,), (1,))
    assert layout.squeeze((1, 3, 1), (3, 1, 1), (0, 1)) == ((3, 1), (1, 1))
    assert layout.unsqueeze((2, 3), (3, 1), 0) == ((1, 2, 3), (6, 3, 1))
    assert layout.unsqueeze((2, 3), (3, 1), -1) == ((2, 3, 1), (3, 1, 1))


def test_storage_span_is_one_past_the_last_cell() -> None:
    assert layout.storage_span((3, 4), (4, 1)) == 12
    assert layout.storage_span((2, 2), (4, 1), 4) == 10
    assert layout.storage_span((3, 4), (0, 0), 7) == 8
    assert layout.storage_span((0, 4), (4, 1), 99) == 0
    assert layout.storage_span((), (), 3) == 4


@given(layouts())
def test_overlap_is_never_missed(case: tuple[list[int], list[int], int]) -> None:
    shape, stride, _ = case
    reached = cells(shape, stride)
    if len(set(reached)) < len(reached):
        assert layout.has_overlap(shape, stride)
    if layout.is_dense(shape, stride) and reached:
        assert sorted(reached) == list(range(len(reached)))


def test_overlap() -> None:
    assert layout.has_overlap((3, 4), (0, 1))
    assert layout.has_overlap((3, 2), (1, 1))
    assert not layout.has_overlap((3, 4), (1, 3))
    assert not layout.has_overlap((3, 4), (8, 2))
    assert not layout.has_overlap((0, 4), (0, 0))


@given(layouts())
def test_a_copy_keeps_the_order_of_the_dimensions(case: tuple[list[int], list[int], int]) -> None:
    shape, stride, _ = case
    assert layout.dense_strides(shape, stride) == strided(shape, stride).clone().stride()
