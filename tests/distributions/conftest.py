"""Distributions look at their arguments in every test: modules of PyTorch switch that off for a process that imports
them, as those that compare names do."""

from __future__ import annotations

import pytest

from ..support.oracle import pytorch


@pytest.fixture(autouse=True)
def _validation() -> None:
    if pytorch is not None:
        pytorch.distributions.Distribution.set_default_validate_args(True)
