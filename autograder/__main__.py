"""The command line behind `python3 course.py grade | labs | reset | bundle | nbgrader`."""

from __future__ import annotations

import argparse
import glob
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from . import labs
from .errors import PlainError


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit code: 0 done, 2 for what the user can mend, said in one line."""
    given = sys.argv[1:] if arguments is None else arguments
    # Validate is the judge's; with an option, which only nbgrader knows, it is nbgrader's.
    judged = given[:2] == ["nbgrader", "validate"] and len(given) > 2 and not any(a[:1] == "-" for a in given)
    try:
        if judged:
            return validate(given[2:])
        if given[:1] == ["nbgrader"]:
            return nbgrader(given[1:])
        options = parser().parse_args(given)
        return int(options.run(options) or 0)
    except PlainError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; nothing was changed.", file=sys.stderr)
        return 130


class OneLine(argparse.ArgumentParser):
    """An argument parser whose errors are one line with a way out."""

    def error(self, message: str) -> NoReturn:
        """Raises PlainError."""
        raise PlainError(f"{message}; see python3 {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = OneLine(prog="course.py", description="Grade, make and reset labs.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("grade", help="grade your notebook of a lab")
    one.add_argument("lab", metavar="LAB", help="such as lab1_storage")
    one.add_argument("notebook", nargs="?", help="the notebook; without it the one in labs/")
    one.add_argument(
        "--seed", help="replay the attempt with this seed (instructors find it in the private log)"
    )
    one.set_defaults(run=grade)
    one = commands.add_parser("labs", help="make labs/ anew from solutions/")
    one.set_defaults(run=make_labs)
    one = commands.add_parser("reset", help="a fresh copy of a lab; the old one is kept aside")
    one.add_argument("lab", metavar="LAB")
    one.set_defaults(run=reset)
    one = commands.add_parser("bundle", help="the student's copy of the course")
    one.add_argument("target", nargs="?", default=None, help="a folder or a .zip file")
    one.set_defaults(run=bundle)
    commands.add_parser("nbgrader", help="nbgrader with the right configuration")
    return top


def grade(options: argparse.Namespace) -> int:
    """Grades a notebook, prints the table, writes the results file and the HTML report."""
    labs.require(options.lab)
    from . import grading, pages

    where = grading.locate(options.lab, options.notebook)
    print(f"Grading {where} ...", file=sys.stderr, flush=True)
    outcome = grading.grade(options.lab, options.notebook, seed=options.seed)
    print(pages.table(outcome))
    _, shown = pages.save(outcome, labs.RESULTS)
    print(f"\nThe report with drawings: {_near(shown)}")
    return 0


def make_labs(options: argparse.Namespace) -> int:
    """Makes labs/ from solutions/."""
    if not labs.SOLUTIONS.is_dir():
        raise PlainError(
            "This is a student's copy: it has no solutions/ to make labs from; `reset LAB` gives a fresh lab."
        )
    from .release import release

    for lab in labs.known():
        _tell_kept(lab)
        print(f"{_near(release(lab, labs.LABS / lab))}")
    return 0


def reset(options: argparse.Namespace) -> int:
    """Gives a fresh copy of a lab."""
    from .release import reset as renew

    fresh, kept = renew(options.lab)
    print(f"{_near(fresh)} is fresh." + (f" Your old copy is in {_near(kept)}." if kept else ""))
    return 0


def bundle(options: argparse.Namespace) -> int:
    """Makes the student's copy."""
    from .bundle import bundle as make

    print(_near(make(options.target)))
    return 0


WRITES = ("generate_assignment", "autograde", "generate_feedback", "export")
"""nbgrader's commands that work on the gradebook. `db` is not one of them: it mends one."""


def nbgrader(arguments: list[str]) -> int:
    """Runs nbgrader in the course folder, where its configuration lies; returns its exit code, or 1 where a
    submission had to be left out.

    PlainError where it would work on a gradebook that is not this course's.
    """
    if arguments[:1] and arguments[0] in WRITES and not any(word.startswith("--db") for word in arguments):
        from . import turns

        with turns.turn(labs.ROOT) as held:
            return _step(arguments, held)
    return _nbgrader(arguments)


def _step(arguments: list[str], held: list[int]) -> int:
    from . import gradebook, stamps, steps
    from .settings import COURSE

    problem = gradebook.check(labs.ROOT / "gradebook.db", COURSE)
    if problem:
        raise PlainError(problem)
    if arguments[0] == "generate_assignment":
        for lab in set(labs.known()) & set(arguments):
            _tell_kept(lab)
    for sentence in stamps.set_aside(labs.ROOT / "submitted"):
        print(sentence, file=sys.stderr)
    made = steps.plan(arguments, labs.ROOT)
    for sentence in made.said:
        print(f"[autograder | WARNING] {sentence}", file=sys.stderr, flush=True)
    code = 0 if made.idle else _nbgrader(made.words(arguments), held)
    for sentence in made.left.values():
        print(f"[autograder | ERROR] {sentence}", file=sys.stderr)
    return code or int(bool(made.left))


def _nbgrader(arguments: list[str], held: Sequence[int] = ()) -> int:
    return subprocess.call([sys.executable, "-m", "nbgrader", *arguments], cwd=labs.ROOT, pass_fds=held)


def _tell_kept(lab: str) -> None:
    """Keeps somebody's work in labs/ from being replaced."""
    from .release import keep

    kept = keep(lab)
    if kept:
        print(f"Somebody has worked in labs/{lab}: it is kept in {_near(kept)}.", file=sys.stderr)


def validate(patterns: list[str]) -> int:
    """Tries notebooks on the open cases and prints the reports; returns 0 where all pieces hold, 1 where not,
    2 where there is no notebook. nbgrader, which gets the notebooks of other courses, always returns 0.
    """
    from . import validating

    # As nbgrader does, for shells that leave patterns alone.
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern)) or [pattern]]  # noqa: PTH207
    code = 0
    for path in map(Path, paths):
        try:
            found = validating.examine(path)
        except PlainError as error:
            print(error, file=sys.stderr)
            code = 2
            continue
        if found is None:
            code = max(code, nbgrader(["validate", glob.escape(str(path.resolve()))]))
        else:
            print(validating.as_text(found), flush=True)
            code = max(code, 0 if found.holds else 1)
    return code


def _near(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


if __name__ == "__main__":
    sys.exit(main())
