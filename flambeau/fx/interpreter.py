"""`Interpreter` and `Transformer`: a graph run node by node, under the names of `torch.fx.interpreter`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn.modules.module import Module
from . import traceback as fx_traceback
from ._code import last_uses
from ._lazy_graph_module import _make_graph_module
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .immutable_collections import immutable_list
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


def _plain(value: Any) -> Any:
    """An argument as a program would give it: a list, and not of the class that graphs have for them."""
    if isinstance(value, immutable_list):
        return [_plain(each) for each in value]
    return tuple(map(_plain, value)) if type(value) is tuple else value


class Interpreter:
    """Runs a graph node by node; override the method of a kind of node to run that otherwise.

    >>> class Doubled(flambeau.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return 2 * super().call_function(target, args, kwargs)
    >>> Doubled(flambeau.fx.symbolic_trace(lambda x: flambeau.add(x, 1))).run(3)
    tensor(8)

    Args:
        module (Module): the module.
        garbage_collect_values (bool): whether values are dropped after their last use. Default: `True`.
        graph (Graph, optional): the graph; None means that of the module.
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(reversed(self.graph.nodes))

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The result for some arguments; nodes of `initial_env` have their values already."""
        self.env = {} if initial_env is None else initial_env
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if not self.extra_traceback:
                    raise
                _explain(error, node)
                if isinstance(error, KeyError):
                    raise RuntimeError(*error.args) from error
                raise
            if self.garbage_collect_values:
                for each in self.user_to_last_uses.get(node, ()):
                    del self.env[each]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with the arguments in a list, which is emptied so that they can be freed on the way."""
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(inputs):
            which = "extra" if len(args_list) > len(inputs) else "missing"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but received "
                f"{len(args_list)} ({which} arguments)"
            )
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """The value of one node, whose arguments have theirs."""
        with fx_traceback.set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next of the call's arguments."""
        assert isinstance(target, str)
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as error:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from error

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        assert isinstance(target, str)
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        assert not isinstance(target, str)
        return target(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        assert isinstance(target, str)
        first, *rest = args
        return getattr(first, target)(*map(_plain, rest), **{name: _plain(value) for name, value in kwargs.items()})

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        assert isinstance(target, str)
        return self.fetch_attr(target)(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a path."""
        found: Any = self.module
        path = target.split(".")
        for number, name in enumerate(path):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: number + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with the values of nodes in their place."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument with the values of nodes in their place."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


def _explain(error: Exception, node: Node) -> None:
    """Add to an error which node it came from, and which line of the traced program."""
    said = f"{error.args[0]}\n\n" if error.args else ""
    text = f"{said}While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
    error.args = (text, *error.args[1:])


class _KeepingTracer(Tracer):
    """Adds to a graph and looks into no module."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph with proxies, so that another comes out; override methods to change what some nodes become.

    Args:
        module (GraphModule): the module.

    Example:
        >>> class ReluToTanh(torch.fx.Transformer):
        ...     def call_method(self, target, args, kwargs):
        ...         return super().call_method("tanh" if target == "relu" else target, args, kwargs)
        >>> ReluToTanh(torch.fx.symbolic_trace(lambda x: x.relu())).transform()(torch.tensor(0.0))
        tensor(0.)
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer: Tracer = _KeepingTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An input of the new graph."""
        return Proxy(self.new_graph.placeholder(str(target), default_value=args[0]) if args
                     else self.new_graph.placeholder(str(target)), self.tracer)  # fmt: skip

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The reading of an attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a submodule in the new graph."""
        assert isinstance(target, str)
        return self.tracer.call_module(self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            node = self.new_graph.output(map_aggregate(result, _stripped), type_expr=old.type)
            node.meta.update(old.meta)
        return _make_graph_module(self.module, self.new_graph)


def _stripped(value: Any) -> Any:
    return value.node if isinstance(value, Proxy) else value
