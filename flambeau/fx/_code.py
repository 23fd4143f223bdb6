"""The Python code of a graph: one statement for each node, in PyTorch's words."""

from __future__ import annotations

import enum
import inspect
import keyword
import os
import pprint
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.device import device
from .._core.tensor import Tensor
from .._dispatch.public.overloads import OpOverload
from . import _operators
from ._namespace import CUSTOM_BUILTINS, _Namespace
from ._node_text import dtype_text, shape_text, value_of
from ._patcher import wrap
from ._target_names import is_from_torch, qualified_name, type_text

if TYPE_CHECKING:
    from .node import Node
else:  # what annotations mean at run time, when that module is not there yet
    Node = Any

TransformCodeFunc = Callable[[list[str]], list[str]]

_COLORS = {"dim": "\033[2m", "red": "\033[31m", "blue": "\033[34m", "dim_blue": "\033[2m\033[34m",
           "dim_green": "\033[2m\033[32m"}  # fmt: skip
_COUNTER = re.compile(r"# COUNTER: (\d+)")
_OLD_GENERICS = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet,  # noqa: UP006
                 tuple: typing.Tuple}  # noqa: UP006  # fmt: skip
"""Annotations in the older form are written in it."""


@dataclass
class PythonCode:
    """Code, what it needs in its global scope, and which node each of its lines is."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class Style(NamedTuple):
    """How much the code tells beside what it does."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: Sequence[str] = ()


def attribute_text(base: str, target: str) -> str:
    """`base` with the attributes that `target` names one after the other."""
    for each in target.split("."):
        plain = each.isidentifier() and not keyword.iskeyword(each)
        base = f"{base}.{each}" if plain else f'getattr({base}, "{each}")'
    return base


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node the values that nobody takes after it; `nodes` come in reverse."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in nodes:
        for node in user._input_nodes:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
    return found


class _Writer:
    """Writes the statements of one graph."""

    def __init__(self, codegen: CodeGen, root_module: str, namespace: _Namespace, style: Style) -> None:
        self.codegen, self.root_module, self.namespace, self.style = codegen, root_module, namespace, style
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self._summary: str | None = None
        for name, (_, value) in CUSTOM_BUILTINS.items():
            self.globals[namespace.create_name(name, value)] = value

    def add_global(self, hint: str, obj: Any) -> str:
        """The name by which the code reaches an object outside of the graph."""
        if is_from_torch(obj) and obj is not device:
            base, _, path = qualified_name(obj).partition(".")
            return attribute_text(base, path) if path else base
        name = self.namespace.create_name(hint, obj)
        assert self.globals.setdefault(name, obj) is obj or self.globals[name] == obj, f"{name} is two things"
        return name

    def color(self, which: str, text: str) -> str:
        return f"{_COLORS[which]}{text}\033[0m" if self.style.colored else text

    # ----- parts of statements ----------------------------------------------------------------------------------

    def type_text(self, o: Any) -> str:
        """An annotation, with what it names among the globals."""
        if o == ():
            return "()"
        text = type_text(o)
        if isinstance(o, types.UnionType) and "|" in text:
            return "|".join(self.type_text(each) for each in typing.get_args(o))
        origin = getattr(o, "__origin__", None)
        if origin is None:
            return self.add_global(text, o)
        if type(o).__module__ == "typing":
            origin = _OLD_GENERICS.get(origin, origin)
        name = self.add_global(type_text(origin), origin)
        args = typing.get_args(o)
        return f"{name}[{','.join(self.type_text(each) for each in args)}]" if args else name

    def value(self, arg: Any) -> str:
        """An argument as the code writes it."""
        if hasattr(arg, "_input_nodes"):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, OpOverload):
            return self.add_global(qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, np.dtype):  # what an op of this package keeps its statistics in
            return f"{self.add_global('numpy_dtype', np.dtype)}({arg.name!r})"
        if isinstance(arg, Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).rpartition('.')[2]})"
        if isinstance(arg, tuple):
            return f"({', '.join(self.value(each) for each in arg)}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(self.value(each) for each in arg)}]"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        return self.color("blue", repr(arg))

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.value, args), *(f"{key} = {self.value(value)}" for key, value in kwargs.items())])

    def annotation(self, node: Node) -> str:
        """The type of a node, or, in verbose code, what is known of its value."""
        plain = "" if node.type is None else f" : {self.type_text(node.type)}"
        if not self.style.verbose:
            return plain
        value = value_of(node)
        if isinstance(value, Tensor):
            stride = shape_text(value.stride()) if self.style.include_stride else ""
            place = str(value.device) if self.style.include_device else ""
            text = (
                f"{self.color('red', dtype_text(value.dtype))}{self.color('blue', shape_text(value.shape))}"
                f"{self.color('dim_blue', stride)}{self.color('dim_green', place)}"
            )
            return f': "{text}"'
        if hasattr(value, "requires_grad") and hasattr(value, "shape"):  # the properties that `ShapeProp` notes
            return f': "{dtype_text(value.dtype)}{shape_text(value.shape)}"'
        return plain

    # ----- statements -------------------------------------------------------------------------------------------

    def statement(self, node: Node) -> str:
        """What computes a node; it has no end of line yet."""
        name, target = repr(node), node.target
        if node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_text(node.type)}"
            descriptions = node.meta.get("desc") if self.style.expanded_def else None
            options = {"descs": descriptions, "repr_fn": self.value}
            return str(_called(self.codegen.generate_output, (node.args[0],), options))
        assigned = f"{name}{self.annotation(node)} = "
        if node.op == "call_method":
            method = attribute_text(self.value(node.args[0]), target)
            return f"{assigned}{method}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{assigned}{attribute_text(self.root_module, target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return f"{assigned}{attribute_text(self.root_module, target)}"
        if node.op == "call_function":
            return self.function_call(node, assigned)
        raise NotImplementedError(f"node: {node.op} {target}")

    def function_call(self, node: Node, assigned: str) -> str:
        target: Any = node.target
        if getattr(target, "__module__", "") == "_operator":
            operator = target.__name__
            if operator in _operators.magic_methods:
                return assigned + _operators.magic_methods[operator].format(*map(self.value, node.args))
            if operator in _operators.inplace_methods:
                changed = _operators.inplace_methods[operator].format(*map(self.value, node.args))
                return f"{changed};  {assigned}{self.value(node.args[0])}"
        name = self.add_global(qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{assigned}{attribute_text(self.value(node.args[0]), node.args[1])}"
        if node.meta.get("is_wrapped"):
            self.wrapped[name] = None
        return f"{assigned}{name}({self.arguments(node.args, node.kwargs)})"

    def parameter(self, node: Node) -> None:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        described = self.style.expanded_def and node.meta.get("desc") is not None
        comment = f"  # {node.meta['desc']}" if described else ""
        self.parameters.append(f"{node.target}{self.annotation(node)}{default}{comment}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def write(self, nodes: Any) -> None:
        unused_after = last_uses(reversed(nodes))
        for number, node in enumerate(nodes):
            if self.style.verbose:
                self.origin(node)
            self.body.append(f"# COUNTER: {number}\n")
            if os.environ.get("FX_GRAPH_SHOW_META", "0") == "1" and node.meta:
                self.body.append('"""\n')
                self.body += [
                    f"{key}: {pprint.pformat(str(value), compact=True)}\n" for key, value in node.meta.items()
                ]
                self.body.append('"""\n')
            if node.op == "placeholder":
                self.parameter(node)
                continue
            self.body.append(self.statement(node))
            freed = [] if node.op == "output" else [*unused_after.get(node, []), *([] if node.users else [node])]
            names = " = ".join([*map(repr, freed), "None"])
            self.body.append(f";  {self.color('dim', names)}\n" if freed else "\n")
        if not self.body:
            self.body.append("pass\n")

    def origin(self, node: Node) -> None:
        """A comment that says where in the traced program the following nodes come from."""
        if node.op in ("placeholder", "output"):
            return
        meta = node.meta
        more = [f"{key}: {meta[key]}" for key in self.style.additional_meta if key in meta]
        custom = {key: str(v)[:40] + "..." if len(str(v)) > 40 else v for key, v in meta.get("custom", {}).items()}
        text = (f"# {', '.join(more)} " if more else "") + "#" + (f" Annotation: {custom}" if custom else "")
        place = parse_stack_trace(node.stack_trace) if node.stack_trace else None
        where = "No stacktrace found for following nodes" if place is None else place.get_summary_str()
        summary = f"\n{self.color('dim', f'{text} {where}')}\n"
        if summary != self._summary:
            self._summary = summary
            self.body.append(summary)


class StackFrame(NamedTuple):
    """The innermost place of a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        """The place in one line."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def parse_stack_trace(
    stack_trace: str | None, filter_fn: Callable[[str, str, str], bool] | None = None
) -> StackFrame | None:
    """The innermost place that a stack trace, written as Python writes them, tells of."""
    lines = (stack_trace or "").strip().split("\n")
    for number in range(len(lines) - 2, -1, -1):
        match = re.match(r'File "(.+)", line (\d+), in (.+)$', lines[number].strip())
        if match:
            file, line, name = match.groups()
            frame = StackFrame(file, line, name, lines[number + 1].strip())
            if filter_fn is None or filter_fn(frame.file, frame.name, frame.code):
                return frame
    return None


def _called(method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A call with those options that the method takes: generators of one's own may take fewer."""
    taken = inspect.signature(method).parameters
    return method(*args, **{key: value for key, value in options.items() if key in taken})


class CodeGen:
    """What turns a graph into the text of a function; inherit from it to write that otherwise.

    Example:
        >>> traced = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> print(traced.graph.python_code("self").src.strip())
        def forward(self, input : torch.Tensor) -> torch.Tensor:
            input_1 = input
            relu = torch.nn.functional.relu(input_1, inplace = False);  input_1 = None
            return relu
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The line that begins the function, of its parameters."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        lines = "".join(_one_parameter(each) for each in free_vars)
        return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The statement that returns."""
        repr_fn = repr_fn or repr
        if descs is not None and isinstance(output_args, (list, tuple)):
            return f"return {_one_by_one(output_args, descs, repr_fn)}"
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the function as the graph's inputs."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The graph's output as the function's result."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names that the code needs, with what they mean."""
        return []

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: _Namespace, *, verbose: bool = False,
        include_stride: bool = False, include_device: bool = False, colored: bool = False, expanded_def: bool = False,
        record_func: bool = False, additional_meta: Sequence[str] | None = None,
    ) -> PythonCode:  # fmt: skip
        stride = include_stride or os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1"
        place = include_device or os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1"
        style = Style(verbose, stride, place, colored, expanded_def, tuple(additional_meta or ()))
        writer = _Writer(self, root_module, namespace, style)
        writer.write(nodes)
        wrap_statements = ""
        if writer.wrapped:
            name = writer.add_global("wrap", wrap)
            wrap_statements = "\n".join(f'{name}("{each}")' for each in writer.wrapped)
        body = writer.body if self._body_transformer is None else self._body_transformer(writer.body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        definition = _called(
            self.gen_fn_def, (writer.parameters, writer.return_annotation), {"expanded_def": expanded_def}
        )
        lines, numbers = _numbered("".join(body).split("\n"), definition.count("\n") + 1)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        return PythonCode(
            f"\n{wrap_statements}\n\n{definition}\n{code}", writer.globals, numbers, wrap_statements.count("\n") + 4
        )


def _numbered(body: list[str], start: int) -> tuple[list[str], dict[int, int | None]]:
    """The lines without the counters among them, and for each line, from the definition's on, the node that it is."""
    lines: list[str] = []
    numbers: dict[int, int | None] = {}
    node: int | None = None
    for line in body:
        match = _COUNTER.search(line)
        if match:
            node = int(match.group(1))
            continue
        numbers[start + len(lines)] = node
        lines.append(line)
    return lines, numbers


def _one_parameter(parameter: str) -> str:
    text, mark, comment = parameter.partition("#")
    return f"    {text.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {parameter},\n"


def _one_by_one(items: Sequence[Any], descriptions: Sequence[str], repr_fn: Callable[[Any], str]) -> str:
    opening, closing = ("(", ")") if isinstance(items, tuple) else ("[", "]")
    lines = "".join(f"    {repr_fn(each)},  # {text}\n" for each, text in zip(items, descriptions, strict=False))
    return f"{opening}\n{lines}{closing}"
