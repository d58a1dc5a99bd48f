"""Facts about dispatch keys of the installed torch: which bit is which, and what a tensor and a call bring."""

import subprocess
import sys
import threading
from contextlib import nullcontext
from functools import partial
from itertools import product

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from glassbox import mini, xray
from glassbox.records import KeyLayout
from glassbox.xray import TorchInternalsError, _key_header, _torch_internals
from glassbox.xray.key_sets import fallthroughs, key_sets_of, watch_program

LAYOUT = _key_header.torch_layout()


class PassOn(TorchDispatchMode):
    """A mode that does nothing but call again."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def calls_of(fn, *args):
    """Each operator call with its reckoned key sets."""
    calls = []
    watch_program("test", fn, args, {}, calls)
    return [(call, key_sets_of(call, call.framework.table(call.name))) for call in calls]


def test_bits_and_names_are_those_that_torch_prints():
    full = torch._C._dispatch_keyset_full().raw_repr()
    assert full == (1 << LAYOUT.size) - 1
    for bit in range(LAYOUT.size):
        for backend in range(len(LAYOUT.backends)):
            bits = 1 << bit | 1 << backend
            assert LAYOUT.keys(bits) == _torch_internals.key_names(bits)


def test_the_winner_of_a_set_is_the_one_that_torch_names():
    # torch's Python enum lacks some keys, for which asking fails; the sets are combinations of those that it has.
    names = [name for name in LAYOUT.functionalities if hasattr(torch._C.DispatchKey, name)]
    for high, low, backend in product(names[::3], names[1::5], LAYOUT.backends[::4]):
        bits = LAYOUT.bits(high, low, backend)
        found = torch._C.DispatchKeySet.from_raw_repr(bits).highestPriorityTypeId()
        assert LAYOUT.highest(bits) == found.name, (high, low, backend)


def test_the_header_knows_keys_that_the_python_enum_lacks():
    missing = {name for name in LAYOUT.functionalities if not hasattr(torch._C.DispatchKey, name)}
    assert {"Tracer", "Batched", "VmapMode", "MkldnnCPU", "DeferredInit"} <= missing


def test_one_bit_for_all_autograd_keys_and_one_for_each_backend():
    """Not one bit per key: AutogradCUDA is the pair of a functionality and a backend."""
    assert LAYOUT.pair("AutogradCUDA") == ("AutogradFunctionality", "CUDA")
    assert LAYOUT.pair("CUDA") == ("Dense", "CUDA")
    assert (
        LAYOUT.bits("AutogradCUDA") == LAYOUT.bits("AutogradFunctionality") | LAYOUT.bits("CUDA") & LAYOUT.backend_mask
    )
    assert len(LAYOUT.backends) == torch._C._dispatch_num_backends()
    both = LAYOUT.bits("AutogradCPU", "CUDA")
    assert LAYOUT.keys(both) == ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA")
    assert LAYOUT.keys(LAYOUT.remove(both, LAYOUT.bits("AutogradCPU"))) == ("CPU", "CUDA")


def test_names_that_are_no_keys_are_refused():
    with pytest.raises(KeyError, match="'CompositeImplicitAutograd' is an alias key, which has no bit"):
        LAYOUT.bits("CompositeImplicitAutograd")
    with pytest.raises(KeyError, match="'FuncTorchGrad' is unknown"):
        LAYOUT.bits("FuncTorchGrad")
    with pytest.raises(IndexError, match="has no name"):
        LAYOUT.bit_name(LAYOUT.size)


def test_a_header_that_is_missing_or_of_another_form_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "torch" / "__init__.py"))
    _torch_internals.header.cache_clear()
    with pytest.raises(TorchInternalsError, match=r"has no header c10/core/DispatchKey\.h in its package, which"):
        _torch_internals.header("c10/core/DispatchKey.h")
    _torch_internals.header.cache_clear()
    with pytest.raises(TorchInternalsError, match="list of dispatch keys of the known form"):
        _key_header.parse_header("enum class DispatchKey { A };")


def test_a_new_key_in_the_header_takes_its_place():
    text = _torch_internals.header("c10/core/DispatchKey.h")
    changed = _key_header.parse_header(
        text.replace("  Tracer,\n", "  Tracer,\n  // a comment, with a comma\n  Brandnew,\n", 1)
    )
    place = changed.functionalities.index("Brandnew")
    assert changed.functionalities[place - 1] == "Tracer"
    assert len(changed.functionalities) == len(LAYOUT.functionalities) + 1


def test_keys_of_a_tensor_raw_and_effective():
    found = xray.keys(torch.ones(3))
    assert found.raw.keys == ("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU")
    assert found.raw.bits == torch._C._dispatch_keys(torch.ones(3)).raw_repr()
    assert found.effective.keys == ("CPU", "BackendSelect", "ADInplaceOrView", "AutogradCPU")
    assert found.winner == "AutogradCPU"
    assert "AutocastCPU" in found.raw
    assert "AutocastCPU" not in found.effective
    assert [(row["bit"], row["name"]) for row in found.raw.rows()][-1] == (0, "CPU")
    assert found.raw.rows()[-2] == {"bit": 16, "name": "Dense", "kind": "functionality", "keys": "CPU"}


def test_requires_grad_changes_no_key():
    assert xray.keys(torch.ones(3)).raw.bits == xray.keys(torch.ones(3, requires_grad=True)).raw.bits


def test_a_tensor_made_in_inference_mode_has_no_autograd_keys():
    with torch.inference_mode():
        made = torch.ones(3)
    assert xray.keys(made).raw.keys == ("CPU", "AutocastCPU")


def test_every_cpu_tensor_has_its_autocast_key_and_a_meta_tensor_none():
    """With autocast off, the thread's excluded set holds it off."""
    assert "AutocastCPU" in xray.keys(torch.ones(3)).raw
    assert xray.keys(torch.ones(3, device="meta")).raw.keys == ("Meta", "ADInplaceOrView", "AutogradMeta")
    assert "AutocastCPU" in xray.keys(torch.ones(3)).of_role("excluded").functionalities
    with torch.autocast("cpu"):
        assert "AutocastCPU" not in xray.keys(torch.ones(3)).of_role("excluded").functionalities


def test_no_grad_leaves_the_threads_sets_and_inference_mode_changes_both():
    sets = {}
    for name, mode in (("none", None), ("no_grad", torch.no_grad()), ("inference", torch.inference_mode())):
        with mode or nullcontext():
            found = xray.keys(torch.ones(3))
        sets[name] = found.of_role("included").functionalities, set(found.of_role("excluded").functionalities)
    assert sets["no_grad"] == sets["none"]
    assert sets["none"][0] == ("BackendSelect", "ADInplaceOrView")
    assert sets["inference"][0] == ("BackendSelect",)
    assert sets["inference"][1] - sets["none"][1] == {"AutogradOther", "AutogradFunctionality", "AutogradNestedTensor"}


def test_the_keys_of_add_step_by_step():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3)
    assert (
        str(xray.keys(torch.add, a, b))
        == """\
aten.add.Tensor: AutogradCPU
step            keys                                                        bits
argument self   CPU, ADInplaceOrView, AutogradCPU, AutocastCPU              0x9400010001
argument other  CPU, ADInplaceOrView, AutogradCPU, AutocastCPU              0x9400010001
union           CPU, ADInplaceOrView, AutogradCPU, AutocastCPU              0x9400010001
+ included      BackendSelect, ADInplaceOrView                              0x404000000
- excluded      AutocastCPU (9 more that are not there)                     0x1ff8000000000
- fallthrough   BackendSelect, ADInplaceOrView (8 more that are not there)  0x28c78404000000
= effective     CPU, AutogradCPU                                            0x1000010001"""
    )


def test_a_call_without_tensors_goes_to_backend_select():
    found = xray.keys(torch.randn, 3)
    assert (found.op, found.winner, found.arguments) == ("aten.randn.default", "BackendSelect", {})


def test_a_number_is_a_cpu_tensor_to_the_dispatcher():
    """So a number beside a meta tensor brings the CPU, whose bit is lower."""
    found = xray.keys(lambda: torch.ones(3, device="meta") + 2)
    assert found.op == "aten.ones.default"
    call, sets = calls_of(lambda x: x + 2, torch.ones(3, device="meta"))[0]
    assert sets.arguments["other"].keys == ("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU")
    assert sets.effective.keys == ("CPU", "Meta", "AutogradCPU", "AutogradMeta")
    assert (sets.winner, call.brought[1].kind) == ("AutogradMeta", "number 2")


def test_a_number_in_inference_mode_has_no_autograd_keys_either():
    with torch.inference_mode():
        found = xray.keys(torch.mul, torch.ones(3), 2)
    assert found.arguments["other"].keys == ("CPU", "AutocastCPU")


def test_of_a_key_per_backend_the_row_of_the_arguments_backend_counts():
    """As in DispatchKeyExtractor.h; without arguments it is the first backend's row."""
    table = {
        "AutogradCUDA": "fallthrough registered at a.cpp:1 [kernel]",
        "AutogradCPU": "registered at b.cpp:1 [kernel]",
    }
    masked = {
        names: LAYOUT.functionalities_of(fallthroughs(LAYOUT, table, LAYOUT.bits(*names)))
        for names in ((), ("CPU",), ("CUDA",), ("CPU", "CUDA"))
    }
    gone = ("AutogradFunctionality",)
    assert masked == {(): (), ("CPU",): (), ("CUDA",): gone, ("CPU", "CUDA"): gone}


def test_lists_optional_tensors_and_generators_are_arguments_too():
    a = torch.ones(3)
    assert list(xray.keys(torch.cat, [a, a]).arguments) == ["tensors[0]", "tensors[1]"]
    assert list(xray.keys(torch.nn.functional.linear, a, torch.ones(2, 3), torch.ones(2)).arguments) == [
        "input",
        "weight",
        "bias",
    ]
    found = xray.keys(lambda: torch.randn(3, generator=torch.Generator()))
    assert found.arguments["generator"].keys == ("CPU",)


def test_python_keys_lie_below_autograd_and_autocast():
    """A dispatch mode does not sit on top: PythonTLSSnapshot does, which only notes the thread's sets."""
    with PassOn():
        found = xray.keys(torch.ones(3))
    assert found.of_role("included").functionalities == (
        "BackendSelect",
        "Python",
        "ADInplaceOrView",
        "PythonTLSSnapshot",
    )
    keys = found.effective.keys
    assert keys.index("Python") < keys.index("AutogradCPU") < keys.index("PythonTLSSnapshot")


def test_a_tensor_that_vmap_wraps_has_one_key_more():
    seen = []
    torch.vmap(lambda x: (seen.append(xray.keys(x)), x.sin())[1])(torch.ones(2, 3))
    assert seen[0].raw.keys[-1] == "FuncTorchBatched"
    assert seen[0].winner == "FuncTorchDynamicLayerFrontMode"


# a wheel without CUDA cannot even play one
DEVICES = ("cpu", "meta", "fake cuda") if torch.version.cuda is not None else ("cpu", "meta")
MODES = ("grad", "no_grad", "inference")


def combinations():
    return product(DEVICES, (False, True), (False, True), MODES, (False, True), (False, True))


def tensors_on(device, requires_grad):
    """Two batches of matrices; fakes for a GPU that need not be there."""
    if device != "fake cuda":
        return [torch.ones(2, 3, 3, device=device, requires_grad=requires_grad) for _ in range(2)]
    with FakeTensorMode():
        return [torch.ones(2, 3, 3, device="cuda", requires_grad=requires_grad) for _ in range(2)]


def run_mm(x, y, device, autocast, mode, vmap, dispatch_mode):
    """One matrix product inside of everything that was asked for."""
    contexts = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}
    kind = device.rpartition(" ")[2] if device != "meta" else "cpu"
    before = torch.is_autocast_enabled(kind)
    torch.set_autocast_enabled(kind, autocast)
    try:
        with contexts[mode](), PassOn() if dispatch_mode else nullcontext():
            return torch.vmap(torch.mm)(x, y) if vmap else torch.mm(x[0], y[0])
    finally:
        torch.set_autocast_enabled(kind, before)


def winner_by_hand(device, autocast, mode, vmap, dispatch_mode):
    """What the order of the keys says, high to low."""
    backend = {"cpu": "CPU", "meta": "Meta", "fake cuda": "CUDA"}[device]
    if vmap:
        return "FuncTorchDynamicLayerFrontMode"
    if dispatch_mode or device == "fake cuda":
        return "PythonTLSSnapshot"
    if autocast and device != "meta":
        return f"Autocast{backend}"
    return backend if mode == "inference" else f"Autograd{backend}"


def test_what_is_reckoned_is_what_the_dispatcher_works_out():
    """Device x requires_grad x autocast x grad mode x vmap x a dispatch mode."""
    calls, last = [], []
    operands = {(device, grad): tensors_on(device, grad) for device in DEVICES for grad in (False, True)}

    def program():
        for device, requires_grad, autocast, mode, vmap, dispatch_mode in combinations():
            x, y = operands[device, requires_grad]
            run_mm(x, y, device, autocast, mode, vmap, dispatch_mode)
            last.append(len(calls) - 1)

    watch_program("test", program, (), {}, calls)
    tables = {call.name: call.framework.table(call.name) for call in calls}
    sets = [key_sets_of(call, tables[call.name]) for call in calls]
    assert [call.op for call, each in zip(calls, sets, strict=True) if each.effective.bits != call.key_set] == []
    for nr, (device, _, autocast, mode, vmap, dispatch_mode) in zip(last, combinations(), strict=True):
        assert calls[nr].op == "aten.mm.default"
        assert sets[nr].winner == winner_by_hand(device, autocast, mode, vmap, dispatch_mode)
        around = calls[nr].around
        assert (around.inference, around.grad) == (mode == "inference", mode == "grad")
        assert around.transforms == ((("vmap", 1),) if vmap else ())
        assert ("PassOn" in around.modes) == dispatch_mode
    assert len(last) == 48 * len(DEVICES)


PROGRAMS = {
    "backward": lambda a, b: (a * b).sum().backward(),
    "grad transform": lambda a, b: torch.func.grad(lambda x: x.sin().sum())(b),
    "hessian": lambda a, b: torch.func.hessian(lambda x: (x**3).sum())(b),
    "views and writes": lambda a, b: b.clone()[1:].add_(1).t(),
    "conjugate": lambda a, b: torch.complex(b, b).conj().imag + 1,
    "numbers": lambda a, b: (2**b, b // 2, torch.where(b > 0, 1.0, b), torch.clamp(b, 0.1, torch.tensor(3.0))),
    "sparse": lambda a, b: torch.eye(3).to_sparse() @ torch.ones(3, 2),
    "out": lambda a, b: torch.add(b, b, out=torch.empty(3)),
    "parameters": lambda a, b: torch.nn.Linear(3, 2)(b),
    "fakes": lambda a, b: FakeTensorMode().from_tensor(b) + 1,
    "recurrent, with undefined gradients": lambda a, b: torch.nn.LSTM(4, 5)(torch.ones(2, 3, 4))[0].sum().backward(),
    "jacobian": lambda a, b: torch.autograd.functional.jacobian(lambda x: x**2, b, vectorize=True),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_reckoning_holds_for_programs(name):
    a, b = torch.ones(3, requires_grad=True), torch.arange(3.0)
    found = calls_of(PROGRAMS[name], a, b)
    assert [call.op for call, sets in found if sets.effective.bits != call.key_set] == []


def test_an_undefined_tensor_brings_autograd_other():
    found = calls_of(lambda: torch.nn.LSTM(4, 5)(torch.ones(2, 3, 4))[0].sum().backward())
    call, sets = next(each for each in found if each[0].op == "aten.mkldnn_rnn_layer_backward.default")
    assert sets.arguments["grad_hy, grad_cy"].keys == ("ADInplaceOrView", "AutogradOther")
    assert call.brought[-1].kind == "undefined tensor"


def state():
    include, exclude = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    dumps = [torch._C._dispatch_dump(name) for name in ("aten::add.Tensor", "aten::mm", "aten::randn", "prims::add")]
    tables = [torch._C._dispatch_dump_table(name) for name in ("aten::add.Tensor", "aten::detach")]
    return (
        include.raw_repr(),
        exclude.raw_repr(),
        torch.is_grad_enabled(),
        dumps,
        tables,
        torch.get_rng_state().tolist(),
    )


def test_looking_changes_no_result_and_leaves_nothing_behind():
    def program(weight, x):
        loss = torch.nn.functional.linear(x, weight).relu().mul(2).sum() + x.exp().add_(1).sum() / 3
        loss.backward()
        return loss

    results = []
    for look in (False, True):
        torch.manual_seed(0)
        weight, x = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3)
        before, got = state(), []
        run = partial(lambda w, y, out: out.append(program(w, y)), weight, x, got)
        if look:
            xray.keys(run)
        else:
            run()
        assert state() == before
        results.append((got[0], weight.grad, x))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_an_exception_passes_and_leaves_nothing_behind():
    before = state()
    with pytest.raises(ZeroDivisionError):
        xray.keys(lambda: torch.ones(3) + 1 / 0)
    with pytest.raises(RuntimeError, match="size of tensor"):
        xray.keys(lambda: torch.ones(3) + torch.ones(4))
    with pytest.raises(RuntimeError, match="are being watched already"):
        xray.keys(lambda: xray.keys(torch.add, torch.ones(3), 1))
    assert state() == before


def test_other_threads_go_on_unseen():
    ops = []

    def program():
        other = threading.Thread(target=lambda: torch.ones(3).exp())
        other.start()
        other.join()
        return torch.ones(3).sin()

    ops += [call.op for call, _ in calls_of(program)]
    assert ops == ["aten.ones.default", "aten.sin.default"]


def test_what_cannot_be_looked_at_is_said():
    with pytest.raises(TypeError, match="int is neither a tensor nor a function"):
        xray.keys(3)
    with pytest.raises(TypeError, match="a tensor is asked for alone"):
        xray.keys(torch.ones(3), torch.ones(3))
    with pytest.raises(ValueError, match="called no operator that the dispatcher saw"):
        xray.keys(lambda: 3)
    for compiled in (torch.compile(torch.sin), torch.compile(torch.nn.ReLU())):
        with pytest.raises(ValueError, match="keys: a compiled function runs kernels that were generated for it"):
            xray.keys(compiled, torch.ones(3))
    assert xray.keys(torch.ones(3, requires_grad=True).detach).op == "aten.detach.default"


def test_mini_tensors_have_the_same_keys():
    a, b = mini.ones(3, requires_grad=True), mini.ones(3)
    real = xray.keys(torch.add, torch.ones(3), torch.ones(3))
    found = xray.keys(mini.add, a, b)
    assert (found.op, found.winner) == (real.op, real.winner)
    assert [(step.role, step.name) for step in found.steps] == [(step.role, step.name) for step in real.steps]
    for role in ("argument", "union", "included", "excluded", "effective"):
        assert found.of_role(role).bits == real.of_role(role).bits
    assert xray.keys(a).raw.bits == xray.keys(torch.ones(3)).raw.bits
    assert found.layout == LAYOUT


def test_the_mini_reckoning_is_the_mini_dispatchers():
    def program():
        with mini.autocast("cpu"):
            y = mini.vmap(mini.mm)(mini.ones(2, 3, 3), mini.ones(2, 3, 3))
        with mini.no_grad():
            y = y.sum() + 2
        with mini.inference_mode():
            y = mini.ones(3).sin()
        return mini.randn(3), y.to("sim")

    found = calls_of(program)
    assert [call.op for call, sets in found if sets.effective.bits != call.key_set] == []
    assert {sets.winner for _, sets in found} >= {
        "FuncTorchDynamicLayerFrontMode",
        "BackendSelect",
        "AutogradCPU",
        "CPU",
    }


def test_rows_and_the_layout_are_plain_data():
    found = xray.keys(torch.ones(3))
    assert found.to_markdown().startswith("| step | keys | bits |")
    assert "<svg" in found._repr_html_()
    assert isinstance(found.layout, KeyLayout)
    assert found.raw == xray.keys(torch.zeros(7)).raw


def test_mini_needs_no_torch():
    code = (
        "import sys; from glassbox import mini, xray; a = mini.ones(3); xray.keys(a)._repr_html_(); "
        "xray.keys(mini.add, a, a); xray.table(mini.ops.aten.add.Tensor); xray.why(mini.add, a, a)._repr_html_(); "
        "xray.cheat_sheet('mini'); xray.native_function(mini.ops.aten.add.Tensor); "
        "xray.derivative(mini.ops.aten.add.Tensor); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
