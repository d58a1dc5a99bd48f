"""CallPath: the functions that a call goes through from Python to the device, by station (torch/csrc, aten/src)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .table import Rows, Table, folded_table

if TYPE_CHECKING:
    from ..draw import Svg


@dataclass(frozen=True, slots=True)
class Station:
    """One of the eight stations of a call.

    source   where PyTorch keeps it, from the root of its repository; files under build/ are generated
    """

    nr: int
    name: str
    what: str
    source: tuple[str, ...]


STATIONS = (
    Station(
        1,
        "Python slot",
        "the interpreter finds the type's slot or method",
        ("CPython: Objects/abstract.c, Objects/typeobject.c", "torch/_tensor.py, torch/functional.py"),
    ),
    Station(
        2,
        "C binding",
        "Python arguments become C++ arguments",
        (
            "torch/csrc/autograd/generated/python_variable_methods.cpp",
            "torch/csrc/utils/python_arg_parser.cpp",
        ),
    ),
    Station(
        3,
        "operator call",
        "the key set is collected from the arguments and the thread",
        ("build/aten/src/ATen/Operators_*.cpp", "aten/src/ATen/core/dispatch/DispatchKeyExtractor.h"),
    ),
    Station(
        4,
        "highest key",
        "the kernel of the highest key runs: autocast, functorch, a composite, autograd",
        ("aten/src/ATen/core/dispatch/Dispatcher.h", "torch/csrc/autograd/generated/VariableType_*.cpp"),
    ),
    Station(
        5,
        "node",
        "autograd makes a node, saves values, sets grad_fn",
        ("torch/csrc/autograd/function.h", "torch/csrc/autograd/saved_variable.cpp"),
    ),
    Station(
        6,
        "redispatch",
        "the call goes on with the keys below, to the backend's kernel",
        ("build/aten/src/ATen/RegisterCPU_*.cpp", "aten/src/ATen/core/dispatch/Dispatcher.h"),
    ),
    Station(
        7,
        "TensorIterator",
        "shapes are broadcast, dtypes promoted, the output allocated, dimensions joined",
        ("aten/src/ATen/TensorIterator.cpp",),
    ),
    Station(
        8,
        "device",
        "the loop over the elements runs",
        ("aten/src/ATen/native/cpu/*.cpp", "aten/src/ATen/native/cuda/*.cu"),
    ),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One function that was running when the call was looked at.

    name       short: "VariableType::add_Tensor"; full_name as the compiler has it, with arguments
    language   "python" or "c++" (which CPython's own C counts as)
    file, line where it is, as far as that is known; "" and 0 else
    station    1 to 8; 0 for the caller's own code and for what belongs to none
    observer   True where it runs only because somebody looks
    """

    name: str
    full_name: str = ""
    language: str = "c++"
    file: str = ""
    line: int = 0
    station: int = 0
    observer: bool = False
    known: bool = True

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file and self.line else self.file

    def __str__(self) -> str:
        marks = " (the observer's)" if self.observer else "" if self.known else " (belongs to no station)"
        return self.name + marks


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else tells of a station: what it comes from ("the dispatch table", "the result") and what it says."""

    station: int
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class CallPath(Table):
    """The frames of one operator call, outermost first, and what tells of the stations that frames do not show.

    call       what the program wrote, as far as that is known: "a + b"
    op         the operator that was looked at: "aten.add.Tensor"
    framework  "PyTorch 2.14.1", "mini-framework"
    others     the operators that the program called besides, in order
    note       what the reader should know of how this was seen
    """

    call: str
    op: str
    framework: str
    frames: tuple[Frame, ...]
    evidence: tuple[Evidence, ...] = ()
    others: tuple[str, ...] = ()
    note: str = ""

    def __len__(self) -> int:
        return len(self.frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self.frames)

    def __getitem__(self, nr: int) -> Frame:
        return self.frames[nr]

    def at(self, station: int) -> tuple[Frame, ...]:
        """The frames of one station, less the observer's."""
        return tuple(frame for frame in self.frames if frame.station == station and not frame.observer)

    def evidence_at(self, station: int) -> tuple[Evidence, ...]:
        return tuple(each for each in self.evidence if each.station == station)

    def rows(self) -> Rows:
        """Station by station; "#" is a frame's place in the stack, outermost 1."""
        found: list[tuple[int, dict[str, Any]]] = []
        names = {station.nr: f"{station.nr} {station.name}" for station in STATIONS}
        for nr, frame in enumerate(self.frames, 1):
            if frame.observer:
                order, station = 11, "observer"
            elif not frame.known:
                order, station = 10, "none"
            else:
                order, station = frame.station, names.get(frame.station, "the caller")
            row = {"station": station, "#": nr, "seen": frame.name, "by": "stack", "where": frame.place}
            found.append((order, row))
        for each in self.evidence:
            row = {"station": names[each.station], "#": "", "seen": each.text, "by": each.source, "where": ""}
            found.append((each.station, row))
        return [row for _, row in sorted(found, key=lambda pair: pair[0])]

    def caption(self) -> str:
        said = f"{self.call}: " if self.call else ""
        more = (
            f"; {len(self.others)} more operator calls" if len(self.others) > 1 else "; 1 more" if self.others else ""
        )
        return f"{said}{self.op} in {self.framework}{more}"

    def text(self) -> str:
        """Station by station: what was seen there, and by what else it is known."""
        lines = [self.caption()]
        lines += [f"  {frame.name}  {frame.place}".rstrip() for frame in self.frames if self._is_callers(frame)]
        for station in STATIONS:
            lines.append(f"{station.nr} {station.name}: {station.what}")
            lines += [f"    {frame.name}  {frame.place}".rstrip() for frame in self.at(station.nr)]
            lines += [f"    {each.text}  [{each.source}]" for each in self.evidence_at(station.nr)]
        unknown = [frame for frame in self.frames if not frame.known and not frame.observer]
        if unknown:
            lines.append("at no station")
            lines += [f"    {frame.name}  {frame.place}".rstrip() for frame in unknown]
        watching = [frame.name for frame in self.frames if frame.observer]
        if watching:
            lines.append(f"there only to look: {', '.join(dict.fromkeys(watching))}")
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def figure(self) -> Svg:
        """The stations as lanes."""
        from ..draw import call_path_figure

        return call_path_figure(self)

    def beside(self, *others: CallPath) -> Svg:
        """This path and others in columns next to each other, station by station."""
        from ..draw import call_path_figure

        return call_path_figure(self, *others)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + folded_table(self.rows(), self.caption())

    def __str__(self) -> str:
        return self.text()

    @staticmethod
    def _is_callers(frame: Frame) -> bool:
        return frame.station == 0 and frame.known and not frame.observer
