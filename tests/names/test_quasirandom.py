"""Sobol sequences beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_points(torch: Any) -> Any:
    engine = torch.quasirandom.SobolEngine(5)
    first = engine.draw(7)
    second = engine.draw(1, dtype=torch.float64)
    third = engine.fast_forward(4).draw_base2(2)
    repeated = engine.reset().draw(3)
    skipped = torch.quasirandom.SobolEngine(5).fast_forward(9).draw(2)
    into = torch.empty(0)
    engine.draw(2, out=into)
    wide = torch.quasirandom.SobolEngine(1111).draw(40)
    return first, second, third, repeated, skipped, into, wide, engine.num_generated, repr(engine)


@differential
def test_scrambled_points(torch: Any) -> Any:
    torch.manual_seed(4)
    seeded = torch.quasirandom.SobolEngine(6, scramble=True, seed=11)
    default = torch.quasirandom.SobolEngine(3, scramble=True)
    return seeded.draw(9), seeded.draw(4), default.draw(5, dtype=torch.float64), repr(seeded), torch.rand(2)


@differential
def test_wrong_use(torch: Any) -> Any:
    engine = torch.quasirandom.SobolEngine(2)
    engine.draw(3)
    return (
        outcome(lambda: torch.quasirandom.SobolEngine(0), "Supported range of dimensionality"),
        outcome(lambda: torch.quasirandom.SobolEngine(21202), "Supported range of dimensionality"),
        outcome(lambda: engine.draw_base2(2), "power of 2"),
    )


def test_dimensions_without_numbers_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="1111 dimensions"):
        flambeau.quasirandom.SobolEngine(1112)
