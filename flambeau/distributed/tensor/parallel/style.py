"""The ways to parallelize a layer: what becomes of its parameters, inputs and outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ...._core.tensor import Tensor
from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.modules.sparse import Embedding
from ....nn.parameter import Parameter
from ...device_mesh import DeviceMesh
from .._api import distribute_tensor, replicate_rest
from .._dtensor import DTensor
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip


Cuts = dict[str, dict[str, Placement]]
"""For a kind of layer the placements of its parameters."""


class ParallelStyle(ABC):
    """A way to parallelize a module.

    Example:
        >>> from flambeau.distributed.tensor.parallel import ColwiseParallel, ParallelStyle
        >>> issubclass(ColwiseParallel, ParallelStyle)
        True
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Shard a module's parameters in this style."""


def _redistributed(value: Any, mesh: DeviceMesh, layout: Placement | None, wanted: Placement | None) -> Any:
    """A tensor, of which this process has what `layout` says, distributed as it is wanted."""
    if not isinstance(value, Tensor) or layout is None:
        return value
    found = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, (layout,))
    return found if wanted is None else found.redistribute(placements=(wanted,))


class _OfParameters(ParallelStyle):
    """Cuts the parameters of linear layers and embeddings."""

    cuts: ClassVar[Cuts]

    def __init__(self, input_layout: Placement, output_layout: Placement, use_local_output: bool) -> None:
        self.input_layouts: tuple[Placement, ...] = (input_layout,)
        self.output_layouts: tuple[Placement, ...] = (output_layout,)
        self.use_local_output = use_local_output

    def _wanted_input(self, module: Module) -> Placement:
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = "linear" if isinstance(module, Linear) else "embedding" if isinstance(module, Embedding) else None
        if kind is None:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        for name, placement in self.cuts[kind].items():
            param = module._parameters.get(name)
            if param is not None:
                distributed = distribute_tensor(param.data, device_mesh, (placement,), src_data_rank=self.src_data_rank)
                module.register_parameter(name, Parameter(distributed, param.requires_grad))
        wanted = self._wanted_input(module)

        def before(module: Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            return (_redistributed(inputs[0], device_mesh, self.input_layouts[0], wanted), *inputs[1:])

        def after(module: Module, inputs: Any, output: DTensor) -> Tensor:
            moved = output.redistribute(placements=self.output_layouts)
            return moved.to_local() if self.use_local_output else moved

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_OfParameters):
    """Each process computes some of the outputs: it needs all inputs.

    Args:
        input_layouts (Placement, optional): how inputs come.
        output_layouts (Placement, optional): how outputs are wanted.
        use_local_output (bool): whether results are ordinary tensors, the parts of this process. Default: `True`.

    Example:
        >>> from flambeau.distributed.tensor.parallel import ColwiseParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> layer = parallelize_module(torch.nn.Linear(2, 4), mesh, ColwiseParallel())
        >>> layer(torch.ones(1, 2)).shape               # half of the outputs
        torch.Size([1, 2])
    """

    cuts: ClassVar[Cuts] = {
        "linear": {"weight": Shard(0), "bias": Shard(0)},
        "embedding": {"weight": Shard(1)},
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def _wanted_input(self, module: Module) -> Placement:
        return Replicate()


class RowwiseParallel(_OfParameters):
    """Each process computes with some of the inputs, or the rows that it has: what they compute is added up.

    Args:
        input_layouts (Placement, optional): how inputs come.
        output_layouts (Placement, optional): how outputs are wanted.
        use_local_output (bool): whether results are ordinary tensors, the parts of this process. Default: `True`.

    Example:
        >>> from flambeau.distributed.tensor.parallel import RowwiseParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> layer = parallelize_module(torch.nn.Linear(4, 2), mesh, RowwiseParallel())
        >>> layer(torch.ones(1, 2)).shape               # takes half of the inputs, and adds the results up
        torch.Size([1, 2])
    """

    cuts: ClassVar[Cuts] = {
        "linear": {"weight": Shard(1), "bias": Replicate()},
        "embedding": {"weight": Shard(0)},
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _wanted_input(self, module: Module) -> Placement:
        return Shard(-1) if isinstance(module, Linear) else Replicate()


class SequenceParallel(ParallelStyle):
    """Each process has a part of the sequence, and all parameters: for normalisations and dropout.

    Args:
        sequence_dim (int): the dimension of the sequence. Default: `1`.
        use_local_output (bool): whether results are ordinary tensors, the parts of this process. Default: `False`.

    Example:
        >>> from flambeau.distributed.tensor.parallel import SequenceParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> layer = parallelize_module(torch.nn.LayerNorm(4), mesh, SequenceParallel(use_local_output=True))
        >>> layer(torch.ones(1, 3, 4)).shape            # 3 of 6 positions
        torch.Size([1, 3, 4])
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding: tuple[Placement, ...] = (Shard(sequence_dim),)
        self.sequence_dim = sequence_dim
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        replicate_rest(module, device_mesh, self.src_data_rank)
        cut = self.sequence_sharding[0]

        def before(module: Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            if not isinstance(inputs[0], Tensor):
                raise ValueError(f"expecting input of {module} to be a torch.Tensor or DTensor, but got {inputs[0]}")
            return (_redistributed(inputs[0], device_mesh, cut, cut), *inputs[1:])

        def after(module: Module, inputs: Any, output: DTensor) -> Tensor:
            return output.to_local() if self.use_local_output else output

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_dim}, use_local_output={self.use_local_output})"


Layouts = Placement | Sequence[Placement | None] | None


def _listed(layouts: Layouts) -> tuple[Placement | None, ...] | None:
    return None if layouts is None else (layouts,) if isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Distributes the inputs of a module that computes with distributed tensors.

    Args:
        input_layouts (Layouts): how inputs come.
        desired_input_layouts (Layouts): how the module wants its inputs.
        input_kwarg_layouts (dict[str, Placement], optional): how keyword arguments come.
        desired_input_kwarg_layouts (dict[str, Placement], optional): how the module wants its keyword arguments.
        use_local_output (bool): whether results are ordinary tensors, the parts of this process. Default: `False`.

    Example:
        >>> from flambeau.distributed.tensor import Replicate, Shard
        >>> from flambeau.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> style = PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=True)
        >>> parallelize_module(torch.nn.ReLU(), mesh, style)(torch.ones(1, 2)).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _listed(input_layouts)
        self.desired_input_layouts = _listed(desired_input_layouts)
        self.use_local_output = use_local_output
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.with_kwargs = input_kwarg_layouts is not None
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _prepared(self, value: Any, mesh: DeviceMesh, layout: Placement | None, wanted: Placement | None) -> Any:
        found = _redistributed(value, mesh, layout, wanted)
        return found.to_local() if self.use_local_output and isinstance(found, DTensor) and layout else found

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def before(module: Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
            if self.input_layouts is not None and self.desired_input_layouts is not None:
                if len(inputs) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                inputs = tuple(
                    self._prepared(each, device_mesh, layout, wanted)
                    for each, layout, wanted in zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
                )
            for name, value in options.items():
                layout, wanted = self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts.get(name)
                options = {**options, name: self._prepared(value, device_mesh, layout, wanted)}
            return inputs, options

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Distributes the outputs of a module, or puts them together.

    Args:
        output_layouts (Layouts): how outputs are wanted.
        desired_output_layouts (Layouts): how outputs are wanted.
        use_local_output (bool): whether results are ordinary tensors, the parts of this process. Default: `True`.

    Example:
        >>> from flambeau.distributed.tensor import Replicate, Shard
        >>> from flambeau.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> style = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
        >>> parallelize_module(torch.nn.ReLU(), mesh, style)(torch.ones(1, 2)).shape
        torch.Size([2, 2])
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        self.output_layouts = _listed(output_layouts) or ()
        self.desired_output_layouts = _listed(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def after(module: Module, inputs: Any, output: Any) -> Any:
            outputs = output if isinstance(output, tuple) else (output,)
            if len(outputs) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            found = []
            for each, layout, wanted in zip(outputs, self.output_layouts, self.desired_output_layouts, strict=True):
                distributed = _redistributed(each, device_mesh, layout, wanted)
                local = self.use_local_output and layout is not None and isinstance(distributed, DTensor)
                found.append(distributed.to_local() if local else distributed)
            return tuple(found) if isinstance(output, tuple) else found[0]

        module.register_forward_hook(after)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module.

    Args:
        input_layouts (Layouts): how inputs come.
        desired_input_layouts (Layouts): how the module wants its inputs.
        input_kwarg_layouts (dict[str, Placement], optional): how keyword arguments come.
        desired_input_kwarg_layouts (dict[str, Placement], optional): how the module wants its keyword arguments.
        use_local_input (bool): whether the module gets ordinary tensors, the parts of this process. Default: `False`.
        output_layouts (Layouts): how outputs are wanted.
        desired_output_layouts (Layouts): how outputs are wanted.
        use_local_output (bool): whether results are ordinary tensors, the parts of this process. Default: `True`.

    Example:
        >>> from flambeau.distributed.tensor import Replicate, Shard
        >>> from flambeau.distributed.tensor.parallel import PrepareModuleInputOutput, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> style = PrepareModuleInputOutput(
        ...     input_layouts=Shard(0), desired_input_layouts=Replicate(), output_layouts=Replicate(),
        ...     desired_output_layouts=Shard(0),
        ... )
        >>> parallelize_module(torch.nn.ReLU(), mesh, style)(torch.ones(1, 2)).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        return self.prepare_module_output._apply(self.prepare_module_input._apply(module, device_mesh), device_mesh)

    def __repr__(self) -> str:
        return f"PrepareModuleInputOutput({self.prepare_module_input!r}, {self.prepare_module_output!r})"
