"""A notebook exported as HTML, from JupyterLab's menu or by nbconvert, shows its figures offline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from browsing import Ran, Watch, open_lab, picture, shown, visiting
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import Browser, Page, expect
from serving import Jupyter

pytestmark = pytest.mark.browser

NAME = "01_storage"
# The menu's dialog asks whether to sanitize, which is ticked.
WAYS = ("menu", "menu-unticked", "command")
ALIVE = WAYS[1:]
FIGURES = "svg.glassbox-figure, .jp-OutputArea-output img[src^='data:image/svg+xml']"
# The first row of a tensor, in the light theme.
BLUE = "217,232,253"

_COLOURS = """(image) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const found = new Set();
    for (let i = 0; i < data.length; i += 4) found.add(data.slice(i, i + 3).join());
    return [...found];
}"""
RUNS = """<script>document.body.dataset.script = 'ran'</script>
<p onclick="document.body.dataset.click = 'ran'">press here</p>
<svg class="glassbox-figure" width="90" height="40"><script>document.body.dataset.svg = 'ran'</script>
<circle r="9" /></svg>"""


@dataclass(frozen=True)
class Exported:
    """The pages made of one notebook, and how many figures, questions and folded cells the notebook has."""

    pages: dict[str, Path]
    figures: int
    questions: int
    folded: int


@pytest.fixture(scope="module")
def exported(
    executed: Callable[[str], Ran], server: Jupyter, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    folder = tmp_path_factory.mktemp("exported")
    page = executed(NAME).page
    pages = {way: folder / f"{way}.html" for way in WAYS}
    by_menu(page, pages["menu"], sanitize=True)
    by_menu(page, pages["menu-unticked"], sanitize=False)
    argv = [sys.executable, "-m", "nbconvert", "--to", "html", f"notebooks/{NAME}.ipynb"]
    argv += ["--output-dir", str(folder), "--output", "command"]
    environment = server.environment.variables()
    subprocess.run(argv, cwd=server.folder, env=environment, check=True, capture_output=True)
    html = shown(page, live=True) + shown(page, live=False)
    stored = nbformat.read(server.folder / "notebooks" / f"{NAME}.ipynb", as_version=4)
    return Exported(
        pages,
        figures=sum(text.count("<svg") for text in html),
        questions=sum("What will this give?" in text for text in html),
        folded=sum(bool(cell.metadata.get("jupyter", {}).get("source_hidden")) for cell in stored.cells),
    )


def by_menu(page: Page, target: Path, sanitize: bool) -> None:
    """File > Save and Export Notebook As > HTML, as a reader does it, who leaves the tick or takes it out."""
    page.locator(".lm-MenuBar-itemLabel", has_text="File").click()
    page.locator(".lm-Menu-item", has_text="Save and Export Notebook As").hover()
    page.locator(".lm-Menu-item[data-command='notebook:export-to-format']", has_text="HTML").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog.get_by_role("checkbox")).to_be_checked()
    if not sanitize:
        dialog.get_by_role("checkbox").uncheck()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Ok").click()
    download.value.save_as(target)


@pytest.fixture
def offline(
    request: pytest.FixtureRequest, exported: Exported, browser: Browser, watch: Watch, theme: str
) -> Iterator[Page]:
    with visiting(browser, theme, watch, offline=True) as page:
        page.goto(exported.pages[getattr(request, "param", "menu")].as_uri())
        yield page


every_way = pytest.mark.parametrize("offline", WAYS, indirect=True)
alive = pytest.mark.parametrize("offline", ALIVE, indirect=True)


@every_way
def test_it_shows_its_figures_and_questions(
    offline: Page, exported: Exported, artefacts: Path, theme: str, request: pytest.FixtureRequest
) -> None:
    figures = offline.locator(FIGURES)
    sizes = figures.evaluate_all("(nodes) => nodes.map((node) => node.getBoundingClientRect().width)")
    assert len(sizes) == exported.figures > 5
    assert min(sizes) > 100
    questions = offline.get_by_text("What will this give?", exact=True)
    assert questions.count() == exported.questions > 10
    assert offline.locator("h2").count() > 5
    figures.nth(1).scroll_into_view_if_needed()
    picture(offline, artefacts, f"export-{request.node.callspec.params['offline']}-{theme}")


@every_way
def test_what_it_asks_is_set_as_code(offline: Page) -> None:
    expression = offline.get_by_text("A.contiguous() is A", exact=True)
    assert "mono" in expression.evaluate("(node) => getComputedStyle(node).fontFamily")


@every_way
def test_what_is_folded_stays_so_until_it_is_opened(offline: Page, exported: Exported) -> None:
    folds = offline.locator(".jp-CodeCell details")
    assert folds.count() == exported.folded > 10
    assert offline.locator(".jp-CodeCell details[open]").count() == 0
    answer = folds.filter(has_text="the answer to the puzzle")
    inside = answer.get_by_text("as_strided").first
    expect(inside).not_to_be_visible()
    answer.locator("summary").click()
    expect(inside).to_be_visible()


@alive
def test_its_figures_have_the_colours_of_the_page(offline: Page) -> None:
    ink = offline.locator("svg.glassbox-figure text.m").first.evaluate(
        "(node) => getComputedStyle(node).fill"
    )
    assert ink == "rgb(86, 99, 111)"


@alive
def test_its_figures_answer_the_mouse(offline: Page) -> None:
    figure = offline.locator("svg.glassbox-figure").nth(1)
    tip = figure.locator(".tip")
    assert tip.count() > 0
    figure.locator("g.k").first.hover()
    assert tip.filter(visible=True).count() >= 1


def test_its_pictures_have_the_colours_of_the_page_and_say_what_they_show(offline: Page) -> None:
    pictures = offline.locator(FIGURES)
    assert pictures.locator("text").count() == 0
    assert BLUE in pictures.first.evaluate(_COLOURS)
    told = pictures.evaluate_all("(nodes) => nodes.map((node) => node.alt)")
    assert [alt for alt in told if len(alt) < 20] == []


@pytest.mark.parametrize("sanitize", [True, False])
def test_a_sanitized_page_runs_nothing_that_an_output_holds(
    sanitize: bool, server: Jupyter, browser: Browser, tmp_path: Path
) -> None:
    output = new_output("display_data", data={"text/html": RUNS})
    notebook = new_notebook(cells=[new_code_cell(outputs=[output]), new_markdown_cell(RUNS)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, server.folder / "runs.ipynb")
    with visiting(browser) as lab:
        open_lab(lab, server, "runs.ipynb")
        by_menu(lab, tmp_path / "runs.html", sanitize)
    with visiting(browser, offline=True) as exported:
        exported.goto((tmp_path / "runs.html").as_uri())
        exported.get_by_text("press here").first.click()
        ran = exported.evaluate("() => Object.keys(document.body.dataset)")
    assert ({"script", "click", "svg"} & set(ran)) == (set() if sanitize else {"script", "click", "svg"})


@every_way
def test_only_the_typesetting_of_formulas_asks_the_network(offline: Page, watch: Watch) -> None:
    offline.wait_for_load_state()
    assert watch.page_errors == []
    assert {url.split("/")[2] for url in watch.strangers} <= {"cdnjs.cloudflare.com"}
    assert all("net::ERR_" in text and "cdnjs" in text for text in watch.console_errors)
    formula = offline.get_by_text("\\text{address}(i, j, \\dots)")
    assert formula.count() == 1 and formula.is_visible()
