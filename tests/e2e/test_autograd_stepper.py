"""The autograd stepper in JupyterLab: its steps are Python's pictures, by keyboard and mouse, in both themes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Watch, await_print, cell, cells_run, command, picture, run_cell
from contrast import TEXT, contrasts
from playwright.sync_api import Browser, Locator, Page, expect
from serving import Jupyter

from glassbox.widgets import AutogradStepper

pytestmark = pytest.mark.browser

CELLS = {
    "stepper": "from glassbox.widgets import AutogradStepper\nstepper = AutogradStepper()\nstepper",
    "at": "print(stepper.run, stepper.step)",
}
SVG = "{http://www.w3.org/2000/svg}"
Moment = dict[str, tuple[list[str], list[str]]]

# Of every part that may change: its classes, and the texts in it that are seen or not.
_MOMENT = """(svg) => Object.fromEntries([...svg.querySelectorAll('[data-node], [data-edge]')].map((g) => [
    g.dataset.node ?? g.dataset.edge,
    [[g, ...g.querySelectorAll('g')].map((each) => [...each.classList].sort().join(' ')),
     [...g.querySelectorAll('text')].map((each) => each.textContent)],
]))"""


def wanted(svg: str) -> Moment:
    """What `_MOMENT` is to give, read from the figure that Python draws of that step."""
    found: Moment = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        key = group.get("data-node") or group.get("data-edge")
        if key:
            classes = [" ".join(sorted((each.get("class") or "").split())) for each in group.iter(f"{SVG}g")]
            found[key] = (classes, [each.text or "" for each in group.iter(f"{SVG}text")])
    return found


@pytest.fixture(scope="module")
def watches() -> dict[str, Watch]:
    return {"light": Watch(), "dark": Watch()}


@pytest.fixture(scope="module", params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def page(browser: Browser, server: Jupyter, watches: dict[str, Watch], theme: str) -> Iterator[Page]:
    with cells_run(CELLS, f"stepper-{theme}", browser, server, watches[theme], theme) as opened:
        yield opened


@pytest.fixture
def stepper(page: Page) -> Locator:
    return cell(page, "stepper").locator(".gb-stepper")


def test_every_step_is_the_picture_that_python_draws(stepper: Locator) -> None:
    ours = AutogradStepper()
    svg, stage = stepper.locator("svg"), stepper.locator(".gb-stage")
    for title, record in zip(ours.titles, ours.records, strict=True):
        stepper.get_by_label("program").first.select_option(title)
        stage.focus()
        for nr, frame in enumerate(record.frames):
            seen = {key: tuple(value) for key, value in svg.evaluate(_MOMENT).items()}
            assert seen == wanted(record.figure(nr).text), (title, nr)
            assert stepper.get_by_role("status").inner_text() == frame.text
            queue = stepper.get_by_role("list", name="ready queue").get_by_role("listitem")
            assert queue.all_inner_texts() == [record.label(each) for each in frame.queue]
            stage.press("ArrowRight")


def test_the_keyboard_walks_and_python_knows(page: Page, stepper: Locator, theme: str, artefacts: Path) -> None:
    stepper.get_by_label("program").first.select_option("paths that meet")
    run_cell(page, "stepper")
    command(page, "notebook:enter-command-mode")
    stage = stepper.locator(".gb-stage")
    for _ in range(12):
        page.keyboard.press("Tab")
        if stage.evaluate("(node) => node === document.activeElement"):
            break
    counter = stepper.locator(".gb-counter")
    for key, at in [("End", "11 of 11"), ("ArrowLeft", "10 of 11"), ("Home", "1 of 11"), ("ArrowUp", "1 of 11")]:
        page.keyboard.press(key)
        expect(counter).to_have_text(at)
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    await_print(page, "at", "0 5")
    stepper.get_by_role("button", name="step on").click()
    stepper.get_by_role("slider").press("ArrowRight")
    await_print(page, "at", "0 7")
    expect(stepper.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("step 8 of 11"))
    stepper.get_by_label("program").first.select_option("a layer and its loss")
    stage.focus()
    for _ in range(8):
        stage.press("ArrowRight")
    assert [(t, ratio) for t, ratio in contrasts(stepper.locator("*")) if ratio < TEXT] == []
    stepper.scroll_into_view_if_needed()
    picture(page, artefacts, f"stepper-{theme}")


def test_it_fits_a_narrow_page_and_nothing_goes_wrong(
    page: Page, stepper: Locator, watches: dict[str, Watch], theme: str, artefacts: Path
) -> None:
    before = page.viewport_size
    page.set_viewport_size({"width": 620, "height": 1000})
    room = stepper.evaluate("(node) => node.clientWidth - node.scrollWidth")
    picture(page, artefacts, f"stepper-narrow-{theme}")
    assert before is not None and room >= 0
    page.set_viewport_size(before)
    assert watches[theme].problems() == []
