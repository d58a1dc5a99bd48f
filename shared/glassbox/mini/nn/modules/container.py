"""Containers: modules in a row (PyTorch: torch/nn/modules/container.py)."""

from collections.abc import Iterable, Iterator
from typing import Any

from .module import Module


class _Row(Module):
    """What Sequential and ModuleList share: children called "0", "1", ... and the ways of a list."""

    def _key(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index % len(self)]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            chosen = list(self._modules.items())[index]
            made = type(self)()
            for name, module in chosen:
                made.add_module(name, module)
            return made
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def append(self, module: Module) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        for module in modules:
            self.append(module)
        return self


class Sequential(_Row):
    """Each module gets what the one before it returned; a dict gives them names."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for nr, module in enumerate(modules):
                self.add_module(str(nr), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class ModuleList(_Row):
    """A list of modules whose parameters count."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)
