"""The caching allocator: memory comes back, is clean where it must be, and is counted."""

from __future__ import annotations

import gc
import mmap
import os
import random
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import cpu
from flambeau._backends.cpu.memory import allocator
from flambeau._codegen.machine.allocator import THRESHOLD

MEBI = 1 << 20


@pytest.fixture(autouse=True)
def clean_pool() -> Iterator[None]:
    if not allocator.start():
        pytest.skip("the pool is switched off")
    running = allocator.allocator()
    assert running is not None
    limits = {name: running[name] for name in ("cache_limit", "total_limit")}
    gc.collect()
    cpu.empty_cache()
    cpu.reset_peak_memory_stats()
    yield
    running.set(**limits)
    cpu.empty_cache()


def _array(size: int) -> Any:
    return np.empty(size, np.uint8)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_comes_back() -> None:
    before = cpu.memory_stats()
    array = _array(10 * MEBI)
    place = _address(array)
    del array
    again = _array(10 * MEBI)
    assert _address(again) == place
    after = cpu.memory_stats()
    assert after["pool.reused"] == before["pool.reused"] + 1
    assert after["segment.all.allocated"] == before["segment.all.allocated"] + 1


def test_alignment() -> None:
    for size in (THRESHOLD, 3 * MEBI + 5, 9 * MEBI):
        assert _address(_array(size)) % 64 == 0


@pytest.mark.skipif(not hasattr(mmap, "MAP_POPULATE"), reason="here pages are there when they are touched")
def test_small_pages_are_there_before_they_are_touched() -> None:
    made = _array(MEBI)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made[:] = 1
    touched = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert touched < MEBI // mmap.PAGESIZE // 2


def test_small_arrays_do_not_come_from_the_pool() -> None:
    before = cpu.memory_stats()
    kept = [_array(size) for size in (0, 1, 1000, THRESHOLD - 1)]
    assert cpu.memory_stats() == before
    kept.append(_array(THRESHOLD))
    assert cpu.memory_stats() != before


def test_waste_is_bounded() -> None:
    kept = []
    for size in range(THRESHOLD, 40 * MEBI, 777_777):
        allocated, reserved = cpu.memory_allocated(), cpu.memory_reserved()
        kept.append(_array(size))
        assert size < cpu.memory_allocated() - allocated <= size * 1.125 + 64
        assert cpu.memory_reserved() - reserved == cpu.memory_allocated() - allocated
    del kept
    # Of what lies idle, no more than the next larger class is taken.
    for size in range(THRESHOLD, 40 * MEBI, 555_555):
        allocated = cpu.memory_allocated()
        kept_one = _array(size)
        assert cpu.memory_allocated() - allocated <= size * 1.26 + 64
        del kept_one


def test_zeros_are_zero() -> None:
    for _ in range(3):
        array = np.zeros(5 * MEBI, np.uint8)
        assert not array.any()
        array[:] = 255
        del array
    assert cpu.memory_stats()["pool.reused"] > 0


def test_calloc_overflow_and_huge_sizes_fail() -> None:
    failures = cpu.memory_stats()["num_ooms"]
    for size in (1 << 50, 1 << 60):  # beyond what any address can reach
        with pytest.raises(MemoryError):
            _array(size)
        with pytest.raises(MemoryError):
            np.zeros(size, np.uint8)
    assert cpu.memory_stats()["num_ooms"] >= failures
    assert _array(2 * MEBI).size == 2 * MEBI


@pytest.mark.parametrize("old", [10, 100_000, 300_000, 1_000_000])
@pytest.mark.parametrize("new", [10, 100_000, 310_000, 2_000_000])
def test_resize(old: int, new: int) -> None:
    allocated = cpu.memory_allocated()
    array = np.arange(old, dtype=np.float64)
    array.resize(new, refcheck=False)
    common = min(old, new)
    np.testing.assert_array_equal(array[:common], np.arange(common))
    assert not array[common:].any()
    del array
    assert cpu.memory_allocated() == allocated


@pytest.mark.parametrize("old", [1000, 300_000])
def test_a_resize_that_fails_leaves_the_array_as_it_was(old: int) -> None:
    running = allocator.allocator()
    assert running is not None
    array = np.arange(old, dtype=np.float64)
    running.set(total_limit=cpu.memory_allocated())
    with pytest.raises(MemoryError):
        array.resize(3_000_000, refcheck=False)
    cpu.set_per_process_memory_fraction(1.0)
    np.testing.assert_array_equal(array, np.arange(old))


def test_arrays_from_a_file_shrink(tmp_path: Any) -> None:
    path = tmp_path / "numbers"
    np.arange(1_000_000.0).tofile(path)
    assert np.fromfile(path, count=1_000_000)[-1] == 999_999
    assert np.fromiter(iter(range(300_000)), float).sum() == sum(range(300_000))


def test_peaks() -> None:
    baseline = cpu.memory_allocated()
    one, two = _array(4 * MEBI), _array(4 * MEBI)
    both = cpu.memory_allocated()
    assert both >= baseline + 8 * MEBI
    del one
    assert cpu.memory_allocated() < both
    assert cpu.max_memory_allocated() == both
    assert cpu.memory_reserved() >= both
    cpu.reset_peak_memory_stats()
    assert cpu.max_memory_allocated() == cpu.memory_allocated()
    assert cpu.max_memory_reserved() == cpu.memory_reserved()
    del two


def test_tensors_are_counted() -> None:
    before = cpu.memory_allocated()
    tensor = flambeau.zeros(2 * MEBI)
    assert cpu.memory_allocated() >= before + 8 * MEBI
    view = tensor[1:]
    del tensor
    assert cpu.memory_allocated() >= before + 8 * MEBI
    del view
    assert cpu.memory_allocated() == before


def test_emptying_the_cache() -> None:
    kept = _array(3 * MEBI)
    kept[:] = 7
    _array(30 * MEBI)
    assert cpu.memory_reserved() > cpu.memory_allocated()
    cpu.empty_cache()
    assert cpu.memory_reserved() == cpu.memory_allocated() > 0
    assert (kept == 7).all()


def test_the_limit_of_idle_memory() -> None:
    cpu.set_memory_cache_limit(20 * MEBI)
    kept = [_array(6 * MEBI) for _ in range(8)]
    while kept:
        kept.pop()
        assert cpu.memory_reserved() - cpu.memory_allocated() <= 20 * MEBI
    assert cpu.memory_reserved() > cpu.memory_allocated()
    _array(40 * MEBI)
    assert cpu.memory_reserved() - cpu.memory_allocated() <= 20 * MEBI
    cpu.set_memory_cache_limit(0)
    assert cpu.memory_reserved() == cpu.memory_allocated()
    _array(2 * MEBI)
    assert cpu.memory_reserved() == cpu.memory_allocated()
    for wrong in (-1, 1.5, True):
        with pytest.raises((ValueError, TypeError)):
            cpu.set_memory_cache_limit(wrong)  # type: ignore[arg-type]


def test_the_limit_of_all_memory() -> None:
    running = allocator.allocator()
    assert running is not None
    idle = _array(16 * MEBI)
    del idle
    running.set(total_limit=cpu.memory_allocated() + 32 * MEBI)
    retries = cpu.memory_stats()["num_alloc_retries"]
    kept = _array(24 * MEBI)  # idle memory has to go first
    assert cpu.memory_stats()["num_alloc_retries"] == retries + 1
    failures = cpu.memory_stats()["num_ooms"]
    with pytest.raises(MemoryError):
        _array(24 * MEBI)
    assert cpu.memory_stats()["num_ooms"] == failures + 1
    del kept
    cpu.set_per_process_memory_fraction(1.0)
    assert cpu.memory_stats()["pool.total_limit"] == (1 << 63) - 1
    cpu.set_per_process_memory_fraction(0.5)
    assert cpu.memory_stats()["pool.total_limit"] == allocator.physical_memory() // 2
    with pytest.raises(ValueError, match="Invalid fraction value"):
        cpu.set_per_process_memory_fraction(1.5)
    with pytest.raises(TypeError, match="must be `float`"):
        cpu.set_per_process_memory_fraction(1)


def test_the_summary() -> None:
    kept = _array(8 * MEBI)
    in_use = cpu.memory_stats()["allocated_bytes.all.current"]  # others' tensors included
    text = cpu.memory_summary()
    assert in_use >= 8 * MEBI
    assert f"{in_use / MEBI:.1f} MiB" in text
    assert "allocations" in text
    assert "allocations" not in cpu.memory_summary(abbreviated=True)
    del kept


def test_other_threads() -> None:
    """A thread that uses tensors uses the pool; arrays may be freed in another thread than the one that made them."""
    made: list[Any] = []
    before = cpu.memory_stats()["allocation.all.allocated"]

    def work() -> None:
        flambeau.ones(1)
        made.append(np.full(3 * MEBI, 5, np.uint8))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert cpu.memory_stats()["allocation.all.allocated"] > before
    assert (made[0] == 5).all()
    allocated = cpu.memory_allocated()
    made.clear()
    assert cpu.memory_allocated() < allocated


def _stress(seed: int, errors: list[str], handed_over: list[Any]) -> None:
    generator = random.Random(seed)
    flambeau.ones(1)
    live: list[tuple[Any, int]] = []
    for _ in range(150):
        choice = generator.random()
        if choice < 0.55 and len(live) < 8:
            size = generator.choice([100, 200_000, MEBI - 1, MEBI, int(MEBI * generator.uniform(1, 6))])
            array = np.zeros(size, np.uint8) if generator.random() < 0.5 else None
            if array is not None and array.any():
                errors.append("zeros that are not zero")
            array = np.empty(size, np.uint8) if array is None else array
            mark = generator.randrange(256)
            array[:: max(1, size // 500)] = mark
            array[-1] = mark
            live.append((array, mark))
        elif choice < 0.65 and live:
            array, mark = live.pop(generator.randrange(len(live)))
            handed_over.append(array)
            if len(handed_over) > 4:
                handed_over.pop(0)
        elif live:
            array, mark = live.pop(generator.randrange(len(live)))
            if not (array[:: max(1, array.size // 500)] == mark).all() or array[-1] != mark:
                errors.append("memory was written to by somebody else")
        if generator.random() < 0.02:
            cpu.empty_cache()


def test_random_allocations_in_many_threads() -> None:
    allocated = cpu.memory_allocated()
    errors: list[str] = []
    handed_over: list[Any] = []
    threads = [threading.Thread(target=_stress, args=(seed, errors, handed_over)) for seed in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    handed_over.clear()
    gc.collect()
    assert cpu.memory_allocated() == allocated
    cpu.empty_cache()
    assert cpu.memory_reserved() == allocated


def _run(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_starts_nothing() -> None:
    code = """
import sys, flambeau
flambeau.cpu.empty_cache(); flambeau.cpu.reset_peak_memory_stats()
x = flambeau.zeros(10) + 1
assert flambeau.cpu.memory_stats() == {"pool.running": 0}
assert flambeau.cpu.memory_allocated() == flambeau.cpu.max_memory_reserved() == 0
assert "not running" in flambeau.cpu.memory_summary()
assert "llvmlite" not in sys.modules
"""
    _run(code)


def test_large_tensors_start_it_unless_it_is_switched_off() -> None:
    code = """
import flambeau
x = flambeau.ones(1000000); y = x + x; z = y * y
print(flambeau.cpu.memory_allocated() > 0, float(z[-1]))
"""
    assert _run(code).split() == ["True", "4.0"]
    assert _run(code, FLAMBEAU_CPU_POOL="0").split() == ["False", "4.0"]
    assert _run(code, FLAMBEAU_GENERATED="0").split() == ["False", "4.0"]


def test_without_generated_code_limits_are_no_error() -> None:
    code = """
import flambeau
flambeau.cpu.set_memory_cache_limit(10); flambeau.cpu.set_per_process_memory_fraction(0.5)
print(flambeau.cpu.memory_stats())
"""
    assert "'pool.running': 0" in _run(code, FLAMBEAU_GENERATED="0")


def test_arrays_outlive_everything() -> None:
    """Arrays that are freed at the very end of the interpreter, after its modules."""
    code = """
import builtins, sys, threading
import flambeau, numpy as np
from flambeau._backends.cpu.memory import allocator
assert allocator.start()
builtins.kept = [np.ones(1 << 20), flambeau.ones(1 << 20)]
sys.kept = np.ones(1 << 20)
class Late:
    def __init__(self): self.array = np.ones(1 << 20)
    def __del__(self): self.array.resize(1 << 21, refcheck=False); del self.array
late = Late(); late.cycle = late
builtins.late = Late()
print("done")
"""
    assert _run(code) == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork() -> None:
    code = """
import os, threading, warnings
warnings.simplefilter("ignore")
import flambeau, numpy as np
from flambeau._backends.cpu.memory import allocator
assert allocator.start()
kept = np.full(5 << 20, 3, np.uint8)
np.empty(7 << 20, np.uint8)
flambeau.ones(1), flambeau.cpu.memory_stats()  # nothing is to be imported at the moment of a fork
stop = False
def busy():
    flambeau.ones(1)
    while not stop:
        np.empty(2 << 20, np.uint8)
thread = threading.Thread(target=busy, daemon=True)
thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        inner = np.zeros(7 << 20, np.uint8)
        inner[:] = 1
        kept[:] = 4
        del inner
        flambeau.cpu.empty_cache()
        os._exit(0 if np.zeros(3 << 20, np.uint8).sum() == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
thread.join()
assert (kept == 3).all()
print("done")
"""
    assert _run(code) == "done\n"
