"""Calls: what operator calls bring to the dispatcher, in either framework (ATen: DispatchKeyExtractor.h)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..records import KeyLayout, Onion
from ._looking import is_torch
from ._which import over_mini


@dataclass(frozen=True, slots=True)
class Brought:
    """What one argument brings.

    name    in the operator's schema: "self", "tensors[1]"
    kind    what it is, in a few words: "Tensor", "number 2"
    bits    its keys
    level   of the functorch transform that wrapped it; 0 where none did
    """

    name: str
    kind: str
    bits: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides about keys besides the arguments.

    modes        classes of the dispatch modes that are on, outermost first
    transforms   functorch transforms that are running: ("vmap", 1)
    autocast     keys of the devices for which autocast is on
    inference    whether inference_mode is on; grad: whether gradients are recorded, which is no matter of keys
    """

    modes: tuple[str, ...]
    transforms: tuple[tuple[str, int], ...]
    autocast: tuple[str, ...]
    inference: bool
    grad: bool


@dataclass(frozen=True, slots=True)
class TopCall:
    """An operator call of a program, before any kernel: what it brought and what the dispatcher made of it.

    op         "aten.add.Tensor"; name as the dispatcher has it, "aten::add.Tensor"
    included, excluded   the thread's sets at the call
    key_set    what the dispatcher itself worked out, after all masks
    """

    op: str
    name: str
    brought: tuple[Brought, ...]
    included: int
    excluded: int
    key_set: int
    around: Surroundings
    framework: Framework


class Framework(Protocol):
    """One of the two, as far as dispatch keys go."""

    def layout(self) -> KeyLayout: ...

    def key_set(self, tensor: Any) -> int:
        """The keys of a tensor as bits."""
        ...

    def local_sets(self) -> tuple[int, int]:
        """The thread's included and excluded bits."""
        ...

    def surroundings(self) -> Surroundings: ...

    def table(self, name: str) -> dict[str, str]:
        """Runtime key -> the text of its row, for an operator by its dispatcher name."""
        ...

    def refuse(self, fn: Any, where: str) -> None:
        """ValueError for a function whose calls cannot be watched."""
        ...

    def watch(self, see: Callable[[TopCall], None], passed_over: bool) -> Any:
        """A context in which see is called before each operator call of this thread."""
        ...

    def hops(self, run: Callable[[], None]) -> Onion:
        """Run it and give the kernels that ran."""
        ...


def framework_of_call(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Framework:
    """The framework that fn(*args, **kwargs) works with."""
    return _of(over_mini(fn, args, kwargs))


def framework_of(tensor: Any) -> Framework:
    """The framework of a tensor."""
    return _of(not is_torch(tensor))


def _of(mini: bool) -> Framework:
    if mini:
        from ._calls_of_mini import OfMini

        return OfMini()
    from ._calls_of_torch import OfTorch

    return OfTorch()
