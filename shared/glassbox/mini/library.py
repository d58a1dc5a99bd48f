"""library: operators, kernels, derivatives and batching rules from outside (PyTorch: torch/library.py).

with library.Library("mine", "DEF") as lib:
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    mini.ops.mine.twice(x)
"""

from .aten.core.library import Kernel, Library, define, fallthrough_kernel, get_kernel, impl
from .autograd.library import register_autograd
from .modes.register_batch_rules import register_vmap

__all__ = [
    "Kernel",
    "Library",
    "define",
    "fallthrough_kernel",
    "get_kernel",
    "impl",
    "register_autograd",
    "register_vmap",
]
