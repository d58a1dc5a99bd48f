"""Lab 3, autograd: six steps of a backward pass, most of them pieces of mini, and four things that it lacks.

The oracle is the real PyTorch: its engine, its version counters, its forward mode. Only the counts that it shows
nobody are the framework's own. Nothing here, nor elsewhere in this package, answers an extension task.
"""

from __future__ import annotations

from .counting import count_dependencies
from .duals import dual_numbers
from .finding import wrong_derivatives
from .new_op import running_product
from .products import product_backward
from .reversible import reversible_backward
from .running import run_backward
from .unary import unary_backward
from .unbroadcasting import unbroadcast
from .versions import trace_versions

TASKS = (
    unbroadcast,
    product_backward,
    unary_backward,
    count_dependencies,
    run_backward,
    trace_versions,
    running_product,
    dual_numbers,
    reversible_backward,
    wrong_derivatives,
)
