"""The one list of what may differ, each with its reason; the report shows how many checks each one excused.

What cannot be asked of mini at all (an argument or a dtype that it has not) is found by translate.py and counted
in the report beside these.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Exclusion:
    """entry, kind and told are patterns as for file names; told is matched against the failure's whole message."""

    entry: str
    kind: str
    told: str
    reason: str


EXCLUSIONS = (
    Exclusion(
        "as_strided_scatter",
        "grad*",
        "*",
        "PyTorch 2.14's own gradient of self is what was written over, not what was kept",
    ),
    Exclusion(
        "native_layer_norm",
        "grad",
        "nothing raised instead of RuntimeError(Expected a proper Tensor but got None*",
        "PyTorch's own backward fails where there is a bias but no weight",
    ),
    Exclusion(
        "native_batch_norm",
        "out",
        "* permuted *",
        "PyTorch's kernel leaves out tensors unwritten where the input is not contiguous",
    ),
    Exclusion(
        "native_batch_norm",
        "out",
        "nothing raised instead of RuntimeError(TensorAccessor expected*",
        "PyTorch's kernel does not resize all its out tensors and fails inside",
    ),
    Exclusion(
        "nn.functional.nll_loss",
        "grad",
        "nothing raised instead of RuntimeError(grad_input must be contiguous)*",
        "PyTorch's own backward fails where the scores are laid out otherwise than in index order",
    ),
    Exclusion(
        "baddbmm",
        "errors",
        "RuntimeError(unsupported operation: more than one element*instead of nothing raised*in-place, * expanded *",
        "PyTorch adds batch after batch into one repeated matrix here, and refuses that everywhere else, as mini does",
    ),
    Exclusion(
        "nn.functional.gelu",
        "out",
        "*[[]out strided*",
        "PyTorch leaves an out tensor with gaps between its elements unwritten",
    ),
)


def excluded(entry: str, kind: str, told: str) -> str:
    """The reason why a failure does not count; "" if it does."""
    for each in EXCLUSIONS:
        if fnmatchcase(entry, each.entry) and fnmatchcase(kind, each.kind) and fnmatchcase(told, each.told):
            return each.reason
    return ""
