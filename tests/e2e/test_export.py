"""A notebook exported as HTML, from JupyterLab's menu or by nbconvert, shows its figures offline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from browsing import Ran, Watch, picture, shown, visiting
from playwright.sync_api import Browser, Page
from serving import Jupyter

pytestmark = pytest.mark.browser

NAME = "01_storage"


@dataclass(frozen=True)
class Exported:
    """Two pages made of one notebook, and how many figures and questions the notebook has."""

    menu: Path
    command: Path
    figures: int
    questions: int


@pytest.fixture(scope="module")
def exported(
    executed: Callable[[str], Ran], server: Jupyter, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    folder = tmp_path_factory.mktemp("exported")
    page = executed(NAME).page
    by_menu(page, folder / "menu.html")
    argv = [sys.executable, "-m", "nbconvert", "--to", "html", f"notebooks/{NAME}.ipynb"]
    argv += ["--output-dir", str(folder), "--output", "command"]
    environment = server.environment.variables()
    subprocess.run(argv, cwd=server.folder, env=environment, check=True, capture_output=True)
    html = shown(page, live=True) + shown(page, live=False)
    return Exported(
        folder / "menu.html",
        folder / "command.html",
        sum(text.count("<svg") for text in html),
        sum("What will this give?" in text for text in html),
    )


def by_menu(page: Page, target: Path) -> None:
    """File > Save and Export Notebook As > HTML, as a reader does it."""
    page.locator(".lm-MenuBar-itemLabel", has_text="File").click()
    page.locator(".lm-Menu-item", has_text="Save and Export Notebook As").hover()
    page.locator(".lm-Menu-item[data-command='notebook:export-to-format']", has_text="HTML").click()
    dialog = page.locator(".jp-Dialog")
    # Sanitizing takes every drawing apart, whoever made it.
    dialog.get_by_role("checkbox").uncheck()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Ok").click()
    download.value.save_as(target)


@pytest.fixture(params=["menu", "command"])
def offline(
    request: pytest.FixtureRequest, exported: Exported, browser: Browser, watch: Watch, theme: str
) -> Iterator[Page]:
    with visiting(browser, theme, watch, offline=True) as page:
        page.goto(getattr(exported, request.param).as_uri())
        yield page


def test_it_shows_its_figures_and_questions(
    offline: Page, exported: Exported, artefacts: Path, theme: str
) -> None:
    figures = offline.locator("svg.glassbox-figure")
    sizes = figures.evaluate_all("(nodes) => nodes.map((node) => node.getBoundingClientRect().width)")
    assert len(sizes) == exported.figures > 5
    assert min(sizes) > 100
    questions = offline.get_by_text("What will this give?", exact=True)
    assert questions.count() == exported.questions > 10
    figures.nth(1).scroll_into_view_if_needed()
    picture(offline, artefacts, f"export-{theme}")


def test_its_figures_have_the_colours_of_the_page(offline: Page) -> None:
    ink = offline.locator("svg.glassbox-figure text.m").first.evaluate(
        "(node) => getComputedStyle(node).fill"
    )
    assert ink == "rgb(86, 99, 111)"


def test_its_figures_answer_the_mouse(offline: Page) -> None:
    figure = offline.locator("svg.glassbox-figure").nth(1)
    tip = figure.locator(".tip")
    assert tip.count() > 0
    figure.locator("g.k").first.hover()
    assert tip.filter(visible=True).count() >= 1


def test_only_the_typesetting_of_formulas_asks_the_network(offline: Page, watch: Watch) -> None:
    offline.wait_for_load_state()
    assert watch.page_errors == []
    assert {url.split("/")[2] for url in watch.strangers} <= {"cdnjs.cloudflare.com"}
    assert all("net::ERR_" in text and "cdnjs" in text for text in watch.console_errors)
    formula = offline.get_by_text("\\text{address}(i, j, \\dots)")
    assert formula.count() == 1 and formula.is_visible()
