"""The order in which the stages of a process run the small batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.names.absent import Table
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ...autograd.grad_mode import no_grad
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS", "get_schedule_class",
]  # fmt: skip

Pass = tuple[str, int, int]
"""A forward ("F") or backward ("B") pass: the number of a stage, and that of a small batch."""


class _Schedule(ABC):
    """Small batches through the stages of this process."""

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None,
        args_chunk_spec: tuple[Any, ...] | None,
        kwargs_chunk_spec: dict[str, Any] | None,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(f"there is at least one small batch, not {n_microbatches}")
        self._stages = {stage.stage_index: stage for stage in stages}
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        self._scale_grads = scale_grads

    @abstractmethod
    def _order(self) -> list[Pass]:
        """The passes of this process."""

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch, forward and, if there is a loss function, backward.

        The first stage is given the inputs, the last one the target; that one returns the outputs and appends the
        losses of the small batches to `losses`.
        """
        return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs or {}, self._loss_fn is not None)

    def eval(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch forward, without gradients."""
        with no_grad():
            return self._run(args, kwargs, target, losses, True, loss_kwargs or {}, False)

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        losses: list[Any] | None,
        return_outputs: bool,
        loss_options: dict[str, Any],
        with_backward: bool,
    ) -> Any:
        stages, count = self._stages, self._n_microbatches
        for stage in stages.values():
            stage.has_backward = with_backward
            stage.clear_runtime_states()
        inputs, options = split_args_kwargs_into_chunks(args, kwargs, count, self._specs[0], self._specs[1])
        has_last = any(stage.is_last for stage in stages.values())
        with_loss = has_last and self._loss_fn is not None and (target is not None or with_backward)
        targets = split_args_kwargs_into_chunks((target,), None, count)[0] if with_loss else []
        outputs: dict[int, Any] = {}
        found: dict[int, Tensor] = {}
        for what, index, number in self._order():
            stage = stages[index]
            if what == "F":
                output = stage.forward_one_chunk(number, inputs[number] if stage.is_first else (), options[number])
                if stage.is_last:
                    outputs[number] = output
                    if with_loss:
                        assert self._loss_fn is not None
                        found[number] = self._loss_fn(output, targets[number][0], **loss_options)
            elif with_backward:
                stage.backward_one_chunk(number, found.get(number) if stage.is_last else None)
        for stage in stages.values():
            stage.finish()
            if with_backward and self._scale_grads:
                stage.scale_grads(count)
        if losses is not None and with_loss:
            losses[:] = [found[number].detach() for number in range(count)]
        if not has_last or not return_outputs:
            return None
        return merge_chunks([outputs[number] for number in range(count)], self._specs[2])


class PipelineScheduleSingle(_Schedule):
    """Each process has one stage."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        self._stage = stage
        self._check_count()

    def _check_count(self) -> None:
        """Refuse a number of small batches that the order of passes cannot have."""


class ScheduleGPipe(PipelineScheduleSingle):
    """All small batches forward, then all of them backward.

    Args:
        stage (PipelineStage): the stage of this process.
        n_microbatches (int): into how many parts each batch is cut.
        loss_fn (Callable, optional): the loss of outputs and targets, on the last stage.
        args_chunk_spec (tuple of Anys, optional): how positional arguments are cut; None cuts along the first
            dimension.
        kwargs_chunk_spec (dict, optional): how keyword arguments are cut; None cuts along the first dimension.
        output_merge_spec: how outputs are joined; None joins along the first dimension.
        scale_grads (bool): whether gradients are divided by the number of parts. Default: `True`.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> stage = dist.pipelining.PipelineStage(layer, dist.get_rank(), 2, torch.device("cpu"))
        >>> schedule = dist.pipelining.ScheduleGPipe(stage, n_microbatches=2, loss_fn=torch.nn.functional.mse_loss)
        >>> if dist.get_rank() == 0:
        ...     schedule.step(torch.ones(4, 2))
        ... else:
        ...     _ = schedule.step(target=torch.zeros(4, 2))
        >>> layer.weight.grad.shape
        torch.Size([2, 2])
    """

    def _order(self) -> list[Pass]:
        numbers, index = range(self._n_microbatches), self._stage.stage_index
        return [*(("F", index, number) for number in numbers), *(("B", index, number) for number in numbers)]


@documented_like(ScheduleGPipe)
class Schedule1F1B(PipelineScheduleSingle):
    """After a few forward passes, forward and backward passes in turns: fewer small batches wait for their backward
    pass at a time.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> stage = dist.pipelining.PipelineStage(layer, dist.get_rank(), 2, torch.device("cpu"))
        >>> schedule = dist.pipelining.Schedule1F1B(stage, n_microbatches=2, loss_fn=torch.nn.functional.mse_loss)
        >>> if dist.get_rank() == 0:
        ...     schedule.step(torch.ones(4, 2))
        ... else:
        ...     _ = schedule.step(target=torch.zeros(4, 2))
        >>> layer.weight.grad.shape
        torch.Size([2, 2])
    """

    def _check_count(self) -> None:
        if self._n_microbatches < self._stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of "
                f"stages ({self._stage.num_stages})."
            )

    def _order(self) -> list[Pass]:
        count, index = self._n_microbatches, self._stage.stage_index
        ahead = min(count, self._stage.num_stages - index)
        found = [("F", index, number) for number in range(ahead)]
        for number in range(count):
            found.append(("B", index, number))
            if ahead + number < count:
                found.append(("F", index, ahead + number))
        return found


class PipelineScheduleMulti(_Schedule):
    """Each process has several stages: of four processes, the first has the stages 0, 4, 8 and so on."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ) -> None:
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        if len(stages) <= 1:
            raise ValueError(f"Multi-stage schedule expects at least two stages but got {len(stages)} stages.")
        if use_full_backward is False or not backward_requires_autograd:
            raise NotImplementedError("backward passes of inputs and of weights are one here, and autograd makes them")
        self._size, self._rank = stages[0].group.size(), stages[0].group.rank()
        for stage in stages:
            stage.meet(self._stages)


@documented_like(ScheduleGPipe)
class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All small batches through one stage of this process before the next one begins; backward likewise.

    Args:
        stages (list of PipelineStages): the stages of this process.
        backward_requires_autograd (bool): must be True. Default: `True`.
        defer_pp_recv (bool): not used. Default: `False`.

    Example:
        >>> layers = [torch.nn.Linear(2, 2) for _ in range(2)]
        >>> rank = dist.get_rank()
        >>> stages = [
        ...     dist.pipelining.PipelineStage(layer, rank + 2 * n, 4, torch.device("cpu"))
        ...     for n, layer in enumerate(layers)
        ... ]
        >>> loss = torch.nn.functional.mse_loss
        >>> schedule = dist.pipelining.ScheduleLoopedBFS(stages, n_microbatches=2, loss_fn=loss)
        >>> if rank == 0:
        ...     schedule.step(torch.ones(4, 2))
        ... else:
        ...     _ = schedule.step(target=torch.zeros(4, 2))
        >>> layers[1].weight.grad.shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            output_merge_spec=output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
        )

    def _order(self) -> list[Pass]:
        numbers = range(self._n_microbatches)
        forward = [("F", index, number) for index in self._stages for number in numbers]
        return forward + [("B", index, number) for index in reversed(self._stages) for number in reversed(numbers)]


@documented_like(ScheduleLoopedBFS)
class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """Forward and backward passes in turns, on several stages of a process: a few small batches through the first one,
    then the same through the next one (Narayanan and others, 2021).

    Args:
        args_chunk_spec (tuple of Anys, optional): how positional arguments are cut; None cuts along the first
            dimension.
        kwargs_chunk_spec (dict, optional): how keyword arguments are cut; None cuts along the first dimension.

    Example:
        >>> layers = [torch.nn.Linear(2, 2) for _ in range(2)]
        >>> rank = dist.get_rank()
        >>> stages = [
        ...     dist.pipelining.PipelineStage(layer, rank + 2 * n, 4, torch.device("cpu"))
        ...     for n, layer in enumerate(layers)
        ... ]
        >>> schedule = dist.pipelining.ScheduleInterleaved1F1B(stages, n_microbatches=4)
        >>> schedule.number_of_rounds, schedule.microbatches_per_round
        (2, 2)
    """

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
        )
        self.number_of_rounds = max(1, n_microbatches // self._size)
        self.microbatches_per_round = n_microbatches // self.number_of_rounds
        if n_microbatches % self.number_of_rounds:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds "
                f"({self.number_of_rounds}), but got {n_microbatches}."
            )

    def _order(self) -> list[Pass]:
        indices = list(self._stages)
        total = len(indices) * self._n_microbatches
        ahead = (len(indices) - 1) * self.microbatches_per_round + 2 * (self._size - 1 - self._rank)
        ahead = min(ahead, total)
        had: Counter[tuple[str, int]] = Counter()

        def following(what: str, step: int) -> Pass:
            """The n-th forward, or backward, pass of this process."""
            turn = step // self.microbatches_per_round % len(indices)
            index = indices[turn] if what == "F" else indices[-1 - turn]
            had[what, index] += 1
            return what, index, had[what, index] - 1

        found = [following("F", step) for step in range(ahead)]
        for step in range(total):
            if ahead + step < total:
                found.append(following("F", ahead + step))
            found.append(following("B", step))
        return found


_BY_NAME: dict[str, Any] = {
    "1f1b": Schedule1F1B,
    "gpipe": ScheduleGPipe,
    "interleaved1f1b": ScheduleInterleaved1F1B,
    "loopedbfs": ScheduleLoopedBFS,
    "pipelineschedulesingle": PipelineScheduleSingle,
    "pipelineschedulemulti": PipelineScheduleMulti,
}

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "backward passes of inputs and of weights are one here, so there are no schedules that move the latter",
        classes="ScheduleDualPipeV ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble",
    )
    .parts()
)


def get_schedule_class(schedule_name: str) -> type[_Schedule]:
    """The schedule of a name, such as "1F1B"; capital letters do not matter."""
    found: type[_Schedule] | None = _BY_NAME.get(schedule_name.lower())
    if found is None:
        raise ValueError(f"Unknown schedule name {schedule_name}. The valid options are {list(_BY_NAME)}")
    return found
