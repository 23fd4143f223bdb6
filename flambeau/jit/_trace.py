"""Tracing: a run of a function or module becomes a program, without Python and without its control flow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .._core.tensor import Tensor
from ..nn.modules.module import Module
from ._language.program import Program
from ._module import RecursiveScriptModule

Traced = TypeVar("Traced")
_STATE = threading.local()


def is_tracing() -> bool:
    """Whether a call is being recorded.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    return bool(getattr(_STATE, "depth", 0))


@contextmanager
def _tracing() -> Iterator[None]:
    _STATE.depth = getattr(_STATE, "depth", 0) + 1
    try:
        yield
    finally:
        _STATE.depth -= 1


@contextmanager
def set_tracing_state(state: Any) -> Iterator[None]:
    """Let `torch._C._get_tracing_state()` give this, for the hooks of what is traced."""
    before, _STATE.state = getattr(_STATE, "state", None), state
    try:
        yield
    finally:
        _STATE.state = before


def tracing_state() -> Any:
    """What hooks tell about the trace that is going on; None if there is none."""
    return getattr(_STATE, "state", None)


class TopLevelTracedModule(RecursiveScriptModule):
    """What tracing a module gives: its parameters, and the recorded run in place of its Python.

    Args:
        definition (ClassDefinition): the class of the program.

    Returns:
        what the recorded run returns for these arguments.

    Example:
        >>> type(torch.jit.trace(torch.nn.ReLU(), torch.ones(2))).__name__
        'TopLevelTracedModule'
    """

    def _get_name(self) -> str:
        return self.original_name


class ScriptFunction:
    """A function of TorchScript: what tracing a function gives."""

    def __init__(self, module: RecursiveScriptModule, name: str) -> None:
        self._traced = module
        self.__name__ = self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._traced.forward(*args, **kwargs)

    def _program(self) -> RecursiveScriptModule:
        """A module whose `forward` is the function."""
        return self._traced

    @property
    def code(self) -> str:
        """The program."""
        return self._program().code

    @property
    def graph(self) -> Any:
        """What the program runs."""
        return self._program().graph

    @property
    def inlined_graph(self) -> Any:
        """What the program runs, functions and modules inside of it written out."""
        return self._program().inlined_graph

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write an archive, as `jit.save` does."""
        self._program().save(f, **kwargs)

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction {self.name}>"


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Record what a function or module does with example inputs.

    The result is a program of PyTorch's operators: it computes the same for inputs of other sizes, as far as the
    function itself does not look at values, and can be saved for PyTorch.

    >>> double = flambeau.jit.trace(lambda x: x * 2 + 1, flambeau.ones(3))
    >>> double(flambeau.tensor([4.0]))
    tensor([9.])

    Args:
        func: a function or a module.
        example_inputs: a tensor, or a tuple of arguments.
        optimize: not used.
        check_trace (bool): whether the recorded program is run once more and compared. Default: `True`.
        check_inputs: further arguments to compare with.
        check_tolerance (float): how far results may differ. Default: `1e-05`.
        strict (bool): whether containers that change are an error. Default: `True`.
        example_kwarg_inputs: keyword arguments by name, in place of `example_inputs`.

    Returns:
        a function or module that runs the recorded program.
    """
    if isinstance(func, RecursiveScriptModule):
        return func
    inputs = () if example_inputs is None else example_inputs
    arguments = (inputs,) if isinstance(inputs, (Tensor, dict)) else tuple(inputs)
    kwargs = dict(example_kwarg_inputs or {})
    if isinstance(func, Module):
        program = _traced_module(func, {"forward": func}, {"forward": (arguments, kwargs)})
        result: Any = program
        name = "forward"
    else:
        name = getattr(func, "__name__", "function").replace("<lambda>", "_lambda")
        result = ScriptFunction(_traced_module(Module(), {"forward": func}, {"forward": (arguments, kwargs)}), name)
    if check_trace:
        from ._checking import check

        samples = [arguments, *((each,) if isinstance(each, Tensor) else tuple(each) for each in check_inputs or ())]
        for each in samples:
            check(func, result, each, kwargs, check_tolerance)
    return result


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Record several methods of a module, each with its own example inputs: `{"forward": x, "encode": (x, y)}`.

    Args:
        mod: the module.
        inputs: example arguments by the names of methods.
        optimize: not used.
        check_trace (bool): whether the recorded program is run once more and compared. Default: `True`.
        check_inputs: further arguments to compare with.
        check_tolerance (float): how far results may differ. Default: `1e-05`.
        strict (bool): whether containers that change are an error. Default: `True`.
        example_inputs_is_kwarg (bool): whether the examples are keyword arguments. Default: `False`.

    Returns:
        a module that runs the recorded programs.

    Example:
        >>> traced = torch.jit.trace_module(torch.nn.ReLU(), {"forward": torch.ones(2)})
        >>> traced(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
    for name, given in inputs.items():
        if example_inputs_is_kwarg:
            calls[name] = (), dict(given)
        else:
            calls[name] = ((given,) if isinstance(given, Tensor) else tuple(given)), {}
    methods = {name: mod if name == "forward" else getattr(mod, name) for name in calls}  # a call runs its hooks, too
    made = _traced_module(mod, methods, calls)
    if check_trace:
        from ._checking import check

        for name, (args, kwargs) in calls.items():
            check(getattr(mod, name), getattr(made, name), args, kwargs, check_tolerance)
    return made


def script_if_tracing(fn: Traced) -> Traced:
    """The function itself: it would be compiled only while a trace is recorded.

    Args:
        fn (Traced): the function.

    Returns:
        the function.

    Example:
        >>> @torch.jit.script_if_tracing
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.ones(1))
        tensor([2.])
    """
    return fn


def _traced_module(
    module: Module, methods: dict[str, Callable[..., Any]], calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]]
) -> TopLevelTracedModule:
    from ._writing import Layout, recorded

    layout = Layout(module)
    constants: list[Tensor] = []
    texts = []
    with _tracing():
        for name, function in methods.items():
            texts.append(recorded(name, function, *calls[name], layout, constants))
    program = Program({"__torch__": layout.source({"": texts})}, tuple(constants), version=10)
    return _filled(module, program, layout, "")


def _filled(module: Module, program: Program, layout: Any, path: str) -> TopLevelTracedModule:
    """The module of the program, with the parameters and buffers of the one that was traced."""
    made = TopLevelTracedModule(program.find(f"__torch__.{layout.names[path]}"))
    made.training = module.training
    for name, value in (*module._parameters.items(), *module._buffers.items()):
        made._set(name, value)
    for name, child in module._modules.items():
        if child is not None:
            made._set(name, _filled(child, program, layout, f"{path}.{name}" if path else name))
    return made
