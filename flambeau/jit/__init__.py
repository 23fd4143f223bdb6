"""TorchScript, under the names of `torch.jit`: archives are read and written, what is scripted stays Python.

Decorators give back what they decorate, so that modules written for TorchScript run. The code of archives is run by an
interpreter of its own language, which reaches nothing but tensors and plain values.
"""

from __future__ import annotations

from typing import Any

from .._core.names.absent import Table
from .._core.process.caller import warn_user
from ..backends import _fusion
from ._errors import Error, TracerWarning
from ._freeze import export_opnames, freeze, optimize_for_inference, optimized_execution
from ._loading import load
from ._module import RecursiveScriptModule, ScriptModule
from ._saving import save
from ._script import interface, isinstance, script, script_method
from ._trace import ScriptFunction, TopLevelTracedModule, is_tracing, script_if_tracing, trace, trace_module
from ._trace import script_if_tracing as _script_if_tracing
from .annotations import Attribute, Final, annotate, export, ignore, is_scripting, unused

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "export",
    "export_opnames",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
]  # fmt: skip

_table = (
    Table(__name__)
    .submodules("annotations frontend mobile _recursive _script _trace")
    .elsewhere("CompilationUnit", "jit._compilation_unit")
    .elsewhere("_get_trace_graph", "jit._trace_graph")
    .elsewhere("Future", "futures")
    .elsewhere("fork wait", "jit._async")
    .elsewhere("_overload _overload_method _IgnoreContextManager", "_jit_internal")
    .elsewhere(" ".join(_fusion.__all__), "backends._fusion")
)
__getattr__, __dir__ = _table.parts()


JITException = Error


class strict_fusion:
    """A context in which everything would have to be fused; Python runs it either way.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with torch.jit.strict_fusion():
        ...         torch.ones(1) + 1
        tensor([2.])
    """

    def __init__(self) -> None:
        warn_user("Only works in script mode: outside of compiled code nothing is fused, and nothing is refused")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


_fusion_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """How often kernels are made anew for other shapes; gives the strategy before.

    Args:
        strategy (list[tuple[str, int]]): pairs such as `("STATIC", 2)`; it is remembered and changes nothing.

    Returns:
        list[tuple[str, int]]: the strategy before.

    Example:
        >>> before = torch.jit.set_fusion_strategy([("STATIC", 2)])
        >>> torch.jit.set_fusion_strategy(before)
        [('STATIC', 2)]
    """
    global _fusion_strategy
    for kind, _ in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
    before, _fusion_strategy = _fusion_strategy, list(strategy)
    return before


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x
