"""Births: which storages operators made, and which operator made each node (torch/utils/_python_dispatch.py)."""

from __future__ import annotations

from typing import Any

from . import _torch_internals as internals
from ._flops import tensors_in
from ._torch_internals.modes import TorchDispatchMode
from ._torch_internals.seeing import Eyes


class Births(TorchDispatchMode):
    """A dispatch mode that notes, while it is on, what is made.

    eyes    numbers storages, for good
    born    the numbers of the storages that operators made
    op_of   the number of an autograd node -> the operator whose call made it
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.eyes = Eyes()
        self.born: set[int] = set()
        self.op_of: dict[int, str] = {}

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.op_of[internals.next_sequence_nr() - 1] = str(op)
        # What torch.tensor made is first seen as this one's argument.
        made_outside = "lift_fresh" in str(op)
        known = {self.eyes.storage_of(each) for each in tensors_in((args, kwargs))}
        out = op(*args, **kwargs)
        for each in tensors_in(out):
            storage = self.eyes.storage_of(each)
            if storage not in known or made_outside:
                self.born.add(storage)
        return out
