"""Which device is in use, where tensors are made, how they move, and what each device keeps for itself."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

COUNT = torch.cuda.device_count()
LAST = COUNT - 1
THERE = f"cuda:{LAST}"


def test_the_device_in_use() -> None:
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(LAST):
        assert torch.cuda.current_device() == LAST
        assert str(torch.ones(2, device="cuda").device) == THERE
        assert str(torch.ones(2).cuda().device) == THERE
        with torch.cuda.device_of(torch.ones(2, device="cuda:0")):
            assert torch.cuda.current_device() == 0
        with torch.cuda.device(-1), torch.cuda.device(None), torch.cuda.device_of(torch.ones(2)):
            assert torch.cuda.current_device() == LAST
    assert str(torch.ones(2, device="cuda").device) == "cuda:0"
    torch.cuda.set_device(THERE)
    try:
        assert torch.accelerator.current_device_index() == LAST
        torch.cuda.set_device(-1)
        assert str(torch.zeros(1).to("cuda").device) == THERE
    finally:
        torch.cuda.set_device(0)


def test_a_thread_begins_on_the_first_device() -> None:
    found: list[int] = []
    with torch.cuda.device(LAST):
        thread = threading.Thread(target=lambda: found.append(torch.cuda.current_device()))
        thread.start()
        thread.join()
    assert found == [0]


def test_an_error_leaves_the_device_in_use() -> None:
    x = torch.ones(2, 3, device=THERE)
    with pytest.raises(RuntimeError):
        x @ x
    with pytest.raises(ZeroDivisionError), torch.cuda.device(LAST):
        raise ZeroDivisionError
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("ordinal", range(COUNT))
def test_results_are_where_the_operands_are(ordinal: int) -> None:
    place = f"cuda:{ordinal}"
    host = torch.arange(12.0).reshape(3, 4)
    x = host.to(place)
    index = torch.tensor([2, 0], device=place)
    ops: list[Callable[[Any], Any]] = [
        lambda x: x * 2 + 1,
        lambda x: x.exp().sum(1),
        lambda x: x @ x.T,
        lambda x: x.t().contiguous(),
        lambda x: x.softmax(1),
        lambda x: torch.cat([x, x], 1),
        lambda x: x.to(torch.float64).cumsum(0),
        lambda x: torch.where(x > 3, x, -x),
        lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: x.sort(1, descending=True).values,
        lambda x: x[1:, ::2].clone(),
        lambda x: x.new_zeros(3) + x.new_tensor(2.0),
        lambda x: torch.zeros_like(x) + torch.full_like(x, 3) + 2 * torch.ones_like(x),
        lambda x: x.view(torch.int32).view(torch.float32),
    ]
    for op in ops:
        found = op(x)
        assert str(found.device) == place
        assert torch.allclose(found.cpu(), op(host))
    picked = x[index]
    assert (str(picked.device), picked.tolist()) == (place, host[[2, 0]].tolist())
    x[index] = 5.0
    x[:, 1] += 1
    x.mul_(2).clamp_(max=9)
    host[[2, 0]] = 5.0
    host[:, 1] += 1
    host.mul_(2).clamp_(max=9)
    assert torch.equal(x.cpu(), host)
    assert x[0, 0].item() == host[0, 0].item()


@pytest.mark.parametrize(
    "meeting",
    [
        lambda x, y: x + y, lambda x, y: x.add_(y), lambda x, y: x @ y, lambda x, y: torch.cat([x, y]),
        lambda x, y: torch.where(x > 0, x, y), lambda x, y: torch.nn.functional.linear(x, y), lambda x, y: x * y.sum(),
        lambda x, y: torch.stack([x, y]), lambda x, y: torch._foreach_add([x], [y]),
    ],
)  # fmt: skip
def test_devices_do_not_meet(meeting: Any) -> None:
    x, y = torch.ones(2, 2, device="cuda:0"), torch.ones(2, 2, device=THERE)
    with pytest.raises(RuntimeError, match=f"cuda:0 and {THERE}"):
        meeting(x, y)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:1], torch.sum])
def test_copies_between_devices(make: Any) -> None:
    host = make(torch.arange(12.0).reshape(3, 4))
    first = make(torch.arange(12.0).reshape(3, 4).cuda(0))
    there = first.to(THERE)
    assert (str(there.device), there.tolist()) == (THERE, host.tolist())
    there.add_(1)
    assert first.tolist() == host.tolist()
    back = there.cuda(0)
    assert (str(back.device), back.tolist()) == ("cuda:0", (host + 1).tolist())
    assert there.to(THERE) is there
    assert str(there.to(THERE, torch.float64).dtype) == "torch.float64"
    first.copy_(there)
    assert first.tolist() == (host + 1).tolist()
    assert there.to("cuda:0", torch.float16).tolist() == (host + 1).half().tolist()


def test_copies_of_storages() -> None:
    x = torch.arange(4.0, device=THERE)
    storage = x.untyped_storage()
    assert str(storage.device) == THERE
    moved = storage.cuda(0)
    assert (str(moved.device), moved.tolist()) == ("cuda:0", storage.tolist())
    assert torch.UntypedStorage(16, device=THERE).copy_(moved).tolist() == storage.tolist()


def test_random_numbers_of_each_device() -> None:
    torch.manual_seed(3)
    one, other = torch.rand(5, device="cuda:0"), torch.rand(5, device=THERE)
    assert torch.equal(one.cpu(), other.cpu())  # each began from the seed
    state = torch.cuda.get_rng_state(LAST)
    first = torch.randn(3, device=THERE)
    torch.rand(7, device="cuda:0")
    torch.cuda.set_rng_state(state, LAST)
    assert torch.equal(torch.randn(3, device=THERE), first)
    with torch.cuda.device(LAST):
        torch.cuda.manual_seed(11)
    assert torch.cuda.default_generators[LAST].initial_seed() == 11
    assert torch.cuda.default_generators[0].initial_seed() == 3
    assert len(torch.cuda.get_rng_state_all()) == COUNT
    generator = torch.Generator(THERE).manual_seed(4)
    assert str(generator.device) == THERE
    drawn = torch.rand(2, generator=generator, device=THERE)
    assert torch.equal(torch.rand(2, generator=generator.manual_seed(4), device=THERE), drawn)


def test_memory_of_each_device() -> None:
    before = [torch.cuda.memory_allocated(each) for each in range(COUNT)]
    x = torch.ones(1 << 16, device=THERE)
    after = [torch.cuda.memory_allocated(each) for each in range(COUNT)]
    assert [now - then for now, then in zip(after, before, strict=True)] == [0] * LAST + [x.nbytes]
    assert {each["device"] for each in torch.cuda.memory_snapshot() if each["allocated_size"]} >= {LAST}
    with torch.cuda.device(LAST):
        assert torch.cuda.memory_allocated() == after[LAST]
    del x
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated(LAST) == before[LAST]
    free, total = torch.cuda.mem_get_info(LAST)
    with pytest.raises(torch.OutOfMemoryError, match=f"GPU {LAST} has a total capacity"):
        torch.empty(total * 2, dtype=torch.uint8, device=THERE)
    assert free <= total


def test_streams_and_events_of_each_device() -> None:
    own = torch.cuda.Stream(LAST)
    assert (own.device_index, str(own.device)) == (LAST, THERE)
    assert torch.cuda.current_stream(LAST) == torch.cuda.default_stream(LAST) != torch.cuda.default_stream(0)
    with torch.cuda.stream(own):
        assert torch.cuda.current_device() == LAST
        assert torch.cuda.current_stream() == own
        x = torch.ones(4, device="cuda") * 2
        event = torch.cuda.Event()
        assert event.device is None
        event.record()
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(LAST) == torch.cuda.default_stream(LAST)
    assert str(event.device) == THERE
    torch.cuda.current_stream(0).wait_event(event)
    with pytest.raises(RuntimeError, match=f"Event device {LAST} does not match recording stream's device 0"):
        event.record(torch.cuda.current_stream(0))
    x.record_stream(torch.cuda.default_stream(LAST))
    own.synchronize()
    torch.cuda.synchronize(LAST)
    assert x.tolist() == [2.0] * 4


def test_a_graph_of_another_device() -> None:
    x = torch.ones(3, device=THERE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(LAST), torch.cuda.graph(graph):
        y = x * 3 + 1
    x.fill_(2)
    graph.replay()
    assert (str(y.device), y.tolist()) == (THERE, [7.0] * 3)


def test_peers() -> None:
    assert torch.cuda.can_device_access_peer(0, LAST) in (True, False)
    assert torch.cuda.can_device_access_peer(0, 0) is False
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.can_device_access_peer(0, COUNT)


def test_communication() -> None:
    x = torch.arange(8.0, device="cuda:0").reshape(4, 2)
    copies = torch.cuda.comm.broadcast(x, range(COUNT))
    assert [str(each.device) for each in copies] == [f"cuda:{each}" for each in range(COUNT)]
    assert copies[0] is x
    total = torch.cuda.comm.reduce_add(copies, LAST)
    assert (str(total.device), total.tolist()) == (THERE, (x * COUNT).tolist())
    parts = torch.cuda.comm.scatter(x, range(COUNT))
    assert [str(each.device) for each in parts] == [f"cuda:{each}" for each in range(COUNT)]
    whole = torch.cuda.comm.gather(parts, destination=LAST)
    assert (str(whole.device), whole.tolist()) == (THERE, x.tolist())
    assert str(torch.cuda.comm.gather(parts, destination="cpu").device) == "cpu"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, THERE), ("cuda:0", "cuda:0"), ({THERE: "cuda:0"}, "cuda:0"), (torch.device("cpu"), "cpu"),
        (lambda storage, place: storage.cuda(LAST), THERE), ("cuda", "cuda:0"),
    ],
)  # fmt: skip
def test_checkpoints(given: Any, expected: str) -> None:
    file = io.BytesIO()
    torch.save({"weight": torch.arange(3.0, device=THERE)}, file)
    file.seek(0)
    found = torch.load(file, map_location=given)["weight"]
    assert (str(found.device), found.tolist()) == (expected, [0.0, 1.0, 2.0])


def test_a_checkpoint_for_a_device_that_is_not_there() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(2, device=THERE), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=f"Attempting to deserialize object on CUDA device {COUNT}"):
        torch.load(file, map_location=f"cuda:{COUNT}")


def test_compiled_functions() -> None:
    calls: Any = torch.compile(lambda x, y: (x * y + 1).relu().sum(0))
    for place in ("cuda:0", THERE):
        x = torch.arange(6.0, device=place).reshape(3, 2) - 2
        for _ in range(6):
            found = calls(x, x)
            assert (str(found.device), found.tolist()) == (place, (x * x + 1).relu().sum(0).tolist())
