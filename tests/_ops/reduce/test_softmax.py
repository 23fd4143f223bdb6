"""Softmax and its kin, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.differential import differential


@pytest.mark.parametrize("shape", [(), (1,), (2,)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@differential
def test_the_gradient_reads_the_result_though_it_was_changed_by_its_data(T: Any, name: str, shape: Any) -> Any:
    x = T.ones(shape, requires_grad=True)
    y = getattr(T.nn.functional, name)(x, -1)
    y.data.mul_(3)
    y.sum().backward()
    return x.grad
