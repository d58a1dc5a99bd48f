"""Results for people: a table of properties and the first case that went wrong, drawn where that helps."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from .. import draw
from ..records import StorageView
from .compare import Answer, Failure, PropertyResult
from .model import Task
from .plain import freeze, show

DRAWN = 400
"""Layouts of more cells, or of more than four dimensions, are told, not drawn."""
# Looks stand in the elements, since nbgrader's and Jupyter's pages bring style sheets of their own. A page of
# ours sets the colours by its theme; elsewhere the fallbacks are readable on light and on dark.
GOOD = "var(--gb-good,#2e8b57)"
BAD = "var(--gb-bad-line,#d1472f)"
STYLE = "border-collapse:collapse;border:none;margin:.4em 0"
PLAIN = "border:none;background:none;vertical-align:top"
CELL = f"{PLAIN};text-align:left;padding:.25em .9em .25em 0;white-space:normal"
LINE = f"{PLAIN};text-align:left;padding:.1em .9em .1em 0;white-space:normal"
NUMBER = f"{PLAIN};text-align:right;padding:.25em 0;white-space:nowrap;font-variant-numeric:tabular-nums"
SOFT = "opacity:.72;font-size:.9em"
VALUE = "white-space:pre-wrap;overflow-wrap:anywhere"


def in_words(answer: Answer) -> str:
    """One answer as a short text: the value, or what happened instead."""
    if "value" in answer:
        return show(answer["value"])
    if "raised" in answer:
        message = str(answer.get("message", ""))[:160]
        return f"raises {answer['raised']}" + (f": {message}" if message else "")
    if "notplain" in answer:
        return str(answer["notplain"])
    for key, words in {
        "timeout": "no answer in time",
        "died": "the process died",
        "skipped": "not tried, after the one before ran over",
    }.items():
        if key in answer:
            return words
    return "no answer came"


def wanted(truth: Answer) -> str:
    """The right answer as a short text: of an exception the type alone, since its words are not asked for."""
    return in_words({"raised": truth["raised"]} if "raised" in truth else truth)


def call_text(task: Task, case: Sequence[Any]) -> str:
    """The call that was tried, as one would type it."""
    return f"{task.function}({', '.join(show(argument, 400) for argument in case)})"


def as_text(task: Task, results: Sequence[PropertyResult], heading: str) -> str:
    """The results as plain text, for a terminal and for nbgrader's Validate."""
    lines = [heading]
    for result in results:
        mark = "ok  " if result.won else "FAIL"
        lines.append(
            f"  {mark} {result.prop.name}: {result.cases - result.wrong} of {result.cases} cases right"
        )
        if result.simplest is not None:
            lines.append(f"       tried    {call_text(task, result.simplest.case)}")
            lines.append(f"       expected {wanted(result.simplest.expected)}")
            lines.append(f"       yours    {in_words(result.simplest.yours)}")
            if result.slipped:
                lines.append(f"       likely slip: {result.prop.slip}")
    return "\n".join(lines)


def as_html(task: Task, results: Sequence[PropertyResult], heading: str) -> str:
    """The results as HTML that needs no script and no style sheet. Everything that came from outside is
    escaped.
    """
    rows = "".join(_row(result) for result in results)
    failed = [result for result in results if result.simplest is not None]
    head = (
        f'<th style="{CELL}"></th><th style="{CELL}">what was checked</th>'
        f'<th style="{NUMBER}">cases right</th>'
    )
    table = f'<table style="{STYLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    parts = [f'<p class="glassbox-heading"><strong>{html.escape(heading)}</strong></p>', table]
    if failed:
        pictures = [_picture(task, result.simplest) for result in failed if result.simplest]
        # One drawing is enough to see what is meant, and a page of them is slow to read.
        drawn = next((place for place, picture in enumerate(pictures) if picture), None)
        for place, result in enumerate(failed):
            call = call_text(task, result.simplest.case) if result.simplest else ""
            parts.append(_failure(result, call, pictures[place] if place == drawn else ""))
        parts.append(f"<p><strong>To read again:</strong> {html.escape(task.read)}</p>")
    return f'<div class="glassbox-report">{"".join(parts)}</div>'


def _row(result: PropertyResult) -> str:
    right = f"{result.cases - result.wrong} of {result.cases}"
    return (
        f'<tr style="background:none"><td style="{CELL}">{_mark(result.won)}</td>'
        f'<td style="{CELL}">{html.escape(result.prop.name)}'
        f'<div style="{SOFT}">{html.escape(result.prop.why)}</div></td>'
        f'<td style="{NUMBER}">{right}</td></tr>'
    )


def _mark(won: bool) -> str:
    return f'<span style="color:{GOOD if won else BAD};font-weight:bold">{"✓" if won else "✗"}</span>'


def _failure(result: PropertyResult, call: str, picture: str) -> str:
    failure = result.simplest
    assert failure is not None
    lines = [("tried", call), ("expected", wanted(failure.expected)), ("yours", in_words(failure.yours))]
    table = "".join(
        f'<tr style="background:none"><td style="{LINE}"><span style="{SOFT}">{name}</span></td>'
        f'<td style="{LINE}"><code style="{VALUE}">{html.escape(text)}</code></td></tr>'
        for name, text in lines
    )
    figure = f'<div style="overflow-x:auto">{picture}</div>' if picture else ""
    slip = (
        f'<p style="margin:.4em 0"><strong>Likely slip:</strong> {html.escape(result.prop.slip)}</p>'
        if result.slipped
        else ""
    )
    return (
        f'<div style="border-left:3px solid {BAD};padding:.1em 0 .1em 1em;margin:1em 0">'
        f'<p style="margin:.2em 0">{_mark(False)} <strong>{html.escape(result.prop.name)}</strong></p>'
        f'<table style="{STYLE}"><tbody>{table}</tbody></table>{figure}{slip}</div>'
    )


def _picture(task: Task, failure: Failure) -> str:
    """Input, expected and yours side by side; "" where neither of the first two can be drawn."""
    panels = {
        "input": (_view("input", task, failure.case, None), ""),
        "expected": (_answered("expected", task, failure, failure.expected), wanted(failure.expected)),
        "yours": (_answered("yours", task, failure, failure.yours), in_words(failure.yours)),
    }
    if panels["input"][0] is None and panels["expected"][0] is None:
        return ""
    shown = {
        name: (name, view, "" if view else note) for name, (view, note) in panels.items() if view or note
    }
    return draw.layout_comparison(shown.get("input"), shown["expected"], shown["yours"])._repr_html_()


def _answered(name: str, task: Task, failure: Failure, answer: Answer) -> StorageView | None:
    # None as an answer says that there is no layout; to `views` it would ask for the input's.
    value = answer.get("value")
    return None if value is None else _view(name, task, failure.case, freeze(value))


def _view(name: str, task: Task, case: Sequence[Any], value: Any) -> StorageView | None:
    if task.views is None:
        return None
    try:
        layout = task.views(tuple(case), value)
        if layout is None:
            return None
        view = StorageView.of_layout(name, **layout)
        small = view.ndim <= 4 and view.numel <= DRAWN and view.size <= DRAWN
        return view if small and view.span()[0] >= 0 else None
    except Exception:  # a learner's value may be of any shape; the words beside the picture say what it was
        return None
