"""A grade for people: a table for the terminal, a page for the browser, a results file for the start page."""

from __future__ import annotations

import html
import json
from pathlib import Path

from glassbox.start import in_words

from .grading import Grade

STYLE = """
:root { color-scheme: light dark; --line: #8885; --accent: #d97706; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem .9rem .25rem 0; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, monospace; }
.soft { opacity: .7; }
nav td:nth-child(2) { white-space: nowrap; }
section { margin-top: 2rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.score { font-size: 2rem; color: var(--accent); }
"""


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
    rows = "".join(
        f"<tr><td>{'✓' if task.score == task.max_score else '✗' if not task.score else '◐'}</td>"
        f'<td><a href="#{html.escape(task.id)}">{html.escape(task.title)}</a></td>'
        f'<td class="number">{task.score:g}</td><td class="number">{task.max_score:g}</td>'
        f'<td class="soft">{html.escape(task.note or _lost(task.properties))}</td></tr>'
        for task in grade.tasks
    )
    sections = "".join(f'<section id="{html.escape(task.id)}">{task.html}</section>' for task in grade.tasks)
    written = "".join(
        f"<p>Written answer, graded by hand and counted apart ({item.max_score:g} points): "
        f"{'answered' if item.answered else 'no answer yet'}.</p>"
        for item in grade.written
    )
    when = in_words(grade.time)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(grade.lab)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{html.escape(grade.lab)}</h1>"
        f'<p><span class="score">{grade.score:g}</span> of {grade.max_score:g} points '
        f'<span class="soft">· {html.escape(when)}</span></p>{written}'
        "<nav><table><thead><tr><th></th><th>task</th><th>points</th><th>of</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table></nav>"
        f"{sections}</body></html>\n"
    )


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
