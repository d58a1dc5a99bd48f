"""A learner's kernel dies in a lab: JupyterLab says so, and nothing that was written is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from browsing import Watch, cell, errors, open_lab, picture, ready, run_cell, save, start_cell, visiting
from nbformat.v4 import new_code_cell
from playwright.sync_api import Browser, Page, expect
from serving import Jupyter

pytestmark = pytest.mark.browser

LAB = "labs/lab1_storage/lab1_storage.ipynb"
COPY = "labs/lab1_storage/a_copy.ipynb"
PIECE = "contiguous_strides"
THOUGHT = "# not saved yet"
# Where the kernel goes while JupyterLab is asking it who it is, the question's promise is rejected, unhandled.
UNANSWERED = "Canceled future for kernel_info_request message before replies were done"


@pytest.fixture(scope="module")
def notebook(course_copy: Path) -> Path:
    """A copy of the lab with the first piece written, and a cell that ends the kernel."""
    lab = nbformat.read(course_copy / LAB, as_version=4)
    solution = nbformat.read(course_copy / LAB.replace("labs", "solutions", 1), as_version=4)
    written = {c.id: c.source for c in solution.cells}[PIECE]
    next(c for c in lab.cells if c.id == PIECE).source = written
    lab.cells.append(new_code_cell("import os\nos._exit(1)", id="dies"))
    nbformat.write(lab, course_copy / COPY)
    return course_copy / COPY


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Jupyter, notebook: Path, watch: Watch) -> Iterator[Page]:
    """The lab after a check was run, a line was written, and the kernel died."""
    with visiting(browser, "light", watch) as page:
        open_lab(page, server, COPY)
        check(page)
        cell(page, "address").locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type(f"\n{THOUGHT}")
        start_cell(page, "dies")
        yield page


def check(page: Page) -> None:
    """Runs the first piece and its check, and sees what the check shows."""
    for name in ("imports", PIECE, f"check_{PIECE}"):
        run_cell(page, name)
    shown = cell(page, f"check_{PIECE}").locator(".jp-OutputArea-output")
    expect(shown).to_contain_text(f"lab1.{PIECE}: all 3 properties hold here")


def test_the_learner_is_told_and_the_kernel_comes_back(page: Page, artefacts: Path) -> None:
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("appears to have died. It will restart automatically.")
    picture(page, artefacts, "dead-kernel")
    dialog.get_by_role("button", name="Ok").click()
    ready(page)


def test_a_check_then_needs_its_piece_run_again(page: Page) -> None:
    run_cell(page, f"check_{PIECE}")
    assert errors(page) == [f"check_{PIECE}: NameError: name '{PIECE}' is not defined"]
    check(page)
    assert errors(page) == []


def test_a_restart_by_hand_does_as_well(page: Page) -> None:
    page.evaluate("""() => {
        const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
        window.restarted = new Promise((resolve) => kernel.statusChanged.connect(
            (_, status) => { if (status === 'restarting') resolve(); }));
    }""")
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").click()
    page.locator(".lm-Menu-item[data-command='kernelmenu:restart']").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    page.evaluate("window.restarted")
    ready(page)
    check(page)


def test_nothing_that_was_written_is_lost(page: Page, notebook: Path) -> None:
    expect(cell(page, "address").locator(".cm-content")).to_contain_text(THOUGHT)
    save(page)
    saved = {c.id: c.source for c in nbformat.read(notebook, as_version=4).cells}
    assert saved["address"].endswith(THOUGHT)


def test_the_page_itself_has_no_error(page: Page, watch: Watch) -> None:
    assert [error for error in watch.page_errors if error != UNANSWERED] == []
    assert watch.console_errors == watch.strangers == []
