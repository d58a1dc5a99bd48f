"""Size sweep figure: one program at many sizes, how long the host worked, how long the device (PyTorch has no twin).

Where the two lines meet, launch overhead ends: to the left the device waits for the host, to the right the host is
ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._axes import Scale, count_label, log_ticks, plain_number, polyline
from .svg import Svg, group, num, path, text

WIDTH, HEIGHT = 620.0, 250.0
_LEFT, _TOP, _BOTTOM, _RIGHT = 64.0, 30.0, 196.0, 600.0
LINES = (("host busy", "r4"), ("device busy", "r1"), ("all done", "r3"))


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The program at one size: elements, and how long host and device worked and all took, in microseconds."""

    size: int
    host_us: float
    device_us: float
    total_us: float


def crossing(points: Sequence[SweepPoint]) -> int | None:
    """The smallest measured size from which on the device works longer than the host; None where there is none."""
    longer = None
    for point in sorted(points, key=lambda each: -each.size):
        if point.device_us <= point.host_us:
            break
        longer = point.size
    return longer


def in_words(points: Sequence[SweepPoint]) -> str:
    """Who is the slower one, and from which size on."""
    at = crossing(points)
    if at is None:
        return "At every size the host works longer than the device: launching sets the pace."
    if at == min(point.size for point in points):
        return "At every size the device works longer than the host: the kernels set the pace."
    return f"From {at:,} elements on the device works longer than the host; below that launching sets the pace."


def sweep_figure(points: Sequence[SweepPoint], at: int = 0, title: str = "") -> Svg:
    """Three lines over size on logarithmic axes: host busy, device busy, all done; a marker at size `at`.

    ValueError without points.
    """
    if not points:
        raise ValueError("sweep_figure: there are no points to draw.")
    across, up = axes(points)
    parts = [text(_LEFT, 16, title or "time over size, µs", "b", size=12.5)]
    for tick in log_ticks(up.low, up.high, 6):
        parts.append(path(f"M{num(_LEFT)} {num(up(tick))}H{num(_RIGHT)}", "grid"))
        parts.append(text(_LEFT - 7, up(tick) + 4, plain_number(tick), "m", "end", 11))
    for tick in log_ticks(across.low, across.high, 8):
        parts.append(path(f"M{num(across(tick))} {num(_TOP)}V{num(_BOTTOM)}", "grid"))
        parts.append(text(across(tick), _BOTTOM + 16, count_label(tick), "m", "middle", 11))
    parts.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 32, "elements", "m", "middle", 11))
    if at:
        parts.append(path(f"M{num(across(at))} {num(_TOP)}V{num(_BOTTOM)}", "now"))
    x = _LEFT
    for (name, hue), values in zip(LINES, curves(points), strict=True):
        line = [(across(size), up(us)) for size, us in values]
        dots = "".join(f'<circle class="d-{hue}" cx="{num(a)}" cy="{num(b)}" r="2.6"/>' for a, b in line)
        parts.append(group(path(polyline(line), f"l-{hue}") + dots, "", name))
        parts.append(path(f"M{num(x)} {num(HEIGHT - 10)}h18", f"l-{hue}") + text(x + 24, HEIGHT - 6, name, size=11))
        x += 130
    return Svg(WIDTH, HEIGHT, title or "time over size", in_words(points), "".join(parts), _RULES)


_RULES = (
    "".join(
        f"@FIG@ .l-{hue}{{fill:none;stroke:var(--gb-{hue}-line);stroke-width:2}}"
        f"@FIG@ .d-{hue}{{fill:var(--gb-{hue}-line)}}"
        for _, hue in LINES
    )
    + "@FIG@ .grid{fill:none;stroke:var(--gb-line);stroke-width:.75;opacity:.6}"
    "@FIG@ .now{fill:none;stroke:var(--gb-lit);stroke-width:1.5;stroke-dasharray:3 3}"
)


def curves(points: Sequence[SweepPoint]) -> tuple[tuple[tuple[int, float], ...], ...]:
    """(size, microseconds) from the smallest size on, for each of LINES."""
    ordered = sorted(points, key=lambda each: each.size)
    return (
        tuple((each.size, each.host_us) for each in ordered),
        tuple((each.size, each.device_us) for each in ordered),
        tuple((each.size, each.total_us) for each in ordered),
    )


def axes(points: Sequence[SweepPoint]) -> tuple[Scale, Scale]:
    """Elements -> x, microseconds -> y."""
    sizes = [each.size for each in points]
    times = [us for each in points for us in (each.host_us, each.device_us, each.total_us) if us > 0] or [1.0]
    across = Scale(min(sizes), max(*sizes, 2 * min(sizes)), _LEFT, _RIGHT - 8, log=True)
    return across, Scale(max(min(times) * 0.7, 1e-3), max(times) * 1.4, _BOTTOM, _TOP, log=True)
