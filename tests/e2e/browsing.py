"""Driving JupyterLab and Notebook 7 in a browser: open a notebook, run it, read it, take its picture."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, WebError, expect
from serving import Jupyter

READY_MS = 90_000
MESSAGE_SECONDS = 20
RUN_MS = 240_000
# What is to be seen in a moment may take longer where other work runs beside.
expect.set_options(timeout=30_000)
VIEWPORT = {"width": 1400, "height": 900}
VIEW = "application/vnd.jupyter.widget-view+json"
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
# The height of the window while pictures of a whole notebook are taken.
PIECE = 1800

# `idle` is what JupyterLab shows before there is a kernel, too.
_READY = """() => {
    const session = window.jupyterapp?.shell?.currentWidget?.sessionContext;
    const kernel = session?.session?.kernel;
    return !!kernel && session.isReady && kernel.connectionStatus === 'connected' && kernel.status === 'idle';
}"""
_CONTENT = "window.jupyterapp.shell.currentWidget.content"
_OUTPUTS = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model);
    return cells.filter((model) => model.type === 'code').map((model) => {
        const list = [];
        for (let i = 0; i < model.outputs.length; i++) list.push(model.outputs.get(i).toJSON());
        return { id: model.id, count: model.executionCount, outputs: list };
    });
}"""


@dataclass
class Watch:
    """What went wrong in the pages of a browser context, and which other hosts they asked for."""

    page_errors: list[str] = field(default_factory=list)
    console_errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def on(self, context: BrowserContext) -> Watch:
        context.on("weberror", self._weberror)
        context.on("console", self._console)
        context.on("request", self._request)
        return self

    def problems(self) -> list[str]:
        """All of it, one line each; [] where nothing went wrong."""
        return [
            *(f"page error: {text}" for text in self.page_errors),
            *(f"console: {text}" for text in self.console_errors),
            *(f"asked for: {url}" for url in self.strangers),
        ]

    def _weberror(self, error: WebError) -> None:
        self.page_errors.append(str(error.error))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        # data: and blob: have no host
        if parts.hostname not in (None, "127.0.0.1", "localhost"):
            self.strangers.append(request.url)


@dataclass(frozen=True)
class Ran:
    """A notebook that was run from top to bottom and is still on the page."""

    name: str
    page: Page
    watch: Watch
    finished: bool


# The pages that are open now, so that a failed test can leave pictures of them.
OPEN: list[BrowserContext] = []


@contextmanager
def visiting(
    browser: Browser, theme: str = "light", watch: Watch | None = None, **more: Any
) -> Iterator[Page]:
    """A page in a browser context of its own, in the colour scheme that the system would ask for.

    `watch` notes what goes wrong in it; `more` goes to the context.
    """
    context = browser.new_context(**{"viewport": VIEWPORT, "color_scheme": theme, **more})
    context.set_default_timeout(READY_MS)
    (watch or Watch()).on(context)
    OPEN.append(context)
    try:
        yield context.new_page()
    finally:
        OPEN.remove(context)
        context.close()


def open_lab(page: Page, server: Jupyter, path: str = "", wait: bool = True) -> None:
    """Opens JupyterLab, on a notebook if `path` (below the course's folder) is one, and waits for it."""
    page.goto(server.address(f"/lab/tree/{path}" if path else "/lab", reset=""))
    page.locator("#jupyterlab-splash").wait_for(state="detached", timeout=READY_MS)
    if path.endswith(".ipynb") and wait:
        ready(page)


@contextmanager
def cells_run(
    cells: Mapping[str, str], name: str, browser: Browser, server: Jupyter, watch: Watch, theme: str = "light"
) -> Iterator[Page]:
    """A page with a notebook `name` of these cells (id -> source), written into the server's course and run whole."""
    notebook = new_notebook(cells=[new_code_cell(source, id=key) for key, source in cells.items()])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, server.folder / f"{name}.ipynb")
    with visiting(browser, theme, watch) as page:
        open_lab(page, server, f"{name}.ipynb")
        assert run_all(page), errors(page)
        yield page


def open_notebook7(page: Page, server: Jupyter, path: str) -> None:
    """Opens a notebook in Notebook 7 and waits for its kernel."""
    page.goto(server.address(f"/notebooks/{path}"))
    ready(page)


def ready(page: Page) -> None:
    """Waits until the notebook in front has a kernel that is connected and idle."""
    page.wait_for_function(_READY, timeout=READY_MS)


def command(page: Page, name: str, arguments: dict[str, Any] | None = None) -> Any:
    """Runs one of JupyterLab's commands to its end and returns what it gives, if that is plain."""
    script = """async ([name, args]) => {
        const given = await window.jupyterapp.commands.execute(name, args ?? {});
        return ['boolean', 'string', 'number'].includes(typeof given) ? given : null;
    }"""
    page.set_default_timeout(RUN_MS)
    try:
        return page.evaluate(script, [name, arguments])
    finally:
        page.set_default_timeout(READY_MS)


def run_all(page: Page) -> bool:
    """Runs every cell of the notebook in front and waits for the last one; False where a cell raised."""
    return bool(command(page, "notebook:run-all-cells"))


def run_cell(page: Page, cell_id: str) -> str:
    """Runs one cell, waits for it, and returns what it printed; "" for nothing or an exception."""
    page.evaluate(f"(n) => {{ {_CONTENT}.activeCellIndex = n; }}", _place(page, cell_id))
    command(page, "notebook:run-cell")
    outputs = next(c["outputs"] for c in code_cells(page) if c["id"] == cell_id)
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout")


def start_cell(page: Page, cell_id: str) -> None:
    """Runs one cell and waits for nothing."""
    script = f"(n) => {{ {_CONTENT}.activeCellIndex = n; jupyterapp.commands.execute('notebook:run-cell'); }}"
    page.evaluate(script, _place(page, cell_id))


def await_print(page: Page, cell_id: str, expected: str) -> None:
    """Runs a cell until it prints what is expected: a widget's message may arrive after the cell ran.

    AssertionError with what it printed last, after a while.
    """
    deadline = time.monotonic() + MESSAGE_SECONDS
    while (printed := run_cell(page, cell_id).strip()) != expected:
        assert time.monotonic() < deadline, f"{cell_id} prints {printed!r}, not {expected!r}"


def save(page: Page) -> None:
    command(page, "docmanager:save")


def code_cells(page: Page) -> list[dict[str, Any]]:
    """The code cells of the notebook in front as the model has them: id, count, outputs."""
    return page.evaluate(_OUTPUTS)


def shown(page: Page, live: bool) -> list[str]:
    """The HTML forms of the outputs that are widgets (`live`), or of those that are none."""
    outputs = [o["data"] for cell in code_cells(page) for o in cell["outputs"] if "data" in o]
    return ["".join(data.get("text/html", "")) for data in outputs if (VIEW in data) == live]


def errors(page: Page) -> list[str]:
    """The exceptions in the outputs, as "cell: type: message"."""
    return [
        f"{cell['id']}: {output['ename']}: {output['evalue']}"
        for cell in code_cells(page)
        for output in cell["outputs"]
        if output["output_type"] == "error"
    ]


def cell(page: Page, cell_id: str) -> Locator:
    """The cell with this id in the notebook in front."""
    return page.locator(f"{PANEL} .jp-Notebook .jp-Cell").nth(_place(page, cell_id))


def _place(page: Page, cell_id: str) -> int:
    number = page.evaluate(f"(id) => {_CONTENT}.widgets.findIndex((cell) => cell.model.id === id)", cell_id)
    assert number >= 0, f"no cell {cell_id!r} in the notebook in front"
    return int(number)


def picture(page: Page, folder: Path, name: str) -> Path:
    """Keeps a picture of what the page shows as NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    return path


def pictures_of_all(page: Page, folder: Path, name: str) -> list[Path]:
    """Keeps pictures of the whole notebook in front, top to bottom, as NAME-1.png, NAME-2.png, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{name}-*.png"):
        old.unlink()
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": size["width"], "height": PIECE})
    page.mouse.move(0, 0)
    panel = page.locator(f"{PANEL} .jp-WindowedPanel-outer")
    cells = panel.locator(".jp-WindowedPanel-inner")
    paths: list[Path] = []
    top = 0
    while top < cells.evaluate("(node) => node.offsetHeight"):
        panel.evaluate("(node, top) => { node.scrollTop = top; }", top)
        paths.append(folder / f"{name}-{len(paths) + 1}.png")
        panel.screenshot(path=paths[-1])
        top += panel.evaluate("(node) => node.clientHeight")
    page.set_viewport_size(size)
    return paths
