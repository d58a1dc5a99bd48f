"""Records: the frozen vocabulary that instruments over the mini-framework and over PyTorch share.

PyTorch keeps what a `StorageView` says in c10/core/TensorImpl.h (sizes, strides, storage offset, dtype,
version counter) and c10/core/StorageImpl.h (bytes, data pointer, use count). A record is a snapshot: it never
holds the tensor that it was taken from, so looking at a tensor does not keep it alive.
"""

from .dispatch import Hop, Onion
from .dispatch_table import DispatchRow, DispatchTable, Registration
from .graph import Graph, GraphNode, SavedTensor, SavedValues
from .key_set import KeyLayout, KeySet, KeySets, KeyStep
from .ops import DTYPE_LETTERS, OpCall, OpLog, TensorMeta
from .portrait import Portrait, PortraitByModule, PortraitPart, RunTime, human_flops, human_us
from .recording import Recording
from .storage import StorageView
from .table import Rows, Table, html_table, human_bytes, markdown_table, text_table
from .timeline import Race, Timeline, TimelineEvent

__all__ = [
    "DTYPE_LETTERS",
    "DispatchRow",
    "DispatchTable",
    "Graph",
    "GraphNode",
    "Hop",
    "KeyLayout",
    "KeySet",
    "KeySets",
    "KeyStep",
    "Onion",
    "OpCall",
    "OpLog",
    "Portrait",
    "PortraitByModule",
    "PortraitPart",
    "Race",
    "Recording",
    "Registration",
    "Rows",
    "RunTime",
    "SavedTensor",
    "SavedValues",
    "StorageView",
    "Table",
    "TensorMeta",
    "Timeline",
    "TimelineEvent",
    "html_table",
    "human_bytes",
    "human_flops",
    "human_us",
    "markdown_table",
    "text_table",
]
