"""PowerSGD: gradients of matrices travel as two thin factors (Vogels, Karimireddy and Jaggi, 2019)."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._core.generator import Generator
from ...._core.tensor import Tensor
from ...._ops.random.draws import randn
from ...._ops.shape.join import cat, stack
from ....futures import Future
from ... import _calls
from ..._buckets import GradBucket
from ..._world import group_of
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_logger = logging.getLogger(__name__)


class PowerSGDState:
    """What is kept between iterations: what was lost so far, and the factors from which the next step starts.

    `batch_tensors_with_same_shape` is a matter of speed on GPUs: the numbers are the same.
    """

    __slots__ = (
        "batch_tensors_with_same_shape", "compression_stats_logging_frequency", "error_dict", "iter",
        "matrix_approximation_rank", "min_compression_rate", "next_stats_report", "orthogonalization_epsilon",
        "p_memory_dict", "process_group", "q_memory_dict", "rng", "start_powerSGD_iter",
        "total_numel_after_compression", "total_numel_before_compression", "use_error_feedback", "warm_start",
    )  # fmt: skip

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if start_powerSGD_iter <= 1 and (use_error_feedback or warm_start):
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, list[Tensor]] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration when its last bucket has come."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers travelled than there were, how many there were, and how many travelled."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def count(self, before: int, after: int) -> None:
        """Note how many numbers there were and how many travel instead; now and then a line of the log says so."""
        self.total_numel_before_compression += before
        self.total_numel_after_compression += after
        if self.iter >= self.next_stats_report:
            _logger.info("PowerSGD, iteration %d: %.1f times fewer numbers, %d of %d", self.iter,
                         self.compression_stats()[0], after, before)  # fmt: skip
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def is_worth_it(self, gradient: Tensor) -> bool:
        """Whether the factors are enough smaller than the matrix."""
        rows, count = gradient.shape[0] if gradient.dim() else 1, gradient.numel()
        factors = (rows + count // max(1, rows)) * self.matrix_approximation_rank
        return factors * self.min_compression_rate < count

    def first_factors(self, bucket: int, matrices: Sequence[Tensor]) -> list[Tensor]:
        """The factors from which a step starts: those of the step before, or random ones."""
        if self.warm_start and bucket in self.q_memory_dict:
            return [self.orthogonal(each) for each in self.q_memory_dict[bucket]]
        generator = Generator().manual_seed(int(self.rng.randint(1_000_000_000)))
        found = []
        for matrix in matrices:
            rank = min(*matrix.shape, self.matrix_approximation_rank)
            start = randn(matrix.shape[1], rank, dtype=matrix.dtype, generator=generator).to(matrix.device)
            found.append(self.orthogonal(start))
        return found

    def orthogonal(self, matrix: Tensor) -> Tensor:
        """Columns of length one that are at right angles; with an epsilon, by Gram and Schmidt's process."""
        from ....linalg import qr

        if self.orthogonalization_epsilon == 0:
            found: Tensor = qr(matrix)[0]
            return found
        columns: list[Tensor] = []
        for column in matrix.unbind(1):
            for before in columns:
                column = column - (before * column).sum() * before
            columns.append(column / (column.norm() + self.orthogonalization_epsilon))
        return stack(columns, 1)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes: of matrices in two factors, of everything else as it is."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    size = group_of(state.process_group).size()
    buffer, index = bucket.buffer(), bucket.index()
    kept = None
    if state.use_error_feedback:
        if index in state.error_dict:
            buffer.add_(state.error_dict[index])
        kept = buffer.clone()
    gradients = bucket.gradients()
    plain = [each for each in gradients if not state.is_worth_it(each)]
    _summed(state, [each.div_(size) for each in plain])
    matrices = _by_shape([each.view(each.shape[0], -1) for each in gradients if state.is_worth_it(each)])
    factors = _replaced_by_factors(state, index, matrices, size)
    state.count(buffer.numel(), factors + sum(each.numel() for each in plain))
    if kept is not None:
        state.error_dict[index] = kept - buffer
    state.maybe_increase_iter(bucket)
    future: Future[Tensor] = Future()
    future.set_result(buffer)
    return future


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes: the whole bucket is one square matrix, filled up with zeros, in two factors."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    length = buffer.numel()
    side = math.ceil(math.sqrt(length))
    square = cat([buffer, buffer.new_zeros(side * side - length)])
    kept = None
    if state.use_error_feedback:
        if index in state.error_dict:
            square.add_(state.error_dict[index])
        kept = square.clone()
    factors = _replaced_by_factors(state, index, [square.view(side, side)], group_of(state.process_group).size())
    state.count(length, factors)
    if kept is not None:
        state.error_dict[index] = kept - square
    state.maybe_increase_iter(bucket)
    future: Future[Tensor] = Future()
    future.set_result(buffer.copy_(square[:length]))
    return future


def _replaced_by_factors(state: PowerSGDState, index: int, matrices: Sequence[Tensor], size: int) -> int:
    """Put the product of two thin factors of its mean into each matrix; how many numbers travelled."""
    rights = state.first_factors(index, matrices)
    lefts = [matrix @ right for matrix, right in zip(matrices, rights, strict=True)]
    _summed(state, lefts)
    lefts = [state.orthogonal(left) for left in lefts]
    rights = [matrix.t() @ left for matrix, left in zip(matrices, lefts, strict=True)]
    _summed(state, rights)
    rights = [right / size for right in rights]
    if state.warm_start:
        state.p_memory_dict[index], state.q_memory_dict[index] = lefts, rights
    for matrix, left, right in zip(matrices, lefts, rights, strict=True):
        matrix.copy_(left @ right.t())
    return sum(each.numel() for each in (*lefts, *rights))


def _by_shape(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Matrices of one shape behind the first one of them: in this order random factors are drawn."""
    by_shape: dict[Any, list[Tensor]] = {}
    for matrix in matrices:
        by_shape.setdefault(matrix.shape, []).append(matrix)
    return [matrix for alike in by_shape.values() for matrix in alike]


def _summed(state: PowerSGDState, tensors: Sequence[Tensor]) -> None:
    """The sums over all processes, in place; they travel as one."""
    if not tensors:
        return
    flat = cat([each.reshape(-1) for each in tensors])
    _calls.all_reduce(flat, group=state.process_group)
    start = 0
    for each in tensors:
        each.copy_(flat[start : start + each.numel()].view(each.shape))
        start += each.numel()
