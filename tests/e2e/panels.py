"""nbgrader's panels in JupyterLab, by clicks: Formgrader, Assignment List, the Validate button."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import browsing
from playwright.sync_api import FrameLocator, Locator, Page, expect
from serving import Jupyter

STEP_MS = 240_000
LAB = "lab1_storage"


def menu(page: Page, command: str) -> None:
    """Chooses an entry of the Nbgrader menu."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Nbgrader").click()
    page.locator(f".lm-Menu-item[data-command='nbgrader:{command}']").click()


class Formgrader:
    """The instructor's panel."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @classmethod
    def enter(cls, page: Page, server: Jupyter) -> Formgrader:
        """Comes in by the address that `course.py lab --instructor` prints."""
        page.goto(server.address("/instructor"))
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        panel = cls(page)
        panel.row(LAB).wait_for()
        return panel

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe[src$='/formgrader']")

    def row(self, name: str) -> Locator:
        """The line of a lab or a student in the table that is shown."""
        return self.frame.locator("#main-table tr", has_text=name)

    def assignments(self) -> None:
        """Goes to the table of labs."""
        self.frame.locator("a", has_text="Manage Assignments").first.click()
        self.row(LAB).locator("td.num-submissions").wait_for()

    def submissions(self) -> None:
        """Goes to what was collected of the lab."""
        self.assignments()
        self.row(LAB).locator("td.num-submissions a").click()
        self.frame.locator("td.autograde a").first.wait_for()

    def step(self, column: str, name: str = LAB) -> str:
        """Clicks on a step in a line, waits until it is done, and returns what the panel says, whole."""
        self.row(name).locator(f"td.{column} a").click()
        with self.said() as words:
            return words

    @contextmanager
    def said(self) -> Iterator[str]:
        """What the panel's dialog says; it is open inside and closed after."""
        dialog = self.frame.locator(".modal.in")
        dialog.wait_for(timeout=STEP_MS)
        # It slides in, and can only be closed when it has.
        dialog.evaluate("(node) => Promise.all(node.getAnimations({subtree: true}).map((a) => a.finished))")
        yield dialog.inner_text()
        dialog.locator(".modal-footer button").click()
        for part in (".modal", ".modal-backdrop"):
            self.frame.locator(part).wait_for(state="detached")

    def due(self, moment: str, zone: str = "+0000") -> None:
        """Sets the lab's due date, such as "2026-01-01T12:00"."""
        self.assignments()
        self.row(LAB).locator("td.edit a").click()
        dialog = self.frame.locator(".modal.in")
        dialog.locator("input.modal-duedate").fill(moment)
        dialog.locator("input.modal-timezone").fill(zone)
        dialog.locator("button.save").click()
        dialog.wait_for(state="detached")

    def open_submission(self, number: int = 1) -> Locator:
        """Opens a submission on the page on which answers are graded by hand; returns its cells."""
        self.frame.locator("a", has_text="Manual Grading").first.click()
        for _ in range(2):  # the lab, then its notebook
            self.frame.locator("#main-table a", has_text=LAB).click()
            self.frame.locator("#main-table tr td").first.wait_for()
        self.frame.locator("#main-table a", has_text=f"Submission #{number}").click()
        cells = self.frame.locator(".nbgrader_cell")
        cells.last.wait_for()
        return cells

    def grade_by_hand(self, answer: Locator, score: str, comment: str) -> None:
        """Gives points and a comment to a cell, and waits until both are saved."""
        # The page asks for points and comments after it is there, and only then looks at what is typed.
        for field in ("textarea.comment", "input.extra-credit"):
            expect(answer.locator(field)).to_have_attribute("placeholder", re.compile("."))
        saved = self.page.expect_response
        with saved(lambda r: r.request.method == "PUT" and "/api/comment/" in r.url):
            answer.locator("textarea.comment").fill(comment)
            answer.locator("textarea.comment").blur()
        with saved(lambda r: r.request.method == "PUT" and "/api/grade/" in r.url):
            answer.locator("input.score").fill(score)
            answer.locator("input.score").blur()


class Assignments:
    """The learner's panel."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.panel = page.locator("#nbgrader-assignment-list")

    @classmethod
    def open(cls, page: Page) -> Assignments:
        """Opens it from the menu, or brings it to the front, with the list as it is now."""
        menu(page, "open-assignment-list")
        lists = cls(page)
        lists.refresh()
        return lists

    def refresh(self) -> None:
        """Asks for the list again."""
        # The list asks for the courses first, then for what there is of the first of them, if there is one.
        with self.page.expect_response(re.compile(r"/courses\b")) as first:
            self.panel.locator("#refresh_assignments_list").click()
        found = first.value.json()
        if found["success"] and found["value"]:
            self.panel.locator(".list_item").first.wait_for()
        elif not found["success"]:
            self.panel.locator("#released_assignments_list_error").wait_for()
        self.settled()

    def settled(self) -> None:
        """Waits until no list is being loaded."""
        for name in ("released", "fetched", "submitted"):
            self.panel.locator(f"#{name}_assignments_list_loading").wait_for(state="hidden")

    def part(self, name: str) -> Locator:
        """One of the lists: released, fetched or submitted."""
        return self.panel.locator(f"#{name}_assignments_list")

    def press(self, name: str, button: str) -> None:
        """Presses a button in one of the lists and waits for the answer."""
        with self.page.expect_response(re.compile(r"/assignments/(fetch|submit|validate)"), timeout=STEP_MS):
            self.part(name).locator("button", has_text=re.compile(f"^{button}$")).click()
        self.settled()

    def unfold(self) -> Locator:
        """Shows the notebooks of the fetched lab."""
        part = self.part("fetched")
        inner = part.locator(".nested_list_item a")
        if not inner.is_visible():
            part.locator("a.assignment-notebooks-link").click()
        inner.wait_for()
        return inner

    @contextmanager
    def refused(self) -> Iterator[str]:
        """Presses Submit; what the dialog says that refuses it."""
        self.part("fetched").locator("button", has_text="Submit").click()
        dialog = self.page.locator(".jp-Dialog.nbgrader-ErrorDialog")
        dialog.wait_for()
        yield dialog.inner_text()
        dialog.locator("button", has_text="OK").click()
        dialog.wait_for(state="detached")

    def problem(self) -> str:
        """The sentence that stands in the place of the lists; "" where there is none."""
        place = self.panel.locator("#released_assignments_list_error")
        return place.inner_text() if place.is_visible() else ""


@contextmanager
def validation(page: Page) -> Iterator[Locator]:
    """Presses Validate above the notebook in front; the dialog is open inside and closed after."""
    bar = page.locator(f"{browsing.PANEL} .jp-Toolbar")
    bar.locator("jp-button", has_text="Validate").click()
    dialog = page.locator(".jp-Dialog.nbgrader-SuccessDialog, .jp-Dialog.nbgrader-ErrorDialog")
    dialog.wait_for(timeout=STEP_MS)
    yield dialog
    dialog.locator("button", has_text="OK").click()
    dialog.wait_for(state="detached")
