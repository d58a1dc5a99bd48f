"""Lab 4, the plan of a loop and the order on a device: five pieces of the mini-framework, and four things it lacks.

The oracle is the real PyTorch wherever it can be asked; for the joining of dimensions and for the times of a
device it is the framework's own piece. Two tasks have many right answers, which are verified one by one.
Nothing here, nor elsewhere in this package, finds the answer to an extension task.
"""

from __future__ import annotations

from .allocating import output_strides
from .broadcasting import broadcast_shapes
from .coalescing import coalesce_dimensions
from .fitting import fit_cost
from .fusing import fused_kernel
from .lines import cache_lines
from .promoting import result_type
from .scheduling import two_streams
from .waiting import run_streams

TASKS = (
    broadcast_shapes,
    result_type,
    output_strides,
    coalesce_dimensions,
    run_streams,
    fused_kernel,
    two_streams,
    fit_cost,
    cache_lines,
)
