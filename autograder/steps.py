"""What is seen to before one of nbgrader's steps: submissions that no step can take are left out of it, and
grades that do not stand are made again.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.utils import rmtree

from . import labs
from .errors import PlainError
from .standing import CUT, NONE, Ledger, doubt, ledger
from .submission import opened

EXCLUDE = "--CourseDirectory.student_id_exclude"


@dataclass
class Plan:
    """How a step is to be run: the students who are left out, each with the sentence that says why; whether
    there is any other; and sentences about the rest.
    """

    left: dict[str, str] = field(default_factory=dict)
    others: bool = False
    said: list[str] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """True where there is nobody whom the step is for."""
        return bool(self.left) and not self.others

    def words(self, words: Sequence[str]) -> list[str]:
        """nbgrader's command line `words`, without the students who are left out. PlainError where one of
        them has a name that nbgrader cannot be told.
        """
        if not self.left:
            return list(words)
        for student, sentence in self.left.items():
            if "," in student:
                raise PlainError(f"{sentence} Then rename the folder {student!r}, to be without a comma.")
        given = [word.partition("=")[2] for word in words if word.startswith(f"{EXCLUDE}=")]
        kept = [word for word in words if not word.startswith(f"{EXCLUDE}=")]
        return [*kept, f"{EXCLUDE}={','.join([*given, *self.left])}"]


def plan(words: Sequence[str], root: Path) -> Plan:
    """Looks at what nbgrader's command line `words` would work on in the course `root`.

    Grades that autograde would pass by and that do not stand are taken away, so that it makes them again.
    """
    made = Plan()
    if {"-h", "--help", "--help-all"} & {*words}:
        return made
    if words[0] == "export":
        made.said = [sentence for lab in labs.known() for sentence in missing(root, lab)]
        return made
    look = {"autograde": _autograde, "generate_feedback": _feedback}.get(words[0])
    named = _value(words, "--assignment", "--CourseDirectory.assignment_id")
    student = _value(words, "--student", "--CourseDirectory.student_id") or "*"
    for lab in labs.known() if look else []:
        if look and (lab in words or lab == named):
            look(root, student, ledger(root / "gradebook.db", lab), made)
    return made


def missing(root: Path, lab: str) -> list[str]:
    """Sentences on the submissions of a lab of which the gradebook has no grade that counts."""
    held = ledger(root / "gradebook.db", lab)
    students = sorted({*_students(root, "submitted", "*", lab), *_students(root, "autograded", "*", lab)})
    reasons: dict[str, list[str]] = {}
    for student in students:
        if reason := doubt(root, student, held):
            reasons.setdefault(reason, []).append(student)
    return [
        f"{lab} of {', '.join(names)} {reason}: the points exported for it are not its grade; autograde it, "
        "then export again."
        for reason, names in reasons.items()
    ]


def _autograde(root: Path, pattern: str, held: Ledger, made: Plan) -> None:
    if not held.points:
        return  # nbgrader says that the lab is not generated
    for student in _students(root, "submitted", pattern, held.lab):
        graded = root / "autograded" / student / held.lab
        reason = doubt(root, student, held)
        try:
            opened(root / "submitted" / student / held.lab / f"{held.lab}.ipynb")
        except PlainError as error:
            made.left[student] = (
                f"{student}'s submission of {held.lab} is not graded; ask for another one: {error}"
            )
            continue
        made.others = True
        if reason and graded.exists():
            rmtree(str(graded))
            made.said.append(f"{student}'s submission of {held.lab} {reason}: it is graded again.")


def _feedback(root: Path, pattern: str, held: Ledger, made: Plan) -> None:
    for student in _students(root, "autograded", pattern, held.lab):
        reason = doubt(root, student, held)
        if reason in (CUT, NONE):
            made.left[student] = (
                f"{student} gets no feedback: the submission of {held.lab} {reason}; autograde it first."
            )
        else:
            made.others = True


def _students(root: Path, step: str, pattern: str, lab: str) -> Iterator[str]:
    # As nbgrader does, which takes the student for a pattern.
    for found in sorted(glob.glob(f"{pattern}/{lab}/", root_dir=root / step)):  # noqa: PTH207
        yield Path(found).parent.name


def _value(words: Sequence[str], *names: str) -> str | None:
    """What is given to an option that goes by these names; None where it is not."""
    for place, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name in names:
            return (value if sign else "".join(words[place + 1 : place + 2])).strip("\"'")
    return None
