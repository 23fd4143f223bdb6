"""`torch.jit._get_trace_graph`: the operators that a run calls, with the sizes of all tensors, for tools that count."""

from __future__ import annotations

import ast
from typing import Any

from .._core.tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.modules.module import Module
from ._graph import Graph, Reader
from ._recording import Recording, plain_of
from ._trace import _tracing, set_tracing_state
from ._types import TensorType, Type
from ._writing import Layout, parameter_names, received, recurrent_layers, returned

_CONVOLUTIONS = {f"conv{n}d": False for n in (1, 2, 3)} | {f"conv_transpose{n}d": True for n in (1, 2, 3)}


class TracingState:
    """What `torch._C._get_tracing_state()` gives while a run is recorded: hooks tell it which scope they are in."""

    def __init__(self, recording: _Sized) -> None:
        self._recording = recording
        self._scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Enter a scope: a module that is called, by its name."""
        self._scopes.append(name)
        self._recording.enter(self.current_scope())

    def pop_scope(self) -> None:
        """Leave the scope that was entered last."""
        self._scopes.pop()
        self._recording.enter(self.current_scope())

    def current_scope(self) -> str:
        """The scopes that were entered, with slashes between their names."""
        return "/".join(self._scopes)


class _Sized(Recording):
    """A recording that keeps the types of all tensors, and the scope of each line."""

    def __init__(self, attributes: dict[int, str]) -> None:
        super().__init__(attributes)
        self.types: dict[str, Type] = {}
        self.scopes: list[tuple[int, str]] = [(0, "")]

    def bind(self, tensor: Tensor, variable: str) -> None:
        super().bind(tensor, variable)
        self.types.setdefault(variable, TensorType.create_from_tensor(plain_of(tensor)))

    def enter(self, scope: str) -> None:
        """Lines from here on stand in a scope."""
        self.scopes.append((len(self.lines), scope))

    def emit(self, name: str, args: Any, kwargs: dict[str, Any], results: Any) -> None:
        if name in _CONVOLUTIONS and not any(isinstance(each, str) for each in args):
            name, args = "_convolution", _as_convolution(_CONVOLUTIONS[name], args)
        super().emit(name, args, kwargs, results)


def _as_convolution(transposed: bool, args: Any) -> list[Any]:
    """The arguments of any convolution as the operator takes them that is behind all of them."""
    if transposed:
        inputs, weight, bias, stride, padding, output_padding, groups, dilation = args
    else:
        inputs, weight, bias, stride, padding, dilation, groups = args
        output_padding = [0] * len(stride)
    known = [inputs, weight, bias, stride, padding, dilation, transposed, output_padding, groups]
    return [*known, False, False, True, True]


class _Typed(Reader):
    """A reader that knows the types of variables."""

    def __init__(self, types: dict[str, Type]) -> None:
        super().__init__()
        self._types = types

    def type_of(self, variable: str) -> Type:
        return self._types.get(variable, TensorType())


def _get_trace_graph(
    f: Any, args: Any = (), kwargs: dict[str, Any] | None = None, strict: bool = True,
    _force_outplace: bool = False, return_inputs: bool = False, _return_inputs_states: bool = False,
) -> Any:  # fmt: skip
    """Run a function or module on example inputs; the graph of what ran, and the results.

    Args:
        f: a function or a module; hooks of modules run.
        args: a tensor, or a tuple of arguments.
        kwargs (dict, optional): keyword arguments.
        strict (bool): not used.
        return_inputs (bool): whether the inputs are a third result. Default: `False`.

    Returns:
        tuple: the graph, whose values know the sizes of the tensors that they were; and what the run returned.
    """
    arguments = (args,) if isinstance(args, Tensor) else tuple(args)
    module = f if isinstance(f, Module) else Module()
    layout = Layout(module)
    recording = _Sized(layout.places)
    named = dict(kwargs or {})
    titles = parameter_names(f.forward if isinstance(f, Module) else f, arguments, named)
    examples = [*arguments, *named.values()]
    given = [received(recording, title, each) for title, each in zip(titles, examples, strict=True)]
    count = len(arguments)
    with (
        _tracing(),
        set_tracing_state(TracingState(recording)),
        no_grad(),
        recurrent_layers(layout, recording),
        recording,
    ):
        result = f(*given[:count], **dict(zip(named, given[count:], strict=True)))
    text = returned(recording, result)
    graph = _graph(recording, titles, layout, text, module)
    results = plain_of(result)
    return (graph, results, (*arguments, *named.values())) if return_inputs else (graph, results)


def _graph(recording: _Sized, titles: list[str], layout: Layout, returns: str, module: Module) -> Graph:
    reader = _Typed(recording.types)
    for title in titles:
        reader.input(title, TensorType())
    for path, tensor in module.state_dict(keep_vars=True).items():
        place = ast.unparse(ast.parse(layout.places[id(tensor)], mode="eval"))
        reader.input(path, TensorType.create_from_tensor(tensor), place)
    for number, tensor in enumerate(recording.constants):
        reader.input(f"constant_{number}", TensorType.create_from_tensor(tensor), f"CONSTANTS.c{number}")
    for number, line in enumerate(recording.lines):
        reader.scope = next(scope for start, scope in reversed(recording.scopes) if start <= number)
        reader.read(ast.parse(line).body)
    reader.scope = ""
    reader.returns(ast.parse(returns, mode="eval").body)
    return Graph(reader)
