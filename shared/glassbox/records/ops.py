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
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "b8",
    "complex32": "c32",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu",
}

# Operators whose output is an input's elements again. Many of them give a view, or the input itself, where they can.
COPYING = frozenset(
    {
        "aten._lazy_clone",
        "aten._reshape_copy",
        "aten._to_copy",
        "aten.clone",
        "aten.contiguous",
        "aten.expand_copy",
        "aten.flatten",
        "aten.lift_fresh_copy",
        "aten.permute_copy",
        "aten.ravel",
        "aten.reshape",
        "aten.reshape_as",
        "aten.resolve_conj",
        "aten.resolve_neg",
        "aten.t_copy",
        "aten.to",
        "aten.transpose_copy",
        "aten.type_as",
        "aten.unflatten",
        "aten.view_as_complex_copy",
        "aten.view_copy",
    }
)


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """What a log says of one tensor.

    id         its number in the log, in the order of first appearance: written $id
    storage    equal for two tensors of a log exactly when they share memory
    nbytes     numel * itemsize; 0 where the shape does not tell
    kind       what is special about it: "sparse_coo", "nested", "FakeTensor"; "" for a plain strided tensor

    A size that is no number is text: "s0" where it is symbolic, "*" where the tensors of a nested one differ.
    """

    id: int
    shape: tuple[int | str, ...]
    dtype: str = "float32"
    stride: tuple[int | str, ...] = ()
    offset: int = 0
    device: str = "cpu"
    storage: int = 0
    nbytes: int = 0
    kind: str = ""

    def type(self) -> str:
        """dtype and shape, and the kind where there is one: "f32[4, 8]", "f32[4, 4] sparse_coo"."""
        shape = ", ".join(map(str, self.shape))
        return f"{DTYPE_LETTERS.get(self.dtype, self.dtype)}[{shape}]{' ' * bool(self.kind)}{self.kind}"

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
    promised         the effect that the operator's schema promises, where it was asked; what really happened is
                     `effect`: reshape promises a view and may copy
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
    promised: str = ""

    @property
    def effect(self) -> str:
        """ "write" where an input was written to, "view" where an output shares an input's memory, "copy" where it has
        an input's elements in memory of its own, else "fresh".
        """
        if self.mutates:
            return "write"
        if self.aliases:
            return "view"
        return "copy" if self.name.rpartition(".")[0] in COPYING and self.outputs else "fresh"

    def call(self) -> str:
        """The call without its result: "aten.add.Tensor($0, $1, alpha=2)"."""
        given = [*self.args, *(f"{name}={value}" for name, value in self.kwargs)]
        return f"{self.name}({', '.join(given)})"

    def __str__(self) -> str:
        return f"{self.result} = {self.call()}" if self.result else self.call()


@dataclass(frozen=True, slots=True)
class OpLog(Table):
    """The operator calls of a program in their order. Iterating, len() and [] give OpCalls.

    dropped counts the oldest calls that were forgotten to bound the memory.
    """

    calls: tuple[OpCall, ...]
    dropped: int = 0

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
        """One line per call: "$3: f32[4, 8] = aten.add.Tensor($0, $1)"; inner calls are indented, a place follows."""
        lines = [f"... {self._lost()}"] if self.dropped else []
        for call in self.calls:
            lines.append(f"{'  ' * call.depth}{call}{f'  # {call.place}' if call.place else ''}")
        return "\n".join(lines)

    def rows(self) -> Rows:
        rows = []
        devices = {each.device for call in self.calls for each in call.outputs} - {"cpu"}
        asked = [name for name in ("module", "place") if any(getattr(call, name) for call in self.calls)]
        promised = any(call.promised not in ("", call.effect) for call in self.calls)
        for nr, call in enumerate(self.calls, start=self.dropped):
            row = {"#": nr, "op": call.name, "call": str(call), "effect": call.effect, "phase": call.phase}
            row["stride"] = ", ".join(str(list(each.stride)) for each in call.outputs)
            row["bytes"] = sum(each.nbytes for each in call.outputs)
            if devices:
                row["device"] = ", ".join(dict.fromkeys(each.device for each in call.outputs))
            if promised:
                row["schema"] = call.promised
            row |= {name: getattr(call, name) for name in asked}
            rows.append(row)
        return rows

    def caption(self) -> str:
        count = f"{len(self.calls)} operator call{'s' * (len(self.calls) != 1)}"
        return f"{count}; {self._lost()}" if self.dropped else count

    def _lost(self) -> str:
        return f"the oldest {self.dropped:,} call{'s are' if self.dropped != 1 else ' is'} gone"

    def __str__(self) -> str:
        return self.text()
