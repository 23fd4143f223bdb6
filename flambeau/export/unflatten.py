"""Exported programs as modules, under the names of `torch.export.unflatten`."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from ..nn.modules.module import Module
from ..utils._pytree import TreeSpec
from .exported_program import ExportedProgram

__all__ = ["FlatArgsAdapter", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(ABC):
    """Arranges arguments of another structure for a program."""

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
    """A program as a module: weights stand under their paths. The calls of submodules stand in the one graph."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        self.__dict__["_program"] = export_module.module()
        self.graph_signature = export_module.graph_signature
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
        """The program's results."""
        return self._program(*args, **kwargs)


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """A program as a module whose weights stand under the paths that they had."""
    return UnflattenedModule(module, flat_args_adapter)


class _CalledModule(ModuleType):
    """This module, which `torch.export.unflatten` names as well as the function in it: whoever calls it means that."""

    def __call__(self, module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
        return unflatten(module, flat_args_adapter)


sys.modules[__name__].__class__ = _CalledModule
