"""Lab 1, the arithmetic of storages: eight pieces of the mini-framework to rebuild, and five things that it cannot do.

The oracle is the real PyTorch throughout. Nothing here, nor elsewhere in this package, answers an extension task.
"""

from __future__ import annotations

from . import lab1_extension, lab1_layout, lab1_views

TASKS = (*lab1_layout.TASKS, *lab1_views.TASKS, *lab1_extension.TASKS)
