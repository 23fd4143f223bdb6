"""The pool of a device's memory: sizes and numbers as PyTorch's, queues, pools of their own, running out."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import flambeau as torch
from flambeau._backends.cuda.memory.pool import Pool
from flambeau._backends.cuda.runtime.driver import driver
from tests.cuda.on_device.conftest import is_simulated

cuda = torch.cuda
KIB, MIB = 1 << 10, 1 << 20


def _bytes(count: int) -> Any:
    return torch.empty(count, dtype=torch.uint8, device="cuda")


@pytest.fixture(autouse=True)
def _empty() -> None:
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()


@pytest.mark.parametrize(
    ("wanted", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (9 * MIB, 9 * MIB, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (11 * MIB - 5, 12 * MIB, 12 * MIB),  # too little would be left
        (12 * MIB + 1, 12 * MIB + 512, 14 * MIB),
    ],
)
def test_sizes_are_those_of_pytorchs_allocator(wanted: int, block: int, segment: int) -> None:
    allocated, reserved = cuda.memory_allocated(), cuda.memory_reserved()
    with cuda.use_mem_pool(cuda.MemPool()):  # what others left in use may have room
        held = _bytes(wanted)
    assert cuda.memory_allocated() - allocated == block
    assert cuda.memory_reserved() - reserved == segment
    del held
    assert cuda.memory_allocated() == allocated
    assert cuda.memory_reserved() - reserved == segment  # it is kept
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved


@pytest.mark.parametrize("others", [0, 64])
def test_freed_memory_is_used_again_and_neighbours_are_joined(others: int) -> None:
    held = _bytes(others * MIB)  # it may be little beside what is in use
    parts = [_bytes(2 * MIB) for _ in range(9)]
    reserved = cuda.memory_reserved()
    places = [each.data_ptr() for each in parts]
    del parts[2], parts[4]
    again = _bytes(2 * MIB)
    assert again.data_ptr() in places
    parts.clear()
    del again
    large = _bytes(18 * MIB)
    assert cuda.memory_reserved() == reserved
    assert large.data_ptr() == min(places)
    del held


def test_equal_steps_get_equal_addresses() -> None:
    def step() -> list[int]:
        first, second, third = (_bytes(4 * KIB) for _ in range(3))
        places = [each.data_ptr() for each in (first, second, third)]
        del second, first  # another order than that in which they were taken
        fourth = _bytes(4 * KIB)
        return [*places, fourth.data_ptr()]

    step()
    assert step() == step() == step()


def test_a_block_that_is_larger_than_its_request_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    large = _bytes(11 * MIB - 5)  # a whole segment: too little would be left
    place = large.data_ptr()
    del large
    monkeypatch.setattr(Pool, "_found", None)  # nobody looks for another one
    assert _bytes(11 * MIB - 5).data_ptr() == place


def test_peaks_and_sums() -> None:
    cuda.reset_peak_memory_stats()
    cuda.reset_accumulated_memory_stats()
    before = cuda.memory_allocated()
    for _ in range(5):
        _bytes(3 * MIB)
    held = [_bytes(KIB), _bytes(KIB)]
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == cuda.max_memory_allocated() == before + 3 * MIB
    assert stats["allocation.large_pool.allocated"] == stats["allocation.large_pool.freed"] == 5
    assert stats["allocation.small_pool.allocated"] == 2
    assert stats["allocated_bytes.small_pool.allocated"] == 2 * KIB
    assert stats["requested_bytes.large_pool.allocated"] == 15 * MIB
    assert cuda.memory_stats_as_nested_dict()["allocation"]["small_pool"]["freed"] == 0
    del held
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == cuda.memory_allocated() == before


def test_old_names() -> None:
    held = _bytes(KIB)
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert cuda.memory_cached() == cuda.memory_reserved() > 0
    with pytest.warns(FutureWarning, match="max_memory_reserved"):
        assert cuda.max_memory_cached() >= cuda.memory_reserved()
    del held


def test_summary() -> None:
    held = _bytes(3 * MIB)
    text = cuda.memory_summary()
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.count("|") == 6}
    assert "PyTorch CUDA memory summary, device ID 0" in text
    assert set(rows) >= {"Allocated memory", "from large pool", "GPU reserved segments", "Non-releasable allocs"}
    assert len({len(line) for line in text.splitlines()}) == 1
    assert len(cuda.memory_summary(abbreviated=True)) < len(text)
    del held


def test_snapshot_shows_who_asked() -> None:
    cuda.memory._record_memory_history()
    try:
        held = _bytes(5 * MIB)
        blocks = [block for segment in cuda.memory_snapshot() for block in segment["blocks"]]
        (own,) = [block for block in blocks if block["address"] == held.data_ptr()]
        assert (own["size"], own["requested_size"], own["state"]) == (5 * MIB, 5 * MIB, "active_allocated")
        assert own["frames"][0]["filename"] == __file__
    finally:
        cuda.memory._record_memory_history(enabled=None)
    for segment in cuda.memory_snapshot():
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]


def test_a_block_that_another_queue_uses_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    side = cuda.Stream()
    held = _bytes(7 * MIB)
    place = held.data_ptr()
    held.record_stream(side)
    if is_simulated():
        monkeypatch.setattr(driver().library.Event, "held", True)
    else:
        with cuda.stream(side):
            cuda._sleep(1 << 28)
    before = cuda.memory_stats()["active_bytes.all.current"]
    del held
    assert cuda.memory_stats()["active_bytes.all.current"] == before
    assert _bytes(7 * MIB).data_ptr() != place
    monkeypatch.undo()
    side.synchronize()
    gc.collect()
    found = [_bytes(7 * MIB) for _ in range(3)]
    assert place in [each.data_ptr() for each in found]


def test_queues_do_not_share_free_memory() -> None:
    place = _bytes(6 * MIB).data_ptr()
    with cuda.stream(cuda.Stream()):
        other = _bytes(6 * MIB)
    assert other.data_ptr() != place
    assert _bytes(6 * MIB).data_ptr() == place


def test_a_pool_of_its_own() -> None:
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        inside = _bytes(MIB)
    outside = _bytes(MIB)
    (segment,) = pool.snapshot()
    assert segment["address"] <= inside.data_ptr() < segment["address"] + segment["total_size"]
    assert not segment["address"] <= outside.data_ptr() < segment["address"] + segment["total_size"]
    assert pool.use_count() == 1
    del inside
    cuda.empty_cache()
    assert pool.snapshot()
    number = pool.id
    del pool
    cuda.empty_cache()
    assert not cuda.memory_snapshot(number)


def test_a_pool_that_is_the_last_resort() -> None:
    """Its free blocks serve others where the device has nothing left; a pool that is none of these never does."""
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    for use_on_oom in (False, True):
        pool = torch.cuda.MemPool(use_on_oom=use_on_oom)
        with torch.cuda.use_mem_pool(pool):
            x = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
        place = x.data_ptr()
        del x
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (1 << 20)) / total)
        try:
            if use_on_oom:
                y = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
                assert y.data_ptr() == place
                with pytest.raises(torch.OutOfMemoryError):
                    torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
                del y
            else:
                with pytest.raises(torch.OutOfMemoryError):
                    torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        del pool
        torch.cuda.empty_cache()


def test_a_pool_that_never_cuts_segments() -> None:
    sizes = (1000, 3 << 20, 12 << 20)
    for no_split in (False, True):
        pool = torch.cuda.MemPool(no_split=no_split)
        with torch.cuda.use_mem_pool(pool):
            kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes for _ in range(2)]
        found = [len(each["blocks"]) for each in pool.snapshot()]
        assert len(found) == (6 if no_split else 3)
        assert (max(found) == 1) == no_split
        del kept


def test_memory_for_others() -> None:
    before = cuda.memory_allocated()
    place = cuda.caching_allocator_alloc(1000)
    assert cuda.memory_allocated() == before + 1024
    cuda.caching_allocator_delete(place)
    assert cuda.memory_allocated() == before
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        cuda.caching_allocator_delete(place)


def test_nothing_is_kept_if_nobody_wants_it() -> None:
    with cuda.memory.caching_allocator_disabled():
        held = _bytes(30 * MIB)
        reserved = cuda.memory_reserved()
        del held
        cuda.memory_allocated()
        assert cuda.memory_reserved() == reserved - 30 * MIB


def test_a_fraction_of_the_device_and_running_out_of_it() -> None:
    total = cuda.mem_get_info()[1]
    kept = torch.zeros(5 * MIB, dtype=torch.uint8, device="cuda")
    limit = cuda.memory_reserved() + 64 * MIB
    cuda.set_per_process_memory_fraction(limit / total)
    try:
        assert cuda.get_per_process_memory_fraction() == pytest.approx(limit / total)
        failures = cuda.memory_stats()["num_ooms"]
        with pytest.raises(torch.OutOfMemoryError) as caught:
            _bytes(200 * MIB)
        text = str(caught.value)
        assert "CUDA out of memory. Tried to allocate 200 MiB" in text
        assert "reserved but unallocated" in text
        assert "held as 'kept'" in text
        assert cuda.memory_stats()["num_ooms"] == failures + 1
        assert cuda.memory_stats()["num_alloc_retries"] > 0
        assert int(kept.sum()) == 0
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert _bytes(200 * MIB).numel() == 200 * MIB


def test_training_goes_on_after_running_out() -> None:
    torch.manual_seed(0)
    net = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(rows: int) -> None:
        optimizer.zero_grad()
        net(torch.ones(rows, 256, device="cuda")).square().mean().backward()
        optimizer.step()

    step(8)
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + 16 * MIB) / cuda.mem_get_info()[1])
    try:
        with pytest.raises(torch.OutOfMemoryError):
            step(40_000)
        step(8)
        assert all(bool(each.isfinite().all()) for each in net.parameters())
    finally:
        cuda.set_per_process_memory_fraction(1.0)


def test_pinned_memory() -> None:
    tensor = torch.arange(1000.0).pin_memory()
    assert tensor.is_pinned()
    assert tensor.untyped_storage().is_pinned()
    assert not torch.ones(3).is_pinned()
    assert torch.equal(tensor.cuda(non_blocking=True).cpu(), torch.arange(1000.0))
    used = cuda.host_memory_stats()["active_bytes.current"]
    place = tensor.data_ptr()
    cuda.synchronize()
    del tensor
    assert cuda.host_memory_stats()["active_bytes.current"] == used - 4096
    assert torch.arange(900.0).pin_memory().data_ptr() == place


def test_copies_that_nobody_waits_for() -> None:
    source = torch.arange(5000.0).pin_memory()
    cuda.set_sync_debug_mode("error")
    there = source.to("cuda", non_blocking=True)
    there.copy_(source, non_blocking=True)
    back = (there * 2).to("cpu", non_blocking=True)
    assert back.is_pinned()
    cuda.synchronize()
    assert torch.equal(back, source * 2)
