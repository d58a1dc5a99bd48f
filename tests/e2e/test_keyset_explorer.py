"""The key set explorer in JupyterLab: what it draws is the state's record, by mouse and by keyboard, in both themes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from browsing import VIEWPORT, Watch, await_print, cell, cells_run, picture, run_cell
from contrast import GRAPHICS, TEXT, contrasts
from playwright.sync_api import Browser, Locator, Page, expect
from serving import Jupyter

from glassbox.widgets._keyset_states import Choice

pytestmark = pytest.mark.browser

# Prints the states that are tried as plain data.
RECORDS = """
import json
from glassbox.widgets._keyset_states import Choice, program, states
used = 0
for each in states().values():
    for step in each.call.key_sets.steps:
        used |= step.bits if step.role in ("argument", "included") else 0
found = []
for fields in TRIED:
    call, sets = states()[Choice(*fields)].call, states()[Choice(*fields)].call.key_sets
    found.append({
        "code": "\\n".join(filter(None, program(Choice(*fields)))),
        "winner": sets.winner,
        "bits": [(bit, sets.layout.bit_name(bit)) for bit in range(63, -1, -1) if used >> bit & 1],
        "arguments": [step.bits for step in sets.steps if step.role == "argument"],
        "included": sets.of_role("included").bits,
        "masks": [(sets.of_role(mask).bits, sets.taken(mask)) for mask in ("excluded", "fallthrough")],
        "left": sets.effective.bits,
        "lit": sets.layout.bits(sets.winner),
        "hops": [f"{hop.op.removeprefix('aten.').removesuffix('.default')} {hop.key}" for hop in call.hops],
    })
print(json.dumps(found))
"""
# Over how many lines the word of each head runs.
LINES = """(heads) => heads.map((head) => {
    const word = document.createRange();
    word.selectNodeContents(head.querySelector("span").lastChild);
    return word.getClientRects().length;
})"""
CELLS = {
    "explorer": "from glassbox.widgets import KeySetExplorer\nexplorer = KeySetExplorer()\nexplorer",
    "choice": "print(*explorer.choice)",
}
TRIED = [
    Choice(),
    Choice("mm", autocast=True, no_grad=True),
    Choice("add", "meta", requires_grad=False, mode=True),
    Choice("t", inference="tensors made in it, too", vmap=True),
    Choice("linear", "cuda" if torch.version.cuda else "cpu", autocast=True, vmap=True, mode=True),
]


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Jupyter, watch: Watch) -> Iterator[Page]:
    cells = CELLS | {"records": RECORDS.replace("TRIED", repr([tuple(each) for each in TRIED]))}
    with cells_run(cells, "keyset", browser, server, watch) as page:
        yield page


@pytest.fixture
def explorer(page: Page) -> Locator:
    return cell(page, "explorer").locator(".gb-keyset")


def choose(explorer: Locator, choice: Choice) -> None:
    for label, value in (("operator", choice.op), ("device", choice.device), ("inference mode", choice.inference)):
        explorer.get_by_label(label).select_option(value)
    switches = {"requires_grad": choice.requires_grad, "autocast": choice.autocast, "no_grad": choice.no_grad}
    for label, on in (switches | {"vmap": choice.vmap, "dispatch mode": choice.mode}).items():
        explorer.get_by_label(label, exact=True).set_checked(on)


def drawn(explorer: Locator) -> tuple[str, str, list[list[str]], list[str]]:
    """The program, the winner, what the sum's rows hold in their columns, and the kernels by operator and key."""
    rows = explorer.locator("tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].slice(0, 8).map((cell) => cell.textContent.replace('\\u2212', '')))"
    )
    hops = explorer.locator(".gb-hop").evaluate_all(
        "(hops) => hops.map((hop) => [...hop.querySelectorAll('b, span')].map((n) => n.textContent).join(' '))"
    )
    return (
        explorer.locator(".gb-code").inner_text(),
        explorer.locator(".gb-verdict b").inner_text(),
        rows,
        hops,
    )


def expected(record: dict[str, Any]) -> tuple[str, str, list[list[str]], list[str]]:
    """The same from the state's record, as the kernel printed it."""
    arguments = (record["arguments"] + [0])[:2]
    rows = []
    for bit, name in record["bits"]:

        def has(bits: int, bit: int = bit) -> bool:
            return bool(bits >> bit & 1)

        columns = ["set" if has(bits) else "" for bits in (*arguments, record["included"])]
        for bits, taken in record["masks"]:
            idle = "would be taken away, but is not there"
            columns.append(("taken away" if has(taken) else idle) if has(bits) else "")
        columns.append(("wins" if has(record["lit"]) else "set") if has(record["left"]) else "")
        rows.append([str(bit), name, *columns])
    return record["code"], record["winner"], rows, record["hops"]


def test_what_it_draws_is_what_the_state_says(page: Page, explorer: Locator) -> None:
    records = json.loads(run_cell(page, "records"))
    for choice, record in zip(TRIED, records, strict=True):
        choose(explorer, choice)
        assert drawn(explorer) == expected(record), choice
        assert ("not executed" in explorer.locator(".gb-remark").inner_text()) == (choice.device == "cuda")
    await_print(page, "choice", " ".join(map(str, TRIED[-1])))


def test_it_works_by_keyboard_fits_and_can_be_read(
    page: Page, explorer: Locator, artefacts: Path, watch: Watch
) -> None:
    choose(explorer, Choice())
    explorer.get_by_label("vmap", exact=True).focus()
    page.keyboard.press("Space")
    expect(explorer.get_by_label("vmap", exact=True)).to_be_checked()
    expect(explorer.get_by_role("status")).to_contain_text("FuncTorchDynamicLayerFrontMode")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(explorer.get_by_label("dispatch mode")).to_be_checked()
    legend = explorer.get_by_role("list", name="the marks of the table").get_by_role("listitem")
    expect(legend).to_have_text([re.compile(words) for words in ("in the set", "taken away", "not there", "win")])
    for theme, width in (("light", 1400), ("dark", 1400), ("dark", 700)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
        assert explorer.evaluate("(node) => node.scrollWidth <= node.clientWidth")
        assert explorer.locator("table").evaluate("(node) => node.scrollWidth <= node.parentElement.clientWidth + 1")
        assert explorer.locator("th.gb-step").evaluate_all(LINES) == [1] * 6
        said = contrasts(explorer.locator(":scope *:not(.gb-unseen, option)"))
        assert len(said) > 50 and [(text, ratio) for text, ratio in said if ratio < TEXT] == []
        marks = contrasts(explorer.locator(".gb-mark.gb-lit, .gb-mark.gb-away"), "border")
        assert [(text, ratio) for text, ratio in marks if ratio < GRAPHICS] == []
        explorer.scroll_into_view_if_needed()
        picture(page, artefacts, f"keyset-{theme}-{width}")
    page.set_viewport_size(VIEWPORT)
    assert watch.problems() == []
