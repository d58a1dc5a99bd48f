"""A class to try the exchange on: a course folder, one exchange, and learners who have a home each."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from traitlets.config import Config

from autograder.settings import configure

LAB = "lab1_storage"
NOTEBOOK = f"{LAB}.ipynb"
COURSE = "glassbox"


class Listener(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname}: {record.getMessage()}")


@dataclass
class Person:
    """Someone with a course folder, who takes steps of the exchange. A `name` is handed in as; "*" is the
    account's own.
    """

    course: Path
    exchange: Path
    home: Path
    name: str = "*"
    options: dict[str, dict[str, Any]] = field(default_factory=dict)

    def config(self, lab: str = LAB) -> Config:
        config = configure(Config(), self.course)
        config.Exchange.root = str(self.exchange)
        config.Exchange.cache = str(self.home / "cache")
        config.CourseDirectory.assignment_id = lab
        config.CourseDirectory.student_id = self.name
        for section, values in self.options.items():
            config[section].update(values)
        return config

    def do(self, step: str, lab: str = LAB, **traits: Any) -> str:
        """Takes a step; returns the log."""
        return self.result(step, lab, **traits)[0]

    def result(self, step: str, lab: str = LAB, **traits: Any) -> tuple[str, Any]:
        """The same, with what the step returns."""
        config = self.config(lab)
        taken = getattr(ExchangeFactory(config=config), step)(
            coursedir=CourseDirectory(config=config),
            authenticator=Authenticator(config=config),
            config=config,
            **traits,
        )
        listener = Listener()
        taken.log = logging.Logger("step", logging.INFO)
        taken.log.addHandler(listener)
        value = taken.start()
        return "\n".join(listener.lines), value

    def refused(self, step: str, lab: str = LAB, **traits: Any) -> str:
        """Takes a step that must fail with one sentence; returns the sentence."""
        try:
            log = self.do(step, lab, **traits)
        except ExchangeError as error:
            sentence = str(error)
            assert "\n" not in sentence
            assert sentence.endswith(".")
            return sentence
        raise AssertionError(f"{step} did not fail:\n{log}")

    @property
    def lab(self) -> Path:
        """The learner's lab."""
        return self.course / "labs" / LAB

    def work(self, text: str) -> None:
        """Writes something into the learner's notebook."""
        (self.lab / NOTEBOOK).write_text(notebook(text))


@dataclass
class School:
    """One instructor, any number of learners."""

    root: Path

    def __post_init__(self) -> None:
        self.exchange = self.root / "exchange"
        self._numbers = itertools.count()
        course = self.root / "course"
        (course / "solutions" / LAB).mkdir(parents=True)
        self.instructor = Person(course, self.exchange, self.root / "instructor")
        self.generate("first")

    def generate(self, text: str, lab: str = LAB, **others: str) -> None:
        """Puts a lab into the instructor's labs/."""
        folder = self.instructor.course / "labs" / lab
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{lab}.ipynb").write_text(notebook(text))
        for name, content in others.items():
            (folder / f"{name}.py").write_text(content)

    def learner(self, name: str = "*", fetch: bool = True) -> Person:
        """Someone new; "*" hands in under the name of the account."""
        home = self.root / f"home{next(self._numbers)}"
        (home / "course").mkdir(parents=True)
        person = Person(home / "course", self.exchange, home, name)
        if fetch:
            person.do("FetchAssignment")
        return person

    @property
    def inbound(self) -> Path:
        return self.exchange / COURSE / "inbound"

    def handed_in(self) -> list[Path]:
        """What lies in the exchange and is not hidden, oldest first."""
        return sorted(
            (item for item in self.inbound.iterdir() if item.name[0] != "."),
            key=lambda item: item.name.split("+")[2],
        )

    def submitted(self, student: str) -> Path:
        return self.instructor.course / "submitted" / student / LAB

    def forge(self, student: str, time: str = "2026-01-05 10:00:00.000000 UTC", text: str = "forged") -> Path:
        """A submission put into the exchange by hand."""
        folder = self.inbound / f"{student}+{LAB}+{time}+{next(self._numbers)}"
        folder.mkdir()
        (folder / NOTEBOOK).write_text(notebook(text))
        return folder


def notebook(text: str) -> str:
    """A notebook that says something."""
    return str(nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])))


def said(folder: Path) -> str:
    """What the notebook in a folder says."""
    return str(nbformat.read(folder / NOTEBOOK, as_version=4).cells[0].source)


def names(folder: Path) -> list[str]:
    """What lies in a folder, hidden or not."""
    return sorted(item.name for item in folder.iterdir())


class Elsewhere:
    """A process of its own in which `act` runs, under another account where one is given.

    It is a fork, which gives up its rights when all is imported: the account need not be able to read Python.
    """

    def __init__(
        self, act: Callable[[], str], account: tuple[int, int] | None = None, home: Path | None = None
    ):
        fork = multiprocessing.get_context("fork")
        self._answer, answer = fork.Pipe(duplex=False)

        def run() -> None:
            if account:
                os.environ["HOME"] = str(home)
                os.setgroups([])
                os.setgid(account[1])
                os.setuid(account[0])
            try:
                answer.send(act())
            except ExchangeError as error:
                answer.send(f"refused: {error}")

        self._process = fork.Process(target=run)
        self._process.start()
        answer.close()

    def running(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def answer(self) -> str:
        """What the action returned, or how it was refused."""
        told = str(self._answer.recv())
        self._process.join()
        return told
