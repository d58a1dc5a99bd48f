"""Any piece can be replaced while the framework runs, and everything is as before afterwards."""

from typing import Any

import pytest

from glassbox import mini
from glassbox.mini.aten import tensor_iterator
from glassbox.mini.c10 import layout, pieces
from glassbox.mini.models import mlp
from glassbox.mini.nn import functional as F  # noqa: N812


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
    with mini.using(permute=lambda shape, stride, dims: [[shape[d] for d in dims], [stride[d] for d in dims]]):
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


# Ops whose operands lie alike, which the framework's own pieces need not be asked about.
ALIKE: dict[str, Any] = {
    "two tensors": lambda x: x + x,
    "compared": lambda x: x < x,
    "with a number": lambda x: x * 2.0,
    "with an alpha": lambda x: x.add(x, alpha=0.5),
    "in place": lambda x: x.clone().add_(x),
    "in place with a number": lambda x: x.clone().mul_(0.5),
    "one tensor": lambda x: x.exp(),
    "three tensors": lambda x: mini.addcmul(x, x, x),
    "the gradient of relu": lambda x: mini.ops.aten.threshold_backward(x, x, 0),
}


def _counted(calls: dict[str, int], *names: str) -> dict[str, Any]:
    """The framework's own pieces, each counting its calls."""

    def counter(name: str) -> Any:
        def counted(*args: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            return pieces.reference(name)(*args)

        return counted

    return {name: counter(name) for name in names}


@pytest.mark.parametrize("kind", ALIKE)
def test_while_a_piece_of_the_plan_is_replaced_every_pointwise_op_is_planned(kind: str) -> None:
    x = mini.tensor([[0.5, -1.0, 2.0], [3.0, 0.0, -4.0]])
    use = ALIKE[kind]
    before = use(x).tolist()
    calls: dict[str, int] = {}
    for name in ("result_type", "coalesce_dimensions"):
        with mini.using(**{name: lambda *args: 1 // 0}), pytest.raises(ZeroDivisionError):
            use(x)
    # One piece suffices: another's block inside does not end it, nor does one that has nothing to do with it.
    with mini.using(**_counted(calls, "coalesce_dimensions")):
        with mini.using(broadcast_shapes=pieces.reference("broadcast_shapes"), permute=layout.permute):
            assert use(x).tolist() == before
        assert calls.pop("coalesce_dimensions")
        assert use(x).tolist() == before
        assert calls.pop("coalesce_dimensions")
        assert use(x).tolist() == before
        assert not calls, "a plan is kept for the same layouts"
    with mini.using(permute=lambda *args: 1 // 0):
        assert use(x).tolist() == before
    assert use(x).tolist() == before
    assert not calls


@pytest.mark.parametrize("kind", ALIKE)
def test_afterwards_the_fast_paths_are_open_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = mini.tensor([[0.5, -1.0], [3.0, 0.0]])
    with mini.using(coalesce_dimensions=lambda *args: 1 // 0):
        pass
    monkeypatch.setattr(tensor_iterator, "build", lambda *args: pytest.fail("planned"))
    ALIKE[kind](x)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (1, 3), (2, 1, 3), (2, 3, 1, 1)])
def test_planned_loops_give_the_same_tensors(shape: tuple[int, ...]) -> None:
    mini.manual_seed(0)
    x = mini.randn(shape)
    whole = mini.ones(shape, dtype=mini.int64)
    uses = [*ALIKE.values(), lambda x: x + whole, lambda x: x - x.sum(), lambda x: x.bfloat16() * 3]
    before = [(each.shape, each.stride(), each.dtype, each.tolist()) for each in (use(x) for use in uses)]
    with mini.using(coalesce_dimensions=lambda *args: pieces.reference("coalesce_dimensions")(*args)):
        after = [(each.shape, each.stride(), each.dtype, each.tolist()) for each in (use(x) for use in uses)]
    assert after == before


def test_a_wrong_plan_is_walked_as_it_is() -> None:
    """A coalescing that goes back and forth over the first row leaves its mark on the result."""
    x: Any = mini.tensor([[1.0, 2.0], [3.0, 4.0]])
    with mini.using(coalesce_dimensions=lambda shape, strides: ((2, 2), [(1, 2), *([(1, 0)] * (len(strides) - 1))])):
        assert (x + x).tolist() == [[2.0, 4.0], [2.0, 4.0]]
    assert (x + x).tolist() == [[2.0, 4.0], [6.0, 8.0]]


PLAN = ("broadcast_shapes", "result_type", "promote_types", "output_strides", "coalesce_dimensions")
WAITS = ("kernel_ready", "event_time", "stream_after_wait", "host_after_wait")


def _step() -> float:
    """One step of learning, whose pictures are brought to mean 0 on a second stream."""
    mini.manual_seed(0)
    mini.sim.reset()
    raw, wanted = mini.randn(4, 6).to("sim"), mini.tensor([0, 1, 2, 1]).to("sim")
    model = mlp.MLP(6, 5, 3).to("sim")
    optimizer = mini.optim.SGD(model.parameters(), lr=0.1)
    main, side = mini.sim.current_stream(), mini.sim.Stream()
    side.wait_stream(main)
    with mini.sim.stream(side):
        x = raw - raw.mean(0)
    main.wait_event(side.record_event())
    F.cross_entropy(model(x), wanted).backward()
    optimizer.step()
    return F.cross_entropy(model(x), wanted).item()


@pytest.mark.parametrize("name", [*PLAN, *WAITS])
def test_learning_needs_every_piece_of_the_plan_and_of_the_waiting(name: str) -> None:
    loss = _step()
    with mini.using(**{name: lambda *args: 1 // 0}), pytest.raises(ZeroDivisionError):
        _step()
    assert _step() == loss


def test_learning_calls_every_piece_of_the_plan_and_of_the_waiting() -> None:
    loss, calls = _step(), dict[str, int]()
    with mini.using(**_counted(calls, *PLAN, *WAITS)):
        assert _step() == loss
    assert set(calls) == {*PLAN, *WAITS}
    called = dict(calls)
    assert _step() == loss
    assert calls == called
