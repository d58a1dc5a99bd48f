"""Saved memory: what a forward pass keeps for backward, by node, module and line, and what checkpointing would drop.

PyTorch keeps such tensors in SavedVariables (torch/csrc/autograd/saved_variable.h).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..records import SavedMemory
from ._which import over_mini


def saved_memory(
    fn: Any,
    *args: Any,
    loss: Callable[[Any], Any] | None = None,
    backward: bool | None = None,
    **kwargs: Any,
) -> SavedMemory:
    """What fn(*args, **kwargs), a module or a function, keeps for backward.

    loss       a function of the output that gives a tensor to go backward from; without one each floating point tensor
               of the output is handed ones as its gradient
    backward   None: run backward where something requires a gradient, for the peak; False: forward only

    One run, forward and backward, with hooks around every saved tensor; buffers, inputs, random numbers and grad are
    put back. A storage counts once and as a whole. An activation is a storage that was made in the forward pass, which
    the graph alone keeps, unless the program does too; parameters, buffers, inputs and what else was there before are
    told apart. The line is the innermost one of the program, outside of PyTorch.

    Values that hooks of the program's own pack, such as save_on_cpu or checkpoint, are not in the bytes, nor is what a
    checkpoint computes again in backward; the record says how many there are. Gradients are not saved values. Hooks
    that are on around this call are replaced by these while it runs.

    Of the mini-framework values and nodes are shown; no modules, lines and curve.

    RuntimeError, PyTorch's own, for torch.func.grad and its like, which allow no hooks on saved tensors.
    TypeError for what cannot be called, ValueError for uninitialized lazy layers, for backward=True where nothing
    requires a gradient, and for parameters whose hooks may step an optimizer in backward.
    """
    if over_mini(fn, args, kwargs):
        from ._costs_of_mini import saved_memory_of_mini

        return saved_memory_of_mini(fn, args, kwargs, loss)
    from ._saved_of_torch import saved_memory_of_torch

    return saved_memory_of_torch(fn, args, kwargs, loss, backward)
