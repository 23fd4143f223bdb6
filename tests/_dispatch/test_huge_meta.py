"""Ops on meta tensors of absurd sizes cost nothing, and none ends the process: `huge_meta.py` runs them elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ..conformance.entries import entries

_COSTLY: frozenset[str] = frozenset()
"""Entries that take long, or memory. One that does not any more must leave the list."""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no limit of memory")
def test_entries_cost_nothing_at_huge_sizes() -> None:
    program = [sys.executable, "-m", f"{__package__}.huge_meta"]
    # Each thread of an allocator or a library takes addresses of its own, of which the program has a fixed number.
    alone = {**os.environ, "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(program, capture_output=True, text=True, check=False, env=alone)
    found = dict([json.loads(line) for line in run.stdout.splitlines()])
    names = [each.name for each in entries() if each.dtypes]
    missing = next((name for name in names if name not in found), None)
    assert missing is None, f"{missing} ends the program ({run.returncode}): {run.stderr[-1000:]}"
    assert {name: complaints for name, complaints in found.items() if complaints and name not in _COSTLY} == {}
    assert [name for name in _COSTLY if not found[name]] == []
