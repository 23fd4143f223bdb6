"""`pipeline`: a model cut into stages at modules that its user names, or at `pipe_split()` in its forward function."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...fx._symbolic_trace import Tracer
from ...fx.graph import Graph
from ...fx.graph_module import GraphModule
from ...fx.node import Node
from ...nn.modules.container import ModuleDict
from ...nn.modules.module import Module
from .._world import ProcessGroup
from .stage import PipelineStage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]


class SplitPoint(enum.Enum):
    """On which side of a module a model is cut.

    Example:
        >>> [each.name for each in dist.pipelining.SplitPoint]
        ['BEGINNING', 'END']
    """

    BEGINNING = 1
    END = 2


class _Tracing(threading.local):
    tracer: _Tracer | None = None


_TRACING = _Tracing()


def pipe_split() -> None:
    """In a forward function: the next stage begins here. Outside of `pipeline` it does nothing.

    Example:
        >>> dist.pipelining.pipe_split()
    """
    if _TRACING.tracer is not None:
        _TRACING.tracer.graph.call_function(pipe_split)


class _Tracer(Tracer):
    def __init__(self, whole: set[str]) -> None:
        super().__init__()
        self._whole = whole

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return module_qualified_name in self._whole or super().is_leaf_module(m, module_qualified_name)


@dataclass
class PipeInfo:
    """What all stages of a model know of it."""

    num_stages: int
    has_loss_and_backward: bool = False


class Pipe(Module):
    """A model in stages. Called as a whole, it runs them one after the other.

    Args:
        split_gm (Module): the module of all stages.
        num_stages (int): how many there are.
        has_loss_and_backward (bool): whether the loss is part of it.
        loss_spec: which output is the loss.

    Returns:
        what the last stage returns.

    Example:
        >>> from flambeau.distributed.pipelining import SplitPoint, pipeline
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
        >>> pipe = pipeline(model, (torch.ones(1, 2),), split_spec={"1": SplitPoint.BEGINNING})
        >>> pipe.num_stages
        2
    """

    def __init__(self, split_gm: Module, num_stages: int, has_loss_and_backward: bool, loss_spec: Any) -> None:
        super().__init__()
        self.split_gm = split_gm
        self.num_stages = num_stages
        self.has_loss_and_backward = has_loss_and_backward
        self.loss_spec = loss_spec

    def get_stage_module(self, stage_idx: int) -> Module:
        """One of the stages."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}: there are {self.num_stages}")
        return self.split_gm.get_submodule(f"submod_{stage_idx}")

    def info(self) -> PipeInfo:
        """What `build_stage` has to know."""
        return PipeInfo(self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device: Any, group: ProcessGroup | None = None) -> PipelineStage:
        """The stage of this process."""
        return PipelineStage(self.get_stage_module(stage_index), stage_index, self.num_stages, device, group=group)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model computes."""
        values: Any = self.get_stage_module(0)(*args, **kwargs)
        for number in range(1, self.num_stages):
            given = values if isinstance(values, tuple) else (values,)
            values = self.get_stage_module(number)(*given)
        return values


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:
    """Cut a model into stages: by `split_spec`, from names of modules to the side on which it is cut, or where its
    forward function calls `pipe_split()`.

    The forward function is traced symbolically. Parameters keep their names in the stages. What a later stage needs of
    an earlier one goes through those between them.

    Args:
        module (Module): the model.
        mb_args (tuple of Anys): example arguments of one part of a batch.
        mb_kwargs (dict, optional): example keyword arguments.
        split_spec (dict[str, SplitPoint], optional): where to cut: sides by the paths of modules.
        split_policy (Callable, optional): a function that marks the cuts in the graph.

    Returns:
        Pipe: the stages.

    Example:
        >>> from flambeau.distributed.pipelining import SplitPoint, pipeline
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
        >>> pipe = pipeline(model, (torch.ones(1, 2),), split_spec={"1": SplitPoint.BEGINNING})
        >>> pipe.num_stages
        2
    """
    if split_policy is not None:
        raise NotImplementedError("split_policy is not built: name the modules by split_spec")
    spec = split_spec or {}
    for name in spec:
        module.get_submodule(name)  # an error if there is none
    tracer = _Tracer(set(spec))
    _TRACING.tracer = tracer
    try:
        graph = tracer.trace(module)
    finally:
        _TRACING.tracer = None
    stage_of, count = _assigned(graph, spec)
    stages = ModuleDict(
        {f"submod_{number}": _stage_module(module, graph, stage_of, number, count) for number in range(count)}
    )
    return Pipe(stages, count, False, None)


def _assigned(graph: Graph, spec: dict[str, SplitPoint]) -> tuple[dict[Node, int], int]:
    """The stage of each node, and how many there are."""
    stage, found = 0, {}
    for node in graph.nodes:
        if node.op == "call_function" and node.target is pipe_split:
            stage += 1
            continue
        point = spec.get(str(node.target)) if node.op == "call_module" else None
        stage += point is SplitPoint.BEGINNING
        found[node] = 0 if node.op == "placeholder" else stage
        stage += point is SplitPoint.END
    return found, stage + 1


def _stage_module(root: Module, graph: Graph, stage_of: dict[Node, int], number: int, count: int) -> GraphModule:
    """A stage as a module: it takes what the one before gives, and gives what those after it need."""
    part = Graph()
    copies: dict[Node, Node] = {}
    for node in _crossing(stage_of, number - 1):
        copies[node] = part.placeholder(node.name)
    for node, stage in stage_of.items():
        if stage == number and node.op != "output":
            copies[node] = part.node_copy(node, lambda each: copies[each])
    if number == count - 1:
        (result,) = [node for node in graph.nodes if node.op == "output"]
        part.node_copy(result, lambda each: copies[each])
    else:
        following = tuple(copies[node] for node in _crossing(stage_of, number))
        part.output(following[0] if len(following) == 1 else following)
    return GraphModule(root, part)


def _crossing(stage_of: dict[Node, int], number: int) -> list[Node]:
    """What stages up to `number` compute, or are given, and later ones use."""
    return [
        node
        for node, stage in stage_of.items()
        if stage <= number and any(stage_of.get(user, 0) > number for user in node.users)
    ]
