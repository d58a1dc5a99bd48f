"""Key families: a sheet of all dispatch keys in true priority order, with a sentence each (c10/core/DispatchKey.h).

Order, bits and names are read from the installed torch; the sentences are here. A key without one is kept and marked.
"""

from __future__ import annotations

from typing import Any

from ..records import CheatSheet, KeyEntry
from ..records.key_family import family
from ..records.key_set import KeyLayout

_DOES = {
    "PythonDispatcher": "hands every call to Python before C++ decides anything (torch._dispatch.python, for tracing)",
    "PreDispatch": "lets make_fx(pre_dispatch=True) and export record a call before autograd and autocast see it",
    "TESTING_ONLY_GenericMode": "a free key for tests that all calls of a thread can pass; xray.why watches there",
    "TESTING_ONLY_GenericWrapper": "a free key for tests of tensors that wrap others",
    "FuncTorchDynamicLayerFrontMode": "sends a call to the innermost transform (vmap, grad, jvp, functionalize)",
    "PythonTLSSnapshot": "notes the thread's key sets on the way in, which __torch_dispatch__ gets back below",
    "DeferredInit": "records how a module was made, for torchdistx, which is not part of PyTorch",
    "FuncTorchGradWrapper": "is on tensors that grad, vjp or jvp wrapped; its kernel unwraps those of an ended one",
    "VmapMode": "the older vmap's own: refuses random operators inside of it",
    "Batched": "the older vmap's batching rules, which is_grads_batched of autograd.grad uses",
    "FuncTorchVmapMode": "lets random operators act by vmap's randomness=, also those that take no tensor",
    "BatchedNestedTensor": "batching rules for a vmap over nested tensors",
    "FuncTorchBatched": "vmap's batching rules: the operator for one example, done for all of them at once",
    "AutocastCPU": "autocast: casts the arguments to the operator's dtype and calls again without this key",
    "Tracer": "torch.jit.trace: writes the call into its graph",
    "AutogradNestedTensor": "records a node for nested tensors",
    "AutogradFunctionality": "records a node of the backward graph where an argument requires grad, and redispatches",
    "AutogradOther": "the same for backends that have no autograd key of their own",
    "ADInplaceOrView": "bumps the version of what is written in place, tells a view its base, else falls through",
    "ZeroTensor": "makes true zeros of a tensor that is known to be zero and has no memory",
    "Negative": "carries out the negation that a view such as x.conj().imag has put off",
    "Conjugate": "carries out the conjugation that x.conj() has put off",
    "Functionalize": "replaces writes and views by operators that return new tensors, for compilers",
    "FuncTorchDynamicLayerBackMode": "takes the innermost transform off and calls again for the next one",
    "Python": "calls __torch_dispatch__ of the innermost mode or of a subclass, below autograd and autocast",
    "Fake": "the C++ side of FakeTensor: shapes without data, below all dispatch modes",
    "BackendSelect": "finds the backend of a call without tensors, such as randn, from its device argument",
    "NestedTensor": "kernels for nested tensors",
    "SparseCsr": "kernels for compressed sparse tensors (CSR, CSC, BSR, BSC)",
    "Sparse": "kernels for sparse COO tensors",
    "MkldnnCPU": "kernels for tensors in oneDNN's own layout",
    "CustomRNGKeyId": "for random generators that are defined outside of PyTorch",
    "Quantized": "kernels for quantized tensors",
    "Metal": "a backend for iPhones, older than MPS, without autograd of its own",
    "Vulkan": "a backend for Android phones, without autograd of its own",
    "FPGA": "a backend outside of PyTorch, without autograd of its own",
    "Dense": "the kernels that compute, one per backend: CPU, CUDA and so on",
}
_ALIASES = {
    "Autograd": "fills the autograd rows that nothing better fills; VariableType's kernels go there",
    "CompositeImplicitAutograd": "fills the rows of backends and of autograd: the kernel calls other operators, which "
    "autograd records",
    "FuncTorchBatchedDecomposition": "fills FuncTorchBatched: vmap takes the operator apart instead of batching it",
    "CompositeImplicitAutogradNestedTensor": "fills the rows of nested tensors; the kernel calls other operators",
    "CompositeExplicitAutograd": "fills the rows of all backends: one kernel for all, with a derivative of its own",
    "CompositeExplicitAutogradNonFunctional": "the same, but not for backends that must get no writes in place",
}
_BACKENDS = {
    "CPU": "tensors on the host",
    "CUDA": "NVIDIA GPUs; AMD's too in ROCm builds",
    "HIP": "AMD GPUs, where they do not pass as CUDA",
    "XLA": "torch_xla, on TPUs mainly",
    "MPS": "GPUs of Apple",
    "IPU": "processors of Graphcore",
    "XPU": "GPUs of Intel",
    "HPU": "Gaudi, of Intel",
    "VE": "vector engines of NEC",
    "Lazy": "tensors that only record operators until they are needed",
    "MTIA": "accelerators of Meta",
    "MAIA": "accelerators of Microsoft",
    "PrivateUse1": "any backend outside of PyTorch; the simulated device of glassbox.mini uses it",
    "PrivateUse2": "a second backend outside of PyTorch",
    "PrivateUse3": "a third backend outside of PyTorch",
    "Meta": "tensors without data, for shapes alone; the last bit, so it wins over every other backend",
}


def cheat_sheet(framework: Any = "torch") -> CheatSheet:
    """All dispatch keys, highest priority first, by family, with their bits and a sentence on what each does.

    framework   "torch" for the installed PyTorch, "mini" for the mini-framework

    A key that is new in the installed torch is in its place, marked as not known. ValueError for another framework.
    TorchInternalsError where torch's headers are missing.
    """
    if framework == "mini":
        from ._calls_of_mini import OfMini

        return sheet_of(OfMini().layout(), "glassbox.mini")
    if framework != "torch":
        raise ValueError(f'cheat_sheet: framework {framework!r} is unknown; use "torch" or "mini".')
    from . import _torch_internals as internals
    from ._key_header import torch_layout

    return sheet_of(torch_layout(), f"torch {internals.version()}")


def sheet_of(layout: KeyLayout, framework: str) -> CheatSheet:
    """The sheet of a layout."""
    entries: list[KeyEntry] = []
    shift = len(layout.backends)
    for place in reversed(range(len(layout.functionalities))):
        key = layout.functionalities[place]
        backends = layout.backends if layout.prefix(key) is not None else ("",)
        keys = tuple(layout.key(key, backend) for backend in backends)
        does = _does(key)
        entries.append(KeyEntry(key, family(key), shift + place, keys, does, bool(does)))
    for place in reversed(range(shift)):
        name = layout.backends[place]
        does = _BACKENDS.get(name, "")
        entries.append(KeyEntry(name, "backend bits", place, (), does, bool(does)))
    for name in layout.aliases:
        does = _ALIASES.get(name, "")
        entries.append(KeyEntry(name, "alias keys", None, (), does, bool(does)))
    return CheatSheet(framework, tuple(entries))


def _does(key: str) -> str:
    if key.startswith("Autocast") and key not in _DOES:
        return f"autocast for {key.removeprefix('Autocast')}"
    return _DOES.get(key, "")
