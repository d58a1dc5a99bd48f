"""The tree of modules: who belongs to whom, by which name (PyTorch: torch/nn/modules/module.py)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ..parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class Tree:
    """What a Module knows of the modules, parameters and buffers below it."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, "Module | None"]

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The modules right below this one, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator["Module"]:
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set["Module"] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """This module and all below it with their dotted names.

        A module that stands in two places comes once if not told otherwise.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)  # type: ignore[arg-type]
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self) -> Iterator["Module"]:
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The parameters with their dotted names; one that several modules share comes once if not told otherwise."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        return (value for _, value in self.named_buffers(recurse=recurse))

    def _named(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, value in getattr(module, kind).items():
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield _joined(path, name), value

    def get_submodule(self, target: str) -> "Module":
        """The module at a dotted path; AttributeError where there is none."""
        module: Any = self
        for part in target.split(".") if target else ():
            child = getattr(module, part, None)
            if child is None:
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            if not isinstance(child, Tree):
                raise AttributeError(f"`{part}` is not an nn.Module")
            module = child
        return module

    def get_parameter(self, target: str) -> Any:
        """The parameter at a dotted path; AttributeError where there is none."""
        return self._at(target, lambda module, name, found: isinstance(found, Parameter), "an nn.Parameter")

    def get_buffer(self, target: str) -> Any:
        """The buffer at a dotted path; AttributeError where there is none."""
        return self._at(target, lambda module, name, found: name in module._buffers, "a buffer")

    def _at(self, target: str, fits: Callable[[Any, str, Any], bool], kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        found = getattr(module, name)
        if not fits(module, name, found):
            raise AttributeError(f"`{name}` is not {kind}")
        return found

    def apply(self, fn: Callable[["Module"], Any]) -> Self:
        """fn(module) for every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)  # type: ignore[arg-type]
        return self


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
