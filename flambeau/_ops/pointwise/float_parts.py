"""Floating-point numbers taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.backend import as_array
from ..._core.dtype import FLOAT, int32
from ..._core.tensor import Tensor
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.dispatch import Array, several
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type

FREXP = return_type("frexp", ("mantissa", "exponent"))


@several(
    "FrexpBackward0",
    axes=ELEMENTS,
    self=lambda grad, exponent: grad / exponent.exp2(),
    results=("mantissa", "exponent"),
)
@in_single
def _frexp(self: Array) -> tuple[Array, Array]:
    mantissa, exponent = np.frexp(self)
    return as_array(mantissa), as_array(exponent).astype(np.int32, copy=False)


def _store(result: Any, out: Any, operands: tuple[Any, ...]) -> Any:
    wanted = operands[0].dtype, int32
    given = out if isinstance(out, (tuple, list)) else ()
    for name, each, dtype in zip(FREXP._fields, given, wanted, strict=False):
        if isinstance(each, Tensor) and each.dtype is not dtype:
            raise RuntimeError(f"torch.frexp() expects {name} to have dtype {dtype} but got {each.dtype}")
    return write_out(result, out, operands)


@public(out=_store)
def frexp(input: Tensor) -> Any:
    """Mantissas, of size 1/2 to 1, and integer exponents: mantissa * 2 ** exponent is `input`."""
    if input._kind.dtype.category != FLOAT:
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, not {input.dtype}")
    return named(FREXP, _frexp(input))
