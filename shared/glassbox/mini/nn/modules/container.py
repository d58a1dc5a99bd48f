"""Containers: modules in a row or by name (PyTorch: torch/nn/modules/container.py)."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Self

from .module import Module, indented


class _Row(Module):
    """What Sequential and ModuleList share: children called "0", "1", ... and the ways of a list."""

    def _key(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        chosen = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for name in chosen:
            delattr(self, name)
        self._modules = {str(nr): module for nr, module in enumerate(self)}

    def append(self, module: Any) -> Self:
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        rest = list(self)
        rest.insert(index, module)
        self._modules = {str(nr): each for nr, each in enumerate(rest)}
        return self

    def extend(self, modules: Any) -> Self:
        """Every module of an iterable; TypeError for anything else."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: int) -> Any:
        module = self[key]  # type: ignore[index]
        del self[key]
        return module


class Sequential(_Row):
    """Each module gets what the one before it returned; an OrderedDict gives them names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for nr, module in enumerate(args):
                self.add_module(str(nr), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def insert(self, index: int, module: Module) -> Any:
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def __add__(self, other: Any) -> "Sequential":
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times: Any) -> "Sequential":
        return Sequential(*list(self) * self._times(times))

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> Self:
        return self.extend(list(self) * (self._times(times) - 1))

    def _times(self, times: Any) -> int:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return times

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(_Row):
    """A list of modules whose parameters count."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._key(index)]

    def insert(self, index: int, module: Module) -> None:
        super().insert(index, module)

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Modules that read the same stand in one line."""
        runs: list[tuple[int, int, str]] = []
        for nr, text in enumerate(repr(module) for module in self):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], nr, text)
            else:
                runs.append((nr, nr, text))
        body = "".join(
            f"\n  ({first}): {indented(text)}"
            if first == last
            else f"\n  ({first}-{last}): {last - first + 1} x {indented(text)}"
            for first, last, text in runs
        )
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dict of modules whose parameters count."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        return self._modules.keys()

    def items(self) -> Any:
        return self._modules.items()

    def values(self) -> Any:
        return self._modules.values()

    def pop(self, key: str) -> Any:
        return self._modules.pop(key)

    def clear(self) -> None:
        self._modules.clear()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Modules by name, of a dict or of pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        for key, module in dict(modules).items():
            self[key] = module
