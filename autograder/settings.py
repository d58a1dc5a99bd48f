"""How nbgrader is set up: where things lie, and which preprocessors run."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from . import exchanging

COURSE = "glassbox"

SANITIZE = [
    "autograder.restore.RestoreCells",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
AUTOGRADE = [
    "autograder.execute.GradedExecute",
    "autograder.verdict.Judge",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
EXCHANGE = {
    "collect": "autograder.handover.Collect",
    "fetch_assignment": "autograder.handover.FetchAssignment",
    "fetch_feedback": "autograder.handover.FetchFeedback",
    "list": "autograder.handover.ListLabs",
    "release_assignment": "autograder.handover.ReleaseAssignment",
    "release_feedback": "autograder.handover.ReleaseFeedback",
    "submit": "autograder.handover.Submit",
}

# Of a file that a learning platform gives out: student/lab, student_..._lab, ..._student_attempt_..._lab.
DOWNLOADED = (
    r".*/(?:[^/]*_(?=[^/_]+_attempt_))?(?P<student_id>(?!extracted/|lab\d+_)[^/_.][^/_]*)(?:_[^/]*?)?"
    r"[/_](?:lab\d+_[^/]*/)?(?P<file_id>lab\d+_[^/]*?)(?:[ -]+\(?\d+\)?)?\.ipynb$"
)


def configure(config: Config, root: Path) -> Config:
    """Sets `config` up for a course in the folder `root`, and returns it."""
    find_scripts()
    # nbgrader's models make SQLAlchemy speak of its own autoflush: nothing that a reader could mend.
    warnings.filterwarnings("ignore", category=SAWarning, message="Object of type <Submitted")
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.course_id = COURSE
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "labs"
    config.Exchange.root = str(exchanging.folder(root))
    # Where labs/ is what is given out, what is fetched on trial lies apart.
    config.Exchange.assignment_dir = str(root / ("tryout" if (root / "solutions").is_dir() else "labs"))
    config.ExchangeFactory.update(EXCHANGE)
    config.FileNameCollectorPlugin.named_regexp = DOWNLOADED
    config.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write this piece")'}
    config.Autograde.exporter_class = "autograder.intake.SubmissionExporter"
    config.Autograde.sanitize_preprocessors = SANITIZE
    config.Autograde.autograde_preprocessors = AUTOGRADE
    config.GenerateFeedback.exporter_class = "autograder.feedback.FeedbackExporter"
    config.GenerateFeedback.preprocessors = []
    return config


def find_scripts() -> None:
    """Puts this Python's scripts on the PATH: nbgrader calls alembic by its bare name to make a gradebook."""
    scripts = str(Path(sys.executable).parent)
    places = os.environ.get("PATH", "").split(os.pathsep)
    if scripts not in places:
        os.environ["PATH"] = os.pathsep.join([scripts, *places])
