"""Workers in trouble, and what they leave behind: nothing."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import multiprocessing.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.utils.data import DataLoader, Dataset, get_worker_info
from flambeau.utils.data._utils import processes, shared, threads
from tests.support.differential import outcome
from tests.utils.data.datasets import RandomRows, Rows, Stream, Trouble, fail_to_start, identity

SHARED_MEMORY = Path("/dev/shm")
METHODS = pytest.mark.parametrize("method", ["multiprocessing", "thread"])


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def names_in_shared_memory() -> set[str]:
    """What this process has named there, or one that has ended: others on the machine may work beside this one."""
    names = {path.name for path in SHARED_MEMORY.glob("flambeau_*_*")}
    return {name for name in names if _is_ours_or_gone(int(name.split("_")[1]))}


def _is_ours_or_gone(process: int) -> bool:
    return process == os.getpid() or not os.path.exists(f"/proc/{process}")


@pytest.fixture(autouse=True, scope="module")
def _quick_collections() -> Iterator[None]:
    """What has been imported need not be looked at after each test."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each test: no process, no thread, no named shared memory, no open file more than before."""
    monkeypatch.setattr(processes, "MP_STATUS_CHECK_INTERVAL", 0.5)
    monkeypatch.setattr(threads, "MP_STATUS_CHECK_INTERVAL", 0.5)
    files, names, alive = open_files(), names_in_shared_memory(), set(threading.enumerate())
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert names_in_shared_memory() <= names
    assert open_files() <= files
    assert _ended([each for each in threading.enumerate() if each not in alive]) == []


def _ended(left: list[threading.Thread]) -> list[str]:
    """The names of threads that live on after ten seconds: on a busy machine it takes a moment to end.

    Garbage is collected time and again: while another thread collects, `gc.collect()` does nothing.
    """
    deadline = time.monotonic() + 10
    while (alive := [each for each in left if each.is_alive()]) and time.monotonic() < deadline:
        gc.collect()
        alive[0].join(0.1)
    return [each.name for each in alive]


def message_of(error: type[Exception], loader: Any) -> str:
    with pytest.raises(error) as caught:
        list(loader)
    message = str(caught.value)
    del caught  # its traceback holds the iterator
    return message


# Errors ---------------------------------------------------------------------------------------------------------------


@METHODS
def test_an_error_says_where_and_at_which_index(method: str) -> None:
    message = message_of(ValueError, DataLoader(Trouble("value_error"), 2, num_workers=2, worker_method=method))
    place = "process" if method == "multiprocessing" else "thread"
    assert message.startswith(f"Caught ValueError in DataLoader worker {place} 0.\n")
    assert "index 5 of the dataset, in the batch [4, 5]" in message
    assert "Original Traceback (most recent call last):" in message
    assert "in value_error" in message  # the user's own frame
    assert message.rstrip().endswith("ValueError: no such row")


@METHODS
@pytest.mark.parametrize(
    ("what", "error"),
    [("key_error", KeyError), ("decode_error", RuntimeError), ("local_error", RuntimeError)],
)
def test_types_of_errors(what: str, error: type[Exception], method: str) -> None:
    message = message_of(error, DataLoader(Trouble(what), num_workers=1, worker_method=method))
    assert "\nOriginal Traceback" in message  # on lines of its own, for a KeyError, too


def test_what_cannot_be_pickled() -> None:
    message = message_of(Exception, DataLoader(Trouble("unpicklable"), None, num_workers=1))  # type: ignore[type-abstract]
    assert "cannot be pickled" in message
    assert "5" in message


@METHODS
def test_loading_goes_on_after_an_error(method: str) -> None:
    iterator = iter(DataLoader(Trouble("value_error"), None, num_workers=2, worker_method=method))
    seen = [outcome(lambda: next(iterator))[:2] for _ in range(8)]
    expected: list[Any] = [("value", number) for number in range(8)]
    expected[5] = ("error", "ValueError")
    assert seen == expected
    with pytest.raises(StopIteration):
        next(iterator)


@METHODS
def test_failures_in_user_functions(method: str) -> None:
    options: dict[str, Any] = {"num_workers": 2, "worker_method": method}
    assert "worker 0 cannot start" in message_of(
        ValueError, DataLoader(range(4), worker_init_fn=fail_to_start, **options)
    )
    assert "in collate_fn" in message_of(TypeError, DataLoader(range(4), 2, collate_fn=len_of_number, **options))
    assert "iter(dataset)" in message_of(TypeError, DataLoader(NoIterator(0), **options))
    assert "sample 3 of the iterator" in message_of(ValueError, DataLoader(BrokenStream(0, 0), 2, **options))


def len_of_number(batch: Any) -> int:
    return len(batch[0])


class NoIterator(Stream):
    def __iter__(self) -> Any:
        return 3


class BrokenStream(Stream):
    def __iter__(self) -> Any:
        yield from range(3)
        raise ValueError("broken")


def test_a_thread_that_exits_is_reported() -> None:
    loader = DataLoader(Trouble("system_exit"), num_workers=1, worker_method="thread")
    with pytest.raises(SystemExit):
        list(loader)


# Deaths ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "phrase"),
    [
        ("kill", "worker 1 is killed by signal: Killed"),
        ("exit", "worker 1 exited with exit code 3"),
        ("system_exit", "worker 1 exited with exit code 4"),
    ],
)
def test_a_worker_that_ends_is_reported(what: str, phrase: str) -> None:
    message = message_of(RuntimeError, DataLoader(Trouble(what), num_workers=2))
    assert phrase in message
    assert "DataLoader worker (pid(s) " in message
    assert "exited unexpectedly" in message


def test_a_worker_killed_from_outside_is_reported_at_once() -> None:
    iterator: Any = iter(DataLoader(range(1000), num_workers=2))
    next(iterator)
    os.kill(iterator._workers[1].pid, signal.SIGKILL)
    iterator._workers[1].join()
    with pytest.raises(RuntimeError, match="is killed by signal: Killed"):
        next(iterator)  # though the next batch is of the other worker
    assert not iterator._workers[0].is_alive()
    del iterator


def test_persistent_workers_are_replaced_after_a_death() -> None:
    loader = DataLoader(range(4), num_workers=2, persistent_workers=True)
    iterator: Any = iter(loader)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    iterator._workers[0].join()
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(iterator)
    assert [batch.item() for batch in loader] == [0, 1, 2, 3]
    del iterator, loader


@METHODS
def test_timeouts(method: str) -> None:
    release = threading.Event()

    class Slow(Dataset[int]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            if index == 1:
                release.wait(60)
            return index

    iterator = iter(DataLoader(Slow(), None, num_workers=2, timeout=0.2, worker_method=method))
    assert next(iterator) == 0
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        next(iterator)
    release.set()  # the thread sees this; the process is ended by a signal
    if method == "thread":
        assert list(iterator) == [1, 2, 3]
    del iterator


# What a fork copies ---------------------------------------------------------------------------------------------------


class Collects(Dataset[Any]):
    """Says whether its process collects garbage."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> bool:
        return gc.isenabled()


@pytest.mark.parametrize("generator", ["flambeau", "numpy"])
def test_a_lock_that_another_thread_holds_does_not_stop_a_worker(generator: str) -> None:
    lock = flambeau.default_generator._lock if generator == "flambeau" else np.random.get_bit_generator().lock
    own = flambeau.Generator()  # the loader itself does not wait for the default one
    loader = DataLoader(RandomRows(3, 4), None, num_workers=1, timeout=10, generator=own)
    expected = [index for index, *_ in loader]  # afterwards nothing is left to import, and workers start at once
    held = threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            time.sleep(0.4)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert [index for index, *_ in loader] == expected == [0, 1, 2]
    thread.join()


@pytest.mark.parametrize("enabled", [False, True])
def test_workers_collect_garbage_if_the_main_process_does(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        assert list(DataLoader(Collects(), None, num_workers=1)) == [enabled, enabled]
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


class Dropped:
    """Finished in the process that dropped it, and no other."""

    def __init__(self, log: Path) -> None:
        self.log, self.itself = log, self

    def __del__(self) -> None:
        with self.log.open("a") as file:
            file.write(f"{os.getpid()}\n")


def test_workers_do_not_finish_what_the_main_process_dropped(tmp_path: Path) -> None:
    marker = Rows(1, 1)
    multiprocessing.util.register_after_fork(marker, lambda _: gc.set_threshold(1, 1, 1))  # a collection at once
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1_000_000)
    try:
        Dropped(tmp_path / "log")
        assert len(list(DataLoader(Rows(4, 4), 1, num_workers=1))) == 4
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert (tmp_path / "log").read_text() == f"{os.getpid()}\n"


# Early ends -----------------------------------------------------------------------------------------------------------


@METHODS
@pytest.mark.parametrize("persistent", [False, True])
def test_a_consumer_that_stops_early(method: str, persistent: bool) -> None:
    options: dict[str, Any] = {"num_workers": 2, "persistent_workers": persistent, "worker_method": method}
    loader = DataLoader(Rows(64), 4, **options)
    for rows, _ in loader:
        assert rows.shape == (4, 4096)
        break
    del loader, rows


def test_workers_that_nobody_reads_end_too() -> None:
    loader = DataLoader(Texts(), 1, num_workers=2, prefetch_factor=8, collate_fn=identity)
    iterator = iter(loader)
    time.sleep(0.1)  # their connections fill up
    workers = list(iterator._workers)
    del iterator
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]  # by themselves, not by the signal that comes later


class Texts(Dataset[Any]):
    """Large samples that are no tensors, and large tasks."""

    def __len__(self) -> int:
        return 400_000

    def __getitem__(self, index: int) -> str:
        return "x" * 100_000 if index % 1000 == 0 else "y"


def test_full_connections_do_not_block_each_other() -> None:
    loader = DataLoader(Texts(), 20_000, num_workers=2, prefetch_factor=10, collate_fn=identity)
    assert [len(batch) for batch in loader] == [20_000] * 20


def test_very_many_small_tasks_do_not_fill_a_connection() -> None:
    loader = DataLoader(range(3000), None, num_workers=1, prefetch_factor=3000)
    assert list(loader) == list(range(3000))


def test_epochs_that_are_begun_and_left_do_not_fill_a_connection() -> None:
    loader = DataLoader(Texts(), 1000, num_workers=1, persistent_workers=True, collate_fn=identity)
    for _ in range(1000):
        iterator = iter(loader)
    assert len(next(iterator)[0]) == 100_000


PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore in the background
import os, sys, time
import flambeau
from flambeau.utils.data import DataLoader
from tests.utils.data.datasets import Rows, Trouble

iterator = iter(DataLoader(Rows(10_000, 64), 600, num_workers=2, prefetch_factor=2))
next(iterator)
print(*(worker.pid for worker in iterator._workers), flush=True)
{rest}
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("rest", "sent", "code"),
    [
        ("", None, 0),  # at the end of the program, with the iterator alive
        ("raise ValueError", None, 1),
        ("time.sleep(60)", signal.SIGINT, -signal.SIGINT),
        ("list(DataLoader(Trouble('sleep', 0), num_workers=1))", signal.SIGINT, -signal.SIGINT),
        ("time.sleep(60)", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_programs_that_end(rest: str, sent: signal.Signals | None, code: int) -> None:
    names = names_in_shared_memory()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(rest=rest)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        assert program.stdout is not None
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 2
        if sent is signal.SIGINT:
            time.sleep(0.3)  # Python drops an interrupt that comes while a weak reference's callback runs
            os.killpg(program.pid, sent)  # as a terminal does: the workers get it too
        elif sent is not None:
            program.send_signal(sent)
        assert program.wait(20) == code
        assert program.stderr is not None
        assert "in _process_worker" not in program.stderr.read()  # workers end silently
    deadline = time.monotonic() + 5
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, pids))
    assert names_in_shared_memory() <= names


# Shared memory --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shared.CAN_SHARE, reason="files cannot be passed between processes")
def test_batches_are_in_shared_memory_and_are_used_again() -> None:
    rows = Rows(400, 4096)
    addresses = set()
    kept = []
    for number, (batch, index) in enumerate(DataLoader(rows, 4, num_workers=2)):
        assert batch.is_shared()
        addresses.add(batch.data_ptr())
        if number % 10 == 0:
            kept.append((batch, index))
        batch.mul_(1)  # writable
        assert flambeau.equal(batch, rows.rows[index])
    assert len(addresses) < 40
    assert all(flambeau.equal(batch, rows.rows[index]) for batch, index in kept)
    del batch, kept


def test_all_batches_can_be_kept() -> None:
    rows = Rows(600, 4096)
    files = open_files()
    kept = list(DataLoader(rows, 2, num_workers=2))
    assert open_files() - files < 4 * shared.MOST_HELD
    assert flambeau.equal(flambeau.cat([batch for batch, _ in kept]), rows.rows)
    del kept


class Kept(Dataset[Any]):
    """Returns parts of what it keeps, and changes it meanwhile."""

    def __init__(self) -> None:
        self.tensor = flambeau.zeros(20_000)
        self.batches: list[Any] = []

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        self.tensor += 1
        return self.tensor, self.tensor[:10_000], self.tensor.numpy(), self.tensor[3]


def test_what_a_dataset_keeps_is_not_handed_out() -> None:
    loader = DataLoader(Kept(), None, num_workers=1, collate_fn=identity)
    for number, (whole, half, array, one) in enumerate(loader, 1):
        assert whole.shape == (20_000,)
        assert half.data_ptr() == whole.data_ptr()  # what shared memory still does
        assert bool((whole == number).all())
        assert bool((half == number).all())
        assert (np.asarray(array) == number).all()
        assert one.item() == number
        assert one.untyped_storage().nbytes() == 4  # a small part comes alone
    del whole, half, array, one


def test_a_collate_fn_that_keeps_its_batches() -> None:
    loader = DataLoader(Rows(40), 4, num_workers=1, collate_fn=Keeper())
    for number, (latest, first) in enumerate(loader):
        assert flambeau.equal(first[0], Rows(4).rows[0])
        assert latest[0, 0] == 4 * 4096 * number
    del latest, first


class Keeper:
    """Sends the first batch again with each later one."""

    def __init__(self) -> None:
        self.first: Any = None

    def __call__(self, samples: Any) -> Any:
        batch = flambeau.utils.data.default_collate(samples)[0]
        if self.first is None:
            self.first = batch
        return batch, self.first


def test_everything_arrives_without_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "CAN_SHARE", False)
    rows = Rows(16)
    got = flambeau.cat([batch for batch, _ in DataLoader(rows, 4, num_workers=2)])
    assert flambeau.equal(got, rows.rows)


# Threads --------------------------------------------------------------------------------------------------------------


def test_threads_have_the_orders_of_processes_and_generators_of_their_own() -> None:
    def run(method: str) -> Any:
        flambeau.manual_seed(3)
        loader = DataLoader(RandomRows(8), None, True, num_workers=2, worker_method=method)
        return list(loader), flambeau.rand(1).item()

    (processes_got, after), (threads_got, after_threads) = run("multiprocessing"), run("thread")
    assert after == after_threads
    order_and_own = [(index, python, own.item()) for index, python, _, own in processes_got]
    assert [(index, python, own.item()) for index, python, _, own in threads_got] == order_and_own
    assert run("thread")[0] == threads_got


def test_worker_info_in_threads() -> None:
    class Info(Dataset[Any]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return get_worker_info(), flambeau.random.thread_safe_generator()

    dataset = Info()
    for number, (info, generator) in enumerate(DataLoader(dataset, None, num_workers=2, worker_method="thread")):
        assert (info.id, info.num_workers, info.worker_method) == (number, 2, "thread")
        assert info.dataset is dataset
        assert generator is info.rng.torch_generator
        assert generator.initial_seed() == info.seed
    assert get_worker_info() is None
    assert flambeau.random.thread_safe_generator() is None
    del info


def test_threads_refuse_a_context() -> None:
    with pytest.raises(ValueError, match="can only be used with multi-process loading"):
        DataLoader(range(3), num_workers=1, worker_method="thread", multiprocessing_context="fork")
    with pytest.raises(ValueError, match="worker_method should be 'multiprocessing' or 'thread'"):
        DataLoader(range(3), num_workers=1, worker_method="fibre")


def test_an_iterator_of_a_forked_child_leaves_the_workers_alone() -> None:
    iterator: Any = iter(DataLoader(range(4), None, num_workers=1))
    pool = iterator._pool
    child = multiprocessing.get_context("fork").Process(target=pool.close)
    child.start()
    child.join()
    assert list(iterator) == [0, 1, 2, 3]
    with contextlib.suppress(ValueError):
        child.close()
