"""OpLog: the operator calls of a program, as a dispatch mode sees them (PyTorch: torch/utils/_debug_mode)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .table import Rows, Table

# How a log writes dtypes.
DTYPE_LETTERS = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "b8",
}


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """What a log says of one tensor.

    id         its number in the log, in the order of first appearance: written $id
    storage    equal for two tensors of a log exactly when they share memory
    nbytes     numel * itemsize
    """

    id: int
    shape: tuple[int, ...]
    dtype: str = "float32"
    stride: tuple[int, ...] = ()
    offset: int = 0
    device: str = "cpu"
    storage: int = 0
    nbytes: int = 0

    def type(self) -> str:
        """dtype and shape: "f32[4, 8]"."""
        return f"{DTYPE_LETTERS.get(self.dtype, self.dtype)}{list(self.shape)}"

    def __str__(self) -> str:
        return f"${self.id}: {self.type()}"


@dataclass(frozen=True, slots=True)
class OpCall:
    """One operator call, as a dispatch mode sees it.

    name             "aten.add.Tensor"
    args, kwargs     as a log writes them: "$0" for a tensor, "[1, 2]", "2.0"; defaults left out
    result           likewise, with types: "$3: f32[4, 8]", "($3: f32[4], $4: i64[4])"
    inputs, outputs  the tensors among them
    mutates          ids of the inputs that the call wrote to
    aliases          ids of the inputs whose memory an output shares
    depth            how many calls of the same kind this one was made by
    phase            "forward" or "backward"
    module, place    the module that called and the line of the program, where they were asked for
    """

    name: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()
    result: str = ""
    inputs: tuple[TensorMeta, ...] = ()
    outputs: tuple[TensorMeta, ...] = ()
    mutates: tuple[int, ...] = ()
    aliases: tuple[int, ...] = ()
    depth: int = 0
    phase: str = "forward"
    module: str = ""
    place: str = ""

    @property
    def effect(self) -> str:
        """ "write" where an input was written to, "view" where an output shares an input's memory, else "fresh"."""
        if self.mutates:
            return "write"
        return "view" if self.aliases else "fresh"

    def call(self) -> str:
        """The call without its result: "aten.add.Tensor($0, $1, alpha=2)"."""
        given = [*self.args, *(f"{name}={value}" for name, value in self.kwargs)]
        return f"{self.name}({', '.join(given)})"

    def __str__(self) -> str:
        return f"{self.result} = {self.call()}" if self.result else self.call()


@dataclass(frozen=True, slots=True)
class OpLog(Table):
    """The operator calls of a program in their order. Iterating, len() and [] give OpCalls."""

    calls: tuple[OpCall, ...]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[OpCall]:
        return iter(self.calls)

    def __getitem__(self, nr: int) -> OpCall:
        return self.calls[nr]

    def names(self) -> list[str]:
        """The names of the operators, call by call."""
        return [call.name for call in self.calls]

    def counts(self) -> dict[str, int]:
        """How often each operator was called, the most frequent first."""
        found: dict[str, int] = {}
        for call in self.calls:
            found[call.name] = found.get(call.name, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def text(self) -> str:
        """One line per call: "$3: f32[4, 8] = aten.add.Tensor($0, $1)"."""
        return "\n".join(map(str, self.calls))

    def rows(self) -> Rows:
        rows = []
        for nr, call in enumerate(self.calls):
            row = {"#": nr, "op": call.name, "call": str(call), "effect": call.effect, "phase": call.phase}
            row["stride"] = ", ".join(str(list(each.stride)) for each in call.outputs)
            row["bytes"] = sum(each.nbytes for each in call.outputs)
            row |= {
                name: getattr(call, name) for name in ("module", "place") if any(getattr(c, name) for c in self.calls)
            }
            rows.append(row)
        return rows

    def caption(self) -> str:
        return f"{len(self.calls)} operator call{'s' * (len(self.calls) != 1)}"

    def __str__(self) -> str:
        return self.text()
