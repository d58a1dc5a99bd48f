"""The student's copy of the course: everything to read, play and work with, and nothing that holds an answer.

What is not named is left out: solutions, tests, and whatever running the course has left behind.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from pathlib import Path

from . import exchanging, labs
from .errors import PlainError

FILES = (
    "README.md",
    "LICENSE",
    "course.py",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "nbgrader_config.py",
    ".gitignore",
    exchanging.FILE,
)
OPTIONAL = (".gitignore", "nbgrader_config.py", exchanging.FILE)
FOLDERS = ("docs", "notebooks", "shared", "autograder")
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.pyc", "*.egg-info", "*.db", "*.log", "masters")
DEFAULT = "glassbox-student.zip"


def bundle(target: str | Path | None = None) -> Path:
    """Writes the student's copy to `target`, a .zip file or a new folder, and returns its path.

    Without a target it is glassbox-student.zip in the current folder. PlainError where the target exists
    already or a part of the course is missing; then nothing is left behind.
    """
    where = Path(target or DEFAULT).absolute()
    if where.exists():
        raise PlainError(f"{where} exists already: move it away or name another place.")
    if not where.parent.is_dir():
        raise PlainError(f"There is no folder {where.parent} to put {where.name} into: make it first.")
    try:
        # Beside the target, so that putting it in its place is a rename.
        with tempfile.TemporaryDirectory(prefix=".bundle-", dir=where.parent) as scratch:
            folder = Path(scratch) / where.name.removesuffix(".zip")
            fill(folder)
            made = folder
            if where.suffix == ".zip":
                made = pack(folder, Path(scratch) / "packed" / where.name)
            made.rename(where)
    except OSError as error:
        raise PlainError(f"{where} could not be written: {error.strerror or error}.") from None
    return where


def fill(folder: Path) -> None:
    """Makes `folder` and copies into it what students get."""
    folder.mkdir()
    for name in FILES:
        if (labs.ROOT / name).exists():
            shutil.copy2(labs.ROOT / name, folder / name)
        elif name not in OPTIONAL:
            raise PlainError(f"{labs.ROOT / name} is missing: make the bundle from a complete clone.")
    for name in FOLDERS:
        if (labs.ROOT / name).is_dir():
            shutil.copytree(labs.ROOT / name, folder / name, ignore=LEFT_OUT)
    for notebook in (folder / "notebooks").glob("**/*.ipynb"):
        strip(notebook)
    from .release import release

    for lab in labs.known():
        # Fresh ones: the labs/ of this clone may hold somebody's work.
        master = folder / "autograder" / "masters" / lab
        release(lab, master)
        # A class with an exchange fetches each lab from it, once it is released.
        if not (folder / exchanging.FILE).exists():
            shutil.copytree(master, folder / "labs" / lab)
    (folder / "labs").mkdir(exist_ok=True)


def strip(notebook: Path) -> None:
    """Takes the outputs of whoever last ran it out of a notebook."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def pack(folder: Path, target: Path) -> Path:
    """Zips `folder` under its own name; the same files always give the same bytes."""
    target.parent.mkdir()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                out.writestr(entry, path.read_bytes())
    return target
