"""The order in which a stage runs the small batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.tensor import Tensor
from ...autograd.grad_mode import no_grad
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage

__all__ = ["Schedule1F1B", "ScheduleGPipe"]


class _Schedule:
    """Small batches through one stage on each process."""

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
        self._stage = stage
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        self._scale_grads = scale_grads
        self._check()

    def _check(self) -> None:
        if self._n_microbatches < 1:
            raise ValueError(f"there is at least one small batch, not {self._n_microbatches}")

    def _order(self) -> list[tuple[str, int]]:
        """The forward ("F") and backward ("B") passes of this stage with the numbers of their small batches."""
        raise NotImplementedError

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
        stage, count = self._stage, self._n_microbatches
        stage.has_backward = with_backward
        stage.clear_runtime_states()
        inputs, options = split_args_kwargs_into_chunks(args, kwargs, count, self._specs[0], self._specs[1])
        with_loss = stage.is_last and self._loss_fn is not None and (target is not None or with_backward)
        targets = split_args_kwargs_into_chunks((target,), None, count)[0] if with_loss else []
        outputs: dict[int, Any] = {}
        found: dict[int, Tensor] = {}
        for what, number in self._order():
            if what == "F":
                output = stage.forward_one_chunk(number, inputs[number] if stage.is_first else (), options[number])
                if stage.is_last:
                    outputs[number] = output
                if with_loss:
                    assert self._loss_fn is not None
                    found[number] = self._loss_fn(output, targets[number][0], **loss_options)
            elif with_backward:
                stage.backward_one_chunk(number, found.get(number))
        stage.finish()
        if with_backward and self._scale_grads:
            stage.scale_grads(count)
        if losses is not None and with_loss:
            losses[:] = [found[number].detach() for number in range(count)]
        if not stage.is_last or not return_outputs:
            return None
        return merge_chunks([outputs[number] for number in range(count)], self._specs[2])


class ScheduleGPipe(_Schedule):
    """All small batches forward, then all of them backward."""

    def _order(self) -> list[tuple[str, int]]:
        numbers = range(self._n_microbatches)
        return [*(("F", number) for number in numbers), *(("B", number) for number in numbers)]


class Schedule1F1B(_Schedule):
    """After a few forward passes, forward and backward passes in turns: fewer small batches wait for their backward
    pass at a time.
    """

    def _check(self) -> None:
        super()._check()
        if self._n_microbatches < self._stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of "
                f"stages ({self._stage.num_stages})."
            )

    def _order(self) -> list[tuple[str, int]]:
        count = self._n_microbatches
        ahead = min(count, self._stage.num_stages - self._stage.stage_index)
        found = [("F", number) for number in range(ahead)]
        for number in range(count):
            found.append(("B", number))
            if ahead + number < count:
                found.append(("F", ahead + number))
        return found
