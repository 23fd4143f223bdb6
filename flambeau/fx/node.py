"""`Node`: one step of a graph, under the names of `torch.fx.node`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.device import device
from .._core.dtype import dtype
from .._core.names.same_as import same_as
from .._core.names.symbolic import SymBool, SymFloat, SymInt
from .._core.tensor import Tensor
from .._dispatch.op import OPS, Op
from .._dispatch.public.overloads import OpOverload
from .._ops.tensor.predicates import typename
from . import _node_text
from ._target_names import qualified_name, target_text, type_text
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph
    from .operator_schemas import ArgsKwargsPair
else:  # what annotations mean at run time, when those modules are not there yet
    Graph = ArgsKwargsPair = Any

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
ArgumentT = TypeVar("ArgumentT")

_legal_ops = dict.fromkeys(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])

_side_effectful_functions: set[Callable[..., Any]] = {operator.setitem}
"""Functions whose calls are kept even where their results are not used; see also `_has_effect`."""

_CHECKS = frozenset(("_assert", "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_set_grad_enabled"))
_AUTOCAST = frozenset(("_enter_autocast", "_exit_autocast"))

_get_qualified_name = qualified_name
_type_repr = type_text
_format_arg = _node_text.argument_text


def _base_types() -> tuple[type, ...]:
    from flambeau import layout, memory_format

    return (
        str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout, OpOverload, SymInt, SymBool,
        SymFloat,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "base_types":  # late, since some of them stand at the top of the package
        globals()[name] = _base_types()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as one whose call must be kept even where its result is not used.

    Args:
        fn (Callable): the function.

    Returns:
        the function.

    Example:
        >>> def note(x):
        ...     print(x)
        >>> torch.fx.has_side_effect(note) is note
        True
    """
    _side_effectful_functions.add(fn)
    return fn


def map_arg(a: ArgumentT, fn: Callable[[Node], Any]) -> ArgumentT:
    """An argument with `fn` applied to each node in it.

    Args:
        a (ArgumentT): the argument: nodes in tuples, lists, dicts and slices.
        fn (Callable): the function.

    Returns:
        the changed argument.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
        >>> torch.fx.map_arg([list(graph.nodes)[0], 2], lambda node: node.name)
        ['x', 2]
    """
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    mapped: ArgumentT = map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)
    return mapped


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """An argument with `fn` applied to all that is no tuple, list, dict or slice; those become immutable."""
    if isinstance(a, tuple):
        items = [map_aggregate(each, fn) for each in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def _has_effect(target: Any, impure_random: bool) -> bool:
    """Whether a function does more than to compute its result."""
    if target in _side_effectful_functions:
        return True
    name = getattr(target, "__name__", "")
    if isinstance(target, OpOverload):
        base = target._name
        writes = (base.endswith("_") and not base.endswith("__")) or any(op.writes for op in _ops_of(target))
        return writes or base in _CHECKS or (impure_random and any(op.draws for op in _ops_of(target)))
    module = (getattr(target, "__module__", None) or "").partition(".")[0]
    return module in ("flambeau", "torch") and (name in _CHECKS or name in _AUTOCAST)


def _ops_of(target: OpOverload) -> list[Op]:
    """The ops behind an operator; one that is none of PyTorch's has its op's own name."""
    return [OPS[target._name]] if target.namespace == "flambeau" else [form.op for form in target.forms]


class Node:
    """One step of a graph: an input, an attribute that is read, a call, or the output.

    `op` says which, `target` what is called or read, `args` and `kwargs` with what; nodes among these are the values of
    other steps. `users` are the nodes that take this one.

    Args:
        graph (Graph): the graph that it belongs to.
        name (str): its name, unique in the graph.
        op (str): what it is: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target (Target): what is called or read.
        args (tuple of Arguments): the positional arguments, with nodes for values.
        kwargs (dict[str, Argument]): the keyword arguments.
        return_type: the type of its value.

    Example:
        >>> [(node.op, node.name) for node in torch.fx.symbolic_trace(lambda x: x.relu()).graph.nodes]
        [('placeholder', 'x'), ('call_method', 'relu'), ('output', 'output')]
    """

    graph: Graph
    name: str
    op: str
    target: Any
    type: Any
    users: dict[Node, None]
    meta: dict[str, Any]
    _args: tuple[Argument, ...]
    _kwargs: dict[str, Argument]
    _input_nodes: dict[Node, None]
    _prev: Node
    _next: Node
    _position: int

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple[Argument, ...],
        kwargs: dict[str, Argument], return_type: Any = None,
    ) -> None:  # fmt: skip
        assert op in _legal_ops, f"op '{op}' is not one of {', '.join(_legal_ops)}"
        wanted = callable(target) if op == "call_function" else isinstance(target, str)
        if not wanted:
            what = "a Callable" if op == "call_function" else "a str"
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target!r} has type {typename(target)} but {what} is "
                "expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args, self._kwargs, self._input_nodes = (), immutable_dict(), {}
        self.users = {}
        self.meta = {}
        self._prev = self._next = self
        self._erased = False
        self._position = 0
        self._repr_fn: Callable[[Node], str] | None = None
        self._update_args_kwargs(args, kwargs)

    # ----- the list of steps ------------------------------------------------------------------------------------

    next: Node = same_as("_next", "The step after this one.")
    prev: Node = same_as("_prev", "The step before this one.")

    def prepend(self, x: Node) -> None:
        """Move `x`, a step of the same graph, to just before this one."""
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next = x
        x._prev, x._next = before, self
        self._prev = x
        self.graph._order_changed = True

    def append(self, x: Node) -> None:
        """Move `x`, a step of the same graph, to just after this one."""
        if self is not x:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _place(self) -> int:
        """The number of the step in its graph."""
        self.graph._number_nodes()
        return self._position

    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return self._place() > other._place()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # ----- arguments --------------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        """The arguments by position; assigning others keeps the users of all nodes right."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name; assigning others keeps the users of all nodes right."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        found: dict[Node, None] = {}

        def note(node: Node) -> Node:
            found[node] = None
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)
        self._input_nodes = found
        for node in found:
            node.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Put another argument in the place of one."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put a further argument before the one at `idx`."""
        assert 0 <= idx <= len(self.args), f"insert_args index must be between 0 and len(self.args), got {idx}"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set the argument of one name."""
        self.kwargs = {**self.kwargs, key: arg}

    def _replace_input_with(self, old_input: Node, new_input: Node) -> None:
        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take `new_input` wherever `old_input` is an argument."""
        self._tell_replaced(old_input, new_input.name)
        self._replace_input_with(old_input, new_input)

    def _tell_replaced(self, old: Node, new: str) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old, new=new, user=self)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Let every user of this node, or those that `delete_user_cb` picks, take another; the users that changed."""
        if propagate_meta:
            assert not replace_with.meta, (
                "replace_all_uses_with(propagate_meta=True): the replacement already has .meta keys"
            )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user._tell_replaced(self, replace_with.name)
            user._replace_input_with(self, replace_with)
        return changed

    def normalized_arguments(
        self, root: Any, arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:  # fmt: skip
        """The arguments as the signature of the target orders and names them, defaults filled in."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    # ----- what it does -----------------------------------------------------------------------------------------

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step must be kept even where nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return _has_effect(self.target, impure_random)
        if self.op == "call_module":
            module = self.graph.owning_module
            assert module is not None, "self.graph.owning_module not set for purity check"
            return bool(getattr(module.get_submodule(self.target), "_is_impure", False))
        return False

    @property
    def stack_trace(self) -> str | None:
        """Where in the traced program the step was made, if the tracer was asked to note it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    # ----- text -------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    _pretty_print_target = staticmethod(target_text)

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, *,
        include_tensor_metadata: bool = False,
    ) -> str | None:  # fmt: skip
        """The step in one line: `%add : [num_users=1] = call_function[target=operator.add](args = ...)`."""
        return _node_text.line(self, placeholder_names, maybe_return_typename, include_tensor_metadata)

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            name = self.graph._graph_namespace.create_name(candidate, None)
            self.name = name
            self.graph._graph_namespace._rename_object(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "name" and "name" in self.__dict__:
            for user in self.users:
                user._tell_replaced(self, value)
        if name not in ("op", "target") or name not in self.__dict__ or self not in self.graph._table:
            object.__setattr__(self, name, value)
            return
        self.graph._table.remove(self)  # which knows nodes by what they are
        object.__setattr__(self, name, value)
        self.graph._table.insert(self)
