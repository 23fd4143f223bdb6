"""The device that stands in for a GPU: what its arrays refuse, what tensors on it can do, what runs their ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._core.backend import backend_of
from flambeau._dispatch.op import OPS

from .foreign import DEVICE, ForeignArray, Refused, install_foreign_device

BACKEND = install_foreign_device()


@pytest.mark.parametrize(
    "use",
    [float, int, bool, list, np.asarray, lambda x: x.item(), lambda x: x + np.ones(1), lambda x: x[np.array([0])]],
)
def test_arrays_refuse_the_host(use: Callable[[Any], Any]) -> None:
    with pytest.raises(Refused):
        use(BACKEND.from_host(np.ones(1)))


def test_tensors_come_and_go() -> None:
    made = flambeau.arange(6, device=DEVICE, dtype=flambeau.float32).reshape(2, 3)
    assert type(made._array) is ForeignArray
    assert made.cpu().tolist() == made.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made.sum().item() == 15
    assert repr(made) == repr(made.cpu())[:-1] + f", device='{DEVICE}')"
    made[0] = flambeau.ones(3).to(DEVICE)
    assert made.t().contiguous().tolist() == [[1, 3], [1, 4], [1, 5]]


def test_random_numbers_are_those_of_the_cpu() -> None:
    flambeau.manual_seed(0)
    expected = flambeau.randn(20)
    flambeau.manual_seed(0)
    assert flambeau.empty(20, device=DEVICE).normal_().tolist() == expected.tolist()


def test_training_is_that_on_the_cpu() -> None:
    def trained(device: str) -> list[Any]:
        flambeau.manual_seed(0)
        net = flambeau.nn.Sequential(flambeau.nn.Linear(4, 8), flambeau.nn.ReLU(), flambeau.nn.Linear(8, 2)).to(device)
        optimizer = flambeau.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        x, y = flambeau.randn(5, 4).to(device), flambeau.tensor([0, 1, 0, 1, 1]).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            flambeau.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        return [each.detach().cpu().numpy() for each in net.parameters()]

    for expected, actual in zip(trained("cpu"), trained(DEVICE), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_ops_run_their_reference_kernels() -> None:
    """What the CPU has pushed is the CPU's alone."""
    lowered = [op for op in OPS.values() if op.name in backend_of("cpu").functions.finders]
    assert lowered
    for op in lowered:
        assert BACKEND.prepare(op) is op.kernel
