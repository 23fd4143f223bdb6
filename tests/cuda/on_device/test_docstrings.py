"""Examples in docstrings that need a device."""

from __future__ import annotations

import doctest

import pytest

from tests.test_docs import EXAMPLES, ON_A_DEVICE, complaints_about


@pytest.mark.parametrize(
    "test", [each for each in EXAMPLES if each.name.startswith(ON_A_DEVICE)], ids=lambda test: test.name
)
def test_example_on_a_device(test: doctest.DocTest) -> None:
    names = dict(test.globs)
    try:
        assert not complaints_about(test)
    finally:
        test.globs.clear()  # tensors of an example would stay in the device's memory
        test.globs.update(names)
