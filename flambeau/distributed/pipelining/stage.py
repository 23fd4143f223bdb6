"""`PipelineStage`: the part of a model that this process runs, and what it exchanges with its neighbours."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._ops.create.constants import empty
from ...autograd import backward
from ...nn.modules.module import Module
from .. import _objects, _points
from .._world import ProcessGroup, group_of

__all__ = ["PipelineStage", "build_stage"]

Form = tuple[tuple[int, ...], Any]
"""A shape and a dtype."""


class PipelineStage:
    """A stage of a model. The n-th process of the group has the n-th stage, and if there are more stages than
    processes, the first process has the next one again.

    The shapes of what arrives are told by the stage before, with the first small batch of a step.

    Args:
        submodule (Module): the module of the stage.
        stage_index (int): the number of the stage.
        num_stages (int): how many stages there are.
        device: where it runs.
        input_args: example inputs; None finds them out in the first step.
        output_args: example outputs; None finds them out in the first step.
        output_grads: not used.
        input_grads: not used.
        group (ProcessGroup, optional): the processes that take part; None means all.
        dw_builder: must be None: one backward pass computes all gradients.
        get_mesh: not used.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> stage = dist.pipelining.PipelineStage(layer, dist.get_rank(), 2, torch.device("cpu"))
        >>> stage.is_first
        True
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if dw_builder is not None:
            raise NotImplementedError("backward passes of inputs and of weights are one: there is no dw_builder")
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        found = group_of(group)
        if found.size() > num_stages:
            raise RuntimeError(
                f"Pipeline group size {found.size()} cannot be larger than number of stages {num_stages}"
            )
        self.submod = submodule.to(device)
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = device
        self.group = found
        self.has_backward = False
        self._arriving: list[Form] | None = None
        self._told: list[Form] | None = None
        self._waiting: dict[int, tuple[list[Any], list[Any]]] = {}
        """What arrived and what was computed, by the number of the small batch, until its backward pass."""
        self._sends: list[Any] = []
        self._beside: dict[int, PipelineStage] = {}
        """Neighbours in this process."""
        self._left_here: dict[tuple[int, int], list[Any]] = {}
        """What they have left for this stage, by their number and that of the small batch."""

    def meet(self, stages: dict[int, PipelineStage]) -> None:
        """Know the neighbours that are in this process: nothing is sent to them."""
        neighbours = (self.stage_index - 1, self.stage_index + 1)
        self._beside = {index: stages[index] for index in neighbours if index in stages}

    def _give(self, number: int, other: int, tensors: list[Tensor]) -> None:
        """Give tensors of a small batch to a neighbour."""
        if other in self._beside:
            self._beside[other]._left_here[self.stage_index, number] = [each.detach() for each in tensors]
            return
        for each in tensors:
            sent = each.detach().contiguous()
            self._sends.append(_points.isend(sent, tag=self._tag(self.stage_index, other), **self._to(other)))

    def _take(self, number: int, other: int, forms: list[Form]) -> list[Tensor]:
        """Tensors of a small batch that a neighbour gives."""
        if other in self._beside:
            return self._left_here.pop((other, number))
        found = [empty(shape, dtype=kind, device=self.device) for shape, kind in forms]
        for each in found:
            source, tag = other % self.group.size(), self._tag(other, self.stage_index)
            _points.recv(each, group=self.group, group_src=source, tag=tag)
        return found

    def _to(self, other: int) -> dict[str, Any]:
        return {"group": self.group, "group_dst": other % self.group.size()}

    @staticmethod
    def _tag(sender: int, receiver: int) -> int:
        """The tag of messages between two stages in one direction: two processes may have several such stages."""
        return 1 + 2 * min(sender, receiver) + (sender > receiver)

    @property
    def is_first(self) -> bool:
        """Whether it takes the inputs of the model."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it computes the outputs of the model."""
        return self.stage_index == self.num_stages - 1

    # ----- forward ------------------------------------------------------------------------------------------------

    def forward_one_chunk(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Run a small batch: the first stage is given its arguments, the others receive them; send what comes out."""
        given = list(args) if self.is_first else self._receive(number)
        output = self.submod(*given, **(kwargs or {}))
        outputs = list(output) if isinstance(output, (tuple, list)) else [output]
        if not self.is_last:
            self._send(number, outputs)
        if self.has_backward:
            self._waiting[number] = given, outputs
        return output

    def _receive(self, number: int) -> list[Any]:
        before = self.stage_index - 1
        if self._arriving is None and before not in self._beside:
            told: list[Any] = [None]
            _objects.recv_object_list(told, group=self.group, group_src=before % self.group.size())
            self._arriving = [(tuple(shape), kind) for shape, kind in told[0]]
        found = self._take(number, before, self._arriving or [])
        return [each.requires_grad_() if self.has_backward and each.is_floating_point() else each for each in found]

    def _send(self, number: int, outputs: list[Any]) -> None:
        following = self.stage_index + 1
        for each in outputs:
            if not isinstance(each, Tensor):
                raise TypeError(f"stage {self.stage_index} gives the next {type(each).__name__}: only tensors can go")
        forms = [(tuple(each.shape), each.dtype) for each in outputs]
        if self._told is None:
            if following not in self._beside:
                _objects.send_object_list([forms], **self._to(following))
            self._told = forms
        elif forms != self._told:
            raise RuntimeError(
                f"all small batches of a step have one size: stage {self.stage_index} gives {forms}, and before "
                f"{self._told}. Choose a batch that the number of small batches divides"
            )
        self._give(number, following, outputs)

    # ----- backward -----------------------------------------------------------------------------------------------

    def backward_one_chunk(self, number: int, loss: Tensor | None = None) -> None:
        """The backward pass of a small batch: from its loss, or from the gradients that the next stage sends."""
        given, outputs = self._waiting.pop(number)
        if self.is_last:
            assert loss is not None
            loss.backward()
        else:
            wanted = [each for each in outputs if each.is_floating_point()]
            grads = self._take(number, self.stage_index + 1, [(tuple(each.shape), each.dtype) for each in wanted])
            recorded = [(each, grad) for each, grad in zip(wanted, grads, strict=True) if each.requires_grad]
            if recorded:
                backward([each for each, _ in recorded], [grad for _, grad in recorded])
        if not self.is_first:
            floating = [each for each in given if each.is_floating_point()]
            grads = [each.grad if each.grad is not None else each.new_zeros(each.shape) for each in floating]
            self._give(number, self.stage_index - 1, grads)

    def finish(self) -> None:
        """Wait until everything that was sent is on its way."""
        for each in self._sends:
            if each is not None:
                each.wait()
        self._sends.clear()

    def scale_grads(self, divisor: int) -> None:
        """Divide the gradients of the parameters."""
        if divisor != 1:
            for each in self.submod.parameters():
                if each.grad is not None:
                    each.grad.div_(divisor)

    def clear_runtime_states(self) -> None:
        """Be ready for a new step."""
        self._waiting.clear()
        self._left_here.clear()
        self._arriving = self._told = None


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: Any, device: Any, group: ProcessGroup | None = None
) -> PipelineStage:
    """A stage of a model that `pipeline` has cut.

    Args:
        stage_module (Module): the module of the stage.
        stage_index (int): the number of the stage.
        pipe_info: what `Pipe.info()` returns.
        device: where the stage runs.
        group (ProcessGroup, optional): the processes that take part; None means all.

    Returns:
        PipelineStage: the stage.
    """
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
