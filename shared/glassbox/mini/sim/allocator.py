"""Allocator: blocks of cached segments, free lists per stream (PyTorch: c10/cuda/CUDACachingAllocator.cpp).

Getting memory from the device is slow, so what is freed is kept and given out again: sizes are rounded to
512 bytes, small requests share segments of 2 MiB, a block that is too large is split, free neighbours are
joined. A free block belongs to the stream that it was allocated on: there it can be reused at once, since
what comes later in a stream runs later. This file knows addresses and sizes, and neither tensors nor time.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MIN_BLOCK = 512
SMALL_SIZE = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
MIN_LARGE_ALLOC = 10 * MIB
ROUND_LARGE = 2 * MIB
_FIRST_ADDRESS = 0x7F00_0000_0000

POOLS = ("all", "small_pool", "large_pool")
_COUNTED = ("allocation", "segment", "active", "inactive_split")
_MEASURED = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")


class OutOfMemoryError(RuntimeError):
    """The device has no room for what was asked."""


class Block:
    """A run of bytes in one segment; previous and next are its neighbours there.

    allocated: it belongs to a tensor; pending: it is freed but another stream may still use it. last, past:
    for the race check, what the memory was used for before, by the block's own stream (count, op, launch)
    and by others (each with low and high addresses).
    """

    __slots__ = (
        "address",
        "size",
        "requested",
        "stream",
        "pool",
        "previous",
        "next",
        "allocated",
        "pending",
        "last",
        "past",
    )

    def __init__(self, address: int, size: int, stream: int, pool: str) -> None:
        self.address = address
        self.size = size
        self.requested = 0
        self.stream = stream
        self.pool = pool
        self.previous: Block | None = None
        self.next: Block | None = None
        self.allocated = False
        self.pending = False
        self.last = (0, "", 0)
        self.past: list[Any] = []

    def is_split(self) -> bool:
        return self.previous is not None or self.next is not None


def round_size(nbytes: int) -> int:
    """The size of the block for a request: a multiple of 512."""
    return max(MIN_BLOCK, -(-nbytes // MIN_BLOCK) * MIN_BLOCK)


def segment_size(size: int) -> int:
    """The size of a new segment for a block of `size` bytes."""
    if size <= SMALL_SIZE:
        return SMALL_SEGMENT
    if size < MIN_LARGE_ALLOC:
        return LARGE_SEGMENT
    return -(-size // ROUND_LARGE) * ROUND_LARGE


class CachingAllocator:
    """Gives out blocks of a device with `capacity` bytes; statistics under PyTorch's names."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.segments: dict[int, Block] = {}
        # (pool, stream) -> free blocks by size, then address: the first that fits is the best.
        self._free: dict[tuple[str, int], list[tuple[int, int, Block]]] = {}
        self._next_address = _FIRST_ADDRESS
        self.stats: dict[str, list[int]] = {
            f"{name}.{pool}": [0, 0, 0, 0] for name in (*_COUNTED, *_MEASURED) for pool in POOLS
        }
        self.counts = dict.fromkeys(
            ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free"), 0
        )

    # Giving out

    def cached(self, nbytes: int, stream: int) -> Block | None:
        """A block from the cache; None if none fits, and new_segment() is needed."""
        size = round_size(nbytes)
        free = self._free.get((_pool(size), stream), [])
        at = bisect_left(free, size, key=_size_of)
        return self._take(free.pop(at)[2], size, nbytes) if at < len(free) else None

    def new_segment(self, nbytes: int, stream: int) -> Block | None:
        """A block cut from a new segment of the device; None if the device is full."""
        size = round_size(nbytes)
        total = segment_size(size)
        if self.reserved() + total > self.capacity:
            return None
        block = Block(self._next_address, total, stream, _pool(size))
        self._next_address += total
        self.segments[block.address] = block
        self.counts["num_device_alloc"] += 1
        self._count("segment", block.pool, 1)
        self._count("reserved_bytes", block.pool, total)
        return self._take(block, size, nbytes)

    def _take(self, block: Block, size: int, nbytes: int) -> Block:
        was_split = block.is_split()
        rest = block.size - size
        if rest >= MIN_BLOCK if block.pool == "small_pool" else rest > SMALL_SIZE:
            tail = Block(block.address + size, rest, block.stream, block.pool)
            tail.previous, tail.next = block, block.next
            if block.next is not None:
                block.next.previous = tail
            block.next = tail
            tail.last = block.last
            tail.past = [each for each in block.past if each.high > tail.address]
            block.past = [each for each in block.past if each.low < tail.address]
            if was_split:
                self._count_inactive(block, -1)
            block.size = size
            self._put(tail)
        elif was_split:
            self._count_inactive(block, -1)
        block.allocated = True
        block.requested = nbytes
        self._count("allocation", block.pool, 1)
        self._count("allocated_bytes", block.pool, block.size)
        self._count("requested_bytes", block.pool, nbytes)
        self._count("active", block.pool, 1)
        self._count("active_bytes", block.pool, block.size)
        return block

    # Taking back

    def free(self, block: Block, pending: bool = False) -> None:
        """The block's tensor is gone. A pending one waits for settle(), since other streams use it still."""
        block.allocated = False
        self._count("allocation", block.pool, -1)
        self._count("allocated_bytes", block.pool, -block.size)
        self._count("requested_bytes", block.pool, -block.requested)
        block.requested = 0
        block.pending = True
        if not pending:
            self.settle(block)

    def settle(self, block: Block) -> None:
        """A freed block that nobody uses any more joins its free neighbours and the free list."""
        block.pending = False
        self._count("active", block.pool, -1)
        self._count("active_bytes", block.pool, -block.size)
        for neighbour in (block.previous, block.next):
            if neighbour is not None and not neighbour.allocated and not neighbour.pending:
                block = self._join(neighbour, block)
        self._put(block)

    def _join(self, free: Block, block: Block) -> Block:
        at = bisect_left(self._free[free.pool, free.stream], (free.size, free.address), key=_place_of)
        del self._free[free.pool, free.stream][at]
        self._count_inactive(free, -1)
        first, second = (free, block) if free.address < block.address else (block, free)
        first.size += second.size
        first.next = second.next
        if second.next is not None:
            second.next.previous = first
        first.last = max(first.last, second.last)
        first.past = list(dict.fromkeys(first.past + second.past))
        return first

    def _put(self, block: Block) -> None:
        if block.is_split():
            self._count_inactive(block, 1)
        insort(
            self._free.setdefault((block.pool, block.stream), []),
            (block.size, block.address, block),
            key=_place_of,
        )

    def release_cached(self) -> int:
        """Give every wholly free segment back to the device; how many."""
        released = 0
        for free in self._free.values():
            for entry in [each for each in free if not each[2].is_split()]:
                block = entry[2]
                free.remove(entry)
                del self.segments[block.address]
                self._count("segment", block.pool, -1)
                self._count("reserved_bytes", block.pool, -block.size)
                released += 1
        self.counts["num_device_free"] += released
        return released

    # Telling

    def reserved(self) -> int:
        return self.stats["reserved_bytes.all"][0]

    def blocks(self, first: Block) -> Iterator[Block]:
        """The blocks of a segment by address."""
        block: Block | None = first
        while block is not None:
            yield block
            block = block.next

    def reset_peaks(self) -> None:
        for stat in self.stats.values():
            stat[1] = stat[0]

    def reset_totals(self) -> None:
        """Start the counts of all that was ever allocated and freed anew."""
        self.reset_peaks()
        for stat in self.stats.values():
            stat[2:] = [stat[0], 0]
        self.counts = dict.fromkeys(self.counts, 0)

    def _count_inactive(self, block: Block, sign: int) -> None:
        self._count("inactive_split", block.pool, sign)
        self._count("inactive_split_bytes", block.pool, sign * block.size)

    def _count(self, name: str, pool: str, change: int) -> None:
        for stat in (self.stats[f"{name}.all"], self.stats[f"{name}.{pool}"]):
            value = stat[0] = stat[0] + change
            if value > stat[1]:
                stat[1] = value
            if change > 0:
                stat[2] += change
            else:
                stat[3] -= change


def _pool(size: int) -> str:
    return "small_pool" if size <= SMALL_SIZE else "large_pool"


def _size_of(entry: tuple[int, int, Block]) -> int:
    return entry[0]


def _place_of(entry: tuple[int, int, Any] | tuple[int, int]) -> tuple[int, int]:
    return entry[0], entry[1]
