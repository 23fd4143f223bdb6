"""Losses of classes and of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from .by_axes import folded, rank, reduced
from .level import Vmap
from .rules import decomposition, rule

_NONE, _MEAN = 0, 1


def _weights(input: Any, target: Tensor, weight: Any, ignored: Any, safe: Any) -> Any:
    if weight is None:
        return ignored.logical_not().to(input.dtype)
    return weight.gather(0, safe.reshape(-1)).reshape(target._array.shape).masked_fill(ignored, 0)


@decomposition("nll_loss", "nll_loss2d")
def _nll(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    dim = 0 if rank(self) == 1 else 1
    ignored = target == ignore_index
    safe = target.masked_fill(ignored, 0)
    weights = _weights(self, target, weight, ignored, safe)
    losses = (-self.gather(dim, safe.unsqueeze(dim)).squeeze(dim) * weights).masked_fill(ignored, 0)
    if reduction == _NONE:
        return losses
    return losses.sum() / weights.sum() if reduction == _MEAN else losses.sum()


@decomposition("nll_backward")
def _nll_backward(self: Any, input: Tensor, target: Any, weight: Any, reduction: int, ignore_index: int) -> Tensor:
    dim = 0 if rank(input) == 1 else 1
    ignored = target == ignore_index
    safe = target.masked_fill(ignored, 0)
    weights = _weights(input, target, weight, ignored, safe)
    grads = (-self * weights).masked_fill(ignored, 0)
    if reduction == _MEAN:
        grads = grads / weights.sum()
    return input.new_zeros(input._array.shape).scatter(dim, safe.unsqueeze(dim), grads.unsqueeze(dim))


@rule("multi_margin_loss", "multilabel_margin_loss")
def _margin(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    from .loop import loop

    input, target, *rest = args
    at = op.parameters.index("reduction")
    if any(level.has(each) for each in rest) or rank(input) == 0:
        return loop(level, op, args)
    given = list(args)
    given[0], lead = folded(level, input, 1)
    given[1] = level.front(target).reshape(-1) if op.name[:6] == "multi_" else folded(level, target, 1)[0]
    given[at] = _NONE
    results = op(*given)
    losses, *others = results if type(results) is tuple else (results,)
    total = reduced(losses.reshape(lead), args[at])
    if not others:
        return total
    return (total, *[each.reshape(*lead, *each._array.shape[1:]) for each in others])


# ----- sequences ----------------------------------------------------------------------------------------------------


def _sequences(level: Vmap, log_probs: Any, targets: Any) -> tuple[Any, Any]:
    """The sequences of all examples as one batch: (time, batch, classes), and their labels below one another."""
    value = level.front(log_probs).transpose(0, 1)
    times, _, _, classes = value._array.shape
    labels = level.front(targets)
    return value.reshape(times, -1, classes), labels.reshape(-1, *labels._array.shape[2:])


@rule("alignments")
def _alignments(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    log_probs, targets, inputs, labels, *options = args
    results = op(*_sequences(level, log_probs, targets), inputs * level.size, labels * level.size, *options)
    return tuple(each.reshape(level.size, -1, *each._array.shape[1:]) for each in results)


@rule("ctc_loss_backward")
def _ctc_loss_backward(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    grad, log_probs, targets, inputs, labels, likelihood, alpha, *options = args
    probabilities, classes = _sequences(level, log_probs, targets)
    grad, likelihood, alpha = (level.front(each) for each in (grad, likelihood, alpha))
    alpha = alpha.reshape(-1, *alpha._array.shape[2:])
    lengths = inputs * level.size, labels * level.size
    result = op(grad.reshape(-1), probabilities, classes, *lengths, likelihood.reshape(-1), alpha, *options)
    return result.reshape(len(result), level.size, -1, result._array.shape[2]).transpose(0, 1)
