"""Elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from .._element_types import torch_type
from ._table import NotRead, Operator, reader


def _unary(kind: str, function: Callable[[Tensor], Tensor]) -> None:
    @reader(kind)
    def read(node: Operator, x: Tensor) -> Any:
        return function(x)


for _kind, _function in {
    "Abs": flambeau.abs, "Acos": flambeau.acos, "Acosh": flambeau.acosh, "Asin": flambeau.asin,
    "Asinh": flambeau.asinh, "Atan": flambeau.atan, "Atanh": flambeau.atanh, "Ceil": flambeau.ceil,
    "Cos": flambeau.cos, "Cosh": flambeau.cosh, "Erf": flambeau.erf, "Exp": flambeau.exp, "Floor": flambeau.floor,
    "Identity": lambda x: x, "IsNaN": flambeau.isnan, "Log": flambeau.log, "Neg": flambeau.neg,
    "Not": flambeau.logical_not, "Reciprocal": flambeau.reciprocal, "Relu": flambeau.relu, "Round": flambeau.round,
    "Sigmoid": flambeau.sigmoid, "Sign": flambeau.sign, "Sin": flambeau.sin, "Sinh": flambeau.sinh,
    "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": flambeau.sqrt, "Tan": flambeau.tan,
    "Tanh": flambeau.tanh, "BitwiseNot": flambeau.bitwise_not, "HardSwish": F.hardswish, "Mish": F.mish,
}.items():  # fmt: skip
    _unary(_kind, _function)


def _binary(kind: str, function: Callable[..., Tensor]) -> None:
    @reader(kind)
    def read(node: Operator, a: Tensor, b: Tensor) -> Any:
        return function(a, b)


for _kind, _both in {
    "Add": flambeau.add, "Sub": flambeau.sub, "Mul": flambeau.mul, "Equal": flambeau.eq, "Less": flambeau.lt,
    "LessOrEqual": flambeau.le, "Greater": flambeau.gt, "GreaterOrEqual": flambeau.ge,
    "And": flambeau.logical_and, "Or": flambeau.logical_or, "Xor": flambeau.logical_xor,
    "BitwiseAnd": flambeau.bitwise_and, "BitwiseOr": flambeau.bitwise_or, "BitwiseXor": flambeau.bitwise_xor,
}.items():  # fmt: skip
    _binary(_kind, _both)


@reader("Div")
def div(node: Operator, a: Tensor, b: Tensor) -> Any:
    if a.dtype.is_floating_point:
        return a / b
    return flambeau.div(a, b, rounding_mode="trunc")


@reader("Pow")
def power(node: Operator, a: Tensor, b: Tensor) -> Any:
    return flambeau.pow(a, b).to(a.dtype)


@reader("Mod")
def mod(node: Operator, a: Tensor, b: Tensor) -> Any:
    return flambeau.fmod(a, b) if node.get("fmod", 0) else flambeau.remainder(a, b)


@reader("BitShift")
def bit_shift(node: Operator, a: Tensor, b: Tensor) -> Any:
    wide = (a.long(), b.long())
    shifted = flambeau.bitwise_left_shift(*wide) if node.get("direction") == "LEFT" else a.long() >> b.long()
    return shifted.to(a.dtype)


@reader("PRelu")
def prelu(node: Operator, x: Tensor, slope: Tensor) -> Any:
    return flambeau.where(x < 0, slope * x, x)


@reader("Max", "Min", "Sum", "Mean")
def variadic(node: Operator, *values: Tensor) -> Any:
    result = values[0]
    for each in values[1:]:
        if node.kind == "Max":
            result = flambeau.maximum(result, each)
        elif node.kind == "Min":
            result = flambeau.minimum(result, each)
        else:
            result = result + each
    return result / len(values) if node.kind == "Mean" else result


@reader("LeakyRelu")
def leaky_relu(node: Operator, x: Tensor) -> Any:
    return F.leaky_relu(x, node.get("alpha", 0.01))


@reader("Elu")
def elu(node: Operator, x: Tensor) -> Any:
    return F.elu(x, node.get("alpha", 1.0))


@reader("Celu")
def celu(node: Operator, x: Tensor) -> Any:
    return F.celu(x, node.get("alpha", 1.0))


@reader("Selu")
def selu(node: Operator, x: Tensor) -> Any:
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    return gamma * flambeau.where(x > 0, x, alpha * flambeau.expm1(x))


@reader("ThresholdedRelu")
def thresholded_relu(node: Operator, x: Tensor) -> Any:
    return F.threshold(x, node.get("alpha", 1.0), 0.0)


@reader("HardSigmoid")
def hard_sigmoid(node: Operator, x: Tensor) -> Any:
    return flambeau.clamp(x * node.get("alpha", 0.2) + node.get("beta", 0.5), 0.0, 1.0)


@reader("Gelu")
def gelu(node: Operator, x: Tensor) -> Any:
    return F.gelu(x, approximate=node.get("approximate", "none"))


@reader("Swish")
def swish(node: Operator, x: Tensor) -> Any:
    return x * flambeau.sigmoid(x * node.get("alpha", 1.0))


@reader("Shrink")
def shrink(node: Operator, x: Tensor) -> Any:
    bound, bias = node.get("lambd", 0.5), node.get("bias", 0.0)
    wide = x if x.dtype.is_floating_point else x.float()
    low, high = flambeau.where(wide < -bound, wide + bias, 0.0), flambeau.where(wide > bound, wide - bias, 0.0)
    return (low + high).to(x.dtype)


@reader("Clip")
def clip(node: Operator, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Any:
    floor = node.get("min") if low is None else low
    top = node.get("max") if high is None else high
    if floor is not None:
        x = flambeau.maximum(x, floor if isinstance(floor, Tensor) else flambeau.tensor(floor, dtype=x.dtype))
    if top is not None:
        x = flambeau.minimum(x, top if isinstance(top, Tensor) else flambeau.tensor(top, dtype=x.dtype))
    return x


@reader("IsInf")
def is_inf(node: Operator, x: Tensor) -> Any:
    found = flambeau.zeros_like(x, dtype=flambeau.bool)
    if node.get("detect_positive", 1):
        found = found | flambeau.isposinf(x)
    return found | flambeau.isneginf(x) if node.get("detect_negative", 1) else found


@reader("Where")
def where(node: Operator, condition: Tensor, x: Tensor, y: Tensor) -> Any:
    return flambeau.where(condition, x, y)


@reader("Cast")
def cast(node: Operator, x: Tensor) -> Any:
    return _cast(node, x, torch_type(node.get("to")))


@reader("CastLike")
def cast_like(node: Operator, x: Tensor, like: Tensor) -> Any:
    return _cast(node, x, like.dtype)


def _cast(node: Operator, x: Tensor, kind: Any) -> Any:
    """Numbers too large for 8 bits become the largest there is."""
    if kind.itemsize == 1 and kind.is_floating_point and x.dtype.is_floating_point:
        if not node.get("saturate", 1):
            raise NotRead("a conversion to 8 bits that does not saturate")
        limit = flambeau.finfo(kind).max
        wide = x.float()
        x = flambeau.where(flambeau.isnan(wide), wide, wide.clamp(-limit, limit))
    return x.to(kind)


def _flat_softmax(node: Operator, function: Callable[..., Tensor], x: Tensor) -> Any:
    """Before opset 13 all dimensions from the axis on count as one."""
    if node.opset >= 13:
        return function(x, node.get("axis", -1))
    axis = node.get("axis", 1) % max(x.dim(), 1)
    flat = x.reshape(math.prod(x.shape[:axis]), -1)
    return function(flat, 1).reshape(x.shape)


@reader("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: Operator, x: Tensor) -> Any:
    functions: dict[str, Callable[..., Tensor]] = {
        "Softmax": flambeau.softmax, "LogSoftmax": flambeau.log_softmax, "Hardmax": _hardmax,
    }  # fmt: skip
    return _flat_softmax(node, functions[node.kind], x)


def _hardmax(x: Tensor, dim: int) -> Any:
    places = x.argmax(dim, keepdim=True)
    return flambeau.zeros_like(x).scatter(dim, places, 1.0)


@reader("CumSum", "CumProd")
def running(node: Operator, x: Tensor, axis: Tensor) -> Any:
    dim = int(axis.item())
    if node.get("reverse", 0):
        x = x.flip(dim)
    result = flambeau.cumsum(x, dim) if node.kind == "CumSum" else flambeau.cumprod(x, dim)
    if node.get("exclusive", 0):
        first = 0.0 if node.kind == "CumSum" else 1.0
        start = flambeau.full_like(result.narrow(dim, 0, 1), first)
        result = flambeau.cat([start, result.narrow(dim, 0, result.shape[dim] - 1)], dim)
    return (result.flip(dim) if node.get("reverse", 0) else result).to(x.dtype)


@reader("Bernoulli")
def bernoulli(node: Operator, x: Tensor) -> Any:
    kind = node.get("dtype")
    drawn = flambeau.bernoulli(x)
    return drawn if kind is None else drawn.to(torch_type(kind))


@reader("Dropout")
def dropout(node: Operator, x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None) -> Any:
    if training is None or not bool(training):
        return x, flambeau.ones_like(x, dtype=flambeau.bool)
    p = 0.5 if ratio is None else float(ratio)
    mask = flambeau.rand(x.shape) >= p
    return flambeau.where(mask, x, 0.0) / (1 - p if p < 1 else 1.0), mask
