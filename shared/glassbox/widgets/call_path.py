"""Call path explorer: the eight stations of a call as lanes, frame by frame (torch/csrc, aten/src/ATen).

The Python side owns the meaning: which frame belongs to which station, and what a station costs. The browser
side walks through what it was given and asks the kernel nothing.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import traitlets

from ..draw import call_path_figure
from ..records import STATIONS, CallPath, Frame, Overhead
from ..records.overhead import short
from ._base import GlassboxWidget, script, themed_css

Cost = tuple[str, float, str]
"""(stations, such as "3, 4"; microseconds; what was measured)."""
Costs = Overhead | Iterable[Cost] | None


class CallPathExplorer(GlassboxWidget):
    """One path or several beside each other: move over a frame, or walk with the arrow keys, and read what it is.

    paths   CallPath records, of PyTorch and of the mini-framework alike
    costs   for each path in order an Overhead record, (stations, microseconds, what) triples, or None

    `state` holds everything as plain data; `opened` the stations that show all their frames (a lane shows a few at
    first). ValueError without a path, with more costs than paths, or with costs of stations that do not exist;
    TypeError for what is no path and for costs of another form.
    """

    _esm = script("call_path.js")
    _css = themed_css("call_path.css")

    state = traitlets.Dict().tag(sync=True)
    opened = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, *paths: CallPath, costs: Sequence[Costs] = ()) -> None:
        if not paths:
            raise ValueError("CallPathExplorer: give it at least one path, such as xray.call_path(lambda: a + b).")
        for nr, path in enumerate(paths, 1):
            if not isinstance(path, CallPath):
                raise TypeError(
                    f"CallPathExplorer: path {nr} is a {type(path).__name__}, not a record; give what call_path gave, "
                    "such as xray.call_path(lambda: a + b)."
                )
        if isinstance(costs, str) or not isinstance(costs, Sequence):
            raise TypeError(f"CallPathExplorer: costs is a list with one entry for each path, got {costs!r}.")
        if len(costs) > len(paths):
            raise ValueError(f"CallPathExplorer: {len(costs)} costs for {len(paths)} paths; give one for each.")
        self._paths = paths
        given = [*costs, *[None] * (len(paths) - len(costs))]
        self._costs = [_costs(each) for each in given]
        super().__init__(
            state={
                "stations": [
                    {"nr": each.nr, "name": each.name, "what": each.what, "source": list(each.source)}
                    for each in STATIONS
                ],
                "paths": [_path(*each) for each in zip(paths, self._costs, strict=True)],
            }
        )

    @traitlets.validate("opened")
    def _known(self, proposal: dict[str, Any]) -> list[int]:
        wanted = sorted(set(proposal["value"]))
        if any(nr not in range(len(STATIONS) + 1) for nr in wanted):
            raise traitlets.TraitError(f"CallPathExplorer: stations are 1 to {len(STATIONS)}, got {wanted}.")
        return wanted

    def static_html(self) -> str:
        return call_path_figure(*self._paths)._repr_html_() + _cost_table(self._paths, self._costs)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._paths))


def _path(path: CallPath, costs: Sequence[Cost]) -> dict[str, Any]:
    callers = [each for each in path if each.station == 0 and each.known and not each.observer][-2:]
    lanes: list[list[dict[str, Any]]] = [[_frame(each) for each in callers]]
    for station in STATIONS:
        told = [
            {"kind": "evidence", "name": each.text, "full": "", "place": "", "by": each.source}
            for each in path.evidence_at(station.nr)
        ]
        lanes.append([*map(_frame, path.at(station.nr)), *told])
    return {
        "framework": path.framework,
        "call": path.call,
        "op": path.op,
        "note": path.note,
        "lanes": lanes,
        "unknown": [each.name for each in path if not each.known and not each.observer],
        "observer": list(dict.fromkeys(each.name for each in path if each.observer)),
        "costs": [
            {"stations": stations, "lane": _numbers(stations)[0], "us": us, "says": f"{short(us)} µs", "what": what}
            for stations, us, what in costs
        ],
    }


def _frame(frame: Frame) -> dict[str, Any]:
    kind = "python" if frame.language == "python" else "compiled"
    return {"kind": kind, "name": frame.name, "full": frame.full_name, "place": frame.place, "by": ""}


def _costs(given: Costs) -> list[Cost]:
    """What is known of each station; a layer that cannot be told from nothing says so in its words."""
    if given is None:
        return []
    if isinstance(given, Overhead):
        layers = [each for each in given.layers if each.stations]
        return [(each.stations, max(0.0, each.time.median), f"{each.name}: {each.definition}") for each in layers]
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for each in found:
        if not (isinstance(each, list | tuple) and len(each) == 3 and isinstance(each[0], str)) or not (
            isinstance(each[1], int | float)
        ):
            raise TypeError(
                "CallPathExplorer: the costs of a path are an Overhead record, None or a list of (stations, "
                f'microseconds, what), such as [("3, 4", 1.5, "dispatch")], got {given!r}.'
            )
        _numbers(each[0])
    return [(stations, us, str(what)) for stations, us, what in found]


def _numbers(stations: str) -> list[int]:
    found = [int(part) for part in stations.replace("-", ",").split(",") if part.strip().isdecimal()]
    if not found or not all(1 <= nr <= len(STATIONS) for nr in found):
        raise ValueError(f'CallPathExplorer: costs belong to stations such as "3, 4" or "1-2", got {stations!r}.')
    return found


def _cost_table(paths: Sequence[CallPath], costs: Sequence[Sequence[Cost]]) -> str:
    """The costs for a page without scripts."""
    rows = [
        f'<tr><td style="text-align:left">{html.escape(path.framework)}</td><td>{html.escape(stations)}</td>'
        f'<td>{short(us)}</td><td style="text-align:left">{html.escape(what)}</td></tr>'
        for path, each in zip(paths, costs, strict=True)
        for stations, us, what in each
    ]
    if not rows:
        return ""
    names = "".join(f'<th scope="col">{name}</th>' for name in ("framework", "stations", "µs", "measured as"))
    return f'<table aria-label="Costs by station"><thead><tr>{names}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
