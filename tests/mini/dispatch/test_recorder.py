"""Facts about the recorder: calls as a mode sees them, hops as PyTorch's dispatcher makes them, nothing left behind."""

import itertools
import threading
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from glassbox import mini, records
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.records import Hop
from glassbox.xray._kernel_hooks import KernelHooks

from .programs import MODES, logging_mode
from .test_python_mode import PROGRAMS

OPS = (
    "sin",
    "add.Tensor",
    "mm",
    "matmul",
    "t",
    "mul_.Tensor",
    "to.dtype",
    "_to_copy",
    "sum",
    "randn",
    "empty.memory_format",
    "normal_",
)
# As records write them.
NAMES = {name if "." in name else f"{name}.default" for name in OPS}


def passing_mode(t: Any) -> Any:
    class Passing(MODES[t]):  # type: ignore[misc]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return func(*args, **(kwargs or {}))

    return Passing()


BLOCKS: dict[str, Any] = {
    "nothing": lambda t: (),
    "no_grad": lambda t: (t.no_grad(),),
    "inference_mode": lambda t: (t.inference_mode(),),
    "autocast": lambda t: (t.autocast("cpu"),),
    "autocast in inference_mode": lambda t: (t.inference_mode(), t.autocast("cpu")),
    "a mode": lambda t: (passing_mode(t),),
    "two modes": lambda t: (passing_mode(t), passing_mode(t)),
    "a mode in inference_mode": lambda t: (t.inference_mode(), passing_mode(t)),
    "a mode in autocast": lambda t: (t.autocast("cpu"), passing_mode(t)),
}
CALLS: dict[str, Any] = {
    "add": lambda t, x: x + x,
    "matmul": lambda t, x: x @ x,
    "transposed": lambda t, x: x.t(),
    "in place": lambda t, x: x.detach().clone().mul_(x.detach()),
    "sum": lambda t, x: x.sum(),
    "randn": lambda t, x: t.randn(2),
    "to": lambda t, x: x.to(t.float64),
    "mapped": lambda t, x: t.vmap(t.sin)(x),
    "mapped twice": lambda t, x: t.vmap(t.vmap(t.sin))(x),
    "mapped random": lambda t, x: t.vmap(lambda x: t.randn(2), randomness="different")(x),
    "mapped where nothing is": lambda t, x: t.vmap(lambda y: (x + x).sum() + y)(x),
    "functionalized": lambda t, x: (torch.func.functionalize if t is torch else mini.functionalize)(t.sin)(x),
}


def ran(t: Any, call: str, block: str, grad: bool) -> None:
    with ExitStack() as stack:
        x = t.ones(2, 2, requires_grad=grad)
        for manager in BLOCKS[block](t):
            stack.enter_context(manager)
        CALLS[call](t, x)


@pytest.fixture(scope="module")
def real() -> dict[tuple[str, str, bool], tuple[Hop, ...]]:
    """The kernels that PyTorch runs, all programs in one time of hooking them."""
    found = {}
    with KernelHooks() as hooks:
        for call, block, grad in itertools.product(CALLS, BLOCKS, (False, True)):
            ran(torch, call, block, grad)
            found[call, block, grad] = hooks.take()
    return found


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("call", CALLS)
def test_hops_and_their_key_sets_are_torchs(call: str, block: str, grad: bool, real: dict[Any, Any]) -> None:
    with mini.record() as seen:
        ran(mini, call, block, grad)
    found, expected = (
        [(hop.op, hop.key, hop.kind, hop.key_set) for hop in hops if hop.op.removeprefix("aten.") in NAMES]
        for hops in (seen.hops, real[call, block, grad])
    )
    # That a backend's kernel stands in the row of an alias there and in its own here is no difference in
    # what runs.
    alike = {"default backend kernel": "kernel"}
    assert [(n, key, alike.get(kind, kind), keys) for n, key, kind, keys in found] == [
        (n, key, alike.get(kind, kind), keys) for n, key, kind, keys in expected
    ]
    assert found


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_are_what_a_mode_sees(name: str) -> None:
    log: list[str] = []
    with logging_mode(mini, log):
        PROGRAMS[name](mini)
    with mini.record() as seen:
        PROGRAMS[name](mini)
    assert [line.partition(" = ")[2].partition("(")[0] for line in log] == seen.ops.names()


def test_the_text_of_a_call() -> None:
    a, b = mini.ones(4, 8), mini.ones(8)
    with mini.record() as seen:
        c = mini.add(a, b, alpha=2)
        c.max(1)
        c.relu_()
        mini.cat([a, c])
        c.sum().item()
        c.split(2)
        c.to(mini.float64)
    assert seen.ops.text().splitlines() == [
        "$2: f32[4, 8] = aten.add.Tensor($0, $1, alpha=2)",
        "($3: f32[4], $4: i64[4]) = aten.max.dim($2, 1)",
        "$2: f32[4, 8] = aten.relu_.default($2)",
        "$5: f32[8, 8] = aten.cat.default([$0, $2])",
        "$6: f32[] = aten.sum.default($2)",
        "96.0 = aten._local_scalar_dense.default($6)",
        "($7: f32[2, 8], $8: f32[2, 8]) = aten.split.Tensor($2, 2)",
        "$9: f64[4, 8] = aten._to_copy.default($2, dtype=float64)",
    ]


def test_what_a_call_did_to_memory() -> None:
    x = mini.ones(2, 3)
    with mini.record() as seen:
        x.t()
        x.add_(1)
        x * 2
        mini.add(x, x, out=mini.empty(2, 3))
        x.detach()
    effects = [(call.name, call.effect) for call in seen.ops if call.name != "aten.empty.memory_format"]
    assert effects == [
        ("aten.t.default", "view"),
        ("aten.add_.Tensor", "write"),
        ("aten.mul.Tensor", "fresh"),
        ("aten.add.out", "write"),
        ("aten.detach.default", "view"),
    ]
    t = seen.ops[0]
    assert (t.aliases, t.mutates, t.outputs[0].stride, t.outputs[0].shape, t.outputs[0].nbytes) == (
        (0,),
        (),
        (1, 3),
        (3, 2),
        24,
    )
    assert t.inputs[0].storage == t.outputs[0].storage
    assert seen.ops[1].mutates == (0,)


def test_forward_and_backward_are_told_apart() -> None:
    x = mini.ones(2, requires_grad=True)
    with mini.record() as seen:
        y = (x * x).sum()
        y.backward()
    phases = [(call.name, call.phase) for call in seen.ops]
    assert phases[:2] == [("aten.mul.Tensor", "forward"), ("aten.sum.default", "forward")]
    assert ("aten.expand.default", "backward") in phases
    assert [phase for _, phase in phases] == sorted((phase for _, phase in phases), reverse=True)


def test_depth_tells_a_kernels_own_calls() -> None:
    with mini.record() as seen:
        mini.zeros(2)
    assert [call.name for call in seen.ops] == ["aten.zeros.default"]
    inner = [(call.name, call.depth) for call in seen.all_ops]
    assert inner[0] == ("aten.zeros.default", 0) and ("aten.empty.memory_format", 1) in inner


def test_saved_tensors_by_node_and_name() -> None:
    a, b = mini.ones(2, 3, requires_grad=True), mini.ones(2, 3)
    with mini.record() as seen:
        c = a * b
        d = c.exp() + 1
        (d @ d.t()).sum()
    assert sorted((node, saved.name, saved.shape, saved.nbytes) for node, saved in seen.saved) == [
        ("ExpBackward0", "result", (2, 3), 24),
        ("MmBackward0", "mat2", (3, 2), 24),
        ("MmBackward0", "self", (2, 3), 24),
        ("MulBackward0", "other", (2, 3), 24),
    ]
    # d and its transpose share their memory.
    assert seen.saved.nbytes() == 72
    with mini.record() as again, mini.no_grad():
        a * b
    assert len(again.saved) == 0


def test_saved_tensors_are_those_of_the_graph() -> None:
    def nodes(node: Any, seen: set[Any]) -> set[Any]:
        if node is not None and node not in seen:
            seen.add(node)
            for following, _ in node.next_functions:
                nodes(following, seen)
        return seen

    x = mini.ones(2, 3, requires_grad=True)
    with mini.record() as seen:
        y = (x.tanh() * x).softmax(1)
        y[0].mul_(2)
        z = (y / 3).sum()
    names = {node.name() for node in nodes(z.grad_fn, set())}
    assert {node for node, _ in seen.saved} <= names | {"MulBackward0"}
    assert {("TanhBackward0", "result"), ("SoftmaxBackward0", "result")} <= {
        (node, saved.name) for node, saved in seen.saved
    }


def test_launches_of_the_simulated_device() -> None:
    x = mini.ones(4, 4).to("sim")
    with mini.record() as seen:
        (x @ x).relu()
    kernels = [event.name for event in seen.launches.of_kind("kernel")]
    assert kernels == ["mm", "relu"]
    assert all(event.row == "cpu" for event in seen.launches.of_kind("launch"))
    with mini.record() as quiet:
        mini.ones(2) + 1
    assert len(quiet.launches.events) == 0


def test_an_exception_is_written_down_and_leaves_nothing_on() -> None:
    with pytest.raises(RuntimeError), mini.record() as seen:
        mini.ones(2) + mini.ones(3)
    assert [str(call) for call in seen.ops][-1] == "raised = aten.add.Tensor($0, $1)"
    assert dispatcher.watchers == []
    count = len(seen.hops)
    mini.ones(2) + 1
    assert len(seen.hops) == count


def test_recordings_nest() -> None:
    x = mini.ones(2)
    with mini.record() as outer:
        x + x
        with mini.record() as inner:
            x * x
        x - x
    assert outer.ops.names() == ["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]
    assert inner.ops.names() == ["aten.mul.Tensor"]
    assert dispatcher.watchers == []


def test_only_the_thread_that_records_is_recorded() -> None:
    x = mini.ones(2)
    with mini.record() as seen:
        other = threading.Thread(target=lambda: x * x)
        other.start()
        other.join()
        x + x
    assert seen.ops.names() == ["aten.add.Tensor"]


def test_two_threads_record_apart() -> None:
    ready = threading.Barrier(2)
    found: dict[str, list[str]] = {}

    def work(name: str, operator: Any) -> None:
        x = mini.ones(2)
        with mini.record() as seen:
            ready.wait()
            for _ in range(50):
                operator(x)
            ready.wait()
        found[name] = seen.ops.names()

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", mini.sin), ("b", mini.exp))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": ["aten.sin.default"] * 50, "b": ["aten.exp.default"] * 50}
    assert dispatcher.watchers == []


def test_a_recording_keeps_no_tensor_alive() -> None:
    import gc
    import weakref

    with mini.record() as seen:
        x = mini.ones(1000)
        y = x + 1
    refs = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
    assert len(seen.ops) == 2


def test_results_and_gradients_are_the_same_while_recording() -> None:
    def compute() -> list[Any]:
        mini.manual_seed(0)
        x, w = mini.randn(4, 3), mini.randn(3, 3).requires_grad_()
        loss = (x @ w).tanh().softmax(1).pow(2).sum()
        loss.backward()
        return [loss.item(), w.grad.tolist()]

    plain = compute()
    with mini.record():
        assert compute() == plain


def test_it_reads_well() -> None:
    x = mini.ones(2, requires_grad=True)
    with mini.record() as seen:
        (x * x).sum()
    assert str(seen).splitlines() == [
        "2 operator calls; 4 hops; 2 tensors saved, 8 B",
        "$1: f32[2] = aten.mul.Tensor($0, $0)",
        "$2: f32[] = aten.sum.default($1)",
    ]
    assert str(seen.hops).splitlines() == [
        "aten.mul.Tensor @ AutogradCPU [autograd kernel]",
        "  aten.mul.Tensor @ CPU [kernel]",
        "aten.sum.default @ AutogradCPU [autograd kernel]",
        "  aten.sum.default @ CPU [kernel]",
    ]
    assert seen.to_markdown().splitlines()[0] == "| # | op | call | effect | phase | stride | bytes |"
    assert "<table>" in seen._repr_html_() and "aten.mul.Tensor" in seen._repr_html_()
    assert "<table>" in seen.hops._repr_html_() and "AutogradCPU" in seen.hops.to_markdown()
    assert seen.ops.counts() == {"aten.mul.Tensor": 1, "aten.sum.default": 1}
    hop = seen.hops[0]
    assert hop.keys == ("CPU", "AutogradCPU") and hop.key_set == mini.DispatchKeySet.of("CPU", "AutogradCPU").raw_repr()
    assert "derivatives.yaml: mul.Tensor" in hop.place
    frozen = seen.recording()
    assert isinstance(frozen, records.Recording) and frozen.rows() == seen.rows()
    with pytest.raises(AttributeError):
        frozen.ops = None  # type: ignore[misc]


def test_an_empty_recording_reads_well_too() -> None:
    with mini.record() as seen:
        pass
    assert str(seen) == "0 operator calls; 0 hops; 0 tensors saved, 0 B"
    assert seen.to_markdown() == "" and "nothing" not in str(seen.hops)
