"""The one list of what may differ, each with its reason; the report shows how much each one covers."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Exclusion:
    """entry, dtype and kind are patterns as for file names."""

    entry: str
    dtype: str
    kind: str
    reason: str


EXCLUSIONS: tuple[Exclusion, ...] = (
    Exclusion(
        "as_strided_scatter",
        "float64",
        "grad*",
        "PyTorch 2.14's own gradient of self is taken where src was written instead of where it was not",
    ),
    Exclusion(
        "native_layer_norm", "float64", "grad", "PyTorch's own backward fails where there is a bias but no weight"
    ),
    Exclusion(
        "native_batch_norm",
        "*",
        "out",
        "PyTorch's kernel leaves out tensors unwritten where the input is not contiguous",
    ),
    Exclusion(
        "nn.functional.gelu",
        "*",
        "out",
        "PyTorch leaves an out tensor with gaps between its elements unwritten (oneDNN)",
    ),
)


def excluded(entry: str, dtype: str, kind: str) -> str:
    """The reason why failures of this kind do not count; "" if they do."""
    for each in EXCLUSIONS:
        if fnmatchcase(entry, each.entry) and fnmatchcase(dtype, each.dtype) and fnmatchcase(kind, each.kind):
            return each.reason
    return ""
