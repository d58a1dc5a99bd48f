"""Puts the framework together: operators registered, methods and functions made (PyTorch: torch/csrc/Module.cpp)."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import gen_python_functions, modes, operators, python_arg_parser
from .aten import aliases, composites, native_functions, overloads, tensor_factories
from .aten.core.dispatcher import OperatorHandle, dispatcher
from .aten.core.kernel_function import KernelFunction
from .autograd import register as autograd_register
from .c10.dispatch_key import DispatchKey
from .sim.launch import launch
from .tensor import Tensor

FALLTHROUGHS = (
    *("BackendSelect", "ADInplaceOrView", "FuncTorchVmapMode", "VmapMode"),
    *("Autocast" + name for name in ("CPU", "MTIA", "MAIA", "XPU", "MPS", "CUDA", "PrivateUse1")),
)


def initialize() -> dict[str, Callable[..., Any]]:
    """Registers everything and returns the package's functions by name."""
    # Where NumPy would warn of an overflow or an invalid value, PyTorch computes on. The first holds for this thread
    # alone, and for NumPy as a whole in it; the second for the framework's kernels in every thread.
    np.seterr(all="ignore")
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"glassbox\.mini\.")
    dispatcher.binder = python_arg_parser.make_binder
    native_functions.register_all((composites, overloads, aliases, tensor_factories))
    for key in FALLTHROUGHS:
        dispatcher.register_fallback(getattr(DispatchKey, key), KernelFunction(None, "glassbox/mini/bindings.py"))
    for op in list(dispatcher.operators.values()):
        if tensor_factories.needs_backend_select(op):
            kernel = tensor_factories.select_backend(op)
            place = "glassbox/mini/aten/tensor_factories.py"
            dispatcher.register_impl(op, DispatchKey.BackendSelect, KernelFunction(kernel, place))
    for op in list(dispatcher.operators.values()):
        _on_the_simulated_device(op)
    autograd_register.register_all()
    modes.register_all()
    for name, slot in operators.slots().items():
        setattr(Tensor, name, slot)
    return add_methods()


def _on_the_simulated_device(op: OperatorHandle) -> None:
    """The CPU's kernel launched on sim."""
    cpu = op.own_kernel(DispatchKey.CPU)
    if cpu is None or cpu.function is None:
        return
    kernel = KernelFunction(launch(op.schema.key, cpu.function), "glassbox/mini/sim/launch.py, over " + cpu.registered)
    dispatcher.register_impl(op, DispatchKey.PrivateUse1, kernel)


# Operators that Python shows no function for, beside the backward ones (PyTorch: SKIP_PYTHON_BINDINGS).
HIDDEN = frozenset(
    ("alias", "_reshape_alias", "_unsafe_view", "slice", "numpy_T", "mT", "linear", "linalg_vector_norm", "index")
    + ("_to_copy", "_local_scalar_dense", "zero", "copy")
)


def _is_shown(base: str, python_module: str) -> bool:
    return python_module != "nn" and base not in HIDDEN and not base.endswith("_backward")


def add_methods() -> dict[str, Callable[..., Any]]:
    """Gives Tensor its methods; returns the functions."""
    methods: dict[str, list[OperatorHandle]] = {}
    functions: dict[str, list[OperatorHandle]] = {}
    for key, native in native_functions.native_functions().items():
        op = dispatcher.find_schema_or_throw(f"aten::{key}")
        base = native.schema.base
        if "method" in native.variants:
            methods.setdefault(base, []).append(op)
        if "function" in native.variants and _is_shown(base, native.python_module):
            functions.setdefault(base, []).append(op)
    for name, several in methods.items():
        if name not in vars(Tensor):
            setattr(Tensor, name, gen_python_functions.make_method(name, several))
    return {
        name: gen_python_functions.make_function(name, several) for name, several in functions.items()
    }
