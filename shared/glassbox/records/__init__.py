"""Records: the frozen vocabulary that instruments over the mini-framework and over PyTorch share.

PyTorch keeps what a `StorageView` says in c10/core/TensorImpl.h (sizes, strides, storage offset, dtype,
version counter) and c10/core/StorageImpl.h (bytes, data pointer, use count). A record is a snapshot: it never
holds the tensor that it was taken from, so looking at a tensor does not keep it alive.
"""

from .call_path import STATIONS, CallPath, Evidence, Frame, Station
from .cheat_sheet import CheatSheet, KeyEntry
from .copies import CopySite, HiddenCopies
from .dispatch import Hop, Onion
from .dispatch_table import DispatchRow, DispatchTable, Registration
from .forward import ForwardEdge, ForwardGraph, ForwardNode, ForwardTensor
from .graph import Graph, GraphNode, SavedTensor, SavedValues
from .key_set import KeyLayout, KeySet, KeySets, KeyStep
from .observation import ModuleCall, Observation, TensorStats
from .ops import COPYING, DTYPE_LETTERS, OpCall, OpLog, TensorMeta
from .overhead import Alternative, CostCurve, CostLayer, Overhead, Spread
from .portrait import Portrait, PortraitByModule, PortraitPart, RunTime
from .reason import KeyOrigin, Why, WhyCall
from .recording import Recording
from .saved_memory import Checkpoints, KeptCall, KeptValue, SavedMemory, SavedMemoryPart
from .storage import StorageView
from .table import Rows, Table, html_table, markdown_table, text_table
from .timeline import Race, Timeline, TimelineEvent
from .units import human_bytes, human_flops, human_us
from .yaml_entry import Derivative, Formula, NativeFunction, SchemaArgument

__all__ = [
    "COPYING",
    "DTYPE_LETTERS",
    "STATIONS",
    "Alternative",
    "CallPath",
    "CheatSheet",
    "Checkpoints",
    "CopySite",
    "CostCurve",
    "CostLayer",
    "Derivative",
    "DispatchRow",
    "DispatchTable",
    "Evidence",
    "Formula",
    "ForwardEdge",
    "ForwardGraph",
    "ForwardNode",
    "ForwardTensor",
    "Frame",
    "Graph",
    "GraphNode",
    "HiddenCopies",
    "Hop",
    "KeptCall",
    "KeptValue",
    "KeyEntry",
    "KeyLayout",
    "KeyOrigin",
    "KeySet",
    "KeySets",
    "KeyStep",
    "ModuleCall",
    "NativeFunction",
    "Observation",
    "Onion",
    "OpCall",
    "OpLog",
    "Overhead",
    "Portrait",
    "PortraitByModule",
    "PortraitPart",
    "Race",
    "Recording",
    "Registration",
    "Rows",
    "RunTime",
    "SavedMemory",
    "SavedMemoryPart",
    "SavedTensor",
    "SavedValues",
    "SchemaArgument",
    "Spread",
    "Station",
    "StorageView",
    "Table",
    "TensorMeta",
    "TensorStats",
    "Timeline",
    "TimelineEvent",
    "Why",
    "WhyCall",
    "html_table",
    "human_bytes",
    "human_flops",
    "human_us",
    "markdown_table",
    "text_table",
]
