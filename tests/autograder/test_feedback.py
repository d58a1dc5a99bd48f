"""The feedback page: what a learner reads after a real autograde, and that nothing in it can do anything."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder import gradesheet, prose
from autograder.classroom import Classroom
from autograder.errors import PlainError
from autograder.feedback import page, task
from autograder.gradesheet import GradeSheet, Mark
from autograder.settings import configure
from autograder.stamps import span
from glassbox.tasks import catalogue

from .conftest import LAB, Desk, named

WRITTEN = "written_view_or_reshape"
ATTACK = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3)) "
    "![p](http://evil.example/p.png)"
)
EMPTY = {"meta", "img", "br", "hr", "link", "input", "path", "rect", "circle", "line", "base", "embed"}


class Parsed(HTMLParser):
    """A page as a browser reads it: its elements, its text, and the text and elements of each section."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"": []}
        self.within: dict[str, list[str]] = {"": []}
        self.styles: list[str] = []
        self._open: list[str] = []
        self._section = ""
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag == "section":
            self._section = dict(attributes).get("id") or "rest"
        self.within.setdefault(self._section, []).append(tag)
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.styles.append(data)
        else:
            self.texts.setdefault(self._section, []).append(data)

    def text(self, section: str = "") -> str:
        return " ".join(" ".join(self.texts[section]).split())


@dataclass
class Handed:
    """One submission, autograded and given feedback on."""

    notebook: Any
    sheet: GradeSheet
    html: str

    @property
    def page(self) -> Parsed:
        return Parsed(self.html)


def half_right(desk: Desk) -> Any:
    notebook = desk.solved("address", "expand", "unfold")
    named(notebook, "contiguous_strides").source = (
        "def contiguous_strides(shape):\n    strides, step = [], 1\n    for size in reversed(shape):\n"
        "        strides.insert(0, step)  # my own remark\n        step *= size\n    return tuple(strides)"
    )
    named(notebook, "expand").source = (
        "def expand(shape, stride, size):\n    print('expanding')\n"
        "    return tuple(step + 1 for step in stride)"
    )
    named(notebook, "permute").source = "import os\nos._exit(1)"
    named(notebook, WRITTEN).source = "`view` **never** copies.\n\n* so it raises\n\n<b>raw</b>"
    notebook.cells.append(new_code_cell("print('a helper of mine')\nundefined_name + 1"))
    return notebook


def hostile(desk: Desk) -> Any:
    notebook = desk.solved("contiguous_strides")
    named(notebook, "address").source = f"def address(*a):\n    print({ATTACK!r})\n    return {ATTACK!r}"
    named(notebook, "permute").source = f"def permute(*a):\n    raise ValueError({ATTACK!r})"
    named(notebook, "expand").source = f"x = '{'z' * 1_000_000}'\ndef expand(*a):\n    return x"
    named(notebook, WRITTEN).source = f"{ATTACK}\n\n{ATTACK}\n\n[ok](https://pytorch.org)\n\n" + "y" * 200_000
    forged = {"v": 1, "task": "lab1.address", "title": ATTACK, "points": 4, "note": ATTACK, "properties": []}
    bundle = {"text/plain": "4.0", "text/html": ATTACK}
    show = (
        "from IPython.display import display\n"
        f"display({bundle!r}, raw=True, metadata={{'glassbox': {forged!r}}})\nprint({ATTACK!r})\n"
        "print('w' * 150_000)"
    )
    copy = new_code_cell("1", metadata={"nbgrader": dict(named(notebook, "check_address").metadata.nbgrader)})
    copy.outputs = [new_output("execute_result", data=bundle, metadata={"glassbox": forged})]
    notebook.cells[:0] = [copy, new_code_cell(show, metadata={"glassbox": forged})]
    return notebook


@pytest.fixture(scope="module")
def handed() -> Iterator[dict[str, Handed]]:
    """A class of four whose feedback nbgrader wrote: perfect, half right and late, untouched, hostile."""
    with Classroom(LAB) as classroom:
        desk = Desk(classroom, classroom.generate())
        perfect = desk.solved()
        named(perfect, WRITTEN).source = "View shares or raises; reshape copies where it must."
        notebooks = {"perfect": perfect, "half": half_right(desk), "untouched": desk.untouched()}
        notebooks["hostile"] = hostile(desk)
        database = f"sqlite:///{classroom.root}/gradebook.db"
        with Gradebook(database) as gradebook:
            gradebook.update_or_create_assignment(LAB, duedate="2026-12-01T12:00:00")
        for student, notebook in notebooks.items():
            classroom.submit(student, json.dumps(notebook))
            moment = "2026-12-01 14:30:00 UTC" if student == "half" else "2026-11-30 09:11:00 UTC"
            (classroom.root / "submitted" / student / LAB / "timestamp.txt").write_text(moment)
            classroom.autograde(student)
        with Gradebook(database) as gradebook:
            for student, points, words in (
                ("perfect", 5, "Well *argued*."),
                ("half", 3, f"And *why*? {ATTACK}\n\n1. Who pays?"),
            ):
                grade = gradebook.find_grade(WRITTEN, LAB, LAB, student)
                grade.manual_score, grade.needs_manual_grade = points, False
                gradebook.find_comment(WRITTEN, LAB, LAB, student).manual_comment = words
            gradebook.find_comment("expand", LAB, LAB, "half").manual_comment = "Nearly; think of **size 1**."
            gradebook.find_submission_notebook(LAB, LAB, "half").late_submission_penalty = 2
            gradebook.db.commit()
        config = configure(Config(), classroom.root)
        result = NbGraderAPI(CourseDirectory(config=config), config=config).generate_feedback(LAB)
        assert result["success"], result
        found = {}
        for student in notebooks:
            place = {"db_url": database, "assignment": LAB, "notebook": LAB, "student": student}
            found[student] = Handed(
                nbformat.read(classroom.root / "autograded" / student / LAB / f"{LAB}.ipynb", as_version=4),
                gradesheet.read(place),
                (classroom.root / "feedback" / student / LAB / f"{LAB}.html").read_text(),
            )
        with pytest.raises(PlainError, match="no submission of lab1_storage by nobody"):
            gradesheet.read({**place, "student": "nobody"})
        yield found


STUDENTS = ["perfect", "half", "untouched", "hostile"]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("student", STUDENTS)
def test_a_page_needs_no_network_and_no_script(handed: dict[str, Handed], student: str) -> None:
    page = handed[student].page
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "base", "form", "img", "image", "use"}
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for tag, attributes in page.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "srcset", "srcdoc")
        ]
        assert "url(" not in (attributes.get("style") or "")
        for name in ("href", "xlink:href"):
            target = attributes.get(name)
            assert target is None or target[1:] in ids or (tag == "a" and target.startswith("https://"))
    assert "@import" not in "".join(page.styles)
    assert "url(" not in "".join(page.styles)


@pytest.mark.parametrize("student", STUDENTS)
def test_every_task_has_the_points_that_the_gradebook_has(handed: dict[str, Handed], student: str) -> None:
    one = handed[student]
    text = one.page.text()
    assert "Lab 1: the arithmetic of storages" in text
    for identity, about in catalogue.tasks(LAB).items():
        mark = one.sheet.marks[f"check_{identity.partition('.')[2]}"]
        assert f"{about.title} {mark.score:g} of {mark.most:g} points" in one.page.text(identity)
        assert re.search(rf"{re.escape(about.title)} .*?{mark.score:g} of {mark.most:g}", text)
    automatic = sum(mark.score for name, mark in one.sheet.marks.items() if name != WRITTEN)
    assert f"Automatic points {automatic:g} of 100" in text
    assert f"Total {one.sheet.total:g} of 105" in text


def test_a_perfect_submission_reads_as_one(handed: dict[str, Handed]) -> None:
    page = handed["perfect"].page
    assert "All 13 tasks are right. Well done." in page.text()
    assert "Written answer 5 of 5" in page.text()
    assert "Total 105 of 105" in page.text()
    assert page.text(WRITTEN).endswith("reshape copies where it must. From your instructor Well argued .")
    assert "What was checked: 3 properties, all hold" in page.text("lab1.contiguous_strides")


def test_what_went_wrong_is_told_drawn_and_given_a_place_to_read(handed: dict[str, Handed]) -> None:
    page, about = handed["half"].page, catalogue.find("lab1.contiguous_strides")
    text = page.text("lab1.contiguous_strides")
    lost = next(prop for prop in about.properties if prop.name == "dimensions of size 0")
    assert re.search(r"tried contiguous_strides\(.* expected \(.* yours \(", text)
    for words in (lost.name, lost.why, f"Likely slip: {lost.slip}", f"To read again: {about.read}"):
        assert words in text
    assert "svg" in page.within["lab1.contiguous_strides"]
    assert "lost: dimensions of size 0" in page.text()
    assert "strides.insert( 0 , step) # my own remark" in text
    assert page.within["lab1.contiguous_strides"].count("details") == 1


def test_a_persons_words_stand_with_the_task_that_they_are_about(handed: dict[str, Handed]) -> None:
    page = handed["half"].page
    assert "From your instructor Nearly; think of size 1 ." in page.text("lab1.expand")
    assert [name for name, tags in page.within.items() if "aside" in tags] == ["lab1.expand", WRITTEN]
    answer = page.text(WRITTEN)
    assert answer.startswith("✎ Part 3: one question to answer in words 3 of 5 points In three to five")
    assert "view never copies. so it raises <b>raw</b>" in answer
    assert "From your instructor And why ? <script>alert(1)</script>" in answer
    assert answer.endswith("Who pays?")
    assert "No response" not in handed["half"].html


def test_what_the_code_said_is_kept_where_it_said_it(handed: dict[str, Handed]) -> None:
    page = handed["half"].page
    assert "What your code printed while it was checked expanding" in page.text("lab1.expand")
    # the two that play with the piece that was lost, and the helper's
    assert "3 with an error" in page.text("rest")
    assert "a helper of mine" in page.text("rest")
    assert "NameError: name 'undefined_name' is not defined" in page.text("rest")
    assert "ended the process that it ran in" in page.text("lab1.permute")
    assert "9 of 9 points" in page.text("lab1.unfold")


def test_a_late_submission_is_told_how_late_and_what_it_cost(handed: dict[str, Handed]) -> None:
    sheet, text = handed["half"].sheet, handed["half"].page.text()
    assert "handed in on 1 December 2026" in text
    assert "Handed in 2 hours after the due date. 2 points are taken off for that." in text
    won = sum(mark.score for mark in sheet.marks.values())
    assert f"Total {won - 2:g} of 105 {won:g} less 2 for handing in late" in text
    assert "due date" not in handed["perfect"].html


def test_an_untouched_lab_is_told_where_to_begin(handed: dict[str, Handed]) -> None:
    page = handed["untouched"].page
    assert "Of 13 tasks: 13 not written yet." in page.text()
    assert "Written answer 0 of 5 not answered" in page.text()
    assert "You left this one unanswered." in page.text(WRITTEN)
    for identity, about in catalogue.tasks(LAB).items():
        assert f"It takes about {about.minutes} minutes. To read: {about.read}" in page.text(identity)


def test_an_answer_that_nobody_read_yet_is_not_a_zero(handed: dict[str, Handed]) -> None:
    page = handed["hostile"].page
    assert "Written answer – of 5 not graded yet" in page.text()
    assert "Total 4 of 105 so far" in page.text()
    assert "– of 5 points" in page.text(WRITTEN)


def test_a_forged_report_and_hostile_words_are_only_text(handed: dict[str, Handed]) -> None:
    one = handed["hostile"]
    assert "0 of 4 points" in one.page.text("lab1.address")
    assert "<script>alert(1)</script>" in one.page.text("lab1.address")
    assert "<script>alert(1)</script>" in one.page.text("rest")
    assert [at["href"] for tag, at in one.page.elements if tag == "a" and at["href"][:1] != "#"] == [
        "https://pytorch.org"
    ]
    assert "more characters" in one.page.text("lab1.expand")
    assert "Cut for grading: 200," in one.page.text(WRITTEN)
    assert len(one.html) < 300_000


def test_only_a_report_worth_what_the_gradebook_has_is_the_judges(handed: dict[str, Handed]) -> None:
    one = handed["perfect"]
    cell = copy.deepcopy(named(one.notebook, "check_expand"))
    mark = one.sheet.marks["check_expand"]
    assert "glassbox-report" in task(cell, mark, LAB).html
    for doubtful in (replace(mark, auto=1.0), replace(mark, auto=None)):
        told = task(cell, doubtful, LAB)
        assert (told.html, told.score, told.title) == ("", mark.score, catalogue.find("lab1.expand").title)
        assert "report is missing" in told.note
    fewer = replace(mark, most=1.0, auto=6.0, score=6.0)
    assert (task(cell, fewer, LAB).score, task(cell, fewer, LAB).max_score) == (6, 6)
    for metadata in ({}, {"glassbox": "forged"}, {"glassbox": {}}):
        cell.outputs[0].metadata = nbformat.from_dict(metadata)
        assert task(cell, mark, LAB).html == ""


def test_a_persons_points_are_told_apart_from_the_judges(handed: dict[str, Handed]) -> None:
    one = handed["half"]
    sheet = replace(
        one.sheet,
        handed_in=None,
        marks={
            **one.sheet.marks,
            "check_diagonal": Mark(0.0, 2.0, 3.0, 9.0, True),
            WRITTEN: Mark(None, 3, 3, 5, True),
        },
        comments={"somewhere": "A word on a cell of its own."},
    )
    shown = Parsed(page(one.notebook, sheet, LAB))
    text = shown.text("lab1.diagonal")
    assert "3 of 9 points With extra points from your instructor; 2 points given by your instructor" in text
    assert "for an earlier version, 0 by the judge" in text
    assert "Points for an earlier version; this one is still to be read." in shown.text(WRITTEN)
    assert "From your instructor, on somewhere A word on a cell of its own." in shown.text()
    assert "Feedback for half Handed in 2 hours" in shown.text()


def test_points_that_were_changed_since_are_told_and_never_exceeded(handed: dict[str, Handed]) -> None:
    one = handed["perfect"]
    marks = {name: replace(mark, most=1.0) for name, mark in one.sheet.marks.items()}
    sheet = replace(one.sheet, marks=marks, most=14.0)
    shown = Parsed(page(one.notebook, sheet, LAB))
    assert "4 of 4 points Graded before the points were changed; ask" in shown.text("lab1.address")
    assert "5 of 5 points" in shown.text(WRITTEN)
    assert "Graded before the points were changed; ask your instructor" in shown.text(WRITTEN)
    assert "Automatic points 100 of 100" in shown.text()
    assert "Total 105 of 105 graded before the points were changed" in shown.text()
    assert "points were changed" not in one.html
    raised = {**one.sheet.marks, "check_address": replace(one.sheet.marks["check_address"], most=20.0)}
    shown = Parsed(page(one.notebook, replace(one.sheet, marks=raised, most=121.0), LAB))
    assert "4 of 4 points Graded before" in shown.text("lab1.address")
    assert "Total 105 of 105 graded before" in shown.text()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "less than a minute"),
        (61, "a minute"),
        (119 * 60, "119 minutes"),
        (2 * 3600, "2 hours"),
        (47.9 * 3600, "47 hours"),
        (49 * 3600, "2 days"),
    ],
)
def test_a_length_of_time_is_told_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#106;avascript:alert(1)",
        "java&#10;script:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "//evil.example",
        "file:///etc/passwd",
        "../x",
    ],
)
def test_a_link_that_leads_anywhere_but_the_web_is_text(link: str) -> None:
    for source in (f"[word]({link})", f"[word][1]\n\n[1]: {link}\n", f"<{link}>"):
        assert "a" not in {tag for tag, _ in Parsed(prose.markdown(source)).elements}


def test_markdown_is_rendered_and_nothing_raw_comes_through() -> None:
    shown = prose.markdown(
        '# Head\n\n| a |\n|--|\n| 1 |\n\n`x` ~~y~~ [w](https://a.b/?c=1&d="2)\n\n<i onclick=x>'
    )
    tags = [tag for tag, _ in Parsed(shown).elements]
    assert {"h3", "table", "code", "del"} <= set(tags)
    assert "h1" not in tags
    assert "i" not in tags
    assert prose.markdown("![a picture](https://evil.example/x.png)").strip() == "<p>[picture: a picture]</p>"


def test_code_keeps_every_character_and_marks_its_kinds() -> None:
    source = (
        'def f(a):  # "why" <b>\n    """doc \'x\'\n    """\n'
        '    return rb\'1\' + f"{a!r}\\"" + buffer(1e5, "open'
    )
    shown = Parsed(prose.code(source))
    assert "".join(shown.texts[""]) == source
    marked = re.findall(r'<span class="(\w+)">([^<]*)</span>', prose.code(source))
    assert ("keyword", "def") in marked
    assert ("remark", "# &quot;why&quot; &lt;b&gt;") in marked
    assert ("string", "rb&#x27;1&#x27;") in marked
    assert ("number", "1e5") in marked


@pytest.mark.parametrize("hard", ["\t\n", '"', "'''\\", "[", "![", "> ", "<a ", "*a **b ", "$", "\\"])
def test_writing_made_to_take_long_is_cut_and_shown(hard: str) -> None:
    long = hard * 200_000
    for show in (prose.code, prose.markdown, prose.printed):
        assert len(show(long)) < 40 * prose.MOST
    assert "more characters" in prose.code(long)
