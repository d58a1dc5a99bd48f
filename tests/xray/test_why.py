"""Facts about why a call goes to its kernel: what is reckoned is what really ran, in every context."""

import re
from itertools import product

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from glassbox import mini, xray
from glassbox.records import DispatchRow, Hop, Onion, Why
from glassbox.xray import hops
from glassbox.xray.key_sets import watch_program
from glassbox.xray.reasons import _hops_of


class PassOn(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


# A build without CUDA refuses autocast for it, also over fake tensors.
WITH_CUDA = torch.version.cuda is not None
CASES = list(
    product(
        ("cpu", "meta", *(["fake"] if WITH_CUDA else [])),
        ("grad", "no_grad", "inference"),
        (False, True),
        (False, True),
        (False, True),
    )
)
GRAD_MODES = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}


@pytest.fixture(scope="module")
def seen():
    """One look at everything: label -> the WhyCalls under it. Hooks around all kernels take seconds, hence one run."""
    a, b = torch.ones(3, requires_grad=True), torch.arange(3.0)
    with FakeTensorMode():
        fake = torch.ones(2, 3, 3, device="cuda")
    operands = {"cpu": torch.ones(2, 3, 3), "meta": torch.ones(2, 3, 3, device="meta"), "fake": fake}
    frozen = torch.inference_mode()(torch.ones)(3)
    marks = []

    def mark(label):
        marks.append((label, torch.eye(1)))

    def program():
        mark("add")
        torch.add(a, b)
        mark("t")
        operands["cpu"][0].t()
        mark("randn")
        torch.randn(3)
        mark("number")
        b + 2
        mark("in place")
        b.clone().add_(1)
        mark("conj")
        torch.complex(b, b).conj() + 1
        mark("sparse")
        torch.eye(3).to_sparse() @ torch.ones(3, 1)
        mark("frozen")
        frozen * 2
        mark("grad transform")
        torch.func.grad(lambda x: x.sin().sum())(b)
        mark("backward")
        (a * b).sum().backward()
        mark("linear")
        torch.nn.functional.linear(b, torch.ones(2, 3))
        mark("python kernel")
        with torch.inference_mode():
            torch.add(operands["meta"], operands["meta"])
        torch.add(b, b)
        b.sin()
        for case in CASES:
            device, mode, autocast, vmap, dispatch_mode = case
            x = operands[device]
            kind = "cuda" if device == "fake" else "cpu"
            mark(case)
            torch.set_autocast_enabled(kind, autocast)
            try:
                with GRAD_MODES[mode](), PassOn() if dispatch_mode else GRAD_MODES[mode]():
                    torch.vmap(torch.mm)(x, x) if vmap else torch.mm(x[0], x[1])
            finally:
                torch.set_autocast_enabled(kind, False)

    found = xray.why(program)
    parts, label = {}, None
    labels = iter(label for label, _ in marks)
    for call in found:
        if call.op == "aten.eye.default" and (not parts or not _is_sparse_eye(call, parts, label)):
            label = next(labels)
            parts[label] = []
        else:
            parts[label].append(call)
    assert next(labels, None) is None
    return found, parts


def _is_sparse_eye(call, parts, label):
    """The eye of the program itself, which is no mark."""
    return label == "sparse" and not parts["sparse"]


def test_what_is_reckoned_is_what_ran(seen):
    found, _ = seen
    assert [(call.op, call.differences()) for call in found if not call.agrees] == []
    assert [call.op for call in found if not len(call.hops)] == []
    inferred = [call for call in found if call.hops[0].inferred]
    assert {call.row.file.endswith(".py") for call in inferred} <= {True}
    assert found.agrees


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_winner_in_every_context(seen, case):
    """Device x grad mode x autocast x vmap x a dispatch mode: the order of the keys decides."""
    device, mode, autocast, vmap, dispatch_mode = case
    call = seen[1][case][-1]
    backend = {"cpu": "CPU", "meta": "Meta", "fake": "CUDA"}[device]
    if vmap:
        expected = "FuncTorchDynamicLayerFrontMode"
    elif dispatch_mode or device == "fake":
        expected = "PythonTLSSnapshot"
    elif autocast and device == "cpu":
        expected = "AutocastCPU"
    else:
        expected = backend if mode == "inference" else f"Autograd{backend}"
    assert call.op == "aten.mm.default"
    assert (call.winner, call.hops[0].key, call.row.key) == (expected, expected, expected)
    words = "; ".join(call.context)
    assert ("inference_mode" in words) == (mode == "inference")
    assert ("gradients are off, which changes no key" in words) == (mode == "no_grad")
    assert ("vmap at level 1" in words) == vmap
    assert ("dispatch mode PassOn" in words) == dispatch_mode
    assert ("autocast is on" in words) == autocast


def one(seen, label):
    return Why(tuple(seen[1][label]))


def test_why_add_goes_to_autograd_as_it_prints(seen):
    # A long cell goes on in the next line.
    text = re.sub(r"\n +", " ", str(one(seen, "add")))
    text = re.sub(r"(_\d+)?\.cpp:\d+", ".cpp", text)
    assert [" | ".join(re.split(r"  +", line)) for line in text.splitlines()] == [
        "aten.add.Tensor goes to AutogradCPU",
        "step | key | because",
        "arguments self, other | AutocastCPU | every tensor on CPU has it; it counts only while autocast is on",
        "arguments self, other | AutogradCPU | every tensor that was made outside of inference_mode has it, "
        "requires_grad or not",
        "arguments self, other | ADInplaceOrView | every tensor that was made outside of inference_mode has it",
        "arguments self, other | CPU | it lies on CPU",
        "+ included | ADInplaceOrView | every thread starts with it",
        "+ included | BackendSelect | every thread starts with it",
        "- excluded | AutocastCPU | autocast is off for CPU",
        "- fallthrough | ADInplaceOrView | its row is a fallthrough: this operator has nothing to do there "
        "(aten/src/ATen/core/VariableFallbackKernel.cpp)",
        "- fallthrough | BackendSelect | its row is a fallthrough: this operator has nothing to do there "
        "(aten/src/ATen/core/BackendSelectFallbackKernel.cpp)",
        "= effective | CPU, AutogradCPU | what the call's key set is",
        "highest | AutogradCPU | autograd kernel at torch/csrc/autograd/generated/VariableType.cpp: registered to the "
        "alias key Autograd, which fills every autograd row that has nothing better",
        "first kernel | aten.add.Tensor @ AutogradCPU | autograd kernel at "
        "torch/csrc/autograd/generated/VariableType.cpp",
        ". then | aten.add.Tensor @ CPU | kernel at build/aten/src/ATen/RegisterCPU.cpp",
    ]


def test_the_set_has_more_keys_than_kernels_run(seen):
    """Redispatch depth is not the number of keys: fallthroughs are masked out before."""
    (call,) = seen[1]["add"]
    assert len(call.key_sets.arguments["self"].keys) == 4
    assert [hop.key for hop in call.hops] == ["AutogradCPU", "CPU"]


def test_a_view_and_a_write_pass_by_adinplaceorview(seen):
    for label in ("t", "in place"):
        call = seen[1][label][-1]
        assert "ADInplaceOrView" in call.key_sets.effective
        assert [hop.key for hop in list(call.hops)[:3]] == ["AutogradCPU", "ADInplaceOrView", "CPU"]


def test_randn_goes_to_backend_select_and_then_to_the_backend(seen):
    (call,) = seen[1]["randn"]
    assert [hop.key for hop in list(call.hops)[:2]] == ["BackendSelect", "CPU"]
    reasons = {(each.step, each.key): each.because for each in call.origins}
    assert reasons["+ included", "BackendSelect"] == "every thread starts with it"
    assert "below autograd" in reasons["- excluded", "ADInplaceOrView"]


def test_a_number_beside_a_tensor_is_an_argument(seen):
    (call,) = seen[1]["number"]
    because = {each.because for each in call.origins if each.step == "argument other"}
    assert "number 2 is made a 0-d tensor on the CPU" in because


def test_kinds_of_tensors_have_their_reasons(seen):
    def reasons(label, nr=-1):
        return {each.key: each.because for each in seen[1][label][nr].origins if each.step.startswith("argument")}

    assert reasons("conj")["Conjugate"] == "its conjugation is still to be carried out"
    assert any(each.get("SparseCPU") for each in [reasons("sparse", nr) for nr in range(len(seen[1]["sparse"]))])
    assert {each.key: each.because for each in seen[1]["frozen"][0].origins if each.step == "argument self"}["-"] == (
        "no autograd keys: it was made in inference_mode"
    )
    assert reasons("grad transform", 0)["FuncTorchGradWrapper"] == "grad, vjp or jvp has wrapped it (level 1)"
    if not WITH_CUDA:
        return
    fake = seen[1][("fake", "grad", False, False, False)][-1]
    assert {each.key: each.because for each in fake.origins}[
        "Python"
    ] == "FakeTensor has a __torch_dispatch__ of its own"


def test_a_dispatch_mode_is_met_below_autograd(seen):
    call = seen[1][("cpu", "grad", False, False, True)][-1]
    reasons = {(each.step, each.key): each.because for each in call.origins}
    assert reasons["+ included", "Python"] == "a dispatch mode is on: PassOn"
    keys = [hop.key for hop in call.hops if hop.op == call.op]
    assert keys[:3] == ["PythonTLSSnapshot", "AutogradCPU", "Python"]


def test_autocast_casts_and_calls_again(seen):
    call = seen[1][("cpu", "grad", True, False, False)][-1]
    assert [(hop.op, hop.key) for hop in call.hops if hop.depth == 1] == [
        ("aten.to.dtype", "AutogradCPU"),
        ("aten.to.dtype", "AutogradCPU"),
        ("aten.mm.default", "AutogradCPU"),
    ]


def test_backward_calls_are_told_too(seen):
    ops = [call.op for call in seen[1]["backward"]]
    assert ops[:2] == ["aten.mul.Tensor", "aten.sum.default"]
    assert "aten.expand.default" in ops


def test_a_kernel_from_python_that_cannot_be_watched_is_inferred_and_the_next_call_keeps_its_own(seen):
    meta, cpu, sin = seen[1]["python kernel"]
    assert meta.row.file.endswith(".py")
    assert meta.hops[0].key == "Meta"
    assert all(hop.depth > 0 for hop in list(meta.hops)[1:])
    for call in (cpu, sin):
        assert [(hop.op, hop.key) for hop in call.hops] == [(call.op, "AutogradCPU"), (call.op, "CPU")]


def test_a_call_that_was_not_watched_does_not_take_the_next_ones_hops():
    calls = []
    meta = torch.ones(2, device="meta")
    with torch.inference_mode():
        watch_program("test", torch.add, (meta, meta), {}, calls)
    watch_program("test", torch.add, (torch.ones(2), torch.ones(2)), {}, calls)
    rows = [DispatchRow("Meta", "kernel", "torch/_meta.py:1"), DispatchRow("AutogradCPU", "autograd kernel", "a.cpp:1")]
    seen_second = Onion((Hop("aten.add.Tensor", "AutogradCPU", calls[1].key_set, (), "autograd kernel"),))
    first, second = _hops_of(calls, rows, seen_second)
    assert [hop.inferred for hop in first] == [True]
    assert second == seen_second


def test_a_composite_says_what_it_is(seen):
    call = seen[1]["linear"][-1]
    assert (call.op, call.row.kind, call.row.registered_to) == (
        "aten.linear.default",
        "math kernel",
        "CompositeImplicitAutograd",
    )
    assert "it calls other operators" in call.verdict


@pytest.fixture
def without_hooks(monkeypatch):
    """Errors are the same whether kernels are watched or not."""

    def only_run(run):
        run()
        return Onion(())

    monkeypatch.setattr(hops, "onion", only_run)


def test_a_row_without_a_kernel_is_explained(without_hooks):
    found = xray.why(torch.linalg.cholesky_ex, torch.eye(3).to_sparse())
    assert found.error == "Could not run 'aten::linalg_cholesky_ex' with arguments from the 'SparseCPU' backend"
    assert [(row.key, row.kind) for row in found[0].layers] == [
        ("AutogradCPU", "autograd kernel"),
        ("SparseCPU", "missing"),
    ]
    assert "nothing is registered: a call that comes here fails" in str(found)
    assert "it failed: Could not run" in found.caption()


def test_other_exceptions_pass_and_nothing_is_left(without_hooks):
    before = torch._C._dispatch_dump("aten::add.Tensor"), torch._C._dispatch_tls_local_include_set().raw_repr()

    def wrong():
        torch.ones(3).sin()
        raise NotImplementedError("of the program's own")

    with pytest.raises(NotImplementedError, match="of the program's own"):
        xray.why(wrong)
    with pytest.raises(RuntimeError, match="size of tensor"):
        xray.why(torch.add, torch.ones(3), torch.ones(4))
    with pytest.raises(ValueError, match="why: the function called no operator"):
        xray.why(lambda: 3)
    with pytest.raises(TypeError, match="why: int cannot be called"):
        xray.why(3)
    after = torch._C._dispatch_dump("aten::add.Tensor"), torch._C._dispatch_tls_local_include_set().raw_repr()
    assert after == before


def test_a_difference_would_be_told(without_hooks):
    (call,) = xray.why(torch.add, torch.ones(3), torch.ones(3))
    wrong = type(call)(call.op, call.key_sets, call.origins, call.layers, call.seen | 1 << 16 + 23, call.hops)
    assert not wrong.agrees
    assert "but the dispatcher worked out CPU, AutogradCPU, AutocastCPU" in wrong.caption()
    assert "but the dispatcher worked out" in wrong.figure().text


def test_mini_calls_are_explained_in_the_same_words(seen):
    found = xray.why(mini.add, mini.ones(3, requires_grad=True), mini.ones(3))
    (call,), (real,) = found, seen[1]["add"]
    assert found.agrees
    assert [(each.step, each.key) for each in call.origins] == [(each.step, each.key) for each in real.origins]
    assert [(hop.op, hop.key, hop.kind) for hop in call.hops] == [(hop.op, hop.key, hop.kind) for hop in real.hops]


def test_mini_in_every_context():
    x = mini.ones(2, 3, 3)

    def program():
        for mode in (mini.enable_grad, mini.no_grad, mini.inference_mode):
            for on in (False, True):
                with mode(), mini.autocast("cpu", enabled=on):
                    mini.mm(x[0], x[1])
                    mini.vmap(mini.mm)(x, x)

    found = xray.why(program)
    assert [call.differences() for call in found if not call.agrees] == []
    winners = [call.winner for call in found if call.op == "aten.mm.default"]
    front = "FuncTorchDynamicLayerFrontMode"
    assert winners == ["AutogradCPU", front, "AutocastCPU", front] * 2 + ["CPU", front, "AutocastCPU", front]


def test_mini_without_a_kernel(without_hooks):
    from glassbox.mini import library

    with library.Library("why_test", "DEF") as made:
        made.define("nothing(Tensor self) -> Tensor")
        found = xray.why(mini.ops.why_test.nothing, mini.ones(3))
    assert found.error.startswith("Could not run 'why_test::nothing'")
    assert found[0].layers[-1].kind == "missing"


def test_a_record_of_several_calls(seen):
    found, _ = seen
    assert found.rows()[0] == {
        "#": 0,
        "op": "aten.eye.default",
        "goes to": "BackendSelect",
        "row": "kernel",
        "place": found[0].row.place,
        "hops": len(found[0].hops),
        "as reckoned": True,
    }
    assert len(found.figures()) == len(found)
    html = one(seen, "backward")._repr_html_()
    assert html.count("<svg") == min(4, len(seen[1]["backward"]))
