"""Reductions, scans, sorting, softmax, Fourier transforms: along dimensions, or over all elements of an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch.op import OPS, Op
from .level import Vmap
from .rules import along, decomposition, give, rank, rule

give(
    along("dim"),
    "sum_dim nansum mean_dim var std var_mean std_mean all any count_nonzero vector_norm",
    "softmax log_softmax safe_softmax softmax_backward log_softmax_backward logsumexp",
    "cumsum cumprod cummax cummin logcumsumexp fading_sum sort stable_sort topk kthvalue",
    "median_dim nanmedian_dim mode max_dim min_dim amax amin xor_sum prod_dim",
    "fft_c2c fft_r2c fft_c2r norm_along without_dim",
)


def _whole(name: str) -> Any:
    """An op over all elements by the op `name` along one dimension, in which the elements of an example follow one
    another.
    """

    def run(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
        value = args[0].value.reshape(level.size, args[0]._array.size)
        result = OPS[name](value, 1, False, *args[1:])
        return result[0] if type(result) is tuple else result

    return run


give(_whole("prod_dim"), "prod_all")
give(_whole("median_dim"), "median_all")
give(_whole("nanmedian_dim"), "nanmedian_all")


def _over_all(name: str) -> Any:
    def run(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
        value = args[0].value
        value = value if rank(args[0]) else value.unsqueeze(1)
        return OPS[name](value, tuple(range(1, value._array.ndim)), False, *args[1:])

    return run


give(_over_all("sum_dim"), "sum_all")
give(_over_all("mean_dim"), "mean_all")
give(_over_all("amax"), "max_all")
give(_over_all("amin"), "min_all")


@rule("argmax", "argmin", "aminmax")
def _position(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dim, keepdim = args
    if dim is not None:
        return _along_dim(level, op, args)
    result = op(tensor.value.reshape(level.size, tensor._array.size), 1, False)
    if not keepdim:
        return result
    shape = (level.size, *[1] * rank(tensor))
    return tuple(each.reshape(shape) for each in result) if type(result) is tuple else result.reshape(shape)


_along_dim = along("dim")


@decomposition("renorm")
def _renorm(self: Any, p: float, dim: int, maxnorm: float) -> Any:
    others = tuple(each for each in range(rank(self)) if each != dim % rank(self))
    size = OPS["vector_norm"](self, p, others, True)
    return self * (maxnorm / (size + 1e-7)).where(size > maxnorm, size.new_ones(()))


@decomposition("dist")
def _dist(self: Any, other: Any, p: float) -> Any:
    return OPS["vector_norm"]((self - other).reshape(-1), p, (0,), False)


@rule("searchsorted")
def _searchsorted(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    sequence, values, right, dtype = args
    if rank(sequence) == 1:  # for all values; elsewhere leading dimensions are those of both
        rows = level.front(values).reshape(level.size, values._array.size)
        found = op(level.front(sequence), rows, right, dtype)
        return found.reshape(level.size, *values._array.shape)
    return op(level.front(sequence), level.front(values), right, dtype)


@rule("isin")
def _isin(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    elements, tests, invert = args
    left = level.front(elements).reshape(level.size, elements._array.size, 1)
    among = left == level.front(tests).reshape(level.size, 1, tests._array.size)
    found = among.any(-1).reshape(level.size, *elements._array.shape)
    return found.logical_not() if invert else found
