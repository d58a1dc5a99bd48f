"""What is often told wrong about PyTorch's internals, and what the installed torch says: one fact after the other.

Everything here asks torch itself, not the instruments, which have tests of their own against the same facts.
"""

import contextlib
import mmap
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

PACKAGE = Path(torch.__file__).parent
INCLUDE = PACKAGE / "include"


class Ops(TorchDispatchMode):
    """The names of the operators that reach the Python key."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


def keys(tensor: torch.Tensor) -> list[str]:
    return re.findall(r"\w+", str(torch._C._dispatch_keys(tensor)).partition("(")[2])


def local_keys() -> tuple[int, int]:
    included, excluded = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    return included.raw_repr(), excluded.raw_repr()


def row(op: str, key: str) -> str:
    lines = torch._C._dispatch_dump_table(op).splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith(f"{key}: "))


@contextlib.contextmanager
def hops_of(*ops: str) -> Iterator[list[tuple[str, str]]]:
    """(op, key) of each kernel of these operators that runs, by hooks around them."""
    seen: list[tuple[str, str]] = []
    found = []
    for op in ops:
        for line in torch._C._dispatch_dump_table(f"aten::{op}").splitlines():
            key, _, rest = line.partition(": ")
            if key in ("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU") and not rest.startswith("fallthrough"):
                found.append((op, key, torch.library.get_kernel(f"aten::{op}", key)))
    library = torch.library.Library("aten", "IMPL")
    for op, key, kernel in found:

        def hook(key_set: Any, *args: Any, op: str = op, key: str = key, kernel: Any = kernel, **kwargs: Any) -> Any:
            seen.append((op, key))
            return kernel.call_boxed(key_set, *args, **kwargs)

        library.impl(op, hook, key, with_keyset=True, allow_override=True)
    try:
        yield seen
    finally:
        library._destroy()


# Tensor and storage


def test_contiguous_is_not_strides_that_decrease_to_1() -> None:
    part = torch.zeros(4, 6)[:, :3]
    assert part.stride() == (6, 1) and not part.is_contiguous()
    one_row = torch.zeros(4).as_strided((1, 4), (1, 1))
    assert one_row.stride() == (1, 1) and one_row.is_contiguous()


def test_view_needs_compatible_strides_not_a_contiguous_source() -> None:
    part = torch.zeros(4, 6)[:, :3]
    assert part.view(2, 2, 3).stride() == (12, 6, 1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        part.view(12)


def test_the_use_count_is_the_storages_own_not_pythons() -> None:
    def use_count(tensor: torch.Tensor) -> int:
        return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))

    alone, a = torch.zeros(12), torch.arange(12).view(3, 4)
    others = a.T, a[1:, :2]
    # The handle that is asked through counts, and so does the arange that `_base` holds.
    assert use_count(alone) == 2
    assert use_count(a) == 5
    handles = alone.untyped_storage(), a.untyped_storage()
    assert sys.getrefcount(handles[0]) == sys.getrefcount(handles[1])
    pointers = {t.untyped_storage().data_ptr() for t in (a, *others)}
    assert pointers == {a.untyped_storage().data_ptr()}


# Dispatcher


def test_the_order_of_the_keys() -> None:
    high_to_low = [
        *("PythonDispatcher", "PreDispatch", "FuncTorchDynamicLayerFrontMode", "PythonTLSSnapshot"),
        *("FuncTorchGradWrapper", "FuncTorchVmapMode", "FuncTorchBatched", "AutocastCPU", "Tracer", "AutogradCPU"),
        *("ADInplaceOrView", "ZeroTensor", "Negative", "Conjugate", "Functionalize"),
        *("FuncTorchDynamicLayerBackMode", "Python", "Fake", "BackendSelect", "CPU"),
    ]
    header = (INCLUDE / "c10" / "core" / "DispatchKey.h").read_text(encoding="utf-8")
    enum = header[header.index("enum class DispatchKey :") : header.index("  EndOfFunctionalityKeys,")]
    place = {name: nr for nr, name in enumerate(re.findall(r"^  (\w+)", enum, flags=re.MULTILINE))}
    place |= {"CPU": place["Dense"], "AutogradCPU": place["AutogradFunctionality"]}
    assert high_to_low == sorted(high_to_low, key=lambda name: -place[name])


def test_torch_dispatch_is_below_autograd_and_autocast() -> None:
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16), Ops() as seen:
        (a @ b).sum()
    # Casts were made above, and autograd has its node already when the mode is asked.
    assert seen.names == ["_to_copy.default", "_to_copy.default", "mm.default", "sum.default"]

    class Asks(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradFunctionality)
            answers.append(excluded)
            return func(*args, **(kwargs or {}))

    answers: list[bool] = []
    with Asks():
        a + a
    assert answers == [True]


def test_there_is_no_key_called_func_torch_grad() -> None:
    header = (INCLUDE / "c10" / "core" / "DispatchKey.h").read_text(encoding="utf-8")
    names = set(re.findall(r"^  (\w+)", header, flags=re.MULTILINE))
    assert "FuncTorchGradWrapper" in names and "FuncTorchGrad" not in names


def test_composite_implicit_autograd_is_an_alias_that_fills_rows() -> None:
    library = torch.library.Library("told_wrong", "DEF")
    try:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CompositeImplicitAutograd")
        for key in ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA"):
            assert row("told_wrong::f", key).endswith("[math kernel]")
        library.impl("f", lambda x: x + 2, "CPU")
        # A row of its own displaces it there, and the autograd row above it goes back to the fallback.
        assert row("told_wrong::f", "CPU").endswith("[kernel]")
        assert row("told_wrong::f", "AutogradCPU").endswith("[backend fallback]")
        assert row("told_wrong::f", "CUDA").endswith("[math kernel]")
        assert torch._C._dispatch_is_alias_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    finally:
        library._destroy()


def test_the_autocast_key_is_there_while_autocast_is_off() -> None:
    assert "AutocastCPU" in keys(torch.ones(2))
    assert not any(name.startswith("Autocast") for name in keys(torch.ones(2, device="meta")))
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded
    assert excluded(torch._C.DispatchKey.AutocastCPU)
    with torch.autocast("cpu"):
        assert not excluded(torch._C.DispatchKey.AutocastCPU)


def test_a_per_backend_key_is_two_bits() -> None:
    bits = torch._C.DispatchKeySet
    cpu, autograd_cpu = (bits(getattr(torch._C.DispatchKey, key)).raw_repr() for key in ("CPU", "AutogradCPU"))
    cuda, autograd_cuda = (bits(getattr(torch._C.DispatchKey, key)).raw_repr() for key in ("CUDA", "AutogradCUDA"))
    for number in (cpu, autograd_cpu, cuda, autograd_cuda):
        assert number.bit_count() == 2
    assert (autograd_cpu & autograd_cuda).bit_count() == (cpu & cuda).bit_count() == 1
    assert (cpu & autograd_cpu).bit_count() == (cuda & autograd_cuda).bit_count() == 1


def test_fallthrough_keys_are_no_hops() -> None:
    a = torch.ones(2, requires_grad=True)
    assert {"ADInplaceOrView", "AutocastCPU"} <= set(keys(a))
    assert row("aten::add.Tensor", "ADInplaceOrView").startswith("fallthrough")
    with hops_of("add.Tensor") as hops:
        a + a
    assert hops == [("add.Tensor", "AutogradCPU"), ("add.Tensor", "CPU")]


def test_requires_grad_changes_no_key() -> None:
    plain, with_grad = torch.ones(2), torch.ones(2, requires_grad=True)
    assert keys(plain) == keys(with_grad) == ["CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"]
    with hops_of("add.Tensor") as hops:
        assert (plain + plain).grad_fn is None
    assert hops == [("add.Tensor", "AutogradCPU"), ("add.Tensor", "CPU")]
    with torch.inference_mode():
        assert keys(torch.ones(2)) == ["CPU", "AutocastCPU"]


def test_no_grad_and_eval_leave_the_keys_alone_and_inference_mode_does_not() -> None:
    usual = local_keys()
    with torch.no_grad():
        assert local_keys() == usual and not torch.is_grad_enabled()
    model = nn.Linear(2, 2).eval()
    with hops_of("addmm") as hops:
        assert model(torch.ones(1, 2)).requires_grad
        assert local_keys() == usual
    assert ("addmm", "AutogradCPU") in hops
    view = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView).raw_repr()
    autograd = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradFunctionality).raw_repr()
    with torch.inference_mode():
        included, excluded = local_keys()
    assert usual[0] & view and not included & view
    assert excluded & autograd and not usual[1] & autograd


@pytest.mark.skipif(sys.platform != "linux", reason="C++ frames can be had on Linux only")
def test_add_reaches_a_c_function_not_tensor_py_nor_pybind() -> None:
    from torch.utils._traceback import CapturedTraceback

    frames: list[Any] = []

    class Looks(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            frames.extend(CapturedTraceback.extract(cpp=True).summary())
            return func(*args, **(kwargs or {}))

    a = torch.ones(2)
    with Looks():
        a + a
    names = [frame.name for frame in frames]
    here = names.index(test_add_reaches_a_c_function_not_tensor_py_nor_pybind.__name__)
    call = next(nr for nr, name in enumerate(names) if "add_Tensor::call" in name)
    between = frames[here + 1 : call]
    assert any("slot_nb_add" in frame.name for frame in between)
    assert any("THPVariable_add" in frame.name for frame in between)
    assert not any("pybind11" in frame.name or frame.filename.endswith("_tensor.py") for frame in between)


@pytest.mark.skipif(not (PACKAGE / "lib" / "libtorch_cuda.so").is_file(), reason="this torch has no CUDA library")
def test_cudas_add_comes_from_the_generated_ufunc() -> None:
    with (PACKAGE / "lib" / "libtorch_cuda.so").open("rb") as file:
        library = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with library:
        assert library.find(b"structured_ufunc_add_CUDA") > 0
    import torchgen

    entries = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text("utf-8")
    (entry,) = re.findall(r"^- func: add\.out\(.*?(?=^- func|\Z)", entries, flags=re.MULTILINE | re.DOTALL)
    assert "ufunc_inner_loop:" in entry


def test_the_dispatcher_lies_in_aten_and_only_its_namespace_is_c10() -> None:
    header = INCLUDE / "ATen" / "core" / "dispatch" / "Dispatcher.h"
    assert re.search(r"namespace c10\b", header.read_text(encoding="utf-8"))
    assert not list((INCLUDE / "c10").rglob("Dispatcher.h"))
    assert (INCLUDE / "c10" / "core" / "DispatchKey.h").is_file()


# Autograd


def test_add_saves_its_alpha_and_no_tensor() -> None:
    saved: list[torch.Tensor] = []
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        total = torch.add(a, b, alpha=2)
        assert saved == []
        a * b
    assert len(saved) == 2
    assert total.grad_fn._saved_alpha == 2
    assert [name for name in dir(total.grad_fn) if name.startswith("_saved")] == ["_saved_alpha"]


def test_backward_is_counts_and_a_queue_not_a_list_sorted_before() -> None:
    """Of the nodes that are ready the newest runs first; leaves go before all others, and none before its inputs."""
    a = torch.ones(2, requires_grad=True)
    old = a.sin()
    new = a.cos()
    newest = new.exp()
    order: list[str] = []
    for tensor in (old, new, newest):
        node = tensor.grad_fn
        node.register_prehook(lambda grads, node=node: order.append(node.name()) or None)
    # `old` is ready as soon as the sum has run, and waits for what was made after it.
    (old + newest).sum().backward()
    assert order == ["ExpBackward0", "CosBackward0", "SinBackward0"]
    leaf = old.grad_fn.next_functions[0][0]
    assert leaf._sequence_nr() > newest.grad_fn._sequence_nr()


# Call path and compilation


def resnet_ops(under: Any) -> dict[str, int]:
    models = pytest.importorskip("torchvision.models", reason="ResNet-18 is torchvision's")
    model, x = models.resnet18(weights=None).eval(), torch.randn(1, 3, 64, 64)
    with under, Ops() as seen:
        model(x)
    return {name: seen.names.count(name) for name in dict.fromkeys(seen.names)}


BELOW = {
    "convolution.default": 20,
    "empty.memory_format": 20,
    "native_batch_norm.default": 20,
    "relu_.default": 17,
    "max_pool2d_with_indices.default": 1,
    "add_.Tensor": 8,
    "mean.dim": 1,
    "view.default": 1,
    "t.default": 1,
    "addmm.default": 1,
}


def test_what_a_mode_sees_of_resnet18() -> None:
    assert resnet_ops(torch.no_grad()) == BELOW
    assert resnet_ops(torch.enable_grad()) == {**BELOW, "detach.default": 17}
    assert resnet_ops(torch.inference_mode()) == {
        "conv2d.default": 20,
        "batch_norm.default": 20,
        "relu_.default": 17,
        "max_pool2d.default": 1,
        "add_.Tensor": 8,
        "adaptive_avg_pool2d.default": 1,
        "flatten.using_ints": 1,
        "linear.default": 1,
    }


def test_a_product_takes_a_transposed_matrix_without_a_copy() -> None:
    a, b = torch.randn(300, 200), torch.randn(300, 100)
    result_bytes = 200 * 100 * 4
    with Ops() as seen:
        a.T @ b
    assert seen.names == ["permute.default", "mm.default"]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        a.T @ b
    allocated = sum(max(0, event.self_cpu_memory_usage) for event in recorded.key_averages())
    assert allocated == result_bytes


def test_compile_captures_python_calls_and_modes_trace_below() -> None:
    captured: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        captured.extend(node.target for node in graph.graph.nodes if node.op.startswith("call"))
        return graph.forward

    compiled = torch.compile(lambda x: torch.relu(x + 1).sum(), backend=backend)
    x = torch.ones(3)
    assert compiled(x).item() == 6.0
    # Dynamo read bytecode: what it holds are Python's functions and methods, of which a dispatch mode sees none.
    assert [getattr(target, "__name__", target) for target in captured] == ["add", "relu", "sum"]
    assert not any(isinstance(target, torch._ops.OpOverload) for target in captured)
    from torch.fx.experimental.proxy_tensor import make_fx

    traced = make_fx(lambda x: torch.relu(x + 1).sum())(x)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets and all(isinstance(target, torch._ops.OpOverload) for target in targets)
