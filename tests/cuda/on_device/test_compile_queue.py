"""First calls of compiled functions: kernels are compiled side by side, and nothing comes out of order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau._backends.cuda.arrays.array import DeviceArray, from_host, to_host
from flambeau._backends.cuda.elementwise.pointwise import pointwise
from flambeau._backends.cuda.runtime.compile_queue import COMPILE_QUEUE, CompileQueue

from .beside import drawn, labels, network, step_of

NUMBERS = np.arange(8, dtype=np.float32)


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Kernels that are compiled while Python goes ahead are there when this is set."""
    found = threading.Event()
    compiled = CompileQueue.compiled

    def late(self: CompileQueue, compile: Callable[[], Any]) -> Callable[[], Any]:
        if self.steps is None:
            return compiled(self, compile)
        return compiled(self, lambda: compile() if found.wait(60) else None)

    torch.cuda.init()
    monkeypatch.setattr(CompileQueue, "compiled", late)
    yield found
    found.set()


def _soon(ready: threading.Event) -> None:
    threading.Timer(0.05, ready.set).start()


def _plus(number: float) -> Callable[[DeviceArray], DeviceArray]:
    """A function with a kernel of its own, which is compiled by its first call."""
    made = pointwise(lambda x: x + number, [np.dtype(np.float32)], np.dtype(np.float32))
    assert made is not None
    return made.unary


def test_python_goes_ahead_of_kernels(ready: threading.Event) -> None:
    given = from_host(NUMBERS)
    with COMPILE_QUEUE.deferring_launches():
        made = _plus(2.0)(_plus(1.0)(given))
        assert len(COMPILE_QUEUE.steps or ()) == 2
        ready.set()
        assert np.array_equal(to_host(made), NUMBERS + 3)
        assert COMPILE_QUEUE.steps == []
        again = _plus(4.0)(made)
    assert COMPILE_QUEUE.steps is None
    assert np.array_equal(to_host(again), NUMBERS + 7)


def test_memory_is_used_again_in_the_same_order(ready: threading.Event) -> None:
    """Each result takes the place of one that is needed no more: all of them are written before any has been read."""
    given, plus = from_host(NUMBERS), _plus(1.0)
    with COMPILE_QUEUE.deferring_launches():
        found = given
        for _ in range(20):
            found = plus(found) + given
        assert len(COMPILE_QUEUE.steps or ()) == 40
        _soon(ready)
        assert np.array_equal(to_host(found), 21 * NUMBERS + 20)


def test_a_training_step(ready: threading.Event) -> None:
    """Products, copies, draws and updates in between: gradients and parameters are those of a plain step."""
    found = []
    for compile in (lambda function: function, torch.compile):
        torch.manual_seed(0)
        model = network(nn.Dropout(0.5))
        step = compile(step_of(model, torch.optim.Adam(model.parameters(), 0.1)))
        x, y = drawn(4, 6), labels()
        _soon(ready)
        step(x, y)
        found.append([each for one in model.parameters() for each in (one.tolist(), one.grad.tolist())])
        ready.clear()
    assert found[0] == found[1]


def test_kernels_of_a_program_are_compiled_side_by_side(
    ready: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever call writes the program does not wait for them before its kernels are launched."""
    x, late, aside = drawn(4, 6), CompileQueue.compiled, []

    def noted(self: CompileQueue, compile: Callable[[], Any]) -> Callable[[], Any]:
        aside.append(self.steps is not None)
        return late(self, compile)

    @torch.compile
    def function() -> torch.Tensor:
        return ((x.sin() * 2.5).exp() + x).tanh().sum()

    ready.set()
    expected = function().item()
    ready.clear()
    monkeypatch.setattr(CompileQueue, "compiled", noted)
    found = [function().item()]
    assert torch.compiler.explain(function).startswith("1 program")
    _soon(ready)
    found += [function().item() for _ in range(4)]
    assert found == [expected] * 5
    assert any(aside)


def test_other_threads_find_what_was_given_to_the_device_before(ready: threading.Event) -> None:
    given, seen = from_host(NUMBERS), []
    with COMPILE_QUEUE.deferring_launches():
        made = _plus(1.0)(given)
        reader = threading.Thread(target=lambda: seen.append(to_host(made + made)))
        reader.start()
        _soon(ready)
        reader.join()
        assert COMPILE_QUEUE.steps == []
    assert np.array_equal(seen[0], 2 * NUMBERS + 2)


def test_what_waits_is_started_where_a_call_fails(ready: threading.Event) -> None:
    given, made = from_host(NUMBERS), []

    @torch.compile
    def function() -> None:
        made.append(_plus(1.0)(given))
        raise ValueError("mine")

    _soon(ready)
    with pytest.raises(ValueError, match="mine"):
        function()
    assert COMPILE_QUEUE.steps is None
    assert np.array_equal(to_host(made[0]), NUMBERS + 1)


def _in_another_stream() -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        pass


@pytest.mark.parametrize(
    "look",
    [
        torch.cuda.synchronize, _in_another_stream, lambda: torch.ones(3).cuda(), lambda: torch.cuda.Event().record(),
        lambda: torch.empty(3, device="cuda").data_ptr(), lambda: from_host(NUMBERS).__cuda_array_interface__,
    ],
    ids=["synchronize", "stream", "copy", "event", "data_ptr", "interface"],
)  # fmt: skip
def test_whoever_needs_the_device_itself_finds_it_up_to_date(ready: threading.Event, look: Callable[[], Any]) -> None:
    given = from_host(NUMBERS)
    with COMPILE_QUEUE.deferring_launches():
        made = _plus(1.0)(given)
        assert COMPILE_QUEUE.steps
        _soon(ready)
        look()
        assert COMPILE_QUEUE.steps == []
    assert np.array_equal(to_host(made), NUMBERS + 1)


def test_memory_goes_back_to_the_device_when_it_has_been_used(ready: threading.Event) -> None:
    torch.cuda.empty_cache()
    with COMPILE_QUEUE.deferring_launches():
        given = torch.zeros(1 << 22, device="cuda")
        made = _plus(1.0)(_plus(1.0)(given._array))[:8]
        del given
        _soon(ready)
        torch.cuda.empty_cache()
        assert np.array_equal(to_host(made), np.full(8, 2, np.float32))


def test_graphs_are_captured_as_ever(ready: threading.Event) -> None:
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(4, device="cuda")

    @torch.compile
    def function() -> torch.Tensor:
        x.add_(1)
        with torch.cuda.graph(graph):
            return x * 2

    _soon(ready)
    made = function()
    graph.replay()
    assert made.tolist() == [4.0] * 4


def test_contexts_nest(ready: threading.Event) -> None:
    ready.set()
    with COMPILE_QUEUE.deferring_launches():
        with COMPILE_QUEUE.deferring_launches():
            made = _plus(1.0)(from_host(NUMBERS))
        assert COMPILE_QUEUE.steps
    assert COMPILE_QUEUE.steps is None
    assert np.array_equal(to_host(made), NUMBERS + 1)


def test_an_error_of_the_compiler_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: CompileQueue, compile: Callable[[], Any]) -> Callable[[], Any]:
        def raise_error() -> Any:
            raise RuntimeError("cannot be compiled")

        return raise_error

    given = from_host(NUMBERS)
    monkeypatch.setattr(CompileQueue, "compiled", refuse)
    with pytest.raises(RuntimeError, match="cannot be compiled"), COMPILE_QUEUE.deferring_launches():
        _plus(1.0)(given)
    assert COMPILE_QUEUE.steps is None


def test_memory_of_a_library_is_not_written_before_it_is_read(ready: threading.Event) -> None:
    """What a library gave is let go while the kernel that reads it is compiled, and others take its place."""
    x = drawn(4, 64)
    expected = [torch.fft.rfft(x).real.tolist(), torch.arange(640, device=x.device).tolist()]
    _soon(ready)
    with COMPILE_QUEUE.deferring_launches():
        found = torch.fft.rfft(x).real * 1
        others = [np.full(132, np.nan, np.complex64) for _ in range(8)]
        found_beside = torch.arange(640, device=x.device)
    assert len(others) == 8
    assert [found.tolist(), found_beside.tolist()] == expected
