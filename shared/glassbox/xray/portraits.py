"""The operator portrait: which operators a model runs, how often, and what each costs.

PyTorch's own counters are torch/utils/flop_counter.py, whose formulas are used here, and torch/profiler, which sees
other levels too: the composites above and the kernels below what a dispatch mode sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..records import Portrait
from ._which import over_mini


def profile(
    model: Any,
    *inputs: Any,
    loss: Callable[[Any], Any] | None = None,
    backward: bool | None = None,
    repeats: int | None = None,
    **kwargs: Any,
) -> Portrait:
    """The operator portrait of model(*inputs, **kwargs), a module or a function, under the mode that is on.

    loss      a function of the output that gives a tensor to go backward from; without one each floating point tensor
              of the output is handed ones as its gradient, as a sum would
    backward  None: yes for a module in training mode and where a loss is given, if gradients are recorded
    repeats   runs to take medians over; None: as many as take some seconds, 3 to 20; 0: count only, which runs it once
    kwargs    go to the model; to one with an argument called loss, backward or repeats, hand it in a function around it

    The model runs several times: once to warm up, once to count, and for the times in turn bare and under a mode that
    only reads the clock. Every run meets the same inputs, buffers and random numbers and no gradients, and all of them
    are afterwards as they were. What a forward writes elsewhere, such as to its parameters or to Python's variables, is
    not put back; written parameters are said. Compiled functions run eagerly. Fake and meta tensors give counts, FLOPs
    and bytes, no times.

    While a dispatch mode looks on, PyTorch itself does three things in another way: the engine adds gradients that meet
    with add instead of add_, reshape makes its views by view instead of _reshape_alias, and modes are told of the
    shallow copies of saved results as detach, which is no operator call otherwise.

    Models and tensors of the mini-framework are run once and counted: operators, shapes, bytes; no FLOPs, no times.

    TypeError for what cannot be called, ValueError for uninitialized lazy layers, for backward=True where nothing
    requires a gradient, and for parameters whose hooks may step an optimizer in backward.
    """
    if repeats is not None and repeats < 0:
        raise ValueError(f"profile: repeats is {repeats}; give 0 to count only, or how many runs to time.")
    if over_mini(model, inputs, kwargs):
        from ._costs_of_mini import portrait_of_mini

        return portrait_of_mini(model, inputs, kwargs, loss, backward)
    from ._portrait_of_torch import portrait_of_torch

    return portrait_of_torch(model, inputs, kwargs, loss, backward, repeats)
