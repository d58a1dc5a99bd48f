"""Facts about the start page's helpers: what is here, how the labs stand, what was kept."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from glassbox import draw, start
from glassbox.draw.course import BRANCHES


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course folder in which only the first section exists and nothing is graded."""
    (tmp_path / "course.py").touch()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01_storage.ipynb").touch()
    (tmp_path / "labs" / "lab1_storage").mkdir(parents=True)
    return tmp_path


def grade(course: Path, said: object) -> None:
    (course / "results").mkdir(exist_ok=True)
    text = said if isinstance(said, str) else json.dumps(said)
    (course / "results" / "lab1_storage.json").write_text(text, encoding="utf-8")


RESULT = {
    "lab": "lab1_storage",
    "score": 72.5,
    "max_score": 100,
    "time": "2026-01-02 10:00",
    "tasks": [{"id": "lab1.expand", "title": "Expand", "score": 7, "max_score": 7}],
    "written": [{"id": "written_view_or_reshape", "max_score": 5, "answered": True}],
}


def test_the_root_is_found_from_any_folder_inside(course: Path) -> None:
    assert start.course_root(course / "labs" / "lab1_storage") == course.resolve()


def test_outside_a_course_there_is_no_root(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No course folder"):
        start.course_root(tmp_path)


def test_a_lab_without_results_is_not_graded_yet(course: Path) -> None:
    progress = start.progress(course)
    assert [r.lab for r in progress.results] == ["lab1_storage"]
    assert progress["lab1_storage"].state == "not graded yet"
    assert progress.branches() == {"storage": 0.0}


def test_a_lab_whose_notebook_is_here_is_linked(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(course / "notebooks")
    assert "<a " not in start.progress(course)._repr_html_()
    (course / "labs" / "lab1_storage" / "lab1_storage.ipynb").touch()
    shown = start.progress(course)._repr_html_()
    assert shown.count('<a href="../labs/lab1_storage/lab1_storage.ipynb">lab1_storage</a>') == 1
    assert shown.count("<a ") == 1


def test_a_graded_lab_tells_its_points_and_fills_its_branch(course: Path) -> None:
    grade(course, RESULT)
    progress = start.progress(course)
    assert progress["lab1_storage"].state == "72.5 of 100 points"
    assert progress.branches() == {"storage": 0.725}
    assert progress.rows()[0]["written answer"] == "written, marked by hand"
    assert "2 January 2026, 10:00" in str(progress) and "72.5 of 100" in progress._repr_html_()


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-11-30T09:11:20", "30 November 2026, 09:11"),
        ("2026-01-02 10:00", "2 January 2026, 10:00"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_when_a_lab_was_graded_is_told_in_words(course: Path, time: str, words: str) -> None:
    grade(course, RESULT | {"time": time})
    assert start.progress(course).rows()[0]["when"] == words


def test_when_is_told_by_the_clock_here() -> None:
    there = datetime(2026, 11, 30, 9, 11, tzinfo=timezone(timedelta(hours=-7)))
    here = there.astimezone().replace(tzinfo=None)
    assert start.in_words(there.isoformat()) == start.in_words(here.isoformat())


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        ([], ""),
        ([True], "written, marked by hand"),
        ([False], "not written yet"),
        ([True, False], "1 of 2 written"),
    ],
)
def test_written_answers_are_counted_apart(course: Path, answered: list[bool], words: str) -> None:
    grade(course, RESULT | {"written": [{"id": "w", "max_score": 5, "answered": a} for a in answered]})
    result = start.progress(course)["lab1_storage"]
    assert result.written == words
    assert result.score == 72.5 and result.max_score == 100


@pytest.mark.parametrize(
    "said",
    [
        "",
        "not json",
        [],
        {},
        RESULT | {"score": "many"},
        RESULT | {"score": None},
        RESULT | {"max_score": True},
        RESULT | {"score": -1},
        RESULT | {"written": 5},
        json.dumps(RESULT).replace("72.5", "NaN"),
    ],
)
def test_a_broken_results_file_says_what_to_do(course: Path, said: object) -> None:
    grade(course, said)
    result = start.progress(course)["lab1_storage"]
    assert result.state == "results/lab1_storage.json cannot be read: grade the lab again"
    assert result.share == 0.0


def test_an_unknown_lab_is_refused_by_name(course: Path) -> None:
    with pytest.raises(KeyError, match="lab1_storage"):
        start.progress(course)["lab9"]


def test_sections_link_what_is_here_and_name_what_is_not(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course / "notebooks")
    table = start.sections()
    notebooks = [row["notebook"] for row in table.rows()]
    assert notebooks[:2] == ["01_storage", "02_dispatcher (not here yet)"]
    assert [row["lab"] for row in table.rows()] == ["lab1_storage", "", "", "", "", ""]
    assert table.links == ({"notebook": "01_storage.ipynb"}, *[{}] * 5)
    assert table._repr_html_().count("<a href=") == 1
    (course / "labs" / "lab1_storage" / "lab1_storage.ipynb").write_text("{}", encoding="utf-8")
    assert start.sections().links[0]["lab"] == "../labs/lab1_storage/lab1_storage.ipynb"
    assert '<a href="../labs/lab1_storage/lab1_storage.ipynb">lab1_storage</a>' in start.sections()._repr_html_()


def test_five_things_are_taken_home(course: Path) -> None:
    rows = start.take_home(course).rows()
    assert [row["state"] for row in rows] == [
        "made in 01_storage",
        "made in 02_dispatcher (not here yet)",
        "made in 05_interception (not here yet)",
        "made in 04_call_path (not here yet)",
        "made in 05_interception (not here yet)",
    ]


def test_what_is_kept_is_linked(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(course / "notebooks")
    kept = start.keep("storage.svg", "<svg/>")
    assert kept == course.resolve() / "results" / "keepsakes" / "storage.svg"
    assert kept.read_text(encoding="utf-8") == "<svg/>"
    table = start.take_home()
    assert table.rows()[0]["state"] == "kept: storage.svg"
    assert table.links[0] == {"you take home": "../results/keepsakes/storage.svg"}


def test_tables_and_figures_are_kept_by_their_own_means(course: Path) -> None:
    kept = start.keep("sections.md", start.sections(course), course)
    assert kept.read_text(encoding="utf-8").startswith("| notebook | section |")

    class Figure:
        def save(self, path: Path) -> None:
            path.write_text("drawn", encoding="utf-8")

    assert start.keep("f.svg", Figure(), course).read_text(encoding="utf-8") == "drawn"


def test_keep_refuses_paths_and_things_without_a_form(course: Path) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        start.keep("../storage.svg", "x", course)
    with pytest.raises(TypeError, match="int"):
        start.keep("storage.svg", 3, course)
    assert not (course / "results").exists()


def test_every_section_has_its_own_notebook_and_all_but_the_review_a_lab() -> None:
    assert len({s.notebook for s in start.SECTIONS}) == 6
    assert len({s.lab for s in start.SECTIONS if s.lab}) == 5
    assert [s.notebook for s in start.SECTIONS if not s.lab] == ["06_review"]


def labs(course: Path, **points: float | None) -> start.Progress:
    """How a course with these labs stands; None for one that was not graded."""
    (course / "results").mkdir(exist_ok=True)
    for section in start.SECTIONS:
        if section.lab[:4] in points:
            (course / "labs" / section.lab).mkdir(exist_ok=True)
            if (score := points[section.lab[:4]]) is not None:
                said = json.dumps(RESULT | {"lab": section.lab, "score": score})
                (course / "results" / f"{section.lab}.json").write_text(said, encoding="utf-8")
    return start.progress(course)


@pytest.mark.parametrize(
    ("points", "caption"),
    [
        ({"lab1": None, "lab2": None}, "Your labs: none graded yet; next is lab1_storage"),
        ({"lab1": 80, "lab2": None}, "Your labs: 1 of 2 labs graded, 80 of their 100 points; next is lab2_dispatcher"),
        ({"lab1": 100, "lab2": 97}, "Your labs: 2 of 2 labs graded, 197 of their 200 points; next is lab2_dispatcher"),
        ({"lab1": 80, "lab2": 90}, "Your labs: 2 of 2 labs graded, 170 of their 200 points; next is lab1_storage"),
        ({"lab1": 100, "lab2": 100}, "Your labs: 2 of 2 labs graded, 200 of their 200 points; that is all of them"),
    ],
)
def test_points_so_far_and_what_is_next(course: Path, points: dict[str, float | None], caption: str) -> None:
    assert labs(course, **points).caption() == caption


def test_the_map_can_draw_what_progress_gives(course: Path) -> None:
    for section in start.SECTIONS:
        if section.lab:
            (course / "labs" / section.lab).mkdir(exist_ok=True)
    branches = start.progress(course).branches()
    assert list(branches) == [branch.key for branch in BRANCHES]
    assert "Dispatcher" in draw.course_map(branches).text
