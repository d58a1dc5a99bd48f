"""Any piece can be replaced while the framework runs, and everything is as before afterwards."""

from typing import Any

import pytest

from glassbox import mini
from glassbox.mini.c10 import layout, pieces


def column_major(shape: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return strides


def test_the_pieces_of_the_layout_are_listed_with_a_line_each() -> None:
    listed = mini.pieces()
    assert [name for name in listed if hasattr(layout, name)] == [
        "contiguous_strides",
        "address",
        "is_contiguous",
        "permute",
        "slice_view",
        "expand",
        "view_strides",
        "reshape",
    ]
    assert all(line.endswith((".", ";", ":")) or len(line) > 20 for line in listed.values())


def test_the_framework_runs_on_the_replacement_and_returns_to_its_own() -> None:
    own = layout.contiguous_strides
    assert mini.zeros(2, 3).stride() == (3, 1)
    with mini.using(contiguous_strides=column_major):
        assert mini.zeros(2, 3).stride() == (1, 2)
    assert mini.zeros(2, 3).stride() == (3, 1)
    assert layout.contiguous_strides is own


def test_what_was_computed_before_a_swap_is_not_used_after_it() -> None:
    x = mini.zeros(2, 3)
    assert x.is_contiguous()
    with mini.using(is_contiguous=lambda shape, stride: False):
        assert not x.is_contiguous()
        assert x.contiguous() is not x
    assert x.is_contiguous()


def test_pieces_use_each_other() -> None:
    with mini.using(view_strides=lambda shape, stride, size: None):
        assert layout.reshape((2, 3), (3, 1), (6,)) == ((6,), (1,), True)
        assert mini.zeros(2, 3).reshape(6)._base is None
        with pytest.raises(RuntimeError, match="view"):
            mini.zeros(2, 3).view(6)


def _product_of_ones() -> Any:
    return mini.ones(1, 1, requires_grad=True) @ mini.ones(1, 1, requires_grad=True)


def _sum_and_input() -> tuple[Any, Any]:
    x = mini.ones(1, requires_grad=True)
    return x.sum(), x


def test_the_list_of_pieces_that_are_tried_is_whole() -> None:
    (tried,) = (mark for mark in test_every_piece_is_reached_and_its_result_is_looked_at.pytestmark)
    assert {name for name, _ in tried.args[1]} == set(mini.pieces())


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("contiguous_strides", lambda: mini.zeros(2, 3)),
        ("is_contiguous", lambda: mini.zeros(2, 3).is_contiguous()),
        ("permute", lambda: mini.zeros(2, 3).T),
        ("slice_view", lambda: mini.zeros(2, 3)[:1]),
        ("expand", lambda: mini.zeros(1, 3).expand(2, 3)),
        ("view_strides", lambda: mini.zeros(2, 3).view(6)),
        ("reshape", lambda: mini.zeros(2, 3).reshape(6)),
        ("address", lambda: mini.zeros(2, 3)[1]),
        ("compute_key_set", lambda: mini.zeros(2)),
        ("effective_key_set", lambda: mini.zeros(2)),
        ("highest_functionality", lambda: mini.zeros(2)),
        ("highest_backend", lambda: mini.zeros(2)),
        ("remove_key", lambda: mini.zeros(2)[:1]),
        ("key_bits", lambda: mini.DispatchKeySet.of("CPU")),
        ("resolve_kernel", lambda: mini.zeros(2)),
        ("broadcast_shapes", lambda: mini.zeros(2, 1) + mini.zeros(3)),
        ("promote_types", lambda: mini.zeros(2) + mini.arange(2)),
        ("result_type", lambda: mini.zeros(2) + mini.arange(2)),
        ("output_strides", lambda: mini.zeros(2, 1) + mini.zeros(3)),
        ("coalesce_dimensions", lambda: mini.zeros(2, 1) + mini.zeros(3)),
        ("kernel_ready", lambda: mini.sim.spin(1)),
        ("join_clocks", lambda: mini.sim.spin(1)),
        ("event_time", lambda: mini.sim.Event().record()),
        ("host_after_wait", mini.sim.synchronize),
        ("unbroadcast", lambda: mini.zeros(2, 3).sum_to_size(1, 3)),
        ("mm_mat1_backward", lambda: _product_of_ones().backward()),
        ("mm_mat2_backward", lambda: _product_of_ones().backward()),
        ("sum_backward", lambda: mini.ones(1, requires_grad=True).sum(0).backward()),
        ("count_dependencies", lambda: mini.ones(1, requires_grad=True).sum().backward()),
        ("execute", lambda: mini.autograd.grad(*_sum_and_input())),
        ("stream_after_wait", lambda: mini.sim.Stream().wait_stream(mini.sim.default_stream())),
    ],
)
def test_every_piece_is_reached_and_its_result_is_looked_at(name: str, use) -> None:
    use()
    with (
        mini.using(**{name: lambda *args: "nonsense"}),
        pytest.raises(TypeError, match=f"your {name}.*expected"),
    ):
        use()
    use()


def test_lists_are_as_good_as_tuples() -> None:
    with mini.using(
        permute=lambda shape, stride, dims: [[shape[d] for d in dims], [stride[d] for d in dims]]
    ):
        x = mini.zeros(2, 3).permute(1, 0)
    assert x.shape == (3, 2)
    assert x.stride() == (1, 3)


@pytest.mark.parametrize("wrong", [(1,), (1, 2, 3), (1.0, 1), "ab", None, 7, ("1", "2")])
def test_a_result_of_the_wrong_form_names_the_piece_and_what_was_expected(wrong: object) -> None:
    with (
        mini.using(contiguous_strides=lambda shape: wrong),
        pytest.raises(TypeError, match="contiguous_strides.* returned .* expected a tuple of 2 ints"),
    ):
        mini.zeros(2, 3)


def test_strides_that_leave_the_storage_do_not_read_beyond_it() -> None:
    x = mini.zeros(2, 3)
    with mini.using(permute=lambda shape, stride, dims: (shape, (1000, 1000))):
        y = x.permute(1, 0)
        with pytest.raises(RuntimeError, match="do not fit a storage of 6 elements"):
            y.tolist()


def test_blocks_nest() -> None:
    with mini.using(contiguous_strides=column_major):
        with mini.using(contiguous_strides=lambda shape: (0,) * len(shape)):
            assert mini.empty(2, 3).stride() == (0, 0)
        assert mini.empty(2, 3).stride() == (1, 2)
    assert mini.empty(2, 3).stride() == (3, 1)


def test_an_exception_in_the_block_restores_the_piece() -> None:
    with pytest.raises(ZeroDivisionError), mini.using(contiguous_strides=column_major):
        raise ZeroDivisionError
    assert mini.empty(2, 3).stride() == (3, 1)


def test_errors_of_the_replacement_come_through() -> None:
    with mini.using(permute=lambda *args: 1 // 0), pytest.raises(ZeroDivisionError):
        mini.zeros(2, 3).permute(1, 0)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no piece is called 'strides'.*contiguous_strides.*view_strides"):
        mini.using(strides=column_major).__enter__()
    assert mini.empty(2, 3).stride() == (3, 1)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="contiguous_strides.*tuple"):
        mini.using(contiguous_strides=(3, 1)).__enter__()


def test_one_bad_name_plugs_in_nothing() -> None:
    own = layout.contiguous_strides
    with pytest.raises(ValueError, match="nope"):
        mini.using(contiguous_strides=column_major, nope=column_major).__enter__()
    assert layout.contiguous_strides is own


def test_the_reference_can_be_had_while_a_replacement_is_in() -> None:
    with mini.using(contiguous_strides=column_major):
        assert pieces.reference("contiguous_strides")((2, 3)) == (3, 1)
        assert layout.contiguous_strides((2, 3)) == (1, 2)
