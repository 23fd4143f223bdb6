"""The public face of the ops: which names exist, in which namespace, as function, method, in-place form and `out=`.

`@public` only notes what is to be published and returns the function itself, which the package's own code calls. What
users call is made around it on first use (`Published.function`): importing the package stays quick.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..arguments.autocast_rules import Autocast, rules_of
from . import catalogue
from .namespaces import HOME, Namespace, namespace_at, written
from .overrides import has_override, original_of, run_override
from .places import COMPILED_SPACES, is_compiled_at
from .protocol import NO_NAMES, Body, Function, Writer, takes_tensors, with_leading, with_protocol

FUNCTIONS: dict[str, dict[str, Any]] = {"": {}}
"""namespace -> name -> function or `Published`: "" is the package itself, "linalg", "special", ... the others."""
METHODS: dict[str, Any] = {}
"""Every method that ops put on `Tensor`."""

_PUBLISHED: dict[Function, Published] = {}
_BOUND: dict[Function, Callable[[Namespace], Function]] = {}
"""For a function, which is a method as well, what writes it anew for users who call it by its namespace."""
_IN_NAMESPACES: dict[Function, Function] = {}
"""What users call by a namespace, by the function that the package calls."""


class Published:
    """A function to be published: made on first use around the body that computes."""

    __slots__ = ("_function", "_make")

    def __init__(self, make: Callable[[], Function]) -> None:
        self._make = make
        self._function: Function | None = None

    @property
    def function(self) -> Function:
        """What users call."""
        if self._function is None:
            self._function = self._make()
        return self._function


class _FamilyMember:
    """Stands for a method until its family is imported, which puts the real one in its place."""

    __slots__ = ("family", "name")

    def __init__(self, name: str, family: str) -> None:
        self.name = name
        self.family = family

    def __get__(self, instance: Any, owner: type) -> Any:
        load_family(self.family)
        return getattr(owner if instance is None else instance, self.name)


class _FamilyProperty(_FamilyMember):
    """A property whose family of ops is loaded on first use; it may also be assigned to."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        load_family(self.family)
        setattr(instance, self.name, value)


def load_family(family: str) -> None:
    """Import one file of ops."""
    SLOTS.load_family(family)


def load_all() -> None:
    """Import every family: afterwards `FUNCTIONS` and `METHODS` are complete."""
    families = set(catalogue.METHODS.values()).union(*(space.values() for space in catalogue.FUNCTIONS.values()))
    for family in sorted(families):
        load_family(family)


def place_family_members() -> None:
    """Put a stand-in on `Tensor` for each method of the catalogue."""
    for name, family in catalogue.METHODS.items():
        setattr(Tensor, name, (_FamilyProperty if name in catalogue.PROPERTIES else _FamilyMember)(name, family))


def function_named(space: str, name: str) -> Function:
    """The public function `name` of a namespace; a KeyError if there is none."""
    functions = FUNCTIONS.setdefault(space, {})
    if name not in functions:
        load_family(catalogue.FUNCTIONS[space][name])
    return resolved(functions[name])


def public_function(space: str, name: str) -> Any:
    """What users find under `name` in a namespace: where PyTorch has a compiled function, one that no class binds."""
    function = function_named(space, name)
    return in_namespace(function, space) if is_compiled_at(space, name) else function


def in_namespace(function: Any, space: str = "") -> Any:
    """A function of the package as users call it by a namespace, which is another object than the method."""
    if type(function) is not FunctionType:
        return function
    found = _IN_NAMESPACES.get(function)
    if found is None:
        owner = namespace_at(f"_C._{space}" if space in COMPILED_SPACES else space)
        found = _IN_NAMESPACES[function] = (_BOUND.get(function) or _forwarding(function))(owner)
        own = written(found)
        own.__module__, own.__name__, own.__doc__ = function.__module__, function.__name__, function.__doc__
        own.__qualname__ = function.__qualname__.removeprefix("Tensor.")
        vars(own)["stands_for"] = original_of(function)
    return found


def _forwarding(function: Function) -> Callable[[Namespace], Function]:
    """What calls a function that is published as it stands."""
    overridable = takes_tensors(function)

    def write(owner: Namespace) -> Function:
        def forward(namespace: Namespace, /, *args: Any, **kwargs: Any) -> Any:
            if overridable and has_override(args):
                return run_override(this, args, args, kwargs)
            return function(*args, **kwargs)

        forward.__annotations__ = function.__annotations__
        vars(forward).update(vars(function), __signature__=with_leading(function), __wrapped__=function)
        this = MethodType(forward, owner)
        return this

    return write


def written_for(write: Callable[[Namespace | None], Function]) -> Function:
    """What `write` makes without a namespace; with one it makes what users call by that namespace."""
    function = write(None)
    _BOUND[function] = write
    return function


class _LazyMethod:
    """Stands for a method until its first use, then puts the real one in its place."""

    __slots__ = ("name", "published")

    def __init__(self, published: Published, name: str) -> None:
        self.published = published
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        function = as_method(self.published.function)
        setattr(Tensor, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


def as_method(function: Any) -> Any:
    """A method, which says that it is one where the package has another object under that name: pickles find it."""
    at_home = isinstance(function, FunctionType) and function.__module__ == HOME[0]
    if at_home and is_compiled_at("", function.__qualname__):
        function.__qualname__ = f"Tensor.{function.__name__}"
    return function


def resolved(value: Any) -> Function:
    """The function behind an entry of `FUNCTIONS` or `METHODS`."""
    return value.function if isinstance(value, Published) else value


def namespace(name: str, module: str | None = None) -> tuple[Callable[[str], Any], list[str], Callable[[], list[str]]]:
    """For a module that is a namespace of ops: its `__getattr__`, the names for its `__all__`, and its `__dir__`.

    `module` is its own name where another module has the namespace's.
    """
    names = sorted(catalogue.FUNCTIONS.get(name, ()))
    module = module or f"flambeau.{name}"

    def __getattr__(attribute: str) -> Any:
        try:
            found = public_function(name, attribute)
        except KeyError:
            raise AttributeError(f"module {module!r} has no attribute {attribute!r}") from None
        setattr(sys.modules[module], attribute, found)  # the next time it is there
        return found

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *names})

    return __getattr__, names, __dir__


def export(function: Function | Published, *names: str) -> None:
    """Make `function` public under each of `names`; a dot separates the namespace: "special.expit"."""
    value = function if isinstance(function, Published) else _PUBLISHED.get(function, function)
    _document(value, *names)
    for full_name in names:
        space, _, name = full_name.rpartition(".")
        FUNCTIONS.setdefault(space, {})[name] = value


def _document(value: Any, *names: str) -> None:
    """Complete the docstring of a function that has not been made by `with_protocol`, which completes its own."""
    if isinstance(written(value), FunctionType) and names and "\nReturns:\n" not in (value.__doc__ or ""):
        from .docstrings.documentation import complete  # an import of the package needs no docstrings

        complete(value, names[0])


def export_method(function: Function | Published | property, *names: str) -> None:
    """Make `function` a method (or a property) of `Tensor` under each of `names`.

    One that Python itself calls (`__bool__`) is called that: so a `__torch_function__` knows it.
    """
    known = isinstance(function, FunctionType) and METHODS.get(function.__name__) is function
    if isinstance(function, FunctionType) and not known and len(names) == 1 and names[0].startswith("__"):
        function.__name__ = names[0]
    value: Any = function if isinstance(function, (property, Published)) else _PUBLISHED.get(function, function)
    _document(value, *names)
    for name in names:
        METHODS[name] = value
        setattr(Tensor, name, _LazyMethod(value, name) if isinstance(value, Published) else as_method(value))


def guard(function: Body, name: str = "", overridable: bool = False) -> Body:
    """Let the errors that leave `function` be explained to users, as those of ops are; before it is exported.

    That costs a frame, so the functions that are called most have it in their own bodies. `overridable`: classes with a
    `__torch_function__` among the arguments are asked.
    """
    own = name or function.__name__
    _PUBLISHED[function] = Published(lambda: _guarded(function, own, overridable))
    return function


def _guarded(function: Function, name: str, overridable: bool) -> Function:
    def write(owner: Namespace | None) -> Function:
        made = with_protocol(function, shown_name(name), False, name, overridable=overridable, owner=owner)
        own = written(made)
        own.__module__, own.__qualname__ = function.__module__, function.__qualname__
        return made

    return written_for(write)


def public(
    *aliases: str,
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    out: bool | Writer = False,
    name: str | None = None,
    also: Mapping[str, str] = NO_NAMES,
    older: tuple[str, ...] = (),
    autocast: Autocast | None = None,
) -> Callable[[Body], Body]:
    """Publish the decorated function of tensors.

    `function`, `method`: as `flambeau.name`, as `Tensor.name`. `inplace`: also `Tensor.name_` (and `flambeau.name_`).
    `out`: the function takes `out=`, which must have the result's dtype, or is filled by the function given here:
    `write_out` converts. `aliases` are further names, with their namespace ("linalg.norm") or without; those without
    become methods too. `also`: what some of PyTorch's overloads call a parameter. `older`: the parameters in an order
    that is deprecated, with more of them by position. `autocast`: what that does with the arguments
    (`arguments/autocast_rules.py`).
    """

    def decorate(body: Body) -> Body:
        own = name or body.__name__
        plain = [own, *(each for each in aliases if "." not in each)]
        functions = [own, *aliases] if function else list(aliases)
        home = own if function else next((each for each in aliases if "." in each), "")
        label = home or own
        rules = rules_of(label, autocast)

        def called(each: str) -> Function:
            def write(owner: Namespace | None) -> Function:
                made = with_protocol(
                    body, shown_name(each), out, each, also, older, original=label, autocast=rules, owner=owner
                )
                return at_home(made, each) if home else made

            return written_for(write)

        def changing(each: str) -> Function:
            def write(owner: Namespace | None) -> Function:
                made = with_protocol(body, each, False, each, also, older, inplace_of=own, owner=owner)
                return at_home(made, each) if function else made

            return written_for(write)

        _PUBLISHED[body] = Published(lambda: called(label))
        publish(_PUBLISHED[body], label, called, functions, plain if method else ())
        if inplace:
            inplace_names = [f"{each}_" for each in plain]
            first = Published(lambda: changing(f"{own}_"))
            publish(first, f"{own}_", changing, inplace_names if function else (), inplace_names)
        return body

    return decorate


def publish(
    first: Function | Published,
    name: str,
    called: Callable[[str], Function],
    functions: Sequence[str],
    methods: Sequence[str],
) -> None:
    """Publish a function and its further names: those under which PyTorch has other functions are made by `called`."""

    def entry(each: str) -> Function | Published:
        alone = "." not in each or is_compiled(each)
        return first if each == name or not alone else Published(lambda: standing_for(first, called(each)))

    entries = {each: entry(each) for each in (*functions, *methods)}
    for each in functions:
        export(entries[each], each)
    for each in methods:
        export_method(entries[each], each)


def is_compiled(full_name: str) -> bool:
    """Whether PyTorch has a function with this name, namespace included, in a module of its compiled part."""
    return full_name.rpartition(".")[0] in COMPILED_SPACES


def shown_name(full_name: str) -> str:
    """What a public function says that it is called."""
    return full_name.replace(".", "_") if is_compiled(full_name) else full_name.rpartition(".")[2]


def standing_for(original: Function | Published, alias: Function) -> Function:
    """`alias`, which is another name of `original`: users see it, what knows functions by name asks `original_of`."""
    vars(alias)["stands_for"] = resolved(original)
    return alias


def at_home(function: Function, name: str) -> Function:
    """`function`, which says that it is at home under its public name: pickles look for it there."""
    own = written(function)
    space, _, own.__qualname__ = name.rpartition(".")
    own.__module__ = f"{HOME[0]}.{space}" if space else HOME[0]
    return function


def say_at_home(package: str) -> None:
    """Let public functions say that they stand in `package`, those that are made later too."""
    functions = [
        *map(_made, itertools.chain(*[space.values() for space in FUNCTIONS.values()])),
        *_IN_NAMESPACES.values(),
    ]
    for function in {id(each): written(each) for each in functions}.values():
        module = getattr(function, "__module__", None) or ""
        if module == HOME[0] or module.startswith(f"{HOME[0]}."):
            function.__module__ = package + module[len(HOME[0]) :]
    HOME[0] = package


def _made(value: Any) -> Any:
    return value._function if isinstance(value, Published) else value


place_family_members()
