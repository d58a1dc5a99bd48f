"""Facts about the simulated device's time: who runs ahead, who waits, and what work costs."""

import dataclasses
import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from glassbox import mini
from glassbox.mini import sim
from glassbox.mini.c10.device import device
from glassbox.mini.c10.tensor_impl import TensorImpl
from glassbox.mini.sim import schedule
from glassbox.mini.sim.cost import work

# Round numbers, so that the times below can be added up in the head.
PLAIN = sim.CostModel(launch_us=4, api_us=0.5, malloc_us=0, gap_us=1, shortest_kernel_us=2)


@pytest.fixture(autouse=True)
def fresh_device() -> Iterator[None]:
    before, check = sim.cost_model(), sim.race_check()
    sim.set_cost_model(PLAIN)
    sim.set_race_check("raise")
    sim.reset()
    yield
    sim.set_cost_model(before)
    sim.set_race_check(check)
    sim.reset()


def on_sim(*shape: int, where: str = "sim") -> TensorImpl:
    return TensorImpl.adopt(np.zeros(shape, np.float32), mini.float32, device(where))


def add(a: TensorImpl, b: TensorImpl) -> TensorImpl:
    return ADD(0, a, b, 1)


ADD = sim.launch(
    "add.Tensor",
    lambda ks, a, b, alpha: TensorImpl.of_values(a.values() + alpha * b.values(), a._dtype, a._device),
)


def bars(*kinds: str) -> list[tuple[str, str, float, float]]:
    return [
        (e.row, e.name, e.start_us, e.end_us) for e in sim.timeline().events if not kinds or e.kind in kinds
    ]


def test_a_launch_returns_before_its_kernel_starts() -> None:
    x = on_sim(4)
    y = add(x, x)
    assert sim.now() == 4
    assert bars() == [("cpu", "add.Tensor", 0, 4), ("stream 0", "add.Tensor", 5, 7)]
    assert y._device == device("sim") and y.values().tolist() == [0, 0, 0, 0]


def test_small_kernels_leave_the_device_idle_and_large_ones_let_the_host_run_ahead() -> None:
    x = on_sim(4)
    for _ in range(3):
        add(x, x)
    assert bars("kernel") == [("stream 0", "add.Tensor", s, s + 2) for s in (5, 9, 13)]
    big = on_sim(1_000_000)
    for _ in range(3):
        add(big, big)
    # 12 MB at 1 TB/s, one after the other with a gap of 1 us, launched at 16, 20, 24.
    assert bars("kernel")[3:] == [("stream 0", "add.Tensor", s, s + 12) for s in (17, 30, 43)]
    assert sim.now() == 24
    sim.synchronize()
    assert sim.now() == 55
    assert bars("wait") == [("cpu", "synchronize", 24, 55)]


def test_what_was_not_asked_for_takes_no_time() -> None:
    x = on_sim(4)
    view = sim.launch("select.int", lambda ks, t, dim, index: t.alias((), (), index))
    view(0, x, 0, 1)
    sim.launch("empty.memory_format", lambda ks, size: on_sim(*size))(0, (3,))
    add(on_sim(0), on_sim(0))
    add(on_sim(2, where="cpu"), on_sim(2, where="cpu"))
    assert sim.now() == 0 and sim.timeline().events == ()


def test_two_streams_run_small_kernels_side_by_side_and_large_ones_in_turn() -> None:
    first, second = sim.Stream(), sim.Stream()
    for size, starts in ((1000, [5, 9]), (5_000_000, [13, 73])):
        x, y = on_sim(size), on_sim(size)
        with sim.stream(first):
            add(x, x)
        with sim.stream(second):
            add(y, y)
        # 60 MB take 60 us and fill the device: the second kernel, ready at 17, starts where the first ends.
        assert [start for _, _, start, _ in bars("kernel")[-2:]] == starts


def test_a_stream_waits_for_an_event_and_the_host_does_not() -> None:
    side = sim.Stream()
    sim.spin(100, "long")
    done = sim.current_stream().record_event()
    with sim.stream(side):
        side.wait_event(done)
        sim.spin(10, "after")
    assert sim.now() == 9
    assert bars("kernel") == [("stream 0", "long", 5, 105), ("stream 1", "after", 106, 116)]
    assert bars("wait") == [("stream 1", "wait for event", 5, 105)]
    assert not done.query() and not side.query()
    side.synchronize()
    assert sim.now() == 116 and done.query() and side.query()


def test_an_event_marks_what_is_in_the_stream_when_it_is_recorded() -> None:
    event, other = sim.Event(), sim.Stream()
    sim.spin(10)
    event.record()
    sim.spin(1000)
    other.wait_event(event)
    event.record()
    with sim.stream(other):
        sim.spin(1, "b")
    assert bars("kernel")[-1] == ("stream 1", "b", 16, 17), "the later recording moves nobody"
    sim.Event().synchronize()
    assert sim.Event().query(), "never recorded counts as done"


def test_wait_stream_is_an_event_recorded_and_waited_for() -> None:
    side = sim.Stream()
    sim.spin(50)
    side.wait_stream(sim.default_stream())
    with sim.stream(side):
        sim.spin(1)
    assert bars("kernel")[-1][2] == 56
    assert [row for row, *_ in bars("event")] == ["stream 0"]


def test_elapsed_time_is_the_devices_and_needs_the_events_done() -> None:
    start, end = sim.Event(enable_timing=True), sim.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="recorded"):
        start.elapsed_time(end)
    start.record()
    sim.spin(2500)
    end.record()
    with pytest.raises(RuntimeError, match="not ready"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) == pytest.approx(2.505)
    with pytest.raises(RuntimeError, match="enable_timing"):
        sim.Event().elapsed_time(end)


def test_polling_an_event_comes_to_an_end() -> None:
    sim.spin(100)
    event = sim.current_stream().record_event()
    asked = 0
    while not event.query():
        asked += 1
    assert asked == 200 and sim.now() == 105


def test_a_full_queue_holds_the_host() -> None:
    sim.set_cost_model(dataclasses.replace(PLAIN, queue_depth=2))
    for _ in range(3):
        sim.spin(100)
    assert bars("wait") == [("cpu", "queue full", 8, 105)]
    assert sim.now() == 109


def test_the_current_stream_is_the_threads_own() -> None:
    mine, seen = sim.Stream(), []
    with sim.stream(mine):
        with sim.stream(None):
            assert sim.current_stream() is mine
        thread = threading.Thread(target=lambda: seen.append(sim.current_stream()))
        thread.start()
        thread.join()
    assert seen == [sim.default_stream()] and sim.current_stream() is sim.default_stream()
    with pytest.raises(TypeError, match=r"sim\.Stream"):
        sim.stream("side")  # type: ignore[arg-type]


def test_threads_lose_nothing() -> None:
    def run() -> None:
        with sim.stream(sim.Stream()):
            for _ in range(200):
                add(x, x)

    x = on_sim(4)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kernels = sim.timeline().of_kind("kernel")
    assert len(kernels) == 800 and len({e.correlation for e in kernels}) == 800
    assert sim.now() == 3200
    assert {row: sim.timeline().busy_us(row) for row in sim.timeline().row_names()} == {
        "cpu": 3200,
        **{f"stream {n}": 400 for n in (1, 2, 3, 4)},
    }


def program() -> dict[str, object]:
    side, x = sim.Stream(), on_sim(300, 300)
    y = add(x, x)
    side.wait_stream(sim.current_stream())
    with sim.stream(side):
        add(y, y)
    sim.host_work(7)
    sim.read_back(y)
    return sim.chrome_trace()


def test_the_same_program_has_the_same_timeline_and_a_reset_is_a_fresh_start() -> None:
    first = program()
    sim.reset()
    assert sim.now() == 0 and sim.timeline().events == ()
    assert program() == first


def test_streams_and_events_outlive_a_reset() -> None:
    old, event = sim.Stream(), sim.Event()
    newer = sim.Stream()
    sim.spin(100)
    event.record()
    sim.reset()
    assert event.query() and newer.query() and newer.stream_id == 1 and old.stream_id == 2
    old.wait_event(event)
    with sim.stream(old):
        sim.spin(1)
    # The two questions took the host half a microsecond each, the wait as well.
    assert bars("kernel") == [("stream 2", "spin", 6.5, 7.5)]


def test_the_trace_is_what_chrome_reads() -> None:
    trace = json.loads(json.dumps(program()))
    events = trace["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {(0, 0): "cpu", (1, 0): "stream 0", (1, 1): "stream 1"}
    slices = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and (e["pid"], e["tid"]) in names for e in slices)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() == {1, 2, 3}
    for number, arrow in starts.items():
        assert arrow["pid"] == 0 and ends[number]["pid"] == 1 and ends[number]["bp"] == "e"
        assert arrow["ts"] < ends[number]["ts"]
        # An arrow belongs to the slice that lies at its time on its row.
        for end in (arrow, ends[number]):
            assert any((e["pid"], e["tid"], e["ts"]) == (end["pid"], end["tid"], end["ts"]) for e in slices)
    (kernel,) = (e for e in slices if e["cat"] == "kernel" and e["tid"] == 1)
    assert kernel["args"] == {"bytes": 3 * 360_000, "flops": 90_000, "correlation": 2}


def test_a_timeline_prints_and_becomes_rows() -> None:
    add(on_sim(4), on_sim(4))
    timeline = sim.timeline()
    assert str(timeline).splitlines()[0] == "7 us in all: cpu busy 4 us, stream 0 busy 2 us"
    assert timeline.rows()[1] == {
        "row": "stream 0", "name": "add.Tensor", "kind": "kernel", "start_us": 5.0, "us": 2.0,
        "bytes": 48, "flops": 4, "correlation": 1,
    }  # fmt: skip
    assert timeline.to_markdown().count("\n") == 3 and "<table>" in timeline._repr_html_()
    with pytest.raises(dataclasses.FrozenInstanceError):
        timeline.events[0].name = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    "change", [{"launch_us": -1}, {"api_us": 0}, {"bytes_per_s": float("nan")}, {"queue_depth": 0}]
)
def test_a_cost_model_that_stops_time_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        dataclasses.replace(PLAIN, **change)


def test_a_lab_may_put_its_own_law_in_place() -> None:
    class Quadratic(sim.CostModel):
        def kernel_us(self, op: str, nbytes: int, flops: int) -> float:
            return flops**2

    sim.set_cost_model(Quadratic())
    add(on_sim(10), on_sim(10))
    assert sim.timeline().of_kind("kernel")[0].duration_us == 100
    with pytest.raises(TypeError, match="CostModel"):
        sim.set_cost_model(4.0)  # type: ignore[arg-type]


def shapes_of(*shapes: tuple[int, ...]) -> tuple[list[TensorImpl], list[torch.Tensor]]:
    return [on_sim(*shape) for shape in shapes], [torch.zeros(shape) for shape in shapes]


# Stride, padding, dilation, transposed, output padding, groups.
CONVOLUTION = ([2, 2], [1, 1], [1, 1], False, [0, 0], 2)


@pytest.mark.parametrize(
    ("op", "call", "shapes", "rest"),
    [
        ("mm", torch.mm, ((3, 4), (4, 5)), ()),
        ("addmm", torch.addmm, ((5,), (3, 4), (4, 5)), ()),
        ("bmm", torch.bmm, ((2, 3, 4), (2, 4, 5)), ()),
        ("baddbmm", torch.baddbmm, ((2, 3, 5), (2, 3, 4), (2, 4, 5)), ()),
        ("convolution", torch.convolution, ((2, 4, 9, 8), (6, 2, 3, 3), (6,)), CONVOLUTION),
    ],
)  # fmt: skip
def test_flops_are_those_of_torchs_counter(op, call, shapes, rest) -> None:
    ours, theirs = shapes_of(*shapes)
    with FlopCounterMode(display=False) as counter:
        result = call(*theirs, *rest)
    nbytes, flops = work(op, [*ours, *rest], ours, [on_sim(*result.shape)])
    assert flops == counter.get_total_flops() > 0
    assert nbytes == 4 * (sum(t.numel() for t in theirs) + result.numel())


@pytest.mark.parametrize("mask", [(True, True, False), (True, False, False), (False, True, True)])
def test_flops_of_convolution_backward_are_those_of_torchs_counter(mask: tuple[bool, ...]) -> None:
    (grad, x, weight), theirs = shapes_of((2, 6, 7, 6), (2, 4, 9, 8), (6, 4, 3, 3))
    rest = ([6], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, list(mask))
    with FlopCounterMode(display=False) as counter:
        torch.ops.aten.convolution_backward(*theirs, *rest)
    assert work("convolution_backward", [grad, x, weight, *rest], [], [x])[1] == counter.get_total_flops()


def test_bytes_are_those_of_the_cells_that_are_touched() -> None:
    row = on_sim(1000)
    wide = row.alias((50, 1000), (0, 1), 0)
    table, index = on_sim(1000, 10), TensorImpl.adopt(np.zeros(3, np.int64), mini.int64, device("sim"))
    assert work("add.Tensor", [wide, wide], [wide, wide], [on_sim(50, 1000)])[0] == 2 * 4000 + 200_000
    assert work("embedding", [table, index], [table, index], [on_sim(3, 10)])[0] == 120 + 24 + 120


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 15), st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.75, 1.0])),
        max_size=12,
    )
)
def test_the_device_is_never_overfull_and_never_idle_without_need(jobs: list[tuple[int, int, float]]) -> None:
    placed: list[tuple[int, int, float]] = []

    def fits(start: int, duration: int, share: float) -> bool:
        moments = range(start, start + max(duration, 1))
        return all(share + sum(p for s, e, p in placed if s <= t < e) <= 1 + 1e-9 for t in moments)

    for ready, duration, share in jobs:
        start = schedule.earliest_slot(placed, ready, duration, share)
        assert start >= ready and fits(start, duration, share)
        assert not any(fits(earlier, duration, share) for earlier in range(ready, start))
        placed.append((start, start + duration, share))


def test_the_framework_runs_on_a_learners_waiting() -> None:
    def never_waits(stream_end: int, event_time: int) -> int:
        return stream_end

    side = sim.Stream()
    with mini.using(stream_after_wait=never_waits):
        sim.spin(100)
        side.wait_stream(sim.current_stream())
        with sim.stream(side):
            sim.spin(1)
    assert bars("kernel")[-1][2] < 100
    with (
        mini.using(host_after_wait=lambda now, awaited: None),
        pytest.raises(TypeError, match="your host_after_wait"),
    ):
        sim.synchronize()
