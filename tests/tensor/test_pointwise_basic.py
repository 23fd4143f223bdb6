"""Common operations on uncommon inputs: odd strides, zero sizes, zero dimensions, huge, NaN and infinite values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome, supported
from tests.support.oracle import ON_X86

NAN, INF = float("nan"), float("inf")

UNARY = [
    "abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square",
    "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "sigmoid", "relu", "erf", "erfc", "floor", "ceil", "round", "trunc", "frac", "sign", "isnan",
    "isinf", "isfinite", "isposinf", "isneginf", "logical_not", "signbit", "nan_to_num", "logit", "positive",
    "deg2rad", "rad2deg", "sgn", "lgamma", "sinc", "erfinv", "i0",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmax", "fmin", "atan2", "fmod", "remainder",
    "hypot", "copysign", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
    "floor_divide", "logaddexp", "logaddexp2", "nextafter", "heaviside", "xlogy", "true_divide",
]  # fmt: skip


def odd_inputs(T: Any) -> dict[str, Any]:
    """Positive floats in every layout that a kernel might get wrong."""
    dense = T.arange(1.0, 25.0).view(2, 3, 4) / 25
    return {
        "dense": dense,
        "transposed": dense.transpose(0, 2),
        "sliced": dense[:, ::2, 1::2],
        "expanded": dense[:, :1].expand(2, 3, 4),
        "zero-dim": dense[0, 0, 0],
        "one": dense[:1, :1, :1],
        "empty": dense[:, :0],
        "empty transposed": dense[:0].transpose(0, 2),
        "diagonal": dense[0].diagonal(),
        "offset": dense.view(-1)[7:],
        "channels last": T.arange(1.0, 25.0).view(1, 2, 3, 4).contiguous(memory_format=T.channels_last) / 25,
    }


@differential
@pytest.mark.parametrize("name", UNARY)
def test_unary_layouts(T: Any, name: str) -> Any:
    return {layout: getattr(T, name)(tensor) for layout, tensor in odd_inputs(T).items()}


@differential
@pytest.mark.parametrize("name", BINARY)
def test_binary_layouts(T: Any, name: str) -> Any:
    function = getattr(T, name)
    return {
        layout: (function(tensor, tensor.flip(-1) if tensor.dim() else tensor))
        for layout, tensor in odd_inputs(T).items()
    }


@differential
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_unary_special_values(T: Any, name: str, dtype: str) -> Any:
    values = T.tensor(
        [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-30, 30.0, -30.0], dtype=getattr(T, dtype)
    )
    return getattr(T, name)(values)


@differential
@pytest.mark.parametrize(
    "name", ["exp", "sigmoid", "tanh", "relu", "log", "sqrt", "square", "sin", "erf", "floor", "round"]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_unary_extremes(T: Any, dtype: str, name: str) -> Any:
    info = T.finfo(getattr(T, dtype))
    values = [info.max, info.min, info.tiny, info.eps, 1 + info.eps, 100.0, -100.0, 11.0]
    if name == "sin":
        values = values[2:]  # the sine of the largest number is a matter of taste
    return getattr(T, name)(T.tensor(values, dtype=getattr(T, dtype)))


@differential
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_binary_special_values(T: Any, name: str, dtype: str) -> Any:
    values = T.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.5, 2.0, 1e30], dtype=getattr(T, dtype))
    return supported(lambda: getattr(T, name)(values.view(-1, 1), values))


@differential(tolerance=0.0)
@pytest.mark.parametrize(
    "name",
    # Not relu: its zero has either sign in PyTorch, depending on the position in the processor's vector.
    ["abs", "neg", "floor", "ceil", "round", "trunc", "sign", "sqrt", "maximum", "mul", "copysign", "fmod"],
)
def test_signs_of_zeros(T: Any, name: str) -> Any:
    zeros = T.tensor([0.0, -0.0, 0.4, -0.4])
    function = getattr(T, name)
    if name in ("maximum", "mul", "copysign", "fmod"):
        return function(zeros, T.tensor([1.0, 1.0, 1.0, -1.0]))
    return function(zeros)


@differential
@pytest.mark.parametrize(
    "name",
    ["abs", "neg", "sign", "square", "floor", "ceil", "round", "trunc", "relu", "bitwise_not", "sgn", "positive"],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_unary_integers(T: Any, dtype: str, name: str) -> Any:
    info = T.iinfo(getattr(T, dtype))
    values = T.tensor([info.min, info.min + 1, 0, 1, 7, info.max], dtype=getattr(T, dtype))
    return supported(lambda: getattr(T, name)(values))


@differential
@pytest.mark.parametrize(
    "name",
    [
        "add",
        "mul",
        "maximum",
        "minimum",
        "remainder",
        "fmod",
        "floor_divide",
        "eq",
        "lt",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "gcd",
        "lcm",
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_binary_integers(T: Any, dtype: str, name: str) -> Any:
    left = T.tensor([1, 5, 7, 100, 127], dtype=getattr(T, dtype))
    right = T.tensor([3, 5, 2, 9, 1], dtype=getattr(T, dtype))
    return supported(lambda: getattr(T, name)(left.view(-1, 1), right))


@differential
@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "exp",
        "log",
        "sqrt",
        "sin",
        "tanh",
        "neg",
        "reciprocal",
        "angle",
        "conj",
        "sgn",
        "square",
        "isnan",
        "cosh",
    ],
)
def test_unary_complex(T: Any, name: str) -> Any:
    values = T.tensor([1 + 2j, -1 - 1j, 0.5j, 3 + 0j])
    result = getattr(T, name)(values)
    return result.resolve_conj() if name == "conj" else result


@differential
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "eq", "ne"])
def test_binary_complex(T: Any, name: str) -> Any:
    left, right = T.tensor([1 + 2j, -1 - 1j, 0.5j]), T.tensor([2 - 1j, 1j, 3 + 0j])
    return getattr(T, name)(left, right), getattr(T, name)(left, T.tensor([1.0, 2.0, 3.0])), getattr(T, name)(left, 2)


@differential
def test_rounding_is_to_even(T: Any) -> Any:
    halves = T.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    return (
        halves.round(),
        T.round(T.tensor([1.2345, -2.675]), decimals=2),
        T.round(T.tensor([125.0, 135.0]), decimals=-1),
    )


CLAMPS: dict[str, Callable[[Any, Any], Any]] = {
    "both": lambda T, x: x.clamp(-1, 1),
    "min": lambda T, x: x.clamp(min=0),
    "max": lambda T, x: T.clamp(x, max=0.5),
    "crossed": lambda T, x: x.clamp(2, 1),
    "tensor": lambda T, x: x.clamp(T.zeros(6), T.ones(6)),
    "tensor min": lambda T, x: x.clamp(min=T.tensor(0.0)),
    "nan bound": lambda T, x: x.clamp(min=NAN),
    "neither": lambda T, x: x.clamp(),
    "clip": lambda T, x: x.clip(-1, 1),
    "clamp_min": lambda T, x: x.clamp_min(0),
    "clamp_max": lambda T, x: x.clamp_max(0),
    "int": lambda T, x: T.arange(6).clamp(1, 4),
    "int by float": lambda T, x: T.arange(6).clamp(0.5, 3.5),
    "mixed": lambda T, x: x.clamp(T.zeros(6), 1),
}


NAN_BOUND = pytest.mark.skipif(ON_X86, reason="PyTorch's vector code for x86-64 overlooks a bound that is NaN")


@differential
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NAN_BOUND if name == "nan bound" else ()) for name in CLAMPS]
)
def test_clamp(T: Any, name: str) -> Any:
    return outcome(lambda: CLAMPS[name](T, T.tensor([NAN, INF, -INF, 0.0, 3.0, -0.5])))


# --- reductions -------------------------------------------------------------------------------------------------

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda T, x, **options: T.sum(x, **options),
    "mean": lambda T, x, **options: T.mean(x, **options),
    "prod": lambda T, x, **options: T.prod(x, **options),
    "max": lambda T, x, **options: T.max(x, **options),
    "min": lambda T, x, **options: T.min(x, **options),
    "amax": lambda T, x, **options: T.amax(x, **options),
    "amin": lambda T, x, **options: T.amin(x, **options),
    "argmax": lambda T, x, **options: T.argmax(x, **options),
    "argmin": lambda T, x, **options: T.argmin(x, **options),
    "all": lambda T, x, **options: T.all(x, **options),
    "any": lambda T, x, **options: T.any(x, **options),
    "var": lambda T, x, **options: T.var(x, **options),
    "std": lambda T, x, **options: T.std(x, **options),
    "norm": lambda T, x, **options: T.norm(x, **options),
    "logsumexp": lambda T, x, **options: T.logsumexp(x, **({"dim": 0} | options)),
    "median": lambda T, x, **options: T.median(x, **options),
    "nansum": lambda T, x, **options: T.nansum(x, **options),
    "nanmean": lambda T, x, **options: T.nanmean(x, **options),
    "count_nonzero": lambda T, x, **options: T.count_nonzero(x, dim=options.get("dim")),
    "cumsum": lambda T, x, **options: T.cumsum(x, dim=options.get("dim", 0)),
    "cumprod": lambda T, x, **options: T.cumprod(x, dim=options.get("dim", 0)),
    "softmax": lambda T, x, **options: T.softmax(x, dim=options.get("dim", 0)),
    "log_softmax": lambda T, x, **options: T.log_softmax(x, dim=options.get("dim", 0)),
    "sort": lambda T, x, **options: T.sort(x, dim=options.get("dim", 0)),
    "cummax": lambda T, x, **options: T.cummax(x, dim=options.get("dim", 0)),
    "topk": lambda T, x, **options: T.topk(x, 1, dim=options.get("dim", 0)),
    "flip": lambda T, x, **options: T.flip(x, [options.get("dim", 0)]),
    "aminmax": lambda T, x, **options: T.aminmax(x, **options),
    "unique": lambda T, x, **options: T.unique(x),
    "diff": lambda T, x, **options: T.diff(x, dim=options.get("dim", 0)),
}


@differential(tolerance=2e-6)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_odd_layouts(T: Any, name: str) -> Any:
    observed = {}
    for layout, tensor in odd_inputs(T).items():
        observed[layout] = outcome(lambda t=tensor: REDUCTIONS[name](T, t))
        observed[f"{layout} last"] = outcome(lambda t=tensor: REDUCTIONS[name](T, t, dim=-1))
        observed[f"{layout} kept"] = outcome(lambda t=tensor: REDUCTIONS[name](T, t, dim=0, keepdim=True))
        if name != "cummax" or tensor.numel():  # PyTorch's cummax of nothing does not look at its dim
            observed[f"{layout} far"] = outcome(lambda t=tensor: REDUCTIONS[name](T, t, dim=9))
    return observed


@differential
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    "values", [[NAN, 1.0, 2.0], [INF, 1.0, -INF], [1.0, INF, 2.0], [-0.0, 1.0], [3.0, 3.0, 1.0], [-INF, -INF]], ids=str
)
def test_reductions_of_special_values(T: Any, name: str, values: list[float]) -> Any:
    return outcome(lambda: REDUCTIONS[name](T, T.tensor(values))), outcome(
        lambda: REDUCTIONS[name](T, T.tensor(values), dim=0)
    )


@differential
@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "amin", "all", "any", "var", "std", "norm", "nansum", "logsumexp", "count_nonzero"]
)
@pytest.mark.parametrize("dim", [(0, 2), (-1, 0), (0, 1, 2), [1], (), (0, 0), (0, 5)], ids=str)
def test_reductions_over_several_dimensions(T: Any, name: str, dim: Any) -> Any:
    if name == "logsumexp" and dim == ():
        return None  # PyTorch fails over the shape of its own result
    return outcome(lambda: REDUCTIONS[name](T, T.arange(24.0).view(2, 3, 4) / 7, dim=dim))


@differential
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_nothing(T: Any, name: str, shape: tuple[int, ...]) -> Any:
    tensor = T.zeros(shape)
    return {
        "whole": outcome(lambda: REDUCTIONS[name](T, tensor)),
        "first": outcome(lambda: REDUCTIONS[name](T, tensor, dim=0)),
        "last": outcome(lambda: REDUCTIONS[name](T, tensor, dim=-1)),
    }


@differential
def test_words_of_empty_reductions(T: Any) -> Any:
    empty = T.zeros(0)
    return {
        "max": outcome(lambda: empty.max(), "Expected reduction dim to be specified for input.numel() == 0"),
        "argmax": outcome(lambda: empty.argmax(), "Expected reduction dim to be specified for input.numel() == 0"),
        "max dim": outcome(lambda: empty.max(0), "Expected reduction dim 0 to have non-zero size"),
        "amax": outcome(lambda: empty.amax(), "Expected reduction dim"),
    }


@differential
@pytest.mark.parametrize("correction", [0, 1, 2, 3])
def test_variance_corrections(T: Any, correction: int) -> Any:
    tensor = T.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]])
    return T.var(tensor, 1, correction=correction), T.std(tensor, correction=correction), tensor.var(0, unbiased=False)


@differential
def test_long_float32_sums_are_accurate(T: Any) -> Any:
    tensor = T.full((200_000,), 0.1)
    return (tensor.sum() - 20_000).abs() < 0.1, (tensor.mean() - 0.1).abs() < 1e-6, T.ones(3000, dtype=T.float16).sum()


@differential
def test_large_values_do_not_overflow_on_the_way(T: Any) -> Any:
    large = T.tensor([1000.0, 1000.0])
    return T.softmax(large, 0), T.log_softmax(large, 0), T.logsumexp(large, 0), T.hypot(T.tensor(3e30), T.tensor(4e30))


@differential
def test_large_tensors(T: Any) -> Any:
    large = T.arange(300_000)
    return (
        large.sum(),
        (large * 2)[-1],
        (large % 7).max(),
        large.view(300, 1000).sum(1)[:3],
        (large.double() + 0.5).mean(),
    )
