"""Allocation n of a step fails, for every n: the report is right, and the next step works and has the right results."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._backends.cuda.runtime.driver import driver
from flambeau._core.text.memory_errors import _size
from flambeau.nn import functional as F
from tests.support.exhausted import Failing, device_allocation_fails

cuda = torch.cuda


class Training:
    """A network and what a step of its training leaves, always from the same beginning."""

    def __init__(self, *layers: Any, wrap: Callable[[Any], Any] = lambda net: net) -> None:
        torch.manual_seed(0)
        self.net: Any = nn.Sequential(*layers).cuda()
        self.called: Any = wrap(self.net)
        self._begin = {name: each.cpu().clone() for name, each in self.net.state_dict().items()}
        self.x = torch.randn(5, 6)
        self.target = torch.tensor([0, 1, 2, 0, 1])

    def begin(self) -> None:
        """Let everything be as it was."""
        self.net.load_state_dict(self._begin)
        self.net.zero_grad()
        torch.manual_seed(1)

    def loss(self) -> Any:
        return F.cross_entropy(self.called(self.x.cuda()), self.target.cuda())

    def step(self) -> list[Any]:
        """One step: its loss, and the parameters after it."""
        optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)
        loss: Any = self.loss()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        optimizer.step()
        return [loss.tolist(), *[each.tolist() for each in self.net.state_dict().values()]]


def layers() -> list[Any]:
    return [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)]


class Scaled(Training):
    """With autocast and a loss scale."""

    def step(self) -> list[Any]:
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
        with torch.autocast("cuda", torch.float16):
            loss: Any = self.loss()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return [loss.tolist(), *[each.tolist() for each in self.net.state_dict().values()]]


class Captured(Training):
    """The forward pass is captured as a graph and replayed."""

    def step(self) -> list[Any]:
        x, graph = self.x.cuda(), cuda.CUDAGraph()
        with torch.no_grad(), cuda.graph(graph):
            y = self.net(x).softmax(1)
        graph.replay()
        return [y.tolist()]


class InThread(Training):
    """In another thread and another stream, which keeps a workspace of its own."""

    stream: Any = None

    def step(self) -> list[Any]:
        found: list[Any] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                side = self.stream = self.stream or cuda.Stream()
                side.wait_stream(cuda.current_stream())
                with cuda.stream(side):
                    found.extend(Training.step(self))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if errors:
            raise errors.pop()
        return found


KINDS: dict[str, Callable[[], Training]] = {
    "training": lambda: Training(*layers()),
    "loss scale": lambda: Scaled(*layers()[:1], *layers()[4:]),
    "graph": lambda: Captured(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)),
    "thread": lambda: InThread(*layers()[:1], *layers()[4:]),
    "checkpoint": lambda: Training(
        *layers()[:1],
        *layers()[4:],
        wrap=lambda net: lambda x: torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False),
    ),
    "LSTM": lambda: Training(
        nn.LSTM(6, 4), nn.Linear(4, 3), wrap=lambda net: lambda x: net[1](net[0](x.unsqueeze(0))[0].squeeze(0))
    ),
}


def report_of(program: Training, place: int) -> tuple[str, Failing]:
    """What the error says when an allocation of a step fails; the error itself, and what its frames hold, is gone."""
    try:
        with device_allocation_fails(driver().pool, place) as failing:
            program.step()
    except torch.OutOfMemoryError as error:
        return str(error), failing
    raise AssertionError(f"allocation {place} did not fail")


def check_report(text: str, failing: Failing) -> None:
    """The report names what was asked for, what there is, who has it with path and line, and what would help."""
    assert f"CUDA out of memory. Tried to allocate {_size(failing.asked or 0)}. GPU 0 has a total capacity of" in text
    for words in (
        "is free",
        "reserved but unallocated",
        "live tensors hold",
        "parameters and buffers",
        "What would help",
    ):
        assert words in text
    assert "parameter Sequential." in text or "parameter net." in text
    assert __file__ in text


@pytest.mark.parametrize("kind", KINDS)
def test_every_allocation_of_a_step_fails_in_turn(kind: str) -> None:
    program = KINDS[kind]()
    pool = driver().pool
    for _ in range(2):
        program.begin()
        expected = program.step()
    program.begin()
    with device_allocation_fails(pool, None) as counted:
        program.step()
    gc.collect()
    assert counted.count > 4
    for place in range(counted.count):
        program.begin()
        before, failures = cuda.memory_allocated(), cuda.memory_stats()["num_ooms"]
        check_report(*report_of(program, place))
        assert cuda.memory_stats()["num_ooms"] == failures + 1
        assert torch.is_grad_enabled()
        assert not torch.is_autocast_enabled("cuda")
        assert not cuda.is_current_stream_capturing()
        assert cuda.current_stream() == cuda.default_stream()
        program.net.zero_grad()
        if cuda.memory_allocated() != before:
            gc.collect()
        assert cuda.memory_allocated() == before, f"allocation {place} leaves memory in use"
        program.begin()
        assert program.step() == expected, f"the step after allocation {place} failed differs"


def test_a_compiled_step_goes_on() -> None:
    """A compiled call whose allocation fails runs eagerly, or raises; either way the results stay right."""
    program = Training(*layers()[:1], *layers()[4:], wrap=lambda net: torch.compile(net))
    for _ in range(4):
        program.begin()
        expected = program.step()
    pool = driver().pool
    program.begin()
    with device_allocation_fails(pool, None) as counted:
        program.step()
    assert counted.count > 8
    errors = 0
    for place in range(counted.count):
        program.begin()
        try:
            with device_allocation_fails(pool, place):
                found = program.step()
        except torch.OutOfMemoryError:
            errors += 1
        else:
            assert found == expected
        program.begin()
        assert program.step() == expected
    assert errors


def test_the_report_counts_what_is_saved_for_backward() -> None:
    weight: Any = torch.ones(64, 64, device="cuda", requires_grad=True)
    y = weight
    for _ in range(20):
        y = (y * weight).tanh()
    total = cuda.mem_get_info()[1]
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + (1 << 20)) / total)
    try:
        with pytest.raises(torch.OutOfMemoryError) as caught:
            torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    text = str(caught.value)
    assert "saved for backward" in text
    assert "torch.utils.checkpoint.checkpoint" in text
    assert "allowed (torch.cuda.set_per_process_memory_fraction)" in text
    assert "y = (y * weight).tanh()" in text
    del caught


def test_what_is_deleted_after_the_error_is_free() -> None:
    """The report looks at the variables of running functions: it keeps none of their values alive."""
    x = torch.ones(1 << 20, device="cuda")
    before = cuda.memory_allocated()
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(cuda.mem_get_info()[1] * 2, dtype=torch.uint8, device="cuda")
    assert x.sum().item() == 1 << 20  # variables are as they were
    del x
    assert cuda.memory_allocated() == before - (4 << 20)
