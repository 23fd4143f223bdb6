"""Meta tensors, fake tensors and compiled programs hold no array that points where nothing is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from flambeau._subclasses.fake_tensor import FakeTensorMode

import flambeau
from flambeau._core.arrays.abstract import AbstractArray, NeedsData


def test_arrays_without_data_have_no_address() -> None:
    with FakeTensorMode():
        fake = flambeau.empty(10**9, 10**9)
    for tensor in (flambeau.empty(10**9, 10**9, device="meta"), fake):
        for each in (tensor, tensor[5:, ::7], tensor.t(), tensor.view(-1)[3:]):
            array = each._array
            assert type(array) is AbstractArray
            assert not hasattr(array, "__array_interface__")
            with pytest.raises(TypeError):
                memoryview(array)
            with pytest.raises(NeedsData):
                np.asarray(array)


def test_no_array_is_made_beyond_its_memory() -> None:
    """A part of the tests, with every array checked; all of them: the same option for `pytest tests`."""
    tests = [
        "tests/_torch/_subclasses/test_fake_tensor.py",
        "tests/compiler/test_abstract_arrays.py",
        "-k",
        "not database",
    ]
    options = ["-q", "-p", "no:xdist", "-p", "no:benchmark", "-p", "tests.support.bounded_arrays_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reads of arrays without data were refused" in done.stdout
