"""Results for people: a table of properties and the first case that went wrong, drawn where that helps."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import draw
from ..records import StorageView
from .compare import Answer, Failure, PropertyResult, readability
from .model import Task
from .plain import show
from .seeing import view

LOOK_FOR = {
    "timeout": "a loop that never ends",
    "died": "what in your code ends the process: os._exit(), a signal to itself, or a crash",
    "SystemExit": "exit() or sys.exit() in your code: it ends the program, where an answer is asked for",
}
"""What stands in the code of an answer that ended so."""
SHOWN = 1500
"""Characters of an argument or an answer: what is cut off cannot be tried again."""
# Looks stand in the elements, since nbgrader's and Jupyter's pages bring style sheets of their own. A page of
# ours sets the colours by its theme; elsewhere the fallbacks are readable on light and on dark.
# Grounds for white marks: they bring their own ground, so they can be read in a light and in a dark page.
GOOD = "#1f7a49"
BAD = "#b83a24"
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
        return show(answer["value"], SHOWN)
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


def wanted(task: Task, truth: Answer) -> str:
    """The right answer as a short text: of an exception the type alone, since its words are not asked for."""
    if task.verify is not None and isinstance(truth.get("value"), str):
        return str(truth["value"])
    return in_words({"raised": truth["raised"]} if "raised" in truth else truth)


def call_text(task: Task, case: Sequence[Any]) -> str:
    """The call that was tried, as one would type it."""
    given = [show(argument, SHOWN) for argument in case[bool(task.builds) :]]
    call = f"{task.function}({', '.join([*task.builds, *given])})"
    return f"{case[0].rstrip()}\n\n{call}" if task.builds else call


@dataclass(frozen=True)
class Lost:
    """One thing that went wrong: the property to show it by, and the others where it went wrong likewise."""

    result: PropertyResult
    failure: Failure
    others: tuple[PropertyResult, ...]
    first: bool

    def remarks(self) -> list[tuple[str, str]]:
        """What there is to say below the case, each with its label."""
        said = []
        unlike, prop = self.failure.unlike, self.result.prop
        yours = self.failure.yours
        ended = next((LOOK_FOR[key] for key in (*yours, yours.get("raised")) if key in LOOK_FOR), "")
        if self.failure.problem:
            said.append(("what is wrong", self.failure.problem))
        if unlike:
            said.append(("another type", unlike))
        if ended:
            said.append(("look for", ended))
        if self.result.slipped and not unlike:
            # Once something else went wrong, the code may well do what the slip is about.
            said.append(("likely slip" if self.first and not ended else "also look at", prop.slip))
        if self.others:
            said.append(("the same in", "; ".join(other.prop.name for other in self.others)))
        return said


def lost(task: Task, results: Sequence[PropertyResult]) -> list[Lost]:
    """What went wrong, in the order of the properties; no value for the same reason is one thing, shown by
    the case that is easiest to see.
    """
    ways: dict[Any, list[PropertyResult]] = {}
    for place, result in enumerate(results):
        if result.simplest is not None:
            ending = result.simplest.ending
            ways.setdefault(place if ending is None else ending, []).append(result)
    found: list[Lost] = []
    for alike in ways.values():
        pairs = [(result, result.simplest) for result in alike if result.simplest is not None]
        result, failure = min(pairs, key=lambda pair: readability(task, pair[1]))
        others = tuple(other for other in alike if other is not result)
        found.append(Lost(result, failure, others, first=not found))
    return found


def as_text(task: Task, results: Sequence[PropertyResult], heading: str) -> str:
    """The results as plain text, for a terminal and for nbgrader's Validate."""
    lines = [heading]
    shown = {id(one.result): one for one in lost(task, results)}
    for result in results:
        mark = "ok  " if result.won else "FAIL"
        lines.append(f"  {mark} {result.prop.name}: {result.cases - result.wrong} of {result.cases} cases right")
        if id(result) in shown:
            one = shown[id(result)]
            tried = call_text(task, one.failure.case).replace("\n", f"\n{' ' * 16}")
            lines.append(f"       tried    {tried}")
            lines.append(f"       expected {wanted(task, one.failure.expected)}")
            lines.append(f"       yours    {in_words(one.failure.yours)}")
            lines += [f"       {label}: {said}" for label, said in one.remarks()]
    return "\n".join(lines)


def as_html(task: Task, results: Sequence[PropertyResult], heading: str) -> str:
    """The results as HTML that needs no script and no style sheet. Everything that came from outside is
    escaped.
    """
    rows = "".join(_row(result) for result in results)
    failed = lost(task, results)
    head = f'<th style="{CELL}"></th><th style="{CELL}">what was checked</th><th style="{NUMBER}">cases right</th>'
    table = f'<table style="{STYLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    parts = [f'<p class="glassbox-heading"><strong>{html.escape(heading)}</strong></p>', table]
    if failed:
        pictures = [_picture(task, one.failure) for one in failed]
        # One drawing is enough to see what is meant, and a page of them is slow to read.
        drawn = next((place for place, picture in enumerate(pictures) if picture), None)
        for place, one in enumerate(failed):
            parts.append(_failure(task, one, pictures[place] if place == drawn else ""))
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
    style = f"background:{GOOD if won else BAD};color:#fff;border-radius:3px;padding:0 .3em;font-weight:bold"
    return f'<span style="{style}">{"✓" if won else "✗"}</span>'


def _failure(task: Task, one: Lost, picture: str) -> str:
    lines = [
        ("tried", call_text(task, one.failure.case)),
        ("expected", wanted(task, one.failure.expected)),
        ("yours", in_words(one.failure.yours)),
    ]
    table = "".join(
        f'<tr style="background:none"><td style="{LINE}"><span style="{SOFT}">{name}</span></td>'
        f'<td style="{LINE}"><code style="{VALUE}">{html.escape(text)}</code></td></tr>'
        for name, text in lines
    )
    figure = f'<div style="overflow-x:auto">{picture}</div>' if picture else ""
    remarks = "".join(
        f'<p style="margin:.4em 0"><strong>{label.capitalize()}:</strong> {html.escape(said)}</p>'
        for label, said in one.remarks()
    )
    return (
        f'<div style="border-left:3px solid {BAD};padding:.1em 0 .1em 1em;margin:1em 0">'
        f'<p style="margin:.2em 0">{_mark(False)} <strong>{html.escape(one.result.prop.name)}</strong></p>'
        f'<table style="{STYLE}"><tbody>{table}</tbody></table>{figure}{remarks}</div>'
    )


def _picture(task: Task, failure: Failure) -> str:
    """Input, expected and yours side by side; "" where neither of the first two can be drawn, and where no
    picture shows the difference.
    """
    if failure.unlike:
        return ""
    panels = {
        "input": (view("input", task, failure.case, None), ""),
        "expected": (_answered("expected", task, failure, failure.expected), wanted(task, failure.expected)),
        "yours": (_answered("yours", task, failure, failure.yours), in_words(failure.yours)),
    }
    want, have = panels["expected"][0], panels["yours"][0]
    if (want or panels["input"][0]) is None or (want and have and _numbers(want) == _numbers(have)):
        return ""
    shown = {name: (name, drawn, "" if drawn else note) for name, (drawn, note) in panels.items() if drawn or note}
    return draw.layout_comparison(shown.get("input"), shown["expected"], shown["yours"])._repr_html_()


def _answered(name: str, task: Task, failure: Failure, answer: Answer) -> StorageView | None:
    # None as an answer says that there is no layout; to `views` it would ask for the input's.
    value = answer.get("value")
    return None if value is None else view(name, task, failure.case, value)


def _numbers(drawn: StorageView) -> tuple[object, ...]:
    return drawn.shape, drawn.stride, drawn.offset
