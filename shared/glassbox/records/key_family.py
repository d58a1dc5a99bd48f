"""Key families: which dispatch keys belong together, told from their names (c10/core/DispatchKey.h)."""

from __future__ import annotations

FAMILIES = (
    "Python dispatcher",
    "testing",
    "functorch",
    "Python wrappers",
    "autocast",
    "tracing",
    "autograd",
    "views and in-place",
    "lazy tensors",
    "functionalization",
    "Python",
    "backend select",
    "backends",
)


def family(functionality: str) -> str:
    """Which of FAMILIES a functionality belongs to, by its name; "other" for one that fits none."""
    if functionality in ("PythonDispatcher", "PreDispatch"):
        return "Python dispatcher"
    if functionality == "PythonTLSSnapshot":
        return "Python wrappers"
    if functionality in ("Python", "Fake"):
        return "Python"
    for name, starts in (
        ("testing", ("TESTING",)),
        ("functorch", ("FuncTorch", "Batched", "VmapMode")),
        ("autocast", ("Autocast",)),
        ("tracing", ("Tracer", "DeferredInit")),
        ("autograd", ("Autograd",)),
        ("views and in-place", ("ADInplaceOrView",)),
        ("lazy tensors", ("Conjugate", "Negative", "ZeroTensor")),
        ("functionalization", ("Functionalize",)),
        ("backend select", ("BackendSelect",)),
        ("backends", ("Dense", "Sparse", "Quantized", "Nested", "Mkldnn", "FPGA", "Vulkan", "Metal", "CustomRNG")),
    ):
        if functionality.startswith(starts):
            return name
    return "other"
