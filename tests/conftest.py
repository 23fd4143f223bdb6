"""Tests beside the PyTorch at hand: without one what needs it is skipped; an older one fails where 2.13 is new."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # PyTorch on the CPU is compared; read when PyTorch is imported
# Several processes share the cores here: threads that wait for their next piece by spinning would take them from the
# others (Muon's tests took twice as long). Read when OpenMP's library is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

os.environ.setdefault("FLAMBEAU_COMPILE_FAULTS", "raise")  # what fails inside the compiler fails a test

import flambeau

from .support.global_state import allow_settings, left_as_found
from .support.older_oracle import reason_to_fail
from .support.oracle import WITH_CUDA, older_than, pytorch

with contextlib.suppress(ImportError):
    from hypothesis.internal.conjecture import providers

    # Else it parses every module of the package that happens to be imported, and draws from the numbers found there:
    # examples would depend on the tests before.
    providers._get_local_constants = lambda: providers._local_constants

NO_PYTORCH = "needs PyTorch, which is not installed"


def _misses_pytorch(error: BaseException | None) -> bool:
    return isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "torch"


class OracleModule(pytest.Module):
    """A module of tests, skipped where an import of PyTorch fails."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            if not _misses_pytorch(error.__cause__):
                raise
        return pytest.skip(NO_PYTORCH, allow_module_level=True)


@pytest.fixture(autouse=True)
def _settings_of_the_process() -> Iterator[None]:
    """No test depends on what another one has left behind."""
    with left_as_found(*filter(None, (flambeau, pytorch))):
        if pytorch is not None:
            allow_settings(pytorch)  # modules of tests have imported the database
        yield
        if pytorch is not None:
            allow_settings(pytorch)  # this test may have


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> OracleModule:
    module: OracleModule = OracleModule.from_parent(parent, path=module_path)
    return module


def pytest_collection_finish() -> None:
    """What is there now stays: whoever collects garbage need not look at it, and a forked process does not copy it."""
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Memory that moves lets everything free again (`living_objects`): it is frozen anew with the next file."""
    if nextitem is not None and nextitem.path != item.path and not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if not _misses_pytorch(error):
            raise
    return pytest.skip(NO_PYTORCH)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    older = older_than(2, 13)
    if not older and not WITH_CUDA:
        return
    for item in items:
        if (reason := reason_to_fail(item.nodeid, older=older, with_cuda=WITH_CUDA)) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
