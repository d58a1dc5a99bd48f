"""Facts about the simulated device's memory: rounding, splitting, reuse, statistics, running out."""

import dataclasses
import gc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassbox import mini
from glassbox.mini import sim
from glassbox.mini.c10.device import device
from glassbox.mini.c10.tensor_impl import TensorImpl
from glassbox.mini.sim import memory
from glassbox.mini.sim.allocator import CachingAllocator

MIB = 1 << 20
EMPTY = sim.launch(
    "empty.memory_format",
    lambda ks, nbytes: TensorImpl.adopt(np.empty(nbytes, np.uint8), mini.uint8, device("sim")),
)


def fill_(ks: int, t: TensorImpl, value: float) -> TensorImpl:
    t.strided_array()[...] = value
    return t


FILL = sim.launch("fill_.Scalar", fill_)


@pytest.fixture(autouse=True)
def fresh_device() -> Iterator[None]:
    before, check = sim.cost_model(), sim.race_check()
    sim.set_race_check("raise")
    gc.collect()
    # Tensors that other tests have left get their memory when they are used again.
    for place in memory._holdings.values():
        memory._give_back(place)
    memory._holdings.clear()
    sim.reset()
    yield
    sim.set_cost_model(before)
    sim.set_race_check(check)
    sim.reset()


def empty(nbytes: int) -> TensorImpl:
    return EMPTY(0, nbytes)


def address(tensor: TensorImpl) -> int:
    """Of the block whose requested size is the tensor's: tests give each tensor a size of its own."""
    (found,) = (
        block["address"]
        for segment in sim.memory_snapshot()
        for block in segment["blocks"]
        if block["requested_size"] == tensor._storage.nbytes()
    )
    return found


@pytest.mark.parametrize(
    ("nbytes", "block", "segment"),
    [
        (0, 0, 0),
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        # A large block keeps a rest of up to 1 MiB.
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),
        (13 * MIB, 14 * MIB, 14 * MIB),
    ],
)
def test_blocks_and_segments_have_pytorchs_sizes(nbytes: int, block: int, segment: int) -> None:
    x = empty(nbytes)
    assert (sim.memory_allocated(), sim.memory_reserved()) == (block, segment)
    stats = sim.memory_stats()
    assert stats["requested_bytes.all.current"] == x.numel() == nbytes
    assert stats["inactive_split_bytes.all.current"] == segment - block
    del x
    assert (sim.memory_allocated(), sim.memory_reserved()) == (0, segment)
    sim.empty_cache()
    assert sim.memory_reserved() == 0


def test_a_view_takes_no_memory_and_keeps_its_storages() -> None:
    x = empty(4096)
    view = x.alias((1,), (1,), 7)
    FILL(0, view, 1)
    assert sim.memory_allocated() == 4096
    del x
    assert sim.memory_allocated() == 4096
    del view
    assert sim.memory_allocated() == 0


def test_what_is_freed_is_given_out_again_at_once_on_its_stream_only() -> None:
    x = empty(1000)
    place = address(x)
    del x
    with sim.stream(sim.Stream()):
        other = empty(1001)
    y = empty(1002)
    assert address(y) == place != address(other)
    assert sim.memory_stats()["num_device_alloc"] == 2
    assert {segment["stream"] for segment in sim.memory_snapshot()} == {0, 1}


def test_the_smallest_block_that_fits_is_split_and_neighbours_are_joined_again() -> None:
    a, b, c, d = (empty(n) for n in (512, 2000, 512, 1000))
    hole = address(b)
    del b
    small = empty(700)
    assert address(small) == hole
    assert sim.memory_stats()["inactive_split.all.current"] == 2
    del a, c, d, small
    (segment,) = sim.memory_snapshot()
    assert [(block["size"], block["state"]) for block in segment["blocks"]] == [(2 * MIB, "inactive")]
    assert sim.memory_stats()["inactive_split.all.current"] == 0


def test_memory_that_another_stream_uses_waits_for_it_after_record_stream() -> None:
    side = sim.Stream()
    x = empty(600)
    place = address(x)
    with sim.stream(side):
        side.wait_stream(sim.default_stream())
        FILL(0, x, 1)
        sim.spin(1000)
    sim.record_stream(x, side)
    del x
    assert sim.memory_allocated() == 0 and sim.memory_stats()["active_bytes.all.current"] == 1024
    assert [b["state"] for s in sim.memory_snapshot() for b in s["blocks"]] == [
        "active_awaiting_free",
        "inactive",
    ]
    early = empty(601)
    assert address(early) != place
    side.synchronize()
    late = empty(602)
    assert address(late) == place
    FILL(0, late, 2)
    assert sim.races() == ()


def test_record_stream_on_the_tensors_own_stream_changes_nothing() -> None:
    x = empty(600)
    sim.record_stream(x, sim.current_stream())
    sim.spin(1000)
    del x
    assert sim.memory_stats()["active_bytes.all.current"] == 0
    with pytest.raises(TypeError, match="tensor"):
        sim.record_stream(3, sim.current_stream())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Stream"):
        sim.record_stream(empty(1), "side")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="cpu"):
        sim.record_stream(mini.zeros(2), sim.current_stream())


def test_peaks_and_totals() -> None:
    x = empty(1024)
    y = empty(2048)
    del x
    stats = sim.memory_stats()
    assert [stats[f"allocated_bytes.all.{w}"] for w in ("current", "peak", "allocated", "freed")] == [
        2048, 3072, 3072, 1024,
    ]  # fmt: skip
    assert sim.max_memory_allocated() == 3072
    sim.reset_peak_memory_stats()
    assert sim.max_memory_allocated() == 2048 and sim.max_memory_reserved() == 2 * MIB
    assert list(stats) == sorted(stats)
    assert "3.00 KiB" in sim.memory_summary()
    del y


def test_running_out_says_how_much_and_of_what_and_can_be_survived() -> None:
    sim.set_cost_model(dataclasses.replace(sim.cost_model(), memory_bytes=30 * MIB))
    x = empty(20 * MIB)
    with pytest.raises(sim.OutOfMemoryError) as caught:
        empty(11 * MIB)
    text = str(caught.value)
    assert "Tried to allocate 11.00 MiB" in text
    assert "capacity of 30.00 MiB of which 10.00 MiB is free" in text
    assert "hold 20.00 MiB, and 0 bytes is reserved" in text
    assert isinstance(caught.value, RuntimeError)
    assert sim.memory_stats()["num_ooms"] == 1
    assert sim.mem_get_info() == (10 * MIB, 30 * MIB)
    del x
    # The cache gives its segment back to make room.
    assert empty(29 * MIB).numel() == 29 * MIB
    assert sim.memory_stats()["num_alloc_retries"] == 2


def test_a_miss_takes_the_hosts_time_and_a_hit_none() -> None:
    x = empty(100)
    assert sim.now() == sim.cost_model().malloc_us > 0
    del x
    empty(100)
    assert sim.now() == sim.cost_model().malloc_us
    assert [event.kind for event in sim.timeline().events] == ["malloc"]


def test_a_storage_that_grows_gets_another_block() -> None:
    x = empty(100)
    bigger = np.zeros(5000, np.uint8)

    def resize(ks: int, t: TensorImpl, size: tuple[int, ...]) -> TensorImpl:
        t._storage.owner = bigger
        return t

    sim.launch("resize_", resize)(0, x, (5000,))
    assert sim.memory_allocated() == 5120
    del x
    assert sim.memory_allocated() == 0
    assert sim.memory_stats()["allocation.all.freed"] == 2


def test_a_reset_keeps_what_lives_and_forgets_the_rest() -> None:
    x, y = empty(100), empty(3 * MIB)
    del y
    sim.reset()
    assert (sim.memory_allocated(), sim.memory_reserved(), sim.max_memory_allocated()) == (512, 2 * MIB, 512)
    del x
    assert sim.memory_allocated() == 0


SIZES = st.one_of(st.integers(1, 3000), st.integers(1, 3 * MIB), st.integers(1, 40 * MIB))


@given(st.lists(st.tuples(st.booleans(), SIZES, st.integers(0, 1)), max_size=40))
def test_blocks_never_overlap_and_the_statistics_add_up(steps: list[tuple[bool, int, int]]) -> None:
    allocator = CachingAllocator(1 << 40)
    live = []
    for free, nbytes, stream in steps:
        if free and live:
            allocator.free(live.pop(nbytes % len(live)))
        else:
            block = allocator.cached(nbytes, stream) or allocator.new_segment(nbytes, stream)
            assert block is not None and block.size >= nbytes and block.address % 512 == 0
            assert block.stream == stream
            live.append(block)
        seen, reserved = [], 0
        for start, first in allocator.segments.items():
            position, was_free = start, False
            for block in allocator.blocks(first):
                assert block.address == position and block.size > 0
                assert not (was_free and not block.allocated), "free neighbours are joined"
                position, was_free = position + block.size, not block.allocated
                seen += [block] if block.allocated else []
            reserved += position - start
        assert {id(block) for block in seen} == {id(block) for block in live}
        assert allocator.stats["allocated_bytes.all"][0] == sum(block.size for block in live)
        assert allocator.stats["reserved_bytes.all"][0] == reserved
        for name in ("allocated_bytes", "reserved_bytes", "inactive_split_bytes", "allocation"):
            both = [allocator.stats[f"{name}.{pool}_pool"] for pool in ("small", "large")]
            assert allocator.stats[f"{name}.all"][0] == sum(each[0] for each in both)
    for block in live:
        allocator.free(block)
    allocator.release_cached()
    assert not allocator.segments and all(stat[0] == 0 for stat in allocator.stats.values())
