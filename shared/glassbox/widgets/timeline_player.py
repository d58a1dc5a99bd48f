"""Timeline player: one program at many sizes on the simulated device, step by step (torch/profiler, kineto).

Every program is run at every size before anything is shown, on the virtual clock, so the times are the same on any
machine; the browser side turns pages and asks the kernel nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any, SupportsIndex

import traitlets

from ..draw import Svg, timeline_figure, timeline_layout
from ..draw.moments import moments
from ..draw.size_sweep import SweepPoint, axes, crossing, in_words, sweep_figure
from ..records import Timeline
from ._base import GlassboxWidget, script, themed_css

Make = Callable[[int], Callable[[], Any]]
SIZES = (1, 2**12, 2**16, 2**17, 2**18, 2**19, 2**20, 2**22)
WIDTH = 860.0
_BODY = "@BODY@"


class TimelinePlayer(GlassboxWidget):
    """Host and device over time: choose a program and a size, step through it, see which of the two is the slower one.

    programs   name -> make(n), which gives a function without arguments to watch; it is run once before it is watched.
               Without them six additions: without waiting, with a synchronize at the end, with `.item()` after each
    sizes      element counts for the slider

    Making one runs the programs on the simulated device itself, which it resets before each: the device's time,
    timeline, races and statistics from before are gone. Live tensors stay.

    Traits to read and set: `program` and `size`, numbers into the two. `state` holds all that is shown. TraitError for
    a number that there is not, ValueError for no program, no size or one below 1; TypeError for programs and sizes of
    another form.
    """

    _esm = script("timeline_player.js")
    _css = themed_css("timeline_player.css")

    state = traitlets.Dict().tag(sync=True)
    program = traitlets.Int(0).tag(sync=True)
    size = traitlets.Int(0).tag(sync=True)

    def __init__(self, programs: Mapping[str, Make] | None = None, sizes: Sequence[int] = SIZES) -> None:
        if programs is not None and not isinstance(programs, Mapping):
            raise TypeError(
                "TimelinePlayer: programs is a dict of name -> make(n), where make(n) gives the function to watch, got "
                f"a {type(programs).__name__}."
            )
        made = default_programs() if programs is None else dict(programs)
        sizes = _checked(sizes)
        if not made or not sizes:
            raise ValueError("TimelinePlayer: it needs at least one program and one size.")
        self.sizes = tuple(sorted(set(sizes)))
        self.names = tuple(made)
        self.timelines = {
            name: tuple(_watched(_made(name, make, n)) for n in self.sizes) for name, make in made.items()
        }
        sweeps = {name: _sweep(self.sizes, lines) for name, lines in self.timelines.items()}
        figure = timeline_figure(self.timelines[self.names[0]][0], WIDTH)
        template, uid = _template(figure)
        super().__init__(
            state={
                "sizes": list(self.sizes),
                "template": template,
                "body": _BODY,
                "programs": [
                    {
                        "name": name,
                        "says": in_words(sweeps[name]),
                        "crossing": crossing(sweeps[name]),
                        "sweep": sweep_figure(sweeps[name], self.sizes[0], f"{name}: time over size, µs").text,
                        "marks": [round(axes(sweeps[name])[0](n), 2) for n in self.sizes],
                        "runs": [_run(line, uid) for line in self.timelines[name]],
                    }
                    for name in self.names
                ],
            }
        )

    @traitlets.validate("program", "size")
    def _there(self, proposal: dict[str, Any]) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        most = len(self.names if name == "program" else self.sizes)
        if not 0 <= value < most:
            raise traitlets.TraitError(f"TimelinePlayer: {name} is a number from 0 to {most - 1}, got {value}.")
        return value

    @property
    def timeline(self) -> Timeline:
        """What is on show."""
        return self.timelines[self.names[self.program]][self.size]

    def points(self, program: str) -> tuple[SweepPoint, ...]:
        """Host, device and all of it over the sizes. KeyError for a program that there is not."""
        return _sweep(self.sizes, self.timelines[program])

    def static_html(self) -> str:
        name, n = self.names[self.program], self.sizes[self.size]
        return (
            f"<p><b>{html.escape(name)}</b>, {_elements(n)}. {html.escape(in_words(self.points(name)))}</p>"
            + timeline_figure(self.timeline, WIDTH)._repr_html_()
            + sweep_figure(self.points(name), n)._repr_html_()
        )

    def __str__(self) -> str:
        name = self.names[self.program]
        return (
            f"{name} over {_elements(self.sizes[self.size])}: {self.timeline.caption()}\n{in_words(self.points(name))}"
        )


def default_programs(launches: int = 6) -> dict[str, Make]:
    """The same additions on the simulated device, with three ways of waiting for them."""
    from .. import mini

    def program(each: Callable[[Any], Any], last: Callable[[], Any]) -> Make:
        def make(n: int) -> Callable[[], Any]:
            x = mini.ones(n, device="sim")

            def run() -> None:
                y = x
                for _ in range(launches):
                    y = y + x
                    each(y)
                last()

            return run

        return make

    def nothing(*given: Any) -> None: ...

    return {
        "never waits": program(nothing, nothing),
        "synchronizes at the end": program(nothing, mini.sim.synchronize),
        "reads .item() after each": program(lambda y: y[0].item(), nothing),
    }


def _elements(n: int) -> str:
    return f"{n:,} element{'s' * (n != 1)}"


def _checked(sizes: Any) -> tuple[int, ...]:
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise TypeError(f"TimelinePlayer: sizes is a list of element counts, got {sizes!r}.")
    found = tuple(sizes)
    for n in found:
        if not isinstance(n, SupportsIndex) or isinstance(n, bool):
            raise TypeError(f"TimelinePlayer: sizes are whole numbers of elements, 1 or more, got {n!r}.")
        if index(n) < 1:
            raise ValueError(f"TimelinePlayer: sizes are numbers of elements, 1 or more, got {n}.")
    return tuple(map(index, found))


def _made(name: str, make: Make, n: int) -> Callable[[], Any]:
    run = make(n) if callable(make) else make
    if not callable(make) or not callable(run):
        what = f"its make({n}) gave" if callable(make) else "it is"
        raise TypeError(
            f"TimelinePlayer: program {name!r} is to be make(n) that gives a function without arguments, but {what} "
            f"a {type(run).__name__}; write such as lambda n: lambda: work(n)."
        )
    return run


def _watched(run: Callable[[], Any]) -> Timeline:
    """One run after another that has filled the memory's cache, and whose work is done."""
    from .. import mini
    from ..xray import timeline

    mini.sim.reset()
    run()
    mini.sim.synchronize()
    # A tensor of mini's says that nobody else's clock need be looked at.
    return timeline(lambda _: run(), mini.zeros(1))


def _sweep(sizes: Sequence[int], lines: Sequence[Timeline]) -> tuple[SweepPoint, ...]:
    return tuple(
        SweepPoint(
            n,
            line.busy_us("cpu"),
            sum(line.busy_us(row) for row in line.row_names() if row.startswith("stream")),
            line.end_us(),
        )
        for n, line in zip(sizes, lines, strict=True)
    )


def _run(line: Timeline, uid: str) -> dict[str, Any]:
    """One page: the figure's body, where its time axis lies, and the moments to step through."""
    figure, layout = timeline_figure(line, WIDTH), timeline_layout(line, WIDTH)
    return {
        "figure": figure.body.replace("@UID@", uid),
        "height": figure.height,
        "title": figure.title,
        "desc": figure.desc,
        "top": layout.top,
        "bottom": layout.bottom,
        "moments": [{"x": round(layout.scale(each.at_us), 2), "text": each.text} for each in moments(line)],
    }


def _template(figure: Svg) -> tuple[str, str]:
    """The figure's element with its styles and a mark in place of its body, and the id that its body refers to."""
    made = replace(figure, body=_BODY).text
    found = re.search(r'\bid="(gb-\w+)"', made)
    assert found is not None
    return made, found[1]
