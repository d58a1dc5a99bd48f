"""Ordering: the reader puts steps in their order from memory, then sees which stand right (PyTorch has no part for it).

The right order leaves the kernel only when the reader has committed.
"""

from __future__ import annotations

import html
import random
from collections.abc import Iterable, Sequence
from typing import Any

import traitlets

from ._base import GlassboxWidget, script, themed_css


class Ordering(GlassboxWidget):
    """Steps to be put in order, shown shuffled, and always in the same way for the same steps.

    steps     in their right order, all different
    because   what is said after the answer, in plain words

    Traits: `order` (the steps as the reader has them), `done`, `right` (for each place whether its step is the right
    one, [] before) and `answer` (the right order, [] before). `commit()` does what the button does.
    TypeError for what is no list of steps; ValueError for fewer than two steps or the same one twice.
    """

    _esm = script("ordering.js")
    _css = themed_css("ordering.css")

    question = traitlets.Unicode("Put these into their order.").tag(sync=True)
    order = traitlets.List(traitlets.Unicode()).tag(sync=True)
    committed = traitlets.Bool(False).tag(sync=True)
    done = traitlets.Bool(False).tag(sync=True)
    right = traitlets.List(traitlets.Bool()).tag(sync=True)
    answer = traitlets.List(traitlets.Unicode()).tag(sync=True)
    explanation = traitlets.Unicode("").tag(sync=True)

    def __init__(self, steps: Iterable[str], because: str = "", question: str = "") -> None:
        if isinstance(steps, str) or not isinstance(steps, Iterable):
            raise TypeError(f'Ordering: steps is a list such as ["first", "second"], got {steps!r}.')
        self._steps = [str(step) for step in steps]
        self._because = because
        if len(self._steps) < 2 or len(set(self._steps)) < len(self._steps):
            raise ValueError("Ordering: give two or more steps that are all different.")
        super().__init__(order=_shuffled(self._steps), **({"question": question} if question else {}))

    def commit(self) -> int:
        """Commits to the order as it stands; how many steps are in their place. RuntimeError the second time."""
        if self.done:
            raise RuntimeError("Ordering: you have already committed; run the cell again to retry.")
        self.committed = True
        return sum(self.right)

    @traitlets.validate("order")
    def _a_permutation(self, proposal: dict[str, Any]) -> list[str]:
        if self.done or sorted(proposal["value"]) != sorted(self._steps):
            raise traitlets.TraitError("Ordering: the order holds each step once, and is fixed once committed.")
        return list(proposal["value"])

    @traitlets.observe("committed")
    def _reveal(self, change: dict[str, Any]) -> None:
        if self.done or not change["new"]:
            return
        self.right = [given == step for given, step in zip(self.order, self._steps, strict=True)]
        self.answer = list(self._steps)
        self.explanation = self._because
        self.done = True

    def static_html(self) -> str:
        after = ""
        if self.done:
            after = (
                f"<p>{sum(self.right)} of {len(self.right)} in their place. The order is:</p>"
                f"{_listed(self.answer)}<p>{html.escape(self.explanation)}</p>"
            )
        return (
            f'<div style="border-left:4px solid #6e9bd6;padding:4px 14px"><p>{html.escape(self.question)}</p>'
            f"{_listed(self.order)}{after}</div>"
        )

    def __str__(self) -> str:
        lines = [self.question, *(f"{nr}. {step}" for nr, step in enumerate(self.order, 1))]
        return "\n".join(lines + ([f"{sum(self.right)} in their place"] if self.done else []))


def _listed(steps: Sequence[str]) -> str:
    return f"<ol>{''.join(f'<li>{html.escape(step)}</li>' for step in steps)}</ol>"


def _shuffled(steps: Sequence[str]) -> list[str]:
    """Another order, the same every time, in which no step stands where it belongs."""
    dice = random.Random(len(steps))
    found = list(steps)
    while any(a == b for a, b in zip(found, steps, strict=True)):
        dice.shuffle(found)
    return found
