"""Facts about the ordering: shuffled for sure, judged in the kernel, silent before the commit."""

from __future__ import annotations

import json

import pytest
from traitlets import TraitError

from glassbox.widgets import Ordering

STEPS = ["slot", "binding", "call", "kernel"]


def test_no_step_stands_where_it_belongs_and_always_the_same_ones_do() -> None:
    for n in range(2, 12):
        steps = [f"step {k}" for k in range(n)]
        shown = Ordering(steps).order
        assert sorted(shown) == sorted(steps) and all(a != b for a, b in zip(shown, steps, strict=True))
        assert shown == Ordering(steps).order


def test_the_right_order_leaves_the_kernel_after_the_commit_only() -> None:
    asked = Ordering(STEPS, because="That is the way.")
    state = json.dumps({name: asked.get_state()[name] for name in ("answer", "right", "explanation", "done")})
    assert state == '{"answer": [], "right": [], "explanation": "", "done": false}'
    asked.order = ["slot", "binding", "kernel", "call"]
    assert asked.commit() == 2
    assert asked.right == [True, True, False, False] and asked.answer == STEPS
    assert asked.explanation == "That is the way."


def test_a_message_from_the_browser_commits() -> None:
    asked = Ordering(STEPS)
    asked.set_state({"order": STEPS})
    asked.set_state({"committed": True})
    assert asked.done and asked.right == [True] * 4


def test_an_answer_stands() -> None:
    asked = Ordering(STEPS)
    asked.commit()
    with pytest.raises(TraitError):
        asked.order = STEPS
    with pytest.raises(RuntimeError, match="already committed"):
        asked.commit()


@pytest.mark.parametrize("wrong", [STEPS[:3], [*STEPS, "more"], ["slot"] * 4])
def test_what_is_no_order_of_the_steps_is_refused(wrong: list[str]) -> None:
    asked = Ordering(STEPS)
    with pytest.raises(TraitError):
        asked.order = wrong
    assert sorted(asked.order) == sorted(STEPS)


@pytest.mark.parametrize("steps", [[], ["one"], ["one", "one"]])
def test_what_cannot_be_ordered_is_refused(steps: list[str]) -> None:
    with pytest.raises(ValueError, match="two or more"):
        Ordering(steps)


def test_an_export_lists_the_steps_and_not_the_answer() -> None:
    asked = Ordering(["a < b", "c & d"], because="x < y", question="Which <first>?")
    page = asked.static_html()
    assert page.count("<li>") == 2 and "a &lt; b" in page and "Which &lt;first&gt;?" in page and "x &lt; y" not in page
    asked.commit()
    page = asked.static_html()
    assert page.count("<li>") == 4 and "0 of 2" in page and "x &lt; y" in page
