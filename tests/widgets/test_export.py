"""A notebook that is exported to HTML shows its widgets as figures and needs no network for it."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_core.paths import ENV_CONFIG_PATH
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor
from nbformat.v4 import new_code_cell, new_notebook, new_output
from traitlets.config import Config

import course
from glassbox.widgets.export import VIEW, StaticFigures

STATE = "application/vnd.jupyter.widget-state+json"
CELLS = (
    "from glassbox import mini\nfrom glassbox.widgets import StrideExplorer, predict",
    "StrideExplorer(mini.arange(12).view(3, 4), 'A')",
    "predict('2 + 3', choices=[4, 5])",
)


class Page(HTMLParser):
    """What a page draws and says, and the types of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str | None] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("type"))

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] not in (["script"], ["style"]):
            self.text += data


@pytest.fixture(scope="module")
def ran() -> Any:
    """A notebook that was run and holds its outputs and the state of its widgets, as JupyterLab saves it."""
    nb = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    nb, _ = ExecutePreprocessor(kernel_name="python3", timeout=120).preprocess(nb, {})
    return nb


def test_the_notebook_keeps_its_live_widgets(ran: Any) -> None:
    views = [output.data for cell in ran.cells for output in cell.outputs]
    assert [VIEW in data and "text/html" in data for data in views] == [True, True]
    assert len(ran.metadata.widgets[STATE].state) >= 2


def test_with_the_settings_of_the_course_a_page_shows_the_figures_and_no_live_view(ran: Any) -> None:
    before = json.dumps(ran)
    html, _ = HTMLExporter(config=Config(course.JUPYTER)).from_notebook_node(ran)
    page = Page(html)
    assert page.tags.count("svg") == 1
    assert "shape (3, 4) · stride (4, 1) · offset 0" in page.text
    assert "What will this give?" in page.text
    assert not {VIEW, STATE} & set(page.scripts)
    assert "html-manager" not in html
    assert json.dumps(ran) == before


def test_without_them_it_would_wait_for_the_network(ran: Any) -> None:
    page = Page(HTMLExporter().from_notebook_node(ran)[0])
    assert "svg" not in page.tags and "What will this give?" not in page.text
    assert {VIEW, STATE} <= set(page.scripts)


def test_the_command_line_reads_them_where_the_set_up_puts_them(ran: Any, tmp_path: Path) -> None:
    made = course.Environment(tmp_path)
    assert made.jupyter.parent.relative_to(made.path) == Path(ENV_CONFIG_PATH[0]).relative_to(sys.prefix)
    made.write_settings()
    nbformat.write(ran, tmp_path / "a.ipynb")
    variables = {
        **os.environ,
        "JUPYTER_CONFIG_PATH": str(made.jupyter.parent),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "no settings of the user"),
    }
    argv = [sys.executable, "-m", "nbconvert", "--to", "html", "a.ipynb"]
    subprocess.run(argv, cwd=tmp_path, env=variables, check=True, capture_output=True)
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert page.tags.count("svg") == 1 and VIEW not in page.scripts


def view(name: str, **more: Any) -> Any:
    data = {VIEW: {"model_id": name, "version_major": 2, "version_minor": 0}, "text/plain": name, **more}
    return new_output("display_data", data=data)


def stored(*names: str) -> dict[str, Any]:
    return {STATE: {"state": {name: {} for name in names}, "version_major": 2, "version_minor": 0}}


def test_a_widget_that_has_no_html_form_keeps_its_live_view_and_the_state_that_it_needs() -> None:
    nb = new_notebook(
        cells=[new_code_cell(outputs=[view("slider"), view("figure", **{"text/html": "<i></i>"})])]
    )
    nb.metadata.widgets = stored("slider", "figure")
    nb, _ = StaticFigures().preprocess(nb, {})
    slider, figure = nb.cells[0].outputs
    assert VIEW in slider.data and set(figure.data) == {"text/plain", "text/html"}
    assert set(nb.metadata.widgets[STATE].state) == {"slider", "figure"}


def test_a_notebook_without_widgets_of_ours_passes_unchanged() -> None:
    stream = new_output("stream", text="said\n")
    nb = new_notebook(cells=[new_code_cell(outputs=[stream, view("slider")])])
    nb.metadata.widgets = stored("slider")
    before = json.dumps(nb)
    assert json.dumps(StaticFigures().preprocess(nb, {})[0]) == before
