"""Losses."""

from __future__ import annotations

from ..._core.reduction import REDUCTIONS
from .._graph import INT64, Graph, Value
from ._table import Result, Unsupported, converter

_NONE, _MEAN = 0, 1


def _reduced(g: Graph, losses: Value, reduction: int) -> Value:
    if reduction == _NONE:
        return losses
    return g.reduce("ReduceMean" if reduction == _MEAN else "ReduceSum", losses, None, False)


def _gap(g: Graph, call: Result, self: Value, target: Value) -> Value:
    return g.op("Sub", g.cast(self, call.dtype), g.cast(target, call.dtype))


@converter("mse_loss")
def mse_loss(g: Graph, call: Result, self: Value, target: Value, reduction: int) -> Value:
    gap = _gap(g, call, self, target)
    return _reduced(g, g.op("Mul", gap, gap), reduction)


@converter("smooth_l1_loss")
def smooth_l1_loss(g: Graph, call: Result, self: Value, target: Value, reduction: int, beta: float) -> Value:
    size = g.op("Abs", _gap(g, call, self, target))
    inner = g.op("Mul", g.op("Mul", size, size), 0.5 / beta)
    losses = g.where(g.op("Less", size, beta, dtype=bool), inner, g.op("Sub", size, 0.5 * beta))
    return _reduced(g, losses, reduction)


@converter("huber_loss")
def huber_loss(g: Graph, call: Result, self: Value, target: Value, reduction: int, delta: float) -> Value:
    size = g.op("Abs", _gap(g, call, self, target))
    inner = g.op("Mul", g.op("Mul", size, size), 0.5)
    outer = g.op("Mul", g.op("Sub", size, 0.5 * delta), delta)
    return _reduced(g, g.where(g.op("LessOrEqual", size, delta, dtype=bool), inner, outer), reduction)


@converter("binary_cross_entropy")
def binary_cross_entropy(
    g: Graph, call: Result, self: Value, target: Value, weight: Value | None, reduction: int
) -> Value:
    one = g.const(1, self.dtype)
    yes = g.op("Max", g.op("Log", self), -100)
    no = g.op("Max", g.op("Log", g.op("Sub", one, self)), -100)
    losses = g.op("Sub", g.op("Mul", g.op("Sub", target, 1), no), g.op("Mul", target, yes))
    return _reduced(g, losses if weight is None else g.op("Mul", losses, weight), reduction)


@converter("with_logits")
def with_logits(
    g: Graph, call: Result, self: Value, target: Value, weight: Value | None, pos_weight: Value | None, reduction: int
) -> Value:
    rest = g.op("Softplus", g.op("Neg", self))
    if pos_weight is not None:
        rest = g.op("Mul", rest, g.op("Add", g.op("Mul", g.op("Sub", pos_weight, 1), target), 1))
    losses = g.op("Add", g.op("Mul", g.op("Sub", g.const(1, target.dtype), target), self), rest)
    return _reduced(g, losses if weight is None else g.op("Mul", losses, weight), reduction)


@converter("soft_margin_loss")
def soft_margin_loss(g: Graph, call: Result, self: Value, target: Value, reduction: int) -> Value:
    return _reduced(g, g.op("Softplus", g.op("Neg", g.op("Mul", self, target))), reduction)


@converter("nll_loss", "nll_loss2d")
def nll_loss(
    g: Graph, call: Result, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> Value:
    scores = self if self.rank > 1 else g.unsqueeze(self, 0)
    classes = target if self.rank > 1 else g.unsqueeze(target, 0)
    made = g.op(
        "NegativeLogLikelihoodLoss", scores, g.cast(classes, INT64), weight, reduction=REDUCTIONS[reduction],
        ignore_index=ignore_index,
    )  # fmt: skip
    return g.reshape(made, call.shape) if self.rank == 1 else made


@converter("cross_entropy")
def cross_entropy(
    g: Graph, call: Result, input: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> Value:
    if target.dtype.kind == "f":
        raise Unsupported("cross_entropy with probabilities as targets")
    dim = 1 if input.rank > 1 else 0
    scores = Value(g.op("LogSoftmax", input, axis=dim).name, input.dtype, input.shape)
    return nll_loss(g, call, scores, target, weight, reduction, ignore_index)


@converter("multi_margin_loss")
def multi_margin_loss(
    g: Graph, call: Result, self: Value, target: Value, p: int, margin: float, weight: Value | None, reduction: int
) -> Value:
    scores = self if self.rank == 2 else g.unsqueeze(self, 0)
    classes = target if target.rank else g.unsqueeze(target, 0)
    count = (self.shape or ())[-1]
    own = g.op("GatherElements", scores, g.unsqueeze(classes, 1), axis=1)
    gaps = g.op("Max", g.op("Add", g.op("Sub", scores, own), margin), 0)
    if p == 2:
        gaps = g.op("Mul", gaps, gaps)
    if weight is not None:
        gaps = g.op("Mul", gaps, g.unsqueeze(g.op("Gather", weight, classes, axis=0), 1))
    others = g.op("Not", g.op("Equal", g.count_up(count), g.unsqueeze(classes, 1), dtype=bool))
    total = g.reduce("ReduceSum", g.where(others, gaps, 0), [1], False)
    losses = g.op("Div", total, g.cast(g.scalar(count), total.dtype))
    if reduction == _NONE:
        return g.reshape(losses, call.shape)
    return _reduced(g, losses, reduction)
