"""What a call depends on besides its ops: the Python state that the code which ran can reach, as checks to be repeated.

The walk starts at the function and its arguments, and follows only the names that occur in the code that ran
(`watch.py`): globals, closures, attributes of objects and of their classes, items of containers. For everything that
it meets it writes a line of Python that leaves with `MISS` if what is there now is not what was there then. Values that
can be anything (numbers, texts) are compared by value, objects by identity, tensors by what ops look at. What the walk
does not understand makes the call uncompilable: nothing is assumed.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

from ..._core.process.caller import PACKAGE
from ..._core.storage import offset_of
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.interpreter import RUN_OUTSIDE
from ..._dispatch.public.namespaces import is_unbound
from ..program.items import is_usable
from .breaks.harmless import is_harmless
from .containers import Containers
from .gradients import Gradients
from .identity_guards import Facts
from .layout import Layout, has_hooks, mark
from .mutations import Contents
from .names_read import Path, global_reads
from .new_objects import attributes_of, base_of, is_known_by_parts, items_of, slots_of
from .order import arguments_first
from .value_kinds import CONTAINERS, OPAQUE, SINGLETONS, VALUES, is_named_tuple
from .watch import Uncompilable, Watch, reads_all_modules

_WITH_ITEMS = (list, tuple, dict, set, frozenset, OrderedDict, deque)
"""Built-in classes whose subclasses have items beside attributes."""

_UNSTEADY_MODULES = frozenset(("numpy.random", "random", "secrets", "time", "uuid"))
_MODULE_STATE = (
    "training", "forward", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
    "_parameters", "_buffers", "_modules",
)  # fmt: skip
"""What calling a module looks at, whatever names its code has."""

_MISSING = object()
_MOST_IN_PYTHON = 40_000
"""Checks for which no fact stands: Python makes each of them in some 0.2 microseconds, at every call."""
_MOST = 100_000
"""Checks in all: facts stand for one in some 20 nanoseconds, but all are written, and run where one does not hold."""


class State:
    """The checks of a call, and the tensors that it can reach."""

    def __init__(self, watch: Watch, with_gradients: bool) -> None:
        self.lines: list[str] = []
        """Statements; a check that fails returns MISS."""
        self.constants: dict[str, Any] = {"MISS": MISS, "MISSING": _MISSING}
        self.tensors: dict[int, tuple[Tensor, str]] = {}
        """Every tensor that was found, by the identity of its array, and the expression that finds it again."""
        self.sizes: list[tuple[int, str, str, tuple[Any, ...]]] = []
        """Which lines check sizes; the line that checks all but these; where the sizes are; what they are."""
        self.of_sizes: set[str] = set()
        """The constants that these are compared with."""
        self.of_gradients: dict[int, list[str]] = {}
        """The checks of what gradient a tensor has, by the identity of the tensor."""
        self.facts = Facts()
        """What is enough for most of the checks."""
        self._watch = watch
        self._names = watch.names() | frozenset(_MODULE_STATE)
        self._with_gradients = with_gradients
        self._marks: list[tuple[Tensor, Any]] = []
        """The tensors that were found, and what tells whether somebody has given one other elements or a history."""
        self._seen: dict[int, str] = {}
        self._classes: set[int] = set()
        self._accounted: set[CodeType] = set()
        self.kept: list[Any] = []
        """Objects that are known by their addresses, which no others may get while the checks are in use."""
        self._containers = Containers()
        """Lists, dictionaries and sets."""
        self._keys: dict[int, Any] = {}
        """Objects that are keys of dictionaries, which are known by their identities."""
        self._modules: dict[int, str] = {}
        """Modules of which no more is read than some of their attributes."""
        self._names_of_sys: set[str] = set()
        """The names under which modules have `sys`."""
        self.checks_offsets = False
        """Whether the call has asked where an array begins in its storage."""
        self._variables = 0
        self._at_gradients = False
        self.gradients = Gradients()

    def of_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> State:
        """Write down what a call depends on."""
        self._visit(function, self._constant(function), True)
        self._globals()
        self._imports()
        self._sys()
        others, variables = len(self.lines), self._variables
        self._visit(args, "args", False)  # behind all else: what is only here may be another object in the next call
        self._visit(kwargs, "kwargs", False)
        self.lines, moved = arguments_first(self.lines, others, variables)
        self.facts.lines = set(map(moved, self.facts.lines))
        self.sizes = [(moved(each[0]), *each[1:]) for each in self.sizes]
        self.keep_apart(self._containers.exposed())
        self._account()
        return self

    def keep_apart(self, containers: Collection[Any]) -> None:
        """Check that some containers are none of the others: two that are one change together."""
        for condition, known in self._containers.apart(containers, self._constant):
            self._check(condition, known)

    def check_offset(self, array: Any, expression: str) -> None:
        """Check also that an array begins at the same place of its storage: the call has asked for that."""
        self.checks_offsets = True
        self._check(f"{self._constant(offset_of)}({expression}) != {offset_of(array)}")

    def has_seen(self, value: Any) -> bool:
        """Whether what an object holds is part of the checks."""
        return id(value) in self._seen

    def place_of(self, value: Any) -> str | None:
        """The expression that finds an object or a container that was there before; None: the walk did not meet it."""
        return self._containers.place_of(value) or self._seen.get(id(value))

    def contents(self) -> Contents:
        """What the containers and the attributes of objects hold now."""
        return self._containers.contents()

    def has_changed_tensors(self) -> bool:
        """Whether a call has changed more of a tensor that was there before than its elements and its gradient."""
        return any(mark(tensor) != before for tensor, before in self._marks)

    # ----- writing ----------------------------------------------------------------------------------------------

    def _constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def _check(self, condition: str, known: bool = False) -> None:
        """The call is another one if `condition` holds; `known`: the facts tell that it does not."""
        if known:
            self.facts.lines.add(len(self.lines))
        self.lines.append(f"if {condition}: return MISS")
        if len(self.lines) > min(_MOST, _MOST_IN_PYTHON + len(self.facts.lines)):
            raise Uncompilable("it depends on too much Python state")

    def _place(self, expression: str, known: bool = False) -> str:
        """A variable for an expression that is looked at more than once."""
        if expression.isidentifier():
            return expression
        name = self._variable()
        if known:
            self.facts.lines.add(len(self.lines))
        self.lines.append(f"{name} = {expression}")
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"p{self._variables}"

    # ----- walking ----------------------------------------------------------------------------------------------

    def _visit(self, value: Any, expression: str, fixed: bool) -> None:
        """Check that `expression` is still `value`; `fixed`: it is found from an object known by its identity."""
        kind = type(value)
        if kind in SINGLETONS:
            self._check(f"{expression} is not {value!r}", self.facts.is_object(expression, value))
        elif kind in VALUES:
            known = self.facts.is_object(expression, value)
            place = self._place(expression, known)
            if kind is int and not fixed and not self._at_gradients:
                self.sizes.append((len(self.lines), f"if type({place}) is not int: return MISS", place, (value,)))
                self.of_sizes.add(f"c{len(self.constants)}")
            self._value(value, place, known)
        elif isinstance(value, Tensor):
            known = self._is_constant(value, fixed) and self.facts.is_object(expression, value)
            self._tensor(value, self._place(expression, known), fixed, known)
        elif kind in CONTAINERS or is_named_tuple(kind):
            known = self.facts.is_container(expression, value)
            self._container(value, self._place(expression, known), fixed, known)
        elif kind is MethodType and not is_unbound(value):
            place = self._place(expression)
            self._check(f"type({place}) is not {self._constant(kind)}")
            self._visit(value.__func__, f"{place}.__func__", fixed)
            self._visit(value.__self__, f"{place}.__self__", fixed)
        elif not fixed and id(value) not in self._seen and id(value) not in self._keys and is_known_by_parts(value):
            self._given(value, self._place(expression))
        else:
            self._object(value, expression)

    def _value(self, value: Any, place: str, known: bool) -> None:
        if value != value or (isinstance(value, (float, complex)) and value == 0):
            self._check(f"repr({place}) != {self._constant(repr(value))}", known)
        else:
            was = self._constant(value)
            self._check(
                f"{place} is not {was} and (type({place}) is not {self._constant(type(value))} or {place} != {was})",
                known,
            )

    def _is_constant(self, value: Tensor, fixed: bool) -> bool:
        """Whether a tensor is known by its identity: a parameter is, and so where it was found first."""
        found = self._seen.get(id(value))
        return _is_parameter(value, fixed) if found is None else self.constants.get(found) is value

    def _container(self, value: Any, place: str, fixed: bool, known: bool) -> None:
        kind = type(value)
        if not isinstance(value, (tuple, frozenset)):
            again = self._containers.met(
                value, place, not fixed, known and (kind is set or (kind is dict and bool(value)))
            )
            if again is not None:
                self._check(*again)
                return
        if not value:
            self._check(f"{place} or type({place}) is not {self._constant(kind)}", known)
            return
        self._check(f"type({place}) is not {self._constant(kind)} or len({place}) != {len(value)}", known)
        if kind in (set, frozenset) and all(type(each) in (*SINGLETONS, *VALUES) for each in value):
            self._check(f"{place} != {self._constant(kind(value))}")
            return
        items: Iterable[Any] = value  # those of a set have an order too: it may be looked at
        if isinstance(value, dict):
            if all(type(each) in (*SINGLETONS, *VALUES) for each in value):
                self._check(f"[*{place}] != {self._constant(list(value))}", known)
            else:
                self.kept.extend(value)
                self._keys.update([(id(each), each) for each in value])
                self._check(f"[*map(id, {place})] != {self._constant([id(each) for each in value])}", known)
            items, place = list(value.values()), f"{place}.values()"
        names = [self._variable() for _ in value]
        if known:
            self.facts.lines.add(len(self.lines))
        self.lines.append(f"{', '.join(names)}, = {place}")
        expressions = self.facts.inside(names, value) if known else names
        for expression, each in zip(expressions, items, strict=True):
            self._visit(each, expression, fixed)

    def _tensor(self, value: Tensor, place: str, fixed: bool, is_known: bool) -> None:
        if (known := self._seen.get(id(value))) is not None:
            self._check(f"{place} is not {known}", is_known)
            return
        kind = value._kind
        if not is_usable(kind):
            raise Uncompilable(f"it uses a tensor of {kind!r}")
        if _is_parameter(value, fixed):
            known = self._constant(value)
            self._check(f"{place} is not {known}", is_known)
            place = known
        else:
            self._check(f"type({place}) is not {self._constant(type(value))}")
        self._seen[id(value)] = place
        if type(value) not in PLAIN_TYPES:
            raise Uncompilable(f"it uses a {type(value).__name__}, a subclass with a protocol of its own")
        if value._view is not None and (value.requires_grad or value._grad_fn is not None):
            raise Uncompilable("it uses a view that has a history")
        if has_hooks(value):
            raise Uncompilable("a tensor that it uses has forward-mode tangents, or has hooks and is no leaf")
        if not self._at_gradients:  # a call may change these
            self._marks.append((value, mark(value)))
        array = value._array
        if id(array) in self.tensors:
            raise Uncompilable("two tensors that it uses are one array")
        self.tensors[id(array)] = value, f"{place}._array"
        was = self._constant(Layout(value))
        if known is None:
            if not self._at_gradients:
                self.of_sizes.add(was)
                self.sizes.append(
                    (
                        len(self.lines),
                        f"if {was}.differs_but_for_sizes({place}): return MISS",
                        f"{place}._array.shape, {place}._array.strides",
                        (array.shape, array.strides),
                    )
                )
            self._check(f"{was}.differs({place})")
        else:  # the same tensor, most likely with the same array
            held = self._constant(array)
            self._check(
                f"({place}._array is not {held} or {place}._requires_grad is not {value._requires_grad} "
                f"or {place}._extra is not None or {place}._grad_fn is not None) and {was}.differs({place})"
            )
        if value.__dict__:
            self._attributes(value, place)
        if value._requires_grad and value._grad_fn is None and self._with_gradients:
            lines, self.lines = self.lines, []
            facts, self.facts = self.facts, Facts()  # theirs are no facts for long
            self._at_gradients = True
            self._visit(value._grad, f"{place}._grad", False)
            self._at_gradients = False
            self.of_gradients[id(value)], self.lines = self.lines, lines
            self.facts = facts
            if value._grad is not None:
                self.gradients.add(value, value._grad)

    def _object(self, value: Any, expression: str) -> None:
        """What is known by its identity; what can be read from it is checked once."""
        known = self._seen.get(id(value))
        if known is None:
            known = self._seen[id(value)] = (
                expression if self.constants.get(expression) is value else self._constant(value)
            )
            if expression != known:
                self._check(f"{expression} is not {known}", self.facts.is_object(expression, value))
            self._look_into(value, known)
        elif expression != known:
            self._check(f"{expression} is not {known}", self.facts.is_object(expression, value))

    def _given(self, value: Any, place: str) -> None:
        """An object that is in the arguments alone: another one of its class that holds the like may take its place."""
        self._seen[id(value)] = place
        self._class(type(value))
        self._check(f"type({place}) is not {self._constant(type(value))}")
        known = [*self._keys.values(), *[self.constants.get(each) for each in self._seen.values()]]
        if others := {id(each) for each in known if type(each) is type(value)}:
            self._check(f"id({place}) in {self._constant(others)}")  # what is asked by identity has another answer
        own = attributes_of(value)
        if own is not None:
            names = self._place(f"{self._constant(attributes_of)}({place})")
            self._containers.met(own, names, True, False)
            self._check(f"[*{names}] != {self._constant(list(own))}" if own else names)
            for name in own:
                if self._watch.reads_any_name or name in self._names:
                    self._visit(own[name], f"{names}[{name!r}]", False)
        for slot, content in slots_of(value):
            self._visit(content, f"{self._constant(slot.__get__)}({place})", False)
        if base_of(type(value)) in _WITH_ITEMS:
            self._visit(items_of(value), f"{self._constant(items_of)}({place})", False)

    def _look_into(self, value: Any, known: str) -> None:
        if isinstance(value, (*OPAQUE, *RUN_OUTSIDE)) or type(value) is object:
            return
        if is_unbound(value):
            value, known = value.__func__, f"{known}.__func__"
        if isinstance(value, FunctionType):
            self._function(value, known)
        elif type(value) is MappingProxyType:
            self._visit(_behind(value), f"{self._constant(_behind)}({known})", True)
        elif isinstance(value, ModuleType):
            if value.__name__ in _UNSTEADY_MODULES:
                raise Uncompilable(f"it reaches the module {value.__name__}")
            self._namespace(value.__dict__, self._names)
            if self._has_run(value.__dict__.get("__getattr__")):
                for name in sorted(self._names - value.__dict__.keys()):
                    self._found_otherwise(value, name)
        elif value is operator.attrgetter:
            raise Uncompilable("it reads attributes by operator.attrgetter")
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, functools.partial):
            if isinstance(value.func, BuiltinFunctionType) and not is_harmless(value.func):
                raise Uncompilable(f"it reaches a partial of {value.func.__qualname__}()")  # no call of it is seen
            for part in ("func", "args", "keywords"):
                self._field(value, known, part)
        elif isinstance(value, ContextVar):
            content = value.get(_MISSING)
            if content is _MISSING:
                self._check(f"{known}.get(MISSING) is not MISSING")
            else:
                self._visit(content, f"{known}.get(MISSING)", True)
        elif isinstance(value, (staticmethod, classmethod)):
            self._field(value, known, "__func__")
        elif isinstance(value, property):
            for part in ("fget", "fset", "fdel"):
                self._field(value, known, part)
        elif type(value).__flags__ & _HEAP_TYPE or type(value) is SimpleNamespace:
            self._class(type(value))
            self._check(f"type({known}) is not {self._constant(type(value))}", self.facts.is_of_class(value))
            self._attributes(value, known)
            if base_of(type(value)) in _WITH_ITEMS:
                self._visit(items_of(value), f"{self._constant(items_of)}({known})", True)
        else:
            raise Uncompilable(f"it reads a {type(value).__module__}.{type(value).__qualname__}")

    def _function(self, value: FunctionType, known: str) -> None:
        if self._watch.is_engine(value.__code__):
            for cell in value.__closure__ or ():
                if self._is_cell_of_watched_code(cell):  # what a decorator of the engine's has decorated
                    self._cell(cell)
            return
        if value.__code__ not in self._watch.codes:
            return
        self._accounted.add(value.__code__)
        code = self.facts.field(f"{known}.__code__", value, "__code__")
        self._check(f"{code} is not {self._constant(value.__code__)}", self.facts.is_object(code, value.__code__))
        for part in ("__defaults__", "__kwdefaults__"):
            self._field(value, known, part)
        for cell in value.__closure__ or ():
            self._cell(cell)
        if (wrapped := value.__dict__.get("__wrapped__")) is not None:
            self._visit(wrapped, f"{known}.__wrapped__", True)

    def _field(self, value: Any, known: str, name: str) -> None:
        """What an object of Python's own has under a name."""
        self._visit(getattr(value, name), self.facts.field(f"{known}.{name}", value, name), True)

    def _is_cell_of_watched_code(self, cell: CellType) -> bool:
        try:
            content = cell.cell_contents
        except ValueError:
            return False
        return isinstance(content, FunctionType) and content.__code__ in self._watch.codes

    def _cell(self, cell: CellType) -> None:
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            raise Uncompilable("it has a closure over a variable without a value") from None
        if id(cell) not in self._seen:
            known = self._seen[id(cell)] = self._constant(cell)
            if type(content) in (*VALUES, *CONTAINERS) or isinstance(content, Tensor):  # each call may bring a like one
                self._visit(content, f"{known}.cell_contents", True)
            else:
                self._field(cell, known, "cell_contents")

    def _class(self, value: type) -> None:
        """What instances find in their class, and in its bases; how many names these have, for nothing may be added."""
        kind: type = type(value)
        if kind.__flags__ & _HEAP_TYPE:
            self._class(kind)
        for each in value.__mro__:
            if id(each) in self._classes or not each.__flags__ & _HEAP_TYPE or issubclass(each, Tensor):
                continue
            self._classes.add(id(each))
            content = each.__dict__
            known = self._constant(content)
            self._check(f"len({known}) != {len(content)}", self.facts.has_count(content))
            for name in sorted(content):
                if name in self._names or self._has_run(content[name]):
                    self._visit(content[name], self.facts.item(f"{known}[{name!r}]", content, name), True)

    def _has_run(self, value: Any) -> bool:
        """Whether it is a method, or a property, that ran, whoever looked it up: Python itself for an operator, the
        engine, or `getattr` under a name that was computed.
        """
        if isinstance(value, property):
            return any(map(self._has_run, (value.fget, value.fset, value.fdel)))
        return getattr(getattr(value, "__func__", value), "__code__", None) in self._watch.codes

    def _attributes(self, value: Any, known: str) -> None:
        own = getattr(value, "__dict__", None)
        if own is not None:
            names = self._constant(own)
            self._check(f"{known}.__dict__ is not {names}", self.facts.has_attributes_in(value, own))
            if not isinstance(value, Tensor):
                self._containers.met(own, names, False, True)
            self._check(f"[*{names}] != {self._constant(list(own))}" if own else names, self.facts.has_keys(own))
            for name in own:
                if self._watch.reads_any_name or name in self._names:
                    self._visit(own[name], self.facts.item(f"{names}[{name!r}]", own, name), True)
        if isinstance(value, Tensor):
            return
        for each in type(value).__mro__:
            slots = each.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if self._watch.reads_any_name or name in self._names:
                    content = getattr(value, name, _MISSING)
                    if content is _MISSING:
                        self._check(f"hasattr({known}, {name!r})")
                    else:
                        self._visit(content, f"{known}.{name}", True)

    def _namespace(self, content: dict[str, Any], looked_up: frozenset[str]) -> None:
        names = self._constant(content)
        for name in sorted(looked_up & content.keys()):
            self._global(content[name], name, self.facts.item(f"{names}[{name!r}]", content, name))

    def _global(self, value: Any, name: str, expression: str) -> None:
        """What a module has under a name."""
        if value is sys:  # it leads to all modules that there are: who looks into it is found out later
            self._names_of_sys.add(name)
            self._check(f"{expression} is not {self._constant(value)}", self.facts.is_object(expression, value))
        else:
            self._visit(value, expression, True)

    def _sys(self) -> None:
        """What is looked up in `sys`: its table of all modules by code that asks for it, not by any other `modules`."""
        if self._names_of_sys and id(sys) not in self._seen:
            asked = any(reads_all_modules(code, frozenset(self._names_of_sys)) for code in self._watch.codes)
            self._namespace(vars(sys), self._names if asked else self._names - {"modules"})

    def _globals(self) -> None:
        """The globals that the code which ran reads."""
        tables: dict[int, tuple[str, dict[str, set[Path]]]] = {}
        for code, seen in self._watch.codes.items():
            known, done = tables.setdefault(id(seen), (self._constant(seen), {}))
            for name, paths in global_reads(code, self._watch.lines_of(code)).items():
                new = paths - done.setdefault(name, set())
                if name in seen and new:
                    self._read(seen[name], name, self.facts.item(f"{known}[{name!r}]", seen, name), new)
                elif new and not done[name]:  # a builtin, or a name that is caught: it may get a value
                    self._check(f"{name!r} in {known}", self.facts.is_absent(seen, name))
                done[name] |= paths

    def _imports(self) -> None:
        """The modules that the code which ran imports by itself."""
        modules = self._constant(sys.modules)
        for name, paths in sorted(self._watch.imported().items()):
            if name in sys.modules:
                found = self.facts.item(f"{modules}[{name!r}]", sys.modules, name)
                self._read(sys.modules[name], name, found, paths)
            else:
                self._check(f"{name!r} in {modules}", self.facts.is_absent(sys.modules, name))

    def _read(self, value: Any, name: str, expression: str, paths: Iterable[Path]) -> None:
        """What is read of a thing that code finds under a name: of a module, no more than the attributes it takes."""
        if not isinstance(value, ModuleType) or value is sys or () in paths:
            self._global(value, name, expression)
            return
        if id(value) not in self._modules:
            self._modules[id(value)] = self._constant(value)
        self._check(f"{expression} is not {self._modules[id(value)]}", self.facts.is_object(expression, value))
        content = self._constant(value.__dict__)
        taken: dict[str, set[Path]] = {}
        for first, *rest in paths:
            taken.setdefault(first, set()).add(tuple(rest))
        for attribute, further in sorted(taken.items()):
            if value.__name__ in _UNSTEADY_MODULES:
                raise Uncompilable(f"it reads {value.__name__}.{attribute}")
            if attribute in value.__dict__:
                place = self.facts.item(f"{content}[{attribute!r}]", value.__dict__, attribute)
                self._read(value.__dict__[attribute], attribute, place, further)
            else:
                self._found_otherwise(value, attribute)

    def _found_otherwise(self, module: ModuleType, name: str) -> None:
        """Check that a module has no such attribute: its `__getattr__` finds it, until somebody sets it."""
        names = self._constant(module.__dict__)
        self._check(f"{name!r} in {names}", self.facts.is_absent(module.__dict__, name))
        if "__getattr__" in module.__dict__:
            place = self.facts.item(f"{names}['__getattr__']", module.__dict__, "__getattr__")
            self._visit(module.__dict__["__getattr__"], place, True)

    def _account(self) -> None:
        """Refuse where it is not known which function some code belonged to: its closure has not been looked at."""
        accounted = set(self._accounted)
        waiting = list(accounted)
        while waiting:
            inner = [each for each in waiting.pop().co_consts if isinstance(each, CodeType) and each not in accounted]
            accounted.update(inner)
            waiting += inner
        for code, seen in self._watch.codes.items():
            if code not in accounted and not self._is_of_its_module(code, seen) and not self._watch.is_of_future:
                place = f"{code.co_filename}:{code.co_firstlineno}"
                raise Uncompilable(f"it is unknown where {code.co_name} ({place}) came from")

    def _is_of_its_module(self, code: CodeType, seen: dict[str, Any]) -> bool:
        """Whether code depends on nothing but arguments and globals, and its module has it: somebody else called it."""
        found = seen.get(code.co_name)
        if not isinstance(found, FunctionType) or found.__code__ is not code or code.co_freevars:
            return False
        if (found.__defaults__ or found.__kwdefaults__) and not code.co_filename.startswith(PACKAGE):
            return False  # another function of the same code may have others
        self._visit(found, f"{self._constant(seen)}[{code.co_name!r}]", True)
        return True


_HEAP_TYPE = 1 << 9
"""The flag of classes that Python code, or a module that looks like it, has made."""


def _is_parameter(value: Tensor, fixed: bool) -> bool:
    return fixed and value._requires_grad and value._grad_fn is None


MISS: Any = object()
"""What a compiled function answers if a check fails."""


def _behind(view: MappingProxyType[Any, Any]) -> Any:
    """The dictionary, or other mapping, that a read-only view is of."""
    return gc.get_referents(view)[0]
