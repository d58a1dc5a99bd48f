"""A log that also notes which backward nodes each call got, and what the program calls the tensors that it hands over
(aten/src/ATen/SequenceNumber.h).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ._python_lines import callers
from ._variables import held_names
from .op_logging import OpLogger


class NumberedLogger(OpLogger):
    """An op log of the whole program; after the block `numbers` has the sequence numbers of the backward nodes for each
    call of `ops`, and `variables` names by the tensors' numbers.
    """

    def __init__(self, root: Any) -> None:
        super().__init__(root, places=True, modules=True, keep=None)
        self.variables: dict[int, str] = {}
        self._given_out: list[int] = []
        self._last = 0

    def begins(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self.level == 0:
            self._given_out.append(self._next_nr())
            if self._current_node() is None:
                self._note_variables([*args, *kwargs.values()])
        return super().begins(func, args, kwargs)

    def _note_variables(self, values: Sequence[Any]) -> None:
        frame = callers(sys._getframe(1))[0]
        if frame is not None:
            for name, tensor in held_names(frame, values):
                self.variables.setdefault(self.number_of(tensor), name)

    def number_of(self, tensor: Any) -> int:
        """The tensor's number in the log."""
        return int(self._eyes.look((tensor,))[0][0])

    def __enter__(self) -> NumberedLogger:
        super().__enter__()
        self._last = self._next_nr()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._end = self._next_nr()
        super().__exit__(*raised)

    @property
    def numbers(self) -> list[tuple[int, ...]]:
        """Per call: the last number given out when it began, if any since the call before; and those given out after
        it but for the last, which is the next call's.
        """
        ends = [*self._given_out, self._end]
        found: list[tuple[int, ...]] = []
        before = self._last
        for nr, at in enumerate(self._given_out):
            own = (at - 1,) if at > before else ()
            after = range(at, ends[nr + 1] - (1 if nr + 1 < len(self._given_out) else 0))
            found.append((*own, *after))
            before = at
        return found
