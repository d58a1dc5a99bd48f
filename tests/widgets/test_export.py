"""A notebook that is exported to HTML shows its widgets as figures and needs no network for it."""

import base64
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
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
from glassbox import draw, mini
from glassbox.draw.svg import DARK, LIGHT
from glassbox.widgets.export import VIEW, StaticFigures, clean
from glassbox.xray import aliases, view_of

STATE = "application/vnd.jupyter.widget-state+json"
CELLS = (
    "from glassbox import mini\nfrom glassbox.widgets import StrideExplorer, predict",
    "StrideExplorer(mini.arange(12).view(3, 4), 'A')",
    "predict('2 + 3', choices=[4, 5])",
)


class Page(HTMLParser):
    """What a page draws and says, with which attributes, and the types of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str | None] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
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


def exported(nb: Any, **options: Any) -> str:
    """The page of a notebook with the settings of the course; `options` go to the exporter."""
    exporter = HTMLExporter(config=Config(course.JUPYTER), **options)
    return exporter.from_notebook_node(nb, {"metadata": {"name": "a"}})[0]


def test_a_sanitized_page_shows_the_figures_as_pictures_and_all_that_the_other_one_says(ran: Any) -> None:
    full, cleaned = Page(exported(ran)), Page(exported(ran, sanitize_html=True))
    assert "svg" not in cleaned.tags
    assert cleaned.tags.count("img") == full.tags.count("svg") == 1
    assert "What will this give?" in cleaned.text and "<" not in cleaned.text
    (alt,) = [value for tag, name, value in cleaned.attributes if (tag, name) == ("img", "alt")]
    assert "shape (3, 4)" in alt


FIGURE = draw.tensor_over_storage(view_of(mini.arange(6).view(2, 3), "<A> & B"))


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_the_picture_has_the_theme_of_the_page_and_no_hint_to_point_at_it(
    theme: str, palette: dict[str, str]
) -> None:
    nb = new_notebook(cells=[new_code_cell(outputs=[new_output("display_data", data={"text/html": ""})])])
    nb.cells[0].outputs[0].data["text/html"] = f"<p>before</p>{FIGURE.text}<p>after</p>"
    page = exported(nb, sanitize_html=True, theme=theme)
    (data,) = re.findall('src="data:image/svg\\+xml;base64,([^"]+)"', page)
    root = ET.fromstring(base64.b64decode(data))
    # Where a style says it itself, no rule of the stylesheet comes before it.
    assert root.get("style", "").startswith(f"--gb-ink:{palette['ink']};--gb-muted:{palette['muted']};")
    style = root.find("{http://www.w3.org/2000/svg}style")
    assert style is not None and (style.text or "").endswith(".hint{display:none}")
    assert "before</p><img" in page and "><p>after" in page


KEPT = (
    '<h2 id="a">A</h2><p>b <em>c</em> <a href="../labs/a.ipynb#b">d</a></p>',
    '<ol start="3"><li><a href="https://pytorch.org" title="t">e</a></li></ol>',
    '<details><summary style="padding: 4px;"><code>f</code></summary><pre>g &lt;h&gt;</pre></details>',
    '<img alt="i" src="data:image/png;base64,AAAA">',
)


@pytest.mark.parametrize("html", KEPT)
def test_cleaning_keeps_what_a_notebook_says(html: str) -> None:
    assert clean(html) == html


def test_cleaning_keeps_a_table() -> None:
    html = aliases(mini.zeros(2, 3))._repr_html_()
    before, after = Page(html), Page(clean(html))
    assert (after.tags, after.text) == (before.tags, before.text)
    assert [(t, n) for t, n, _ in after.attributes] == [(t, n) for t, n, _ in before.attributes]
    styles = ["".join(v.split()).rstrip(";") for _, n, v in after.attributes if n == "style"]
    assert styles == [value for _, name, value in before.attributes if name == "style"]


ATTACKS = (
    "<script>alert(1)</script>",
    "<SCRIPT src=https://example.org/a.js></SCRIPT >",
    "<img src=x onerror=alert(1)>",
    "<img src='data:text/html,<script>alert(1)</script>'>",
    "<img src=https://example.org/seen.png>",
    "<p onclick=alert(1) style='background:url(https://example.org/seen.png);position:fixed'>a</p>",
    "<p style='color:red;background-image:url(https://example.org/seen.png)'>a</p>",
    "<a href='javascript:alert(1)'>a</a>",
    "<a href='java\tscript&colon;alert(1)'>a</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>a</a>",
    "<a href='data&colon;text/html,alert'>a</a>",
    "<a href=' &#1;data:text/html,alert'>a</a>",
    "<svg onload=alert(1)><style>*{display:none}</style></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text>a</text></a></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data=a></object><embed src=a><base href=b>",
    "<form action=https://example.org><input name=a><button>b</button></form><meta http-equiv=refresh>",
    "<style>@import 'https://example.org/a.css';</style><link rel=stylesheet href=https://example.org/a>",
    '<svg class="glassbox-figure"><script>alert(1)</script></svg>',
    '<svg class="glassbox-figure"><title id="t">"><script>alert(1)</script></title></svg>',
    '<svg class="glassbox-figure"><title id=t>&quot; onerror=alert(1) &quot;</title></svg>',
    "<a title='<svg class=\"glassbox-figure\"><title id=t> onmouseover=alert(1) </title></svg>'>a</a>",
    "<scr<script></script>ipt>alert(1)</script>",
)
INERT = re.compile(r"(https?://|mailto:|#|[^:]*$)", re.IGNORECASE)


@pytest.mark.parametrize("html", ATTACKS)
def test_cleaning_leaves_nothing_that_runs_or_asks_another_host(html: str) -> None:
    page = Page(clean(html))
    assert set(page.tags) <= {"a", "img", "p", "table"}
    assert {name for _, name, _ in page.attributes} <= {"alt", "class", "href", "src", "style", "title"}
    values = [(name, value) for _, name, value in page.attributes]
    assert [v for name, v in values if name == "href" and not INERT.match(v.strip())] == []
    assert [v for name, v in values if name == "src" and not v.startswith("data:image/")] == []
    assert [v for name, v in values if name == "style" and ("url" in v or "position" in v)] == []


def test_a_folded_cell_is_folded_on_the_page_and_shows_its_first_line() -> None:
    folded = {"jupyter": {"source_hidden": True}}
    nb = new_notebook(
        cells=[
            new_code_cell("# the answer <to> it\nanswer = 42", metadata=folded),
            new_code_cell("shown = 1\nmore = 2", metadata={"jupyter": {"source_hidden": False}}),
        ]
    )
    for sanitized in (False, True):
        html = exported(nb, sanitize_html=sanitized)
        assert html.count("<details>") == 1 and "<details open" not in html
        (fold,) = re.findall("<details>(.*?)</details>", html, re.DOTALL)
        summary, _, inside = fold.partition("</summary>")
        assert Page(summary).text == "# the answer <to> it …"
        assert "42" in Page(inside).text and "more" not in Page(inside).text


def test_code_is_coloured_as_without_the_course() -> None:
    nb = new_notebook(cells=[new_code_cell("assert 1 < 2  # <b>")])
    inside = '<div class="highlight.*?</div>'
    ours, plain = (
        re.findall(inside, html, re.DOTALL)
        for html in (exported(nb), HTMLExporter().from_notebook_node(nb)[0])
    )
    assert ours == plain and len(ours) == 1
