"""Exported programs as modules, under the names of `torch.export.unflatten`."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from ..nn.modules.module import Module
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from .exported_program import ExportedProgram

__all__ = ["FlatArgsAdapter", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(ABC):
    """Arranges arguments of another structure for a program.

    Example:
        >>> from abc import ABC
        >>> issubclass(torch.export.FlatArgsAdapter, ABC)
        True
    """

    @abstractmethod
    def adapt(
        self, target_spec: TreeSpec, input_spec: TreeSpec, input_args: list[Any],
        metadata: dict[str, Any] | None = None, obj: Any = None,
    ) -> list[Any]:  # fmt: skip
        """The leaves of the arguments in the order of `target_spec`."""

    def get_flat_arg_paths(self) -> list[str]:
        """The paths of leaves, if they are known."""
        return []


class UnflattenedModule(Module):
    """A program as a module: weights stand under their paths. The calls of submodules stand in the one graph.

    Args:
        export_module (ExportedProgram): the program.
        flat_args_adapter (FlatArgsAdapter, optional): arranges arguments of another structure.

    Returns:
        what the program returns.

    Example:
        >>> program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(2, 3)), (torch.ones(1, 2),))
        >>> [name for name, _ in torch.export.unflatten(program).named_parameters()]
        ['0.weight', '0.bias']
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        self.__dict__["_program"] = export_module.module()
        self.graph_signature = export_module.graph_signature
        called = export_module.module_call_graph[0].signature
        assert called is not None
        self._in_spec = called.in_spec
        self.flat_args_adapter = flat_args_adapter
        for name, child in self._program.named_children():
            self.add_module(name, child)
        for name, parameter in self._program.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        for name, buffer in self._program.named_buffers(recurse=False):
            self.register_buffer(name, buffer)

    @property
    def graph(self) -> Any:
        """The graph of operators."""
        return self._program.graph

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The program's results, for arguments of its structure or such as the adapter makes of them."""
        expected = [name for name in self._in_spec.child(1).context if name in kwargs]
        if len(expected) == len(kwargs):
            kwargs = {name: kwargs[name] for name in expected}
        leaves, structure = tree_flatten((args, kwargs))
        if structure != self._in_spec:
            args, kwargs = self._adapted(args, leaves, structure)
        return self._program(*args, **kwargs)

    def _adapted(self, args: tuple[Any, ...], leaves: list[Any], structure: TreeSpec) -> Any:
        """Arguments of the program's structure, from those of another."""
        if self.flat_args_adapter is None:
            raise TypeError(
                "There is no flat args adapter specified. Are you sure you are calling this with the right arguments? "
                f"The program takes {self._in_spec}, and was given {structure}"
            )
        made = self.flat_args_adapter.adapt(
            target_spec=self._in_spec, input_spec=structure, input_args=leaves,
            metadata={"unflattened_module": self}, obj=args,
        )  # fmt: skip
        if len(made) != self._in_spec.num_leaves:
            raise TypeError(
                f"Flat args adaption failed, number of args mismatch Adapted: {len(made)} \n"
                f"Exported module: {self._in_spec.num_leaves}"
            )
        return tree_unflatten(made, self._in_spec)


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """A program as a module whose weights stand under the paths that they had."""
    return UnflattenedModule(module, flat_args_adapter)


class _CalledModule(ModuleType):
    """This module, which `torch.export.unflatten` names as well as the function in it: whoever calls it means that."""

    def __call__(self, module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
        return unflatten(module, flat_args_adapter)


sys.modules[__name__].__class__ = _CalledModule
