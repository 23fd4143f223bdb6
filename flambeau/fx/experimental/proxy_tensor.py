"""`make_fx`: the operators that a function runs, as a graph; names of `torch.fx.experimental.proxy_tensor`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from ..._core.modes import THREAD
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ..._torch._subclasses.fake_tensor import FakeTensorMode
from ...compiler.capture.operators import as_operator
from ...compiler.capture.trace import Trace
from ...compiler.program.sizes import Axes, Bounds
from ...nn.modules.module import Module
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten
from .._code_of_nests import _PyTreeCodeGen, _PyTreeInfo
from .._lowering import AxisPlace, Lowering, SizeDependent
from ..graph import Graph
from ..graph_module import GraphModule
from ._samples import Recorded, sample, shared_sizes

__all__ = ["ProxyTorchDispatchMode", "get_innermost_proxy_mode", "get_proxy_mode", "make_fx"]


class ProxyTorchDispatchMode(Trace):
    """What writes down the operators that run; those of the table are taken apart by its functions."""

    writes_operators_whole = True

    def __init__(self, decomposition_table: Mapping[Any, Callable[..., Any]] | None = None) -> None:
        super().__init__(lambda name: True)
        self.decomposition_table = decomposition_table or {}

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        if self.decomposition_table:
            func, positional, kwargs, _ = as_operator(op, args)
            decomposition = self.decomposition_table.get(func)
            if decomposition is not None:
                with self:
                    return decomposition(*positional, **kwargs)
        return super().run(op, args)

    def _remember(self, written: Any) -> None:
        if not written._kind.dataless:  # else there is nothing to put back
            super()._remember(written)


def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The recording that is going on, if one is."""
    return next(
        (each for each in reversed(THREAD.modes.interpreters) if isinstance(each, ProxyTorchDispatchMode)), None
    )


get_proxy_mode = get_innermost_proxy_mode


def make_fx(
    f: Callable[..., Any], decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False,
    record_module_stack: bool = False, _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False, proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:  # fmt: skip
    """A function of example arguments: it runs `f` on them and returns the operators that ran as a `GraphModule`.

    Derivatives that `f` computes are operators too. With `tracing_mode="fake"` or `"symbolic"` the examples are only
    looked at for shapes and dtypes. Sizes are numbers in the graph; with `"symbolic"` they are computed from the sizes
    of the inputs, where `f` runs at other sizes and does the same.

    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: x.sin().sum())(flambeau.ones(3)).code.strip())
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1);  x_1 = None
        sum_1 = torch.ops.aten.sum.default(sin);  sin = None
        return sum_1
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        if tracing_mode == "real":
            return recorded(f, args, decomposition_table)
        fakes = FakeTensorMode(allow_non_fake_inputs=True)
        given = tree_map(lambda each: fakes.from_tensor(each) if isinstance(each, Tensor) else each, args)
        axes = shared_sizes(tree_flatten(list(given))[0]) if tracing_mode == "symbolic" else {}
        while axes:
            with contextlib.suppress(SizeDependent):
                return recorded(f, given, decomposition_table, axes, within=fakes)
            axes.popitem()  # a size by which Python decides is a number in the graph
        return recorded(f, given, decomposition_table, within=fakes)

    return wrapped


def recorded(
    f: Any, args: tuple[Any, ...], table: Mapping[Any, Callable[..., Any]] | None, axes: Axes | None = None,
    bounds: Mapping[str, Bounds] | None = None, within: FakeTensorMode | None = None,
) -> GraphModule:  # fmt: skip
    """The graph of what `f` does with `args`; sizes of `axes` are computed in it, where `f` runs with other ones.

    If they have `bounds`, it is an error where `f` does not run with others within them. `f` runs `within` a mode;
    constants of the graph are made outside of it, since they have data.
    """
    leaves, structure = tree_flatten(list(args))

    def record(leaves: Sequence[Any]) -> Recorded:
        trace = ProxyTorchDispatchMode(table)
        # Other tensors over the same memory: autograd begins with them.
        own = [
            each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each for each in leaves
        ]
        numbers = [trace.number_of(each) if isinstance(each, Tensor) else None for each in own]
        try:
            with trace:
                return Recorded(trace, numbers, *tree_flatten(f(*tree_unflatten(own, structure))))
        finally:
            trace.undo()

    with nullcontext() if within is None else within:
        runs, sizes = sample(record, leaves, axes or {}, bounds)
    first, graph, root = runs[0], Graph(), Module()
    lowering = Lowering([each.trace for each in runs], sizes, graph)
    lowering.constant = functools.partial(_constant, graph, root, _members(f))
    inputs = []
    for name, number, value in zip(_names(f, args), first.numbers, leaves, strict=True):
        inputs.append(graph.placeholder(name))
        if number is not None:
            lowering.note_input(number, inputs[-1])
        else:
            inputs[-1].meta["val"] = value
    for name in sizes:
        place = min((axes or {})[name], key=lambda each: each[2:] != (1, 0))  # a plain one, if there is one
        lowering.axes[name] = AxisPlace(inputs[place.leaf], *place[1:])
    flat = lowering.returned([each.results for each in runs])
    if all(child.is_leaf() for child in structure.children()):
        graph.output(tree_unflatten(flat, first.structure))
    else:
        parameters = [name for name, _ in _parameters(f, args)]
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(parameters, structure, first.structure)))
        graph.output(flat)
    return GraphModule(root, graph, getattr(f, "__name__", type(f).__name__))


def _members(f: Any) -> dict[int, str]:
    """The names of a module's tensors, by their arrays."""
    module = f if isinstance(f, Module) else getattr(f, "__self__", None)
    if not isinstance(module, Module):
        return {}
    named = [*module.named_parameters(), *module.named_buffers()]
    return {id(tensor._array): name for name, tensor in named}


def _constant(graph: Graph, root: Module, members: dict[int, str], tensor: Tensor) -> Any:
    known = members.get(id(tensor._array))
    prefix = "_tensor_constant" if known is None else f"_param_constant_{known.replace('.', '_')}_"
    number = 0
    while hasattr(root, f"{prefix}{number}"):
        number += 1
    setattr(root, f"{prefix}{number}", tensor)
    return graph.get_attr(f"{prefix}{number}")


def _parameters(f: Any, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The arguments with the names of their parameters."""
    try:
        known = list(inspect.signature(f.forward if isinstance(f, Module) else f).parameters.values())
    except (TypeError, ValueError):
        known = []
    plain = [each.name for each in known if each.kind is not inspect.Parameter.VAR_POSITIONAL]
    return [(plain[i] if i < len(plain) else f"arg{i}", value) for i, value in enumerate(args)]


def _names(f: Any, args: tuple[Any, ...]) -> list[str]:
    """A name for each leaf of the arguments: its parameter's, and a number."""
    return [
        f"{name}_{number + 1}" for name, value in _parameters(f, args) for number in range(len(tree_flatten(value)[0]))
    ]
