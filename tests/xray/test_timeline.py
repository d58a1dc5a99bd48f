"""Facts about timelines: on sim from the virtual clock, on PyTorch from the profiler, on CUDA from stored events.

The events of a CUDA run are made up after torch/autograd/profiler_util.py, since the suite runs where no device is.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import glassbox.mini as mini
from glassbox.mini import sim
from glassbox.records import Timeline, TimelineEvent
from glassbox.xray import TorchInternalsError, timeline
from glassbox.xray._profiled import timeline_of
from glassbox.xray._torch_internals.tracing import profiler_is_on


@pytest.fixture(autouse=True)
def fresh_device():
    sim.reset()
    yield
    sim.reset()


def on_sim(*shape):
    return mini.ones(*shape, device="sim")


def lines(line):
    """One line per bar: row, name, kind, start to end."""
    return [f"{e.row} | {'. ' * e.depth}{e.name} [{e.kind}] {e.start_us:g}-{e.end_us:g}" for e in line.events]


# The simulated device


def test_a_launch_returns_before_its_kernel_ends_and_item_waits():
    a, b = on_sim(100, 100), on_sim(100, 100)
    sim.synchronize()
    seen = timeline(lambda a, b: (a + b).sum().item(), a, b)
    assert lines(seen) == [
        "cpu | add.Tensor [launch] 0-4",
        "stream 0 | add.Tensor [kernel] 5-6.5",
        "cpu | sum [launch] 4-8",
        "stream 0 | sum [kernel] 9-10.5",
        "cpu | _local_scalar_dense [launch] 8-12",
        "stream 0 | _local_scalar_dense [copy] 13-15.001",
        "cpu | wait for copy [wait] 12-15.001",
    ]
    for launch, work in seen.launches():
        assert launch.end_us < work.end_us
    (wait,) = seen.of_kind("wait")
    (copy,) = seen.of_kind("copy")
    assert wait.end_us == copy.end_us == seen.returned_us


def test_without_item_the_function_has_returned_before_the_device_is_done():
    a = on_sim(1000, 1000)
    seen = timeline(lambda a: a @ a, a)
    assert seen.returned_us < seen.end_us()
    assert not seen.of_kind("wait")
    assert seen.caption() == "206 us in all: cpu busy 4 us, stream 0 busy 200 us; returned at 4 us"


def test_two_streams_run_side_by_side_and_an_event_orders_them():
    a = on_sim(1000, 1000)
    timeline(lambda a: a @ a, a)  # the memory for results is there from now on

    def program(a):
        other = sim.Stream()
        b = a @ a
        done = sim.Event()
        done.record()
        with sim.stream(other):
            other.wait_event(done)
            b + a
        a @ a
        sim.synchronize()

    seen = timeline(program, a)
    assert seen.row_names() == ("cpu", "stream 0", "stream 1")
    (first, second) = [e for e in seen.of_row("stream 0") if e.kind == "kernel"]
    (waited,) = [e for e in seen.of_row("stream 1") if e.kind == "wait"]
    (added,) = [e for e in seen.of_row("stream 1") if e.kind == "kernel"]
    assert waited.end_us == first.end_us <= added.start_us
    assert added.start_us < second.end_us
    assert seen.events[-1].name == "synchronize" and seen.events[-1].end_us == seen.end_us()


def test_the_zero_is_the_call_whenever_it_is_made():
    a = on_sim(4)
    sim.host_work(1000)
    late = timeline(lambda a: a + a, a)
    assert late.events[0].start_us == 0
    assert lines(late) == lines(timeline(lambda a: a + a, a))


def test_a_reset_inside_the_program_begins_a_new_timeline():
    a = on_sim(4)
    sim.host_work(50)

    def program(a):
        sim.reset()
        a + a

    assert timeline(program, a).events[0].start_us == 0


def test_sim_exports_its_trace_as_every_timeline_does(tmp_path):
    on_sim(4) + on_sim(4)
    line = sim.timeline()
    assert sim.chrome_trace() == line.to_chrome_trace()
    path = line.save_trace(tmp_path / "trace.json")
    assert json.loads(path.read_text(encoding="utf-8")) == line.to_chrome_trace()


def test_mini_needs_no_torch():
    program = (
        "import sys, glassbox.mini as mini\n"
        "from glassbox.xray import timeline\n"
        "a = mini.ones(4, device='sim')\n"
        "print(len(timeline(lambda a: a + a, a).events), len(timeline(lambda: a + a).events), 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["2", "2", "False"]


# PyTorch on the CPU


def step(a, b):
    return torch.nn.functional.linear(a, b).relu().sum()


def test_operators_are_nested_as_they_called_each_other():
    a, b = torch.rand(2, 3), torch.rand(4, 3, requires_grad=True)
    seen = timeline(lambda a, b: step(a, b).backward(), a, b)
    assert seen.row_names() == ("cpu",)
    said = [(e.depth, e.name, e.kind) for e in seen.events]
    for expected in [(0, "linear", "op"), (0, "relu", "op"), (0, "sum", "op"), (1, "ReluBackward0", "node")]:
        assert expected in said
    assert (0, "autograd::engine::evaluate_function: ReluBackward0", "node") in said
    assert seen.events[0].start_us > 0 and seen.end_us() <= seen.returned_us
    for nr, event in enumerate(seen.events):
        around = [e for e in seen.events[:nr] if e.start_us <= event.start_us and event.end_us <= e.end_us]
        assert len(around) >= event.depth
        assert event.start_us <= event.end_us


def test_names_and_depths_are_those_of_the_profiler():
    a, b = torch.rand(2, 3), torch.rand(4, 3, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as peer:
        step(a, b).backward()

    def depth(event):
        return 0 if event.cpu_parent is None else 1 + depth(event.cpu_parent)

    expected = Counter((e.name.removeprefix("aten::"), depth(e)) for e in peer.events())
    b.grad = None
    seen = timeline(lambda a, b: step(a, b).backward(), a, b)
    assert Counter((e.name.partition(".")[0], e.depth) for e in seen.events) == expected
    assert "fill_.Scalar" in {e.name for e in seen.events}


def test_torchs_own_trace_has_as_many_bars(tmp_path):
    a = torch.rand(8, 8)
    seen = timeline(lambda a: (a @ a).softmax(-1), a)
    with profile(activities=[ProfilerActivity.CPU]) as peer:
        (a @ a).softmax(-1)
    peer.export_chrome_trace(str(tmp_path / "torch.json"))
    theirs = json.loads((tmp_path / "torch.json").read_text(encoding="utf-8"))["traceEvents"]
    ours = seen.to_chrome_trace()["traceEvents"]
    assert sum(e["ph"] == "X" for e in ours) == sum(e.get("cat") == "cpu_op" for e in theirs) > 3


def test_ranges_of_the_program_are_shown_around_what_they_hold():
    def program(a):
        with torch.profiler.record_function("my range"):
            return a + a

    assert [(e.depth, e.name, e.kind) for e in timeline(program, torch.rand(3)).events] == [
        (0, "my range", "range"), (1, "add.Tensor", "op")
    ]  # fmt: skip


def test_the_function_is_called_once_and_warmup_times_more_before():
    calls = []
    timeline(lambda a, *, k: calls.append((a + 1, k)), torch.rand(2), k=3)
    assert len(calls) == 1 and calls[0][1] == 3
    timeline(lambda a: calls.append(a + 1), torch.rand(2), warmup=2)
    assert len(calls) == 4


def test_results_gradients_and_random_numbers_are_the_same():
    def run(look):
        torch.manual_seed(0)
        w = torch.rand(5, 5, requires_grad=True)
        kept = []

        def program(w):
            loss = torch.nn.functional.dropout((w @ w).relu()).sum()
            loss.backward()
            kept.append(loss.detach())

        timeline(program, w) if look else program(w)
        return kept[0], w.grad, torch.rand(3)

    assert all(torch.equal(x, y) for x, y in zip(run(True), run(False), strict=True))


def test_an_error_passes_and_nothing_is_left_switched_on(monkeypatch):
    def failing(a):
        a + a
        raise ZeroDivisionError("in the middle")

    monkeypatch.delenv("KINETO_LOG_LEVEL", raising=False)
    before = dict(os.environ)
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        timeline(failing, torch.rand(3))
    assert not profiler_is_on() and dict(os.environ) == before
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        timeline(failing, on_sim(3))
    assert lines(timeline(lambda a: a + a, torch.rand(3)))[0].startswith("cpu | add.Tensor")


def test_a_running_profiler_is_left_alone():
    with (
        profile(activities=[ProfilerActivity.CPU]) as outer,
        pytest.raises(RuntimeError, match="a torch.profiler session is running, and PyTorch has only one"),
    ):
        torch.rand(3).sin()
        timeline(torch.cos, torch.rand(3))
    assert {"aten::sin"} <= {e.name for e in outer.events()}
    assert "aten::cos" not in {e.name for e in outer.events()}


def test_what_the_reader_set_for_kinetos_notes_stays(monkeypatch):
    seen = []
    monkeypatch.setenv("KINETO_LOG_LEVEL", "2")
    timeline(lambda a: seen.append(os.environ["KINETO_LOG_LEVEL"]), torch.rand(1))
    assert seen == ["2"] and os.environ["KINETO_LOG_LEVEL"] == "2"


def test_a_function_without_tensors_is_watched_in_both_frameworks():
    a, b = torch.rand(3), on_sim(3)
    assert {e.name for e in timeline(lambda: a + a).events} == {"add.Tensor"}
    assert [e.kind for e in timeline(lambda: b + b).events] == ["launch", "kernel"]
    model = torch.nn.Linear(2, 2)
    assert "linear" in {e.name for e in timeline(model, torch.rand(1, 2)).events}


def test_a_torch_that_says_nothing_of_its_profiler_is_one_clear_sentence(monkeypatch):
    monkeypatch.delattr(torch._C._autograd, "_profiler_enabled")
    with pytest.raises(TorchInternalsError, match=r"has no torch\._C\._autograd\._profiler_enabled"):
        timeline(torch.cos, torch.rand(3))


# Stored events of a CUDA run


def event(
    name, start, end, *, id, thread=1, cuda=False, stream=None, type="cpu_op", linked=0, device=0, user=False, scope=0,
    overload="", metadata=None,
):  # fmt: skip
    return SimpleNamespace(
        name=name, id=id, thread=thread, time_range=SimpleNamespace(start=start, end=end), scope=scope,
        device_type=DeviceType.CUDA if cuda else DeviceType.CPU, device_index=device,
        device_resource_id=stream if cuda else 1000 + thread, activity_type=type, linked_correlation_id=linked,
        is_user_annotation=user, overload_name=overload, metadata=metadata,
    )  # fmt: skip


ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
MARK = "glassbox.xray.timeline"
CUDA_RUN = [
    event("aten::ones", 90, 95, id=1, overload="names"),
    event(MARK, 100, 200, id=2, type="user_annotation", user=True),
    event("aten::add", 110, 130, id=3, overload="Tensor"),
    event("cudaMalloc", 112, 118, id=900, type="cuda_runtime", linked=3),
    event("cudaLaunchKernel", 120, 126, id=901, type="cuda_runtime", linked=3),
    event("aten::item", 140, 190, id=4),
    event("aten::_local_scalar_dense", 142, 188, id=5),
    event("cudaMemcpyAsync", 144, 150, id=902, type="cuda_runtime", linked=5),
    event("cudaStreamSynchronize", 152, 186, id=903, type="cuda_runtime", linked=5),
    event("autograd::engine::evaluate_function: MulBackward0", 160, 180, id=6, thread=2),
    event("MulBackward0", 162, 178, id=7, thread=2, scope=1),
    event("cudaLaunchKernel", 164, 170, id=904, type="cuda_runtime", linked=7, thread=2),
    event("cudaDeviceSynchronize", 202, 240, id=905, type="cuda_runtime", thread=1001),
    event(ADD, 128, 170, id=901, cuda=True, stream=7, type="kernel", linked=3),
    event("Memcpy DtoH (Device -> Pageable)", 172, 184, id=902, cuda=True, stream=7, type="gpu_memcpy", linked=5,
          metadata={"bytes": 4}),
    event("mul_kernel", 172, 230, id=904, cuda=True, stream=20, type="kernel", linked=7),
    event("late", 172, 174, id=904, cuda=True, stream=20, device=1, type="kernel", linked=7),
    event("earlier work", 90, 99, id=700, cuda=True, stream=7, type="kernel"),
    event(MARK, 128, 230, id=2, cuda=True, stream=7, type="gpu_user_annotation", user=True),
    event("my range", 128, 230, id=3, cuda=True, stream=7, type="gpu_user_annotation", user=True),
    event("CUPTI Overhead", 101, 105, id=0, type="overhead", thread=9),
]  # fmt: skip


def test_a_cuda_run_has_rows_for_threads_their_runtime_calls_and_streams():
    seen = timeline_of(CUDA_RUN)
    assert lines(seen) == [
        "cpu | add.Tensor [op] 10-30",
        "runtime | cudaMalloc [malloc] 12-18",
        "runtime | cudaLaunchKernel [launch] 20-26",
        f"stream 7 | {ADD} [kernel] 28-70",
        "cpu | item [op] 40-90",
        "cpu | . _local_scalar_dense [op] 42-88",
        "runtime | cudaMemcpyAsync [launch] 44-50",
        "runtime | cudaStreamSynchronize [wait] 52-86",
        "cpu 1 | autograd::engine::evaluate_function: MulBackward0 [node] 60-80",
        "cpu 1 | . MulBackward0 [node] 62-78",
        "runtime 1 | cudaLaunchKernel [launch] 64-70",
        "stream 20 | mul_kernel [kernel] 72-130",
        "stream 7 | Memcpy DtoH (Device -> Pageable) [copy] 72-84",
        "cuda:1 stream 20 | late [kernel] 72-74",
    ]
    assert seen.row_names() == (
        "cpu", "runtime", "cpu 1", "runtime 1", "stream 7", "stream 20", "cuda:1 stream 20"
    )  # fmt: skip
    assert (seen.device, seen.returned_us, seen.end_us()) == ("cuda", 100, 130)


def test_a_launch_and_what_it_started_carry_one_number():
    seen = timeline_of(CUDA_RUN)
    assert [(a.row, a.name, b.row, b.start_us) for a, b in seen.launches()] == [
        ("runtime", "cudaLaunchKernel", "stream 7", 28),
        ("runtime", "cudaMemcpyAsync", "stream 7", 72),
        ("runtime 1", "cudaLaunchKernel", "stream 20", 72),
    ]
    assert next(e for e in seen.events if e.kind == "copy").bytes == 4
    assert {e.kind for e in seen.events if e.correlation} == {"launch", "kernel", "copy"}


def test_waiting_for_the_device_is_no_work_of_the_thread():
    seen = timeline_of(CUDA_RUN)
    # add 20 and item 50, of which it waits 34
    assert seen.busy_us("cpu") == 20 + 50 - 34
    assert seen.busy_us("runtime") == 6 + 6 + 6
    assert seen.busy_us("stream 7") == 42 + 12


def test_the_order_in_which_events_come_does_not_matter():
    assert timeline_of(reversed(CUDA_RUN)).row_names() == timeline_of(CUDA_RUN).row_names()
    assert sorted(lines(timeline_of(reversed(CUDA_RUN)))) == sorted(lines(timeline_of(CUDA_RUN)))


def test_a_torch_that_names_no_kinds_of_events_is_read_by_their_names():
    bare = [SimpleNamespace(**vars(e)) for e in CUDA_RUN if e.activity_type != "overhead"]
    for each in bare:
        del each.activity_type
    assert lines(timeline_of(bare)) == lines(timeline_of(CUDA_RUN))


def test_without_the_mark_all_events_count_from_the_first():
    seen = timeline_of([e for e in CUDA_RUN if e.name != MARK])
    assert seen.returned_us is None and seen.events[0].start_us == 0
    assert {"ones.names", "cudaDeviceSynchronize", "earlier work"} <= {e.name for e in seen.events}
    # The synchronize belongs to no operator and carries the system's number of thread 1.
    assert next(e for e in seen.events if e.name == "cudaDeviceSynchronize").row == "runtime"


def test_nothing_at_all_is_a_timeline_too():
    assert timeline_of([]) == Timeline((), 0, None, "cuda")
    empty = timeline_of([event(MARK, 5, 9, id=1, user=True)], "")
    assert (empty.events, empty.returned_us) == ((), 4)
    assert "<svg" in empty._repr_html_()


def test_a_graph_launch_has_one_arrow_to_the_first_of_its_kernels():
    events = [
        event("cudaGraphLaunch", 0, 5, id=8, type="cuda_runtime"),
        event("second", 20, 30, id=8, cuda=True, stream=7, type="kernel"),
        event("first", 10, 20, id=8, cuda=True, stream=7, type="kernel"),
    ]
    assert [(a.name, b.name) for a, b in timeline_of(events).launches()] == [("cudaGraphLaunch", "first")]


def test_the_trace_of_a_cuda_run():
    events = json.loads(json.dumps(timeline_of(CUDA_RUN).to_chrome_trace()))["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {0: "host", 1: "cuda", 2: "cuda:1"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert threads == {
        (0, 0): "cpu", (0, 1): "runtime", (0, 2): "cpu 1", (0, 3): "runtime 1",
        (1, 7): "stream 7", (1, 20): "stream 20", (2, 20): "cuda:1 stream 20",
    }  # fmt: skip
    arrows = [(e["ph"], e["id"], e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] in "sf"]
    assert sorted(arrows) == [
        ("f", 901, 1, 7, 28), ("f", 902, 1, 7, 72), ("f", 904, 1, 20, 72),
        ("s", 901, 0, 1, 20), ("s", 902, 0, 1, 44), ("s", 904, 0, 3, 64),
    ]  # fmt: skip
    copy = next(e for e in events if e["ph"] == "X" and e["cat"] == "copy")
    assert copy["args"] == {"bytes": 4, "flops": 0, "correlation": 902}


def test_a_nested_timeline_says_its_depths_in_rows_and_a_flat_one_has_no_such_column():
    assert timeline_of(CUDA_RUN).rows()[5]["depth"] == 1
    assert "depth" not in timeline(lambda a: a + a, on_sim(2)).rows()[0]
    flat = Timeline((TimelineEvent("cpu", "x", 0.0, 1_234_567.5, "work"),))
    assert flat.caption() == "1.23 s in all: cpu busy 1.23 s"
