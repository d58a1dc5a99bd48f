"""Lab 5, interception on the real PyTorch: five instruments rebuilt, and four that PyTorch's hook makes possible.

A case is the text of a program, which is built before a learner's function gets it; see `tasks.building`. The
oracles of the core are the instruments of xray and PyTorch's own. Those of the extensions read the text line by
line, look back on a run that was logged whole, or ask PyTorch's fake tensors: nothing here, nor elsewhere in
this package, is the answer to an extension task.
"""

from __future__ import annotations

from .budgeting import run_within
from .copying import hidden_copies
from .creeping import float64_sources
from .portraying import portrait
from .printing import op_lines
from .repeating import repeated_work
from .shaping import shapes_only
from .sharing import who_shares
from .watching import watch_layer

TASKS = (
    op_lines,
    portrait,
    watch_layer,
    who_shares,
    hidden_copies,
    repeated_work,
    float64_sources,
    run_within,
    shapes_only,
)
