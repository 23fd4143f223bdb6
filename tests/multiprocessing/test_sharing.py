"""Tensors in shared memory: what `share_memory_` does, what arrives in other processes, and that nothing is left."""

from __future__ import annotations

import gc
import glob
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from flambeau import multiprocessing as mp
from tests.support.differential import differential, outcome

from . import targets

PATIENCE = 120  # seconds: the machine may be busy


@pytest.fixture
def by_name() -> Iterator[None]:
    """Memory with names in the file system."""
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    yield
    mp.set_sharing_strategy(before)


def _names(process: int) -> list[str]:
    """The shared memory that a process has given a name; others may test beside this one."""
    return glob.glob(f"/dev/shm/flambeau_{process}_*")


@differential
def test_share_memory(T: Any) -> Any:
    base = T.arange(12.0).reshape(3, 4)
    view, copy = base[1:, ::2], base.clone()
    before = base.is_shared(), view.is_shared()
    assert base.share_memory_() is base
    base[2, 2] = 50.0
    storage = T.UntypedStorage._new_shared(8)
    leaf = T.ones(2, requires_grad=True)
    leaf.share_memory_()
    (leaf * 2).sum().backward()
    return {
        "shared": (before, base.is_shared(), view.is_shared(), copy.is_shared()),
        "values": (base, view, copy),
        "storage": (storage.is_shared(), storage.nbytes(), storage.tolist()),
        "storage of a tensor": base.untyped_storage().is_shared(),
        "leaf": (leaf, leaf.grad),
        "again": base.share_memory_().is_shared(),
    }


@differential
def test_module_and_its_gradients(T: Any) -> Any:
    T.manual_seed(0)
    module = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4))
    module(T.randn(5, 3)).sum().backward()
    tied = module[0].weight
    module.share_memory()
    shared = [each.is_shared() for each in (*module.parameters(), *module.buffers())]
    return shared, tied is module[0].weight, [each.grad.is_shared() for each in module.parameters()]


def test_a_tied_parameter_stays_tied() -> None:
    weight = flambeau.nn.Parameter(flambeau.arange(4.0))
    module = flambeau.nn.Module()
    module.first, module.row = weight, flambeau.nn.Parameter(weight.data[2:])
    module.share_memory()
    weight.data.mul_(10)
    assert module.row.tolist() == [20.0, 30.0]


def test_shared_memory_stays_where_it_is() -> None:
    tensor = flambeau.ones(3).share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(100)


@differential
def test_what_cannot_be_sent(T: Any) -> Any:
    from multiprocessing.reduction import ForkingPickler

    __import__(f"{T.__name__}.multiprocessing")
    result = T.ones(2, requires_grad=True) * 2
    return outcome(lambda: ForkingPickler.dumps(result), "Cowardly refusing to serialize non-leaf tensor")


@differential
def test_strategies(T: Any) -> Any:
    module = T.multiprocessing
    return (
        module.get_all_sharing_strategies(),
        module.get_sharing_strategy(),
        outcome(lambda: module.set_sharing_strategy("pigeon"))[:2],
    )


def _exchange(T: Any, method: str) -> Any:
    context = T.multiprocessing.get_context(method)
    incoming, outgoing = context.Queue(), context.Queue()
    process = context.Process(target=targets.add_one, args=(T.__name__, incoming, outgoing))
    process.start()
    tensors = [T.arange(3.0), T.zeros(2, 2).t(), T.tensor([True, False]).int(), T.nn.Parameter(T.ones(2)).detach()]
    observed = []
    for tensor in tensors:
        incoming.put(tensor)
        observed.append(outgoing.get(timeout=PATIENCE))
    incoming.put(None)
    process.join(PATIENCE)
    return observed, tensors, process.exitcode


@differential
def test_queue_to_a_forked_process(T: Any) -> Any:
    return _exchange(T, "fork")


@pytest.mark.usefixtures("by_name")
def test_queue_to_a_spawned_process() -> None:
    observed, tensors, code = _exchange(flambeau, "spawn")
    assert code == 0
    assert observed[0] == ([0.0, 1.0, 2.0], True, False)
    assert [tensor.tolist() for tensor in tensors] == [[1, 2, 3], [[1, 1], [1, 1]], [2, 1], [2, 2]]
    if os.path.isdir("/dev/shm"):
        assert len(_names(os.getpid())) == len(tensors)
    del tensors
    # Without the global lock what the queue's thread made goes when that thread runs again, or with a collection: first
    # the arrays, then their memory.
    for _ in range(0 if getattr(sys, "_is_gil_enabled", lambda: True)() else 4):
        gc.collect()
    assert _names(os.getpid()) == [], "the names went with the tensors"


def test_views_that_arrive_apart_share_memory() -> None:
    context = mp.get_context("fork")
    queue, go_on = context.Queue(), context.Event()
    process = context.Process(target=targets.send_views, args=(queue, go_on))
    process.start()
    first, second = queue.get(timeout=PATIENCE), queue.get(timeout=PATIENCE)
    go_on.set()
    process.join(PATIENCE)
    second[0, 1] = -1
    assert first.tolist() == [0.0, 1.0, 2.0, -1.0]
    assert first.untyped_storage() == second.untyped_storage()


def test_arguments_of_a_spawned_process() -> None:
    parameter = flambeau.nn.Parameter(flambeau.zeros(3))
    process = mp.get_context("spawn").Process(target=targets.fill, args=(parameter, 5.0))
    process.start()
    process.join(PATIENCE)
    assert parameter.tolist() == [5.0, 5.0, 5.0]
    assert parameter.requires_grad


@pytest.mark.usefixtures("by_name")
def test_the_sender_may_leave_first() -> None:
    context = mp.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=targets.send_and_leave, args=(queue,))
    process.start()
    process.join(PATIENCE)
    tensor = queue.get(timeout=PATIENCE)
    assert tensor.sum().item() == 7000.0
    assert process.pid is not None
    del tensor
    assert _names(process.pid) == []


def test_pool() -> None:
    with mp.get_context("fork").Pool(2) as pool:
        results = pool.map(targets.double, [flambeau.full((2,), float(number)) for number in range(4)])
        assert [each.tolist() for each in results] == [[0, 0], [2, 2], [4, 4], [6, 6]]


def test_spawn_and_its_errors() -> None:
    rows = flambeau.zeros(2, 3).share_memory_()
    assert mp.start_processes(targets.fill_row, (rows,), nprocs=2, start_method="fork") is None
    assert rows.tolist() == [[1.0] * 3, [2.0] * 3]
    with pytest.raises(mp.ProcessRaisedException, match="this one fails") as raised:
        mp.start_processes(targets.raise_error, nprocs=2, start_method="fork")
    assert raised.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL") as ended:
        mp.start_processes(targets.kill_itself, nprocs=1, start_method="fork")
    assert ended.value.exit_code == -signal.SIGKILL


KILLED = """
import flambeau, os, sys
from flambeau import multiprocessing as mp
mp.set_sharing_strategy(sys.argv[1])
tensor = flambeau.ones(1000).share_memory_()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="names of shared memory are looked for in /dev/shm")
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_nothing_is_left_after_a_kill(strategy: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, strategy],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    number = int(process.stdout.readline())
    assert len(_names(number)) == (strategy == "file_system")
    process.kill()
    process.communicate(timeout=PATIENCE)  # the tracker holds the error stream, so this waits for it as well
    assert _names(number) == []


def _hogwild(T: Any, processes: int, steps: int) -> Any:
    T.manual_seed(0)
    model = T.nn.Sequential(T.nn.Conv1d(1, 4, 3), T.nn.Tanh(), T.nn.Flatten(), T.nn.Linear(24, 1))
    inputs = T.randn(32, 1, 8)
    wanted = inputs.sum(-1) * 0.3
    model.share_memory()
    if T is not flambeau:  # PyTorch's threads do not survive a fork; one process after the other gives the same numbers
        targets.train(T.__name__, model, inputs, wanted, steps * processes)
        return model, T.nn.functional.mse_loss(model(inputs), wanted).item()
    context = mp.get_context("fork")
    started = [
        context.Process(target=targets.train, args=("flambeau", model, inputs, wanted, steps)) for _ in range(processes)
    ]
    for each in started:
        each.start()
    for each in started:
        each.join(PATIENCE)
    assert [each.exitcode for each in started] == [0] * processes
    return model, T.nn.functional.mse_loss(model(inputs), wanted).item()


@differential(tolerance=1e-5)
def test_hogwild_by_one_process(T: Any) -> Any:
    model, loss = _hogwild(T, 1, 20)
    return list(model.state_dict().values()), loss


def test_hogwild_by_four_processes() -> None:
    _, before = _hogwild(flambeau, 0, 0)
    _, after = _hogwild(flambeau, 4, 60)
    assert after < 0.1 * before


@pytest.mark.parametrize("count", range(1, 6))
def test_all_windows_follow_memory_that_is_shared(count: int) -> None:
    """However many there are: Pythons count references to variables differently."""
    base = flambeau.arange(6.0)
    windows = [base[number:] for number in range(1, count + 1)]
    base.share_memory_()
    base[5] = 50.0
    assert [each[-1].item() for each in windows] == [50.0] * count
