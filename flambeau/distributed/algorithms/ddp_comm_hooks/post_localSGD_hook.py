"""Gradients of all processes at first, and of small groups later: averages of the models do the rest."""

from __future__ import annotations

from typing import Any

from ...._core.tensor import Tensor
from ....futures import Future
from ..._buckets import GradBucket
from ..._world import new_subgroups
from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """Which groups exchange gradients: `process_group` in the first `start_localSGD_iter` iterations, then `subgroup`,
    or nobody without `post_local_gradient_allreduce`. Without a `subgroup` it is the processes of a machine.
    """

    __slots__ = ("iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup")

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration when its last bucket has come."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean over the processes whose turn it is."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        future: Future[Tensor] = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup = new_subgroups()[0]
    return allreduce_hook(state.subgroup, bucket)
