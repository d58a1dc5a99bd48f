"""The labs in JupyterLab: untouched and solved they run to their end, and what a check shows fits and can be read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from browsing import PANEL, Ran, Watch, code_cells, errors, open_lab, pictures_of_all, run_all, visiting
from contrast import TEXT, contrasts
from playwright.sync_api import Browser
from serving import Jupyter

from glassbox.tasks import catalogue

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
LABS = sorted(path.stem for path in (ROOT / "solutions").glob("*/*.ipynb"))
OUTPUTS = f"{PANEL} .jp-OutputArea-output"
_OVER = """(nodes) => nodes.map((node) => node.scrollWidth - node.clientWidth).filter((over) => over > 1)"""


@pytest.fixture(scope="module")
def opened(browser: Browser, server: Jupyter, course_copy: Path) -> Iterator[Callable[[str, str], Ran]]:
    """Opens a lab, "untouched" or "solved", and runs it whole at the first call."""
    with ExitStack() as stack:

        @cache
        def run(lab: str, state: str) -> Ran:
            path = f"labs/{lab}/{lab}.ipynb"
            if state == "solved":
                path = f"labs/{lab}/solved.ipynb"
                shutil.copy(ROOT / "solutions" / lab / f"{lab}.ipynb", course_copy / path)
            watch = Watch()
            page = stack.enter_context(visiting(browser, "light", watch))
            open_lab(page, server, path)
            return Ran(lab, page, watch, run_all(page))

        yield run


@pytest.fixture(params=LABS)
def lab(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def said(ran: Ran) -> str:
    return "\n".join(ran.page.locator(OUTPUTS).all_inner_texts())


@pytest.mark.parametrize("state", ["untouched", "solved"])
def test_a_lab_runs_to_its_end_and_can_be_read(
    lab: str, state: str, opened: Callable[[str, str], Ran], artefacts: Path
) -> None:
    ran = opened(lab, state)
    assert errors(ran.page) == [] and ran.finished
    assert [c["id"] for c in code_cells(ran.page) if c["count"] is None] == []
    assert ran.watch.problems() == []
    # whole, or in a box of its own that scrolls
    assert ran.page.locator(f"{OUTPUTS} table, {OUTPUTS} svg").evaluate_all(_OVER) == []
    for theme in ("light", "dark"):
        ran.page.emulate_media(color_scheme=theme)
        ran.page.wait_for_function(
            "(light) => document.body.dataset.jpThemeLight === light", arg=str(theme == "light").lower()
        )
        read = contrasts(ran.page.locator(f"{OUTPUTS} .glassbox-report *"))
        assert [(text, ratio) for text, ratio in read if ratio < TEXT] == []
        assert pictures_of_all(ran.page, artefacts, f"{lab}-{state}-{theme}")


def test_its_checks_say_what_holds(lab: str, opened: Callable[[str, str], Ran]) -> None:
    tasks = [f"{task.id}: all {len(task.properties)} properties hold here" for task in catalogue.tasks(lab).values()]
    solved, untouched = said(opened(lab, "solved")), said(opened(lab, "untouched"))
    assert tasks and [words for words in tasks if words not in solved] == []
    assert [words for words in tasks if words in untouched] == []
