"""Formgrader, the instructor's panel, on this course and without a network."""

from __future__ import annotations

import asyncio
import glob
import html
import json
import re
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import apihandlers, formgrader
from nbgrader.server_extensions.formgrader import handlers as pages
from tornado import web
from traitlets.config import Config

from .. import exchanging, gradebook, labs, stamps
from ..settings import COURSE, configure
from .running import Ended, python

MATHJAX = re.compile(r'<script src="https://[^"]*/mathjax/[^"]*">')
# The fonts that come with jupyter_server_mathjax; by default MathJax asks for others first.
FONTS = """<script type="text/x-mathjax-config">
MathJax.Hub.Config({"HTML-CSS": {
  availableFonts: [], imageFont: null, preferredFont: null, webFont: "STIX-Web"
}});
</script>
"""


class OfflineExporter(HTMLExporter):
    """Exports the page on which answers are graded by hand, with the MathJax that this server has, in light
    colours.
    """

    def __init__(self, served: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self._served = served

    def from_notebook_node(self, *arguments: Any, **options: Any) -> tuple[str, dict[str, Any]]:
        """The page, and nbconvert's resources."""
        page, resources = super().from_notebook_node(*arguments, **options)
        # Looked up late: the extension that serves it is loaded after this one.
        address = f"{self._served['mathjax_url']}?config={self._served['mathjax_config']}"
        page = MATHJAX.sub(lambda _: f'{FONTS}<script src="{address}">', page)
        # It is white whatever the system's colours are, and so should the drawings in it be.
        return page.replace("<body>", '<body data-jp-theme-light="true">', 1), resources


class Formgrader(formgrader.FormgradeExtension):
    """nbgrader's Formgrader, which reads the course's own configuration wherever the server was started."""

    def load_config(self) -> Config:
        """The course's configuration."""
        return configure(Config(), labs.ROOT)

    def load_config_file(self, *arguments: Any, **options: Any) -> None:
        """Reads it. nbgrader's own looks in the current folder."""
        self.update_config(self.load_config())

    def init_tornado_settings(self, webapp: web.Application) -> None:
        """Tells the handlers where things are."""
        super().init_tornado_settings(webapp)
        webapp.settings["nbgrader_exporter"] = OfflineExporter(webapp.settings, config=self.config)

    def init_handlers(self, webapp: web.Application) -> None:
        """Adds the pages and their actions."""
        nbgraders = [*STEPS, *pages.default_handlers, *apihandlers.default_handlers]
        served = [
            *((address, guarded(handler), *rest) for address, handler, *rest in nbgraders),
            (r"/formgrader/static/(.*)", web.StaticFileHandler, {"path": pages.static_path}),
            (r"/formgrader/.*", pages.Template404),
            (r"/instructor", FrontDoor),
        ]
        base = webapp.settings["base_url"]
        webapp.add_handlers(".*$", [(url_path_join(base, address), *rest) for address, *rest in served])


class StepHandler(apihandlers.BaseApiHandler):
    """One of nbgrader's steps, in a process of its own, since grading takes a while. One at a time."""

    def initialize(self, step: str, flag: str = "") -> None:
        """Takes the name of nbgrader's command, and the flag that lets it do its work again."""
        self.step = step
        self.flag = flag

    @web.authenticated
    @apihandlers.check_xsrf
    @apihandlers.check_notebook_dir
    async def post(self, assignment: str, student: str = "") -> None:
        """Runs the step for an assignment or for one student's submission to it; answers with its log."""
        # nbgrader takes the student for a pattern.
        only = ["--student", glob.escape(student)] if student else []
        words = [self.step, assignment, *([self.flag] if self.flag else []), *only]
        async with TURN:
            ended = await python("autograder", "nbgrader", *words)
        self.log.info("nbgrader %s ended with %d\n%s", " ".join(words), ended.code, ended.log)
        self.write(json.dumps({"success": ended.code == 0, "log": said(ended)}))


class FrontDoor(JupyterHandler):
    """/instructor: JupyterLab with Formgrader open. An address that can be printed with a token behind it."""

    @web.authenticated
    def get(self) -> None:
        """Sends the browser there."""
        self.redirect(url_path_join(self.base_url, "lab") + "?formgrader=true")


TURN = asyncio.Lock()
"""nbgrader's steps write one gradebook."""

ASSIGNMENT = "/formgrader/api/assignment/([^/]+)"
STEPS: list[tuple[str, type[StepHandler], dict[str, str]]] = [
    (f"{ASSIGNMENT}/assign", StepHandler, {"step": "generate_assignment", "flag": "--force"}),
    (f"{ASSIGNMENT}/release", StepHandler, {"step": "release_assignment", "flag": "--force"}),
    (f"{ASSIGNMENT}/collect", StepHandler, {"step": "collect", "flag": "--update"}),
    (
        "/formgrader/api/submission/([^/]+)/([^/]+)/autograde",
        StepHandler,
        {"step": "autograde", "flag": "--force"},
    ),
    (f"{ASSIGNMENT}/generate_feedback", StepHandler, {"step": "generate_feedback", "flag": "--force"}),
    (
        f"{ASSIGNMENT}/([^/]+)/generate_feedback",
        StepHandler,
        {"step": "generate_feedback", "flag": "--force"},
    ),
    (f"{ASSIGNMENT}/release_feedback", StepHandler, {"step": "release_feedback"}),
    (f"{ASSIGNMENT}/([^/]+)/release_feedback", StepHandler, {"step": "release_feedback"}),
]

LINE = re.compile(r"^\[\S+ \| (\w+)\] (.*)")


def said(ended: Ended) -> str:
    """What to show of a step: where it failed, the sentences about that alone; else its log."""
    log = ended.log.strip() or ended.out.strip()
    if ended.code == 0:
        return log
    found = [LINE.match(line) for line in log.splitlines()]
    wrong = [line[2] for line in found if line and line[1] in ("ERROR", "CRITICAL")]
    # nbgrader ends with a line that says nothing more.
    wrong = [line for line in wrong if not re.fullmatch(r"nbgrader \w+ failed", line)]
    return "\n".join(dict.fromkeys(wrong)) or log


def guarded(handler: type[web.RequestHandler]) -> type[web.RequestHandler]:
    """The handler, which tells first where the gradebook is not this course's, before nbgrader changes it."""

    class Guarded(handler):  # type: ignore[misc, valid-type]
        def prepare(self) -> Any:
            problem = trouble(Path(self.coursedir.root) / "gradebook.db")
            if not problem:
                if "submissions" in self.request.path:
                    for sentence in stamps.set_aside(Path(self.coursedir.root) / "submitted"):
                        self.log.warning(sentence)
                return super().prepare()
            self.set_status(500)
            self.finish(
                "<!doctype html><title>Formgrader</title>"
                '<body style="font: 16px/1.5 system-ui; max-width: 40rem; margin: 3rem auto">'
                f"<h1>The gradebook cannot be used</h1><p>{html.escape(problem)}</p>"
            )
            return None

    Guarded.__name__ = handler.__name__
    return Guarded


SOUND: set[tuple[str, int]] = set()
"""The gradebooks that were found in order: looked at once, since each page asks many times."""


def trouble(book: Path) -> str:
    """What keeps the gradebook from being used, in one sentence; "" where nothing does."""
    try:
        file = (str(book), book.stat().st_ino)
    except OSError:
        return gradebook.check(book, COURSE)
    if file in SOUND:
        return ""
    problem = gradebook.check(book, COURSE)
    if not problem:
        SOUND.add(file)
    return problem


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    # Formgrader offers no release where there is no folder to release to.
    problem = exchanging.make(labs.ROOT)
    if problem:
        server.log.error(problem)
    panel = Formgrader(parent=server)
    panel.root_dir = server.root_dir
    panel.log = server.log
    panel.initialize([])
    panel.init_tornado_settings(server.web_app)
    panel.init_handlers(server.web_app)
