"""DispatchKey: the names of the layers and backends a call can go to (PyTorch: c10/core/DispatchKey.h).

The lists stand in PyTorch's own order, lowest priority first, so a key set here is the same 64-bit number as
PyTorch's. A functionality such as Dense or AutogradFunctionality exists once per backend: the key AutogradCPU
is the pair (AutogradFunctionality, CPU) and has no bit of its own. Alias keys name groups of runtime keys;
they fill rows of a dispatch table and are never called themselves.
"""

from collections.abc import Iterator

# In the order of their bits; the simulated accelerator is PrivateUse1, as any backend outside PyTorch's tree.
BACKENDS = (
    "CPU",
    "CUDA",
    "HIP",
    "XLA",
    "MPS",
    "IPU",
    "XPU",
    "HPU",
    "VE",
    "Lazy",
    "MTIA",
    "MAIA",
    "PrivateUse1",
    "PrivateUse2",
    "PrivateUse3",
    "Meta",
)

# Lowest priority first.
FUNCTIONALITIES = (
    "Dense",
    "FPGA",
    "Vulkan",
    "Metal",
    "Quantized",
    "CustomRNGKeyId",
    "MkldnnCPU",
    "Sparse",
    "SparseCsr",
    "NestedTensor",
    "BackendSelect",
    "Fake",
    "Python",
    "FuncTorchDynamicLayerBackMode",
    "Functionalize",
    "Conjugate",
    "Negative",
    "ZeroTensor",
    "ADInplaceOrView",
    "AutogradOther",
    "AutogradFunctionality",
    "AutogradNestedTensor",
    "Tracer",
    "AutocastCPU",
    "AutocastMTIA",
    "AutocastMAIA",
    "AutocastXPU",
    "AutocastIPU",
    "AutocastHPU",
    "AutocastXLA",
    "AutocastMPS",
    "AutocastCUDA",
    "AutocastPrivateUse1",
    "FuncTorchBatched",
    "BatchedNestedTensor",
    "FuncTorchVmapMode",
    "Batched",
    "VmapMode",
    "FuncTorchGradWrapper",
    "DeferredInit",
    "PythonTLSSnapshot",
    "FuncTorchDynamicLayerFrontMode",
    "TESTING_ONLY_GenericWrapper",
    "TESTING_ONLY_GenericMode",
    "PreDispatch",
    "PythonDispatcher",
)

# Functionality -> prefix of its per-backend keys: Dense + CPU is "CPU", AutogradFunctionality + CPU "AutogradCPU".
PER_BACKEND = {
    "Dense": "",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "AutogradFunctionality": "Autograd",
}

ALIASES = (
    "Autograd",
    "CompositeImplicitAutograd",
    "FuncTorchBatchedDecomposition",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


class _Keys(type):
    """Lets a key be written DispatchKey.AutogradCPU and all of them be listed."""

    _by_name: dict[str, "DispatchKey"] = {}

    def __getattr__(cls, name: str) -> "DispatchKey":
        try:
            return _Keys._by_name[name]
        except KeyError:
            raise AttributeError(f"no dispatch key is called {name!r}") from None

    def __iter__(cls) -> "Iterator[DispatchKey]":
        return iter(_Keys._by_name.values())

    def __len__(cls) -> int:
        return len(_Keys._by_name)


class DispatchKey(metaclass=_Keys):
    """One key. There is one object per key, so `is` compares them.

    functionality   its place among FUNCTIONALITIES, counted from 1; 0 for Undefined and alias keys
    backend         its place among BACKENDS, counted from 1; 0 where the key belongs to no backend
    is_alias        True for the keys of ALIASES
    """

    __slots__ = ("name", "functionality", "backend", "is_alias")

    def __init__(self, name: str, functionality: int, backend: int = 0, is_alias: bool = False) -> None:
        self.name = name
        self.functionality = functionality
        self.backend = backend
        self.is_alias = is_alias
        _Keys._by_name[name] = self

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return parse, (self.name,)


def _define() -> None:
    DispatchKey("Undefined", 0)
    for place, name in enumerate(FUNCTIONALITIES, 1):
        DispatchKey(name, place)
    for functionality, prefix in PER_BACKEND.items():
        for place, backend in enumerate(BACKENDS, 1):
            DispatchKey(prefix + backend, FUNCTIONALITIES.index(functionality) + 1, place)
    for name in ALIASES:
        DispatchKey(name, 0, is_alias=True)


_define()


def parse(name: "str | DispatchKey") -> DispatchKey:
    """The key called `name`; RuntimeError names the ones that look alike."""
    if isinstance(name, DispatchKey):
        return name
    found = _Keys._by_name.get(name)
    if found is None:
        near = [key.name for key in DispatchKey if str(name).lower() in key.name.lower()][:5]
        hint = f"; did you mean {', '.join(near)}?" if name and near else ": see glassbox.mini.DispatchKey"
        raise RuntimeError(f"no dispatch key is called {name!r}{hint}")
    return found
