"""The stride explorer and the predictions in JupyterLab, by mouse and by keyboard alone, in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from browsing import Watch, await_print, cell, cells_run, command, picture, run_all, run_cell
from contrast import GRAPHICS, TEXT, contrasts
from playwright.sync_api import Browser, Locator, Page, expect
from serving import Jupyter

from glassbox import mini

pytestmark = pytest.mark.browser

CELLS = {
    "imports": "from glassbox import mini\nfrom glassbox.widgets import StrideExplorer, predict",
    "explorer": "explorer = StrideExplorer(mini.arange(12).view(3, 4), 'A')\nexplorer",
    "selected": "print(explorer.selected)",
    "chosen-op": "print(explorer.op)",
    "by-mouse": "by_mouse = predict('2 + 3', choices=[4, 5], because='They **make** five.')\nby_mouse",
    "by-keys": "by_keys = predict('2 + 3', choices=[4, 5], because='It is `5`.')\nby_keys",
    "in-words": "in_words = predict('mini.zeros(2, 3).shape', because='Two rows of three.')\nin_words",
    "raises": "raises = predict('[][0]', choices=['IndexError', 'None'], because='There is none.')\nraises",
    "committed": "print([(p.chosen, p.ok) for p in (by_mouse, by_keys, in_words, raises)])",
}
A = mini.arange(12).view(3, 4)
# What a closed list takes a key for.
TAB_STOPS = 12


@pytest.fixture(scope="module")
def watches() -> dict[str, Watch]:
    return {"light": Watch(), "dark": Watch()}


@pytest.fixture(scope="module")
def open_in(
    browser: Browser, server: Jupyter, watches: dict[str, Watch]
) -> Iterator[Callable[[str], Page]]:
    """Opens the widgets in a theme at the first call, and runs their cells; the page stays open."""
    with ExitStack() as stack:

        @cache
        def opened(theme: str) -> Page:
            return stack.enter_context(cells_run(CELLS, f"widgets-{theme}", browser, server, watches[theme], theme))

        yield opened


@pytest.fixture
def page(open_in: Callable[[str], Page], theme: str) -> Page:
    """The notebook with its cells run anew, so that every widget is as at first."""
    page = open_in(theme)
    assert run_all(page)
    return page


@pytest.fixture
def explorer(page: Page) -> Locator:
    return cell(page, "explorer").locator(".gb-explorer")


def tensor_cells(explorer: Locator) -> Locator:
    return explorer.get_by_role("gridcell")


def storage_cells(explorer: Locator) -> Locator:
    return explorer.locator(".gb-strip .gb-cell")


def lit(cells: Locator) -> list[int]:
    """Which of the cells are highlighted."""
    return cells.evaluate_all("(nodes) => nodes.flatMap((n, k) => n.classList.contains('gb-hot') ? [k] : [])")


def tab_to(page: Page, target: Locator) -> None:
    """Presses Tab until the target has the focus; AssertionError where it never gets it."""
    for _ in range(TAB_STOPS):
        page.keyboard.press("Tab")
        if target.evaluate("(node) => node === document.activeElement"):
            return
    raise AssertionError(f"{TAB_STOPS} tabs do not lead to {target}")


def enter(page: Page, name: str) -> None:
    """Puts the notebook's own focus on a cell, as arrow keys do in command mode."""
    run_cell(page, name)
    command(page, "notebook:enter-command-mode")


# The stride explorer


def test_each_op_shows_its_tensor_over_the_same_storage(explorer: Locator) -> None:
    ops = explorer.get_by_label("operation")
    labels = [label for label in ops.locator("option").all_inner_texts() if label.startswith("A")]
    assert {"A", "A.T", "A[1:, :2]", "A[:1].expand(3, -1)", "A.view(2, 2, 3)"} <= set(labels)
    for label in labels:
        ops.select_option(label)
        wanted = eval(label, {"A": A})
        values = [int(v) for v in wanted.contiguous().view(-1).tolist()]
        assert [int(text) for text in tensor_cells(explorer).all_inner_texts()] == values
        # 0 to 11 in order: what stands in a cell is its place in the storage
        tensor_cells(explorer).last.hover()
        assert lit(storage_cells(explorer)) == [values[-1]]
        assert lit(tensor_cells(explorer)) == [k for k, value in enumerate(values) if value == values[-1]]
        at = ",".join(str(n - 1) for n in wanted.shape)
        says = explorer.get_by_role("status").inner_text()
        assert says.startswith(f"{label}[{at}] = storage[") and says.endswith(f" = storage[{values[-1]}]")


def test_a_storage_cell_names_the_indices_that_read_it(explorer: Locator) -> None:
    explorer.get_by_label("operation").select_option("A[:1].expand(3, -1)")
    storage_cells(explorer).nth(2).hover()
    assert lit(tensor_cells(explorer)) == [2, 6, 10]
    row = "A[:1].expand(3, -1)"
    assert explorer.get_by_role("status").inner_text() == (
        f"storage[2] is {row}[0,2] = {row}[1,2] = {row}[2,2]"
    )
    storage_cells(explorer).nth(7).hover()
    assert explorer.get_by_role("status").inner_text() == f"storage[7] is not in {row}"


def test_a_click_selects_and_python_knows(page: Page, explorer: Locator) -> None:
    explorer.get_by_label("operation").select_option("A.T")
    tensor_cells(explorer).nth(5).click()
    await_print(page, "selected", "[1, 2]")
    await_print(page, "chosen-op", "A.T")


def test_a_refused_number_says_why(explorer: Locator) -> None:
    offset = explorer.get_by_label("offset")
    offset.fill("1")
    expect(explorer.get_by_role("alert")).not_to_be_empty()
    assert contrasts(explorer.get_by_role("alert"))[0][1] >= TEXT
    offset.press("Escape")
    expect(explorer.get_by_role("alert")).to_be_empty()


def test_the_keyboard_alone_is_enough(page: Page, explorer: Locator) -> None:
    enter(page, "explorer")
    tab_to(page, explorer.get_by_label("operation"))
    page.keyboard.press("ArrowDown")
    expect(explorer.get_by_label("operation")).to_have_value("A.T")
    tab_to(page, tensor_cells(explorer).first)
    says = explorer.get_by_role("status")
    steps = [
        ("ArrowRight", "A.T[0,1]", 4),
        ("ArrowDown", "A.T[1,1]", 5),
        ("End", "A.T[1,2]", 9),
        ("Home", "A.T[1,0]", 1),
        ("ArrowUp", "A.T[0,0]", 0),
        ("ArrowLeft", "A.T[0,0]", 0),
        ("ArrowDown", "A.T[1,0]", 1),
    ]
    for key, name, place in steps:
        page.keyboard.press(key)
        assert says.inner_text().startswith(f"{name} = ") and lit(storage_cells(explorer)) == [place]
    page.keyboard.press("Enter")
    await_print(page, "selected", "[1, 0]")
    # JupyterLab would have moved to another cell, or written into one.
    assert explorer.locator("[aria-selected=true]").inner_text() == "1"


def test_the_highlight_stands_out(page: Page, explorer: Locator, artefacts: Path, theme: str) -> None:
    tensor_cells(explorer).nth(6).click()
    tensor_cells(explorer).nth(9).hover()
    hot = explorer.locator(".gb-hot")
    assert len(contrasts(hot)) == 2 == len(contrasts(hot, "border"))
    assert [(t, ratio) for t, ratio in contrasts(hot) if ratio < TEXT] == []
    assert [(t, ratio) for t, ratio in contrasts(hot, "border") if ratio < GRAPHICS] == []
    chosen = contrasts(explorer.locator(".gb-selected"), "ring")
    assert len(chosen) == 1 and chosen[0][1] >= GRAPHICS
    picture(page, artefacts, f"explorer-{theme}")


# The predictions


def test_a_prediction_by_mouse(page: Page, theme: str, artefacts: Path) -> None:
    asked = cell(page, "by-mouse").locator(".gb-predict")
    commit = asked.get_by_role("button", name="Commit")
    expect(commit).to_be_disabled()
    asked.get_by_text("4", exact=True).click()
    commit.click()
    says = asked.get_by_role("status")
    expect(says).to_contain_text("Not so.")
    expect(says).to_contain_text("It is 5")
    expect(says.locator("strong")).to_have_text("make")
    expect(commit).not_to_be_visible()
    expect(asked.get_by_role("radio").first).to_be_disabled()
    assert [(t, ratio) for t, ratio in contrasts(says.locator("*")) if ratio < TEXT] == []
    picture(page, artefacts, f"predict-{theme}")
    await_print(page, "committed", "[('4', False), ('', None), ('', None), ('', None)]")


def test_predictions_by_keyboard(page: Page) -> None:
    asked = cell(page, "by-keys").locator(".gb-predict")
    enter(page, "by-keys")
    tab_to(page, asked.get_by_role("radio").first)
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(asked.get_by_role("radio").nth(1)).to_be_checked()
    page.keyboard.press("Enter")
    expect(asked.get_by_role("status")).to_contain_text("Right.")
    assert [
        (t, ratio) for t, ratio in contrasts(asked.get_by_role("status").locator("*")) if ratio < TEXT
    ] == []

    asked = cell(page, "in-words").locator(".gb-predict")
    enter(page, "in-words")
    tab_to(page, asked.get_by_role("textbox"))
    page.keyboard.type("(2,3)")
    page.keyboard.press("Enter")
    expect(asked.get_by_role("status")).to_contain_text("Right.")

    asked = cell(page, "raises").locator(".gb-predict")
    enter(page, "raises")
    tab_to(page, asked.get_by_role("radio").first)
    page.keyboard.press("Space")
    tab_to(page, asked.get_by_role("button", name="Commit"))
    page.keyboard.press("Enter")
    expect(asked.get_by_role("status")).to_contain_text("It raises IndexError")
    await_print(page, "committed", "[('', None), ('5', True), ('(2,3)', True), ('IndexError', True)]")


def test_nothing_else_goes_wrong(page: Page, watches: dict[str, Watch], theme: str) -> None:
    assert watches[theme].problems() == []
