"""Calls of PyTorch's operators: the keys of their arguments and of the thread, and the kernels that ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from ..records import KeyLayout, Onion
from . import _torch_internals as internals
from ._calls import Brought, Surroundings, TopCall
from ._key_header import torch_layout
from ._which import require_eager


class OfTorch:
    """PyTorch, as far as dispatch keys go: a Framework."""

    def layout(self) -> KeyLayout:
        return torch_layout()

    def key_set(self, tensor: Any) -> int:
        return internals.key_set(tensor)

    def local_sets(self) -> tuple[int, int]:
        return internals.local_sets()

    def surroundings(self) -> Surroundings:
        return Surroundings(
            tuple(internals.dispatch_modes()),
            tuple(internals.transforms()),
            tuple(key for key in self.layout().functionalities if key.startswith("Autocast") and _autocast_on(key)),
            torch.is_inference_mode_enabled(),
            torch.is_grad_enabled(),
        )

    def table(self, name: str) -> dict[str, str]:
        return internals.computed_table(name)

    def refuse(self, fn: Any, where: str) -> None:
        require_eager(fn, where)

    def watch(self, see: Callable[[TopCall], None], passed_over: bool = True) -> AbstractContextManager[None]:
        def saw(op: Any, key_set: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
            included, excluded = internals.local_sets()
            names = internals.schema_arguments(op)
            brought = [*self._brought(names, args, kwargs)]
            brought += self._undefined(names, args, kwargs, key_set & ~included, brought)
            around = self.surroundings()
            see(TopCall(str(op), op.name(), tuple(brought), included, excluded, key_set, around, self))

        return internals.top_calls(saw, internals.PASSED_OVER if passed_over else ())

    def hops(self, run: Callable[[], None]) -> Onion:
        from .hops import onion

        return onion(run)

    def _brought(
        self, names: Sequence[tuple[str, str]], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Iterator[Brought]:
        given = dict(zip((name for name, _ in names), args, strict=False)) | dict(kwargs)
        for name, kind in names:
            if name not in given:
                continue
            value = given[name]
            if isinstance(value, list | tuple):
                for nr, each in enumerate(value):
                    yield from self._of_value(f"{name}[{nr}]", kind, each)
            else:
                yield from self._of_value(name, kind, value)

    def _of_value(self, name: str, kind: str, value: Any) -> Iterator[Brought]:
        if isinstance(value, torch.Tensor):
            level = internals.wrapper_level(value) or 0
            yield Brought(name, type(value).__name__, internals.key_set(value), level)
        elif isinstance(value, torch.Generator):
            yield Brought(name, "Generator", self._of_backend(value.device.type))
        elif kind in ("Tensor", "Optional[Tensor]") and isinstance(value, int | float | complex):
            yield Brought(name, f"number {value}", self._of_number())

    def _undefined(
        self,
        names: Sequence[tuple[str, str]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        seen: int,
        brought: Sequence[Brought],
    ) -> Iterator[Brought]:
        """An undefined tensor, which C++ passes for one that is not there: Python gets None, only its keys tell.

        seen   the call's keys without those of the thread
        """
        layout = self.layout()
        keys = layout.bits("AutogradOther", "ADInplaceOrView")
        for each in brought:
            seen &= ~each.bits
        given = dict(zip((name for name, _ in names), args, strict=False)) | dict(kwargs)
        empty = [name for name, kind in names if "Tensor" in kind and given.get(name, 0) is None]
        if seen & layout.bits("AutogradOther") and empty:
            yield Brought(", ".join(empty), "undefined tensor", keys)

    def _of_backend(self, device: str) -> int:
        layout = self.layout()
        return next((layout.bits(each) for each in layout.backends if each.lower() == device), 0)

    def _of_number(self) -> int:
        """The keys of the 0-d CPU tensor that C++ makes of a number."""
        layout = self.layout()
        keys = layout.bits("CPU", "AutocastCPU")
        return keys if torch.is_inference_mode_enabled() else keys | layout.bits("AutogradCPU", "ADInplaceOrView")


def _autocast_on(key: str) -> bool:
    """Whether autocast is on for the device of an autocast key."""
    device = key.removeprefix("Autocast").lower()
    try:
        return torch.is_autocast_enabled("privateuseone" if device == "privateuse1" else device)
    except RuntimeError:
        return False
