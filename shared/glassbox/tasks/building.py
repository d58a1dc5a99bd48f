"""Programs as text: what a case says in words becomes real before the learner's function gets it.

A program cannot cross to a grading kernel, its text can. The notebook's check, the kernel and the judge build
from the same text; nobody but who builds holds it, unless a task hands it on under the name "text".
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

FILE = "<program>"
"""What the code of every program has for a file name."""


def built(names: Sequence[str], case: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of the learner's function: what the text that stands first in `case` gives these names, then the
    rest of the case. Without names it is the case itself.
    """
    if not names:
        return tuple(case)
    found = {"text": case[0]} | run(case[0])
    return *(found[name] for name in names), *case[1:]


def hooks(model: Any) -> int:
    """How many forward hooks hang on a model, its layers, and all modules there are."""
    from torch.nn.modules import module as everywhere

    places = [(each._forward_hooks, each._forward_pre_hooks) for each in model.modules()]
    places.append((everywhere._global_forward_hooks, everywhere._global_forward_pre_hooks))
    return sum(len(each) for pair in places for each in pair)


def run(text: str, *, counting: Callable[[Any], int] = hooks) -> dict[str, Any]:
    """The names that a program's text defines, with torch, nn, F and hooks there from the start. Random numbers begin
    at the same place every time. Nothing in these names leads back to the text.

    `counting` is what the program calls hooks, bound once: a later change of this module does not reach it.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    names: dict[str, Any] = {"__name__": "program", "torch": torch, "nn": nn, "F": functional, "hooks": counting}
    # No dump of a program stays anywhere: a line of it is a number to whoever runs it.
    code = compile(text, FILE, "exec")
    with steady():
        exec(code, names)
    return names


@contextlib.contextmanager
def steady() -> Iterator[None]:
    """A block in which PyTorch's random numbers begin at seed 0; outside they go on as if nothing had been."""
    import torch

    # torch.manual_seed sees to all devices, which takes milliseconds.
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(0)
    try:
        yield
    finally:
        generator.set_state(before)


def warm() -> None:
    """Runs one operator under a dispatch mode. The first one makes PyTorch import what takes seconds."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Nothing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Nothing():
        torch.ones(1)


def afterwards(names: Sequence[str], call: Sequence[Any]) -> Callable[[], Any] | None:
    """What says how things stand once a call is over, where the text's program has an attribute `after`. To be asked
    for before the call: what the learner's function puts in its place, or among its globals, changes nothing.
    """
    after = getattr(call[0], "after", None) if names else None
    if not isinstance(after, types.FunctionType):
        return after
    return types.FunctionType(
        after.__code__, dict(after.__globals__), after.__name__, after.__defaults__, after.__closure__
    )
