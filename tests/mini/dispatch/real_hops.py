"""Every kernel that PyTorch runs for some operators, by hooks around the kernels in their dispatch tables.

All kernels are fetched before any hook is registered, since a hook for one key can change what another
resolves to; rows that hold a fallthrough are left alone, since a hook there would end the call.
"""

from typing import Any

import torch

KEYS = (
    "CPU",
    "BackendSelect",
    "ADInplaceOrView",
    "AutogradCPU",
    "AutocastCPU",
    "FuncTorchBatched",
    "FuncTorchVmapMode",
    "FuncTorchDynamicLayerFrontMode",
    "FuncTorchDynamicLayerBackMode",
    "Functionalize",
    "Python",
    "PythonTLSSnapshot",
)


class RealHops:
    """`with RealHops("sin", ...) as hops:`; hops.log holds (depth, op, key, kind, key set) of each kernel that ran."""

    def __init__(self, *names: str) -> None:
        self.log: list[tuple[int, str, str, str, int]] = []
        self.depth = 0
        self.hooks = []
        for name in names:
            for line in torch._C._dispatch_dump_table(f"aten::{name}").splitlines():
                key, _, rest = line.partition(": ")
                if key in KEYS and not rest.startswith("fallthrough") and rest.endswith("]"):
                    kind = rest[rest.rindex("[") + 1 : -1]
                    kernel = torch.library.get_kernel(f"aten::{name}", key)
                    self.hooks.append((name, key, self._around(name, key, kind, kernel)))

    def _around(self, name: str, key: str, kind: str, kernel: Any) -> Any:
        def hook(keys: Any, *args: Any, **kwargs: Any) -> Any:
            self.log.append((self.depth, name, key, kind, keys.raw_repr()))
            self.depth += 1
            try:
                return kernel.call_boxed(keys, *args, **kwargs)
            finally:
                self.depth -= 1

        return hook

    def __enter__(self) -> "RealHops":
        self.library = torch.library.Library("aten", "IMPL")
        for name, key, hook in self.hooks:
            self.library.impl(name, hook, key, with_keyset=True, allow_override=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.library._destroy()
