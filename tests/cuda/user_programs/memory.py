"""Memory of the device: statistics, limits, pools, pinned memory; streams, events and graphs are in `streams.py`."""

from __future__ import annotations

import gc
from typing import Any

from .registry import program, refusal


def _fresh(torch: Any) -> None:
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


@program("memory", cuda=True)
def bytes_of_tensors(torch: Any, device: str) -> Any:
    _fresh(torch)
    before, seen = torch.cuda.memory_allocated(), []
    tensors = [torch.empty(size, device=device) for size in (1, 100, 1000, 300_000)]
    seen.append(torch.cuda.memory_allocated() - before)
    view = tensors[-1][5:]
    del tensors
    seen.append(torch.cuda.memory_allocated() - before)
    del view
    seen.append(torch.cuda.memory_allocated() - before)
    return seen


@program("memory", cuda=True)
def peak_of_a_computation(torch: Any, device: str) -> Any:
    _fresh(torch)
    before = torch.cuda.memory_allocated()
    x = torch.ones(1 << 20, device=device)
    y = x * 2
    z = y + 1
    del y
    peak = torch.cuda.max_memory_allocated() - before
    torch.cuda.reset_peak_memory_stats()
    after = torch.cuda.max_memory_allocated() - before
    return peak, after, z.sum(), torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()


@program("memory", cuda=True)
def out_of_memory_and_on(torch: Any, device: str) -> Any:
    seen: list[Any] = [refusal(lambda: torch.empty(1 << 50, device=device), "CUDA out of memory", "Tried to allocate")]
    seen.append(isinstance(torch.cuda.OutOfMemoryError(), RuntimeError))
    try:
        torch.empty(1 << 50, device=device)
    except torch.cuda.OutOfMemoryError:
        seen.append("caught")
    return seen, torch.ones(3, device=device) + 1


@program("memory", cuda=True)
def fraction_of_the_memory(torch: Any, device: str) -> Any:
    _fresh(torch)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.25)
    try:
        found = refusal(lambda: torch.empty(total // 2, dtype=torch.uint8, device=device), "out of memory", "allowed")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return found, torch.cuda.get_per_process_memory_fraction()


@program("memory", cuda=True)
def statistics(torch: Any, device: str) -> Any:
    stats = torch.cuda.memory_stats()
    wanted = (
        "allocation.all.current allocated_bytes.all.peak reserved_bytes.large_pool.current num_alloc_retries num_ooms"
    )
    free, total = torch.cuda.mem_get_info()
    return (
        [each in stats for each in wanted.split()],
        0 < free <= total,
        "Allocated memory" in torch.cuda.memory_summary(),
    )


@program("memory", cuda=True)
def freed_memory_given_back(torch: Any, device: str) -> Any:
    _fresh(torch)
    before = torch.cuda.memory_reserved()
    x = torch.empty(64 << 20, dtype=torch.uint8, device=device)
    held = torch.cuda.memory_reserved() - before
    del x
    kept = torch.cuda.memory_reserved() - before
    torch.cuda.empty_cache()
    return held, kept, torch.cuda.memory_reserved() - before


@program("memory", cuda=True)
def pool_of_its_own(torch: Any, device: str) -> Any:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.arange(1000, device=device)
    found = [each["segment_pool_id"] == tuple(pool.id) for each in torch.cuda.memory_snapshot()]
    return any(found), (x + 1).sum()


@program("memory", cuda=True)
def snapshot(torch: Any, device: str) -> Any:
    kept = torch.ones(5000, device=device)
    segments = torch.cuda.memory_snapshot()
    wanted = ["device", "address", "total_size", "allocated_size", "active_size", "stream", "segment_type", "blocks"]
    states = {block["state"] for each in segments for block in each["blocks"]}
    return [each in segments[0] for each in wanted], "active_allocated" in states, kept.sum()


@program("memory", cuda=True)
def memory_used_in_two_streams(torch: Any, device: str) -> Any:
    side, totals = torch.cuda.Stream(), []
    for number in range(5):
        x = torch.full((1 << 18,), float(number), device=device)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total = (x * 2).sum()
        x.record_stream(side)
        del x
        torch.zeros(1 << 18, device=device)
        torch.cuda.current_stream().wait_stream(side)
        totals.append(total)
    return totals


@program("memory", cuda=True)
def pinned_copies(torch: Any, device: str) -> Any:
    pinned = torch.arange(1000.0).pin_memory()
    there = pinned.to(device, non_blocking=True)
    back = torch.empty(1000, pin_memory=True)
    back.copy_(there * 2, non_blocking=True)
    torch.cuda.synchronize()
    return pinned.is_pinned(), torch.ones(2).is_pinned(), back, back.is_pinned()


@program("memory", cuda=True)
def loader_with_pinned_memory(torch: Any, device: str) -> Any:
    data = torch.utils.data.TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20))
    loader, seen = torch.utils.data.DataLoader(data, 6, pin_memory=True), []
    for x, y in loader:
        seen += [x.is_pinned(), y.is_pinned(), x.to(device, non_blocking=True).sum(), y.to(device).float().mean()]
    return seen


@program("memory", cuda=True)
def loader_with_workers(torch: Any, device: str) -> Any:
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(12, 2))
    loader = torch.utils.data.DataLoader(data, 5, num_workers=2, pin_memory=True)
    return [(x.is_pinned(), x.to(device, non_blocking=True).sum()) for (x,) in loader]


@program("memory", cuda=True, gpu=True)
def shared_with_other_libraries(torch: Any, device: str) -> Any:
    x = torch.arange(6.0, device=device).reshape(2, 3)
    again = torch.from_dlpack(x)
    again += 1
    interface = x.__cuda_array_interface__
    return x, again.data_ptr() == x.data_ptr(), interface["shape"], interface["typestr"], interface["version"]
