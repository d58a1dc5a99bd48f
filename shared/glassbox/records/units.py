"""Units: numbers as people read them (PyTorch: torch/autograd/profiler_util.py formats its own)."""

from __future__ import annotations

from collections.abc import Sequence


def human_bytes(n: float) -> str:
    """`n` bytes in decimal units, as disks and GPU tools count: 4000 -> "4 kB"."""
    return _scaled(n, ("B", "kB", "MB", "GB", "TB"))


def human_flops(n: float | None) -> str:
    """3_630_000_000 -> "3.63 G"; "" for None."""
    return "" if n is None else _scaled(n, ("", "k", "M", "G", "T"))


def human_us(us: float | None) -> str:
    """15_234.0 -> "15.2 ms"; "" for None."""
    return "" if us is None else _scaled(us, ("us", "ms", "s"))


def _scaled(value: float, units: Sequence[str]) -> str:
    """Three digits in the unit that leaves less than 1000 of it, after rounding."""
    size, unit = float(value), units[0]
    for unit in units:
        if abs(size) < 999.5 or unit == units[-1]:
            break
        size /= 1000
    digits = f"{size:.3g}" if abs(size) < 999.5 else f"{size:.0f}"
    return f"{digits} {unit}".strip()
