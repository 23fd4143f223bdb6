"""Numbers beside tensors of half precision, and tensors without dimensions: rounded like the tensor, except as second
operands of products and quotients."""

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


_BY_TENSOR: dict[str, Any] = {
    "mul": lambda T, x, y: T.mul(x, y),
    "div": lambda T, x, y: T.div(x, y),
    "floor_divide": lambda T, x, y: T.floor_divide(x, y),
    "div, floor": lambda T, x, y: T.div(x, y, rounding_mode="floor"),
    "div, trunc": lambda T, x, y: T.div(x, y, rounding_mode="trunc"),
    "add": lambda T, x, y: T.add(x, y),
    "sub": lambda T, x, y: T.sub(x, y),
    "mul_": lambda T, x, y: x.clone().mul_(y),
    "div_": lambda T, x, y: x.clone().div_(y),
}


@pytest.mark.parametrize("name", _BY_TENSOR)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 200, 5000])
@differential(tolerance=0.0)
def test_tensors_without_dimensions_give_pytorchs_bits(T: Any, name: str, dtype: str, size: int) -> Any:
    tensor = T.linspace(0.1, 40, size).to(getattr(T, dtype))
    call = _BY_TENSOR[name]
    others = [T.tensor(number, dtype=wide) for number in (1.00123, 0.3337) for wide in (T.float32, T.float64)]
    results = [call(T, tensor, other) for other in others]
    return results if name.endswith("_") else results + [call(T, other, tensor) for other in others]


@pytest.mark.parametrize("name", ["mul", "div"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@differential(tolerance=0.0)
def test_first_operands_are_rounded(T: Any, name: str, dtype: str) -> Any:
    tensor = T.linspace(0.1, 40, 300).to(getattr(T, dtype))
    return [getattr(T, name)(number, tensor) for number in (1.00123, 0.3337)]
