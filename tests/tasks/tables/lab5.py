"""Lab 5: its points, what is no thought at all, and where the rest of the table is."""

import re
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from glassbox.records import ops, table, units
from glassbox.xray import _names, _operators, _python_lines, _schema_words

from .lab5_slips import LOST, SLIPS
from .lab5_ways import RIGHT, WRONG

POINTS = {
    "op_lines": 9,
    "portrait": 10,
    "watch_layer": 10,
    "who_shares": 9,
    "hidden_copies": 12,
    "repeated_work": 14,
    "float64_sources": 11,
    "run_within": 12,
    "shapes_only": 13,
}
CORE = 5
# What these rebuild are instruments of xray, over the real PyTorch.
CORE_WITHOUT_PIECE = ("op_lines", "portrait", "watch_layer", "who_shares", "hidden_copies")
WRITTEN = "written_interception"
READ = "notebook 05, "
CALLS = {}
SEEDS = 1

LETTERS = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.bool: "b8"}
LETTERS |= {torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8"}
NAMES = {
    "re": re,
    "sys": sys,
    "torch": torch,
    "TorchDispatchMode": TorchDispatchMode,
    "tree_leaves": tree_leaves,
    "tree_map": tree_map,
    "LETTERS": LETTERS,
}

TELLING = ("repeated_work", "duplicate_work", "float64", "budget", "run_within", "shapes_only", "shape_only")
NEAR = (ops, table, units, _names, _operators, _python_lines, _schema_words)

# (function, kind of an answer, least share in every property of the answers for which that is true, and of the others)
SHARES = []


def _always(value):
    return lambda *args: value


def _size(tensor):
    return tensor.untyped_storage().nbytes()


TRIVIAL = {
    "runs it, and no more": lambda *args: args[0]() and None,
    "runs it, no rows": lambda program, *rest: (program(), [])[1],
    "runs the model, no rows": lambda model, x, *rest: ([], model(x) is None)[0],
    "what the module is": lambda model, x: [(type(model).__name__, 1, 0)],
    "no calls of the layer": _always(([], None)),
    "one call, the input's": lambda model, x, path: ([[(x.shape, round(x.mean().item(), 3), 1.0, False)]], None),
    "each alone": lambda tensors: [((name,), _size(each)) for name, each in tensors.items()],
    "all in one": lambda tensors: [(tuple(tensors), max(map(_size, tensors.values())))],
    "a copy on line 4": _always([(4, "aten.clone.default", 1, 48)]),
    "a source on line 4": _always([(4, "aten._to_copy.default")]),
    "line 5 as line 4": _always([(5, 4)]),
    "all of the budget": lambda program, budget: ("done", budget),
    "stopped at once": lambda program, budget: ("stopped", budget, "aten.add_.Tensor", 4),
    "runs all of it": lambda program, budget: ("done", (program(), budget)[1]),
    "fine, the input's type": lambda program, inputs: ("fine", f"f32[{', '.join(map(str, inputs[0][1]))}]"),
    "needs data for item": _always(("needs data", "aten._local_scalar_dense.default")),
}
RIGHT_THERE = set()

__all__ = ["LOST", "RIGHT", "SLIPS", "WRONG"]
