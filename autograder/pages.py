"""A grade for people: a table for the terminal, a page for the browser, a results file for the start page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from glassbox.start import in_words
from glassbox.tasks import catalogue
from glassbox.tasks.model import Task
from glassbox.tasks.plain import writable

from . import labs, prose
from .grading import Grade, TaskGrade
from .look import STYLE

UNWRITTEN = "not written yet"


def table(grade: Grade) -> str:
    """The grade as a table of tasks with what failed and why, for a terminal."""
    width = max((len(task.title) for task in grade.tasks), default=10)
    lines = [f"{grade.lab}", ""]
    for task in grade.tasks:
        note = task.note or _lost(task.properties)
        lines.append(f"  {task.title:<{width}}  {task.score:>5g} / {task.max_score:<4g} {note}".rstrip())
    lines += [
        "",
        f"  {'automatic points':<{width}}  {grade.score:>5g} / {grade.max_score:<4g} {grade.percent:.0f} %",
    ]
    for item in grade.written:
        state = "answered, to be graded by hand" if item.answered else "no answer yet; graded by hand"
        lines.append(f"  {'written answer (apart)':<{width}}      - / {item.max_score:<4g} {state}")
    failed = [task for task in grade.tasks if task.score < task.max_score and "\n" in task.text]
    for task in failed:
        lines += ["", task.text]
    return "\n".join(lines)


def _lost(properties: tuple[dict[str, object], ...]) -> str:
    lost = [str(item["name"]) for item in properties if not item["won"]]
    if len(lost) > 1 and len(lost) == len(properties):
        return "lost: every property"
    return "lost: " + "; ".join(lost) if lost else ""


def page(grade: Grade) -> str:
    """The grade as one HTML page that needs nothing else."""
    written = "".join(
        worth(
            "Written answer",
            None,
            item.max_score,
            "answered; a person reads it" if item.answered else "no answer yet",
        )
        for item in grade.written
    )
    return document(
        title(grade.lab),
        f"graded here on {in_words(grade.time)}",
        scores(worth("Automatic points", grade.score, grade.max_score), written),
        standing(grade.tasks),
        contents(grade.tasks),
        *(section(task) for task in grade.tasks),
    )


def document(heading: str, facts: str, *parts: str) -> str:
    """A page with this heading, a line of facts below it, and the parts, which are HTML already."""
    return writable(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(heading)}</title><style>{STYLE}</style></head><body>"
        f'<header><h1>{html.escape(heading)}</h1><p class="soft">{html.escape(facts)}</p></header>'
        f"<main>{''.join(parts)}</main></body></html>\n"
    )


def master(lab: str) -> Any:
    """The notebook that `lab` is made from; None where this copy of the course has no such lab."""
    path = labs.source(lab) / f"{lab}.ipynb"
    return nbformat.read(path, as_version=4) if path.is_file() else None


def title(lab: str) -> str:
    """The lab's name in words, its notebook's heading; its plain name where there is none."""
    notebook = master(lab)
    for cell in notebook.cells if notebook else []:
        found = re.match(r"# +(.+)", cell.source) if cell.cell_type == "markdown" else None
        if found:
            return found[1].strip()
    return lab


def scores(*worths: str) -> str:
    """What was won, side by side; each part is made by `worth`."""
    return f'<div class="scores">{"".join(worths)}</div>'


def worth(name: str, score: float | None, most: float, remark: str = "") -> str:
    """Points won of those there are, with a bar; without a score the remark stands in its place."""
    share = 100 * min(max((score or 0) / most, 0), 1) if most else 0
    won = "–" if score is None else f"{score:g}"
    return (
        f'<div class="worth"><div class="soft">{html.escape(name)}</div>'
        f'<div><span class="won">{won}</span> of {most:g}</div>'
        f'<div class="bar"><div style="width:{share:.0f}%"></div></div>'
        f'<div class="soft">{html.escape(remark)}</div></div>'
    )


def standing(tasks: Sequence[TaskGrade]) -> str:
    """One sentence: how many tasks are right, partly right, still to be written."""
    right = sum(task.score >= task.max_score for task in tasks)
    unwritten = sum(task.note == UNWRITTEN for task in tasks)
    partly = sum(0 < task.score < task.max_score for task in tasks)
    wrong = len(tasks) - right - unwritten - partly
    if tasks and right == len(tasks):
        return f"<p>All {len(tasks)} tasks are right. Well done.</p>"
    counts = (
        (right, "right"),
        (partly, "partly right"),
        (wrong, "not right yet"),
        (unwritten, UNWRITTEN),
    )
    told = ", ".join(f"{count} {words}" for count, words in counts if count)
    return f"<p>Of {len(tasks)} tasks: {told}.</p>" if told else ""


def contents(tasks: Sequence[TaskGrade], more: str = "") -> str:
    """A table of the tasks with mark, points and what was lost, each linked to its section; `more` is rows
    made by `entry`.
    """
    rows = "".join(
        entry(
            task.id, task.title, mark(task), task.score, task.max_score, task.note or _lost(task.properties)
        )
        for task in tasks
    )
    head = '<thead><tr><th></th><th>task</th><th class="number" colspan="2">points</th></tr></thead>'
    return f'<nav><table class="contents">{head}<tbody>{rows}{more}</tbody></table></nav>'


def entry(anchor: str, name: str, sign: str, score: float | None, most: float, remark: str) -> str:
    """A row of the table of tasks."""
    return (
        f'<tr><td>{sign}</td><td><a href="#{html.escape(anchor)}">{html.escape(name)}</a>'
        f'<div class="soft">{html.escape(remark)}</div></td>'
        f'<td class="number">{"–" if score is None else f"{score:g}"}</td>'
        f'<td class="number soft">of {most:g}</td></tr>'
    )


def mark(task: TaskGrade) -> str:
    """How a task stands, as a sign."""
    if task.score >= task.max_score:
        return sign("✓", "right", "good")
    if task.note == UNWRITTEN:
        return sign("○", UNWRITTEN, "soft")
    return sign("◐", "partly right", "part") if task.score > 0 else sign("✗", "not right yet", "bad")


def sign(shown: str, words: str, kind: str) -> str:
    """A sign whose meaning is told to those who cannot see it, too."""
    return f'<span class="sign {kind}" role="img" aria-label="{words}" title="{words}">{shown}</span>'


def section(task: TaskGrade, first: str = "", more: str = "") -> str:
    """All that is to be said about a task: `first`, then what was checked, what went wrong and where to read,
    then `more`.
    """
    report = task.html if task.html.startswith('<div class="glassbox-report">') else ""
    told = [_sentence(task.note)] if task.note else []
    if report and all(item["won"] for item in task.properties):
        report = folded(f"What was checked: {len(task.properties)} properties, all hold", report)
    about = known(task.id)
    if about and not report:
        minutes = f"It takes about {about.minutes} minutes. " if task.note == UNWRITTEN else ""
        told.append(f'<span class="soft">{minutes}To read: {html.escape(about.read)}</span>')
    note = f"<p>{' '.join(told)}</p>" if told else ""
    return part(task.id, mark(task), task.title, task.score, task.max_score, note + first + report + more)


def part(anchor: str, sign: str, name: str, score: float | None, most: float, body: str) -> str:
    """A section of the page with its points in the heading; `body` is HTML already."""
    won = "–" if score is None else f"{score:g}"
    return (
        f'<section id="{html.escape(anchor)}"><h2>{sign}<span>{html.escape(name)}</span>'
        f'<span class="points">{won} of {most:g}<span class="unit"> points</span></span></h2>{body}</section>'
    )


def folded(summary: str, body: str) -> str:
    """`body`, which is HTML already, behind a line that opens it."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"


def remark(text: str, who: str = "From your instructor") -> str:
    """A person's comment, written in Markdown, set off from what the judge says."""
    return f'<aside><div class="who">{html.escape(who)}</div>{prose.markdown(text)}</aside>'


def _sentence(text: str) -> str:
    shown = html.escape(text[:1].upper() + text[1:])
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def known(identity: str) -> Task | None:
    """The task with this id; None where the judge has none, as for a cell that an instructor added."""
    try:
        return catalogue.find(identity)
    except KeyError:
        return None


def save(grade: Grade, folder: Path) -> tuple[Path, Path]:
    """Writes LAB.json and LAB.html into `folder`, each whole or not at all; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{grade.lab}.json"
    shown = folder / f"{grade.lab}.html"
    for path, text in ((data, json.dumps(grade.as_dict(), indent=1) + "\n"), (shown, page(grade))):
        half = path.with_suffix(path.suffix + ".part")
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    return data, shown
