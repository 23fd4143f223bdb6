"""A function of Python's as a function of TorchScript's: statements and expressions, one by one.

What comes out is a syntax tree again, of the few forms that archives consist of: arithmetic and methods become calls
of operators (`torch.add`, `torch.view`), loops over modules are written out, branches that are decided before the run
are left out.
"""

from __future__ import annotations

import ast
import enum
import inspect
import math
import textwrap
import typing
from types import FunctionType
from typing import Any, Protocol

from ..._core.device import device, layout, memory_format
from ..._core.dtype import dtype
from ..._core.tensor import Tensor
from ...nn.modules.module import Module
from .._annotated import ann_to_type
from .._language.numbers_of import number_of_dtype, number_of_layout, number_of_memory_format
from .objects import Objects, classes_in
from .static import UNKNOWN, Scope

_OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__",
    ast.LShift: "__lshift__", ast.RShift: "__rshift__", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le",
    ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_ATTRIBUTES = {
    "shape": "torch.size", "ndim": "torch.dim", "T": "torch.numpy_T", "mT": "torch.mT", "H": "torch.matrix_H",
    "mH": "torch.mH", "real": "torch.real", "imag": "torch.imag",
    **{
        each: f"ops.prim.{each}"
        for each in ("dtype", "device", "layout", "data", "grad", "requires_grad", "is_cuda", "is_cpu", "is_sparse",
                     "is_quantized", "itemsize", "nbytes", "is_leaf")
    },
}  # fmt: skip
"""Attributes of tensors that are operators in archives. Others are fields of named tuples."""


class Unwritable(RuntimeError):
    """Python that TorchScript cannot express, with the line on which it stands."""


class Home(Protocol):
    """What a translation asks of the program that it is a part of."""

    def path_of(self, owner: Module | None, value: Module | Tensor) -> ast.expr | None:
        """How methods of `owner` reach a module or tensor inside of it; None if they do not."""

    def constant(self, tensor: Tensor) -> ast.expr:
        """A tensor that belongs to no module."""

    def method(self, module: Module, name: str) -> None:
        """Say that a method is called: the program must have it."""

    def attribute(self, module: Module, name: str) -> bool:
        """Say that a run reads or sets an attribute: the program must have it; whether the module does."""

    def function(self, function: FunctionType) -> str:
        """The name of a function of the program."""

    def class_named(self, cls: type) -> str:
        """The name of a class of the program."""


class Translation:
    """One function on its way."""

    def __init__(self, function: FunctionType, owner: Module | None, home: Home, cls: type | None = None) -> None:
        """`cls` is the class of the program of which the function is a method."""
        self.scope = Scope(function, owner)
        self.cls = cls
        self.objects = Objects(self.scope)
        self.function, self.owner, self.home = function, owner, home
        self.is_own = function.__module__.partition(".")[0] == __name__.partition(".")[0]
        """Whether the function is the package's: its annotations are not meant for TorchScript."""
        try:
            lines, self.first_line = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise Unwritable(
                f"the source of {function.__qualname__} is not at hand: TorchScript is written from source"
            ) from None
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        self.file = inspect.getsourcefile(function) or "?"
        if not isinstance(tree, ast.FunctionDef):
            raise Unwritable(f"{self.file}:{self.first_line}: {function.__qualname__} is not defined by def")
        self.tree = tree
        self._unrolled = 0

    def refuse(self, node: ast.AST, why: str) -> Unwritable:
        """The error for a piece of Python."""
        line = self.first_line + getattr(node, "lineno", 1) - 1
        text = ast.unparse(node).splitlines()[0][:100]
        return Unwritable(f'{self.file}:{line}: "{text}": {why}')

    # ----- the head ---------------------------------------------------------------------------------------------------

    def text(self, name: str, own_type: str | None) -> str:
        """The function under a name; `own_type` is that of `self`."""
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg:
            raise self.refuse(self.tree, "TorchScript has no functions with any number of arguments")
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters = inspect.signature(self.function).parameters
        heads: list[str] = []
        for each in given:
            if own_type is not None and not heads:
                heads.append(f"self: {own_type}")
                self.objects.note(each.arg, self.cls)
                continue
            default = parameters[each.arg].default
            head = f"{each.arg}: {self._annotation(each.arg, each)}"
            if default is not inspect.Parameter.empty:
                head += f"={ast.unparse(self.literal(default, each))}"
            heads.append(head)
        returns = "Any" if self.is_own or self.tree.returns is None else self._annotation("return", self.tree)
        result = "" if returns == "Any" else f" -> {returns}"
        body = self.block(self.tree.body)
        lines = [f"def {name}({', '.join(heads)}){result}:"]
        lines += [textwrap.indent(ast.unparse(ast.fix_missing_locations(each)), "  ") for each in body or [ast.Pass()]]
        return "\n".join(lines) + "\n"

    def _annotation(self, name: str, node: ast.AST) -> str:
        try:
            hint = typing.get_type_hints(self.function).get(name, Tensor)
        except Exception as error:
            raise self.refuse(node, f"its annotations cannot be read: {error}") from None
        if hint is Any and name != "return" and self.cls is None:  # what says nothing means a tensor
            hint = Tensor
        self.objects.note(name, hint)
        return self.type_text(hint, node)

    def type_text(self, hint: Any, node: ast.AST) -> str:
        """An annotation as the language writes it."""
        try:
            return type_text(hint, self.home)
        except Unwritable:
            raise
        except (ValueError, RuntimeError, AttributeError, TypeError):
            raise self.refuse(node, f"{hint} is no type of TorchScript") from None

    # ----- statements -------------------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements, translated; those after one that leaves the block are left out."""
        found: list[ast.stmt] = []
        for each in statements:
            found += self._statement(each)
            if found and isinstance(found[-1], (ast.Return, ast.Break, ast.Continue)):
                break
        return found

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Pass):
            return []
        if isinstance(node, ast.Return):
            return [ast.Return(None if node.value is None else self.expression(node.value))]
        if isinstance(node, ast.Expr):
            return [] if isinstance(node.value, ast.Constant) else [ast.Expr(self.expression(node.value))]
        if isinstance(node, ast.Assign):
            self.objects.note_targets(node.targets, node.value)
            first = self.target(node.targets[0])
            made: list[ast.stmt] = [ast.Assign([first], self.expression(node.value), lineno=0)]
            made += [ast.Assign([self.target(each)], _loaded(first), lineno=0) for each in node.targets[1:]]
            return made
        if isinstance(node, ast.AnnAssign):
            return self._declared(node)
        if isinstance(node, ast.AugAssign):
            changed: Any = self.target(node.target)
            return [ast.AugAssign(changed, node.op, self.expression(node.value))]
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.While):
            if node.orelse:
                raise self.refuse(node, "loops have no else")
            return [ast.While(self.expression(node.test), self._repeated(node.body), [])]
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, (ast.Break, ast.Continue)):
            if self._unrolled:
                raise self.refuse(node, "a loop over modules is written out, and cannot be left early")
            return [node]
        if isinstance(node, ast.Assert):
            return [ast.Assert(self.expression(node.test), None if node.msg is None else self.expression(node.msg))]
        if isinstance(node, ast.Raise):
            return [ast.Assert(ast.Constant(False), self._message(node))]
        if isinstance(node, ast.With):
            return [self._with(node)]
        raise self.refuse(node, f"TorchScript has no such statement ({type(node).__name__})")

    def _with(self, node: ast.With) -> ast.stmt:
        items = []
        for each in node.items:
            if self.objects.class_of(each.context_expr) is None:
                raise self.refuse(each.context_expr, "TorchScript has no such context")
            target = None if each.optional_vars is None else self.target(each.optional_vars)
            items.append(ast.withitem(self.expression(each.context_expr), target))
        return ast.With(items, self.block(node.body) or [ast.Pass()], lineno=0)

    def _message(self, node: ast.Raise) -> ast.expr:
        if isinstance(node.exc, ast.Call) and node.exc.args:
            return self.expression(node.exc.args[0])
        return ast.Constant("" if node.exc is None else ast.unparse(node.exc))

    def _declared(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            return []
        value, hint = self.expression(node.value), self.hint(node.annotation)
        if isinstance(node.target, ast.Name):
            self.objects.note(node.target.id, hint)
        if hint is not Tensor and hint is not Any:
            value = called("annotate", _parsed(self.type_text(hint, node)), value)
        return [ast.Assign([self.target(node.target)], value, lineno=0)]

    def hint(self, node: ast.expr) -> Any:
        """What an annotation inside of a function means: names, brackets and `|`."""
        names = {**vars(typing), **self.function.__globals__}
        try:
            return typing.get_type_hints(type("_", (), {"__annotations__": {"x": ast.unparse(node)}}), names)["x"]
        except Exception as error:
            raise self.refuse(node, f"this annotation cannot be read: {error}") from None

    def _if(self, node: ast.If) -> list[ast.stmt]:
        test = self.scope.value(node.test)
        if test is not UNKNOWN and not isinstance(test, Tensor):
            return self.block(node.body if test else node.orelse)
        then, otherwise = self.block(node.body), self.block(node.orelse)
        return [ast.If(self.expression(node.test), then or [ast.Pass()], otherwise)]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            raise self.refuse(node, "loops have no else")
        values = self._known_modules(node.iter)
        if values is not None:
            return self._written_out(node, values)
        iterated = self.expression(node.iter)
        return [ast.For(self.target(node.target), iterated, self._repeated(node.body), [], lineno=0)]

    def _repeated(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a loop that stays one: `break` means it."""
        outside, self._unrolled = self._unrolled, 0
        found = self.block(body)
        self._unrolled = outside
        return found or [ast.Pass()]

    def _known_modules(self, node: ast.expr) -> list[Any] | None:
        """What a loop goes through, if there are modules in it: such a loop is written out."""
        values = self.scope.value(node)
        if isinstance(values, Module) and hasattr(values, "__iter__"):
            values = [*values]
        return list(values) if isinstance(values, (list, tuple)) and _holds_module(values) else None

    def _written_out(self, node: ast.For, values: Any) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        self._unrolled += 1
        before = dict(self.scope.known)
        for each in values:
            self._know(node.target, each)
            found += self.block(node.body)
        self.scope.known = before
        self._unrolled -= 1
        return found

    def _know(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.known[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each, part in zip(target.elts, value, strict=True):
                self._know(each, part)
        else:
            raise self.refuse(target, "this cannot be the variable of a loop over modules")

    def target(self, node: ast.expr) -> ast.expr:
        """What is assigned to."""
        if isinstance(node, ast.Name):
            self.scope.known.pop(node.id, None)
            return ast.Name(node.id, ast.Store())
        if isinstance(node, (ast.Tuple, ast.List)):
            return ast.Tuple([self.target(each) for each in node.elts], ast.Store())
        if isinstance(node, ast.Attribute) and (found := self._of_module(node)) is not None:
            return ast.Attribute(found.value, node.attr, ast.Store())
        if isinstance(node, ast.Attribute) and self.objects.class_of(node.value) is not None:
            return ast.Attribute(self.expression(node.value), node.attr, ast.Store())
        if isinstance(node, ast.Subscript):
            return ast.Subscript(self.expression(node.value), self.key(node.slice), ast.Store())
        raise self.refuse(node, "TorchScript cannot assign to this")

    # ----- expressions ------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression, translated: as its value, if that is known."""
        value = self.scope.value(node)
        if value is not UNKNOWN and (found := self.known(value, node)) is not None:
            return found
        translate = getattr(self, f"_{type(node).__name__.lower()}", None)
        if translate is None:
            raise self.refuse(node, "TorchScript cannot express this")
        translated: ast.expr = translate(node)
        return translated

    def several(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """Expressions, translated; `*known` is written out."""
        found = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                values = self.scope.value(each.value)
                if values is UNKNOWN:
                    raise self.refuse(each, "how many values these are must be known before the run")
                found += [self.literal(value, each) for value in values]
            else:
                found.append(self.expression(each))
        return found

    def known(self, value: Any, node: ast.AST) -> ast.expr | None:
        """A value that is known; None for what only calls make sense of."""
        if isinstance(value, (Module, Tensor)):
            path = self.home.path_of(self.owner, value)
            if path is None and isinstance(value, Tensor):
                if value.requires_grad:
                    raise self.refuse(node, "a tensor that requires grad must be a parameter of the module")
                return self.home.constant(value)
            return path
        plain = (bool, int, float, str, complex, type(None), dtype, layout, memory_format, device, enum.Enum)
        if isinstance(value, plain):
            return self.literal(value, node)
        if isinstance(value, (list, tuple)) and all(self._is_plain(each) for each in value):
            return self.literal(value, node)
        return None

    def _is_plain(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(map(self._is_plain, value))
        return isinstance(value, (bool, int, float, str, type(None), dtype, Tensor))

    def literal(self, value: Any, node: ast.AST) -> ast.expr:
        """A value of Python's as the language writes it."""
        if isinstance(value, (Tensor, Module)):
            found = self.known(value, node)
            if found is not None:
                return found
        if isinstance(value, enum.Enum):
            return _parsed(f"{self.home.class_named(type(value))}.{value.name}")
        if isinstance(value, (bool, type(None), str)):
            return ast.Constant(value)
        if isinstance(value, (float, complex)) and not isinstance(value, complex):
            if math.isfinite(value):
                return ast.Constant(float(value))
            text = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
            return called("float", ast.Constant(text))
        if isinstance(value, int):
            return ast.Constant(int(value))
        if isinstance(value, dtype):
            return ast.Constant(number_of_dtype(value))
        if isinstance(value, layout):
            return ast.Constant(number_of_layout(value))
        if isinstance(value, memory_format):
            return ast.Constant(number_of_memory_format(value))
        if isinstance(value, device):
            return called("torch.device", ast.Constant(str(value)))
        if isinstance(value, list):
            return ast.List([self.literal(each, node) for each in value], ast.Load())
        if isinstance(value, tuple):
            return ast.Tuple([self.literal(each, node) for each in value], ast.Load())
        raise self.refuse(node, f"TorchScript has no values of type {type(value).__name__}")

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.scope.variables:
            raise self.refuse(node, f"{node.id} is nothing that TorchScript knows")
        return ast.Name(node.id, ast.Load())

    def _of_module(self, node: ast.Attribute) -> ast.Attribute | None:
        """An attribute of a module that a run may change; None if the value is no module."""
        module = self.scope.value(node.value)
        if not isinstance(module, Module):
            return None
        if not self.home.attribute(module, node.attr):
            raise self.refuse(node, f"{type(module).__name__} holds no {node.attr}: properties are not written")
        return ast.Attribute(self.expression(node.value), node.attr, ast.Load())

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        found = self._of_module(node)
        if found is not None:
            return found
        inner = self.expression(node.value)
        operator = None if self.objects.class_of(node.value) is not None else _ATTRIBUTES.get(node.attr)
        return ast.Attribute(inner, node.attr, ast.Load()) if operator is None else called(operator, inner)

    def _binop(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return called("torch.percentFormat", *self.several([node.left, node.right]))
        return called(f"torch.{_OPERATORS[type(node.op)]}", self.expression(node.left), self.expression(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> ast.expr:
        inner = self.expression(node.operand)
        if isinstance(node.op, ast.Invert):
            return called("torch.bitwise_not", inner)
        return called("torch.neg", inner) if isinstance(node.op, ast.USub) else ast.UnaryOp(node.op, inner)

    def _boolop(self, node: ast.BoolOp) -> ast.expr:
        decides = isinstance(node.op, ast.Or)
        left: list[ast.expr] = []
        for each in node.values:
            value = self.scope.value(each)
            if value is UNKNOWN or isinstance(value, Tensor):
                left.append(self.expression(each))
            elif bool(value) is decides:
                left.append(ast.Constant(decides))
                break
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def _compare(self, node: ast.Compare) -> ast.expr:
        parts = [node.left, *node.comparators]
        if len(parts) > 2 and not all(isinstance(each, (ast.Name, ast.Constant)) for each in parts[1:-1]):
            raise self.refuse(node, "what stands in the middle of a comparison must be a variable")
        pairs = zip(node.ops, parts, parts[1:], strict=False)
        found = [self._compared(op, self.expression(left), self.expression(right)) for op, left, right in pairs]
        return found[0] if len(found) == 1 else ast.BoolOp(ast.And(), found)

    def _compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.expr:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return ast.Compare(left, [op], [right])
        if isinstance(op, (ast.In, ast.NotIn)):
            found = called("torch.__contains__", right, left)
            return found if isinstance(op, ast.In) else ast.UnaryOp(ast.Not(), found)
        return called(f"torch.{_OPERATORS[type(op)]}", left, right)

    def _call(self, node: ast.Call) -> ast.expr:
        from .calls import call

        return call(self, node)

    def _subscript(self, node: ast.Subscript) -> ast.expr:
        return ast.Subscript(self.expression(node.value), self.key(node.slice), ast.Load())

    def key(self, node: ast.expr) -> ast.expr:
        """What stands in brackets."""
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return ast.Slice(*[None if each is None else self.expression(each) for each in parts])
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self.key(each) for each in node.elts], ast.Load())
        return node if isinstance(node, ast.Constant) else self.expression(node)

    def _ifexp(self, node: ast.IfExp) -> ast.expr:
        test = self.scope.value(node.test)
        if test is not UNKNOWN and not isinstance(test, Tensor):
            return self.expression(node.body if test else node.orelse)
        return ast.IfExp(*[self.expression(each) for each in (node.test, node.body, node.orelse)])

    def _tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple(self.several(node.elts), ast.Load())

    def _list(self, node: ast.List) -> ast.expr:
        return ast.List(self.several(node.elts), ast.Load())

    def _dict(self, node: ast.Dict) -> ast.expr:
        keys = [each for each in node.keys if each is not None]
        if len(keys) != len(node.keys):
            raise self.refuse(node, "TorchScript does not join dicts by **")
        return ast.Dict([*self.several(keys)], self.several(node.values))

    def _listcomp(self, node: ast.ListComp) -> ast.expr:
        (first, *others) = node.generators
        if others or first.ifs:
            raise self.refuse(node, "a list is made from one loop, without conditions")
        values = self._known_modules(first.iter)
        if values is not None:
            before, made = dict(self.scope.known), []
            for each in values:
                self._know(first.target, each)
                made.append(self.expression(node.elt))
            self.scope.known = before
            return ast.List(made, ast.Load())
        if not isinstance(first.target, ast.Name):
            raise self.refuse(node, "a list is made from a loop over one variable")
        iterated, added = self.expression(first.iter), {first.target.id} - self.scope.variables
        self.scope.variables |= added
        loop = ast.comprehension(self.target(first.target), iterated, [], 0)
        found = ast.ListComp(self.expression(node.elt), [loop])
        self.scope.variables -= added
        return found

    def _joinedstr(self, node: ast.JoinedStr) -> ast.expr:
        template, values = "", []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                if each.format_spec is not None or each.conversion != -1:
                    raise self.refuse(node, "TorchScript's strings have no formats")
                template += "{}"
                values.append(self.expression(each.value))
            elif isinstance(each, ast.Constant):
                template += str(each.value)
        return called("torch.format", ast.Constant(template), *values)


def type_text(hint: Any, home: Home) -> str:
    """An annotation as the language writes it: the classes in it are the program's."""
    text = ann_to_type(hint, None).annotation_str
    for cls in classes_in(hint):
        text = text.replace(ann_to_type(cls, None).annotation_str, home.class_named(cls))
    return text


def _holds_module(values: Any) -> bool:
    """Whether a known sequence has modules in it: loops over others remain loops."""
    return isinstance(values, (list, tuple)) and any(isinstance(each, Module) or _holds_module(each) for each in values)


def called(name: str, *args: ast.expr) -> ast.Call:
    """A call of something that has a name in the language."""
    return ast.Call(_parsed(name), list(args), [])


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _loaded(target: ast.expr) -> ast.expr:
    """An expression for what was assigned to."""
    return _parsed(ast.unparse(target))
