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
from nbgrader.server_extensions.formgrader import apihandlers, formgrader
from nbgrader.server_extensions.formgrader import handlers as pages
from tornado import web
from traitlets.config import Config

from .. import exchanging, gradebook, labs, stamps
from ..settings import COURSE, configure
from .running import Ended, python
from .viewing import InertExporter


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
        webapp.settings["nbgrader_exporter"] = InertExporter(webapp.settings, config=self.config)

    def init_handlers(self, webapp: web.Application) -> None:
        """Adds the pages and their actions."""
        nbgraders = [*STEPS, *map(mended, pages.default_handlers), *apihandlers.default_handlers]
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

MOST_LINES = 200
MOST_CHARACTERS = 4000
LINE = re.compile(r"^\[\S+ \| (\w+)\] (.*)")


def said(ended: Ended) -> str:
    """What to show of a step: where it failed, the sentences about that alone; else its log, or its end."""
    log = ended.log.strip() or ended.out.strip()
    if ended.code == 0:
        lines = log.splitlines()
        more = [f"... ({len(lines) - MOST_LINES} lines before these are in the server's log)"]
        return "\n".join(more + lines[-MOST_LINES:] if len(lines) > MOST_LINES else lines)
    wrong: list[str] = []
    reason = False
    for line in log.splitlines():
        found = LINE.match(line)
        if found:
            reason = False
            if found[1] in ("ERROR", "CRITICAL"):
                wrong.append(found[2])
        elif line.strip().startswith("Traceback ") and wrong:
            reason = True
            wrong.append("")
        elif reason and line.strip() and wrong:
            wrong[-1] = line.strip()  # the last line of a traceback says what it was
    # nbgrader ends with a line that says nothing more.
    wrong = [line for line in wrong if line and not re.fullmatch(r"nbgrader \w+ failed", line)]
    return "\n".join(list(dict.fromkeys(wrong))[:MOST_LINES]) or log[-MOST_CHARACTERS:]


class SubmissionPage(pages.SubmissionHandler):
    """The page on which a submission is graded by hand; it is made beside the server's other work."""

    @property
    def exporter(self) -> Any:
        """nbgrader's handler asks it for the page at once; here that page is ready."""
        return self

    def from_filename(self, filename: str, resources: Any) -> tuple[str, Any]:
        """What `get` made, or learns here that it must."""
        if self._made is None:
            raise NotMadeError(filename, resources)
        return self._made

    @web.authenticated
    @apihandlers.check_xsrf
    @apihandlers.check_notebook_dir
    async def get(self, submission_id: str) -> None:
        """Makes the page, then serves it."""
        self._made: Any = None
        serve = super().get
        try:
            serve(submission_id)
        except NotMadeError as asked:
            exporter = self.settings["nbgrader_exporter"]
            self._made = await asyncio.to_thread(exporter.from_filename, *asked.args)
            serve(submission_id)


class NotMadeError(Exception):
    """A page is wanted; the arguments are its file and nbconvert's resources."""


class SubmissionFiles(pages.SubmissionFilesHandler):
    """What a student handed in beside the notebook: nothing in it may act on this address."""

    content_security_policy = "sandbox"

    def set_extra_headers(self, path: str) -> None:
        """Lets no file be taken for another kind than it says."""
        self.set_header("X-Content-Type-Options", "nosniff")


MENDED = {pages.SubmissionHandler: SubmissionPage, pages.SubmissionFilesHandler: SubmissionFiles}


def mended(route: tuple[Any, ...]) -> tuple[Any, ...]:
    """One of nbgrader's addresses, with our handler where there is one."""
    address, handler, *rest = route
    return (address, MENDED.get(handler, handler), *rest)


# nbgrader's templates put names as they are into scripts and pages.
UNSAFE = re.compile(r'["\\<>`\x00-\x1f]|^-')


def guarded(handler: type[web.RequestHandler]) -> type[web.RequestHandler]:
    """The handler, for who is signed in, with names that no page is changed by, and on a gradebook that is
    this course's: it is looked at before nbgrader changes it.
    """

    class Guarded(handler):  # type: ignore[misc, valid-type]
        async def prepare(self) -> None:
            begun = super().prepare()
            if begun is not None:
                await begun
            if self._finished or not self.current_user:
                return
            names = [*self.path_args, *self.path_kwargs.values()]
            if any(UNSAFE.search(name) for name in names if isinstance(name, str)):
                raise web.HTTPError(404)
            problem = await asyncio.to_thread(trouble, Path(self.coursedir.root) / "gradebook.db")
            if problem:
                self.set_status(500)
                self.finish(
                    "<!doctype html><title>Formgrader</title>"
                    '<body style="font: 16px/1.5 system-ui; max-width: 40rem; margin: 3rem auto">'
                    f"<h1>The gradebook cannot be used</h1><p>{html.escape(problem)}</p>"
                )
            elif "submissions" in self.request.path:
                for sentence in stamps.set_aside(Path(self.coursedir.root) / "submitted"):
                    self.log.warning(sentence)

    Guarded.__name__ = handler.__name__
    return Guarded


SOUND: set[tuple[int, int, int]] = set()
"""The gradebooks that were found in order, by their file, size and time: each page asks many times."""


def trouble(book: Path) -> str:
    """What keeps the gradebook from being used, in one sentence; "" where nothing does."""
    try:
        there = book.stat()
    except OSError:
        return gradebook.check(book, COURSE)
    file = (there.st_ino, there.st_size, there.st_mtime_ns)
    problem = "" if file in SOUND else gradebook.check(book, COURSE)
    if not problem:
        SOUND.clear()
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
