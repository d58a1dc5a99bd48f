"""TensorIterator: shapes, strides, dtypes and checks of a pointwise op are PyTorch's."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten import loop_layout, memory_overlap, tensor_iterator
from glassbox.mini.aten.native import binary_ops, compare_ops, unary_ops
from glassbox.mini.c10 import dtype as dtypes
from glassbox.mini.c10.device import CPU, device
from glassbox.mini.c10.tensor_impl import TensorImpl

Ints = tuple[int, ...]


def strided(shape: Ints, stride: Ints, dtype: str = "float32", offset: int = 0) -> tuple[torch.Tensor, Any]:
    """The same zeros in PyTorch and here, with any strides."""
    span = offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True) if n)
    theirs = torch.zeros(span, dtype=getattr(torch, dtype)).as_strided(shape, stride, offset)
    d = dtypes.by_name(dtype)
    return theirs, TensorImpl.allocate((span,), (1,), d, CPU).alias(shape, stride, offset)


def layouts(seed: int, count: int) -> Iterator[tuple[Ints, Ints]]:
    """Shapes of 0 to 4 dimensions with permuted, gappy, repeated and odd strides."""
    chance = random.Random(seed)
    for _ in range(count):
        ndim = chance.randint(0, 4)
        shape = [chance.choice([1, 1, 2, 3, 4] + [0] * (chance.random() < 0.1)) for _ in range(ndim)]
        order = chance.sample(range(ndim), ndim)
        stride, step = [0] * ndim, 1
        for dim in order:
            stride[dim] = step
            if chance.random() < 0.12:
                stride[dim] = 0
            elif shape[dim] == 1 and chance.random() < 0.3:
                stride[dim] = chance.choice([1, 5])
            step *= max(shape[dim], 1) + (chance.random() < 0.1)
        yield tuple(shape), tuple(stride)


def partner(shape: Ints, chance: random.Random) -> Ints:
    """A shape that broadcasts with another one."""
    kept = [n if chance.random() < 0.6 else 1 for n in shape]
    return tuple(kept[chance.randint(0, len(kept)) :]) if chance.random() < 0.3 else tuple(kept)


def test_broadcast_shapes_is_torchs_for_all_small_shapes() -> None:
    shapes = [shape for ndim in range(4) for shape in itertools.product((0, 1, 2), repeat=ndim)]
    for a, b in itertools.product(shapes, repeat=2):
        try:
            expected = tuple(torch.broadcast_shapes(a, b))
        except RuntimeError:
            with pytest.raises(RuntimeError, match="must match the size of tensor b"):
                loop_layout.broadcast_shapes(a, b)
        else:
            assert loop_layout.broadcast_shapes(a, b) == expected, (a, b)


def test_sizes_that_do_not_broadcast_are_named_as_torch_names_them() -> None:
    for a, b in [((3,), (4,)), ((2, 3, 4), (3, 3)), ((0,), (2,))]:
        with pytest.raises(RuntimeError) as theirs:
            torch.ones(a) + torch.ones(b)
        with pytest.raises(RuntimeError) as ours:
            binary_ops.add.functional(0, mini.zeros(a), mini.zeros(b), 1)
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("seed", range(6))
def test_strides_of_a_result_of_two_operands_are_torchs(seed: int) -> None:
    chance = random.Random(seed)
    dtype_pairs = (("float32", "float32"), ("int64", "float32"), ("float32", "bfloat16"))
    kinds = {"as it was": 0, "other": 0}
    for shape, stride in layouts(seed, 400):
        dtype_a, dtype_b = chance.choice(dtype_pairs)
        small = partner(shape, chance)
        likely = tuple(torch.empty(small[::-1]).permute(tuple(reversed(range(len(small))))).stride())
        small_stride = chance.choice([tuple(torch.empty(small).stride()), likely])
        a, mine_a = strided(shape, stride, dtype_a)
        b, mine_b = strided(small, small_stride, dtype_b)
        for one, two, m1, m2 in ((a, b, mine_a, mine_b), (b, a, mine_b, mine_a), (a, a, mine_a, mine_a)):
            expected = one + two
            got = binary_ops.add.functional(0, m1, m2, 1)
            assert (got._shape, got._stride) == (tuple(expected.shape), expected.stride()), (
                one.stride(),
                two.stride(),
                shape,
                small,
            )
            kinds["as it was" if expected.is_contiguous() else "other"] += 1
    assert min(kinds.values()) > 30


@pytest.mark.parametrize("seed", range(3))
def test_strides_of_a_result_of_one_operand_are_torchs(seed: int) -> None:
    for shape, stride in layouts(100 + seed, 400):
        for dtype in ("float32", "int32"):
            theirs, mine = strided(shape, stride, dtype)
            for kernel, function in ((unary_ops.neg, torch.neg), (unary_ops.exp, torch.exp)):
                expected = function(theirs)
                assert kernel.functional(0, mine)._stride == expected.stride(), (shape, stride)
            expected = theirs > 0
            assert compare_ops.gt_scalar.functional(0, mine, 0)._stride == expected.stride(), (shape, stride)
            expected = theirs.clamp(0, 1)
            assert compare_ops.clamp.functional(0, mine, 0, 1)._stride == expected.stride(), (shape, stride)


def test_three_operands_ask_in_turn_for_the_order_of_dimensions() -> None:
    chance = random.Random(7)
    for shape, stride in layouts(7, 500):
        condition, mine_condition = strided(shape, stride, "bool")
        a, mine_a = strided(*next(layouts(chance.randint(0, 10**9), 1)))
        b, mine_b = strided((1,) * len(shape), stride)
        for other, mine_other in ((a, mine_a), (b, mine_b)):
            try:
                expected = torch.where(condition, b, other)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="must match"):
                    compare_ops.where(0, mine_condition, mine_b, mine_other)
            else:
                got = compare_ops.where(0, mine_condition, mine_b, mine_other)
                assert (got._shape, got._stride) == (tuple(expected.shape), expected.stride())


def test_channels_last_stays_channels_last() -> None:
    theirs = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    _, mine = strided((2, 3, 4, 5), theirs.stride())
    assert binary_ops.add.functional(0, mine, mine, 1)._stride == (theirs + theirs).stride() == (60, 1, 15, 3)


def test_the_steps_can_be_watched_one_by_one() -> None:
    _, rows = strided((4, 3), (1, 4))
    _, row = strided((3,), (1,))
    iterator = tensor_iterator.TensorIterator(
        tensor_iterator.BINARY_OP, (tensor_iterator.meta(rows), tensor_iterator.meta(row))
    )
    iterator.compute_shape()
    assert iterator.shape == (4, 3)
    iterator.mark_resize_outputs()
    iterator.compute_types()
    assert iterator.common_dtype is mini.float32
    iterator.compute_strides()
    assert [operand.strides for operand in iterator.inputs] == [(1, 4), (0, 1)]
    iterator.reorder_dimensions()
    assert iterator.perm == (0, 1)
    iterator.allocate_outputs()
    assert iterator.output_stride == (1, 4)
    iterator.coalesce_dimensions()
    assert iterator.loop_shape == (4, 3)
    assert iterator.loop_strides == ((1, 4), (1, 4), (0, 1))


def test_dimensions_that_all_operands_walk_alike_are_joined() -> None:
    joined = loop_layout.coalesce_dimensions((4, 3, 2), ((1, 4, 12), (1, 4, 12)))
    assert joined == ((24,), ((1,), (1,)))
    assert loop_layout.coalesce_dimensions((4, 3, 2), ((1, 4, 12), (0, 0, 1))) == ((12, 2), ((1, 12), (0, 1)))
    assert loop_layout.coalesce_dimensions((1, 3, 1, 2), ((9, 1, 9, 3),)) == ((6,), ((1,),))
    assert loop_layout.coalesce_dimensions((4, 3), ((2, 4),)) == ((4, 3), ((2, 4),))
    assert loop_layout.coalesce_dimensions((), ((), ())) == ((), ((), ()))


def test_equal_metadata_is_planned_once_and_a_swap_of_pieces_forgets_the_plan() -> None:
    metas = (tensor_iterator.meta(mini.zeros(3, 4)), tensor_iterator.meta(mini.zeros(4)))
    plan = tensor_iterator.build(tensor_iterator.BINARY_OP, metas)
    assert tensor_iterator.build(tensor_iterator.BINARY_OP, metas) is plan
    asked = []

    def spy(shape: Ints, operand_strides: tuple[Ints, ...]) -> Ints:
        asked.append(shape)
        return (1, 3)

    with mini.using(output_strides=spy):
        result = binary_ops.add.functional(0, mini.zeros(3, 4), mini.zeros(4), 1)
        assert (result._shape, result._stride) == ((3, 4), (1, 3))
    assert asked == [(3, 4)]
    assert tensor_iterator.build(tensor_iterator.BINARY_OP, metas) is not plan


@pytest.mark.parametrize("piece", ["broadcast_shapes", "output_strides", "coalesce_dimensions"])
def test_a_piece_that_returns_nonsense_is_named(piece: str) -> None:
    with mini.using(**{piece: lambda *args: "abc"}), pytest.raises(TypeError, match=f"your {piece}"):
        binary_ops.add.functional(0, mini.zeros(3, 4), mini.zeros(4), 1)


def test_any_strides_that_a_piece_chooses_hold_the_right_values() -> None:
    values = mini.tensor([[1.0, 2.0], [3.0, 4.0]])
    row = mini.tensor([10.0, 20.0])
    with mini.using(output_strides=lambda shape, strides: (7, 3)):
        result = binary_ops.add.functional(0, values, row, 1)
    assert result._stride == (7, 3)
    assert result.tolist() == [[11.0, 22.0], [13.0, 24.0]]


# Outputs


def test_an_in_place_result_must_have_the_shape_of_self() -> None:
    with pytest.raises(
        RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"
    ):
        binary_ops.add.inplace(0, mini.zeros(3), mini.zeros(2, 3), 1)
    with pytest.raises(
        RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"
    ):
        torch.zeros(3).add_(torch.zeros(2, 3))


@pytest.mark.parametrize("target", ["int64", "bool", "uint8"])
def test_a_result_is_not_cast_to_a_lower_kind(target: str) -> None:
    dtype = dtypes.by_name(target)
    with pytest.raises(RuntimeError) as theirs:
        torch.zeros(2, dtype=getattr(torch, target)).add_(torch.zeros(2))
    with pytest.raises(RuntimeError) as ours:
        binary_ops.add.inplace(0, mini.zeros(2, dtype=dtype), mini.zeros(2), 1)
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(RuntimeError, match="can't be cast"):
        binary_ops.add.out(0, mini.zeros(2), mini.zeros(2), 1, mini.zeros(2, dtype=dtype))


def test_an_out_tensor_of_another_shape_is_resized_with_a_warning() -> None:
    a = mini.tensor([[1.0, 2.0], [3.0, 4.0]])
    out = mini.zeros(3)
    with pytest.warns(UserWarning, match="resized"):
        result = binary_ops.add.out(0, a, a, 1, out)
    assert result is out
    assert (out._shape, out._stride, out.tolist()) == ((2, 2), (2, 1), [[2.0, 4.0], [6.0, 8.0]])


def test_an_empty_out_tensor_is_resized_silently_and_takes_the_operands_order() -> None:
    theirs, mine = strided((2, 3), (1, 2))
    expected = torch.add(theirs, theirs, out=torch.empty(0))
    out = mini.zeros(0)
    binary_ops.add.out(0, mine, mine, 1, out)
    assert (out._shape, out._stride) == (tuple(expected.shape), expected.stride())


def test_an_out_tensor_of_the_right_shape_keeps_its_strides() -> None:
    _, out = strided((2, 3), (1, 2))
    before = out._storage
    binary_ops.add.out(0, mini.ones(2, 3), mini.ones(2, 3), 1, out)
    assert out._storage is before
    assert (out._stride, out.tolist()) == ((1, 2), [[2.0] * 3] * 2)


def test_written_tensors_may_not_share_cells_with_themselves_or_others() -> None:
    repeated = mini.zeros(1, 3).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        binary_ops.add.inplace(0, repeated, mini.zeros(2, 3), 1)
    base, theirs = mini.zeros(5), torch.zeros(5)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        binary_ops.add.inplace(0, base[:4], base[1:], 1)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        theirs[:4].add_(theirs[1:])
    binary_ops.add.inplace(0, base[:4], base[:4], 1)


def test_overlap_status_tells_full_partial_none_and_too_hard() -> None:
    x = mini.zeros(4, 4)
    assert memory_overlap.get_overlap_status(x, x) == memory_overlap.FULL
    assert memory_overlap.get_overlap_status(x, x.view(4, 4)) == memory_overlap.FULL
    assert memory_overlap.get_overlap_status(x, x.t()) == memory_overlap.PARTIAL
    assert memory_overlap.get_overlap_status(x, x[1:]) == memory_overlap.PARTIAL
    assert memory_overlap.get_overlap_status(x[:2], x[2:]) == memory_overlap.NO
    assert memory_overlap.get_overlap_status(x, mini.zeros(4, 4)) == memory_overlap.NO
    assert memory_overlap.get_overlap_status(x[:, :2], x[:, 1:3]) == memory_overlap.TOO_HARD
    memory_overlap.assert_no_overlap(x[:2], x[2:])
    with pytest.raises(RuntimeError, match="single memory location"):
        memory_overlap.assert_no_overlap(x, x.view(4, 4))


# Devices


def elsewhere(*shape: int) -> Any:
    return TensorImpl.allocate(shape, tuple(torch.empty(shape).stride()), mini.float32, device("sim"))


def test_tensors_of_two_devices_do_not_meet() -> None:
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but got.*sim.*cpu"
    ):
        binary_ops.add.functional(0, elsewhere(2), mini.zeros(2), 1)
    with pytest.raises(RuntimeError, match="same device"):
        binary_ops.add.inplace(0, mini.zeros(2), elsewhere(2), 1)


def test_a_0d_tensor_may_come_from_the_cpu() -> None:
    assert binary_ops.add.functional(0, elsewhere(2), mini.tensor(1.0), 1)._device == device("sim")
    assert binary_ops.add.functional(0, mini.tensor(1.0), elsewhere(2), 1)._device == device("sim")
    with pytest.raises(RuntimeError, match="too many CPU scalars"):
        tensor_iterator.common_device((elsewhere(2), mini.tensor(1.0), mini.tensor(1.0)))


def test_results_lie_where_their_operands_do() -> None:
    assert binary_ops.mul.functional(0, elsewhere(2), elsewhere(2))._device == device("sim")
    assert unary_ops.neg.functional(0, elsewhere(2))._device == device("sim")
    assert compare_ops.gt_scalar.functional(0, elsewhere(2), 0)._device == device("sim")
