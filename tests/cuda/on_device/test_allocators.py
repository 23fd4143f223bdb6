"""Memory that a user's own library hands out: for one pool of memory, beside the common one."""

from __future__ import annotations

import ctypes
import gc
import subprocess
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from tests.cuda.on_device.conftest import is_simulated
from tests.support.simulated_cuda import COMPILER

_SOURCE = """
#include <cstdlib>
extern "C" {
long taken, given, bytes;
void* take(long size, int device, void* stream) { taken++; bytes += size; return std::aligned_alloc(512, size); }
void give(void* pointer, long size, int device, void* stream) { given++; bytes -= size; std::free(pointer); }
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Any:
    if COMPILER is None or not is_simulated():
        pytest.skip("the library takes memory of the host, which the simulated device has")
    (tmp_path / "own.cpp").write_text(_SOURCE)
    path = tmp_path / "own.so"
    subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", tmp_path / "own.cpp", "-o", path], check=True)
    return path


def _counted(path: Path) -> list[int]:
    found = ctypes.CDLL(str(path))
    return [ctypes.c_long.in_dll(found, name).value for name in ("taken", "given", "bytes")]


def test_a_pool_takes_its_segments_from_an_allocator(library: Path) -> None:
    allocator = torch.cuda.CUDAPluggableAllocator(str(library), "take", "give").allocator()
    pool = torch.cuda.MemPool(allocator)
    assert pool.allocator is allocator
    torch.ones(10, device="cuda")
    assert _counted(library) == [0, 0, 0]
    with torch.cuda.use_mem_pool(pool):
        x = torch.arange(1000.0, device="cuda")
    assert _counted(library) == [1, 0, 2 << 20]
    y = x * 2  # from the common pool
    assert y.sum().item() == 999000.0
    assert _counted(library)[0] == 1
    del x, y, pool
    gc.collect()
    torch.cuda.empty_cache()
    assert _counted(library) == [1, 1, 0]


def test_a_pool_without_an_allocator_has_none() -> None:
    assert torch.cuda.MemPool().allocator is None
