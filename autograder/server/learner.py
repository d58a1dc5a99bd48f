"""The learner's panels: Assignment List, and the Validate button of a notebook."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from nbgrader.server_extensions.assignment_list import handlers as lists
from nbgrader.server_extensions.validate_assignment import handlers as validation
from tornado import web

from .assignments import Assignments
from .running import Ended, python


class Asked(JupyterHandler):
    """A handler that reads plain words from a request's address or body."""

    def asked(self, name: str) -> str:
        """What is asked for under a name; status 400 with a sentence where that is no text."""
        try:
            body = self.get_json_body()
        except (web.HTTPError, ValueError):
            body = None
        value = self.get_argument(name, body.get(name) if isinstance(body, dict) else None)
        if not isinstance(value, str) or not value.isprintable():
            raise web.HTTPError(400, f"The request names no {name}.")
        return value


class ActionHandler(Asked, lists.BaseAssignmentHandler):
    """Fetch, submit, fetch feedback. Tells of each failure: nbgrader's handler keeps two of them quiet."""

    @web.authenticated
    def post(self, action: str) -> None:
        """Does it, and answers with the list as it is then."""
        where = self.asked("course_id"), self.asked("assignment_id")
        act = {
            "fetch": self.manager.fetch_assignment,
            "submit": self.manager.submit_assignment,
            "fetch_feedback": self.manager.fetch_feedback,
        }[action]
        outcome = act(*where)
        if outcome["success"] and action != "fetch_feedback":
            outcome = self.manager.list_assignments(course_id=where[0])
        elif not outcome["success"] and action == "fetch":
            outcome["value"] += " The round arrow above shows the lists again."
        self.finish(json.dumps(outcome))


class ValidateHandler(Asked, validation.ValidateAssignmentHandler):
    """Validate, by the judge on the open cases, in a process of its own. One at a time."""

    work: asyncio.Task[Ended] | None = None

    @web.authenticated
    async def post(self) -> None:
        """Answers with what nbgrader's dialog shows."""
        root = Path(self.root_dir).resolve()
        notebook = (root / self.asked("path")).resolve()
        if not notebook.is_relative_to(root):
            raise web.HTTPError(403, "That notebook lies outside the course.")
        self.work = asyncio.create_task(validated(notebook))
        try:
            ended = await self.work
            answer = json.loads(ended.out)
        except asyncio.CancelledError:
            return  # nobody is there to be told
        except ValueError:
            self.log.error("Validating %s failed:\n%s", notebook, ended.log)
            answer = {"success": False, "value": "Validating failed; the server's log tells why."}
        self.finish(json.dumps(answer))

    def on_connection_close(self) -> None:
        """Stops the work for a browser that has left."""
        super().on_connection_close()
        if self.work:
            self.work.cancel()


TURN = asyncio.Lock()


async def validated(notebook: Path) -> Ended:
    """Validates a notebook when its turn comes."""
    async with TURN:
        return await python("autograder.validating", str(notebook))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    app = server.web_app
    app.settings["assignment_list_manager"] = Assignments(Path(server.root_dir), parent=server)
    app.settings["root_dir"] = server.root_dir
    ours: list[tuple[str, Any]] = [
        (r"/assignments", lists.AssignmentListHandler),
        (r"/assignments/(?P<action>fetch|submit|fetch_feedback)", ActionHandler),
        (r"/assignments/validate", ValidateHandler),
        (r"/courses", lists.CourseListHandler),
        (r"/nbgrader_version", lists.NbGraderVersionHandler),
    ]
    base = app.settings["base_url"]
    app.add_handlers(".*$", [(url_path_join(base, address), handler) for address, handler in ours])
