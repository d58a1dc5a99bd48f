"""The dispatch stepper, the lifetime stepper and the ordering in JupyterLab, by mouse and keyboard, in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from browsing import Watch, await_print, cell, cells_run, command, picture, run_cell
from contrast import TEXT, contrasts
from playwright.sync_api import Browser, Locator, Page, expect
from serving import Jupyter

pytestmark = pytest.mark.browser

PROGRAM = "base = torch.zeros(1000, 1000)\\nhead = base[:1]\\ndel base\\nhead = head.clone()"
# The mini-framework alone: no torch to import, and the browser's side is the same.
CELLS = {
    "imports": "from glassbox import mini\nfrom glassbox.widgets import DispatchStepper, LifetimeStepper, Ordering",
    "dispatch": "m = mini.ones(2, requires_grad=True)\n"
    "dispatch = DispatchStepper(one=lambda: m + m, other=lambda: m.detach() * 2)\ndispatch",
    "lifetime": f'lifetime = LifetimeStepper("{PROGRAM}", mini=mini)\nlifetime',
    "ordering": "ordering = Ordering(['first', 'second', 'third'], because='So it is.')\nordering",
    "steps": "print(dispatch.step, lifetime.step)",
    "order": "print(ordering.order, ordering.done)",
}


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
            return stack.enter_context(cells_run(CELLS, f"steppers-{theme}", browser, server, watches[theme], theme))

        yield opened


@pytest.fixture
def page(open_in: Callable[[str], Page], theme: str) -> Page:
    """The notebook in a theme; each test takes the widgets as it finds them, or runs their cells anew."""
    return open_in(theme)


def widget(page: Page, name: str) -> Locator:
    run_cell(page, name)
    found = cell(page, name).locator(".gb-widget")
    found.wait_for()
    return found


def readable(found: Locator) -> list[tuple[str, float]]:
    """What in the widget does not stand out enough from its ground."""
    said = contrasts(found.locator(":not(svg, svg *, :disabled, :disabled *)"))
    drawn = contrasts(found.locator("svg text"), "fill")
    assert said and (drawn or not found.locator("svg").count())
    return [(text, ratio) for text, ratio in said + drawn if ratio < TEXT]


def test_dispatch_by_mouse_and_keyboard(page: Page, theme: str, artefacts: Path) -> None:
    stepper = widget(page, "dispatch")
    says = stepper.get_by_role("status")
    expect(says.first).to_contain_text("Each tensor brings its keys")
    expect(stepper.get_by_label("one step back")).to_be_disabled()
    stepper.get_by_label("one step on").click()
    expect(says.first).to_contain_text("takes AutocastCPU away")
    stepper.get_by_role("button", name="add.Tensor @ AutogradCPU").click()
    expect(stepper.locator("[aria-current=step]")).to_have_text("add.Tensor @ AutogradCPU")
    expect(says.first).to_contain_text("AutogradCPU is the highest key")
    assert readable(stepper) == []
    picture(page, artefacts, f"dispatch-{theme}")

    slider = stepper.get_by_label("step", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(says.first).to_contain_text("CPU is the highest key left")
    page.keyboard.press("End")
    expect(stepper.get_by_label("last step")).to_be_disabled()
    expect(stepper.locator(".gb-count")).to_have_text("6 of 6")
    # JupyterLab would have moved to another cell with these keys.
    assert slider.evaluate("(node) => node === document.activeElement")
    await_print(page, "steps", "5 0")
    assert stepper.locator("svg").count() == 2 == stepper.locator("svg[role=img] > title").count()


def test_lifetime_by_mouse_and_in_a_narrow_window(page: Page, theme: str, artefacts: Path) -> None:
    stepper = widget(page, "lifetime")
    expect(stepper.get_by_role("button", name="del base")).to_be_visible()
    stepper.get_by_role("button", name="del base").click()
    expect(stepper.get_by_role("status")).to_contain_text("held by head as _base")
    assert "base" not in stepper.locator("svg text").all_inner_texts()
    assert readable(stepper) == []
    picture(page, artefacts, f"lifetime-{theme}")
    stepper.get_by_label("last step").click()
    expect(stepper.locator("svg")).to_contain_text("S0 4 MB freed")

    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 620, "height": 900})
    command(page, "application:toggle-left-area")
    try:
        stepper.scroll_into_view_if_needed()
        room = stepper.evaluate("(node) => node.clientWidth - node.scrollWidth")
        drawing = stepper.locator("svg").bounding_box()
        assert room >= 0 and drawing is not None and drawing["width"] > 250
        picture(page, artefacts, f"lifetime-narrow-{theme}")
    finally:
        page.set_viewport_size(size)
        command(page, "application:toggle-left-area")


def test_an_order_by_buttons_and_keys(page: Page, theme: str, artefacts: Path) -> None:
    asked = widget(page, "ordering")
    lines = asked.locator("ol > li")
    before = lines.locator(".gb-step").all_inner_texts()
    lines.nth(0).get_by_label(f"{before[0]}: down").click()
    assert lines.locator(".gb-step").all_inner_texts() == [before[1], before[0], before[2]]
    lines.nth(2).focus()
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    moved = [before[2], before[1], before[0]]
    assert lines.locator(".gb-step").all_inner_texts() == moved
    assert lines.nth(0).evaluate("(node) => node === document.activeElement")
    for place, step in enumerate(["first", "second", "third"]):
        while (now := lines.locator(".gb-step").all_inner_texts()).index(step) > place:
            lines.nth(now.index(step)).get_by_label(f"{step}: up").click()
    await_print(page, "order", "['first', 'second', 'third'] False")
    asked.get_by_role("button", name="Commit").click()
    expect(asked.get_by_role("status")).to_contain_text("All in their place.")
    expect(asked.get_by_role("status")).to_contain_text("So it is.")
    assert readable(asked) == []
    picture(page, artefacts, f"ordering-{theme}")


def test_nothing_else_goes_wrong(page: Page, watches: dict[str, Watch], theme: str) -> None:
    assert watches[theme].problems() == []
