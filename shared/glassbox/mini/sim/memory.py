"""Memory: which storage has which block of the device, and what fits (PyTorch: torch/cuda/memory.py).

The elements lie in the host's own memory; what is simulated is where they would lie on the device and
whether they fit.
"""

import weakref
from collections import deque
from collections.abc import Callable

from ..c10.storage import Storage
from ..c10.tensor_impl import TensorImpl
from . import races, schedule
from .allocator import GIB, KIB, MIB, Block, CachingAllocator, OutOfMemoryError
from .cost import CostModel
from .races import Access
from .runtime import Clock, StreamState, device
from .streams import Stream, current_state


class Holding:
    """A storage on the device, its block (None for no bytes), and the race check's history of its bytes."""

    __slots__ = ("reference", "nbytes", "block", "history", "old", "users")

    def __init__(self, storage: Storage, block: Block | None, when_gone: Callable[["Holding"], None]) -> None:
        self.reference = weakref.ref(storage, lambda _: when_gone(self))
        self.nbytes = storage.owner.nbytes
        self.block = block
        self.history: list[Access] = []
        # Accesses to the memory from before this storage had it.
        self.old: list[Access] = []
        # Streams of record_stream().
        self.users: dict[int, StreamState] = {}


allocator = CachingAllocator(device.cost.memory_bytes)
_holdings: dict[int, Holding] = {}
# A storage can go at any moment, even while the lists are being changed: it is only noted then, and cleared
# away later.
_gone: deque[tuple[int, Holding]] = deque()
# Freed blocks with the (time, clock) that each using stream must reach first.
_pending: list[tuple[Block, list[tuple[int, Clock]]]] = []


def holding(storage: Storage, state: StreamState) -> Holding:
    """The storage's place on the device; one that is new there gets a block of the stream's pool.

    Raises OutOfMemoryError if no room can be made.
    """
    found = _holdings.get(id(storage))
    if found is not None and found.reference() is storage:
        if found.nbytes == storage.owner.nbytes:
            return found
        # resize_ has given it other bytes.
        del _holdings[id(storage)]
        _give_back(found)
    clear_away()
    key = id(storage)
    block = _get_block(storage.owner.nbytes, state) if storage.owner.nbytes else None
    # Bound now: at the interpreter's end tensors outlive this module's names.
    note = _gone.append
    made = Holding(storage, block, lambda gone: note((key, gone)))
    if block is not None:
        made.old = [each.moved(-block.address) for each in block.past]
        block.past = []
        count, op, number = block.last
        if count and not schedule.knows(device.known, block.stream, count):
            made.old.append(Access(block.stream, count, op, True, 0, made.nbytes, None, number, True))
    _holdings[key] = made
    return made


def touch(place: Holding, access: Access, clock: Clock) -> None:
    """Check one access to a storage for races with earlier ones, and remember it."""
    if races.log.mode == "off" or place.block is None:
        return
    if place.old:
        racing = races.add(place.old, access, clock)
        place.old.remove(access)
        races.log.report(racing, access, place.block.address, place.nbytes, True)
    racing = races.add(place.history, access, clock)
    races.log.report(racing, access, place.block.address, place.nbytes, False)


def record_stream(tensor: TensorImpl, stream: Stream) -> None:
    """Say that the stream uses the tensor's memory: once freed, it is reused only after the stream is done.

    Needed where a tensor is used on another stream than the one that it was made on and is dropped before
    the two are ordered. TypeError for anything but a tensor and a stream, RuntimeError for a tensor of
    another device.
    """
    if not isinstance(tensor, TensorImpl):
        raise TypeError(f"record_stream() needs a tensor, got {type(tensor).__name__}")
    if not isinstance(stream, Stream):
        raise TypeError(f"record_stream() needs a sim.Stream, got {type(stream).__name__}")
    if tensor._device.type != "sim":
        raise RuntimeError(f"record_stream() needs a tensor on sim, got one on {tensor._device}")
    with device.lock:
        state = stream._enlist()
        place = holding(tensor._storage, current_state())
        if place.block is not None and place.block.stream != state.index:
            place.users[state.index] = state


def clear_away() -> None:
    """Take back the memory of storages that are gone, and of those that other streams are now done with."""
    while _gone:
        key, place = _gone.popleft()
        if _holdings.get(key) is place:
            del _holdings[key]
        _give_back(place)
    waiting = _pending[:]
    _pending.clear()
    for block, marks in waiting:
        if all(time <= device.now for time, _ in marks):
            for _, clock in marks:
                device.known = schedule.join_clocks(device.known, clock)
            allocator.settle(block)
        else:
            _pending.append((block, marks))


def _give_back(place: Holding) -> None:
    block, place.block = place.block, None
    if block is None:
        return
    for access in (*place.old, *place.history):
        if access.stream == block.stream:
            block.last = max(block.last, (access.count, access.op, access.correlation))
        elif not schedule.knows(device.known, access.stream, access.count):
            block.past.append(access.moved(block.address))
    marks = [(state.end, state.clock) for state in place.users.values()]
    allocator.free(block, pending=bool(marks))
    if marks:
        _pending.append((block, marks))


def _get_block(nbytes: int, state: StreamState) -> Block:
    stream = state.index
    block = allocator.cached(nbytes, stream)
    if block is not None:
        return block
    block = allocator.new_segment(nbytes, stream)
    if block is None and (allocator.reserved() or _pending):
        # Segments go back to the device only when it has nothing left to do with them.
        allocator.counts["num_alloc_retries"] += 1
        device.wait_for_all("wait to free memory")
        clear_away()
        allocator.release_cached()
        block = allocator.new_segment(nbytes, stream)
    if block is None:
        allocator.counts["num_ooms"] += 1
        raise OutOfMemoryError(no_room(nbytes))
    if device.cost.malloc_us:
        device.host_work("malloc", device.cost.malloc_us, "malloc")
    return block


def no_room(nbytes: int) -> str:
    """That so many bytes are not to be had, as PyTorch tells it."""
    allocated = allocator.stats["allocated_bytes.all"][0]
    reserved = allocator.reserved()
    return (
        f"sim out of memory. Tried to allocate {binary(nbytes)}. The device has a total capacity of "
        f"{binary(allocator.capacity)} of which {binary(max(0, allocator.capacity - reserved))} is free. "
        f"Tensors hold {binary(allocated)}, and {binary(reserved - allocated)} is reserved but unallocated. "
        "Free tensors that are not needed, keep less for backward (no_grad, checkpoint), or use "
        "smaller batches."
    )


def _after_reset() -> None:
    # Everything is done at a reset; live tensors keep their memory.
    for place in _holdings.values():
        place.history.clear()
        place.old.clear()
        place.users.clear()
    for block, _ in _pending:
        allocator.settle(block)
    _pending.clear()
    while _gone:
        key, place = _gone.popleft()
        if _holdings.get(key) is place:
            del _holdings[key]
        if place.block is not None:
            allocator.free(place.block)
    allocator.release_cached()
    for first in allocator.segments.values():
        for block in allocator.blocks(first):
            block.last, block.past = (0, "", 0), []
    allocator.reset_totals()


device.at_reset.append(_after_reset)


def set_cost_model(model: CostModel) -> None:
    """Put other constants or another law in place of the device's; TypeError for what is no CostModel."""
    if not isinstance(model, CostModel):
        raise TypeError(f"set_cost_model() takes a sim.CostModel, got {type(model).__name__}")
    with device.lock:
        device.cost = model
        allocator.capacity = model.memory_bytes


def cost_model() -> CostModel:
    """The device's constants."""
    return device.cost


def binary(nbytes: int) -> str:
    """Bytes in powers of 1024, as PyTorch gives them: 2097152 -> "2.00 MiB"."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"
