"""Workers are forked where a test does not choose: a fork alone takes classes along that stand inside of tests.

It is no longer Python's own choice from 3.14 on. `test_start_methods` tries all ways, with datasets of a module.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _forked_workers() -> Iterator[None]:
    before = multiprocessing.get_start_method(allow_none=True)
    if "fork" in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)
