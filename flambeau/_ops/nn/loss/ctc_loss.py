"""Connectionist temporal classification: the likelihood of a sequence of labels, summed over all alignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._core.backend import read
from ...._core.dtype import FLOAT, INTEGER, LEGACY_NAMES, float32, float64, int64
from ...._core.reduction import MEAN, NONE
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, on
from ...._dispatch.dispatch import Array, primitive, several
from ...._dispatch.gradients.undifferentiable import no_derivative
from ...._dispatch.host_read import elements
from ...._dispatch.one_by_one import one_by_one
from ...._dispatch.public.registry import public
from ...create.constants import tensor
from ...index.masked import where
from ...shape.view import as_ints
from .common import reduce_losses, reduction_number

Lengths = tuple[int, ...]

_NEVER = -np.inf
_WHERE = "(while checking arguments for ctc_loss)"


# ----- alignments: the states of a sequence are its labels with blanks before, between and after ----------------------


def _states(targets: Array, target_lengths: Array, blank: int) -> tuple[Array, Array]:
    """The class of each state of each sequence, and which states there are."""
    batch, longest = len(target_lengths), int(read(target_lengths.max(initial=0)))
    places = np.arange(longest, like=targets)
    used = places < target_lengths[:, None]
    labels = np.full((batch, longest), blank, np.int64, like=targets)
    if targets.ndim == 1:
        first = np.cumsum(target_lengths) - target_lengths
        labels[used] = targets[(first[:, None] + places)[used]]
    else:
        labels[used] = targets[:, :longest][used]
    states = np.full((batch, 2 * longest + 1), blank, np.int64, like=targets)
    states[:, 1::2] = labels
    return states, np.arange(2 * longest + 1, like=targets) < 2 * target_lengths[:, None] + 1


_ROOM = 2
"""So many states that never are stand beside the others: whence a state is reached is then a slice, at the ends too."""


def _skips(states: Array, dtype: Any) -> Array:
    """For each state 0 if it can follow the one before the previous one, because it is another label; else never."""
    result = np.full(states.shape, _NEVER, dtype, like=states)
    result[:, 3::2] = np.where(states[:, 3::2] != states[:, 1:-2:2], 0, _NEVER)
    return result


def _state_log_probs(log_probs: Array, states: Array, exist: Array) -> Array:
    """For each time and sequence the log-probability of each state; classes out of range are never seen."""
    inside = (states >= 0) & (states < log_probs.shape[2])
    safe = np.where(inside, states, 0)[None].repeat(len(log_probs), 0)
    return np.where(inside & exist, np.take_along_axis(log_probs, safe, 2), log_probs.dtype.type(_NEVER))


def _forward(log_probs: Array, states: Array, exist: Array) -> Array:
    """log alpha[sequence, time, state]: all that is seen up to a time, ending in a state."""
    seen = _state_log_probs(log_probs, states, exist)
    skips = _skips(states, seen.dtype)
    times, batch, count = seen.shape
    alpha = np.full((times, batch, _ROOM + count), _NEVER, seen.dtype, like=log_probs)
    alpha[0, :, _ROOM : _ROOM + 2] = seen[0, :, :2]
    for time in range(1, times):
        before = alpha[time - 1]
        arrivals = np.logaddexp(np.logaddexp(before[:, 2:], before[:, 1:-1]), before[:, :-2] + skips)
        alpha[time, :, _ROOM:] = arrivals + seen[time]
    return alpha[..., _ROOM:].swapaxes(0, 1).copy()


def _backward(log_probs: Array, states: Array, exist: Array, input_lengths: Lengths, last: Array) -> Array:
    """log beta[sequence, time, state]: all that is seen after a time, starting from a state."""
    seen = _state_log_probs(log_probs, states, exist)
    times, batch, count = seen.shape
    skips = np.full((batch, count), _NEVER, seen.dtype, like=log_probs)
    skips[:, :-2] = _skips(states, seen.dtype)[:, 2:]
    beta = np.full((batch, times, count), _NEVER, seen.dtype, like=log_probs)
    after = np.full((batch, count + _ROOM), _NEVER, seen.dtype, like=log_probs)
    final = np.where(last, seen.dtype.type(0), seen.dtype.type(_NEVER))
    lengths, ends = np.array(input_lengths, np.int64, like=log_probs), set(input_lengths)
    for time in range(times - 1, -1, -1):
        here = beta[:, time]
        if time + 1 < times:
            after[:, :count] = beta[:, time + 1] + seen[time + 1]
            here[...] = np.logaddexp(np.logaddexp(after[:, :-2], after[:, 1:-1]), after[:, 2:] + skips)
        if time + 1 in ends:
            stop = lengths == time + 1
            here[stop] = final[stop]
    return beta


def _last_states(exist: Array, target_lengths: Array) -> Array:
    """The states in which a sequence may end: its last label and the blank after it."""
    places = np.arange(exist.shape[1], like=exist)
    return exist & (places >= 2 * target_lengths[:, None] - 1)


# ----- the op ---------------------------------------------------------------------------------------------------------


_SECOND = no_derivative("_ctc_loss_backward")


@primitive("NotImplemented", self=_SECOND, log_probs=_SECOND, neg_log_likelihood=_SECOND, log_alpha=_SECOND)
def _ctc_loss_backward(
    self: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Array,
    log_alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    times, batch, classes = log_probs.shape
    inputs, labels = np.array(input_lengths, np.int64, like=self), np.array(target_lengths, np.int64, like=self)
    states, exist = _states(targets, labels, blank)
    beta = _backward(log_probs, states, exist, input_lengths, _last_states(exist, labels))
    weights = np.exp(log_alpha + beta + neg_log_likelihood[:, None, None])
    sequences, moments = np.arange(batch, like=self)[:, None, None], np.arange(times, like=self)[None, :, None]
    inside = (states >= 0) & (states < classes)
    cells = (moments * batch + sequences) * classes + np.where(inside, states, 0)[:, None, :]
    kept = np.broadcast_to(inside[:, None, :], weights.shape)
    expected = np.bincount(cells[kept], weights[kept], times * batch * classes).reshape(log_probs.shape)
    gradient = (np.exp(log_probs) - expected.astype(log_probs.dtype)) * self[:, None]
    gradient[:, np.isinf(neg_log_likelihood)] = 0 if zero_infinity else np.nan
    gradient[np.arange(times, like=self)[:, None] >= inputs] = 0
    return gradient


def _gradient(
    grad: Tensor,
    log_probs: Any,
    targets: Any,
    input_lengths: Lengths,
    target_lengths: Lengths,
    result0: Any,
    result1: Any,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    return _ctc_loss_backward(
        grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
    )


def _alignment_shapes(
    log_probs: Array, targets: Array, input_lengths: Lengths, target_lengths: Lengths, blank: int, zero_infinity: bool
) -> tuple[Array, Array]:
    times, batch, _ = log_probs.shape
    states = 2 * max(target_lengths, default=0) + 1
    return np.empty_like(log_probs, shape=(batch,)), np.empty_like(log_probs, shape=(batch, times, states))


@several("CtcLossBackward0", log_probs=_gradient, shape=_alignment_shapes)
def _alignments(
    log_probs: Array, targets: Array, input_lengths: Lengths, target_lengths: Lengths, blank: int, zero_infinity: bool
) -> tuple[Array, Array]:
    inputs, labels = (
        np.array(input_lengths, np.int64, like=log_probs),
        np.array(target_lengths, np.int64, like=log_probs),
    )
    states, exist = _states(targets, labels, blank)
    alpha = _forward(log_probs, states, exist)
    at_end = alpha[np.arange(len(inputs), like=log_probs), np.maximum(inputs - 1, 0)]
    total = np.logaddexp.reduce(np.where(_last_states(exist, labels), at_end, _NEVER), axis=1)
    empty = np.where(labels == 0, log_probs.dtype.type(0), log_probs.dtype.type(_NEVER))
    return -np.where(inputs == 0, empty, total), alpha


def _as_lengths(name: str, lengths: Any) -> Lengths:
    if not isinstance(lengths, Tensor):
        return as_ints(tuple(lengths))
    if lengths._kind.dtype.category != INTEGER:
        raise RuntimeError(f"{name} must be integral: got {lengths.dtype}")
    if lengths._kind.dataless:
        raise NotImplementedError(f"ctc_loss: {name} has no values on the meta device: give a tuple of ints")
    return tuple(elements(lengths).reshape(-1).tolist())


def _check(log_probs: Tensor, targets: Tensor, inputs: Lengths, labels: Lengths, blank: int) -> None:
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.dim()}-dimensional tensor for argument #1 'log_probs' "
            f"{_WHERE}: its dimensions are time, batch and classes"
        )
    times, batch, classes = log_probs.shape
    if not log_probs.numel():
        raise RuntimeError(f"log_probs tensor must not be empty: it has shape {list(log_probs.shape)}")
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range: got {blank}, there are {classes} classes")
    for name, lengths in (("input_lengths", inputs), ("target_lengths", labels)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size: got {len(lengths)} for a batch of {batch}")
        if min(lengths) < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {min(lengths)} {_WHERE}")
    if max(inputs) > times:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {times}, but got value {max(inputs)} {_WHERE}"
        )
    _check_targets(targets, batch, labels)
    if log_probs.dtype not in (float32, float64):
        raise NotImplementedError(f'"ctc_loss_cpu" not implemented for {LEGACY_NAMES[log_probs.dtype]!r}')


def _check_targets(targets: Tensor, batch: int, labels: Lengths) -> None:
    expected = "Expected tensor to have size"
    argument = f"for argument #2 'targets' {_WHERE}"
    if targets.dim() == 1:
        if targets.numel() != sum(labels):
            raise RuntimeError(f"{expected} {sum(labels)} at dimension 0, but got size {targets.numel()} {argument}")
    elif targets.dim() != 2:
        raise RuntimeError(f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor {argument}")
    elif targets.shape[0] != batch:
        raise RuntimeError(f"{expected} {batch} at dimension 0, but got size {targets.shape[0]} {argument}")
    elif targets.shape[1] < max(labels):
        raise RuntimeError(
            f"{expected} at least {max(labels)} at dimension 1, but got size {targets.shape[1]} {argument}"
        )


@public(method=False)
@one_by_one("input_lengths", "target_lengths")
def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """The loss of each sequence of a batch, and the logarithms of the forward variables."""
    inputs, labels = _as_lengths("input_lengths", input_lengths), _as_lengths("target_lengths", target_lengths)
    _check(log_probs, targets, inputs, labels, blank)
    if targets._kind.dtype.category >= FLOAT:
        targets = targets.to(int64)
    losses, alphas = _alignments(log_probs, targets, inputs, labels, blank, zero_infinity)
    return losses, alphas


@public(method=False, autocast=on(cpu=FULL))
@one_by_one("input_lengths", "target_lengths")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = NONE,
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of label sequences, of any alignment with `log_probs` (time, batch, classes).

    `targets` are rows of labels, or all of them one after the other. The mean is one of losses per label.
    """
    for name, each in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if not isinstance(each, (Tensor, Sequence)):
            raise TypeError(f"ctc_loss(): argument '{name}' must be Tensor or tuple of ints, not {type(each).__name__}")
    batched = log_probs.dim() != 2
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        if targets.dim() == 1:
            targets = targets.unsqueeze(0)
    labels = _as_lengths("target_lengths", target_lengths)
    losses = _ctc_loss(log_probs, targets, input_lengths, labels, blank, zero_infinity)[0]
    if zero_infinity:
        losses = where(losses == np.inf, 0.0, losses)
    if reduction == MEAN:
        losses = losses / tensor(labels, dtype=losses.dtype, device=losses._kind.device).clamp_min(1)
    if reduction == NONE and not batched:
        return losses.squeeze(0)
    return reduce_losses(losses, reduction)


@public("nn.functional.ctc_loss", function=False, method=False, name="ctc_loss", autocast=on(cpu=FULL))
def _functional_ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of label sequences, of any alignment with `log_probs` (time, batch, classes)."""
    number = reduction_number(reduction, None, None)
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)
