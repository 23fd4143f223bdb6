"""Modules that know how they are exported, under the name of `torch.onnx.ExportableModule`."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from ..nn.modules.module import Module
from ._program import ONNXProgram

__all__ = ["ExportableModule"]


class ExportableModule(Module, abc.ABC):
    """A module with examples of its arguments, and with what else `onnx.export` asks for.

    Args:
        *args: example arguments.
        **kwargs: example keyword arguments.

    Example:
        >>> issubclass(torch.onnx.ExportableModule, torch.nn.Module)
        True
    """

    @abc.abstractmethod
    def example_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        """Arguments of `forward` by position, and those by name or None."""

    def dynamic_shapes(self) -> Any:
        """Which axes of the arguments may have any size: none."""
        return None

    def input_names(self) -> Sequence[str] | None:
        """The names of the inputs; None for those of the parameters."""
        return None

    def output_names(self) -> Sequence[str] | None:
        """The names of the outputs; None for ones that are made up."""
        return None

    def to_onnx(self, **kwargs: Any) -> ONNXProgram:
        """The module as an ONNX program; further arguments are those of `onnx.export`."""
        from ._export import export

        program = export(self, **kwargs)
        assert isinstance(program, ONNXProgram)
        return program
