"""Tracing: a program runs once with proxies in place of values, and what it does becomes a graph."""

from __future__ import annotations

import collections
import functools
import inspect
import math
import typing
import warnings
from collections.abc import Callable, Iterable
from itertools import chain
from threading import get_ident
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .._core.tensor import Tensor
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils import _pytree as pytree
from . import node as _node
from ._code_of_nests import _PyTreeCodeGen, _PyTreeInfo
from ._compatibility import compatibility  # noqa: F401  (libraries import it from here)
from ._lazy_graph_module import _make_graph_module
from ._patcher import (
    _find_proxy,
    _maybe_revert_all_patches,
    _new_patcher,
    _Patcher,
    _wrapped_fns_to_patch,
    _wrapped_methods_to_patch,
    recorded_whole,
    wrap,
)
from ._tracing_state import is_fx_symbolic_tracing, is_fx_tracing, tracing
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, SeesProxies, TracerBase

__all__ = [
    "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing",
    "symbolic_trace", "wrap",
]  # fmt: skip

_create_wrapped_func = recorded_whole
# Programs import these from here.
_ = (_find_proxy, _maybe_revert_all_patches, _wrapped_fns_to_patch, _wrapped_methods_to_patch)

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction with proxies becomes a node.

    Args:
        name (str): the name of the class.
        bases (tuple of types): its bases.
        attrs (dict): its attributes.

    Example:
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> Pair(1, 2).right
        2
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes[cls] = None
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """A place among `concrete_args` that is an input of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A place whose attributes the input's node gets.

    Args:
        ph_key (str, optional): the name of the input.

    Example:
        >>> torch.fx.PHWithMeta(ph_key="x").ph_key
        'x'
    """

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _give_attributes(place: PHBase, node: Any) -> None:
    for name, value in vars(place).items():
        if not name.startswith("__"):
            setattr(node, name, value)


def _with_parameters(fn: FunctionType, number: int) -> FunctionType:
    """`fn` as a function of so many plain parameters: what it gathers, as `*args` or `**kwargs`, it is given whole."""
    code: CodeType = fn.__code__.replace(
        co_argcount=number, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


class Tracer(TracerBase):
    """Traces modules and functions; inherit from it to say what is a leaf, or how values become arguments.

    Args:
        autowrap_modules (tuple of ModuleTypes): modules whose functions are recorded as calls.
        autowrap_functions (tuple[Callable[..., Any], ...]): functions that are recorded as calls. Default: `()`.
        param_shapes_constant (bool): whether shapes of parameters are numbers, so that conditions on them can be
            decided. Default: `False`.

    Example:
        >>> graph = torch.fx.Tracer().trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_module', 'output']
    """

    _qualname_counter: dict[str, int]

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        members = chain.from_iterable(vars(module).items() for module in autowrap_modules)
        self._autowrap_function_ids = {
            id(value) for name, value in members if not name.startswith("_") and callable(value)
        } | {id(each) for each in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self._qualname_counter = {}
        self.root: Module
        self.tensor_attrs: dict[Any, str] = {}

    # ----- values as arguments ----------------------------------------------------------------------------------

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that no attribute of the root has: the prefix and a number."""
        number = self._qualname_counter.get(prefix, 0) if hasattr(self.root, f"{prefix}0") else 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument: members of the root are read from it, other tensors become attributes of it."""
        if isinstance(a, Parameter):
            name = _name_of(a, self.root.named_parameters())
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        members: Iterable[tuple[str, Any]] = ()
        if isinstance(a, Tensor):
            members = self.root.named_buffers()
        elif isinstance(a, Module):
            members = self.root.named_modules()
        name = _name_of(a, members)
        if name is not None:
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(each) for each in a), {})
        if isinstance(a, (Tensor, pytree.TreeSpec)):
            return self._constant(a, "_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant")
        if type(a) in _proxyable_classes:
            return self._constant(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> Argument:
        name = self.tensor_attrs.get(id(value))
        if name is None:
            name = self.tensor_attrs[id(value)] = self.get_fresh_qualname(prefix)
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    def _note_tensor_attributes(self, module: Module, path: tuple[str, ...]) -> None:
        for name, value in vars(module).items():
            if isinstance(value, (Tensor, pytree.TreeSpec)):
                self.tensor_attrs[id(value)] = ".".join((*path, name))
        for name, child in module.named_children():
            self._note_tensor_attributes(child, (*path, name))

    # ----- modules ----------------------------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one node and not looked into: by default the layers of `torch.nn`."""
        package, _, rest = type(m).__module__.partition(".")
        of_ours = package in ("torch", "flambeau") and (rest.startswith(("nn", "ao.nn")))
        return of_ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of a module in the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = _name_of(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call of a module becomes: one node for a leaf, and what its `forward` does for any other."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            before = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{before}" if before else scope.module_path
            self.module_stack[key] = path, scope.module_type
            self.num_calls[path] = before + 1
            if self.is_leaf_module(m, path):
                result: Any = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            left, _ = self.module_stack.popitem(last=True)
            assert left == key, f"Unexpected key {left}, expected {key}"
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """What reading an attribute of a module gives: for parameters (and buffers, if asked for) a proxy."""
        members: Iterable[tuple[str, Any]] = ()
        if isinstance(attr_val, Parameter):
            members = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            members = self.root.named_buffers()
        name = _name_of(attr_val, members)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            options: dict[str, Any] = {}
            if self.param_shapes_constant and "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
        return parameter_proxy_cache[name]

    # ----- the program ------------------------------------------------------------------------------------------

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The inputs of the graph for a function's parameters, and a function that takes them one by one."""
        function: Any = inspect.unwrap(root_fn)
        code = function.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
        gathers = bool(code.co_flags & HAS_VARSTUFF)
        if isinstance(concrete_args, tuple) and concrete_args and gathers and total == 1:
            return root_fn, [*args, *(self._numbered_input(*each) for each in enumerate(concrete_args))]
        own = [next(names) for _ in range(len(args), total)]
        if isinstance(concrete_args, tuple):
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(own, concrete_args, strict=True))
        signature = inspect.signature(function)
        args += [self._proxy_placeholder(name, concrete_args, signature, function) for name in own]
        if code.co_kwonlyargcount > 0 or gathers:
            for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
                if code.co_flags & flag:
                    args.append(self._proxy_placeholder(stars + next(names), concrete_args, signature, function))
            assert isinstance(root_fn, FunctionType)
            root_fn = _with_parameters(root_fn, len(args))
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(list(code.co_varnames)[:total], in_spec, None))
        self.graph._codegen = codegen

        def of_leaves(*leaves: Any) -> Any:
            result, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(leaves), in_spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return result

        return of_leaves, flat

    def _numbered_input(self, number: int, place: Any) -> Proxy:
        made = self.create_proxy("placeholder", f"input_{number}", (), {})
        if isinstance(place, PHBase) and place is not PH:
            _give_attributes(place, made.node)
        return made

    def _proxy_placeholder(
        self, name: str, concrete_args: dict[str, Any] | None, sig: inspect.Signature, fn_for_analysis: Any
    ) -> Any:
        default: tuple[Any, ...] = ()
        if not name.startswith("*") and sig.parameters[name].default is not inspect.Parameter.empty:
            default = (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            annotation = _annotation(fn_for_analysis, name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)
        count = 0

        def input_or_value(value: Any) -> Any:
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    _give_attributes(value, made.node)
                return made
            self._check_input(name, made, value)
            return value

        return pytree.tree_map(input_or_value, concrete_args[name])

    def _check_input(self, name: str, made: Proxy, value: Any) -> None:
        """Let the graph check that an input still has the value that the program was traced with."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if isinstance(value, _node.base_types) and type(value) is not Tensor:
            from .._dispatch.public.checks import _assert

            _assert(made == value, message)
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (made, message), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to "
                "the user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """The graph of a module or a function; `concrete_args` are arguments that are no inputs but have a value."""
        with tracing():
            fn = self._begin(root)
            scope = fn.__globals__
            fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            with _new_patcher() as patcher, SeesProxies():
                self._patch_modules(patcher)
                patcher.patch_wrapped_functions()
                patcher.autowrap(scope, self._autowrap_function_ids)
                for module in self._autowrap_search:
                    patcher.autowrap(vars(module), self._autowrap_function_ids)
                annotation = _annotation(inspect.unwrap(fn), "return")
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=annotation)
            self.submodule_paths = None
        return self.graph

    def _begin(self, root: Any) -> Any:
        """The function to trace; notes whose members are known by name."""
        fn: Any
        if isinstance(root, Module):
            self.root = root
            fn = getattr(type(root), self.traced_func_name, None)
            assert fn is not None, f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = Module()
            fn = root
        self.graph = Graph(tracer_cls=type(self))
        code = getattr(fn, "__code__", None)
        if code is not None:
            self.graph._co_fields = {
                "co_name": code.co_name, "co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno,
            }  # fmt: skip
        self.tensor_attrs = {}
        self._note_tensor_attributes(self.root, ())
        assert isinstance(fn, FunctionType), f"Expected FunctionType, got {type(fn)}"
        return fn

    def _patch_modules(self, patcher: _Patcher) -> None:
        """Let calls of modules and reads of their attributes come here."""
        module_class: Any = Module
        ordinary_getattr, ordinary_call = module_class.__getattr__, module_class.__call__
        known: dict[str, Proxy] = {}
        tracing_thread = get_ident()

        @functools.wraps(ordinary_getattr)
        def read(mod: Module, attr: str) -> Any:
            if get_ident() != tracing_thread:
                return ordinary_getattr(mod, attr)
            return self.getattr(attr, ordinary_getattr(mod, attr), known)

        @functools.wraps(ordinary_call)
        def call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != tracing_thread:
                return ordinary_call(mod, *args, **kwargs)

            def forward(*args: Any, **kwargs: Any) -> Any:
                return ordinary_call(mod, *args, **kwargs)

            scope = getattr(getattr(mod, "forward", mod), "__globals__", {})
            patcher.autowrap(scope, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", read, deduplicate=False)
        patcher.patch_method(Module, "__call__", call, deduplicate=False)


def _annotation(function: Any, name: str) -> Any:
    """The annotation of a parameter; those of this package are text, and where they say nothing there is none."""
    found = function.__annotations__.get(name)
    if not isinstance(found, str) or (function.__module__ or "").partition(".")[0] not in ("flambeau", "torch"):
        return found
    return None if found in ("Any", "*Any") else typing.get_type_hints(function).get(name)


def _name_of(value: Any, members: Iterable[tuple[str, Any]]) -> str | None:
    return next((name for name, member in members if member is value), None)


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """A module or a function as a `GraphModule`: what it does, recorded by running it once with proxies.

    >>> traced = flambeau.fx.symbolic_trace(lambda x: flambeau.relu(x) + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add

    Args:
        root: a module or a function.
        concrete_args: values of arguments that are not to be traced.

    Returns:
        GraphModule: the module.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)
