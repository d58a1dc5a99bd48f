"""The notebooks in JupyterLab: they run whole, show all that they have, and ask no other host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from browsing import PANEL, Ran, cell, code_cells, errors, pictures_of_all, shown
from contrast import TEXT, contrasts
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

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
    outputs: list[str]
    contrasts: list[tuple[str, float]]
    pictures: list[Path]


def look(page: Page, theme: str, artefacts: Path, name: str) -> Look:
    """Turns the page to the theme, by the system's colour scheme, and reads what is there."""
    page.emulate_media(color_scheme=theme)
    outputs = f"{PANEL} .jp-OutputArea-output"
    page.wait_for_function(_SETTLED, arg=[outputs, str(theme == "light").lower()])
    widgets = page.locator(f"{PANEL} .gb-widget")
    # A button that cannot be pressed yet may be faint.
    said = contrasts(widgets.locator(":not(:disabled, :disabled *)"))
    return Look(
        widgets=widgets.evaluate_all(_SIZES),
        figures=page.locator(f"{PANEL} svg.glassbox-figure").evaluate_all(_SIZES),
        outputs=page.locator(outputs).all_inner_texts(),
        contrasts=said,
        pictures=pictures_of_all(page, artefacts, f"{name}-{theme}"),
    )


@pytest.fixture(params=["00_start", "01_storage"])
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


def test_no_figure_or_widget_is_wider_than_its_cell(seen: Look) -> None:
    assert [size for size in seen.figures + seen.widgets if size["room"] < -1] == []


def test_what_its_widgets_say_can_be_read(seen: Look) -> None:
    assert len(seen.contrasts) >= len(seen.widgets)
    assert [(text, ratio) for text, ratio in seen.contrasts if ratio < TEXT] == []


def test_pictures_of_it_are_kept(seen: Look) -> None:
    assert seen.pictures and min(path.stat().st_size for path in seen.pictures) > 10_000


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
