"""`expandable_segments`: a stream has one segment of large blocks and one of small ones, which grow and shrink."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau._backends.cuda.memory.interprocess import lend
from flambeau._backends.cuda.memory.settings import Settings
from flambeau._backends.cuda.runtime.driver import driver

MIB = 1 << 20
cuda = torch.cuda


@pytest.fixture(autouse=True)
def _expandable() -> Iterator[None]:
    (torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")).sum().item()  # a library keeps memory
    cuda.empty_cache()
    cuda.memory._set_allocator_settings("expandable_segments:True")
    yield
    cuda.memory._set_allocator_settings("expandable_segments:False")
    cuda.set_per_process_memory_fraction(1.0)
    cuda.empty_cache()


def _bytes(size: int) -> Any:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def _own() -> list[dict[str, Any]]:
    """The segments that grow."""
    return [each for each in cuda.memory_snapshot() if each["is_expandable"]]


def test_tensors_that_grow_need_no_memory_beside_what_is_there() -> None:
    """Without it each new length would need a segment of its own, since none before it is large enough."""
    before = cuda.memory_reserved()
    for size in range(20, 200, 20):
        x = _bytes(size * MIB)
        del x
    assert cuda.memory_reserved() - before == 180 * MIB
    (segment,) = _own()
    assert (segment["total_size"], segment["segment_type"]) == (180 * MIB, "large")
    cuda.memory._set_allocator_settings("expandable_segments:False")
    cuda.empty_cache()
    assert (cuda.memory_reserved(), _own()) == (before, [])
    for size in range(20, 200, 20):
        x = _bytes(size * MIB)
        del x
    assert cuda.memory_reserved() - before == sum(range(20, 200, 20)) * MIB


def test_free_memory_in_the_middle_goes_back_and_comes_again() -> None:
    first, middle, last = (_bytes(size * MIB) for size in (40, 100, 40))
    first.fill_(1), middle.fill_(2), last.fill_(3)
    place = middle.data_ptr()
    assert first.data_ptr() + 40 * MIB == place
    del middle
    held = cuda.memory_reserved()
    cuda.empty_cache()
    assert held - cuda.memory_reserved() == 100 * MIB
    assert [each["total_size"] for each in _own()] == [40 * MIB, 40 * MIB]
    again = _bytes(60 * MIB)
    assert again.data_ptr() == place
    again.fill_(4)
    assert [each.max().item() for each in (first, again, last)] == [1, 4, 3]
    assert [each.min().item() for each in (first, again, last)] == [1, 4, 3]
    whole = _bytes(140 * MIB)  # no hole is so large: behind the last one
    assert whole.data_ptr() >= last.data_ptr() + 40 * MIB
    del first, again, last, whole
    cuda.empty_cache()
    assert not _own()


def test_memory_that_lies_scattered_serves_a_large_request() -> None:
    """The device is full, and no free piece is large enough: their memory moves to other addresses."""
    parts = [_bytes(20 * MIB) for _ in range(8)]
    kept = parts[1::2]
    for number, each in enumerate(kept):
        each.fill_(number)
    del parts
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + 8 * MIB) / cuda.mem_get_info()[1])
    whole = _bytes(80 * MIB)
    whole.fill_(9)
    assert [each.max().item() for each in kept] == [0, 1, 2, 3]
    with pytest.raises(torch.OutOfMemoryError):
        _bytes(20 * MIB)
    del whole
    assert _bytes(20 * MIB).numel() == 20 * MIB


def test_small_blocks_streams_and_pools_have_their_own() -> None:
    pool, side = cuda.MemPool(), cuda.Stream()
    with cuda.use_mem_pool(pool):
        x, y = torch.ones(10, device="cuda"), _bytes(5 * MIB)
        with cuda.stream(side):
            z = torch.ones(10, device="cuda")
    cuda.current_stream().wait_stream(side)
    found = pool.snapshot()
    kinds = sorted((each["segment_type"], each["total_size"] // MIB, each["stream"] != 0) for each in found)
    assert kinds == [("large", 20, False), ("small", 2, False), ("small", 2, True)]
    assert all(each["is_expandable"] for each in found)
    assert (x + 1).sum().item() == 20
    assert z.sum().item() == 10
    del x, y, z


def test_training_and_graphs() -> None:
    results = []
    for setting in ("False", "True"):  # what libraries keep for themselves is not in the segment that grows
        cuda.memory._set_allocator_settings(f"expandable_segments:{setting}")
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)).cuda()
        optimizer = torch.optim.Adam(net.parameters())
        losses = []
        for size in (100, 3000, 700, 5000):
            loss = net(torch.ones(size, 64, device="cuda")).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            cuda.empty_cache()
        x, graph = torch.ones(2048, 64, device="cuda"), cuda.CUDAGraph()
        with torch.no_grad(), cuda.graph(graph):
            y = net(x).softmax(1)
        cuda.empty_cache()
        x.mul_(2)
        graph.replay()
        results.append((losses, y.tolist()))
        del net, optimizer, loss, x, y, graph
        cuda.empty_cache()
    assert results[0] == results[1]


@pytest.mark.parametrize("seed", range(3))
def test_blocks_never_overlap_and_nothing_is_lost(seed: int) -> None:
    """Requests and returns at random: every tensor keeps its content, and in the end all memory goes back."""
    chance, live = random.Random(seed), dict[int, Any]()
    before = driver().pool.reserved()
    for number in range(150):
        if live and chance.random() < 0.45:
            key = chance.choice(sorted(live))
            tensor = live.pop(key)
            assert tensor[0].item() == tensor[-1].item() == key % 251
            del tensor
        else:
            made = _bytes(chance.choice((700, 900_000, MIB * 3, MIB * chance.randrange(1, 60))))
            made[0] = made[-1] = number % 251
            live[number] = made
            del made
        if chance.random() < 0.1:
            cuda.empty_cache()
        spans = sorted((each.data_ptr(), each.data_ptr() + each.numel()) for each in live.values())
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
        inside = [(each["address"], each["address"] + each["total_size"]) for each in cuda.memory_snapshot()]
        assert all(any(begin <= span[0] and span[1] <= end for begin, end in inside) for span in spans)
    live.clear()
    cuda.empty_cache()
    assert driver().pool.reserved() == before
    assert not _own()


def test_the_history_says_what_is_mapped() -> None:
    cuda.memory._record_memory_history()
    try:
        x = _bytes(25 * MIB)
        del x
        cuda.empty_cache()
        found = [(each["action"], each["size"]) for each in cuda.memory._snapshot()["device_traces"][0]]
    finally:
        cuda.memory._record_memory_history(None)
    assert [each for each in found if each[0].startswith("segment")] == [
        ("segment_map", 40 * MIB), ("segment_unmap", 40 * MIB),
    ]  # fmt: skip


def test_the_setting() -> None:
    assert cuda.memory._snapshot()["allocator_settings"]["expandable_segments"] is True
    with pytest.raises(RuntimeError, match="Expected a single True/False argument"):
        Settings().read("expandable_segments:yes")


def test_a_device_that_cannot_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver().pool, "space", None)
    with pytest.warns(UserWarning, match="expandable_segments not supported"):
        x = _bytes(MIB * 30)
    assert x.numel() == MIB * 30
    assert not _own()


def test_other_processes_do_not_get_it() -> None:
    x = _bytes(30 * MIB)
    with pytest.raises(RuntimeError, match="expandable_segments:False"):
        lend(x.untyped_storage())
