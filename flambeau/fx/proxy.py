"""`Proxy`: what stands for a value while a program is traced, under the names of `torch.fx.proxy`."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from .._dispatch.public.call_form import as_called, instruction_of
from .._dispatch.public.overloads import OpOverload
from .._dispatch.public.overrides import FunctionMode
from ..utils._pytree import tree_iter
from . import _operators
from . import node as _node
from . import traceback as fx_traceback
from ._target_names import own_name
from .node import Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from .graph import Graph
else:  # what annotations mean at run time, when those modules are not there yet
    Graph = Any

__all__ = [
    "Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
    "TraceError", "TracerBase", "assert_fn",
]  # fmt: skip


class TraceError(ValueError):
    """A program asked a traced value for what only a real one can say."""


class Scope:
    """The module whose `forward` is being traced."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """A context in which `scope` is another."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """What makes nodes of what a program does with proxies."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Make a node; override it to refuse or change some."""
        if kind == "call_function" and self.check_mutable_operations:
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        if fx_traceback.has_preserved_node_meta():
            fx_traceback.give_current_meta(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            stack = _user_stack()
            if stack:
                node.stack_trace = stack
        return node

    def proxy(self, node: Node) -> Proxy:
        """What stands for the value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:  # fmt: skip
        """Make a node, of arguments with proxies among them, and what stands for its value."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def _find_user_frame(self) -> FrameType | None:
        """The frame of the traced program's own code."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and ".fx." in f"{frame.f_globals.get('__name__', '')}.":
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Argument:
        """A value of the traced program as an argument of a node; override it to take further types."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(each) for each in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, OpOverload):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {each.name: self.create_arg(getattr(a, each.name)) for each in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, (*_node.base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        def refuse(node: Node) -> None:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        return key if isinstance(key, str) else map_arg(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """What a traced value is as a condition: unknown. A tracer that knows may answer."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What a traced value has in it: unknown. A tracer that knows may answer."""
        raise TraceError(
            "Proxy object cannot be iterated: how often a loop runs, or what *args and **kwargs are, would depend on "
            "a traced value. Index it with numbers instead, or mark a function around the loop with torch.fx.wrap"
        )

    def keys(self, obj: Proxy) -> Any:
        """What `**` asks a traced value for; a tracer that knows them may return an iterator."""
        return Attribute(obj, "keys")()


def _user_stack() -> str:
    """The lines of the traced program that are running, from its first `forward` on."""
    frames = list(traceback.extract_stack(sys._getframe(2)))
    first = next((number for number, frame in enumerate(frames) if frame.name == "forward"), len(frames))
    own = [frame for frame in frames[first:] if not frame.filename.startswith(_INSIDE)]
    return "".join(traceback.StackSummary.from_list(own).format()).strip()


_PACKAGE = Path(__file__).parents[1]
_INSIDE = (str(_PACKAGE / "fx"), str(_PACKAGE / "_dispatch"), "<flambeau")
"""Where files begin that are no part of the traced program."""


class GraphAppendingTracer(TracerBase):
    """Adds what is done with proxies to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: object) -> None:
    """An error if `x` is not true: an assertion in the traced program."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """Stands for a value while a program is traced: what is done with it becomes nodes of the graph.

    It cannot be looked at: a condition or a loop over it raises a `TraceError`.

    Args:
        node (Node): the node that computes the value.
        tracer (TracerBase, optional): what records; None means one for this graph.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> _ = graph.output((x + 1).node)
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
            return add
    """

    tracer: TracerBase
    _node: Node | None

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self._node = node

    @property
    def node(self) -> Node:
        """The node that computes the value."""
        assert self._node is not None
        return self._node

    @node.setter
    def node(self, node: Node) -> None:
        self._node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return Proxy(self.node, self.tracer)  # the value is one, whoever holds it

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        caller = sys._getframe(1)
        instructions, number = instruction_of(caller)
        if instructions[number].opname == "UNPACK_SEQUENCE":
            return (self[position] for position in range(instructions[number].argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_assertion(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What `**` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: tuple[type, ...], args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        args, kwargs = args or (), kwargs or {}
        tracers = {each.tracer: None for each in tree_iter((args, kwargs)) if isinstance(each, cls)}
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        call = as_called(orig_method, args, kwargs)
        if call.is_method:
            return tracer.create_proxy("call_method", own_name(orig_method), call.args, call.kwargs)
        name = tracer.graph._target_to_str(own_name(orig_method))
        return tracer.create_proxy("call_function", orig_method, call.args, call.kwargs, name=name)

    if TYPE_CHECKING:

        def __getitem__(self, key: Any) -> Any: ...


def _is_assertion(frame: FrameType) -> bool:
    """Whether the running instruction decides about an `assert`."""
    instructions, number = instruction_of(frame)
    following = [each for each in instructions[number : number + 4] if each.opname != "NOT_TAKEN"][:3]
    return any(
        each.opname == "LOAD_ASSERTION_ERROR"
        or (each.opname, each.argrepr) == ("LOAD_COMMON_CONSTANT", "AssertionError")  # from Python 3.14 on
        for each in following
    )


class SeesProxies(FunctionMode):
    """A mode in which public functions record themselves wherever a proxy is among their arguments, as a size too."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if any(isinstance(each, Proxy) for each in tree_iter((args, kwargs))):
            return Proxy.__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


class MetaProxy(Proxy):
    """Stands for a value of which an example without data is computed along the way, in `node.meta["val"]`."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: tuple[type, ...], args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        args, kwargs = args or (), kwargs or {}
        first = next((each for each in args if isinstance(each, MetaProxy)), None)
        assert first is not None, "No MetaProxy found in arguments, but one is expected."
        made = super().__torch_function__(orig_method, types, args, kwargs)
        with first.fake_mode:
            examples = [each.node.meta["val"] if isinstance(each, Proxy) else each for each in args]
            made.node.meta["val"] = orig_method(*examples, **kwargs)
        return MetaProxy(made.node, made.tracer, first.fake_mode)


class Attribute(Proxy):
    """Stands for an attribute of a value; it becomes a node only if it is not called as a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute, made when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    @node.setter
    def node(self, node: Node) -> None:
        self._node = node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter, whose shape can be asked for."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """How many dimensions the parameter has."""
        return int(self.param.ndim)

    def size(self) -> Any:
        """The parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return int(self.param.dim())

    def numel(self) -> int:
        """How many elements the parameter has."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """How many elements the parameter has."""
        return self.numel()


def _define_operator(name: str) -> None:
    target = getattr(operator, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    method.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


def _define_reflected(name: str) -> None:
    target = getattr(operator, name)

    def method(self: Proxy, rhs: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    method.__name__ = method.__qualname__ = f"__r{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


for _name in _operators.magic_methods:
    if hasattr(operator, _name):
        _define_operator(_name)
for _name in _operators.reflectable_magic_methods:
    if hasattr(operator, _name):
        _define_reflected(_name)
