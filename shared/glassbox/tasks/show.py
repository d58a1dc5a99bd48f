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

STYLE = "border-collapse:collapse;margin:.4em 0"
DRAWN = 400
"""Layouts of more cells, or of more than four dimensions, are told, not drawn."""
CELL = "text-align:left;vertical-align:top;padding:.25em .8em .25em 0"


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
            lines.append(f"       expected {in_words(result.simplest.expected)}")
            lines.append(f"       yours    {in_words(result.simplest.yours)}")
            lines.append(f"       likely slip: {result.prop.slip}")
    return "\n".join(lines)


def as_html(task: Task, results: Sequence[PropertyResult], heading: str) -> str:
    """The results as HTML that needs no script and no style sheet. Everything that came from outside is
    escaped.
    """
    rows = "".join(_row(result) for result in results)
    failed = [result for result in results if result.simplest is not None]
    head = "".join(
        f'<th style="{CELL}">{name}</th>' for name in ("", "what was checked", "cases right", "why")
    )
    table = f'<table style="{STYLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    parts = [f"<p><strong>{html.escape(heading)}</strong></p>", table]
    if failed:
        pictures = [_picture(task, result.simplest) for result in failed if result.simplest]
        # One drawing is enough to see what is meant, and a page of them is slow to read.
        drawn = next((place for place, picture in enumerate(pictures) if picture), None)
        for place, result in enumerate(failed):
            parts.append(_failure(task, result, pictures[place] if place == drawn else ""))
        parts.append(f"<p>To read again: {html.escape(task.read)}</p>")
    return f'<div class="glassbox-report">{"".join(parts)}</div>'


def _row(result: PropertyResult) -> str:
    mark = "✓" if result.won else "✗"
    cells = (
        mark,
        html.escape(result.prop.name),
        f"{result.cases - result.wrong} of {result.cases}",
        html.escape(result.prop.why),
    )
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _failure(task: Task, result: PropertyResult, picture: str) -> str:
    failure = result.simplest
    assert failure is not None
    lines = [
        ("tried", call_text(task, failure.case)),
        ("expected", in_words(failure.expected)),
        ("yours", in_words(failure.yours)),
    ]
    table = "".join(
        f'<tr><th style="{CELL}">{name}</th><td style="{CELL}"><code>{html.escape(text)}</code></td></tr>'
        for name, text in lines
    )
    return (
        f"<p>✗ {html.escape(result.prop.name)}. Likely slip: {html.escape(result.prop.slip)}</p>"
        f'<table style="{STYLE}"><tbody>{table}</tbody></table>{picture}'
    )


def _picture(task: Task, failure: Failure) -> str:
    """Input, expected and yours as layouts, or "" where the task or the right answer cannot be drawn."""
    expected = _view("expected", task, failure.case, failure.expected)
    if expected is None:
        return ""
    given = _view("input", task, failure.case, {"value": None})
    mine = _view("yours", task, failure.case, failure.yours)
    note = "" if mine is not None else in_words(failure.yours)
    return draw.layout_comparison(
        ("input", given) if given is not None else None, ("expected", expected), ("yours", mine, note)
    )._repr_html_()


def _view(name: str, task: Task, case: Sequence[Any], answer: Answer) -> StorageView | None:
    if "value" not in answer or task.views is None:
        return None
    try:
        layout = task.views(tuple(case), freeze(answer["value"]))
        if layout is None:
            return None
        view = StorageView.of_layout(name, **layout)
        small = view.ndim <= 4 and view.numel <= DRAWN and view.size <= DRAWN
        return view if small and view.span()[0] >= 0 else None
    except Exception:  # a learner's value may be of any shape; the words beside the picture say what it was
        return None
