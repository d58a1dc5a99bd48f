"""Short files: a file of Python as a reader knows it (co_filename of a code object has it whole)."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

INSTALLED = ("site-packages", "dist-packages")


def short_file(file: str) -> str:
    """A file's name from the package or the working directory on, or the notebook's cell: "torch/nn/modules/conv.py",
    "models/net.py", "In[3]"; others as they are. A cell that was run again is called by its latest number.
    """
    shell = sys.modules.get("IPython")
    cell = getattr(getattr(shell and shell.get_ipython(), "compile", None), "format_code_name", lambda _: None)(file)
    return str(cell[1]) if cell else _short_path(file, Path.cwd())


@functools.lru_cache(maxsize=1024)
def _short_path(file: str, folder: Path) -> str:
    for root in INSTALLED:
        before, _, after = file.rpartition(f"{root}/")
        if before:
            return after
    try:
        return str(Path(file).relative_to(folder))
    except ValueError:
        return file
