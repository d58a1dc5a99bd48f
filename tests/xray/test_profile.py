"""Facts about the operator portrait: its counts, FLOPs, bytes, and that nothing is left behind."""

import copy
import random
import subprocess
import sys
from collections import Counter, OrderedDict, UserDict, UserList, namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from glassbox.records import Portrait, PortraitPart, RunTime
from glassbox.records.portrait import human_flops, human_us
from glassbox.xray import _portrait_of_torch as module_under_test
from glassbox.xray import profile, saved_memory

from .models import MODELS

MODES = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
PARTS = """
convolution.default 20
empty.memory_format 20
native_batch_norm.default 20
relu_.default 17
add_.Tensor 8
max_pool2d_with_indices.default 1
mean.dim 1
view.default 1
t.default 1
addmm.default 1
"""
RESNET18 = {
    "no_grad": PARTS,
    "grad": PARTS.replace("add_.Tensor", "detach.default 17\nadd_.Tensor"),
    "inference_mode": """
conv2d.default 20
batch_norm.default 20
relu_.default 17
add_.Tensor 8
max_pool2d.default 1
adaptive_avg_pool2d.default 1
flatten.using_ints 1
linear.default 1
""",
}


def count(model, *args, **kwargs) -> Portrait:
    return profile(model, *args, repeats=0, **kwargs)


def short(counts: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix("aten."): n for name, n in counts.items()}


@pytest.fixture(scope="module")
def resnet18():
    return pytest.importorskip("torchvision.models", reason="ResNet-18 is torchvision's").resnet18()


def small(name):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    return make(), torch.rand(shape)


@pytest.mark.parametrize("mode", MODES)
def test_resnet18_in_three_modes(resnet18, mode):
    with MODES[mode]():
        portrait = count(resnet18.eval(), torch.rand(1, 3, 224, 224))
    assert "".join(f"\n{op} {n}" for op, n in short(portrait.counts()).items()) + "\n" == RESNET18[mode]
    assert portrait.title() == f"ResNet, eval, {mode}"
    assert portrait.flops() == 3_628_146_688
    assert ("seen whole" in portrait.seen) is (mode == "inference_mode")


def test_the_document_to_take_home(resnet18):
    with torch.no_grad():
        document = count(resnet18.eval(), torch.rand(1, 3, 64, 64)).to_markdown()
    document = document.replace(torch.__version__, "VERSION")
    assert document.replace(f"({torch.get_num_threads()} thread", "(N thread").replace("threads", "thread") == (
        """# Operator portrait: ResNet, eval, no_grad

Input f32[1, 3, 64, 64]; cpu (N thread); torch VERSION.

Taken under no_grad, which leaves the Autograd keys in place: they take composite operators apart, so their parts are \
seen (convolution, not conv2d).

| op | calls | FLOP | bytes | shapes |
| --- | --- | --- | --- | --- |
| convolution.default | 20 | 296 M | 46.2 MB | f32[1, 64, 16, 16], f32[64, 64, 3, 3] x4; 10 more |
| empty.memory_format | 20 |  |  | no tensor x20 |
| native_batch_norm.default | 20 |  | 1.7 MB | f32[1, 128, 8, 8], f32[128], ... x5; 4 more |
| relu_.default | 17 |  | 1.51 MB | f32[1, 64, 16, 16] x4; 4 more |
| add_.Tensor | 8 |  | 737 kB | f32[1, 64, 16, 16], f32[1, 64, 16, 16] x2; 3 more |
| max_pool2d_with_indices.default | 1 |  | 459 kB | f32[1, 64, 32, 32] |
| mean.dim | 1 |  | 10.2 kB | f32[1, 512, 2, 2] |
| view.default | 1 |  |  | f32[1, 512, 1, 1] |
| t.default | 1 |  |  | f32[1000, 512] |
| addmm.default | 1 | 1.02 M | 2.06 MB | f32[1000], f32[1, 512], ... |

90 calls of 10 operators, 297 MFLOP, 52.7 MB read and written.
"""
    )


def test_forward_and_backward_of_a_small_network():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    portrait = count(model, torch.rand(2, 4), loss=torch.sum)
    assert short(portrait.counts("forward")) == {
        "t.default": 1,
        "addmm.default": 1,
        "relu.default": 1,
        "detach.default": 1,
        "sum.default": 1,
    }
    assert short(portrait.counts("backward")) == {
        "detach.default": 3,
        "t.default": 3,
        "ones_like.default": 1,
        "expand.default": 1,
        "threshold_backward.default": 1,
        "mm.default": 1,
        "sum.dim_IntList": 1,
        "view.default": 1,
    }
    places = {part.op.removeprefix("aten."): part.module for part in portrait.parts if part.phase == "backward"}
    assert places["threshold_backward.default"] == "1"
    assert places["mm.default"] == "0"
    assert places["expand.default"] == places["ones_like.default"] == "(loss)"
    lines = {row["module"]: (row["forward"], row["backward"]) for row in portrait.by_module().rows()}
    assert lines == {"0": (2, 8), "1": (2, 2), "(loss)": (1, 2)}


def test_gradients_land_in_the_module_that_has_the_parameter():
    portrait = count(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.rand(3, 2))
    assert {p.module for p in portrait.parts if p.op == "aten.detach.default" and p.phase == "backward"} == {"0", "1"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_flop_counter(name, mode):
    model, x = small(name)
    model.train(mode == "grad")
    with MODES[mode]():
        portrait = count(model, x)
        with FlopCounterMode(display=False) as peer:
            out = copy.deepcopy(model)(x)
            out = out[0] if isinstance(out, tuple) else out
            if mode == "grad":
                out.sum().backward()
    assert portrait.flops() == peer.get_total_flops()
    if name not in ("LSTM", "TransformerEncoder"):
        assert portrait.flops() > 0


def test_work_without_a_formula_is_named():
    with torch.no_grad():
        notes = count(nn.LSTM(4, 5), torch.rand(3, 2, 4)).notes
    assert [note for note in notes if note.startswith("PyTorch has no FLOP formula for ")]
    assert count(nn.Linear(2, 2), torch.rand(1, 2)).notes == ()


def test_a_users_formula_counts():
    @torch.library.custom_op("glassbox_tests::three", mutates_args=())
    def three(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    packet = torch.ops.glassbox_tests.three
    torch.utils.flop_counter.register_flop_formula(packet)(lambda shape, *, out_shape=None: 7 * shape.numel())
    try:
        assert count(three, torch.rand(5)).flops() == 35
    finally:
        del flop_registry[packet]


# torch.profiler sees composites above and kernels below what a mode sees. The mapping: an event that is called as an
# operator of the portrait is that call, and what lies inside of it is none; any other event is looked into. Two are
# called otherwise where no mode looks on, and detach there is only in part an operator call.
SAME = {"aten::add_": "aten::add", "aten::_reshape_alias": "aten::view"}


def calls_in_profiler(run, expected: list[str]) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        run()
    left, found = Counter(expected), []

    def walk(event) -> None:
        name = SAME.get(event.name, event.name)
        if left[name] > 0:
            left[name] -= 1
            found.append(name)
        else:
            for child in sorted(event.cpu_children, key=lambda each: each.time_range.start):
                walk(child)

    for event in sorted(seen.events(), key=lambda each: each.time_range.start):
        if event.cpu_parent is None:
            walk(event)
    return found


@pytest.mark.parametrize("name", ["MLP", "convnet", "TransformerEncoder"])
def test_counts_are_those_of_the_profiler(name):
    model, x = small(name)
    portrait = count(model, x, loss=lambda out: out.sum())
    names = {op: f"aten::{op.split('.')[1]}" for op in portrait.counts() if op != "aten.detach.default"}
    expected = [SAME.get(name, name) for op, name in names.items() for _ in range(portrait.counts()[op])]

    def run() -> None:
        model(x).sum().backward()

    assert Counter(calls_in_profiler(run, expected)) == Counter(expected)
    # The mapping tells one call too many.
    assert Counter(calls_in_profiler(run, [*expected, "aten::mm"] * 2)) != Counter([*expected, "aten::mm"] * 2)


def test_bytes_read_and_written():
    x, y = torch.rand(10, 10), torch.rand(10, 10)
    cases = {
        "fresh": (lambda: x + y, 1200),
        "the same twice": (lambda: x + x, 800),
        "in place": (lambda: x.add_(y), 1200),
        "out": (lambda: torch.add(x, y, out=torch.empty(10, 10)), 1200),
        "overwritten": (lambda: x.copy_(y), 800),
        "a view": (lambda: x.t(), 0),
        "an allocation": (lambda: torch.empty(10, 10), 0),
        "like": (lambda: torch.zeros_like(x), 400),
        "expanded": (lambda: x.sum(0).expand(10, 10) * 1, 400 + 40 + 40 + 400),
        "rows of a table": (lambda: torch.embedding(torch.ones(1000, 10), torch.tensor([3, 4])), 40_000 + 16 + 80 + 80),
    }
    with torch.no_grad():
        assert {what: count(run).nbytes() for what, (run, _) in cases.items()} == {k: n for k, (_, n) in cases.items()}


def test_shapes_the_commonest_first():
    a, b = torch.rand(2, 3), torch.rand(5)
    with torch.no_grad():
        (row,) = count(lambda: (a.sin(), b.sin(), b.sin())).rows()
    assert row["shapes"] == (("f32[5]", 2), ("f32[2, 3]", 1))


def state_of(model, x):
    grads = {name: None if p.grad is None else p.grad for name, p in model.named_parameters()}
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    rng = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist())
    return grads, buffers, rng, x.clone(), [m.training for m in model.modules()], [id(b) for b in model.buffers()]


def same(first, second) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


class Noisy(nn.Module):
    """Changes all that a forward may change: buffers, also by a new one, its input, three kinds of random numbers."""

    def __init__(self, fails=False):
        super().__init__()
        self.norm, self.drop, self.fails = nn.BatchNorm1d(4), nn.Dropout(), fails
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.steps = self.steps + 1
        self.seen.add_(1)
        x.mul_(random.random() + np.random.rand())
        y = self.drop(self.norm(x))
        if self.fails:
            raise ArithmeticError("in the middle")
        return y


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("repeats", [0, 2])
def test_nothing_is_left_behind(repeats, fails):
    model, x = Noisy(fails), torch.rand(3, 4)
    model.norm.weight.grad = kept = torch.ones(4)
    before = state_of(model, x)
    hooks = hooks_now()
    try:
        profile(model, x, repeats=repeats)
    except ArithmeticError:
        assert fails
    assert same(before, state_of(model, x))
    assert model.norm.weight.grad is kept
    assert torch.equal(kept, torch.ones(4))
    assert hooks_now() == hooks
    assert torch.is_grad_enabled()


def hooks_now():
    where = nn.modules.module
    modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    return len(where._global_forward_pre_hooks), len(where._global_forward_hooks), list(modes)


def test_a_function_that_closes_over_a_model_is_put_back_too():
    model, x = Noisy(), torch.rand(3, 4)
    before = state_of(model, x)
    profile(lambda: model(x.clone()).sum(), repeats=1, backward=True)
    assert same(before, state_of(model, x))


def test_a_graph_of_the_caller_survives():
    w = torch.ones(3, requires_grad=True)
    h = w * 2
    model = nn.BatchNorm1d(3)
    out = model(torch.rand(4, 3)).sum() + h.sum()
    profile(lambda t: (t * t).sum(), h, backward=True, repeats=1)
    profile(model, torch.rand(4, 3), repeats=1)
    out.backward()
    assert torch.equal(w.grad, torch.full((3,), 2.0))


@dataclass(frozen=True)
class Held:
    hidden: torch.Tensor
    width: int = 3


class Named(UserDict):
    pass


CONTAINERS = {
    "list": lambda h: [h],
    "dict": lambda h: {"hidden": h},
    "OrderedDict": lambda h: OrderedDict(hidden=h),
    "UserDict": lambda h: Named(hidden=h),
    "UserList": lambda h: UserList([h]),
    "named tuple": namedtuple("Pair", "hidden width")(torch.ones(3), 3)._replace,
    "dataclass": Held,
    "nested": lambda h: OrderedDict(hidden=[Held(h)]),
}


def hidden_in(held):
    while not isinstance(held, torch.Tensor):
        held = held.hidden if hasattr(held, "hidden") else held[0 if isinstance(held, list | UserList) else "hidden"]
    return held


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_graph_of_the_caller_survives_in_any_container(kind):
    w = torch.ones(3, requires_grad=True)
    h = w * 2
    out = (h * h).sum()
    held = CONTAINERS[kind](hidden=h) if kind == "named tuple" else CONTAINERS[kind](h)
    seen = []

    def squared(held):
        seen.append(type(held))
        return (hidden_in(held) * hidden_in(held)).sum()

    profile(squared, held, backward=True, repeats=1)
    saved_memory(squared, held)
    assert set(seen) == {type(held)}
    assert hidden_in(held) is h
    out.backward()
    assert torch.equal(w.grad, torch.full((3,), 8.0))


def test_results_and_gradients_do_not_change():
    model, x = small("TransformerEncoder")
    outputs = []
    for look in (False, True):
        torch.manual_seed(3)
        if look:
            profile(model, x, repeats=1)
        model.zero_grad()
        out = model(x)
        out.square().sum().backward()
        outputs.append([out.detach(), *(p.grad.clone() for p in model.parameters())])
    assert all(map(torch.equal, *outputs))


def test_times_are_medians_over_the_runs_of_what_the_calls_take(monkeypatch):
    runs = iter([[1.0, 2.0, 4.0], [3.0, 2.0, 4.0], [2.0, 9.0, 5.0]])
    monkeypatch.setattr(module_under_test.OperatorTimer, "seconds", lambda self: next(runs))
    with torch.no_grad():
        portrait = profile(lambda x: x.sin().cos().sin(), torch.rand(3), repeats=3)
    assert {part.op: part.us for part in portrait.parts} == {"aten.sin.default": 7e6, "aten.cos.default": 2e6}
    assert [row["share"] for row in portrait.rows()] == [7 / 9, 2 / 9]
    assert portrait.repeats == 3


def test_times_of_real_runs():
    model, x = small("convnet")
    portrait = profile(model, x, repeats=2)
    assert portrait.repeats == 2
    assert all(part.us > 0 for part in portrait.parts)
    assert sum(row["share"] for row in portrait.rows()) == pytest.approx(1)
    assert portrait.forward.low <= portrait.forward.median <= portrait.forward.high
    assert portrait.backward.median > 0
    assert portrait.us() == pytest.approx(portrait.us("forward") + portrait.us("backward"))
    assert "time" in portrait.shown()[0]


def test_calls_that_differ_from_run_to_run_are_not_timed():
    turns = iter(range(100))
    portrait = profile(lambda x: x.sin() if next(turns) % 3 else x.cos(), torch.rand(2), repeats=2)
    assert portrait.us() is None
    assert portrait.notes == ("The calls differ from run to run, so nothing was timed.",)


def test_a_written_parameter_is_said():
    class Stepping(nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                self.weight.mul_(1)
            return super().forward(x)

    notes = count(Stepping(2, 2), torch.rand(1, 2)).notes
    assert notes == ("The runs wrote to parameter weight, which is not put back.",)


@pytest.mark.parametrize("make", ["inside", "outside", "meta"])
def test_fake_and_meta_tensors_are_counted_and_not_timed(make):
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = count(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), torch.rand(2, 1, 5, 5))
    with FakeTensorMode() if make != "meta" else torch.device("meta"):
        model, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), torch.rand(2, 1, 5, 5)
        if make == "inside":
            portrait = profile(model, x)
    if make != "inside":
        portrait = profile(model, x)
    assert (portrait.counts(), portrait.flops(), portrait.nbytes()) == (real.counts(), real.flops(), real.nbytes())
    assert portrait.us() is None
    assert portrait.notes == ("Fake and meta tensors have no data, so nothing was timed.",)


@pytest.mark.parametrize("how", ["module", "method", "function", "child"])
def test_compiled_is_shown_as_its_eager_run_and_says_so(how):
    model, x = nn.Sequential(nn.Linear(2, 2)), torch.rand(1, 2)
    expected = count(lambda t: model(t), x).counts()
    if how == "module":
        compiled = torch.compile(model)
    elif how == "method":
        compiled = copy.deepcopy(model)
        compiled.compile()
    elif how == "function":
        compiled = torch.compile(lambda t: model(t))
    else:
        compiled = nn.Sequential(torch.compile(nn.Linear(2, 2)))
    portrait = count(compiled, x, backward=False)
    assert portrait.counts() == expected
    assert "It is compiled" in portrait.notes[0]


def test_nothing_is_compiled_for_a_portrait():
    compiled = []

    def backend(graph, _example):
        compiled.append(graph)
        return graph.forward

    inner = torch.compile(nn.Linear(2, 2), backend=backend)
    profile(nn.Sequential(inner), torch.rand(1, 2), repeats=1)
    assert not compiled
    inner(torch.rand(1, 2))
    assert compiled


def test_autocast_and_its_casts():
    model, x = nn.Linear(2, 2), torch.rand(1, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for repeats in (0, 1):
            portrait = profile(model, x, repeats=repeats, backward=False)
            assert portrait.counts()["aten._to_copy.default"] == 3
    assert portrait.mode == "train, grad, autocast(bfloat16)"
    assert "autocast(bfloat16) was on" in portrait.seen


def test_outputs_of_every_kind_and_arguments_by_name():
    class Many(nn.Module):
        def forward(self, x, *, index, nothing=None):
            return {"a": x * 2, "b": [x.sum(), (index, None)], "n": 3}

    x = torch.rand(3, requires_grad=True)
    portrait = count(Many(), x, index=torch.tensor([1]))
    assert portrait.inputs == ("f32[3]", "index=i64[1]")
    assert short(portrait.counts("backward"))["mul.Tensor"] == 1
    assert x.grad is None
    assert short(count(nn.Embedding(4, 2), torch.tensor([1, 2])).counts())["embedding.default"] == 1
    assert count(lambda: None).caption().endswith("0 calls of 0 operators, 0 B read and written.")


def test_backward_runs_where_it_should():
    model, x = nn.Linear(2, 2), torch.rand(1, 2)
    assert count(model, x).phases() == ("forward", "backward")
    assert count(model, x, backward=False).phases() == ("forward",)
    assert count(model.eval(), x).phases() == ("forward",)
    assert count(model.eval(), x, backward=True).phases() == ("forward", "backward")
    assert count(model.eval(), x, loss=torch.sum).phases() == ("forward", "backward")
    with torch.no_grad():
        assert count(model.train(), x, loss=torch.sum).phases() == ("forward",)


def test_what_is_refused():
    x = torch.rand(1, 2)
    with pytest.raises(TypeError, match="profile: int cannot be called; pass a module or a function"):
        profile(3)
    with pytest.raises(TypeError, match="loss is a function of the model's output, not str"):
        profile(nn.Linear(2, 2), x, loss="mse")
    with pytest.raises(TypeError, match="loss gave float, not a tensor"):
        profile(nn.Linear(2, 2), x, loss=lambda out: 1.0)
    with pytest.raises(ValueError, match="weight is not initialized yet; run the model once"):
        profile(nn.LazyLinear(2), x)
    with pytest.raises(ValueError, match="backward=True, but nothing that came out requires a gradient"):
        profile(torch.sin, x, backward=True)
    with pytest.raises(ValueError, match="repeats is -1"):
        profile(torch.sin, x, repeats=-1)
    with pytest.raises(ValueError, match="depth is -1"):
        count(torch.sin, x).by_module(-1)
    model = nn.Linear(2, 2)
    model.weight.register_post_accumulate_grad_hook(lambda p: None)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) has a hook that runs once its gradient is there"):
        profile(model, x)
    profile(model, x, backward=False, repeats=0)


def test_names_of_what_was_run():
    assert count(torch.sin, torch.rand(1)).model == "sin"
    assert count(lambda x: x, torch.rand(1)).model == "lambda"
    assert count(partial(torch.add, alpha=2), torch.rand(1), torch.rand(1)).model == "partial"


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning", "ignore:`torch.jit:DeprecationWarning")
def test_kinds_of_programs():
    x = torch.rand(4, 4, requires_grad=True)
    nested = torch.nested.nested_tensor([torch.rand(2, 3), torch.rand(4, 3)], layout=torch.jagged, requires_grad=True)
    programs = {
        "jagged": lambda: count(lambda t: t * 2, nested, backward=True),
        "sparse": lambda: count(lambda t: torch.sparse.mm(t, x), torch.eye(4).to_sparse(), backward=True),
        "vmap": lambda: count(torch.vmap(lambda row: row.sin().sum()), x, backward=True),
        "func.grad": lambda: count(torch.func.grad(lambda t: t.sin().sum()), x.detach()),
        "script": lambda: count(torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), x),
        "packed": lambda: count(nn.LSTM(3, 4), nn.utils.rnn.pack_sequence([torch.rand(4, 3), torch.rand(2, 3)])),
        "complex": lambda: count(torch.fft.fft, x, backward=True),
    }
    operators = {
        "jagged": "mul.Tensor",
        "sparse": "_sparse_addmm.default",
        "vmap": "sin.default",
        "func.grad": "cos.default",
        "script": "relu.default",
        "packed": "mul.Tensor",
        "complex": "_fft_r2c.default",
    }
    for name, program in programs.items():
        counts = short(program().counts())
        assert operators[name] in counts, (name, counts)


def test_numbers_in_words():
    assert [human_flops(n) for n in (None, 0, 999, 3_628_146_688, 5 * 10**15)] == ["", "0", "999", "3.63 G", "5000 T"]
    assert [human_us(n) for n in (None, 1.234, 999.0, 15_234.0, 2.5e6)] == ["", "1.23 us", "999 us", "15.2 ms", "2.5 s"]


def test_by_module_at_each_depth():
    parts = tuple(
        PortraitPart("aten.add.Tensor", "forward", path, 1, (("", 1),), None, 4, us)
        for path, us in (("", 1.0), ("a", 2.0), ("a.b", 3.0), ("a.b.c", 4.0))
    )
    portrait = Portrait("Net", "eval, grad", (), ("cpu",), 1, "0", "Seen.", parts, 1, RunTime(10.0, 10.0, 10.0))
    rows = {depth: {row["module"]: row["us"] for row in portrait.by_module(depth).rows()} for depth in (0, 1, 2)}
    assert rows == {
        0: {"a.b.c": 4.0, "a.b": 3.0, "a": 2.0, "(Net itself)": 1.0},
        1: {"a": 9.0, "(Net itself)": 1.0},
        2: {"a.b": 7.0, "a": 2.0, "(Net itself)": 1.0},
    }
    assert str(portrait.by_module(1)) == (
        "Net by module, to depth 1\n"
        "module        calls  time  share  bytes  bytes/s\n"
        "a             3      9 us  90.0%  12 B   1.33 MB\n"
        "(Net itself)  1      1 us  10.0%  4 B    4 MB"
    )


def test_the_mini_frameworks_models_are_counted_by_the_same_instrument():
    from glassbox import mini

    torch_model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    mini_model = mini.nn.Sequential(mini.nn.Linear(4, 3), mini.nn.ReLU())
    expected = count(torch_model, torch.rand(2, 4), loss=lambda out: out.sum())
    mini_model[0].bias.grad = grad = mini.ones(3)
    portrait = count(mini_model, mini.ones(2, 4), loss=lambda out: out.sum())
    assert portrait.counts("forward") == expected.counts("forward")
    assert portrait.counts("backward").keys() == expected.counts("backward").keys()
    sizes = {p.op: p.nbytes for p in expected.parts if p.phase == "forward"}
    assert {p.op: p.nbytes for p in portrait.parts if p.phase == "forward"} == sizes
    assert mini_model[0].bias.grad is grad
    assert mini_model[0].weight.grad is None
    assert portrait.title() == "Sequential, train, grad"
    assert portrait.torch == "glassbox.mini"


def test_the_mini_framework_needs_no_torch():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from glassbox import mini, xray\n"
        "a = mini.ones(3, requires_grad=True)\n"
        "print(xray.profile(lambda: a.exp()).counts(), xray.saved_memory(lambda: a.exp()).nbytes())\n"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert seen.stdout == "{'aten.exp.default': 1, 'aten.detach.default': 1} 12\n"
