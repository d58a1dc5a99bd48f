"""Memory statistics, as PyTorch names them (PyTorch: torch/cuda/memory.py)."""

from typing import Any

from .allocator import POOLS, Block
from .memory import allocator, binary, clear_away
from .runtime import device


def memory_stats() -> dict[str, Any]:
    """All statistics of the allocator under PyTorch's names, as in stats["allocated_bytes.all.current"]."""
    with device.lock:
        clear_away()
        flat: dict[str, Any] = {
            f"{name}.{what}": value
            for name, stat in allocator.stats.items()
            for what, value in zip(("current", "peak", "allocated", "freed"), stat, strict=True)
        }
        return dict(sorted({**flat, **allocator.counts}.items()))


def memory_allocated() -> int:
    """Bytes in blocks that tensors hold."""
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated() -> int:
    """The most that memory_allocated() was since the last reset_peak_memory_stats()."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved() -> int:
    """Bytes in segments that the allocator keeps, in use or not."""
    return memory_stats()["reserved_bytes.all.current"]


def max_memory_reserved() -> int:
    """The most that memory_reserved() was since the last reset_peak_memory_stats()."""
    return memory_stats()["reserved_bytes.all.peak"]


def reset_peak_memory_stats() -> None:
    """Let the peaks start anew from what is held now."""
    with device.lock:
        clear_away()
        allocator.reset_peaks()


def mem_get_info() -> tuple[int, int]:
    """(free, total) bytes of the device, as it sees them: what is reserved is not free."""
    return max(0, allocator.capacity - memory_reserved()), allocator.capacity


def empty_cache() -> None:
    """Give segments that nobody uses back to the device; waits for it if there are any."""
    with device.lock:
        device.check_usable()
        clear_away()
        if allocator.reserved() > allocator.stats["allocated_bytes.all"][0]:
            device.wait_for_all("wait to free memory")
            clear_away()
            allocator.release_cached()


def memory_snapshot() -> list[dict[str, Any]]:
    """The segments by address, each with its blocks: size, requested_size, state (as torch.cuda's)."""
    with device.lock:
        clear_away()
        return [_segment(address, first) for address, first in sorted(allocator.segments.items())]


def _segment(address: int, first: Block) -> dict[str, Any]:
    blocks = list(allocator.blocks(first))
    return {
        "address": address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": sum(block.size for block in blocks if block.allocated),
        "active_size": sum(block.size for block in blocks if block.allocated or block.pending),
        "stream": first.stream,
        "segment_type": first.pool.removesuffix("_pool"),
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested,
                "state": "active_allocated"
                if block.allocated
                else "active_awaiting_free"
                if block.pending
                else "inactive",
            }
            for block in blocks
        ],
    }


def memory_summary() -> str:
    """The main statistics as a table for people."""
    stats = memory_stats()
    lines = [
        f"sim memory: {binary(allocator.capacity)}, {stats['num_ooms']} times out of memory, "
        f"{stats['num_alloc_retries']} retries, {stats['num_device_alloc']} segments taken",
        f"{'':22}{'current':>12}{'peak':>12}{'allocated':>12}{'freed':>12}",
    ]
    for title, name in (
        ("held by tensors", "allocated_bytes"),
        ("asked for by tensors", "requested_bytes"),
        ("in use", "active_bytes"),
        ("reserved", "reserved_bytes"),
        ("free parts of segments", "inactive_split_bytes"),
    ):
        for pool in POOLS:
            label = title if pool == "all" else f"  {pool.replace('_', ' ')}"
            values = (stats[f"{name}.{pool}.{what}"] for what in ("current", "peak", "allocated", "freed"))
            lines.append(f"{label:22}" + "".join(f"{binary(value):>12}" for value in values))
    return "\n".join(lines)
