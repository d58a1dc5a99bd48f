"""A class goes the whole way in JupyterLab, by clicks: from a fresh copy of the course to feedback that is
read.

Pictures are kept in test-artifacts/classroom; autograder/README.md shows them.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import browsing
import nbformat
import pytest
from browsing import Watch, cell, ready
from panels import LAB, Assignments, Formgrader, validation
from people import Person, give, run
from playwright.sync_api import Page, expect
from serving import Jupyter, copy_course

from autograder import exchanging
from autograder.grading import grade

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WINDOW = {"width": 1280, "height": 900}
COMMENT = "Clear. Say also what `view` does when it **cannot**."
SOLVED = ["contiguous_strides", "address", "is_contiguous", "slice_view"]
WRONG = "def permute(shape, stride, dims):\n    return shape, stride\n"
ANSWER = "I use view where a copy would be a mistake, and reshape where I only need the values."


@pytest.fixture
def shot(artefacts: Path) -> Callable[[Page, str], None]:
    """Keeps a picture of the way under test-artifacts/classroom."""
    return lambda page, name: browsing.picture(page, artefacts / "classroom", name) and None


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_course(tmp_path_factory.mktemp("class") / "glassbox")


@pytest.fixture(scope="module")
def instructor(course_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    with Jupyter(course_folder, tmp_path_factory.mktemp("instructor"), instructor=True) as server:
        yield server


def solution(course_folder: Path, name: str) -> str:
    """What the solution has in the cell of a piece."""
    notebook = nbformat.read(course_folder / "solutions" / LAB / f"{LAB}.ipynb", as_version=4)
    return str(
        next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name).source
    )


def write(page: Page, name: str, source: str) -> None:
    """Writes into a cell of the notebook in front, with the keyboard."""
    editor = cell(page, name).locator(".cm-content")
    if not editor.is_visible():  # a Markdown cell that is rendered
        cell(page, name).locator(".jp-MarkdownOutput").dblclick()
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(source)


def test_one_person_in_both_roles(
    new_page: Callable[..., Page],
    watch: Watch,
    course_folder: Path,
    instructor: Jupyter,
    shot: Callable[[Page, str], None],
) -> None:
    """Release, fetch, work, validate, submit, collect, autograde, grade by hand, give and read feedback."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    page = new_page(watch=watch, viewport=WINDOW)
    panel = Formgrader.enter(page, instructor)
    shot(page, "01-formgrader")
    assert "Successfully created" in panel.step("assign")
    assert "Successfully released" in panel.step("release")
    expect(panel.row(LAB).locator("td.status")).to_contain_text("released", use_inner_text=True)

    # As a learner
    lists = Assignments.open(page)
    shot(page, "02-released")
    lists.press("released", "Fetch")
    notebook = lists.unfold()
    shot(page, "03-fetched")
    notebook.click()
    ready(page)
    for name in SOLVED:
        write(page, name, solution(course_folder, name))
    write(page, "permute", WRONG)
    with validation(page) as dialog:
        words = dialog.inner_text()
        shot(page, "04-validate")
    assert "4 of 13 pieces hold" in words
    assert "permute" in words and "expected" in words
    assert "not answered yet" in words
    assert "The following cell failed" not in words
    assert "Traceback" not in words
    write(page, "written_view_or_reshape", ANSWER)
    browsing.save(page)
    shot(page, "05-notebook")
    lists = Assignments.open(page)
    lists.press("fetched", "Submit")
    assert lists.part("submitted").locator(".nested_list_item").count() == 1
    shot(page, "06-submitted")

    # As the instructor
    page.locator(".lm-TabBar-tabLabel", has_text="Formgrader").click()
    panel.assignments()
    assert "Successfully collected" in panel.step("collect")
    panel.submissions()
    assert "Successfully autograded" in panel.step("autograde", me)
    shot(page, "07-autograded")
    handed_in = course_folder / "tryout" / LAB / f"{LAB}.ipynb"
    points = grade(LAB, handed_in).score
    expect(panel.row(me)).to_contain_text(f"{points:g} / 105", use_inner_text=True)
    expect(panel.row(me)).to_contain_text("needs manual grading", use_inner_text=True)
    answer = panel.open_submission().last
    answer.scroll_into_view_if_needed()
    panel.grade_by_hand(answer, "4", COMMENT)
    shot(page, "08-by-hand")
    panel.frame.locator("a", has_text="Manual Grading").first.click()
    panel.submissions()
    expect(panel.row(me)).to_contain_text(f"{points + 4:g} / 105", use_inner_text=True)
    panel.assignments()
    assert "Successfully generated" in panel.step("generate-feedback")
    assert "Successfully released" in panel.step("release-feedback")
    shot(page, "09-feedback-released")

    # As the learner
    lists = Assignments.open(page)
    expect(lists.part("submitted")).to_contain_text("feedback available to fetch", use_inner_text=True)
    lists.press("submitted", "Fetch Feedback")
    shot(page, "10-feedback-fetched")
    lists.part("submitted").locator("a", has_text="view feedback").click()
    page.locator(".jp-DirListing-item", has_text=f"{LAB}.html").dblclick()
    feedback = page.frame_locator(".jp-HTMLViewer iframe")
    # The frame is there, and empty, before its page is.
    expect(feedback.locator("body")).to_contain_text("Feedback for")
    text = feedback.locator("body").inner_text()
    shot(page, "11-feedback")
    assert f"{points:g} of 100" in text and f"{points + 4:g} of 105" in text
    assert "Say also what view does when it cannot." in text

    # Once more, better and too late, on a server that was started anew in between
    page.locator(".lm-TabBar-tabLabel", has_text="Formgrader").click()
    panel.due("2026-01-31T12:00")
    page.locator(".lm-TabBar-tabLabel", has_text=f"{LAB}.ipynb").click()
    write(page, "permute", solution(course_folder, "permute"))
    browsing.save(page)
    lists = Assignments.open(page)
    lists.press("fetched", "Submit")
    assert lists.part("submitted").locator(".nested_list_item").count() == 2
    assert watch.problems() == []
    page.close()
    instructor.stop()
    instructor.start()
    page = new_page(watch=watch, viewport=WINDOW)
    panel = Formgrader.enter(page, instructor)
    assert "Successfully collected" in panel.step("collect")
    panel.submissions()
    assert "Successfully autograded" in panel.step("autograde", me)
    # The written answer is as it was, and so are its points, which a person looks over again.
    expect(panel.row(me)).to_contain_text(f"{points + 5 + 4:g} / 105", use_inner_text=True)
    expect(panel.row(me)).to_contain_text("needs manual grading", use_inner_text=True)
    assert "Successfully generated" in panel.step("generate-feedback", me)
    assert "Successfully released" in panel.step("release-feedback", me)
    lists = Assignments.open(page)
    lists.press("submitted", "Fetch Feedback")
    assert lists.part("submitted").locator("a", has_text="view feedback").count() == 2
    read = sorted((course_folder / "tryout" / LAB / "feedback").glob("*/*.html"))
    assert len(read) == 2
    first, second = (path.read_text(encoding="utf-8") for path in read)
    assert "after the due date" not in first and "after the due date" in second
    assert watch.problems() == []


@pytest.fixture
def hosting() -> Iterator[ExitStack]:
    """Keeps servers running until the test has ended and its pages are closed."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def together() -> Iterator[Path]:
    """A folder that every user of the system can enter, as a class has one."""
    with tempfile.TemporaryDirectory(prefix="glassbox-class-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def arrive(page: Page, server: Jupyter) -> None:
    """Comes in by the address that `course.py lab` prints."""
    page.goto(server.address("/lab"))
    page.locator("#jupyterlab-splash").wait_for(state="detached")


def command(server: Jupyter, *words: str) -> str:
    """What `course.py WORDS` runs in the instructor's copy, done; returns what it said."""
    argv = [sys.executable, "-m", "autograder", *words]
    options = {"cwd": server.folder, "env": server.environment.variables(), "text": True}
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two users of the system")
def test_two_people_with_homes_of_their_own(
    together: Path, hosting: ExitStack, new_page: Callable[..., Page], watch: Watch
) -> None:
    """An instructor and two students, three users of the system, meet in the exchange folder alone."""
    exchange = together / "exchange"
    exchanging.choose(copy_course(together / "course"), exchange)
    give(together / "course", "root")
    teacher = Jupyter(together / "course", together / "root", "root", instructor=True)
    command(teacher, "nbgrader", "generate_assignment", LAB, "--force")
    command(teacher, "nbgrader", "release_assignment", LAB)
    command(teacher, "bundle", str(together / "copy"))
    students = []
    for name in ("daemon", "nobody"):
        folder = together / name / "glassbox"
        shutil.copytree(together / "copy", folder)
        assert list((folder / "labs").iterdir()) == []
        give(together / name, name)
        students.append(Person(folder, together / f"home-{name}", name))
    for number, student in enumerate(students):
        page = new_page(watch=watch, viewport=WINDOW)
        hosting.enter_context(student)
        arrive(page, student)
        page.locator(".lm-MenuBar-itemLabel", has_text="Nbgrader").click()
        entries = page.locator(".lm-Menu-item:visible").all_inner_texts()
        assert [entry.strip() for entry in entries] == ["Assignment List"]
        page.keyboard.press("Escape")
        lists = Assignments.open(page)
        lists.press("released", "Fetch")
        assert (student.folder / "labs" / LAB / f"{LAB}.ipynb").is_file()
        lists.unfold().click()
        ready(page)
        for name in SOLVED[: number + 1]:
            write(page, name, solution(together / "course", name))
        browsing.save(page)
        lists = Assignments.open(page)
        lists.press("fetched", "Submit")
        assert lists.part("submitted").locator(".nested_list_item").count() == 1
        inbox = str(exchange / "glassbox" / "inbound")
        look = run(student.user, student, "-c", "import os, sys; os.listdir(sys.argv[1])", inbox)
        assert "PermissionError" in look.stderr
        page.close()
        student.end_kernels()
    hosting.enter_context(teacher)
    page = new_page(watch=watch, viewport=WINDOW)
    panel = Formgrader.enter(page, teacher)
    assert "Successfully collected" in panel.step("collect")
    panel.submissions()
    for number, student in enumerate(students):
        assert "Successfully autograded" in panel.step("autograde", student.user)
        expect(panel.row(student.user)).to_contain_text(f"{4 * (number + 1)} / 105", use_inner_text=True)
    panel.assignments()
    assert "Successfully generated" in panel.step("generate-feedback")
    assert "Successfully released" in panel.step("release-feedback")
    for student in students:
        page = new_page(watch=watch, viewport=WINDOW)
        arrive(page, student)
        lists = Assignments.open(page)
        lists.press("submitted", "Fetch Feedback")
        lists.part("submitted").locator("a", has_text="view feedback").wait_for()
        (mine,) = (student.folder / "labs" / LAB / "feedback").glob("*/*.html")
        assert f"Feedback for {student.user}" in mine.read_text(encoding="utf-8")
    assert watch.problems() == []


def test_what_a_learner_meets(
    course_folder: Path, tmp_path: Path, hosting: ExitStack, new_page: Callable[..., Page], watch: Watch
) -> None:
    """Each thing that goes wrong on the way in has a sentence, and nothing is lost."""
    teacher = Jupyter(course_folder, tmp_path / "teacher")
    command(teacher, "bundle", str(tmp_path / "copy"))
    copy, exchange = tmp_path / "copy", tmp_path / "exchange"
    learner = hosting.enter_context(Jupyter(copy, tmp_path / "home"))
    page = new_page(watch=watch, viewport=WINDOW)
    arrive(page, learner)

    lists = Assignments.open(page)
    assert lists.problem().startswith("This copy of the course knows of no exchange folder.")
    exchanging.choose(copy, exchange)
    lists.refresh()
    assert lists.problem().startswith(f"The exchange folder {exchange} is not there")
    exchange.write_text("a file")
    lists.refresh()
    assert lists.problem().startswith(f"The exchange folder {exchange} is a file")

    exchange.unlink()
    exchange.mkdir()
    shutil.rmtree(copy / "labs" / LAB)
    lists.refresh()
    assert lists.problem() == ""
    expect(lists.part("released")).to_contain_text("no assignments to fetch", use_inner_text=True)

    exchanging.choose(course_folder, exchange)
    command(teacher, "nbgrader", "generate_assignment", LAB, "--force")
    command(teacher, "nbgrader", "release_assignment", LAB)
    lists.refresh()
    released = exchange / "glassbox" / "outbound" / LAB
    released.rename(tmp_path / "taken-back")
    lists.press("released", "Fetch")
    assert "is not released" in lists.problem() or "no lab" in lists.problem()
    (tmp_path / "taken-back").rename(released)
    lists.refresh()
    lists.press("released", "Fetch")

    mine = copy / "labs" / LAB / f"{LAB}.ipynb"
    mine.rename(mine.with_name("my lab.ipynb"))
    with lists.refused() as words:
        assert f"Nothing was handed in: your notebook must be called {LAB}.ipynb" in words
    mine.with_name("my lab.ipynb").rename(mine)
    exchange.rename(tmp_path / "gone")
    with lists.refused() as words:
        assert f"The exchange folder {exchange} is not there" in words
    (tmp_path / "gone").rename(exchange)
    lists.refresh()

    # Two windows at once
    other = new_page(watch=watch, viewport=WINDOW)
    arrive(other, learner)
    there = Assignments.open(other)
    for one in (lists, there):
        one.part("fetched").locator("button", has_text="Submit").click(no_wait_after=True)
    for one in (lists, there):
        one.part("submitted").locator(".nested_list_item").first.wait_for()
        one.refresh()
        assert one.part("submitted").locator(".nested_list_item").count() == 2
    assert len(list((exchange / "glassbox" / "inbound").iterdir())) == 2

    lists.press("submitted", "Fetch Feedback")
    assert lists.problem() == ""
    entries = lists.part("submitted").locator(".nested_list_item")
    expect(entries.last).to_contain_text(f"There is no feedback on your {LAB} yet", use_inner_text=True)
    assert entries.count() == 2 and lists.part("fetched").locator("button", has_text="Submit").is_visible()
    assert watch.problems() == []
