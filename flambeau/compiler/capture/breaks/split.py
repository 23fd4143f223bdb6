"""A function in parts: statements that cannot be compiled run as Python, those between them are functions of their own.

    def step(x):                          def step(x):
        y = model(x)                          y, = part_0(x)
        losses.append(y.mean().item())        losses.append(y.mean().item())
        return y * 2                          return part_1(y)

The parts see the globals and closures of the function, get the local names that they read, and give back those that are
read after them. A statement with a body, such as a loop, is split inside. In statements that stay, what is called may
be compiled by itself.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import inspect
import linecache
import tokenize
from collections.abc import Callable, Collection, Iterable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from .names import names_in, needed_by, parameters, surely_set, surely_set_by

Definition = ast.FunctionDef | ast.Lambda
_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_THROUGH = "__through"
_NOT_IN_PARTS = (
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Delete,
    ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith,
)  # fmt: skip
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
"""Statements without a body."""
_OF_ITS_FRAME = frozenset(("super", "locals", "vars", "globals", "eval", "exec", "dir"))
"""Functions that look at the frame of their caller."""

_CHANGES = frozenset(("append", "extend", "insert", "update", "add", "pop", "remove", "clear", "setdefault", "popitem"))
"""Methods of containers that change them, where their result is not used."""


class Part:
    """A run of statements as a function."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef, cell: CellType) -> None:
        self.function, self.definition, self.cell = function, definition, cell


def definition_of(code: CodeType) -> Definition | None:
    """The source of a function, if it is at hand and is what `code` was made of."""
    if code.co_flags & _GENERATORS:
        return None
    lines = linecache.getlines(code.co_filename)
    for functions in (_in_block, _in_file):  # to parse a file of a library takes as long as some plain calls
        for node in functions(code, lines):
            first = min([node.lineno, *[each.lineno for each in getattr(node, "decorator_list", ())]])
            if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
                again = _code_of(_bare(node), code.co_freevars, code)
                if again is not None and _is_same(again, code):
                    return node
    return None


def _in_block(code: CodeType, lines: list[str]) -> list[Definition]:
    """The functions in the lines that look like those of a function."""
    first = code.co_firstlineno
    for block in (_by_margin, inspect.getblock):  # to take the lines apart into tokens takes longer than to parse them
        try:
            text = "".join(block(lines[first - 1 :]))
            tree = ast.parse(f"if True:\n{text}" if text[:1].isspace() else f"\n{text}")
        except (SyntaxError, tokenize.TokenError):
            continue
        return _functions(ast.increment_lineno(tree, first - 2))
    return []


def _by_margin(lines: list[str]) -> list[str]:
    """The lines of a definition, up to the next one that begins no further to the right than it does."""
    margin = len(lines[0]) - len(lines[0].lstrip())
    is_in_body = False
    for position, line in enumerate(lines):
        text = line.lstrip()
        if not text or text[0] in "#)]}\"'":
            continue
        if is_in_body and len(line) - len(text) <= margin:
            return lines[:position]
        is_in_body = is_in_body or len(line) - len(text) > margin
    return lines


def _in_file(code: CodeType, lines: list[str]) -> list[Definition]:
    """The functions of a file."""
    return _functions(_parsed(code.co_filename, "".join(lines)))


@functools.lru_cache(maxsize=64)
def _parsed(file: str, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _functions(tree: ast.AST) -> list[Definition]:
    return [each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.Lambda))]


@functools.lru_cache(maxsize=64)
def _imports(file: str) -> list[ast.stmt]:
    """What a file imports at its left margin."""
    lines = linecache.getlines(file)
    found: list[ast.stmt] = []
    for first, line in enumerate(lines):
        if line.startswith(("import ", "from ")) and not line.startswith("from __future__"):
            last = first
            while "(" in line and ")" not in lines[last] and last + 1 < len(lines):
                last += 1
            with contextlib.suppress(SyntaxError):
                found += ast.parse("".join(lines[first : last + 1])).body
    return found


def _bare(node: Definition) -> ast.stmt:
    """A definition without what is evaluated where it stands."""
    blank = _without_defaults(node.args)
    if isinstance(node, ast.Lambda):
        return ast.Expr(ast.copy_location(ast.Lambda(blank, node.body), node))
    return _defined(node.name, blank, node.body, node)


def _without_defaults(args: ast.arguments) -> ast.arguments:
    """Parameters whose defaults and annotations are not evaluated again."""

    def bare(each: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(each.arg), each)

    return ast.arguments(
        posonlyargs=[bare(each) for each in args.posonlyargs],
        args=[bare(each) for each in args.args],
        vararg=args.vararg and bare(args.vararg),
        kwonlyargs=[bare(each) for each in args.kwonlyargs],
        kw_defaults=[None if each is None else ast.Constant(None) for each in args.kw_defaults],
        kwarg=args.kwarg and bare(args.kwarg),
        defaults=[ast.Constant(None) for _ in args.defaults],
    )


def _defined(name: str, args: ast.arguments, body: Sequence[ast.stmt], where: ast.AST) -> ast.FunctionDef:
    made = ast.parse(f"def {name}(): pass").body[0]  # with the fields that this version of Python has
    assert isinstance(made, ast.FunctionDef)
    made.args, made.body = args, list(body)
    return ast.copy_location(made, where)


def _code_of(definition: ast.stmt, names: Iterable[str], like: CodeType) -> CodeType | None:
    """The code of a definition in which `names` are of a closure, and all else is as around `like`."""
    args = ast.arguments(
        posonlyargs=[], args=[ast.arg(each) for each in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    around = _defined("enclosing", args, [definition], definition)
    # Python compiles calls of what a module imports in another way; these statements are never run.
    module = ast.fix_missing_locations(ast.Module([around, *_imports(like.co_filename)], []))
    made = compile(module, like.co_filename, "exec", flags=like.co_flags & _FUTURE, dont_inherit=True)
    outer = next(each for each in made.co_consts if isinstance(each, CodeType))
    return next((each for each in outer.co_consts if isinstance(each, CodeType)), None)


def _is_same(one: CodeType, other: CodeType) -> bool:
    parts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(one, each) != getattr(other, each) for each in parts) or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _is_same(mine, its) if isinstance(mine, CodeType) and isinstance(its, CodeType) else _shown(mine) == _shown(its)
        for mine, its in zip(one.co_consts, other.co_consts, strict=True)
    )


def _shown(constant: Any) -> str:
    """A constant as text; Python 3.10 has the full names of inner functions among them, which say what is around."""
    return repr(constant).rpartition("<locals>.")[2]


def split(
    function: FunctionType, definition: Definition, lines: Collection[int], through: Callable[[Any], Any]
) -> tuple[FunctionType, list[Part]] | None:
    """A function in parts around what is at `lines`, or else around what changes objects; None: there are no parts."""
    code = function.__code__
    body: Sequence[ast.stmt]
    if isinstance(definition, ast.Lambda):
        body = [ast.copy_location(ast.Return(definition.body), definition.body)]
    else:
        body = definition.body
    writer = _Writer(code, lines, not lines and not any(map(_changes_objects, ast.walk(definition))))
    written = writer.block(body, parameters(definition.args), set())
    if not writer.stays or not (writer.parts or writer.calls):
        return None
    blank = _without_defaults(definition.args)
    name = "function" if isinstance(definition, ast.Lambda) else definition.name
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    parts: list[Part] = []
    for part in writer.parts:
        made = _made(part, cells, function, None)
        parts.append(Part(made, part, CellType(made)))
        cells[part.name] = parts[-1].cell
    cells[_THROUGH] = CellType(through)
    whole = _made(_defined(name, blank, written, definition), cells, function, function)
    return whole, parts


def _made(
    definition: ast.FunctionDef, cells: dict[str, CellType], like: FunctionType, of: FunctionType | None
) -> FunctionType:
    code = _code_of(definition, cells, like.__code__)
    assert code is not None
    closure = tuple([cells[each] for each in code.co_freevars])
    made = FunctionType(code, like.__globals__, definition.name, of and of.__defaults__, closure)
    made.__kwdefaults__ = of and of.__kwdefaults__
    return made


class _Writer:
    """Writes the body of a function anew."""

    def __init__(self, code: CodeType, lines: Collection[int], everywhere: bool) -> None:
        self.parts: list[ast.FunctionDef] = []
        self.stays = 0
        """How many statements stay."""
        self.calls = 0
        """How many calls in statements that stay go through the compiler."""
        self._lines = lines
        self._everywhere = everywhere
        self._locals = {*code.co_varnames, *code.co_cellvars}
        self._shared = {*code.co_cellvars}
        self._name = code.co_name.strip("<>")

    def block(self, statements: Sequence[ast.stmt], ready: set[str], later: set[str]) -> list[ast.stmt]:
        """Some statements; `ready` names have a value before them, `later` ones may be read after them."""
        found: list[ast.stmt] = []
        waiting: list[ast.stmt] = []
        ready = set(ready)

        def flush(position: int) -> None:
            if waiting:
                found.extend(self._part(waiting, ready, later | names_in(statements[position:])[0]))
                ready.update(surely_set_by(waiting))
                waiting.clear()

        for position, each in enumerate(statements):
            if not self._breaks(each) and self._fits(each):
                waiting.append(each)
                if isinstance(each, ast.Return):
                    flush(position + 1)
                continue
            flush(position)
            found.append(self._stays(each, ready, later | names_in(statements[position + 1 :])[0]))
            ready |= surely_set(each)
        flush(len(statements))
        return found

    def _breaks(self, statement: ast.stmt) -> bool:
        if self._lines:
            return any(statement.lineno <= each <= (statement.end_lineno or statement.lineno) for each in self._lines)
        return self._everywhere or any(map(_changes_objects, ast.walk(statement)))

    def _fits(self, statement: ast.stmt) -> bool:
        """Whether a statement can be in a part."""
        inside = list(ast.walk(statement))
        if isinstance(statement, ast.Return):
            inside = inside[1:]
            if statement.value is None or isinstance(statement.value, (ast.Name, ast.Constant)):
                return False
        if any(isinstance(each, _NOT_IN_PARTS) for each in inside) or _leaves_a_loop(statement):
            return False
        names = {each.id for each in inside if isinstance(each, ast.Name)}
        return names.isdisjoint(self._shared) and names.isdisjoint(_OF_ITS_FRAME)

    def _part(self, statements: list[ast.stmt], ready: set[str], later: set[str]) -> list[ast.stmt]:
        """The call of some statements as a part; or, if they cannot be one, themselves."""
        read, changed = names_in(statements)
        ends = isinstance(statements[-1], ast.Return)
        back = [] if ends else sorted(changed & later)
        missing = (needed_by(statements) & self._locals) - ready
        sure = surely_set_by(statements)
        given = sorted((read | set(back)) & self._locals & ready)
        if missing or not set(back) <= sure | ready or not any(map(_computes, statements)):
            return list(statements) if len(statements) == 1 else self._smaller(statements, ready, later)
        where = statements[0]
        args = ast.arguments(
            posonlyargs=[], args=[ast.arg(each) for each in given], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        result: list[ast.stmt] = [] if ends else [ast.Return(_tuple(back, ast.Load()))]
        name = f"{self._name}_part_{len(self.parts)}"
        self.parts.append(_defined(name, args, [*statements, *result], where))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(each, ast.Load()) for each in given], [])
        if ends:
            return [ast.copy_location(ast.Return(call), statements[-1])]
        made = ast.Assign([_tuple(back, ast.Store())], call) if back else ast.Expr(call)
        return [ast.copy_location(made, where)]

    def _smaller(self, statements: list[ast.stmt], ready: set[str], later: set[str]) -> list[ast.stmt]:
        """Some statements, each a part by itself where it can be one."""
        found: list[ast.stmt] = []
        ready = set(ready)
        for position, each in enumerate(statements):
            found += self._part([each], ready, later | names_in(statements[position + 1 :])[0])
            ready |= surely_set(each)
        return found

    def _stays(self, statement: ast.stmt, ready: set[str], later: set[str]) -> ast.stmt:
        """A statement that runs as Python; its body may have parts."""
        self.stays += 1
        if isinstance(statement, ast.If):
            return ast.copy_location(
                ast.If(
                    self._through(statement.test),
                    self.block(statement.body, ready, later),
                    self.block(statement.orelse, ready, later),
                ),
                statement,
            )
        if isinstance(statement, (ast.For, ast.While)):
            again = later | names_in([statement])[0]  # what a turn of the loop sets, the next one may read
            if isinstance(statement, ast.For):
                inside = ready | names_in([statement.target])[1]
                body, rest = self.block(statement.body, inside, again), self.block(statement.orelse, ready, later)
                loop: ast.stmt = ast.For(statement.target, self._through(statement.iter), body, rest)
            else:
                body, rest = self.block(statement.body, ready, again), self.block(statement.orelse, ready, later)
                loop = ast.While(self._through(statement.test), body, rest)
            return ast.copy_location(loop, statement)
        if isinstance(statement, ast.With):
            items = [ast.withitem(self._through(each.context_expr), each.optional_vars) for each in statement.items]
            inside = ready | surely_set(statement)
            return ast.copy_location(ast.With(items, self.block(statement.body, inside, later)), statement)
        if isinstance(statement, ast.Try):  # its handlers see what single statements have set: they stay together
            body = [self._through(each) if isinstance(each, _SIMPLE) else each for each in statement.body]
            return ast.copy_location(
                ast.Try(body, statement.handlers, statement.orelse, statement.finalbody), statement
            )
        if isinstance(statement, _SIMPLE):
            simple: ast.stmt = self._through(statement)
            return simple
        return statement

    def _through(self, node: Any) -> Any:
        """An expression or a simple statement, in which what is called goes through the compiler first."""
        caller = _Caller()
        made = caller.visit(_copied(node))
        self.calls += caller.count
        return made


class _Caller(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _OF_ITS_FRAME):
            self.count += 1
            node.func = ast.copy_location(ast.Call(ast.Name(_THROUGH, ast.Load()), [node.func], []), node.func)
        return node


def _copied(node: Any) -> Any:
    """A copy of a tree, which is cached."""
    if isinstance(node, ast.AST):
        made = type(node)(**{name: _copied(getattr(node, name)) for name in node._fields if hasattr(node, name)})
        return ast.copy_location(made, node)
    return [_copied(each) for each in node] if isinstance(node, list) else node


def _tuple(names: Sequence[str], context: Any) -> ast.Tuple:
    return ast.Tuple([ast.Name(each, context) for each in names], context)


def _computes(statement: ast.stmt) -> bool:
    """Whether there is something in a statement that may be an op."""
    return any(
        isinstance(each, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.AugAssign))
        for each in ast.walk(statement)
    )


def _changes_objects(node: ast.AST) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return isinstance(node.ctx, (ast.Store, ast.Del))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func.attr in _CHANGES
    return False


def _leaves_a_loop(statement: ast.AST) -> bool:
    """Whether a statement ends, or goes on with, a loop that it stands in."""
    if isinstance(statement, (ast.Break, ast.Continue)):
        return True
    inside = [] if isinstance(statement, (ast.For, ast.While)) else ast.iter_child_nodes(statement)
    return any(map(_leaves_a_loop, inside))
