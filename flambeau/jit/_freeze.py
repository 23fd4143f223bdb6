"""`freeze` and its kin: modules whose weights do not change any more."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator
from typing import Any

from .._core.tensor import Tensor
from ..nn.modules.module import Module
from ._graph import graph_of
from ._language.program import Program
from ._module import RecursiveScriptModule

_DECLARED = re.compile(r"^(  __(?:parameters|buffers)__ = )\[.*\]$", re.MULTILINE)


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """A copy of a module in evaluation mode, whose weights are constants: it has no parameters and no buffers.

    >>> traced = flambeau.jit.trace(flambeau.nn.Linear(2, 1).eval(), flambeau.ones(1, 2))
    >>> frozen = flambeau.jit.freeze(traced)
    >>> len(list(frozen.parameters())), bool((frozen(flambeau.ones(1, 2)) == traced(flambeau.ones(1, 2))).all())
    (0, True)

    Args:
        mod: a scripted module in evaluation mode.
        preserved_attrs (list of strs, optional): attributes and methods that stay.
        optimize_numerics (bool): not used. Default: `True`.

    Returns:
        the frozen copy.
    """
    if not isinstance(mod, Module):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace")
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    if not isinstance(mod, RecursiveScriptModule):  # what was scripted stayed Python
        return copy.deepcopy(mod).requires_grad_(False)
    program = mod._definition.program
    sources = {path: _DECLARED.sub(r"\1[]", text) for path, text in program.sources.items()}
    return _frozen(mod, Program(sources, program.constants, program.version), {})


def _frozen(module: RecursiveScriptModule, program: Program, known: dict[int, Any]) -> Any:
    made = type(module)(program.find(module._definition.name))
    for name in module._definition.annotations:
        value = getattr(module, name)
        if isinstance(value, RecursiveScriptModule):
            value = _frozen(value, program, known)
        elif isinstance(value, Tensor):
            value = known.setdefault(id(value), value.detach().clone())
        elif isinstance(value, list):
            value = [
                known.setdefault(id(each), each.detach().clone()) if isinstance(each, Tensor) else each
                for each in value
            ]
        made._set(name, value)
    return made


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Rearrange a frozen module to run faster: the interpreter runs it as it is."""


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """The module frozen, if it is not already.

    Args:
        mod: a scripted module in evaluation mode.
        other_methods (list of strs, optional): further methods to keep.

    Returns:
        the frozen module.

    Example:
        >>> torch.jit.optimize_for_inference(torch.jit.script(torch.nn.ReLU().eval()))(torch.tensor([-1.0]))
        tensor([0.])
    """
    if not isinstance(mod, Module):
        raise RuntimeError("optimize_for_inference expects a ScriptModule as input")
    return freeze(mod) if any(True for _ in mod.parameters()) else mod


def export_opnames(m: Any) -> list[str]:
    """The operators that the program of a module names, in order.

    Args:
        m: a scripted module.

    Returns:
        list of strs: their names.

    Example:
        >>> torch.jit.export_opnames(torch.jit.trace(torch.nn.ReLU(), torch.ones(2)))
        ['aten::relu']
    """
    if not isinstance(m, RecursiveScriptModule):
        raise RuntimeError("export_opnames expects a module of TorchScript: a loaded or traced one")
    definitions = {id(each._definition): each._definition for each in m.modules() if hasattr(each, "_definition")}
    functions = [function for each in definitions.values() for function in each.methods.values()]
    return sorted({node.kind() for each in functions for node in graph_of(each).nodes() if "aten::" in node.kind()})


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context in which programs are, or are not, optimised: the interpreter runs them in one way."""
    yield
