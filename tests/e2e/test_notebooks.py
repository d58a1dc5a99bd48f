"""The notebooks in JupyterLab: they run whole, show all that they have, and ask no other host."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from browsing import (
    PANEL,
    Ran,
    Watch,
    cell,
    code_cells,
    command,
    errors,
    open_lab,
    picture,
    pictures_of_all,
    save,
    shown,
    visiting,
)
from contrast import TEXT, contrasts
from playwright.sync_api import Browser, Page, TimeoutError, expect
from serving import Jupyter

pytestmark = pytest.mark.browser

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# Text of a figure that lies on no cell, so that the page is its ground.
FREE_TEXT = f"{PANEL} svg.glassbox-figure text:is(.m, .b):not(.k *, .tip)"

# A theme's styles arrive after its name.
_SETTLED = """([selector, light]) => document.body.dataset.jpThemeLight === light
    && [...document.querySelectorAll(selector)].every((node) => node.getBoundingClientRect().height >= 8)"""
_SIZES = """(nodes) => nodes.map((node) => {
    const { width, height, right } = node.getBoundingClientRect();
    const room = node.closest('.jp-OutputArea-output').getBoundingClientRect().right - right;
    return { width, height, room: Math.min(room, node.clientWidth - node.scrollWidth) };
})"""


@dataclass(frozen=True)
class Look:
    """What there is to see of a notebook in a theme; sizes as dicts of width, height, room to the right."""

    widgets: list[dict[str, float]]
    figures: list[dict[str, float]]
    tables: list[dict[str, float]]
    outputs: list[str]
    contrasts: list[tuple[str, float]]
    pictures: list[Path]


def settle(page: Page, theme: str) -> None:
    """Waits until JupyterLab is in the theme and every output has its height."""
    page.wait_for_function(_SETTLED, arg=[f"{PANEL} .jp-OutputArea-output", str(theme == "light").lower()])


def said_in(page: Page) -> list[tuple[str, float]]:
    """What the widgets say and figures write on the page itself, and how well it stands out."""
    # A button that cannot be pressed yet may be faint.
    widgets = page.locator(f"{PANEL} .gb-widget :not(:disabled, :disabled *)")
    return contrasts(widgets) + contrasts(page.locator(FREE_TEXT), "fill")


def look(page: Page, theme: str, artefacts: Path, name: str) -> Look:
    """Turns the page to the theme, by the system's colour scheme, and reads what is there."""
    page.emulate_media(color_scheme=theme)
    settle(page, theme)
    outputs = f"{PANEL} .jp-OutputArea-output"
    widgets = page.locator(f"{PANEL} .gb-widget")
    return Look(
        widgets=widgets.evaluate_all(_SIZES),
        figures=page.locator(f"{PANEL} svg.glassbox-figure:not(.gb-widget *)").evaluate_all(_SIZES),
        tables=page.locator(f"{outputs} table").evaluate_all(_SIZES),
        outputs=page.locator(outputs).all_inner_texts(),
        contrasts=said_in(page),
        pictures=pictures_of_all(page, artefacts, f"{name}-{theme}"),
    )


NOTEBOOKS = sorted(path.stem for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS)
def ran(request: pytest.FixtureRequest, executed: Callable[[str], Ran]) -> Ran:
    return executed(request.param)


@pytest.fixture(scope="module")
def looked(executed: Callable[[str], Ran], artefacts: Path) -> Callable[[str, str], Look]:
    """Looks at a notebook in a theme, once."""
    return cache(lambda name, theme: look(executed(name).page, theme, artefacts, name))


@pytest.fixture
def seen(ran: Ran, theme: str, looked: Callable[[str, str], Look]) -> Look:
    return looked(ran.name, theme)


def test_it_runs_whole(ran: Ran) -> None:
    assert errors(ran.page) == []
    assert ran.finished
    assert [cell["id"] for cell in code_cells(ran.page) if cell["count"] is None] == []


def test_nothing_else_goes_wrong(ran: Ran) -> None:
    assert ran.watch.problems() == []


def test_each_widget_is_drawn(ran: Ran, seen: Look) -> None:
    assert len(seen.widgets) == len(shown(ran.page, live=True)) > 0
    assert min(size["height"] for size in seen.widgets) > 60


def test_each_figure_is_drawn(ran: Ran, seen: Look) -> None:
    assert len(seen.figures) == sum(html.count("<svg") for html in shown(ran.page, live=False)) > 0
    assert min(size["width"] for size in seen.figures) > 100


def test_no_output_is_empty_or_a_failure(seen: Look) -> None:
    said = "\n".join(seen.outputs)
    assert "Error displaying widget" not in said and "Loading widget" not in said


def test_nothing_is_wider_than_its_cell(seen: Look) -> None:
    assert seen.tables
    assert [size for size in seen.figures + seen.widgets + seen.tables if size["room"] < -1] == []


def test_what_its_widgets_and_figures_say_can_be_read(seen: Look) -> None:
    assert len(seen.contrasts) >= len(seen.widgets) + len(seen.figures)
    assert [(text, ratio) for text, ratio in seen.contrasts if ratio < TEXT] == []


def test_pictures_of_it_are_kept(seen: Look) -> None:
    # On the last one there may be no more than the edge of the last cell.
    *whole, last = (path.stat().st_size for path in seen.pictures)
    assert min(whole) > 10_000
    assert last > 1_000


def test_what_is_folded_stays_so_until_it_is_opened(ran: Ran, course_copy: Path) -> None:
    stored = nbformat.read(course_copy / "notebooks" / f"{ran.name}.ipynb", as_version=4)
    first, *others = [c for c in stored.cells if c.metadata.get("jupyter", {}).get("source_hidden")]
    for one in (first, *others):
        expect(cell(ran.page, one.id).locator(".jp-InputArea-editor")).not_to_be_visible()
    placeholder = cell(ran.page, first.id).locator(".jp-Placeholder")
    assert placeholder.inner_text().strip().startswith(first.source.splitlines()[0].strip())
    placeholder.click()
    last_line = first.source.splitlines()[-1].strip()
    expect(cell(ran.page, first.id).locator(".cm-content")).to_contain_text(last_line)
    for one in others:
        expect(cell(ran.page, one.id).locator(".jp-InputArea-editor")).not_to_be_visible()


def follow_system(page: Page, follow: bool) -> None:
    """Settings > Theme > Synchronize with System Settings, on or off."""
    command(page, "apputils:adaptive-theme")
    page.wait_for_function(
        "(follow) => jupyterapp.commands.isToggled('apputils:adaptive-theme') === follow", arg=follow
    )


@pytest.fixture
def of_two_minds(executed: Callable[[str], Ran], theme: str) -> Iterator[Page]:
    """A notebook in a theme that was chosen in JupyterLab, on a system that asks for the other one."""
    page = executed("01_storage").page
    system = "light" if theme == "dark" else "dark"
    page.emulate_media(color_scheme=system)
    settle(page, system)
    follow_system(page, False)
    command(page, "apputils:change-theme", {"theme": THEMES[theme]})
    settle(page, theme)
    yield page
    follow_system(page, True)
    settle(page, system)


def test_a_theme_that_was_chosen_comes_before_that_of_the_system(
    of_two_minds: Page, theme: str, artefacts: Path
) -> None:
    said = said_in(of_two_minds)
    assert len(said) > 100
    assert [(text, ratio) for text, ratio in said if ratio < TEXT] == []
    cell(of_two_minds, "explorer-play").scroll_into_view_if_needed()
    picture(of_two_minds, artefacts, f"chosen-{theme}")


REOPENED = "notebooks/reopened.ipynb"


@pytest.fixture(scope="module")
def reopened(
    executed: Callable[[str], Ran], browser: Browser, server: Jupyter, course_copy: Path
) -> Iterator[Ran]:
    """A notebook that was run and saved, opened another day: its kernel is a new one that knows nothing."""
    ran = executed("01_storage")
    save(ran.page)
    shutil.copy2(course_copy / "notebooks" / f"{ran.name}.ipynb", course_copy / REOPENED)
    watch = Watch()
    with visiting(browser, "light", watch) as page:
        open_lab(page, server, REOPENED)
        try:
            page.wait_for_selector(f"{PANEL} .gb-widget", timeout=15_000)
        except TimeoutError:
            # On a busy machine JupyterLab's widget manager now and then restores nothing; a reader loads the page anew.
            open_lab(page, server, REOPENED)
        settle(page, "light")
        yield Ran(ran.name, page, watch, True)


def test_a_saved_notebook_opens_with_all_that_it_showed(
    reopened: Ran, executed: Callable[[str], Ran], artefacts: Path
) -> None:
    before = executed("01_storage").page
    widgets = f"{PANEL} .gb-widget"
    expect(reopened.page.locator(widgets)).to_have_count(before.locator(widgets).count())
    outputs = f"{PANEL} .jp-OutputArea-output"
    assert reopened.page.locator(outputs).all_inner_texts() == before.locator(outputs).all_inner_texts()
    figures = f"{PANEL} svg.glassbox-figure"
    assert reopened.page.locator(figures).count() == before.locator(figures).count()
    assert reopened.watch.problems() == []
    cell(reopened.page, "copies-predict-clone").scroll_into_view_if_needed()
    picture(reopened.page, artefacts, "reopened")


def test_a_saved_notebook_is_small(reopened: Ran, course_copy: Path) -> None:
    assert (course_copy / REOPENED).stat().st_size < 1_000_000


def test_a_question_whose_kernel_is_gone_says_how_to_ask_again(reopened: Ran) -> None:
    asked = cell(reopened.page, "copies-predict-clone")
    asked.get_by_text("True", exact=True).click()
    asked.get_by_role("button", name="Commit").click()
    expect(asked.get_by_role("status")).to_contain_text("run the cell again")
