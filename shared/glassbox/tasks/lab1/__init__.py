"""Lab 1, the arithmetic of storages: eight pieces of the mini-framework, and five things that it lacks.

The oracle is the real PyTorch throughout. Nothing here, nor elsewhere in this package, answers an extension
task.
"""

from __future__ import annotations

from .contiguity import is_contiguous
from .describing import address, contiguous_strides
from .expanding import expand
from .formats import channels_last_strides, view_dtype
from .regrouping import view_strides
from .reshaping import reshape
from .viewing import permute, slice_view
from .windows import aliased_indices, diagonal, unfold

TASKS = (
    contiguous_strides,
    address,
    is_contiguous,
    permute,
    slice_view,
    expand,
    view_strides,
    reshape,
    unfold,
    diagonal,
    channels_last_strides,
    aliased_indices,
    view_dtype,
)
