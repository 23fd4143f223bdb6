"""Twins of torchaudio's compiled operators, in Python: what `torch.ops.load_library` finds for that library.

Recursive filters and the overdrive effect run sample by sample over all channels at once. The transducer loss runs over
the anti-diagonals of its lattice, on which no cell depends on another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._core.tensor import Tensor
from ._custom import OPERATORS, define

_OVERDRIVE_FEEDBACK = 0.995
_OVERDRIVE_DRY, _OVERDRIVE_WET = 0.5, 0.75

Array = npt.NDArray[Any]


def _torch() -> Any:
    import flambeau

    return flambeau


def _lfilter_core_loop(input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor) -> None:
    """Run a recursive filter over `(batch, channel, time)`: each sample less the weighted output before it."""
    order = a_coeff_flipped.size(1)
    samples = input_signal_windows.detach().cpu().numpy()
    weights = a_coeff_flipped.detach().cpu().numpy()
    output = padded_output_waveform.detach().cpu().numpy()
    for time in range(samples.shape[2]):
        past = (output[:, :, time : time + order] * weights).sum(-1)
        output[:, :, time + order - 1] = samples[:, :, time] - past
    _store(output, padded_output_waveform)


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Mix each sample of `(channel, time)` with the distorted signal, from which a slow average is taken."""
    dry, distorted = (each.detach().cpu().numpy() for each in (waveform, temp))
    before, wet = (each.detach().cpu().numpy() for each in (last_in, last_out))
    output = output_waveform.detach().cpu().numpy()
    for time in range(dry.shape[-1]):
        wet = distorted[:, time] - before + _OVERDRIVE_FEEDBACK * wet
        before = distorted[:, time]
        output[:, time] = dry[:, time] * _OVERDRIVE_DRY + wet * _OVERDRIVE_WET
    _store(output, output_waveform)


def _store(values: Array, where: Tensor) -> None:
    """Copy `values` into a tensor, which counts the change; on the CPU they lie in its memory already."""
    with _torch().no_grad():
        where.copy_(_torch().from_numpy(values))


def rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused_log_softmax: bool = True,
) -> tuple[Tensor, Tensor]:
    """The transducer loss of each sample, and its gradient with respect to `logits`.

    `logits` is `(batch, time, target + 1, class)`. A path through the lattice of times and target positions emits a
    blank and goes on in time, or emits the next target and stays; the loss is minus the logarithm of the sum over all
    paths.
    """
    torch = _torch()
    _check_transducer(logits, targets, logit_lengths, target_lengths, blank)
    wide = logits.detach().to(torch.float32 if logits.dtype == torch.float16 else logits.dtype)
    log_probs = wide.log_softmax(-1) if fused_log_softmax else wide
    values = log_probs.cpu().numpy().astype(np.float64)
    lattice = _Lattice(values, _integers(targets), _integers(logit_lengths), _integers(target_lengths), blank)
    costs, gradient = lattice.costs_and_gradient()
    if fused_log_softmax:
        gradient -= np.exp(lattice.log_probs) * gradient.sum(-1, keepdims=True)
    if clamp > 0:
        gradient = gradient.clip(-clamp, clamp)
    found = (torch.from_numpy(each).to(device=logits.device, dtype=logits.dtype) for each in (costs, gradient))
    return next(found), next(found)


def _integers(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), np.int64)


def _check_transducer(logits: Tensor, targets: Tensor, times: Tensor, lengths: Tensor, blank: int) -> None:
    check = _torch()._check
    check(logits.dim() == 4, lambda: f"logits must be 4-D (batch, time, target, class), got {logits.dim()}-D")
    batch, most_times, positions, classes = logits.shape
    check(targets.dim() == 2, lambda: f"targets must be 2-D (batch, max target length), got {targets.dim()}-D")
    for name, each in (("logit_lengths", times), ("target_lengths", lengths)):
        check(
            each.shape == (batch,), lambda name=name, each=each: f"{name} must be ({batch},), got {tuple(each.shape)}"
        )
    check(targets.size(0) == batch, lambda: f"batch dimension mismatch between logits and targets: {targets.size(0)}")
    check(0 <= blank < classes, lambda: f"blank must be within [0, {classes}), got {blank}")
    if batch == 0:
        return
    check(times.max().item() == most_times, lambda: f"input length mismatch: logits have {most_times} times")
    check(lengths.max().item() + 1 == positions, lambda: f"output length mismatch: logits have {positions} positions")
    check(times.min().item() > 0 and lengths.min().item() >= 0, lambda: "lengths must not be negative, times not zero")
    check(
        targets.size(1) >= positions - 1 and bool(((targets >= 0) & (targets < classes)).all().item()),
        lambda: f"targets must have {positions - 1} columns of classes within [0, {classes})",
    )


class _Lattice:
    """Times and target positions of a batch; its paths emit blanks or targets."""

    def __init__(self, log_probs: Array, targets: Array, times: Array, lengths: Array, blank: int) -> None:
        self.log_probs = log_probs
        batch, self._times, self._positions, _ = log_probs.shape
        self._samples = np.arange(batch)
        self._last_time, self._last_position = times - 1, lengths
        self._blank = blank
        self._targets = targets[:, : self._positions - 1]
        self._blanks = log_probs[..., blank]
        emitted = np.broadcast_to(self._targets[:, None, :, None], (batch, self._times, self._positions - 1, 1))
        self._emits = np.take_along_axis(log_probs[:, :, :-1], emitted, -1)[..., 0]

    def _diagonals(self) -> list[tuple[Array, Array]]:
        """The cells of each anti-diagonal, as times and positions."""
        found = []
        for number in range(self._times + self._positions - 1):
            position = np.arange(max(0, number - self._times + 1), min(number, self._positions - 1) + 1)
            found.append((number - position, position))
        return found

    def _forward(self) -> Array:
        """For each cell, the logarithm of the sum over all paths that lead to it."""
        found = np.full(self._blanks.shape, -np.inf)
        found[:, 0, 0] = 0.0
        for time, position in self._diagonals()[1:]:
            waited, emitted = time > 0, position > 0
            t, u = time[waited], position[waited]
            found[:, t, u] = found[:, t - 1, u] + self._blanks[:, t - 1, u]
            t, u = time[emitted], position[emitted]
            found[:, t, u] = np.logaddexp(found[:, t, u], found[:, t, u - 1] + self._emits[:, t, u - 1])
        return found

    def _backward(self) -> Array:
        """For each cell, the logarithm of the sum over all paths from it through the last blank of its sample."""
        shape = (len(self._samples), self._times + 1, self._positions + 1)
        found = np.full(shape, -np.inf)
        inside = (np.arange(self._times) <= self._last_time[:, None])[..., None] & (
            np.arange(self._positions) <= self._last_position[:, None]
        )[:, None]
        emits = np.concatenate([self._emits, np.full((*self._blanks.shape[:2], 1), -np.inf)], -1)
        is_end = np.zeros(self._blanks.shape, bool)
        is_end[self._samples, self._last_time, self._last_position] = True
        for time, position in reversed(self._diagonals()):
            waited = found[:, time + 1, position] + self._blanks[:, time, position]
            total = np.logaddexp(waited, found[:, time, position + 1] + emits[:, time, position])
            total = np.where(is_end[:, time, position], self._blanks[:, time, position], total)
            found[:, time, position] = np.where(inside[:, time, position], total, -np.inf)
        return found

    def costs_and_gradient(self) -> tuple[Array, Array]:
        """Minus the log-likelihood of each sample; its gradient with respect to the log-probabilities."""
        forward, backward = self._forward(), self._backward()
        total = backward[:, :1, :1]
        gradient = np.zeros_like(self.log_probs)
        after_blank = backward[:, 1:, :-1].copy()
        after_blank[self._samples, self._last_time, self._last_position] = 0.0
        with np.errstate(invalid="ignore"):  # where a sample has no path at all
            gradient[..., self._blank] = -np.exp(forward + self._blanks + after_blank - total)
            emits = -np.exp(forward[:, :, :-1] + self._emits + backward[:, :-1, 1:-1] - total)
        for position in range(self._positions - 1):
            gradient[self._samples, :, position, self._targets[:, position]] += emits[:, :, position]
        return -total[:, 0, 0], gradient


def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The most probable labels, one for each time, that spell `targets` once blanks are left out; `log_probs` again."""
    torch = _torch()
    torch._check(log_probs.dim() == 3, lambda: f"log_probs must be 3-D (batch, time, class), got {log_probs.dim()}-D")
    torch._check(log_probs.size(0) == 1, lambda: f"only a batch of one sample can be aligned, got {log_probs.size(0)}")
    torch._check(targets.dim() == 2 and targets.size(0) == 1, lambda: "targets must be (1, target length)")
    times, count = int(input_lengths[0]), int(target_lengths[0])
    torch._check(times == log_probs.size(1), lambda: "input length mismatch between input_lengths and log_probs")
    torch._check(count == targets.size(1), lambda: "target length mismatch between target_lengths and targets")
    values = log_probs[0].detach().cpu().numpy().astype(np.float64)
    labels = _integers(targets[0])
    repeats = int((labels[1:] == labels[:-1]).sum())
    torch._check(
        times >= count + repeats,
        lambda: f"targets length is too long for CTC: {times} times for {count} labels and {repeats} repeated ones",
    )
    states = np.full(2 * count + 1, blank, np.int64)
    states[1::2] = labels
    path = torch.from_numpy(states[_best_states(values[:, states], states, blank)])
    return path[None].to(device=targets.device, dtype=targets.dtype), log_probs


def _best_states(values: Array, states: Array, blank: int) -> Array:
    """The most probable sequence of states: a step stays, goes on by one, or by two past a blank between labels."""
    times, count = values.shape
    may_skip = np.zeros(count, bool)
    may_skip[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    score = np.full(count, -np.inf)
    score[:2] = values[0, :2]
    steps = np.zeros((times, count), np.int64)
    for time in range(1, times):
        by_one = np.concatenate([[-np.inf], score[:-1]])
        by_two = np.where(may_skip, np.concatenate([[-np.inf, -np.inf], score[:-2]])[:count], -np.inf)
        steps[time] = np.argmax([score, by_one, by_two], axis=0)
        score = np.maximum(np.maximum(score, by_one), by_two) + values[time]
    state = count - 1 if count == 1 or score[-1] > score[-2] else count - 2
    found = np.empty(times, np.int64)
    for time in range(times - 1, -1, -1):
        found[time] = state
        state -= steps[time, state]
    return found


_TWINS: dict[str, dict[str, tuple[Callable[..., Any], str]]] = {
    "torchaudio": {
        "_lfilter_core_loop": (
            _lfilter_core_loop,
            "(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> ()",
        ),
        "_overdrive_core_loop": (
            _overdrive_core_loop,
            "(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output_waveform) -> ()",
        ),
        "rnnt_loss_forward": (
            rnnt_loss_forward,
            (
                "(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
                "bool fused_log_softmax=True) -> (Tensor, Tensor)"
            ),
        ),
        "forced_align": (
            forced_align,
            (
                "(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> "
                "(Tensor, Tensor)"
            ),
        ),
    },
    "_torchaudio": {
        "cuda_version": (lambda: None, "() -> int?"),
        "is_align_available": (lambda: True, "() -> bool"),
    },
}


def register() -> None:
    """Make the operators known, once."""
    for namespace, twins in _TWINS.items():
        if namespace not in OPERATORS:
            for name, (function, schema) in twins.items():
                define(namespace, name + schema)._implement(function, "CompositeImplicitAutograd")
