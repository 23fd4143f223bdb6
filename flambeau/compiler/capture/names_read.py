"""What code reads, by the names in it: of modules, the attributes that it takes directly, as in `np.linalg.norm`.

A module has thousands of names, and most of what these lead to is nothing that a call reads. So of a module that code
finds under a name, only what it takes of it is looked at; all else where the module itself is handed on. Of code, only
the lines count that ran: a branch that was not taken reads nothing.
"""

from __future__ import annotations

import dis
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from types import CodeType

Path = tuple[str, ...]
"""Attributes, one of the other. An empty one: the thing itself is handed on, and anything may be read of it."""

Reads = dict[str, frozenset[Path]]

Lines = frozenset[int] | None
"""The lines of code that ran; None: any of them may have run."""

_SILENT = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_IMPORT = dis.opmap["IMPORT_NAME"]
_NAMING = frozenset(dis.hasname)
_VARIABLES = ("LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME")
_OWN = re.compile("(LOAD|STORE|DELETE)_FAST")
_STORES = ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE")
_GROWING = ("add", "append", "appendleft", "extend", "insert", "update")
CHANGING = (*_GROWING, "clear", "discard", "pop", "popleft", "remove", "setdefault")
"""Methods by which containers change."""


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType, lines: Lines) -> frozenset[str]:
    """Every name by which code may look something up: attributes, globals, strings for `getattr`."""
    if lines is None:
        texts = [each for each in code.co_consts if type(each) is str and each.isidentifier()]
        return frozenset((*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars, *texts))
    has_run = _runs_in(code, lines)
    found = [each for each in _instructions(code) if has_run(each)]
    named = [str(each.argval) for each in found if each.opcode in _NAMING]
    texts = [each.argval for each in found if type(each.argval) is str and each.argval.isidentifier()]
    return frozenset((*named, *texts))


@functools.lru_cache(maxsize=4096)
def global_reads(code: CodeType, lines: Lines) -> Reads:
    """What code reads of its globals, and of builtins."""
    found, has_run = _instructions(code), _runs_in(code, lines)
    return _gathered(
        [
            (str(each.argval), _path(found, place))
            for place, each in enumerate(found)
            if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and has_run(each)
        ]
    )


@functools.lru_cache(maxsize=4096)
def import_reads(code: CodeType, lines: Lines) -> tuple[tuple[str, int, bool, frozenset[Path]], ...]:
    """The modules that code imports: their names, how many packages up these begin, whether it takes names of them, as
    `from module import name` does, or has the package that they are in; and what it reads of that.
    """
    if _IMPORT not in code.co_code[::2]:
        return ()
    found, has_run = _instructions(code), _runs_in(code, lines)
    made = []
    for place, each in enumerate(found):
        if each.opcode == _IMPORT and has_run(each):
            level, names = found[place - 2].argval, found[place - 1].argval  # these lie before it
            made.append((str(each.argval), int(level), bool(names), frozenset(_taken(found, place, names))))
    return tuple(made)


@functools.lru_cache(maxsize=4096)
def names_constant(code: CodeType, position: int) -> bool:
    """Whether the name that a call of `getattr` or one like it is given, at some position of its code, stands there."""
    before = [each for each in _instructions(code) if each.offset < position and each.opname != "KW_NAMES"]
    count = next((each.arg for each in _instructions(code) if each.offset == position), None)
    if count is None:
        return False
    if count == 3 and before:  # behind the name stands a value
        last = before.pop()
        while before and last.opname in _ATTRIBUTE:
            last = before.pop()
        if not last.opname.startswith("LOAD_"):
            return False
    return bool(before) and before[-1].opname == "LOAD_CONST"


@functools.lru_cache(maxsize=4096)
def stores_in(code: CodeType) -> dict[int | None, frozenset[tuple[str, Path]]]:
    """The lines of code that set attributes, items or globals, or let a container grow: the variables that they name,
    and what they take of these. The variable of a global that is set has no name.
    """
    found = _instructions(code)
    lines = {place: line for start, end, line in code.co_lines() for place in range(start, end, 2)}
    made: dict[int | None, set[tuple[str, Path]]] = {}
    for each in found:
        if each.opname in _STORES or (each.opname in _ATTRIBUTE and each.argval in _GROWING):
            made.setdefault(lines.get(each.offset), set())
        elif each.opname == "STORE_GLOBAL":
            made.setdefault(lines.get(each.offset), set()).add(("", ()))
    for place, each in enumerate(found):
        loaded = _loaded(each)
        if loaded and (named := made.get(lines.get(each.offset))) is not None:
            named.update((name, ()) for name in loaded[:-1])
            named.add((loaded[-1], _path(found, place)))
    return {line: frozenset(named) for line, named in made.items()}


def lines_that_set(code: CodeType, lines: Lines, names: frozenset[str]) -> list[str]:
    """Where code sets attributes, items or globals of such names, or calls methods of these names, among some lines."""
    places = {place: line for start, end, line in code.co_lines() for place in range(start, end, 2)}
    found, constant = [], None
    for each in _instructions(code):
        line = places.get(each.offset)
        is_named = each.opname in (*_ATTRIBUTE, "STORE_ATTR", "STORE_GLOBAL") and each.argval in names
        is_item = each.opname in _STORES[1:] and (constant in names or names == {*CHANGING})
        if (is_named or is_item) and (lines is None or line in lines):
            found.append(f"{code.co_filename}:{line}")
        constant = each.argval if each.opname == "LOAD_CONST" and type(each.argval) is str else constant
    return found


@functools.lru_cache(maxsize=4096)
def counts(code: CodeType) -> bool:
    """Whether code has an augmented assignment to an attribute, an item or a variable that is not its own."""
    found = _instructions(code)
    for place, each in enumerate(found):
        if each.opname.startswith("INPLACE_") or (each.opname == "BINARY_OP" and each.argrepr.endswith("=")):
            following = [other.opname for other in found[place + 1 :] if other.opname.startswith("STORE_")]
            if following and not following[0].startswith("STORE_FAST"):
                return True
    return False


def _runs_in(code: CodeType, lines: Lines) -> Callable[[dis.Instruction], bool]:
    """What tells whether an instruction may have run: it is in one of the lines, or in none."""
    if lines is None:
        return lambda instruction: True
    places: set[int] = set()
    for start, end, line in code.co_lines():
        if line is None or line in lines:
            places.update(range(start, end, 2))
    return lambda instruction: instruction.offset in places


@functools.lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> list[dis.Instruction]:
    """The instructions of code: to take it apart takes longer than the call that runs it."""
    return [each for each in dis.get_instructions(code) if each.opname not in _SILENT]


def _gathered(pairs: Iterable[tuple[str, Path]]) -> Reads:
    made: dict[str, set[Path]] = {}
    for name, path in pairs:
        made.setdefault(name, set()).add(path)
    return {name: frozenset(paths) for name, paths in made.items()}


def _path(found: Sequence[dis.Instruction], place: int) -> Path:
    """The attributes that are taken, one of the other, of what the instruction at `place` loads."""
    names = []
    for each in found[place + 1 :]:
        if each.opname not in _ATTRIBUTE:
            break
        names.append(str(each.argval))
    return tuple(names)


def _loaded(instruction: dis.Instruction) -> tuple[str, ...]:
    """The variables that an instruction loads; from Python 3.13 on one may load or set two of a function's own."""
    if instruction.opname in _VARIABLES:
        return (str(instruction.argval),)
    done = _OWN.findall(instruction.opname)
    names = instruction.argval if len(done) == 2 else (instruction.argval,)
    return tuple(name for name, what in zip(names, done, strict=False) if what == "LOAD")


def _taken(found: Sequence[dis.Instruction], place: int, names: Sequence[str] | None) -> set[Path]:
    """What is read of the module that the instruction at `place` imports."""
    if names:  # from module import names
        paths: set[Path] = set()
        stores = [each for each in found[place + 1 :] if each.opname.startswith("STORE_")][: len(names)]
        for name, store in zip(names, stores, strict=False):
            paths |= {(name, *rest) for rest in _of_variable(found, store)}
        return paths if len(stores) == len(names) else {()}
    following = found[place + 1] if place + 1 < len(found) else None
    return {()} if following is None else _of_variable(found, following)


def _of_variable(found: Sequence[dis.Instruction], store: dis.Instruction) -> set[Path]:
    """What is read of a variable of a function, if one instruction alone sets it."""
    if store.opname != "STORE_FAST":
        return {()}
    uses = [
        (place, each)
        for place, each in enumerate(found)
        if each is not store and (each.argval == store.argval or _is_among(store.argval, each.argval))
    ]
    loads = [place for place, each in uses if each.opname in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")]
    named = [each for _, each in uses if not each.opname.startswith(("LOAD_CONST", *_ATTRIBUTE, "IMPORT_"))]
    return {_path(found, place) for place in loads} if len(loads) == len(named) else {()}


def _is_among(name: object, value: object) -> bool:
    return type(value) is tuple and name in value
