"""What elementwise kernels share: half precision computed in float32, integers turned into floats, dtypes refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, cast

import numpy as np

from ..._core.arrays.quick import ZEROS
from ..._core.backend import is_array, undispatched
from ..._core.dtype import DEFAULTS, FLOAT, LEGACY_NAMES
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..axes import ELEMENTS_OF_FIRST
from ..dispatch import Array, primitive

P = ParamSpec("P")

_where = undispatched(np.where)

_HALVES = frozenset(("float16", "bfloat16"))
_SINGLE = np.dtype(np.float32)


def in_single(kernel: Callable[P, Any]) -> Callable[P, Any]:
    """Let `kernel` see float32 where it is given half precision, and round its floating-point results once."""

    on_arrays: Callable[..., Any] = kernel

    @functools.wraps(on_arrays)
    def run(*args: Any) -> Any:
        if args[0].itemsize != 2 or (half := args[0].dtype).name not in _HALVES:
            return on_arrays(*args)
        result = on_arrays(*[each.astype(_SINGLE) if is_array(each) and each.dtype == half else each for each in args])
        if type(result) is tuple:
            return tuple(_rounded(each, half) for each in result)
        return _rounded(result, half)

    return cast("Callable[P, Any]", run)


def _rounded(result: Any, half: np.dtype[Any]) -> Any:
    return result.astype(half) if result.dtype == _SINGLE else result


def in_expressions(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a kernel on arrays the name by which generated code knows the function."""

    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(kernel)
        def run(*operands: Any) -> Any:
            for each in operands:
                if type(each) is not np.ndarray and hasattr(each, "is_expression"):
                    return each.call(name, *operands)
            return kernel(*operands)

        return run

    return decorate


def as_floating(input: Tensor) -> Tensor:
    """`input`, converted to the default dtype if it holds integers."""
    if input._kind.dtype.category < FLOAT:
        return input.to(DEFAULTS.float)
    return input


def refuse(name: str, input: Tensor, *categories: int) -> None:
    """Raise PyTorch's error for a dtype that an op has no kernel for."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if input._kind.dtype.category in categories:
        raise NotImplementedError(f'"{name}_cpu" not implemented for {LEGACY_NAMES[input._kind.dtype]!r}')


@primitive("WhereBackward0", axes=ELEMENTS_OF_FIRST, self=lambda grad, condition: only_where(grad, condition))
def _only_where(self: Array, condition: Array) -> Array:
    if type(self) is np.ndarray is type(condition) and self.dtype in ZEROS:
        return _where(condition, self, ZEROS[self.dtype])
    return np.where(condition, self, self.dtype.type(0))


def only_where(grad: Tensor, condition: Tensor) -> Tensor:
    """`grad` where the condition holds, zero elsewhere, whatever `grad` is there."""
    return _only_where(grad, condition)


def no_gradient(grad: Tensor) -> Tensor:
    """The gradient of a piecewise constant function, and of content that was overwritten."""
    return SLOTS.zeros_like(grad)
