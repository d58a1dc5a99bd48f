"""Hidden copies: memory that a program copied without being asked to, line by line (aten/src/ATen/native/Copy.cpp)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .table import Rows, Table
from .units import human_bytes

# In parentheses: split() keeps what it splits at.
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class CopySite:
    """The copies that one line made in one way.

    place      the line of the program, "models/net.py:12"; in backward that of the forward call which made the node
    source     its text, where it is to be had
    called     what the line called: "reshape", "@", "attn"; in backward the node, "MmBackward0"; what was
               looked at where no line of Python called, as in a script
    within     the line of PyTorch's own Python code that made the copy, and what it called:
               "torch/nn/functional.py:6605 contiguous"; "" where the program's line called the operator itself
    op         the operator that a dispatch mode sees; the copy is its work, or something that its kernel needed first
    why        what the copy changed: dtype, device, strides; how often an expanded tensor was repeated
    module     path of the module; phase: "forward" or "backward"
    times, nbytes   how many copies, and the bytes that they wrote together
    types      of what was written, the distinct ones: ("f32[4, 8]",)
    """

    place: str
    source: str
    called: str
    within: str
    op: str
    why: str
    module: str
    phase: str
    times: int
    nbytes: int
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HiddenCopies(Table):
    """The copies of a program that nobody asked for, those of most bytes first.

    sites   what was found, a line and way each
    asked   the copies that the program asked for, by clone(), contiguous(), to(), copy_() and their like
    notes   what else has to be said

    Layers that differ in their numbers alone and copy in one way are one row of what is shown; rows() has a row each.
    """

    sites: tuple[CopySite, ...]
    asked: tuple[CopySite, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sites)

    def __iter__(self) -> Iterator[CopySite]:
        return iter(self.sites)

    def __getitem__(self, nr: int) -> CopySite:
        return self.sites[nr]

    @property
    def nbytes(self) -> int:
        """Bytes written by hidden copies."""
        return sum(site.nbytes for site in self.sites)

    @property
    def times(self) -> int:
        """How many hidden copies there were."""
        return sum(site.times for site in self.sites)

    def by_line(self) -> dict[str, int]:
        """Bytes of hidden copies by line of the program, most first."""
        return _summed((site.place or "unknown", site.nbytes) for site in self.sites)

    def by_module(self) -> dict[str, int]:
        """Bytes of hidden copies by module, most first; "" for what no module did."""
        return _summed((site.module, site.nbytes) for site in self.sites)

    def rows(self) -> Rows:
        return [_row(site) for site in self.sites]

    def asked_rows(self) -> Rows:
        """One row for each line and way in which the program asked for a copy."""
        return [_row(site) for site in self.asked]

    def shown(self) -> Rows:
        alike: dict[CopySite, list[CopySite]] = {}
        for site in self.sites:
            key = replace(site, module=_NUMBER.sub("*", site.module), times=0, nbytes=0, types=())
            alike.setdefault(key, []).append(site)
        several = any(len(sites) > 1 for sites in alike.values())
        rows = sorted(map(_together, alike.values()), key=lambda row: -int(row["bytes"]))
        dropped = () if several else ("modules",)
        return [
            {key: value for key, value in row.items() if key not in dropped} | {"bytes": human_bytes(row["bytes"])}
            for row in rows
        ]

    def caption(self) -> str:
        return "\n".join([self._totals(), *self.notes])

    def _totals(self) -> str:
        lines = len({site.place for site in self.sites})
        hidden = f"{self.times} hidden cop{'ies' if self.times != 1 else 'y'}, {human_bytes(self.nbytes)}"
        if lines:
            hidden += f", at {lines} line{'s' * (lines != 1)}"
        times = sum(site.times for site in self.asked)
        nbytes = sum(site.nbytes for site in self.asked)
        return f"{hidden}; {times} asked for, {human_bytes(nbytes)}" if times else hidden


def _summed(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, nbytes in pairs:
        found[key] = found.get(key, 0) + nbytes
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _together(sites: list[CopySite]) -> dict[str, Any]:
    """One row for sites that differ in their amounts and in the numbers of their modules."""
    types = tuple(dict.fromkeys(each for site in sites for each in site.types))
    times, nbytes = sum(site.times for site in sites), sum(site.nbytes for site in sites)
    names = list(dict.fromkeys(site.module for site in sites))
    row = _row(replace(sites[0], module=_common(names), times=times, nbytes=nbytes, types=types))
    at = list(row).index("module") + 1
    cells = list(row.items())
    return dict([*cells[:at], ("modules", len(names) if sites[0].module else 0), *cells[at:]])


def _common(names: list[str]) -> str:
    """ "layers.*.conv1" for "layers.0.conv1" and "layers.1.conv1"."""
    parts = zip(*(_NUMBER.split(name) for name in names), strict=True)
    return "".join(part[0] if len(set(part)) == 1 else "*" for part in parts)


def _row(site: CopySite) -> dict[str, Any]:
    return {
        "bytes": site.nbytes,
        "times": site.times,
        "line": site.place,
        "called": site.called,
        "why": site.why,
        "op": site.op,
        "type": ", ".join(site.types),
        "module": site.module,
        "phase": site.phase,
        "within": site.within,
        "source": site.source,
    }
