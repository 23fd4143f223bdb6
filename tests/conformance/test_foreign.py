"""The first samples of every entry on the device that stands in for a GPU.

The whole of it: `python -m tests.conformance --device foreign`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .entries import Entry, entries
from .foreign import examine, foreign, known_gaps

_SAMPLES = 2
_ENTRIES = entries()
_STAND = foreign()
_GAPS = known_gaps(_STAND)


@pytest.mark.parametrize("entry", [each for each in _ENTRIES if each.name not in _GAPS], ids=repr)
def test_first_samples(entry: Entry) -> None:
    """The kernels run on arrays that are not NumPy's, and read none of them unasked."""
    assert not examine(entry, _STAND, _SAMPLES)


@pytest.mark.parametrize("entry", [each for each in _ENTRIES if each.name in _GAPS], ids=repr)
def test_known_gaps_fail(entry: Entry) -> None:
    """The list becomes shorter: what passes comes off it."""
    assert examine(entry, _STAND)


def test_known_gaps_name_entries() -> None:
    assert _GAPS.keys() <= {each.name for each in _ENTRIES}


def test_no_generated_kernel_sees_a_foreign_array() -> None:
    """With generated kernels at every size: one that got such an array would read memory that is not there."""
    command = [sys.executable, "-m", "tests.conformance", "--device", "foreign", "--limit", "1"]
    done = subprocess.run(
        command, check=False, env={**os.environ, "FLAMBEAU_LARGE": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
