"""`GraphModule`: a module whose `forward` is the code of a graph, under the names of `torch.fx.graph_module`."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from .._core.self_type import Self
from .._core.tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._code import PythonCode
from ._code_of_nests import _BoxedCodeGen, _PyTreeCodeGen
from ._module_text import readable, write_folder
from ._source import _CodeOnlyModule, forward_of, import_block, reduce_graph_module
from .graph import Graph
from .node import Node

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_HOOK_LISTS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_KEPT_IN_COPIES = (
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", *_HOOK_LISTS,
)  # fmt: skip


def _get_attr(model: Module, attr_name: str) -> Any:
    """The attribute at a path."""
    found: Any = model
    for name in attr_name.split("."):
        found = getattr(found, name)
    return found


def _has_attr(model: Module, attr_name: str) -> bool:
    """Whether there is an attribute at a path."""
    found: Any = model
    for name in attr_name.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def _del_attr(model: Module, attr_name: str) -> None:
    """Remove the attribute at a path."""
    path, _, name = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, name)


def _owner(module: Module, path: list[str]) -> Module:
    """The submodule at a path, made of empty modules where there is none."""
    for name in path:
        inner = getattr(module, name, None)
        if inner is None:
            inner = Module()
            setattr(module, name, inner)
        module = inner
    return module


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the attribute that another has at a path."""
    *path, name = target.split(".")
    source: Any = from_module
    for each in path:
        inner = getattr(source, each)
        if inner is getattr(_owner(to_module, []), target, None):
            return
        source = inner
    value = getattr(source, name)
    owner = _owner(to_module, path)
    if owner is not source:
        _set(owner, name, value)


def _set(owner: Module, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner.register_buffer(name, value)
    else:
        setattr(owner, name, value)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Put an object at a path of a module."""
    *path, name = target.split(".")
    _set(_owner(to_module, path), name, from_obj)


class _WrappedCall:
    """Calls a module, and says of an error in its generated code which line that was."""

    def __init__(self, cls: Any, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            above: Any = super(self.cls, obj)
            return above.__call__(*args, **kwargs)
        except Exception as error:
            innermost = traceback.extract_tb(error.__traceback__)[-1]
            if "eval_with_key" not in innermost.filename:
                raise
            print(_in_generated_code(innermost), file=sys.stderr)  # noqa: T201
            raise error.with_traceback(None)  # noqa: B904


def _in_generated_code(frame: traceback.FrameSummary) -> str:
    number = frame.lineno or 0
    lines = linecache.getlines(frame.filename)
    return "\n".join([
        traceback.format_exc(),
        f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
        "".join(lines[max(number - 2, 0) : number]),
        "~" * len(frame.line or "") + "~~~ <--- HERE",
        "\n".join(lines[number : number + 2]),
    ])  # fmt: skip


class GraphModule(Module):
    """A module made of a graph: `forward` is code that is written from it.

    `root` is the module, or the dict of paths, that the members which the graph names come from. After changes of the
    graph `recompile` writes the code anew.

    Args:
        *args: the module or dict that has the attributes, the graph, and a name for the class.
        **kwargs: the same by name: `root`, `graph`, `class_name`.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> print(traced.code.strip())
        def forward(self, x):
            relu = x.relu();  x = None
            add = relu + 1;  relu = None
            return add
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Every instance has a `forward` of its own, and so a class of its own: one above the first that is not such.
        base = next(each for each in cls.__mro__ if each.__qualname__.rpartition(".")[2] != "GraphModuleImpl")
        own = type("GraphModuleImpl", (base,), {"__module__": base.__module__})
        return super().__new__(own)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                members = itertools.chain(root.named_children(), root.named_buffers(), root.named_parameters())
                targets = [*(name for name, _ in members), *targets]
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda each: each.count(".")):  # outer modules before what is in them
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer is not None and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for name in _HOOK_LISTS:
            setattr(self, name, [])
        self.shape_env: Any = None

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        """The graph; assigning another writes the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    # ----- code -------------------------------------------------------------------------------------------------

    @property
    def code(self) -> str:
        """The code of `forward`."""
        return self._code

    def recompile(self) -> PythonCode:
        """Write the code from the graph as it is now, also those of submodules that are made of graphs."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        written = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = written.src, written._lineno_map, written._prologue_start
        cls: Any = type(self)
        cls.forward = forward_of(written.src, written.globals, self._graph._co_fields, codegen._func_name)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))
            cls.__call__ = _call_wrapped
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return written

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, *, fast_sympy_print: bool = False, expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:  # fmt: skip
        """The code with what is known of the values and where they come from, submodules included."""
        text = readable(
            self, self._get_name(), GraphModule, include_stride=include_stride, include_device=include_device,
            colored=colored, expanded_def=expanded_def, additional_meta=additional_meta,
        )  # fmt: skip
        if print_output:
            print(text)  # noqa: T201
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as a Python package: its code, and its weights beside it."""
        write_folder(self, folder, module_name)

    # ----- submodules -------------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a submodule at a path; False if something on the way is no module."""
        *path, name = target.split(".")
        owner: Module = self
        for each in path:
            inner = getattr(owner, each, None)
            if inner is None:
                inner = Module()
                setattr(owner, each, inner)
            if not isinstance(inner, Module):
                return False
            owner = inner
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at a path; False if there is none."""
        *path, name = target.split(".")
        owner: Any = self
        for each in path:
            owner = getattr(owner, each, None)
            if not isinstance(owner, Module):
                return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), lambda path, name: f"{path}.{name}"))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    inner = self.get_submodule(node.target).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inner if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # ----- copies -----------------------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        state = dict(self.__dict__)
        block = import_block(self.recompile().globals)
        del state["_graph"]
        return reduce_graph_module, (state, block)

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        members = _CodeOnlyModule({key: value for key, value in self.__dict__.items() if key != "_graph"}).__dict__
        state = {key: copy.deepcopy(value, memo) for key, value in members.items() if key != "meta"}
        self._deepcopy_init()(copied, _CodeOnlyModule(state), copy.deepcopy(self._graph), type(self).__name__)
        for name in (*_KEPT_IN_COPIES, "training"):
            if name in state:
                copied.__dict__[name] = state[name]
        copied.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(copied, name, value)
        for hook in copied.__dict__["_deepcopy_hooks"]:
            hook(copied)
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = getattr(self, "meta", {})
        return copied

    # ----- hooks ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[[Node, str, Node], Any]) -> Iterator[None]:
        assert callable(f), "Replace hook must be a callable."
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[[Node, str, Node], Any]) -> None:
        self.__dict__["_replace_hooks"].append(f)

    def _unregister_replace_node_hook(self, f: Callable[[Node, str, Node], Any]) -> None:
        self.__dict__["_replace_hooks"].remove(f)

    def _register_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_create_node_hooks"].append(f)

    def _unregister_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_create_node_hooks"].remove(f)

    def _register_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_erase_node_hooks"].append(f)

    def _unregister_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_erase_node_hooks"].remove(f)

    def _register_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self.__dict__["_deepcopy_hooks"].append(f)

    def _unregister_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self.__dict__["_deepcopy_hooks"].remove(f)


def _call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._wrapped_call(self, *args, **kwargs)


Graph._module_class = GraphModule
