"""The same notebooks in Notebook 7: they run whole and show their widgets and figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import PANEL, Watch, errors, open_notebook7, picture, run_all, shown
from playwright.sync_api import Page, expect
from serving import Jupyter

pytestmark = pytest.mark.browser

# Notebook 7.6 raises these on any notebook, as it loads and as it is left.
ITS_OWN = (
    "Cannot read properties of undefined (reading 'schema')",
    "Command 'filebrowser:open-path' not registered.",
)


@pytest.fixture(scope="module")
def apart(course_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """A server that has not served JupyterLab: it looks files up by name, and takes one's fonts for the
    other's.
    """
    with Jupyter(course_copy, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize(("name", "theme"), [("00_start", "light"), ("01_storage", "dark")])
def test_it_runs_whole_and_shows_what_it_has(
    name: str, theme: str, page: Page, watch: Watch, apart: Jupyter, artefacts: Path
) -> None:
    open_notebook7(page, apart, f"notebooks/{name}.ipynb")
    assert run_all(page), errors(page)
    widgets = shown(page, live=True)
    expect(page.locator(f"{PANEL} .gb-widget")).to_have_count(len(widgets))
    figures = sum(html.count("<svg") for html in shown(page, live=False))
    expect(page.locator(f"{PANEL} svg.glassbox-figure")).to_have_count(figures)
    assert widgets and figures
    picture(page, artefacts, f"notebook7-{name}-{theme}")
    assert [error for error in watch.page_errors if error not in ITS_OWN] == []
    assert watch.console_errors == watch.strangers == []
