"""Facts about launching: copies, reading, what an op reads and writes, and errors that come late."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from glassbox import mini
from glassbox.mini import sim
from glassbox.mini.c10.device import device
from glassbox.mini.c10.tensor_impl import TensorImpl
from glassbox.mini.sim.effects import effects


@pytest.fixture(autouse=True)
def fresh_device() -> Iterator[None]:
    before, check = sim.cost_model(), sim.race_check()
    sim.set_cost_model(sim.CostModel(malloc_us=0))
    sim.set_race_check("raise")

    sim.reset()
    yield
    sim.set_cost_model(before)
    sim.set_race_check(check)
    sim.reset()


def tensor(values: Any, dtype: Any = mini.float32, where: str = "sim") -> TensorImpl:
    return TensorImpl.of_values(np.asarray(values), dtype, device(where))


def to_copy(ks: int, t: TensorImpl, dtype: Any, where: Any, non_blocking: bool) -> TensorImpl:
    return TensorImpl.of_values(t.values().copy(), dtype or t._dtype, where or t._device)


def copy(ks: int, target: TensorImpl, source: TensorImpl, non_blocking: bool) -> TensorImpl:
    target.strided_array()[...] = source.strided_array()
    return target


def add_out(ks: int, a: TensorImpl, b: TensorImpl, alpha: float, out: TensorImpl) -> TensorImpl:
    np.add(a.values(), b.values(), out=out.strided_array())
    return out


def gather(ks: int, t: TensorImpl, dim: int, index: TensorImpl) -> TensorImpl:
    if not -len(t._shape) <= dim < len(t._shape):
        raise IndexError(f"Dimension out of range, got {dim}")
    where = index.values()
    if where.size and not (where.min() >= 0 and where.max() < t._shape[dim]):
        raise IndexError(
            f"index {where.max()} is out of bounds for dimension {dim} with size {t._shape[dim]}"
        )
    return TensorImpl.of_values(np.take_along_axis(t.values(), where, dim), t._dtype, t._device)


def put_(ks: int, t: TensorImpl, index: TensorImpl) -> TensorImpl:
    t.strided_array()[index.values()] = 7
    return t


def floor_divide(ks: int, a: TensorImpl, b: TensorImpl) -> TensorImpl:
    if (b.values() == 0).any():
        raise RuntimeError("ZeroDivisionError")
    return TensorImpl.of_values(a.values() // b.values(), a._dtype, a._device)


TO_COPY = sim.launch("_to_copy", to_copy)
COPY = sim.launch("copy_", copy)
GATHER = sim.launch("gather", gather)
RELU = sim.launch("relu", lambda ks, t: TensorImpl.of_values(np.maximum(t.values(), 0), t._dtype, t._device))
ITEM = sim.launch("_local_scalar_dense", lambda ks, t: t.values().item())


def device_work() -> list[tuple[str, str, int]]:
    return [(e.kind, e.name, e.bytes) for e in sim.timeline().of_kind("kernel", "copy")]


def is_waiting() -> bool:
    """Whether the host is further than all device work."""
    return sim.timeline().end_us() <= sim.now()


def test_results_are_the_cpus_and_on_the_device() -> None:
    x = tensor([-1.0, 2.0])
    y = RELU(0, x)
    assert y.values().tolist() == [0, 2] and y._device == device("sim")
    assert RELU.__wrapped__(0, x).values().tolist() == [0, 2]


def test_copies_to_the_device_wait_unless_told_not_to() -> None:
    host = tensor(np.zeros((100, 1000)), where="cpu")
    there = TO_COPY(0, host, None, device("sim"), False)
    assert there._device == device("sim") and is_waiting()
    (copied,) = sim.timeline().of_kind("copy")
    assert copied.bytes == 400_000 and copied.duration_us == pytest.approx(2 + 25)
    before = sim.now()
    TO_COPY(0, host, None, device("sim"), True)
    assert sim.now() == before + 4 and not is_waiting()


def test_copies_to_the_host_always_wait() -> None:
    x = RELU(0, tensor(np.zeros(1000)))
    for non_blocking in (False, True):
        back = TO_COPY(0, x, None, device("cpu"), non_blocking)
        assert back._device == device("cpu") and is_waiting()
    host = tensor(np.zeros(1000), where="cpu")
    COPY(0, host, RELU(0, x), False)
    assert is_waiting()
    assert [kind for kind, *_ in device_work()] == ["kernel", "copy", "copy", "kernel", "copy"]


def test_a_conversion_on_the_device_is_a_copy_in_its_stream_that_nobody_waits_for() -> None:
    TO_COPY(0, tensor(np.zeros(1000)), mini.float64, None, False)
    assert device_work() == [("copy", "_to_copy", 12_000)] and not is_waiting()


def test_copies_of_one_direction_take_turns_and_the_other_direction_runs_beside() -> None:
    host, there = tensor(np.zeros(160_000), where="cpu"), tensor(np.zeros(160_000))
    for _ in range(2):
        with sim.stream(sim.Stream()):
            TO_COPY(0, host, None, device("sim"), True)
    with sim.stream(sim.Stream()):
        sim.read_back(there)
    first, second, back = sim.timeline().of_kind("copy")
    assert second.start_us == first.end_us == 5 + 42
    assert back.start_us == 13


def test_looking_at_a_number_waits() -> None:
    x = RELU(0, tensor([3.0]))
    assert not is_waiting()
    assert ITEM(0, x) == 3
    assert is_waiting() and [e.kind for e in sim.timeline().of_row("cpu")] == ["launch", "launch", "wait"]
    equal = sim.launch("equal", lambda ks, a, b: bool((a.values() == b.values()).all()))
    assert equal(0, x, x) is True
    assert is_waiting() and [name for _, name, _ in device_work()][-2:] == ["equal", "copy to host"]


def test_a_size_that_depends_on_elements_waits() -> None:
    nonzero = sim.launch("nonzero", lambda ks, t: tensor(np.argwhere(t.values()), mini.int64))
    for values in ([0.0, 1.0], [0.0, 0.0]):
        nonzero(0, tensor(values))
        assert is_waiting()
    take = sim.launch("index.Tensor", lambda ks, t, indices: tensor(t.values()[indices[0].values()]))
    x = tensor([1.0, 2.0])
    take(0, x, [tensor([0, 0, 1], mini.int64)])
    assert not is_waiting()
    take(0, x, [tensor([True, False], mini.bool)])
    assert is_waiting()


def test_reading_back_waits_and_is_nothing_on_the_host() -> None:
    sim.read_back(tensor([1.0], where="cpu"))
    assert sim.timeline().events == ()
    sim.read_back(tensor([1.0, 2.0]))
    assert device_work() == [("copy", "copy to host", 8)] and is_waiting()


def test_effects_are_read_off_the_call() -> None:
    x, y, out = tensor([1.0]), tensor([2.0]), tensor([0.0])
    fresh = tensor([3.0])
    plain = effects("add", (x, y, 1), fresh)
    assert (plain.read, plain.written, plain.fresh) == ([x, y], [fresh], [fresh]) and plain.has_kernel
    inplace = effects("add_", (x, y, 1), x)
    assert (inplace.read, inplace.written, inplace.fresh) == ([x, y], [x], [])
    into = effects("add", (x, y, 1, out), out)
    assert (into.read, into.written) == ([x, y], [out])
    into_own = effects("add", (x, y, 1, x), x)
    assert (into_own.read, into_own.written) == ([x, y], [x])
    filled = effects("fill_", (x, 2), x)
    assert (filled.read, filled.written) == ([], [x])
    view = effects("view", (x, (1, 1)), x.alias((1, 1), (1, 1), 0))
    assert (view.written, view.has_kernel) == ([], False)
    several = effects("cat", ([x, y], 0), [fresh, None, out])
    assert (several.read, several.written) == ([x, y], [fresh, out])
    statistics = effects("native_batch_norm", (x, None, None, y, out, True, 0.1, 1e-5), (fresh,))
    assert statistics.written == [y, out, fresh]
    assert effects("native_batch_norm", (x, None, None, y, out, False, 0.1, 1e-5), (fresh,)).written == [
        fresh
    ]


def test_an_out_is_written_and_not_read() -> None:
    x, out = tensor(np.zeros(10)), tensor(np.zeros(10))
    sim.launch("add.out", add_out)(0, x, x, 1, out)
    assert device_work() == [("kernel", "add.out", 120)]


def test_install_wraps_every_kernel_it_is_given() -> None:
    table: dict[str, Any] = {}
    sim.install(table.__setitem__, [("relu", RELU.__wrapped__), ("gather", gather)])
    assert list(table) == ["relu", "gather"]
    assert table["relu"](0, tensor([-1.0])).values().tolist() == [0] and len(device_work()) == 1


def bad_gather() -> TensorImpl:
    return GATHER(0, tensor([[1.0, 2.0]]), 1, tensor([[0, 5]], mini.int64))


def test_an_index_out_of_range_comes_up_at_the_next_wait() -> None:
    y = bad_gather()
    assert y._shape == (1, 2) and y._device == device("sim")
    z = RELU(0, y)
    with pytest.raises(
        RuntimeError, match="sim error: device-side assert triggered by gather on stream 0: index 5"
    ):
        ITEM(0, z.alias((), (), 0))


@pytest.mark.parametrize(
    "wait",
    [
        sim.synchronize,
        lambda: sim.current_stream().synchronize(),
        lambda: sim.current_stream().record_event().synchronize(),
        lambda: sim.read_back(tensor([1.0])),
        lambda: TO_COPY(0, tensor([1.0]), None, device("cpu"), True),
        lambda: (sim.host_work(100), sim.current_stream().query()),
    ],
)
def test_every_way_to_wait_brings_it_up_and_the_device_stays_broken_until_a_reset(wait) -> None:
    x = tensor([1.0])
    bad_gather()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="device-side assert triggered by gather"):
            wait()
    for use in (lambda: RELU(0, x), sim.synchronize, sim.Event().record, lambda: sim.spin(1)):
        with pytest.raises(RuntimeError, match="until sim.reset()"):
            use()
    assert RELU(0, tensor([-1.0], where="cpu")).values().tolist() == [0], "the host is not concerned"
    sim.reset()
    assert RELU(0, x).values().tolist() == [1]
    wait()


def test_an_event_before_the_failure_can_be_waited_for() -> None:
    event = sim.current_stream().record_event()
    other = sim.Stream()
    bad_gather()
    event.synchronize()
    other.synchronize()
    with pytest.raises(RuntimeError, match="device-side"):
        sim.synchronize()


def test_the_first_failure_is_the_one_that_is_told() -> None:
    bad_gather()
    GATHER(0, tensor([[1.0]]), 1, tensor([[9]], mini.int64))
    with pytest.raises(RuntimeError, match="index 5"):
        sim.synchronize()


def test_errors_of_the_call_are_raised_at_the_call() -> None:
    x = tensor([[1.0, 2.0]])
    with pytest.raises(IndexError, match="Dimension"):
        GATHER(0, x, 7, tensor([[0]], mini.int64))
    with pytest.raises(IndexError, match="out of bounds"):
        GATHER(0, tensor(np.zeros((1, 0))), 1, tensor([[0]], mini.int64))
    with pytest.raises(IndexError, match="out of bounds"):
        GATHER(0, tensor([[1.0]], where="cpu"), 1, tensor([[3]], mini.int64, "cpu"))
    with pytest.raises(AttributeError):
        RELU(0, 3)
    sim.synchronize()
    assert device_work() == []


def test_a_failing_op_in_place_gives_its_argument_back() -> None:
    x = tensor([1.0, 2.0])
    assert sim.launch("put_", put_)(0, x, tensor([8], mini.int64)) is x
    with pytest.raises(RuntimeError, match="triggered by put_ on stream 0: index 8"):
        sim.synchronize()


def test_a_division_by_zero_is_the_devices_error_too() -> None:
    divide = sim.launch("floor_divide", floor_divide)
    divide(0, tensor([1, 2], mini.int64), tensor([1, 0], mini.int64))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        sim.synchronize()


def test_calls_on_the_host_leave_no_trace() -> None:
    RELU(0, tensor([1.0], where="cpu"))
    TO_COPY(0, tensor([1.0], where="cpu"), mini.float64, None, False)
    assert sim.timeline().events == () and sim.now() == 0
