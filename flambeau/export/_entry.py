"""The ways to export, beside `export` itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..utils import _pytree
from ._trace import export
from .exported_program import ExportedProgram

__all__ = ["draft_export", "export", "export_for_training", "register_dataclass"]


def export_for_training(
    mod: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:  # fmt: skip
    """The same as `export`: the graph can be trained."""
    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)


def draft_export(
    mod: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (), strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """The same as `export`, whose errors name the module and the line."""
    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be arguments and results of exported programs."""
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
