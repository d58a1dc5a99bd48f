"""The notebooks in JupyterLab: they run whole, show all that they have, and ask nobody else for anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Watch, errors, open_lab, pictures_of_all, run_all
from playwright.sync_api import Page
from serving import Jupyter

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["00_start", "01_storage"])
def test_it_runs_whole(
    name: str, page: Page, server: Jupyter, watch: Watch, theme: str, artefacts: Path
) -> None:
    open_lab(page, server, f"notebooks/{name}.ipynb")
    finished = run_all(page)
    pictures_of_all(page, artefacts, f"{name}-{theme}")
    assert errors(page) == []
    assert finished
    assert watch.problems() == []
