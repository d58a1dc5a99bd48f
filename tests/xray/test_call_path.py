"""Facts about the call path: what a + b goes through, station by station, in PyTorch and in the mini-framework."""

import operator
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from glassbox import mini
from glassbox.records import STATIONS, CallPath, Frame
from glassbox.xray import TorchInternalsError, call_path, table
from glassbox.xray._frames import frames_of
from glassbox.xray._stations import is_cpython, is_observer, short_name, station_of

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="C++ frames are had on Linux alone")

HERE = os.path.relpath(__file__)
A, B = torch.ones(2, 3, requires_grad=True), torch.ones(3)
M, N = mini.ones(2, 3, requires_grad=True), mini.ones(3)


def compiled(path: CallPath, station: int) -> list[str]:
    """The C++ functions of a station, without the adapters between them."""
    adapters = ("wrap_kernel", "make_boxed", "BoxedKernel", "Dispatcher::")
    return [frame.name for frame in path.at(station) if "::" in frame.full_name and not frame.name.startswith(adapters)]


def told(path: CallPath, station: int) -> list[str]:
    return [each.text for each in path.evidence_at(station)]


# a + b


@pytest.fixture(scope="module")
def added() -> CallPath:
    return call_path(lambda: A + B)


@LINUX
def test_the_stations_of_a_plus_b(added: CallPath) -> None:
    assert compiled(added, 2) == ["TypeError_to_NotImplemented_<&THPVariable_add>", "THPVariable_add"]
    assert compiled(added, 3) == ["at::_ops::add_Tensor::call"]
    assert compiled(added, 4) == ["VariableType::add_Tensor"]
    assert compiled(added, 6) == ["at::_ops::add_Tensor::redispatch"]
    order = [frame.station for frame in added if frame.station and not frame.observer]
    assert order == sorted(order)
    assert (added.call, added.op, added.others) == ("A + B", "aten.add.Tensor", ())


@LINUX
def test_nb_add_reaches_a_generated_c_function_and_no_python_or_pybind11(added: CallPath) -> None:
    seen = [frame for frame in added if not frame.observer]
    assert added.at(2)[-1].file == "python_variable_methods.cpp"
    assert not any("pybind11" in frame.full_name for frame in seen)
    assert [frame.file for frame in seen if frame.language == "python"] == [HERE]
    # CPython's own functions have names where its build kept them.
    slots = [frame.name for frame in added.at(1)]
    assert not slots or "slot_nb_add" in slots


def test_what_frames_do_not_show_has_its_evidence(added: CallPath) -> None:
    assert told(added, 3) == ["{CPU, ADInplaceOrView, AutogradCPU, AutocastCPU}"]
    (node,) = told(added, 5)
    assert node.startswith("grad_fn is AddBackward0, number ") and node.endswith("; it saved alpha")
    (row,) = told(added, 6)
    assert row.startswith("CPU: build/aten/src/ATen/RegisterCPU_") and row.endswith(" [kernel]")
    assert told(added, 7) == ["structured_delegate: add.out; structured_inherits: TensorIteratorBase"]
    loop, device = told(added, 8)
    assert loop.startswith("ufunc_inner_loop Generic: add (AllAndComplex")
    assert device == "cpu: the work was done when the call returned"
    assert {each.source for each in added.evidence} == {
        "the tensors",
        "the result",
        "the dispatch table",
        "native_functions.yaml",
        "the device",
    }


@LINUX
def test_the_observers_frames_are_marked(added: CallPath) -> None:
    watching = [frame.name for frame in added if frame.observer]
    assert "pythonFallback" in watching and watching[-1] == "__torch_dispatch__"
    assert any("pythonTLSSnapshotFallback" in name for name in watching)
    assert any(name.startswith("ConcretePyInterpreterVTable") for name in watching)
    assert all(frame.known for frame in added)


@LINUX
def test_other_calls_by_the_same_rules() -> None:
    path = call_path(B.add_, 1)
    assert compiled(path, 2) == ["THPVariable_add_"] and compiled(path, 3) == ["at::_ops::add__Tensor::call"]
    assert compiled(path, 4) == ["VariableType::add__Tensor"]
    # The ADInplaceOrView kernel is compiled into its adapter.
    assert path.at(4)[-1].name == "wrap_kernel_functor_unboxed_<&ADInplaceOrView::add__Tensor>::call"
    assert compiled(path, 6) == ["at::_ops::add__Tensor::redispatch"]
    assert path.call == "B.add_(1)"
    path = call_path(torch.mm, A, A.t().detach())
    assert (compiled(path, 2), compiled(path, 4)) == (["THPVariable_mm"], ["VariableType::mm"])
    assert "structured without TensorIterator" in told(path, 7)[0] and told(path, 8)[0] == "dispatch: CPU: mm_out_cpu"
    assert told(path, 5)[0].endswith("it saved mat2")
    path = call_path(lambda: A.sum())
    assert compiled(path, 3) == ["at::_ops::sum::call"]
    assert "default backend kernel" in told(path, 6)[0]
    path = call_path(torch.ops.aten.add.Tensor, A, B)
    assert any("pybind11" in frame.full_name for frame in path.at(2))
    assert compiled(path, 4) == ["VariableType::add_Tensor"]


@LINUX
def test_composites_autocast_and_vmap() -> None:
    path = call_path(F.linear, A, A.detach(), op="mm")
    assert compiled(path, 2) == ["THPVariable_linear"]
    assert compiled(path, 3)[0] == "at::_ops::linear::call" and compiled(path, 3)[-1] == "at::_ops::mm::call"
    assert compiled(path, 4)[0] == "at::native::linear" and compiled(path, 4)[-1] == "VariableType::mm"
    assert (path.op, path.others) == ("aten.mm.default", ("aten.t.default",))
    assert "1 more" in path.caption()

    def cast() -> torch.Tensor:
        with torch.autocast("cpu"):
            return A @ B

    path = call_path(cast)
    assert any(name.startswith("at::autocast::") for name in compiled(path, 4))
    assert path.op == "aten._to_copy.default" and path.call == "cast()"
    path = call_path(torch.vmap(torch.sin), B)
    assert compiled(path, 3) == ["at::_ops::sin::call"] * 2
    assert compiled(path, 4)[0] == "at::functorch::dynamicLayerFrontFallback"
    assert compiled(path, 4)[-1] == "VariableType::sin"
    assert "apis.py" in path.at(1)[0].file


@LINUX
def test_in_inference_mode_no_station_of_autograds_is_passed() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        path = call_path(lambda: x + x)
    assert (compiled(path, 4), compiled(path, 6)) == ([], [])
    assert told(path, 3) == ["{CPU, AutocastCPU}"]
    assert told(path, 5) == ["no node was made: no Autograd kernel ran"]
    with torch.no_grad():
        path = call_path(lambda: A + B)
    assert compiled(path, 4) == ["VariableType::add_Tensor"]
    assert told(path, 5) == ["no node was made: grad mode is off"]


@LINUX
def test_a_mode_of_the_programs_own_is_no_observer() -> None:
    class Passing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def program() -> torch.Tensor:
        with Passing():
            return A + B

    path = call_path(program)
    assert "pythonFallback" in [frame.name for frame in path if not frame.observer]
    assert "VariableType::add_Tensor" in compiled(path, 4)


@LINUX
def test_below_the_backends_key_an_error_tells() -> None:
    path = call_path(operator.add, A, B, below=True)
    assert "at::wrapper_CPU_add_Tensor" in compiled(path, 6)
    assert compiled(path, 7)[0] == "at::meta::structured_add_Tensor::meta"
    assert "at::TensorIteratorBase::build" in compiled(path, 7)
    assert "at::TensorIteratorBase::compute_shape" in compiled(path, 7)
    assert "failed on purpose for tensors of shapes (2, 2) and (3,): The size of tensor a (2)" in path.note
    alone = call_path(torch.sin, A, below=True)
    assert alone.note == (
        "Below the backend's key nothing can be shown: aten.sin.default takes no two tensors whose shapes could clash."
    )


# The call's own node and device, whatever the program goes on to


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def written_into_a_view_that_stays() -> tuple[torch.Tensor, torch.Tensor]:
    y = A * 1
    z = y[0]
    z.mul_(A[1])
    return y, z


def detached_and_joined_again() -> torch.Tensor:
    w = A * 2
    y = B.detach().expand(2, 3).clone()
    return y.add_(w)


def without_gradients() -> torch.Tensor:
    with torch.no_grad():
        y = A * 2
    return y.add_(A.exp())


NODES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a later call": (lambda: (A * B).sum(), "", "grad_fn is MulBackward0; it saved other"),
    "the last call": (lambda: (A * B).sum(), "sum", "grad_fn is SumBackward0; it saved nothing"),
    "a backward pass": (
        lambda: torch.autograd.grad((A * A).sum(), A),
        "",
        "grad_fn is MulBackward0; it saved other, self",
    ),
    "a later in-place call": (lambda: (A * B).add_(1), "", "grad_fn is MulBackward0; it saved other"),
    "several results": (lambda: A.max(0), "", "grad_fn is MaxBackward0; it saved dim, indices, keepdim"),
    "a list": (lambda: A.split(1), "", "grad_fn is SplitBackward0; it saved dim, split_size"),
    "in place, a clone is saved": (lambda: (A * 1).mul_(A), "mul_", "grad_fn is MulBackward0; it saved other, self"),
    "in place, the view lives": (
        written_into_a_view_that_stays,
        "mul_",
        # in torch 2.13 a view that is written into has no node of that call to be found
        "grad_fn is MulBackward0; it saved other, self"
        if torch.__version__ >= "2.14"
        else "a node was made; its tensor was gone before it could be asked which",
    ),
    "a result that is gone": (
        lambda: (A * B, None)[1],
        "",
        "a node was made; its tensor was gone before it could be asked which",
    ),
    "a result that was read before it was gone": (
        lambda: ((A * B).sum(), None)[1],
        "",
        "grad_fn is MulBackward0; it saved other",
    ),
    "a function's forward": (
        lambda: Doubled.apply(A),
        "",
        "grad_fn is DoubledBackward; it saved nothing; it was made around the call, in which grad mode is off",
    ),
    "no derivative": (lambda: A == B, "", "no node was made: its Autograd kernel makes none"),
    "no derivative, joined later": (
        detached_and_joined_again,
        "detach",
        "no node was made: no input requires a gradient",
    ),
    "no derivative, gone": (lambda: (A == B, None)[1], "", "no node was made: its Autograd kernel makes none"),
    "detach": (lambda: A.detach(), "", "no node was made: its Autograd kernel makes none"),
    "no input that wants one": (lambda: B * 2, "", "no node was made: no input requires a gradient"),
    "grad mode": (without_gradients, "", "no node was made: grad mode is off"),
}


@LINUX
@pytest.mark.parametrize("name", NODES)
def test_the_node_is_the_calls_own(name: str) -> None:
    program, op, expected = NODES[name]
    (node,) = told(call_path(program, op=op), 5)
    assert re.sub(r", number \d+", "", node) == expected


def test_the_number_is_the_nodes() -> None:
    made: list[torch.Tensor] = []

    def program() -> torch.Tensor:
        made.append(A * B)
        return made[0].add_(A).sum()

    (node,) = told(call_path(program), 5)
    (mul, _), _ = made[0].grad_fn.next_functions
    assert node.startswith(f"grad_fn is MulBackward0, number {mul._sequence_nr()};")


def test_a_tensor_in_between_is_not_kept_alive() -> None:
    gone = []

    def program() -> torch.Tensor:
        y = A * B
        seen = weakref.ref(y)
        del y
        gone.append(seen() is None)
        return A + 1

    call_path(program)
    assert gone == [True]


DEVICES: dict[str, tuple[Callable[[], Any], str]] = {
    "a loop": (lambda: (A * B).to("meta"), "cpu: the work was done when the call returned"),
    "a view": (lambda: A.t(), "cpu: no loop runs: the result is a view of an argument"),
    "views": (lambda: A.split(1), "cpu: no loop runs: the result is a view of an argument"),
    "no data": (lambda: torch.empty(2, device="meta"), "meta: no loop runs: there is no data"),
}


@pytest.mark.parametrize("name", DEVICES)
def test_what_the_device_is_said_to_have_done(name: str) -> None:
    program, expected = DEVICES[name]
    assert told(call_path(program), 8)[-1] == expected


def test_a_schema_that_allows_a_view_is_not_taken_for_one() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        path = call_path(lambda: x.to(torch.float64))
    assert (path.op, told(path, 8)) == ("aten.to.dtype", ["cpu: the work was done when the call returned"])


def test_fake_tensors_have_no_data() -> None:
    with FakeTensorMode():
        path = call_path(lambda: torch.ones(2) * 2, op="mul")
    assert told(path, 8)[-1] == "cpu: no loop runs: there is no data"


def test_files_of_installed_packages_begin_with_the_package(tmp_path: Path) -> None:
    file = tmp_path / "site-packages" / "somebodys" / "net.py"
    space: dict[str, Any] = {}
    exec(compile("def forward(a, b):\n    return a + b\n", str(file), "exec"), space)
    for a, b in ((A, B), (M, N)):
        frames = [frame for frame in call_path(space["forward"], a, b) if frame.name == "forward"]
        assert frames[0].place.startswith("somebodys/net.py:")


def test_the_path_and_the_table_show_one_place(added: CallPath) -> None:
    row = table("aten::add.Tensor")["CPU"]
    assert told(added, 6) == [f"CPU: {row.place} [{row.kind}]"]


# What it leaves alone


def test_the_function_runs_once_and_its_results_are_the_same() -> None:
    runs = []

    def program() -> torch.Tensor:
        runs.append((w * w).sum())
        runs[-1].backward()
        return runs[-1]

    w = torch.randn(3, requires_grad=True)
    call_path(program)
    assert len(runs) == 1
    gradient, w.grad = w.grad, None
    program()
    assert torch.equal(runs[0], runs[1]) and torch.equal(gradient, w.grad)
    state = torch.get_rng_state()
    call_path(lambda: A + B)
    assert torch.equal(state, torch.get_rng_state())


def test_a_backward_pass_that_freed_what_was_saved() -> None:
    def program() -> torch.Tensor:
        loss = torch.stack([A, A]).mul(A).prod()
        loss.backward()
        return loss

    assert told(call_path(program, op="prod"), 5)[0].startswith("grad_fn is ProdBackward0, number ")

    def listed() -> torch.Tensor:
        x = torch.ones(2, 2, requires_grad=True)
        result = x[torch.tensor([0]), torch.tensor([1])]
        result.sum().backward()
        return result

    assert told(call_path(listed, op="index"), 5)[0].startswith("grad_fn is IndexBackward0")


def test_a_program_of_both_frameworks_is_looked_at_in_pytorch() -> None:
    assert call_path(lambda: (M, A + B)[1]).framework.startswith("PyTorch ")
    assert call_path(lambda x, y: y + y, M, A).framework.startswith("PyTorch ")
    assert call_path(lambda x: x + N, M).framework == "the mini-framework"


def test_an_exception_leaves_no_mode() -> None:
    def fails() -> None:
        A + B  # noqa: B018
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        call_path(fails)
    with pytest.raises(RuntimeError, match="must match the size"):
        call_path(lambda: A + torch.ones(4))
    assert torch._C._len_torch_dispatch_stack() == 0


def test_no_operator_and_another_than_there_is() -> None:
    with pytest.raises(ValueError, match=r"^call_path: the function called no operator of PyTorch; pass one that does"):
        call_path(lambda: 1 + 1)
    with pytest.raises(ValueError, match=r"no operator called is 'mul'; those called are aten\.add\.Tensor\.$"):
        call_path(lambda: A + B, op="mul")
    for name in ("add", "add.Tensor", "aten.add", "aten::add.Tensor", "aten.add.Tensor"):
        assert call_path(lambda: A + B, op=name).op == "aten.add.Tensor"


def test_a_compiled_function_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^call_path: a compiled function runs kernels that were generated for it"):
        call_path(torch.compile(torch.sin), A)


def test_elsewhere_than_on_linux_the_rest_is_shown_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    path = call_path(lambda: A + B)
    assert path.note == "C++ frames cannot be read on darwin, only on Linux; Python's are shown."
    assert [frame.name for frame in path if not frame.observer] == ["<lambda>"]
    assert told(path, 7) == ["structured_delegate: add.out; structured_inherits: TensorIteratorBase"]
    assert told(path, 6) and path.note in str(path) and path.note.split(",")[0] in path.figure().text


def test_a_torch_without_the_internals_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C._profiler, "gather_traceback")
    with pytest.raises(TorchInternalsError, match=r"has no torch\._C\._profiler\.gather_traceback"):
        call_path(lambda: A + B)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_reading_symbols_is_announced_once(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from glassbox.xray import _looking, _path_in_torch

    monkeypatch.setattr(_path_in_torch, "_symbols_read", [])
    call_path(lambda: A + B)
    assert capfd.readouterr().err == ""    # in a notebook or a file it would look like a warning
    monkeypatch.setattr(_path_in_torch, "_symbols_read", [])
    monkeypatch.setattr(_looking, "on_a_terminal", lambda stream: True)
    call_path(lambda: A + B)
    call_path(lambda: A + B)
    assert capfd.readouterr().err.count("call_path: reading C++ symbols") == 1


# Which function belongs where

BOXED = (
    "c10::impl::BoxedKernelWrapper<at::Tensor (at::Tensor const&), void>::call(c10::BoxedKernel const&, "
    "c10::OperatorHandle const&, c10::DispatchKeySet, at::Tensor const&)"
)
NAMES: dict[str, tuple[int, str]] = {
    "slot_nb_add": (1, "slot_nb_add"),
    "_object* torch::autograd::TypeError_to_NotImplemented_<&torch::autograd::THPVariable_add>(_object*, _object*)": (
        2,
        "TypeError_to_NotImplemented_<&THPVariable_add>",
    ),
    "torch::autograd::THPVariable_add(_object*, _object*, _object*)": (2, "THPVariable_add"),
    "pybind11::cpp_function::dispatcher(_object*, _object* const*, unsigned long, _object*)": (
        2,
        "pybind11::cpp_function::dispatcher",
    ),
    "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)": (
        3,
        "at::_ops::add_Tensor::call",
    ),
    "torch::autograd::VariableType::(anonymous namespace)::add_Tensor(c10::DispatchKeySet, at::Tensor const&)": (
        4,
        "VariableType::add_Tensor",
    ),
    "torch::ADInplaceOrView::(anonymous namespace)::t(c10::DispatchKeySet, at::Tensor const&)": (
        4,
        "ADInplaceOrView::t",
    ),
    "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)": (4, "at::autocast::cached_cast"),
    "at::functorch::dynamicLayerFrontFallback(c10::OperatorHandle const&, std::vector<c10::IValue>*)": (
        4,
        "at::functorch::dynamicLayerFrontFallback",
    ),
    "at::native::linear(at::Tensor const&, at::Tensor const&, std::optional<at::Tensor> const&)": (
        4,
        "at::native::linear",
    ),
    BOXED: (4, "BoxedKernelWrapper<...>::call"),
    "torch::autograd::SavedVariable::SavedVariable(at::Tensor const&, bool, bool)": (5, "SavedVariable::SavedVariable"),
    "at::_ops::t::redispatch(c10::DispatchKeySet, at::Tensor const&)": (6, "at::_ops::t::redispatch"),
    "at::(anonymous namespace)::(anonymous namespace)::wrapper_CPU_add_Tensor(at::Tensor const&)": (
        6,
        "at::wrapper_CPU_add_Tensor",
    ),
    "at::TensorIteratorBase::build(at::TensorIteratorConfig&)": (7, "at::TensorIteratorBase::build"),
    "at::meta::structured_add_Tensor::meta(at::Tensor const&)": (7, "at::meta::structured_add_Tensor::meta"),
    "at::native::structured_ufunc_add_CPU::impl(at::Tensor const&)": (8, "at::native::structured_ufunc_add_CPU::impl"),
    "void at::native::(anonymous namespace)::cpu_kernel<int>(at::TensorIteratorBase&, int&&)": (
        8,
        "at::native::cpu_kernel<...>",
    ),
    "somebody::elses(int)": (0, "somebody::elses"),
    "??": (0, "??"),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_station_and_the_short_name_of_a_function(name: str) -> None:
    assert (station_of(name), short_name(name)) == NAMES[name]


def test_what_is_cpythons_and_what_the_observers() -> None:
    assert is_cpython("_PyEval_EvalFrameDefault") and is_cpython("method_vectorcall_VARARGS_KEYWORDS")
    assert not is_cpython("at::_ops::t::call(at::Tensor const&)") and not is_cpython("sgemm_kernel")
    assert is_observer("(anonymous namespace)::pythonFallback(c10::OperatorHandle const&)")
    assert not is_observer("at::_ops::t::call(at::Tensor const&)")


def test_unknown_frames_are_kept_and_the_interpreters_ways_left_out() -> None:
    stack = [
        ("??", 0, "_start"),
        ("main.py", 3, "outer"),
        ("/b/Python-3.11.7/Python/ceval.c", 1, "_PyEval_EvalFrameDefault"),
        ("main.py", 7, "call"),
        ("/b/Python-3.11.7/Objects/call.c", 5, "_PyObject_Call"),
        ("main.py", 9, "inner"),
        ("/b/Python-3.11.7/Python/ceval.c", 1, "_PyEval_EvalFrameDefault"),
        ("/b/Python-3.11.7/Objects/abstract.c", 2, "binary_op1"),
        ("x.cpp", 4, "somebody::elses(int)"),
        ("??", 0, "at::_ops::t::call(at::Tensor const&)"),
        ("", 0, BOXED),
        ("PythonFallbackKernel.cpp", 0, "(anonymous namespace)::pythonFallback(c10::OperatorHandle const&)"),
        ("mode.py", 2, "__torch_dispatch__"),
        ("??", 0, "torch::CapturedTraceback::gather(bool, bool, bool)"),
    ]
    frames = frames_of(stack, ("main.py", "call"))
    assert [(f.name, f.place, f.station, f.observer, f.known) for f in frames] == [
        ("inner", "main.py:9", 0, False, True),
        ("binary_op1", "CPython: Objects/abstract.c:2", 1, False, True),
        ("somebody::elses", "x.cpp:4", 0, False, False),
        ("at::_ops::t::call", "", 3, False, True),
        ("BoxedKernelWrapper<...>::call", "", 4, True, True),
        ("pythonFallback", "PythonFallbackKernel.cpp", 0, True, True),
        ("__torch_dispatch__", "mode.py:2", 0, True, True),
    ]
    path = CallPath("", "aten.t.default", "PyTorch", frames)
    assert "at no station\n    somebody::elses  x.cpp:4" in str(path)
    assert {"station": "none", "#": 3, "seen": "somebody::elses", "by": "stack", "where": "x.cpp:4"} in path.rows()


# The mini-framework beside it


@pytest.fixture(scope="module")
def mini_added() -> CallPath:
    return call_path(lambda: M + N)


def test_the_mini_frameworks_stations(mini_added: CallPath) -> None:
    names = {station.nr: [frame.name for frame in mini_added.at(station.nr)] for station in STATIONS}
    assert names == {
        1: ["Tensor.__add__"],
        2: [],
        3: ["add.Tensor.call"],
        4: [
            "KernelTable.__missing__",
            "OperatorHandle.winner",
            "resolve_kernel",
            "highest_priority_key",
            "VariableType.add.Tensor",
        ],
        5: ["gradient_edge"],
        6: ["KernelTable.__missing__", "OperatorHandle.winner", "highest_priority_key", "binary.functional", "adopt"],
        7: [
            "build",
            "TensorIterator.compute_shape",
            "broadcast_shapes",
            "TensorIterator.compute_types",
            "common_dtype",
            "promote_types",
            "TensorIterator.reorder_dimensions",
            "TensorIterator.allocate_outputs",
            "output_strides",
            "TensorIterator.coalesce_dimensions",
            "coalesce_dimensions",
        ],
        8: [],
    }
    assert told(mini_added, 2) == ["Tensor.__add__ takes the arguments apart itself"]
    assert told(mini_added, 8) == ["numpy.add runs the loop"]
    assert told(mini_added, 5)[0].startswith("grad_fn is AddBackward0, number ")
    assert (mini_added.call, mini_added.op) == ("M + N", "aten.add.Tensor")


def test_both_frameworks_tell_the_same_of_key_sets_and_nodes(added: CallPath, mini_added: CallPath) -> None:
    assert told(added, 3) == told(mini_added, 3)
    assert [told(path, 5)[0].split(",")[0] for path in (added, mini_added)] == ["grad_fn is AddBackward0"] * 2


def test_minis_path_does_not_depend_on_what_ran_before(mini_added: CallPath) -> None:
    again = call_path(lambda: M + N)
    assert [(f.name, f.station) for f in again][1:] == [(f.name, f.station) for f in mini_added][1:]
    path = call_path(N.add_, 1)
    assert "to_tensor_or_number" in [frame.name for frame in path.at(2)]
    assert [frame.name for frame in path.at(4)][-2:] == ["VariableType.add_.Tensor", "ADInplaceOrView.add_.Tensor"]
    path = call_path(mini.mm, M, mini.ones(3, 2))
    assert ("_mm", 6) in [(frame.name, frame.station) for frame in path]
    assert told(path, 7) == ["no iterator was made: the kernel did without"]
    path = call_path(lambda: (M * N).sum(), op="sum")
    assert (path.op, path.others) == ("aten.sum.default", ("aten.mul.Tensor",))


def test_minis_node_is_the_calls_own() -> None:
    def named(program: Callable[[], Any], op: str = "") -> str:
        return told(call_path(program, op=op), 5)[0].split(",")[0]

    assert named(lambda: (M * N).sum()) == "grad_fn is MulBackward0"
    assert named(lambda: (M * N).sum(), "sum") == "grad_fn is SumBackward0"
    assert named(lambda: (M * N, None)[1]) == "grad_fn is MulBackward0"
    assert named(lambda: (N * 2, M * N)[1]) == "grad_fn is None"


def test_mini_leaves_the_profile_function_and_its_results_alone() -> None:
    def profile(frame: Any, event: str, arg: Any) -> None:
        pass

    sys.setprofile(profile)
    try:
        call_path(lambda: M + N)
        with pytest.raises(RuntimeError):
            call_path(lambda: M + mini.ones(4))
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    with pytest.raises(ValueError, match="the function called no operator of the mini-framework"):
        call_path(lambda: M.shape)
    with pytest.raises(ValueError, match=r"no operator called is 'mul'; those called are aten\.add\.Tensor\."):
        call_path(lambda: M + N, op="mul")


def test_mini_needs_no_torch() -> None:
    code = (
        "import sys; from glassbox import mini, xray; a = mini.ones(2); "
        "p = xray.call_path(lambda: a + a); p.figure(); print(p.op, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "aten.add.Tensor False"


# Words and pictures


def test_it_reads_station_by_station(mini_added: CallPath) -> None:
    lines = str(mini_added).splitlines()
    assert lines[0] == "M + N: aten.add.Tensor in the mini-framework"
    assert lines[2:6] == [
        "1 Python slot: the interpreter finds the type's slot or method",
        "    Tensor.__add__  <glassbox.mini: Tensor.__add__>:1",
        "2 C binding: Python arguments become C++ arguments",
        "    Tensor.__add__ takes the arguments apart itself  [generated code]",
    ]
    assert mini_added.to_markdown().splitlines()[0] == "| station | # | seen | by | where |"
    assert mini_added.rows()[0]["station"] == "the caller"
    assert mini_added._repr_html_().startswith("<svg")


def test_the_figure_has_two_columns(added: CallPath, mini_added: CallPath) -> None:
    both = mini_added.beside(added)
    assert both.width > added.figure().width
    assert "Tensor.__add__" in both.text and "VariableType::add_Tensor" in both.text
    for station in STATIONS:
        assert both.desc.count(f"{station.nr} {station.name}: ") == 2
    assert added.figure().title == f"the path of A + B in {added.framework}"


def test_a_frame_says_what_it_is() -> None:
    assert str(Frame("f")) == "f"
    assert str(Frame("f", observer=True)) == "f (the observer's)"
    assert str(Frame("f", known=False)) == "f (belongs to no station)"
    assert (Frame("f", file="a.py", line=3).place, Frame("f", file="a.cpp").place) == ("a.py:3", "a.cpp")


CALLS: dict[str, Callable[[], CallPath]] = {
    "torch.add(A, B)": lambda: call_path(torch.add, A, B),
    "torch.add(A, B, alpha=2)": lambda: call_path(torch.add, A, B, alpha=2),
    "A.t()": lambda: call_path(lambda: A.t()),
    "A.sum(0)": lambda: call_path(A.sum, 0),
}


@pytest.mark.parametrize("written", CALLS)
def test_the_call_as_it_is_written(written: str) -> None:
    assert CALLS[written]().call == written
