"""The ways to export, beside `export` itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.text.inherited_docs import documented_like
from ..utils import _pytree
from ._trace import export
from .exported_program import ExportedProgram

__all__ = ["draft_export", "export", "export_for_training", "register_dataclass"]


def export_for_training(
    mod: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:  # fmt: skip
    """Export a module to a graph that can be trained: `export` under another name.

    Args:
        mod: the module.
        args (tuple): example arguments.
        kwargs (Mapping[str, Any], optional): example keyword arguments.
        dynamic_shapes: which sizes may differ: `Dim`s by argument and dimension.
        strict (bool): not used: there is one way to record. Default: `False`.
        preserve_module_call_signature (tuple of strs): paths of modules whose calls stay recognisable. Default: `()`.

    Returns:
        ExportedProgram: the program.

    Example:
        >>> type(torch.export.export_for_training(torch.nn.ReLU(), (torch.ones(2),))).__name__
        'ExportedProgram'
    """
    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)


@documented_like(export_for_training)
def draft_export(
    mod: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (), strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Export a module: `export`, whose errors name the module and the line.

    Args:
        prefer_deferred_runtime_asserts_over_guards (bool): not used. Default: `False`.

    Example:
        >>> type(torch.export.draft_export(torch.nn.ReLU(), (torch.ones(2),))).__name__
        'ExportedProgram'
    """
    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be arguments and results of exported programs.

    Args:
        cls (type[Any]): the dataclass.
        serialized_type_name (str, optional): its name in files; None means its full name.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Pair:
        ...     first: torch.Tensor
        ...     second: torch.Tensor
        >>> torch.export.register_dataclass(Pair)
    """
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
