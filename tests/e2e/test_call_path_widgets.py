"""The call path explorer and the timeline player in JupyterLab, by mouse and by keyboard, in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Watch, await_print, cell, cells_run, picture
from contrast import GRAPHICS, TEXT, contrasts
from playwright.sync_api import Browser, Locator, Page, expect
from serving import Jupyter

from glassbox import mini
from glassbox.draw.moments import moments
from glassbox.widgets import CallPathExplorer, TimelinePlayer
from glassbox.xray import call_path

pytestmark = pytest.mark.browser

CELLS = {
    "imports": "from glassbox import mini\nfrom glassbox.widgets import CallPathExplorer, TimelinePlayer\n"
    "from glassbox.xray import call_path",
    "path": "m, n = mini.randn(3, 4, requires_grad=True), mini.randn(4)\n"
    "path = call_path(lambda: m + n)\n"
    "explorer = CallPathExplorer(path, path, costs=[[('7', 0.43, 'plan: by hand')]])\nexplorer",
    "opened": "print(explorer.opened)",
    "player": "player = TimelinePlayer(sizes=(1, 2**18, 2**20))\nplayer",
    "turned": "print(player.program, player.size)",
}


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Jupyter, watch: Watch) -> Iterator[Page]:
    with cells_run(CELLS, "call-path", browser, server, watch) as opened:
        yield opened


def readable(page: Page, widget: Locator, artefacts: Path, name: str) -> None:
    """All text stands out in both themes, and nothing is wider than its place, on a narrow window, too."""
    size = page.viewport_size
    assert size is not None
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
        page.wait_for_timeout(300)
        seen = contrasts(widget.locator(":not(:disabled, :disabled *, svg *)"))
        assert len(seen) > 5
        seen += contrasts(widget.locator("svg :is(.waits > text, text:not(.k *))"), "fill")
        assert [(text, ratio) for text, ratio in seen if ratio < TEXT] == []
        widget.scroll_into_view_if_needed()
        picture(page, artefacts, f"{name}-{theme}")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 720, "height": 900})
    page.wait_for_timeout(300)
    assert widget.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 1
    widget.scroll_into_view_if_needed()
    picture(page, artefacts, f"{name}-narrow")
    page.set_viewport_size(size)


def hot(explorer: Locator) -> str:
    return explorer.locator(".gb-frame.gb-hot .gb-name").inner_text()


def anywhere(text: str) -> re.Pattern[str]:
    """The same words with any sequence number: the notebook's kernel counts for itself."""
    return re.compile(re.sub(r"number\\ \d+", r"number \\d+", re.escape(text)))


def test_a_call_path_is_walked_and_read(page: Page, watch: Watch, artefacts: Path) -> None:
    m, n = mini.randn(3, 4, requires_grad=True), mini.randn(4)
    ours = CallPathExplorer(call_path(lambda: m + n)).state["paths"][0]
    explorer = cell(page, "path").locator(".gb-path")
    says = explorer.get_by_role("status")
    first = [lane for lane in ours["lanes"][1:] if lane][0][0]
    assert hot(explorer) == first["name"]
    explorer.locator(".gb-frame.gb-hot").focus()
    # Down along the call, frame by frame, as far as the lanes show them.
    flat = [each for nr, lane in enumerate(ours["lanes"]) if nr for each in (lane if len(lane) <= 5 else lane[:4])]
    for each in flat:
        assert anywhere(each["name"]).fullmatch(hot(explorer))
        expect(says).to_contain_text(anywhere(each["name"]))
        if each["place"]:
            expect(says).to_contain_text(each["place"])
        page.keyboard.press("ArrowDown")
    expect(says).to_contain_text("station 8")
    page.keyboard.press("ArrowRight")
    assert explorer.locator(".gb-frame.gb-hot").evaluate("(n) => n.closest('[data-path]').dataset.path") == "1"
    page.keyboard.press("Home")
    expect(says).to_contain_text("before the stations")
    page.keyboard.press("ArrowLeft")
    # JupyterLab would have moved to another cell, or written into one.
    assert explorer.evaluate("(node) => node.contains(document.activeElement)")
    expect(explorer.locator(".gb-cost")).to_have_count(1)
    more = explorer.get_by_role("group", name="station 7").get_by_role("button", name="more").first
    more.click()
    await_print(page, "opened", "[7]")
    shown = explorer.locator("[aria-label^='station 7'] [data-path='0'] .gb-name").all_inner_texts()
    assert shown == [each["name"] for each in ours["lanes"][7]]
    explorer.get_by_text("coalesce_dimensions", exact=True).first.hover()
    expect(says).to_contain_text("measured")
    assert contrasts(explorer.locator(".gb-frame.gb-hot"), "border")[0][1] >= GRAPHICS
    # What the lanes' edge hides is named, and goes into sight by a press; the keyboard can scroll them as well.
    lanes = explorer.get_by_role("region", name="stations of the call")
    lanes.evaluate("(node) => node.scrollTo(0, 0)")
    further = explorer.get_by_role("button", name=re.compile("^↓ station"))
    expect(further).to_have_text(re.compile("^↓ stations [2-8] to 8$"))
    assert lanes.get_attribute("tabindex") == "0"
    for _ in range(10):
        if further.is_hidden():
            break
        further.click()
        page.wait_for_timeout(100)
    expect(further).to_be_hidden()
    lane = explorer.get_by_role("group", name="station 8").bounding_box()
    edge = lanes.bounding_box()
    assert lane and edge and lane["y"] + lane["height"] <= edge["y"] + edge["height"] + 2
    lanes.evaluate("(node) => node.scrollTo(0, 0)")
    expect(further).to_be_visible()
    readable(page, explorer, artefacts, "call-path")
    assert watch.problems() == []


def test_a_timeline_is_turned_and_stepped_through(page: Page, watch: Watch, artefacts: Path) -> None:
    ours = TimelinePlayer(sizes=(1, 2**18, 2**20))
    player = cell(page, "player").locator(".gb-player")
    size, moment = player.get_by_role("slider", name="elements"), player.get_by_role("slider", name="moment")
    now, verdict = player.get_by_role("status").first, player.get_by_role("status").last
    for name in ours.names:
        player.get_by_role("button", name=name).click()
        size.focus()
        page.keyboard.press("Home")
        for nr, line in enumerate(ours.timelines[name]):
            told = moments(line)
            expect(player.locator(".gb-count")).to_contain_text(f"{ours.sizes[nr]:,} element")
            expect(player.locator(".gb-picture [data-nr]")).to_have_count(len(line.events))
            expect(now).to_have_text(told[0].text)
            moment.focus()
            for each in told[1:4]:
                page.keyboard.press("ArrowRight")
                expect(now).to_have_text(each.text)
            page.keyboard.press("End")
            expect(now).to_have_text(told[-1].text)
            size.focus()
            page.keyboard.press("ArrowRight")
        expect(verdict).to_have_text(ours.state["programs"][ours.names.index(name)]["says"])
    await_print(page, "turned", "2 2")
    mark = player.locator(".gb-sweep .now").get_attribute("d")
    assert mark is not None and float(mark[1:].split()[0]) == ours.state["programs"][2]["marks"][2]
    head = player.locator(".gb-picture .gb-head")
    before = head.get_attribute("d")
    player.get_by_role("button", name="play").click()
    expect(player.get_by_role("button", name="pause")).to_be_visible()
    expect(head).not_to_have_attribute("d", str(before))
    player.get_by_role("button", name="pause").click()
    readable(page, player, artefacts, "timeline-player")
    assert watch.problems() == []
