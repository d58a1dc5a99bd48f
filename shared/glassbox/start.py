"""The start page: which parts of the course are here, how the labs stand, what was kept. PyTorch has no twin.

`course.py grade` writes one results/<lab>.json for each graded lab, `keep` writes results/keepsakes/; this
module reads both. Nothing here needs torch or Jupyter.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from os.path import relpath
from pathlib import Path
from typing import Any

from .records import Rows, Table, html_table


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its branch on the map ("" for none), its notebook and its lab ("" for none) by bare names.

    `minutes` is the time to read the notebook, without the lab; `able` ends the sentence "after it you can".
    """

    branch: str
    title: str
    notebook: str
    lab: str
    minutes: int
    able: str


SECTIONS = (
    Section(
        "storage",
        "Tensor and storage",
        "01_storage",
        "lab1_storage",
        30,
        "say which bytes a tensor reads, which operations copy them, and what keeps them alive",
    ),
    Section(
        "dispatcher",
        "Dispatcher",
        "02_dispatcher",
        "lab2_dispatcher",
        35,
        "say for any call which kernel runs and why, and add operators and kernels of your own",
    ),
    Section(
        "autograd",
        "Autograd",
        "03_autograd",
        "lab3_autograd",
        35,
        "read the graph behind a result, follow backward through it, and say where its memory goes",
    ),
    Section(
        "call_path",
        "The a + b call path",
        "04_call_path",
        "lab4_call_path",
        30,
        "name the eight stations from the plus sign to the kernel, and say what each of them costs",
    ),
    Section(
        "",
        "Interception",
        "05_interception",
        "lab5_interception",
        45,
        "watch every operator of a real model, find hidden copies, and write such an instrument",
    ),
    Section("", "Review", "06_review", "", 30, "draw the whole path from memory, and know what to read again"),
)

# what it is, the file that `keep` writes, the notebook that makes it
KEEPSAKES = (
    ("your own notes on Tensor and Storage: a figure of your own tensors", "storage.svg", "01_storage"),
    ("a DispatchKey cheat sheet, made from your installed torch", "dispatch_keys.md", "02_dispatcher"),
    ("a working __torch_dispatch__ interceptor", "interceptor.py", "05_interception"),
    ("an annotated a + b call path, with the frames seen on your machine", "call_path.md", "04_call_path"),
    ("the operator portrait of ResNet-18: a table of the ops that run", "resnet18.md", "05_interception"),
)


# not strftime's, which speaks the language that the system is set to
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]


def course_root(start: Path | None = None) -> Path:
    """The folder of this course: the nearest from `start` (the current folder) upwards with a course.py.

    FileNotFoundError outside a course folder.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "course.py").is_file() and (folder / "notebooks").is_dir():
            return folder
    raise FileNotFoundError(f"No course folder around {here}: open the notebook where it lies in the course.")


@dataclass(frozen=True, slots=True)
class LabResult:
    """How one lab stands: `score` and `max_score` in points, both None where it has not been graded.

    `time` is the moment of grading in ISO form; `problem` is a sentence about a results file that cannot be
    read, else ""; `link` leads from the current folder to the lab's notebook, "" where it is not here.
    """

    lab: str
    branch: str
    score: float | None = None
    max_score: float | None = None
    time: str = ""
    written: str = ""
    problem: str = ""
    link: str = ""

    @property
    def share(self) -> float:
        """Points won over points there are, 0..1; 0 where nothing is known."""
        return self.score / self.max_score if self.score is not None and self.max_score else 0.0

    @property
    def state(self) -> str:
        if self.problem:
            return self.problem
        if self.score is None or self.max_score is None:
            return "not graded yet"
        return f"{self.score:g} of {self.max_score:g} points"


@dataclass(frozen=True, slots=True)
class Progress(Table):
    """The labs that are here, and what `course.py grade` last said about each."""

    results: tuple[LabResult, ...]

    def __getitem__(self, lab: str) -> LabResult:
        for result in self.results:
            if result.lab == lab:
                return result
        known = ", ".join(r.lab for r in self.results) or "none"
        raise KeyError(f"there is no lab {lab!r} here; there is {known}")

    @property
    def next(self) -> str:
        """The lab to go on with: the first one not graded yet, else the first not full; "" where all are full."""
        unfinished = [r for r in self.results if r.share < 1]
        return next((r.lab for r in unfinished if r.score is None), unfinished[0].lab if unfinished else "")

    def branches(self) -> dict[str, float]:
        """Share of each branch's lab, 0..1, for the map."""
        return {r.branch: r.share for r in self.results if r.branch}

    def rows(self) -> Rows:
        return [
            {"lab": r.lab, "graded": r.state, "written answer": r.written, "when": in_words(r.time)}
            for r in self.results
        ]

    def caption(self) -> str:
        """The points so far, over those of all labs that were graded, and what comes next."""
        if not self.results:
            return "No lab is here yet"
        graded = [r for r in self.results if r.score is not None]
        score, top = sum(r.score or 0.0 for r in graded), sum(r.max_score or 0.0 for r in graded)
        of = f"{len(graded)} of {len(self.results)} labs graded"
        so_far = f"Your labs: {of}, {score:g} of their {top:g} points" if graded else "Your labs: none graded yet"
        return f"{so_far}; next is {self.next}" if self.next else f"{so_far}; that is all of them"

    def _repr_html_(self) -> str:
        """The records' own table, in which each lab that is here links to its notebook."""
        table = html_table(self.rows(), self.caption())
        for r in self.results:
            if r.link:
                linked = f'<a href="{html.escape(r.link)}">{r.lab}</a>'
                table = table.replace(f">{r.lab}</code>", f">{linked}</code>")
        return table


def progress(root: Path | None = None) -> Progress:
    """Reads results/<lab>.json for each lab whose folder is here; a missing file means not graded yet.

    FileNotFoundError outside a course folder. A file that cannot be read gives a LabResult with a `problem`.
    """
    root = root or course_root()
    here = [s for s in SECTIONS if s.lab and (root / "labs" / s.lab).is_dir()]
    results = []
    for s in here:
        notebook = root / "labs" / s.lab / f"{s.lab}.ipynb"
        result = _result(s, root / "results" / f"{s.lab}.json")
        results.append(replace(result, link=_link(notebook) if notebook.is_file() else ""))
    return Progress(tuple(results))


def _result(section: Section, path: Path) -> LabResult:
    if not path.is_file():
        return LabResult(section.lab, section.branch)
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        score, top = _points(said["score"]), _points(said["max_score"])
        return LabResult(section.lab, section.branch, score, top, str(said.get("time", "")), _written(said))
    except (ValueError, KeyError, TypeError, OSError):
        problem = f"results/{path.name} cannot be read: grade the lab again"
        return LabResult(section.lab, section.branch, problem=problem)


def in_words(time: str) -> str:
    """A moment in ISO form as "30 November 2026, 09:11", on this machine's clock; any other text as it is."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return time
    if moment.tzinfo is not None:
        moment = moment.astimezone()
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M}"


def _points(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r} is no number of points")
    return number


def _written(said: Mapping[str, Any]) -> str:
    """The questions answered in words: a person marks them, so they are counted apart from the points."""
    answered = [bool(item["answered"]) for item in said.get("written", [])]
    if not answered:
        return ""
    if all(answered):
        return "written, marked by hand"
    return "not written yet" if len(answered) == 1 else f"{sum(answered)} of {len(answered)} written"


@dataclass(frozen=True, slots=True)
class LinkedTable(Table):
    """A table with at least one row in which columns may link: `links` has the paths of each row by column."""

    title: str
    lines: tuple[tuple[tuple[str, str], ...], ...]
    links: tuple[Mapping[str, str], ...]

    def rows(self) -> Rows:
        return [dict(line) for line in self.lines]

    def caption(self) -> str:
        return self.title

    def _repr_html_(self) -> str:
        """Words rather than code, so not the records' own table: cells wrap, and may link."""
        lines = []
        for line, links in zip(self.lines, self.links, strict=True):
            texts = []
            for name, text in line:
                shown, link = html.escape(text), links.get(name)
                texts.append(f'<a href="{html.escape(link)}">{shown}</a>' if link else shown)
            lines.append("".join(f'<td style="text-align:left">{text}</td>' for text in texts))
        names = "".join(
            f'<th scope="col" style="text-align:left">{html.escape(n)}</th>' for n, _ in self.lines[0]
        )
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        label = html.escape(self.title)
        return f'<table aria-label="{label}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'


def sections(root: Path | None = None) -> LinkedTable:
    """The sections in order, linked where their notebook lies here: an instructor may hand them out one by one."""
    root = root or course_root()
    lines, links = [], []
    for s in SECTIONS:
        notebook = root / "notebooks" / f"{s.notebook}.ipynb"
        here = notebook.is_file()
        lab = root / "labs" / s.lab / f"{s.lab}.ipynb"
        lines.append(
            (
                ("notebook", s.notebook if here else f"{s.notebook} (not here yet)"),
                ("section", s.title),
                ("minutes", str(s.minutes)),
                ("after it you can", s.able),
                ("lab", s.lab if s.lab and (root / "labs" / s.lab).is_dir() else ""),
            )
        )
        found = {"notebook": notebook, "lab": lab}
        links.append({name: _link(path) for name, path in found.items() if path.is_file()})
    return LinkedTable("Sections", tuple(lines), tuple(links))


def take_home(root: Path | None = None) -> LinkedTable:
    """The five things that the reader takes home: kept already, or made in a notebook."""
    root = root or course_root()
    lines, links = [], []
    for what, file, notebook in KEEPSAKES:
        kept = root / "results" / "keepsakes" / file
        here = (root / "notebooks" / f"{notebook}.ipynb").is_file()
        state = f"kept: {file}" if kept.is_file() else f"made in {notebook}" + ("" if here else " (not here yet)")
        lines.append((("you take home", what), ("state", state)))
        links.append({"you take home": _link(kept)} if kept.is_file() else {})
    return LinkedTable("What you take home", tuple(lines), tuple(links))


def keep(name: str, thing: Any, root: Path | None = None) -> Path:
    """Saves something to take home as results/keepsakes/`name`, in place of an earlier one; gives its path.

    `thing` is text, a figure (anything with `save(path)`) or a table (anything with `to_markdown()`).
    ValueError for a name that is a path, TypeError for anything else to keep.
    """
    if Path(name).name != name:
        raise ValueError(f"keep: {name!r} is a path; give a plain file name such as 'storage.svg'.")
    path = (root or course_root()) / "results" / "keepsakes" / name
    if not (isinstance(thing, str) or hasattr(thing, "save") or hasattr(thing, "to_markdown")):
        raise TypeError(f"keep: {type(thing).__name__} is neither text nor a figure nor a table.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(thing, str):
        path.write_text(thing, encoding="utf-8")
    elif hasattr(thing, "save"):
        thing.save(path)
    else:
        path.write_text(thing.to_markdown() + "\n", encoding="utf-8")
    return path


def _link(path: Path) -> str:
    """`path` as seen from the current folder: a link in an output starts where the notebook runs."""
    return Path(relpath(path)).as_posix()
