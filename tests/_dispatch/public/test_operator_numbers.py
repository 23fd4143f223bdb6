"""Operators take numbers in the forms in which PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.support.differential import differential

FORMS: dict[str, Callable[[Any], Any]] = {
    "int": lambda T: T.tensor(1),
    "float": lambda T: T.tensor(1.7),
    "bool": lambda T: T.tensor(True),
    "one of one dimension": lambda T: T.tensor([1]),
    "two": lambda T: T.tensor([1, 0]),
    "float32": lambda T: numpy.float32(1.0),
    "float64": lambda T: numpy.float64(1.0),
    "int64": lambda T: numpy.int64(1),
    "array": lambda T: numpy.array(1),
    "python bool": lambda T: True,
    "python float": lambda T: 1.0,
    "text": lambda T: "1",
}
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "int": lambda T, x, number: T.ops.aten.cumsum.default(x, number),
    "int of a packet": lambda T, x, number: T.ops.aten.cumsum(x, number),
    "int by name": lambda T, x, number: T.ops.aten.cumsum.default(x, dim=number),
    "SymInt": lambda T, x, number: T.ops.aten.select.int(x, 0, number),
    "ints": lambda T, x, number: T.ops.aten.sum.dim_IntList(x, [number]),
    "float": lambda T, x, number: T.ops.aten.native_layer_norm(x, [3], None, None, number)[0],
    "bool": lambda T, x, number: T.ops.aten.sum.dim_IntList(x, [1], number),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", CALLS)
@differential
def test_a_number_in_another_form(T: Any, call: str, form: str) -> Any:
    x = T.arange(6.0).reshape(2, 3)
    try:
        return CALLS[call](T, x, FORMS[form](T))
    except (TypeError, RuntimeError):
        return "refused"
