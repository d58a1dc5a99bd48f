"""checkpoint: memory for time (PyTorch: torch/utils/checkpoint.py).

What a checkpointed function saves for backward is thrown away at once. When the backward pass first asks for a piece
of it, the function is run again, from its arguments and with the random numbers of the first time, and what it then
saves, in order, stands in for what was thrown away.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..c10.generator import default_generator
from .grad_mode import set_grad_enabled
from .saved_variable import saved_tensors_hooks


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one did."""


class _Handle:
    """Stands in the graph for a tensor that will be computed again."""

    __slots__ = ("nr",)

    def __init__(self, nr: int) -> None:
        self.nr = nr


class _StopRecomputingError(Exception):
    """Raised when the last thing that was saved is there: the rest of the function need not run."""


class _Frame:
    """One call of a checkpointed function."""

    def __init__(self, run: Callable[[], Any], state: Any, deterministic: bool) -> None:
        self.run = run
        self.state = state
        self.deterministic = deterministic
        self.facts: list[tuple[Any, ...]] = []
        self.recomputed: list[Any] = []

    def pack(self, tensor: Any) -> _Handle:
        self.facts.append((tensor._shape, tensor._dtype, tensor._device))
        return _Handle(len(self.facts) - 1)

    def unpack(self, handle: _Handle) -> Any:
        if not self.recomputed or self.recomputed[handle.nr] is None:
            self.recomputed = self.recompute()
        tensor = self.recomputed[handle.nr]
        # Each piece is handed out once, so that what was used is free again.
        self.recomputed[handle.nr] = None
        return tensor

    def recompute(self) -> list[Any]:
        """What the function saves when it is run again."""
        found: list[Any] = []

        def keep(tensor: Any) -> Any:
            # Outside of the second run's own graph, which nobody needs.
            tensor = tensor.detach()
            found.append(tensor)
            if len(found) == len(self.facts):
                raise _StopRecomputingError
            return tensor

        now = None
        if self.state is not None:
            now = default_generator.get_state()
            default_generator.set_state(self.state)
        try:
            with set_grad_enabled(True), saved_tensors_hooks(keep, lambda tensor: tensor):
                self.run()
        except _StopRecomputingError:
            pass
        finally:
            if now is not None:
                default_generator.set_state(now)
        self._compare(found)
        return found

    def _compare(self, found: list[Any]) -> None:
        if len(found) != len(self.facts):
            raise CheckpointError(
                f"A different number of tensors was saved during the original forward and recomputation: "
                f"{len(self.facts)} and {len(found)}."
            )
        if not self.deterministic:
            return
        for nr, (tensor, fact) in enumerate(zip(found, self.facts, strict=True)):
            again = (tensor._shape, tensor._dtype, tensor._device)
            if again != fact:
                raise CheckpointError(
                    f"Recomputed values for the following tensors have different metadata than during the forward "
                    f"pass: tensor {nr} had shape {list(fact[0])} and dtype {fact[1].name}, and has shape "
                    f"{list(again[0])} and dtype {again[1].name}."
                )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] | None = None,
    determinism_check: str = "default",
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), which in the backward pass is run again rather than remembered.

    preserve_rng_state: the second run draws the same random numbers. context_fn() gives two contexts, for the first and
    the second run. determinism_check "none" leaves out comparing shapes and dtypes of the two. CheckpointError, a
    RuntimeError, where the runs differ.
    """
    if use_reentrant:
        raise NotImplementedError("checkpoint of mini has only the way of use_reentrant=False")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    first, second = context_fn() if context_fn is not None else (nullcontext(), nullcontext())
    state = default_generator.get_state() if preserve_rng_state else None

    def run() -> None:
        with second:
            function(*args, **kwargs)

    frame = _Frame(run, state, determinism_check == "default")
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        return function(*args, **kwargs)


__all__ = ["CheckpointError", "checkpoint"]
