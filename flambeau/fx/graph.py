"""`Graph`: the steps of a program as a list that can be changed, under the names of `torch.fx.graph`."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ._code import CodeGen, PythonCode, StackFrame, TransformCodeFunc, attribute_text, parse_stack_trace
from ._code_of_nests import _BoxedCodeGen, _PyTreeInfo
from ._graph_checks import check, existing_reference
from ._namespace import CUSTOM_BUILTINS, _Namespace, snake_case
from ._operators import inplace_methods, magic_methods, reflectable_magic_methods
from ._target_names import own_name
from .immutable_collections import immutable_dict
from .node import Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from .graph_module import GraphModule
else:  # what annotations mean at run time, when those modules are not there yet
    GraphModule = Any

__all__ = [
    "CodeGen", "Graph", "PythonCode", "inplace_methods", "magic_methods", "reflectable_magic_methods",
]  # fmt: skip

_snake_case = snake_case
_format_target = attribute_text
_parse_stack_trace = parse_stack_trace
_ParsedStackTrace = StackFrame
_custom_builtins = CUSTOM_BUILTINS
_ = (_BoxedCodeGen, _PyTreeInfo, TransformCodeFunc)  # programs import them from here


class _InsertPoint:
    """A place in a graph where new nodes go; as a context, until it is left."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self._before, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.graph._insert = self._before


class _node_list:
    """The nodes of a graph in order. Nodes may be added and erased while one goes over them."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        assert direction in ("_next", "_prev"), f"direction must be '_next' or '_prev', got {direction}"
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _Table:
    """The nodes by what they are, for quick questions."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, Any], dict[Node, None]] = {}

    @staticmethod
    def _key(node: Node) -> tuple[str, Any]:
        return node.op, node.target if node.op == "call_function" else None

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes.get(self._key(node), ())

    def insert(self, node: Node) -> None:
        self._nodes.setdefault(self._key(node), {})[node] = None

    def remove(self, node: Node) -> None:
        del self._nodes[self._key(node)][node]

    def find(self, op: str, target: Target | None) -> list[Node]:
        if op == "call_function":
            assert target is not None, "target must not be None for call_function op"
            return list(self._nodes.get((op, target), ()))
        return [node for node in self._nodes.get((op, None), ()) if target is None or node.target == target]


class Graph:
    """The steps of a program: inputs, reads of attributes, calls, and the output.

    >>> graph = flambeau.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(flambeau.relu, (x,)))
    >>> print(flambeau.fx.GraphModule({}, graph).code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        return relu

    Args:
        owning_module (GraphModule, optional): the module that the graph belongs to.
        tracer_cls: the class of the tracer that made it.
        tracer_extras: what that class needs to be made again.
    """

    _module_class: ClassVar[Any] = ()
    """`GraphModule`, as soon as there is that class."""

    def __init__(
        self, owning_module: GraphModule | None = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._table = _Table()
        self._order_changed = False
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> GraphModule | None:
        """The module whose `forward` the graph is."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    # ----- nodes ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; `reversed` turns it."""
        return _node_list(self)

    def _number_nodes(self) -> None:
        """Number the nodes, if their order has changed since."""
        if self._order_changed:
            self._order_changed = False
            for number, node in enumerate(self.nodes):
                node._position = number

    def output_node(self) -> Node:
        """The node that returns."""
        node = next(iter(reversed(self.nodes)))
        assert node.op == "output", f"Expected output node, got op={node.op}"
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, of one target if given; in the order of the graph unless `sort` is false."""
        found = self._table.find(op, target)
        return sorted(found) if sort else found

    def create_node(
        self, op: str, target: Target, args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None, name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Make a node at the present place of insertion."""
        assert args is None or isinstance(args, tuple), f"args must be a tuple, got {type(args)}"
        assert kwargs is None or isinstance(kwargs, dict), f"kwargs must be a dict, got {type(kwargs)}"
        unique = self._graph_namespace.create_name(self._target_to_str(target) if name is None else name, None)
        node = Node(self, unique, op, target, args or (), kwargs or immutable_dict(), type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        self._graph_namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._table.insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Target) -> str:
        name = target if isinstance(target, str) else own_name(target)
        if isinstance(target, str) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty) -> Node:
        """Add an input to the graph."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the reading of an attribute of the module."""
        if self.owning_module is not None and not existing_reference(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                f"parameter, or nn.Module.register_buffer to add the buffer: {qualified_name}",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a call of a submodule."""
        if self.owning_module is not None and not _has_submodule(self.owning_module, module_name):
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                f"GraphModule.add_submodule to add the necessary submodule: {module_name}",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None, type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the return of a value."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go before `n`, by default to the beginning; as a context, only inside."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph is self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go after `n`, by default to the end; as a context, only inside."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph is self, "Node to insert after is not in graph."
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        self._table.remove(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase._args, lambda _: None), map_arg(to_erase._kwargs, lambda _: None))

    # ----- copies -----------------------------------------------------------------------------------------------

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """A copy of another graph's node; `arg_transform` says what its arguments are in this one."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Any, Any], return_output_node: bool = False) -> Any:
        """Copy all nodes of `g` to here but the output, whose value is returned; `val_map` notes what became what."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda each: val_map[each])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda each: val_map[each])
        return None

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls)
        output = copied.graph_copy(self, {}, return_output_node=True)
        copied._codegen = copy.deepcopy(self._codegen)
        if output is not None:
            value, node = output
            copied.output(value, type_expr=node.type).meta = copy.copy(node.meta)
        return copied

    # ----- code -------------------------------------------------------------------------------------------------

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the generated function as the inputs of the graph."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The output of the graph as the result of the generated function."""
        return self._codegen.process_outputs(out)

    def python_code(
        self, root_module: str, *, verbose: bool = False, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, expanded_def: bool = False, record_func: bool = False,
        additional_meta: Sequence[str] | None = None,
    ) -> PythonCode:  # fmt: skip
        """The text of the function that the graph is; the module is called `root_module` in it."""
        namespace = _Namespace()
        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = lambda each: namespace.create_name(each.name, each)
        try:
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, include_stride=include_stride,
                include_device=include_device, colored=colored, expanded_def=expanded_def, record_func=record_func,
                additional_meta=additional_meta,
            )  # fmt: skip
        finally:
            for node, repr_fn in before:
                node._repr_fn = repr_fn

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let something else write the code."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Change the lines of the code when it is written; as a context, only inside.

        `make_transformer` gets the present transformer or None, and returns the one to use.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def __str__(self) -> str:
        lines = [node.format_node([]) for node in self.nodes]
        return "\n    ".join(["graph():", *[line for line in lines if line]])

    def print_tabular(self) -> None:
        """Print the nodes as a table, by the package `tabulate`."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print(  # noqa: T201
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))  # noqa: T201

    # ----- checks and cleaning ----------------------------------------------------------------------------------

    def lint(self) -> None:
        """An error if the graph is not well formed: order, names, owners, targets."""
        check(self)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes that nobody uses and that do nothing else; whether there were some."""
        self.lint()
        is_impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not is_impure(node):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            used = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in used and isinstance(child, self._module_class):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed


def _has_submodule(module: Any, name: str) -> bool:
    try:
        return module.get_submodule(name) is not None
    except AttributeError:
        return False
