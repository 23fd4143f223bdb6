"""Numbers beside tensors of half precision: rounded like the tensor, except in products and quotients."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from tests.support.differential import differential

_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")


@pytest.mark.parametrize("name", _OPERATORS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@differential(tolerance=0.0)
def test_every_call_gives_pytorchs_bits(T: Any, name: str, dtype: str) -> Any:
    values = [0.1 + 0.037 * step for step in range(200)]
    tensor = T.tensor(values, dtype=getattr(T, dtype))
    calculate = getattr(operator, name)
    return [calculate(tensor, number) for number in (1.00123, 0.3337, 2.71828) for _ in range(2)]
