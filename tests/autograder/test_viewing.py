"""The page on which answers are graded by hand shows all of a submission, and nothing of it runs."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from autograder.server.viewing import InertExporter, inert

from .conftest import LAB, SOLUTION, named

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3)) <b onclick=alert(4)>"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WRITTEN = "written_view_or_reshape"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def handlers_of(page: Elements) -> list[tuple[str, str | None]]:
    """What the elements of a page do on events; the page's own do something, too."""
    return [item for _, attributes in page.found for item in attributes.items() if item[0].startswith("on")]


def shown(notebook: Any) -> Elements:
    """The page that Formgrader shows of a notebook."""
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    exporter = InertExporter({"mathjax_url": "/mathjax.js", "mathjax_config": "TeX"}, config=config)
    resources = {
        **{"assignment_id": LAB, "notebook_id": LAB, "submission_id": "x", "index": 0, "total": 1},
        **{"base_url": "", "student": "ada", "last_name": None, "first_name": None, "notebook_path": "p"},
    }
    return Elements(exporter.from_notebook_node(notebook, resources)[0])


@pytest.fixture(scope="module")
def solution() -> Any:
    return nbformat.read(SOLUTION, as_version=4)


@pytest.fixture(scope="module")
def honest(solution: Any) -> Elements:
    return shown(solution)


def with_cells(notebook: Any, *cells: Any) -> Any:
    changed = copy.deepcopy(notebook)
    changed.cells[:0] = cells
    return changed


OUTPUTS = [
    new_output(
        kind, data={mime: EVIL, "text/plain": "seen"}, **({"execution_count": 1} if kind[0] == "e" else {})
    )
    for kind in ("display_data", "execute_result")
    for mime in (
        "text/html",
        "image/svg+xml",
        "application/javascript",
        "text/markdown",
        "text/latex",
        "image/png",
        "application/vnd.jupyter.widget-view+json",
    )
]
HOSTILE = {
    "markdown": new_markdown_cell(EVIL),
    "raw": new_raw_cell(EVIL, metadata={"raw_mimetype": "text/html"}),
    "code": new_code_cell(f"x = 1  # {EVIL}"),
    "stream": new_code_cell("1", outputs=[new_output("stream", text=EVIL)]),
    "error": new_code_cell("1", outputs=[new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL])]),
    "outputs": new_code_cell("1", outputs=OUTPUTS),
    "metadata": new_code_cell("1", metadata={"tags": [EVIL, '"><script>'], "jupyter": {"x": EVIL}}),
    "attachment": new_markdown_cell("![a](attachment:a.png)", attachments={"a.png": {"image/png": EVIL}}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_a_submission_runs(solution: Any, honest: Elements, kind: str) -> None:
    notebook = with_cells(solution, HOSTILE[kind])
    notebook.metadata["title"] = f"</title>{EVIL}"
    page = shown(notebook)
    assert [s.get("src") for s in page.all("script")] == [s.get("src") for s in honest.all("script")]
    assert handlers_of(page) == handlers_of(honest)
    links = [attributes.get("href") or "" for attributes in page.all("a")]
    assert [link for link in links if "javascript" in link] == []
    assert len(page.all("img")) == len(honest.all("img"))


def test_what_a_submission_says_is_read(solution: Any) -> None:
    text = shown(
        with_cells(solution, *(HOSTILE[kind] for kind in ("markdown", "raw", "stream", "code")))
    ).text
    assert text.count("<script>alert(1)</script>") == 4


def test_the_labs_own_words_keep_their_form_and_an_answer_its(solution: Any) -> None:
    notebook = copy.deepcopy(solution)
    named(notebook, WRITTEN).source = "Use **view** where\n\n- it `can`\n\n<details>no</details>"
    page = shown(notebook)
    assert len(page.all("details")) >= 13
    assert "<details>no</details>" in page.text
    assert "Use view where" in page.text.replace("\n", " ")


def test_an_answers_picture_is_shown_and_one_that_is_missing_stops_nothing(solution: Any) -> None:
    notebook = copy.deepcopy(solution)
    answer = named(notebook, WRITTEN)
    answer.source = "See ![a](attachment:a.png) and ![b](attachment:gone.png)"
    answer.attachments = {"a.png": {"image/png": PICTURE}}
    pictures = [image["src"] for image in shown(notebook).all("img")]
    assert f"data:image/png;base64,{PICTURE}" in pictures


def test_a_plot_is_shown(solution: Any) -> None:
    plot = new_code_cell("plot()", outputs=[new_output("display_data", data={"image/png": PICTURE + "\n"})])
    page = shown(with_cells(solution, plot))
    assert f"data:image/png;base64,{PICTURE}" in [image["src"] for image in page.all("img")]


def test_the_judges_report_stays_as_it_is(solution: Any) -> None:
    notebook = copy.deepcopy(solution)
    report = new_output(
        "execute_result", data={"text/plain": "4", "text/html": "<table><tr><td>4</td></tr></table>"}
    )
    named(notebook, "check_permute").outputs = [report]
    assert named(inert(notebook), "check_permute").outputs == [report]
    assert len(shown(notebook).all("table")) == len(shown(solution).all("table")) + 1


def test_the_page_is_light_and_takes_its_mathjax_from_here(honest: Elements) -> None:
    assert honest.all("body")[0] == {"data-jp-theme-light": "true"}
    sources = [script.get("src") or "" for script in honest.all("script")]
    assert "/mathjax.js?config=TeX" in sources
    assert [source for source in sources if source.startswith("http")] == []
