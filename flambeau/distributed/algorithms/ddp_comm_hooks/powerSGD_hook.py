"""PowerSGD: gradients of matrices travel as two thin factors (Vogels, Karimireddy and Jaggi, 2019)."""

from __future__ import annotations

import math
from typing import Any

from ...._core.generator import Generator
from ...._core.tensor import Tensor
from ....futures import Future
from ... import _calls
from ..._buckets import GradBucket
from ..._world import group_of
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What is kept between iterations: what was lost so far, and the factors from which the next step starts."""

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
        self.generator = Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[tuple[int, int], Tensor] = {}
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count the iterations."""
        if bucket.is_last():
            self.iter += 1

    def is_worth_it(self, rows: int, columns: int) -> bool:
        """Whether the factors are enough smaller than the matrix."""
        return (rows + columns) * self.matrix_approximation_rank * self.min_compression_rate < rows * columns


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean over all processes: of matrices in two factors, of everything else as it is."""
    from ....linalg import qr

    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    size = group_of(state.process_group).size()
    buffer = bucket.buffer()
    kept = None
    if state.use_error_feedback:
        if bucket.index() in state.error_dict:
            buffer.add_(state.error_dict[bucket.index()])
        kept = buffer.clone()
    for number, gradient in enumerate(bucket.gradients()):
        rows = gradient.shape[0] if gradient.dim() > 1 else 1
        columns = math.prod(gradient.shape[1:]) if gradient.dim() > 1 else gradient.numel()
        if gradient.dim() < 2 or not state.is_worth_it(rows, columns):
            _calls.all_reduce(gradient.div_(size), group=state.process_group)
            continue
        matrix, key = gradient.view(rows, columns), (bucket.index(), number)
        right = state.q_memory_dict.get(key) if state.warm_start else None
        if right is None:
            rank = min(rows, columns, state.matrix_approximation_rank)
            right = matrix.new_empty(columns, rank).normal_(generator=state.generator)
            right = qr(right)[0]
        left = matrix @ right
        _calls.all_reduce(left, group=state.process_group)
        left = qr(left + state.orthogonalization_epsilon)[0]
        right = matrix.t() @ left
        _calls.all_reduce(right, group=state.process_group)
        right = right / size
        state.q_memory_dict[key] = right
        matrix.copy_(left @ right.t())
    if kept is not None:
        state.error_dict[bucket.index()] = kept - buffer
    state.maybe_increase_iter(bucket)
    future: Future[Tensor] = Future()
    future.set_result(buffer)
    return future
