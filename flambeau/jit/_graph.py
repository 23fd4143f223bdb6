"""`graph`: what a method runs, operator by operator, read from its text: a view, which changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ._language.program import Function
from ._language.types import dotted
from ._types import AnyType, BoolType, FloatType, IntType, ListType, NoneType, StringType, TensorType, Type

_BLOCKS = {ast.If: "prim::If", ast.While: "prim::Loop", ast.For: "prim::Loop", ast.With: "prim::Enter"}
_OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt",
    ast.GtE: "ge", ast.Is: "__is__", ast.IsNot: "__isnot__", ast.In: "__contains__", ast.USub: "neg",
    ast.Not: "__not__", ast.Invert: "bitwise_not", ast.BitAnd: "__and__", ast.BitOr: "__or__",
}  # fmt: skip
_OF_NUMBERS: dict[type, Type] = {bool: BoolType(), int: IntType(), float: FloatType(), str: StringType()}


class Value:
    """What a node makes, or an input of the graph."""

    def __init__(self, name: str, node: Node, type: Type, constant: Any = None) -> None:
        self._name, self._node, self._type, self._constant = name, node, type, constant

    def debugName(self) -> str:
        """The name of the value in the text of the graph."""
        return self._name

    def node(self) -> Node:
        """The node whose result this value is."""
        return self._node

    def type(self) -> Type:
        """The type of the value; that of a traced tensor knows its sizes."""
        return self._type

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor whose sizes are known."""
        return isinstance(self._type, TensorType) and self._type.sizes() is not None

    def toIValue(self) -> Any:
        """The value of a constant; None for anything else."""
        return self._constant

    def __str__(self) -> str:
        return f"{self._name} defined in ({self._node})"

    __repr__ = __str__


class Node:
    """One operator, call, constant or block."""

    def __init__(self, kind: str, inputs: Sequence[Value], line: int, scope: str = "") -> None:
        self._kind, self._inputs, self._line, self._scope = kind, list(inputs), line, scope
        self._outputs: list[Value] = []

    def kind(self) -> str:
        """The name of what runs: `aten::relu`, `prim::CallMethod`, `prim::If`."""
        return self._kind

    def inputs(self) -> Iterator[Value]:
        """The values that the node takes."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The values that the node makes."""
        return iter(self._outputs)

    def inputsSize(self) -> int:
        """How many values it is given."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """How many values it makes."""
        return len(self._outputs)

    def inputsAt(self, i: int) -> Value:
        """One of the values that it is given."""
        return self._inputs[i]

    def outputsAt(self, i: int) -> Value:
        """One of the values that it makes."""
        return self._outputs[i]

    def output(self) -> Value:
        """The value that it makes."""
        if len(self._outputs) != 1:
            raise RuntimeError(f"{self._kind} makes {len(self._outputs)} values: ask for its outputs()")
        return self._outputs[0]

    def scopeName(self) -> str:
        """The scopes in which it was recorded, with slashes between their names."""
        return self._scope

    def sourceRange(self) -> str:
        """The line of the graph's text on which the node stands."""
        return f"line {self._line}"

    def __str__(self) -> str:
        made = ", ".join([f"%{each.debugName()} : {_described(each.type())}" for each in self._outputs])
        given = ", ".join([f"%{each.debugName()}" for each in self._inputs])
        constant = self._outputs[0].toIValue() if self._kind == "prim::Constant" else None
        value = "" if constant is None else f"[value={constant!r}]"
        return f"{made} = {self._kind}{value}({given})" if made else f"{self._kind}{value}({given})"

    __repr__ = __str__


class Graph:
    """The operators of a function in the order of its text."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def nodes(self) -> Iterator[Node]:
        """What the function runs, what blocks contain included."""
        return iter(self._reader.nodes)

    def inputs(self) -> Iterator[Value]:
        """The parameters; in a trace, the tensors of the module behind them."""
        return self._reader.parameters.outputs()

    def outputs(self) -> Iterator[Value]:
        """The values that the graph returns."""
        return self._reader.results.inputs()

    def param_node(self) -> Node:
        """The node that makes the inputs."""
        return self._reader.parameters

    def return_node(self) -> Node:
        """The node that is given the outputs."""
        return self._reader.results

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind; None if there is none."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind."""
        return [each for each in self.nodes() if each.kind() == kind]

    def __str__(self) -> str:
        heads = ",\n      ".join([f"%{each.debugName()} : {_described(each.type())}" for each in self.inputs()])
        results = ", ".join([f"%{each.debugName()}" for each in self.outputs()])
        return "\n".join([f"graph({heads}):", *[f"  {each}" for each in self.nodes()], f"  return ({results})", ""])

    __repr__ = __str__


def graph_of(function: Function) -> Graph:
    """The graph of a function, read from its text."""
    reader = Reader()
    for name in function.names:
        reader.input(name, AnyType() if name == "self" else TensorType())
    reader.read(function.node.body)
    return Graph(reader)


class Reader:
    """Makes nodes of statements. Inner calls come before outer ones, as they run."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.parameters, self.results = Node("prim::Param", (), 0), Node("prim::Return", (), 0)
        self.scope = ""
        self._values: dict[str, Value] = {}
        self._count = 0

    def input(self, name: str, type: Type, text: str | None = None) -> Value:
        """Add an input of the graph; statements may know it by another text than its name."""
        made = self._values[text or name] = Value(name, self.parameters, type)
        self.parameters._outputs.append(made)
        return made

    def type_of(self, variable: str) -> Type:
        """What is known of a variable."""
        return TensorType()

    def read(self, statements: Iterable[ast.stmt]) -> None:
        """Add the nodes of some statements."""
        for statement in statements:
            self._statement(statement)

    def returns(self, tree: ast.expr) -> None:
        """Add the value of an expression to the outputs of the graph."""
        self.results._inputs.append(self.value(tree))

    def _statement(self, statement: ast.stmt) -> None:
        block = _BLOCKS.get(type(statement))
        if block is not None:
            heads = [each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.expr)]
            self._node(block, [self.value(each) for each in heads], statement, 0)
            for each in ast.iter_child_nodes(statement):
                if isinstance(each, ast.stmt):
                    self._statement(each)
        elif isinstance(statement, ast.Return):
            if statement.value is not None:
                self.returns(statement.value)
        elif isinstance(statement, ast.Assign):
            self._assign(statement.targets[0], statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement.target, statement.value)
        else:
            for each in ast.iter_child_nodes(statement):
                if isinstance(each, ast.expr):
                    self.value(each)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        made = self.value(value)
        if isinstance(target, ast.Name):
            self._values[target.id] = made
            if isinstance(made._type, TensorType) and made._type.sizes() is None:
                made._type = self.type_of(target.id)
        elif isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts):
            names = [each.id for each in target.elts if isinstance(each, ast.Name)]
            unpacked = self._node("prim::ListUnpack", [made], value, len(names))
            for name, each in zip(names, unpacked._outputs, strict=True):
                self._values[name], each._type = each, self.type_of(name)

    def value(self, tree: ast.expr) -> Value:
        """The value of an expression."""
        text = ast.unparse(tree)
        if text in self._values:
            return self._values[text]
        if isinstance(tree, ast.Constant):
            return self._constant(tree, tree.value)
        negated = tree.operand if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub) else None
        if isinstance(negated, ast.Constant) and isinstance(negated.value, (int, float)):
            return self._constant(tree, -negated.value)
        if isinstance(tree, (ast.List, ast.Tuple)):
            parts = [self.value(each) for each in tree.elts]
            kind, inner = (
                ("List", parts[0].type() if parts else IntType()) if isinstance(tree, ast.List) else ("Tuple", None)
            )
            return self._single(f"prim::{kind}Construct", parts, tree, AnyType() if inner is None else ListType(inner))
        if isinstance(tree, ast.Call):
            return self._call(tree)
        if isinstance(tree, ast.Attribute):
            return self._single("prim::GetAttr", [self.value(tree.value)], tree, TensorType())
        if isinstance(tree, ast.Subscript):
            return self._single(
                "aten::__getitem__", [self.value(tree.value), self.value(tree.slice)], tree, TensorType()
            )
        operator = getattr(tree, "op", None) or next(iter(getattr(tree, "ops", ())), None)
        parts = [self.value(each) for each in ast.iter_child_nodes(tree) if isinstance(each, ast.expr)]
        if operator is not None and parts:
            return self._single(f"aten::{_OPERATORS.get(type(operator), '__and__')}", parts, tree, AnyType())
        return self._single("prim::unchecked_cast", parts, tree, AnyType())

    def _call(self, tree: ast.Call) -> Value:
        name = dotted(tree.func) or ""
        if name == "annotate":
            return self.value(tree.args[1])
        if name == "torch.device" and isinstance(tree.args[0], ast.Constant):
            return self._constant(tree, tree.args[0].value)
        parts = [self.value(each) for each in tree.args] + [self.value(each.value) for each in tree.keywords]
        kind = _kind(tree, name)
        if kind == "prim::CallMethod" and isinstance(tree.func, ast.Attribute):
            parts.insert(0, self.value(tree.func.value))
        return self._single(kind, parts, tree, TensorType())

    def _constant(self, tree: ast.expr, value: Any) -> Value:
        kind = NoneType() if value is None else _OF_NUMBERS.get(type(value), AnyType())
        made = self._single("prim::Constant", (), tree, kind)
        made._constant = value
        return made

    def _single(self, kind: str, inputs: Sequence[Value], tree: ast.AST, type: Type) -> Value:
        made = self._node(kind, inputs, tree, 1)._outputs[0]
        made._type = type
        return made

    def _node(self, kind: str, inputs: Sequence[Value], tree: ast.AST, outputs: int) -> Node:
        made = Node(kind, inputs, getattr(tree, "lineno", 0), self.scope)
        for _ in range(outputs):
            self._count += 1
            made._outputs.append(Value(str(self._count), made, TensorType()))
        self.nodes.append(made)
        return made


def _kind(call: ast.Call, name: str) -> str:
    space, _, last = name.partition(".")
    if space == "torch":
        return f"aten::{last}"
    if space == "ops":
        return last.replace(".", "::", 1)
    if space == "__torch__":
        return "prim::CallFunction"
    return "prim::CallMethod" if isinstance(call.func, ast.Attribute) else f"prim::{name or 'CallFunction'}"


def _described(type: Type) -> str:
    """A type as graphs show it: of a tensor that was traced, its dtype and sizes."""
    sizes = type.sizes() if isinstance(type, TensorType) else None
    if not isinstance(type, TensorType) or sizes is None:
        return type.str()
    parts = [*map(str, sizes), f"strides={type.strides()}" if sizes else "", f"device={type.device()}"]
    return f"{type.scalarType()}({', '.join(filter(None, parts))})"
