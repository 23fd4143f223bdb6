"""Steps of the pool in PyTorch's form, which PyTorch's own viewer reads, the page, and settings of the allocator."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau._backends.cuda.memory.settings import Settings, settings_of
from flambeau._backends.cuda.runtime.driver import driver

cuda = torch.cuda
MIB = 1 << 20


def _bytes(count: int) -> Any:
    return torch.empty(count, dtype=torch.uint8, device="cuda")


@pytest.fixture
def _recorded() -> Iterator[None]:
    cuda.empty_cache()
    cuda.memory._record_memory_history(max_entries=1000, clear_history=True)
    yield
    cuda.memory._record_memory_history(enabled=None)


def _make() -> Any:
    return _bytes(25 * MIB)


@pytest.mark.usefixtures("_recorded")
def test_every_step_is_recorded_with_its_lines() -> None:
    held = _make()
    address = held.data_ptr()
    del held
    cuda.empty_cache()
    snapshot: Any = cuda.memory._snapshot()
    steps = [each for each in snapshot["device_traces"][0] if each.get("addr") == address]
    assert [each["action"] for each in steps] == [
        "segment_alloc", "alloc", "free_requested", "free_completed", "segment_free",
    ]  # fmt: skip
    assert [each["size"] for each in steps] == [26 * MIB, 25 * MIB, 25 * MIB, 25 * MIB, 26 * MIB]
    names = [frame["name"] for frame in steps[1]["frames"] if frame["filename"] == __file__]
    assert names[:3] == ["_bytes", "_make", "test_every_step_is_recorded_with_its_lines"]
    assert all(first["time_us"] <= second["time_us"] for first, second in pairwise(steps))


@pytest.mark.usefixtures("_recorded")
def test_a_block_that_another_stream_uses_is_completed_later() -> None:
    side = cuda.Stream()
    held = _make()
    address = held.data_ptr()
    held.record_stream(side)
    del held
    cuda.synchronize()
    cuda.memory_allocated()
    snapshot: Any = cuda.memory._snapshot()
    steps = [each["action"] for each in snapshot["device_traces"][0] if each.get("addr") == address]
    assert steps == ["segment_alloc", "alloc", "free_requested", "free_completed"]


@pytest.mark.usefixtures("_recorded")
def test_requests_that_fail_are_recorded() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        _bytes(cuda.mem_get_info()[1] * 2)
    snapshot: Any = cuda.memory._snapshot()
    (step,) = [each for each in snapshot["device_traces"][0] if each["action"] == "oom"]
    assert step["size"] == cuda.mem_get_info()[1] * 2
    assert step["device_free"] > 0
    assert "addr" not in step


@pytest.mark.usefixtures("_recorded")
def test_pytorch_shows_a_snapshot(tmp_path: Path) -> None:
    viewer: Any = importlib.import_module("torch.cuda._memory_viz")
    net: Any = torch.nn.Linear(64, 64).cuda()
    net(torch.ones(8, 64, device="cuda")).sum().backward()
    path = tmp_path / "snapshot.pickle"
    cuda.memory._dump_snapshot(str(path))
    snapshot = pickle.loads(path.read_bytes())
    assert "free completed" in viewer.trace(snapshot)  # no segment is new where other tests have left one
    assert "segments: " in viewer.segsum(snapshot)
    for page in (viewer.trace_plot(snapshot), viewer.segment_plot(snapshot)):
        assert page.lstrip().startswith("<")


@pytest.mark.usefixtures("_recorded")
def test_the_page_shows_what_was_live_at_the_peak(tmp_path: Path) -> None:
    first = _make()
    second = _bytes(3 * MIB)
    del first
    cuda.memory._dump_snapshot(str(tmp_path / "memory.html"))
    page = (tmp_path / "memory.html").read_text()
    assert "Live at the peak, by line" in page
    assert "25 MiB" in page or "28 MiB" in page
    assert f"{__file__}:" in page
    assert "<polygon" in page
    assert "<script" not in page
    del second


def test_only_the_last_steps_are_kept() -> None:
    cuda.memory._record_memory_history(max_entries=5)
    try:
        for _ in range(20):
            _bytes(100)
        snapshot: Any = cuda.memory._snapshot()
        assert len(snapshot["device_traces"][0]) == 5
    finally:
        cuda.memory._record_memory_history(enabled=None)


# ----- settings -------------------------------------------------------------------------------------------------------


@pytest.fixture
def _settings() -> Iterator[None]:
    """The settings of before are there afterwards."""
    cuda.empty_cache()
    pool = driver().pool
    before, limit = dict(vars(pool.settings)), pool.limit
    yield
    vars(pool.settings).update(before)
    pool.limit = limit
    for stand in pool._stands.values():
        stand.homes.clear()
    cuda.empty_cache()


@pytest.mark.usefixtures("_settings")
def test_large_blocks_are_not_cut() -> None:
    cuda.memory._set_allocator_settings("max_split_size_mb:32")
    assert cuda.memory_stats()["max_split_size"] == 32 * MIB
    held = _bytes(64 * MIB)
    address = held.data_ptr()
    del held
    small = _bytes(10 * MIB)  # without the setting it would be cut from the 64
    assert not address <= small.data_ptr() < address + 64 * MIB
    again = _bytes(60 * MIB)
    assert again.data_ptr() == address  # within the rounding, whole
    del small, again


@pytest.mark.usefixtures("_settings")
def test_sizes_are_rounded_to_parts_of_powers_of_two() -> None:
    cuda.memory._set_allocator_settings("roundup_power2_divisions:4")
    before = cuda.memory_allocated()
    held = _bytes(1200 * 1024)
    assert cuda.memory_allocated() - before == 1280 * 1024
    del held


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("roundup_power2_divisions:4", 1200, 1536), ("roundup_power2_divisions:4", 5000, 5120),
        ("roundup_power2_divisions:[1:8,>:2]", 1200 * 1024, 1536 * 1024),
        ("roundup_power2_divisions:[4:8,>:2]", 1200 * 1024, 1280 * 1024),
        ("roundup_power2_divisions:4", 4096, 4096), ("max_split_size_mb:64", 700, 1024),
    ],
)  # fmt: skip
def test_rounding(text: str, given: int, expected: int) -> None:
    settings = Settings()
    settings.read(text)
    assert settings.rounded(given, 512) == expected


@pytest.mark.usefixtures("_settings")
def test_unused_segments_go_back_above_the_threshold() -> None:
    total = cuda.mem_get_info()[1]
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + 100 * MIB) / total)
    cuda.memory._set_allocator_settings("garbage_collection_threshold:0.6")
    unused = _bytes(40 * MIB)
    del unused
    returned = cuda.memory_stats()["num_device_free"]
    held = _bytes(50 * MIB)
    assert cuda.memory_stats()["num_device_free"] == returned + 1
    del held


@pytest.mark.usefixtures("_settings")
def test_a_fraction_in_the_settings() -> None:
    cuda.memory._set_allocator_settings("per_process_memory_fraction:0.5")
    assert cuda.get_per_process_memory_fraction() == pytest.approx(0.5)
    with pytest.raises(torch.OutOfMemoryError, match="allowed"):
        _bytes(int(cuda.mem_get_info()[1] * 0.6))


def test_settings_of_the_environment() -> None:
    text = "max_split_size_mb:128, garbage_collection_threshold:0.8,pinned_use_background_threads:True"
    found = settings_of({"PYTORCH_CUDA_ALLOC_CONF": text})
    assert (found.max_split_size, found.collection_threshold) == (128 * MIB, 0.8)
    assert settings_of({"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}).max_split_size == 64 * MIB
    for wrong in ("unheard_of:1", "max_split_size_mb:x", "max_split_size_mb:5", "garbage_collection_threshold:2"):
        with pytest.raises(RuntimeError):
            Settings().read(wrong)
    assert settings_of({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}).expandable
