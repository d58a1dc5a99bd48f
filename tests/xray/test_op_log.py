"""Facts about op_log: each call as a dispatch mode sees it, in step with PyTorch's own logs, and nothing changed."""

import gc
import math
import threading
import weakref
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.profiler import profile
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack, is_in_torch_dispatch_mode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from glassbox import mini, xray
from glassbox.xray._modules import ModuleTracker
from glassbox.xray._torch_internals import seeing

from .models import MODELS, step_of

HERE = "tests/xray/test_op_log.py"


@pytest.fixture(autouse=True)
def _nothing_is_left():
    swap = torch._C._swap_tensor_impl
    hooks = nn.modules.module._global_forward_hooks, nn.modules.module._global_forward_pre_hooks
    yield
    assert _get_current_dispatch_mode_stack() == []
    assert not is_in_torch_dispatch_mode()
    assert torch._C._swap_tensor_impl is swap
    assert seeing._open == []
    assert not hooks[0]
    assert not hooks[1]
    assert not nn.modules.module._global_forward_hooks_always_called


def lines(log: Any) -> list[str]:
    return str(log).splitlines()


class Wrapped(torch.Tensor):
    """A tensor that holds another one, and multiplies by one after each call."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [arg.inner if isinstance(arg, Wrapped) else arg for arg in args]
        return Wrapped(func(*plain, **(kwargs or {})) * 1)


class Refusing(Wrapped):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Names(TorchDispatchMode):
    """Another mode: the names of what it sees."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


# How a call is written


def test_the_text_of_a_call_is_the_mini_frameworks():
    def program(t):
        a, b = t.ones(4, 8), t.ones(8)
        with xray.op_log() if t is torch else mini.record() as log:
            c = t.add(a, b, alpha=2)
            c.max(1)
            c.relu_()
            t.cat([a, c])
            c.sum().item()
            c.split(2)
            c.to(t.float64)
        return log.ops.text().splitlines()

    assert (
        program(torch)
        == program(mini)
        == [
            "$2: f32[4, 8] = aten.add.Tensor($0, $1, alpha=2)",
            "($3: f32[4], $4: i64[4]) = aten.max.dim($2, 1)",
            "$2: f32[4, 8] = aten.relu_.default($2)",
            "$5: f32[8, 8] = aten.cat.default([$0, $2])",
            "$6: f32[] = aten.sum.default($2)",
            "96.0 = aten._local_scalar_dense.default($6)",
            "($7: f32[2, 8], $8: f32[2, 8]) = aten.split.Tensor($2, 2)",
            "$9: f64[4, 8] = aten._to_copy.default($2, dtype=float64)",
        ]
    )


def test_add_relu_sum():
    """Brief experiment: what (a + b).relu().sum() calls, and what making its input calls."""
    b = torch.ones(2, 3)
    with xray.op_log() as log:
        a = torch.randn(2, 3)
        (a + b).relu().sum()
    assert lines(log) == [
        "$0: f32[2, 3] = aten.randn.default([2, 3], device=cpu, pin_memory=False)",
        "$2: f32[2, 3] = aten.add.Tensor($0, $1)",
        "$3: f32[2, 3] = aten.relu.default($2)",
        "$4: f32[] = aten.sum.default($3)",
    ]


def test_every_kind_of_argument_is_written():
    a, out, rows, index = torch.zeros(4), torch.empty(4), torch.ones(2, 2), torch.tensor([0, 1])
    with xray.op_log() as log:
        torch.add(a, 1.5, out=out)
        torch._foreach_add_([a, out], 1)
        rows[:, index]
        torch.clamp(a, None, 3)
        torch.bernoulli(a, generator=torch.Generator())
        torch.empty_like(rows, dtype=torch.bfloat16, layout=torch.strided, memory_format=torch.contiguous_format)
        torch.full((2,), complex(1, 2))
        torch.div(a, 2, rounding_mode="floor")
        torch.full((), math.inf)
        a.to(torch.device("meta"))
        torch.scalar_tensor(True)
    assert lines(log) == [
        "$1: f32[4] = aten.add.out($0, 1.5, out=$1)",
        "aten._foreach_add_.Scalar([$0, $1], 1)",
        "$4: f32[2, 2] = aten.index.Tensor($2, [None, $3])",
        "$5: f32[4] = aten.clamp.default($0, None, 3)",
        "$6: f32[4] = aten.bernoulli.default($0, generator=Generator(cpu))",
        "$7: bf16[2, 2] = aten.empty_like.default($2, dtype=bfloat16, layout=strided, pin_memory=False, "
        "memory_format=contiguous_format)",
        "$8: c64[2] = aten.full.default([2], (1+2j), device=cpu, pin_memory=False)",
        "$9: f32[4] = aten.div.Tensor_mode($0, 2, rounding_mode='floor')",
        "$10: f32[] = aten.full.default([], inf, device=cpu, pin_memory=False)",
        "$11: f32[4] = aten._to_copy.default($0, dtype=float32, layout=strided, device=meta)",
        "$12: f32[] = aten.scalar_tensor.default(True, device=cpu, pin_memory=False)",
    ]
    foreach, index_call = log[1], log[2]
    assert (foreach.mutates, foreach.effect, foreach.result) == ((0, 1), "write", "")
    assert index_call.outputs[0].device == "cpu"
    assert log[9].outputs[0].device == "meta"


def test_what_a_call_did_to_memory_is_measured_and_promised():
    x = torch.ones(2, 3)
    with xray.op_log() as log:
        x.t()
        x.add_(1)
        x * 2
        torch.add(x, x, out=torch.empty(2, 3))
        x.detach()
        x.clone()
        x.double()
        x.t().reshape(6)
        x.reshape(6)
    assert [(call.name.split(".")[1], call.effect, call.promised) for call in log] == [
        ("t", "view", "view"),
        ("add_", "write", "write"),
        ("mul", "fresh", "fresh"),
        ("empty", "fresh", "fresh"),
        ("add", "write", "write"),
        ("detach", "view", "view"),
        ("clone", "copy", "fresh"),
        ("_to_copy", "copy", "fresh"),
        ("t", "view", "view"),
        ("clone", "copy", "fresh"),
        ("_unsafe_view", "view", "fresh"),
        ("view", "view", "view"),
    ]
    t, add_, _, _, add_out = log.ops.calls[:5]
    assert (t.aliases, t.mutates, t.outputs[0].stride, t.outputs[0].shape, t.outputs[0].nbytes) == (
        (0,),
        (),
        (1, 3),
        (3, 2),
        24,
    )
    assert t.inputs[0].storage == t.outputs[0].storage != add_out.outputs[0].storage
    assert (add_.mutates, add_.aliases) == ((0,), ())
    assert add_out.mutates == (add_out.outputs[0].id,)


def test_reshape_promises_a_view_and_copies_where_it_must():
    """Without Autograd keys composites arrive whole, and what they did is told by the storages alone."""
    with torch.inference_mode():
        x = torch.ones(2, 3)
        with xray.op_log() as log:
            x.reshape(6)
            x.t().reshape(6)
            x.t().contiguous()
    assert [(call.name, call.promised, call.effect) for call in log] == [
        ("aten.reshape.default", "view", "view"),
        ("aten.t.default", "view", "view"),
        ("aten.reshape.default", "view", "copy"),
        ("aten.t.default", "view", "view"),
        ("aten.contiguous.default", "view", "copy"),
    ]
    assert "schema" in log.rows()[0]


def test_views_share_a_storage_and_contiguous_does_not():
    """Brief experiment: T, view, slice and expand share; contiguous does not."""
    a = torch.arange(12.0).view(3, 4)
    with xray.op_log() as log:
        _ = a.T
        a.view(2, 6)
        a[1:]
        a[:1].expand(3, 4)
        a.T.contiguous()
    own = log[0].inputs[0].storage
    assert [(call.name, call.outputs[0].storage == own) for call in log] == [
        ("aten.permute.default", True),
        ("aten.view.default", True),
        ("aten.slice.Tensor", True),
        ("aten.slice.Tensor", True),
        ("aten.expand.default", True),
        ("aten.permute.default", True),
        ("aten.clone.default", False),
    ]


def test_a_transposed_matrix_is_multiplied_without_a_copy():
    a, b = torch.ones(3, 4), torch.ones(3, 5)
    with xray.op_log() as log:
        a.T @ b
    assert [call.effect for call in log] == ["view", "fresh"]
    assert log[1].name == "aten.mm.default"


def test_autocast_seen_from_below():
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    with xray.op_log() as log, torch.autocast("cpu"):
        a @ b
    assert lines(log) == [
        "$1: bf16[4, 5] = aten._to_copy.default($0, dtype=bfloat16)",
        "$3: bf16[3, 4] = aten._to_copy.default($2, dtype=bfloat16)",
        "$4: bf16[3, 5] = aten.mm.default($3, $1)",
    ]
    assert [call.effect for call in log] == ["copy", "copy", "fresh"]


# Numbers


def test_numbers_tell_tensors_that_python_gives_one_id():
    with xray.op_log() as log:
        for _ in range(50):
            torch.ones(3).sum()
    made = [call.outputs[0] for call in log]
    assert [each.id for each in made] == list(range(100))
    assert len({each.storage for each in made}) == 100


def test_addresses_that_are_used_again_are_told_apart_also_after_a_sweep(monkeypatch):
    monkeypatch.setattr(seeing, "_FIRST_SWEEP", 8)
    kept = torch.ones(3)
    with xray.op_log() as log:
        for _ in range(100):
            torch.ones(3).add_(kept)
        kept.sum()
        assert len(log._eyes._tensors) <= 10
    assert len({call.outputs[0].id for call in log if call.name == "aten.ones.default"}) == 100
    kept_as = {call.inputs[-1].id for call in log if call.name == "aten.add_.Tensor"}
    assert kept_as == {log[-1].inputs[0].id}


def test_a_number_survives_the_python_object():
    """A tensor that only C++ holds for a while comes back under its number."""
    with xray.op_log() as log:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        z = y.sin()
        del y
        gc.collect()
        z.sum().backward()
    text = str(log)
    assert "$2: f32[3] = aten.sin.default($1)" in text
    assert "aten.cos.default($1)" in text


def test_no_tensor_is_kept_alive():
    with xray.op_log(places=True) as log:
        x = torch.ones(1000)
        y = x + 1
        refs = [weakref.ref(x), weakref.ref(y)]
        storage = weakref.ref(x.untyped_storage())
        del x, y
        assert [ref() for ref in refs] == [None, None]
        assert storage() is None
    assert len(log) == 2


def test_tensors_can_be_swapped_in_a_log():
    """torch.utils.swap_tensors refuses what has weak references."""
    a, b = torch.ones(2), torch.zeros(2)
    with xray.op_log() as log:
        a + b
        torch.utils.swap_tensors(a, b)
        a + b
    torch.utils.swap_tensors(a, b)
    assert a.tolist() == [1, 1]
    assert lines(log) == ["$2: f32[2] = aten.add.Tensor($0, $1)", "$3: f32[2] = aten.add.Tensor($1, $0)"]


def test_looking_reads_no_data_of_a_lazy_clone():
    a = torch.ones(3)
    b = torch._lazy_clone(a)
    with xray.op_log():
        b.t()
        torch._lazy_clone(b)
    assert torch._C._is_cow_tensor(b)


# Modules, phases, places


def test_modules_and_phases_of_forward_and_backward():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 1)))
    x = torch.ones(2, 3)
    with xray.op_log(model) as log:
        model(x).sum().backward()
    assert [(call.name.split(".")[1], call.phase, call.module) for call in log] == [
        ("t", "forward", "0"),
        ("addmm", "forward", "0"),
        ("tanh", "forward", "1.0"),
        ("detach", "forward", "1.0"),
        ("t", "forward", "1.1"),
        ("addmm", "forward", "1.1"),
        ("sum", "forward", ""),
        ("ones_like", "backward", ""),
        ("expand", "backward", ""),
        ("t", "backward", "1.1"),
        ("mm", "backward", "1.1"),
        ("t", "backward", "1.1"),
        ("mm", "backward", "1.1"),
        ("t", "backward", "1.1"),
        ("sum", "backward", "1.1"),
        ("view", "backward", "1.1"),
        ("detach", "backward", "1.1"),
        ("t", "backward", "1.1"),
        ("detach", "backward", "1.1"),
        ("detach", "backward", "1.0"),
        ("tanh_backward", "backward", "1.0"),
        ("t", "backward", "0"),
        ("mm", "backward", "0"),
        ("t", "backward", "0"),
        ("sum", "backward", "0"),
        ("view", "backward", "0"),
        ("detach", "backward", "0"),
        ("t", "backward", "0"),
        ("detach", "backward", "0"),
    ]


def test_without_a_root_paths_begin_with_the_class():
    model = nn.Sequential(nn.Linear(3, 3))
    with xray.op_log() as log:
        model(torch.ones(2, 3))
    assert [call.module for call in log] == ["", "Sequential.0", "Sequential.0"]
    with xray.op_log(modules=False) as log:
        model(torch.ones(2, 3))
    assert [call.module for call in log] == ["", "", ""]
    assert "module" not in log.rows()[0]


def test_nodes_from_before_the_log_belong_to_no_module_and_no_line():
    model = nn.Linear(3, 3)
    loss = model(torch.ones(2, 3)).sum()
    with xray.op_log(places=True) as log:
        torch.ones(1) + 1
        loss.backward()
    backward = [call for call in log if call.phase == "backward"]
    assert backward and {call.module for call in backward} == {""}
    # The first gradient is made by the line that calls backward.
    assert {call.place for call in backward if "ones_like" not in call.name} == {""}


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_computes_again_belongs_to_its_module(reentrant):
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    with xray.op_log(model) as log:
        checkpoint(model, torch.ones(1, 2, requires_grad=True), use_reentrant=reentrant).sum().backward()
    found = [(call.name.split(".")[1], call.phase, call.module) for call in log]
    assert found.count(("addmm", "forward", "0")) == found.count(("addmm", "backward", "0")) == 1
    assert ("tanh_backward", "backward", "1") in found
    assert ("mm", "backward", "0") in found


def test_a_tracker_tells_module_and_phase_on_its_own():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    seen = []

    class Asks(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func).split(".")[1], tracker.phase(), tracker.path()))
            return func(*args, **(kwargs or {}))

    with ModuleTracker(model) as tracker, Asks():
        checkpoint(model, torch.ones(1, 2, requires_grad=True), use_reentrant=False).sum().backward()
    assert ("addmm", "forward", "0") in seen
    assert ("addmm", "backward", "0") in seen
    assert ("tanh_backward", "backward", "1") in seen
    assert ("sum", "forward", "") in seen


def phases_by(look):
    """What op_log, the module tracker, hidden_copies or profile say of each phase of a backward pass's own calls."""
    layer, x = nn.Linear(3, 2), torch.ones(4, 3)
    unused = torch.ones(2, requires_grad=True)

    def program():
        torch.ones_like(x)
        layer(x).sum().backward()
        torch.autograd.grad(layer(x).sum(), (layer.weight, unused), materialize_grads=True)
        layer(x).backward(torch.ones(4, 2))

    return look(program)


def test_all_instruments_have_one_rule_for_what_is_backward():
    def by_log(program):
        with xray.op_log() as log:
            program()
        return Counter((call.name, call.phase) for call in log)

    def by_log_under_another_mode(program):
        with xray.op_log(modules=False) as log, Names():
            program()
        return Counter((call.name, call.phase) for call in log)

    def by_profile(program):
        portrait = xray.profile(program, repeats=0)
        return Counter({(f"aten.{part.op.removeprefix('aten.')}", part.phase): part.calls for part in portrait.parts})

    log = phases_by(by_log)
    assert log["aten.ones_like.default", "forward"] == 1
    assert log["aten.ones_like.default", "backward"] == 2
    assert log["aten.zeros_like.default", "backward"] == 1
    assert log["aten.ones.default", "forward"] == 1
    assert ("aten.addmm.default", "backward") not in log
    assert phases_by(by_log_under_another_mode) == log
    assert phases_by(by_profile) == log


def test_places_are_lines_of_the_program_in_backward_those_of_the_forward_call():
    x = torch.ones(3, requires_grad=True)
    with xray.op_log(places=True) as log:
        y = x.exp()
        z = nn.functional.gelu(y)
        z.sum().backward()
    first = test_places_are_lines_of_the_program_in_backward_those_of_the_forward_call.__code__.co_firstlineno + 3
    where = {call.name.split(".")[1]: call.place for call in log}
    assert where["exp"] == where["mul"] == f"{HERE}:{first}"
    assert where["gelu"] == where["gelu_backward"] == f"{HERE}:{first + 1}"
    assert where["expand"] == f"{HERE}:{first + 2}"
    assert lines(log)[0] == f"$1: f32[3] = aten.exp.default($0)  # {HERE}:{first}"


# What else may be at work


def test_modes_inside_and_outside():
    x = torch.ones(2)
    with Names() as outer, xray.op_log() as log, Names() as inner:
        (x + 1).sum()
    assert outer.names == inner.names == log.names() == ["aten.add.Tensor", "aten.sum.default"]


def test_a_flop_counter_inside_and_outside():
    layer, x = nn.Linear(3, 3), torch.ones(2, 3)
    with FlopCounterMode(display=False) as alone:
        layer(x)
    with xray.op_log() as log, FlopCounterMode(display=False) as inside:
        layer(x)
    with FlopCounterMode(display=False) as outside, xray.op_log() as again:
        layer(x)
    assert alone.get_total_flops() == inside.get_total_flops() == outside.get_total_flops() == 36
    assert log.names() == again.names() == ["aten.t.default", "aten.addmm.default"]


def test_fake_tensors_say_so():
    with FakeTensorMode() as mode:
        fake = torch.ones(2, 3)
    with xray.op_log() as log:
        fake + 1
    with mode, xray.op_log() as within:
        torch.ones(2, 3)
    with xray.op_log() as around, FakeTensorMode():
        torch.ones(2, 3)
    assert str(log) == "$1: f32[2, 3] FakeTensor = aten.add.Tensor($0, 1)"
    assert str(within) == str(around)
    assert str(within) == "$0: f32[2, 3] FakeTensor = aten.ones.default([2, 3], device=cpu, pin_memory=False)"


def test_symbolic_sizes_are_written_as_symbols():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(5, 3), static_shapes=False)
    with xray.op_log() as log:
        x.view(-1)
    call = log[0]
    rows, columns = call.inputs[0].shape
    assert call.outputs[0].shape == (f"{rows}*{columns}",)
    assert call.outputs[0].nbytes == 0
    assert str(call) == f"$1: f32[{rows}*{columns}] FakeTensor = aten.view.default($0, [-1])"


def test_vmap_and_grad_are_seen_from_below():
    with xray.op_log() as log:
        torch.vmap(torch.sin)(torch.ones(3, 2))
        torch.func.grad(torch.sin)(torch.ones(()))
    assert log.names() == [
        "aten.ones.default",
        "aten.sin.default",
        "aten.ones.default",
        "aten.sin.default",
        "aten.ones_like.default",
        "aten.cos.default",
        "aten.mul.Tensor",
    ]
    assert log[1].inputs[0].shape == (3, 2)


def test_a_subclass_and_the_calls_that_it_makes():
    with xray.op_log() as log:
        w = Wrapped(torch.ones(2))
        w + w
    assert lines(log) == [
        "$0: f32[2] = aten.ones.default([2], device=cpu, pin_memory=False)",
        "$4: f32[2] Wrapped = aten.add.Tensor($1, $1)",
        "  $2: f32[2] = aten.add.Tensor($0, $0)",
        "  $3: f32[2] = aten.mul.Tensor($2, 1)",
    ]
    assert log.names() == ["aten.ones.default", "aten.add.Tensor"]
    assert [call.depth for call in log.all_ops] == [0, 0, 1, 1]


def test_another_mode_sees_a_subclass_as_it_does_alone():
    def program():
        w = Wrapped(torch.ones(2))
        (w + w).sin()

    with Names() as alone:
        program()
    with Names() as outer, xray.op_log():
        program()
    with xray.op_log(), Names() as inner:
        program()
    assert alone.names == outer.names == inner.names


def test_a_subclass_that_refuses_is_refused_as_without_a_log():
    w = Refusing(torch.ones(2))
    with pytest.raises(TypeError) as alone:
        torch.sin(w)
    with xray.op_log() as log, pytest.raises(TypeError) as logged:
        torch.sin(w)
    assert str(log) == "raised = aten.sin.default($0)"
    assert "all __torch_dispatch__ handlers returned NotImplemented" in str(alone.value)
    assert "all __torch_dispatch__ handlers returned NotImplemented" in str(logged.value)


def test_a_torch_function_mode_is_told_no_more_than_any_dispatch_mode_tells_it():
    class Heard(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    leaf, grad = torch.ones(2, requires_grad=True), torch.ones(2)

    def program():
        (leaf + 1).sum().backward()
        # The mode stays on while a node runs, since calling one is no torch function.
        node(grad)

    node = leaf.sin().grad_fn
    heard: list[str] = []
    with Heard(), Names():
        program()
    alone, heard = heard, []
    node = leaf.sin().grad_fn
    with Heard(), xray.op_log():
        program()
    assert heard == alone


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested", "ignore:Sparse CSR")
def test_nested_and_sparse_tensors():
    strided = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with xray.op_log() as log:
        strided + strided
        jagged + jagged
        torch.eye(2).to_sparse()
        torch.eye(2).to_sparse_csr()
    assert lines(log) == [
        "$1: f32[2, *] nested = aten.add.Tensor($0, $0)",
        f"$5: f32[2, {jagged.shape[1]}] NestedTensor = aten.add.Tensor($2, $2)",
        "  $4: f32[5] = aten.add.Tensor($3, $3)",
        "$6: f32[2, 2] = aten.eye.default(2, device=cpu, pin_memory=False)",
        "$7: f32[2, 2] sparse_coo = aten._to_sparse.default($6)",
        "$8: f32[2, 2] = aten.eye.default(2, device=cpu, pin_memory=False)",
        "$9: f32[2, 2] sparse_csr = aten._to_sparse_csr.default($8)",
    ]
    assert log[3].outputs[0].nbytes == 0


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_and_inference_tensors():
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    with torch.inference_mode():
        x = torch.ones(2)
    with xray.op_log() as log:
        quantized.dequantize()
        x + 1
    assert log[0].inputs[0].type() == "qint8[2]"
    assert str(log[1]) == "$3: f32[2] = aten.add.Tensor($2, 1)"


def test_inference_mode_shows_composites_whole():
    layer, x = nn.Linear(3, 3), torch.ones(2, 3)
    with torch.no_grad(), xray.op_log() as apart:
        layer(x)
    with torch.inference_mode(), xray.op_log() as whole:
        layer(x)
    assert apart.names() == ["aten.t.default", "aten.addmm.default"]
    assert whole.names() == ["aten.linear.default"]


@pytest.mark.filterwarnings("ignore:`torch.jit.trace` is deprecated")
def test_custom_operators_functions_and_scripts():
    @torch.library.custom_op("glassbox_test::twice", mutates_args=())
    def twice(x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return x * k

    @torch.library.custom_op("glassbox_test::bump", mutates_args=("x",))
    def bump(x: torch.Tensor) -> None:
        x.add_(1)

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x.cos()

    scripted = torch.jit.trace(lambda x: x.tanh() + 1, torch.ones(2))
    x = torch.ones(2, requires_grad=True)
    with xray.op_log() as log:
        twice(x.detach())
        twice(x.detach(), k=3)
        bump(x.detach())
        Sine.apply(x).sum().backward()
        scripted(x.detach())
    calls = [str(call) for call in log if not call.name.startswith("aten.detach")]
    assert calls == [
        "$2: f32[2] = glassbox_test.twice.default($1)",
        "$4: f32[2] = glassbox_test.twice.default($3, 3)",
        "glassbox_test.bump.default($5)",
        "$6: f32[2] = aten.sin.default($0)",
        "$7: f32[] = aten.sum.default($6)",
        "$8: f32[] = aten.ones_like.default($7, pin_memory=False, memory_format=preserve_format)",
        "$9: f32[2] = aten.expand.default($8, [2])",
        "$10: f32[2] = aten.cos.default($0)",
        "$11: f32[2] = aten.mul.Tensor($9, $10)",
        "$14: f32[2] = aten.tanh.default($13)",
        "$15: f32[2] = aten.add.Scalar($14, 1)",
    ]
    assert next(call for call in log if "bump" in call.name).mutates == (5,)


def test_branches_of_higher_order_operators():
    x = torch.ones(2)
    with xray.op_log() as log:
        torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    assert lines(log)[2:] == [
        "$3: f32[2] = higher_order.cond($2, <lambda>, <lambda>, [$0])",
        "  $3: f32[2] = aten.sin.default($0)",
    ]


def test_a_compiled_function_runs_uncompiled_unless_asked():
    graphs = []

    def backend(graph, example):
        graphs.append(graph)
        return lambda x: (x.sin().cos(),)

    compiled = torch.compile(lambda x: x.sin().cos() + 0, backend=backend)
    x = torch.ones(2)
    with xray.op_log() as log:
        compiled(x)
    assert log.names() == ["aten.sin.default", "aten.cos.default", "aten.add.Tensor"]
    assert graphs == []
    # another one, since torch 2.13 goes on running uncompiled what it ran so once
    compiled = torch.compile(lambda x: x.sin().cos() + 1, backend=backend)
    with xray.op_log(compiled=True) as log:
        compiled(x)
    assert log.names() == ["aten.sin.default", "aten.cos.default"]
    assert len(graphs) == 1


@pytest.mark.filterwarnings("ignore:Using `torch.compile.module.`")
def test_compiled_modules_are_not_compiled_again_for_a_log():
    graphs = []

    def backend(graph, example):
        graphs.append(graph)
        return graph.forward

    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    compiled, x = torch.compile(model, backend=backend), torch.ones(1, 2)
    with torch.no_grad():
        compiled(x)
        with xray.op_log(compiled=True) as log:
            compiled(x)
        compiled(x)
    assert len(graphs) == 1
    assert "aten.tanh.default" in log.names()
    with xray.op_log() as log:
        compiled(x)
    assert {call.module for call in log} == {"Sequential.0", "Sequential.1"}
    torch.compiler.reset()
    with torch.no_grad(), xray.op_log(compiled=True):
        torch.compile(model, backend=backend)(x)
    warm, cold = ([node.target for node in graph.graph.nodes if node.op == "call_function"] for graph in graphs)
    assert warm == cold


# Blocks, exceptions, threads, generators


def test_a_call_that_raises_is_marked_and_the_exception_is_the_programs():
    with pytest.raises(RuntimeError, match="must match"), xray.op_log() as log:
        torch.ones(2) + torch.ones(3)
    assert lines(log)[-1] == "raised = aten.add.Tensor($0, $1)"
    assert log[-1].outputs == ()


def test_an_exception_in_a_module_leaves_the_stack_of_modules_clean():
    class Breaks(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    with xray.op_log() as log:
        with pytest.raises(ValueError, match="broken"):
            nn.Sequential(Breaks())(torch.ones(1))
        torch.ones(2)
    assert log[-1].module == ""


def test_a_log_may_be_entered_again_also_inside_of_itself():
    log = xray.op_log()
    x = torch.ones(2)
    with log, log:
        x + 1
    x * 2
    with log:
        x - 1
    assert lines(log) == ["$1: f32[2] = aten.add.Tensor($0, 1)", "$3: f32[2] = aten.sub.Tensor($2, 1)"]


def test_logs_nest():
    x = torch.ones(2)
    with xray.op_log() as outer:
        x + 1
        with xray.op_log() as inner:
            x * 2
        x - 1
    assert outer.names() == ["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]
    assert inner.names() == ["aten.mul.Tensor"]


def test_it_may_be_read_while_it_runs():
    x = torch.ones(2)
    with xray.op_log() as log:
        x + 1
        assert len(log) == 1
        x * 2
        assert log.names() == ["aten.add.Tensor", "aten.mul.Tensor"]


def test_a_suspended_generator_may_leave_in_any_order():
    x = torch.ones(2)

    def program():
        with xray.op_log() as log:
            x + 1
            yield log
            x * 2

    running = program()
    log = next(running)
    other = Names()
    with other:
        x - 1
        list(running)
        assert _get_current_dispatch_mode_stack() == [other]
        x / 2
    assert log.names() == ["aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor"]
    assert other.names == ["aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor"]


def test_a_generator_that_is_dropped_takes_its_log_with_it():
    def program():
        with xray.op_log() as log:
            yield log

    running = program()
    log = next(running)
    torch.ones(1)
    del running
    gc.collect()
    torch.ones(1)
    assert len(log) == 1


def test_each_thread_has_its_own():
    ready = threading.Barrier(3)
    found: dict[str, list[str]] = {}

    def work(name, operator):
        x = torch.ones(2)
        ready.wait()
        with xray.op_log() as log:
            for _ in range(20):
                operator(x)
        found[name] = log.names()

    threads = [threading.Thread(target=work, args=pair) for pair in (("sin", torch.sin), ("exp", torch.exp))]
    with xray.op_log() as mine:
        for thread in threads:
            thread.start()
        ready.wait()
        for thread in threads:
            thread.join()
    assert found == {"sin": ["aten.sin.default"] * 20, "exp": ["aten.exp.default"] * 20}
    assert len(mine) == 0


def test_one_log_in_two_threads_is_refused():
    problems = []

    def enter():
        try:
            with log:
                pass
        except RuntimeError as problem:
            problems.append(str(problem))

    with xray.op_log() as log:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    (problem,) = problems
    assert problem.startswith("op_log: this one is on in another thread")


def test_the_oldest_calls_are_forgotten_and_counted():
    x = torch.ones(2)
    with xray.op_log(keep=3) as log:
        for _ in range(5):
            x + 1
    assert len(log) == 3
    assert log.ops.dropped == 2
    assert lines(log) == [
        "... the oldest 2 calls are gone",
        "$3: f32[2] = aten.add.Tensor($0, 1)",
        "$4: f32[2] = aten.add.Tensor($0, 1)",
        "$5: f32[2] = aten.add.Tensor($0, 1)",
    ]
    assert log.ops.caption() == "3 operator calls; the oldest 2 calls are gone"
    assert log.rows()[0]["#"] == 2


@pytest.mark.parametrize(
    ("problem", "kind", "says"),
    [
        ({"keep": 0}, ValueError, "op_log: keep is 0"),
        ({"keep": 1.5}, TypeError, "op_log: keep is a float"),
        ({"keep": True}, TypeError, "op_log: keep is a bool"),
        ({"root": 3}, TypeError, "op_log: root is a int"),
    ],
)
def test_bad_arguments(problem, kind, says):
    with pytest.raises(kind, match=says):
        xray.op_log(**problem)


def test_it_reads_well():
    x = torch.ones(2, 3)
    with xray.op_log() as log:
        x.t() + 1
    assert log.to_markdown().splitlines() == [
        "| # | op | call | effect | phase | stride | bytes |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| 0 | aten.t.default | $1: f32[3, 2] = aten.t.default($0) | view | forward | [1, 3] | 24 |",
        "| 1 | aten.add.Tensor | $2: f32[3, 2] = aten.add.Tensor($1, 1) | fresh | forward | [1, 3] | 24 |",
    ]
    assert "2 operator calls" in log._repr_html_()
    assert log.counts() == {"aten.t.default": 1, "aten.add.Tensor": 1}


def test_a_torch_that_lacks_an_internal_says_so_in_one_sentence(monkeypatch):
    monkeypatch.delattr(torch._C, "_WeakTensorRef")
    with pytest.raises(
        xray.TorchInternalsError, match=r"has no torch\._C\._WeakTensorRef, which this instrument reads"
    ):
        xray.op_log()


# Nothing is changed, and PyTorch's own logs agree


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_are_the_same_bits(name):
    _, step = step_of(name)
    plain = step()
    with xray.op_log(places=True):
        logged = step()
    assert all(torch.equal(a, b) for a, b in zip(plain, logged, strict=True))
    state = torch.get_rng_state()
    with xray.op_log():
        torch.ones(2).sum()
    assert torch.equal(torch.get_rng_state(), state)


def test_whether_a_gradient_is_stolen_or_cloned_stays_as_it_is_in_a_mode():
    """AccumulateGrad takes a gradient that nobody else holds; a log that held one would make it clone."""

    def names(mode):
        x = torch.ones(3, requires_grad=True)
        with mode as log:
            (x * 2).sum().backward()
        return log.names if isinstance(log, Names) else log.names()

    assert names(xray.op_log()) == names(Names())


@pytest.mark.parametrize("name", MODELS)
def test_the_sequence_is_make_fxs(name):
    """Less getitem; and what is saved is detached by an operator that make_fx writes as alias."""
    _, step = step_of(name)
    with xray.op_log() as log:
        step()
    graph = make_fx(lambda: step())().graph
    traced = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    traced = [each.replace("aten.alias.", "aten.detach.") for each in traced if "getitem" not in each]
    assert [each for each in log.names() if "seed" not in each] == traced


@pytest.mark.parametrize("name", MODELS)
def test_the_sequence_is_debug_modes(name):
    """Less the detach of what is saved, which DebugMode leaves out."""
    _, step = step_of(name)
    with xray.op_log() as log:
        step()
    with DebugMode() as debug:
        step()
    theirs = [str(call.op) for call in debug.operators]
    assert [each for each in log.names() if "detach" not in each] == [each for each in theirs if "detach" not in each]


def is_composite(name: str) -> bool:
    """Whether autograd takes an operator of this name apart: its row says math kernel."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
    op = getattr(packet, packet.overloads()[0])
    table = torch._C._dispatch_dump_table(op.name())
    return any(line.startswith("AutogradCPU:") and "[math kernel]" in line for line in table.splitlines())


def calls_of_profiler(events: Any) -> Counter[str]:
    """What a mode would have seen, by the profiler's tree of events: its levels are mapped so.

    A composite's own event is passed through to its children. The first event below that is no composite is the call;
    what lies below it is the kernel's own business. Events that are no operators (autograd's) are passed through.
    """
    found: Counter[str] = Counter()

    def walk(event: Any) -> None:
        if event.name.startswith("aten::") and not is_composite(event.name):
            found[event.name] += 1
            return
        for child in event.cpu_children:
            walk(child)

    for event in events:
        if event.cpu_parent is None:
            walk(event)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_the_counts_are_the_profilers(name):
    _, step = step_of(name)
    with xray.op_log() as log:
        step()
    with profile(use_kineto=False) as events:
        step()
    # While a dispatch mode is on PyTorch takes other ways: reshape calls view, and gradients are summed out of place.
    alike = {"aten::_reshape_alias": "aten::view", "aten::add_": "aten::add"}
    ours = Counter(alike.get(each, each) for each in ("aten::" + name.split(".")[1] for name in log.names()))
    theirs = Counter(alike.get(each, each) for each in calls_of_profiler(events.function_events).elements())
    # A saved result is detached without a call of the dispatcher that the profiler would count.
    del ours["aten::detach"], theirs["aten::detach"]
    assert ours == theirs
