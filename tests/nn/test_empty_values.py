"""Sizes of zero, and other edges of layers and functions, beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from tests.support.differential import differential, outcome


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell", "RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("sizes", [(4, 0), (0, 3), (0, 0)])
@differential
def test_recurrent_layers_without_features(torch: Any, kind: str, sizes: tuple[int, int]) -> Any:
    def run() -> Any:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(*sizes)
        x = torch.ones(2, *([] if kind.endswith("Cell") else [3]), sizes[0], requires_grad=True)
        results = layer(x)
        first = results[0] if isinstance(results, tuple) else results
        first.sum().backward()
        return [tuple(each.shape) for each in (first, x.grad)], [each.grad is None for each in layer.parameters()]

    return outcome(run)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("shape", [(0, 2, 4), (2, 0, 4), (2, 3, 0)])
@differential
def test_adaptive_pooling_of_nothing(torch: Any, dims: int, kind: str, shape: tuple[int, int, int]) -> Any:
    pool = getattr(torch.nn.functional, f"adaptive_{kind}_pool{dims}d")

    def run(size: int) -> Any:
        x = torch.ones(*shape[:2], *[shape[2]] * dims, requires_grad=True)
        result = pool(x, size)
        result.sum().backward()
        return result, x.grad

    return [outcome(lambda size=size: run(size)) for size in (0, 2)]


@differential
def test_joining_of_nothing(torch: Any) -> Any:
    nothing = torch.ones(0)
    return [torch.cat([nothing, nothing], dim) for dim in (0, 1, 5, -3)], torch.cat([nothing, torch.ones(2, 3)], 1)


@differential
def test_pixels_of_nothing(torch: Any) -> Any:
    shuffle, unshuffle = torch.pixel_shuffle, torch.pixel_unshuffle
    return (
        *(unshuffle(torch.ones(1, 4, 0, 2), 2), shuffle(torch.ones(0, 4, 2, 2), 2)),
        *(outcome(lambda: shuffle(torch.ones(1, 5, 2, 2), 2)), outcome(lambda: unshuffle(torch.ones(1, 4, 3, 2), 2))),
    )


@differential
def test_least_squares_by_tolerance(torch: Any) -> Any:
    A, b = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([[1.0], [2.5], [3.0]])
    tolerances = (0.5, torch.tensor(0.5), torch.tensor(1), torch.tensor([0.5]), torch.tensor(0.5, requires_grad=True))
    return [
        outcome(
            lambda rcond=rcond, driver=driver: torch.linalg.lstsq(A, b, rcond=rcond, driver=driver).solution.round(
                decimals=4
            )
        )
        for rcond in tolerances
        for driver in ("gels", "gelsd", "gelss")
    ]


@differential
def test_arrays_of_other_libraries(torch: Any) -> Any:
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(3))
    return (
        *(torch.asarray(capsule), torch.asarray(numpy.float32(3)), torch.asarray(numpy.int16(3))),
        outcome(lambda: torch.asarray(numpy.float32(3), copy=False)),
        outcome(lambda: torch.asarray([1.0], copy=False)),
    )
