"""The public face of the ops: which names exist, in which namespace, as function, method, in-place form and `out=`.

`@public` only notes what is to be published and returns the function itself, which the package's own code calls. What
users call is made around it on first use (`Published.function`): importing the package stays quick.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType
from typing import Any, TypeVar, cast

from ..._core.process.caller import GENERATED, warn_user
from ..._core.slots import SLOTS
from ..._core.subclasses import all_plain
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..changes.inplace import run_inplace
from . import catalogue
from .overrides import has_override, run_override

Function = Callable[..., Any]
Body = TypeVar("Body", bound=Function)
Result = TypeVar("Result")
Writer = Callable[[Any, Any, tuple[Any, ...]], Any]
"""Stores a result, computed from operands, in what was given as `out=`."""

FUNCTIONS: dict[str, dict[str, Any]] = {"": {}}
"""namespace -> name -> function or `Published`: "" is the package itself, "linalg", "special", ... the others."""
METHODS: dict[str, Any] = {}
"""Every method that ops put on `Tensor`."""

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_PUBLISHED: dict[Function, Published] = {}
CASTING: list[Any] = []
"""Not empty while autocast is on in some thread: functions that have a rule then ask `autocast.run_by_rule`."""

_home = "flambeau"
"""The package in which public functions say that they stand."""

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""Keyword names of NumPy that PyTorch takes as well."""


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
    """The same for a property, which may also be assigned to."""

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


class _LazyMethod:
    """Stands for a method until its first use, then puts the real one in its place."""

    __slots__ = ("name", "published")

    def __init__(self, published: Published, name: str) -> None:
        self.published = published
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.published.function
        setattr(Tensor, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


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
            found = function_named(name, attribute)
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
    for full_name in names:
        space, _, name = full_name.rpartition(".")
        FUNCTIONS.setdefault(space, {})[name] = value


def export_method(function: Function | Published | property, *names: str) -> None:
    """Make `function` a method (or a property) of `Tensor` under each of `names`.

    One that Python itself calls (`__bool__`) is called that: so a `__torch_function__` knows it.
    """
    known = isinstance(function, FunctionType) and METHODS.get(function.__name__) is function
    if isinstance(function, FunctionType) and not known and len(names) == 1 and names[0].startswith("__"):
        function.__name__ = names[0]
    value: Any = function if isinstance(function, (property, Published)) else _PUBLISHED.get(function, function)
    for name in names:
        METHODS[name] = value
        setattr(Tensor, name, _LazyMethod(value, name) if isinstance(value, Published) else value)


def guard(function: Body, name: str = "") -> Body:
    """Let the errors that leave `function` be explained to users, as those of ops are; before it is exported.

    That costs a frame, so the functions that are called most have it in their own bodies.
    """
    own = name or function.__name__
    _PUBLISHED[function] = Published(lambda: _guarded(function, own))
    return function


def _guarded(function: Function, name: str) -> Function:
    made = with_protocol(function, shown_name(name), False, name, overridable=False)
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def public(
    *aliases: str,
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    out: bool | Writer = False,
    name: str | None = None,
    also: Mapping[str, str] = _NO_NAMES,
    older: tuple[str, ...] = (),
) -> Callable[[Body], Body]:
    """Publish the decorated function of tensors.

    `function`, `method`: as `flambeau.name`, as `Tensor.name`. `inplace`: also `Tensor.name_` (and `flambeau.name_`).
    `out`: the function takes `out=`, which must have the result's dtype, or is filled by the function given here:
    `write_out` converts. `aliases` are further names, with their namespace ("linalg.norm") or without; those without
    become methods too. `also`: what some of PyTorch's overloads call a parameter. `older`: the parameters in an order
    that is deprecated, with more of them by position.
    """

    def decorate(body: Body) -> Body:
        own = name or body.__name__
        plain = [own, *(each for each in aliases if "." not in each)]
        functions = [own, *aliases] if function else list(aliases)
        home = own if function else next((each for each in aliases if "." in each), "")
        label = home or own

        def called(each: str) -> Function:
            made = with_protocol(body, shown_name(each), out, each, also, older, rule=label)
            return at_home(made, each) if home else made

        def changing(each: str) -> Function:
            made = with_protocol(body, each, False, each, also, older, inplace_of=own)
            return at_home(made, each) if function else made

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


COMPILED_SPACES = ("fft", "linalg", "special")
"""The namespaces whose functions PyTorch has in a module of its compiled part, under names such as `linalg_inv`."""


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
    space, _, function.__qualname__ = name.rpartition(".")
    function.__module__ = f"{_home}.{space}" if space else _home
    return function


def say_at_home(package: str) -> None:
    """Let public functions say that they stand in `package`, those that are made later too."""
    global _home
    for function in {id(each): each for space in FUNCTIONS.values() for each in map(_made, space.values())}.values():
        module = getattr(function, "__module__", None) or ""
        if module == _home or module.startswith(f"{_home}."):
            function.__module__ = package + module[len(_home) :]
    _home = package


def _made(value: Any) -> Any:
    return value._function if isinstance(value, Published) else value


def by_rule(name: str, own: Body) -> Body:
    """`own`, to be called as the public function `name` is: within a region of autocast, on cast arguments."""

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not CASTING:
            return own(*args, **kwargs)
        from ..arguments.autocast import run_by_rule

        return run_by_rule(name, own, args, kwargs)

    return cast(Body, call)


def uncast(own: Body) -> Body:
    """`own` within a region of autocast, on arguments as they are: what is stored in `out=` is not cast."""

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        from ..arguments.autocast import run_uncast

        return run_uncast(own, args, kwargs)

    return cast(Body, call)


def _has_rule(name: str) -> bool:
    from ..arguments.autocast_rules import NAMES

    return name in NAMES


_TEMPLATE = """\
def {name}({parameters}):
    {other_names}
    {older}
    {missing}
    if {overridden}:
        return run_override(this, ({tensors},), ({positional}), {{{keywords}}})
    try:
        {kinds}
        {compute}
        {out}
    except Exception as error:
        explain(error, {label!r}, {{{values}}}, this)
        raise
"""


def explain(error: Exception, name: str, values: dict[str, Any], function: Function | None = None) -> None:
    """Raise a better error in place of one that leaves a public function, if there is one."""
    from . import explain as explaining  # most programs never need it

    explaining.explain(error, name, values, function)


def explain_call(
    error: Exception, name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """The same for one that took its arguments as they came."""
    from . import explain as explaining

    explaining.explain_call(error, name, function, args, kwargs)


def check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call whose arguments fit none of PyTorch's forms of a function."""
    from . import explain as explaining

    explaining.check_call(name, args, kwargs)


def check_kind(name: str, parameter: str, value: Any) -> None:
    """Refuse a flag, number or text that is of another type than those that PyTorch takes, or too large."""
    from . import explain as explaining

    explaining.check_kind(name, parameter, value)


FLAGS = frozenset((bool,))
"""The types of arguments that are flags."""
_UNUSUAL = {
    "bool": "{0} is not False and {0} is not True",
    "int": "type({0}) is not int or not -0x8000000000000000 <= {0} <= 0x7FFFFFFFFFFFFFFF",
    "float": "type({0}) is not float and type({0}) is not int",
    "str": "type({0}) is not str",
}
"""By annotation the test that finds an argument that is to be looked at: of another type, or no number of 64 bits."""


def _kind_check(parameter: Any, label: str) -> str | None:
    """The line that looks at the type of an argument, if its annotation says what is usual."""
    annotation, _, optional = str(parameter.annotation).partition(" | ")
    single = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if not single or annotation not in _UNUSUAL or optional not in ("", "None"):
        return None
    tests = [f"({_UNUSUAL[annotation]})"]
    if optional:
        tests.insert(0, "{0} is not None")
    elif parameter.default is not parameter.empty and annotation != "bool":
        tests.insert(0, "{0} is not _{0}")
    return f"if {' and '.join(tests)}: check_kind({label!r}, {parameter.name!r}, {{0}})".format(parameter.name)


def with_types(refusing: Function) -> Function:
    """A function that refuses every call, but looks at the types of its arguments first, as PyTorch's does."""
    from functools import wraps

    @wraps(refusing)
    def function(*args: Any, **kwargs: Any) -> Any:
        check_call(refusing.__name__, args, kwargs)
        return refusing(*args, **kwargs)

    return function


def with_protocol(
    body: Function,
    name: str,
    out: bool | Writer,
    label: str,
    also: Mapping[str, str] = _NO_NAMES,
    older: tuple[str, ...] = (),
    inplace_of: str | None = None,
    overridable: bool = True,
    rule: str | None = None,
) -> Function:
    """`body` behind a function of the same signature that also heeds `__torch_function__`, NumPy's names and `out=`.

    The function is written out as source, so that Python itself binds the arguments, and kept where debuggers find it,
    under `label`: `sum` is one function, `masked.sum` another. With `inplace_of`, the name of the op, the result
    becomes the content of the first argument. A function that heeds `__torch_function__` by itself is not `overridable`
    here. `rule` is the name by which autocast knows it, if that is another.
    """
    import inspect

    from ..changes.exact_out import store_exactly

    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    if inplace_of is not None:
        parameters = [each for each in parameters if each.name != "out"]
    if out:
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    synonyms = _synonyms(parameters, also)
    late = _late(parameters, synonyms)
    tensors = [each.name for each in parameters if overridable and _is_tensor(each)]
    defaults = {f"_{each.name}": each.default for each in parameters if each.default is not inspect.Parameter.empty}
    listed, positional, keywords, by_name = [], [], [], []
    marked = False  # whether what follows can be given by name only
    for each in parameters:
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            listed.append(f"*{each.name}")
            positional.append(f"*{each.name}")
            marked = True
            continue
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            listed.append(f"**{each.name}")
            keywords.append(f"**{each.name}")
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY:
            if not marked:
                listed.append("*further" if older else "*")
                marked = True
            keywords.append(f"{each.name!r}: {each.name}")
            by_name.append(f"{each.name}={each.name}")
        else:
            positional.append(each.name)
        default = "" if each.default is inspect.Parameter.empty else f"=_{each.name}"
        listed.append(f"{each.name}{'=MISSING' if each.name in late else default}")
    if older and not marked:
        listed.append("*further")
    if synonyms:
        listed.append("**other_names")
    elif any(each.kind is each.VAR_KEYWORD for each in parameters):
        by_name.append(keywords[-1])
    named = ", ".join(each for each in keywords if not each.startswith("**"))
    variadic = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    given = ", ".join([*(f"{each!r}: {each}" for each in positional if each != f"*{variadic}"), named])
    passed = ", ".join([*positional, *(each for each in by_name if not (out and each == "out=out"))])
    cast_first = overridable and inplace_of is None and _has_rule(rule or label)
    compute = f"return (body if not CASTING else by_rule)({passed})" if cast_first else f"return body({passed})"
    absent = [
        f"{each.name} is _{each.name}"
        for each in parameters
        if each.kind is each.KEYWORD_ONLY and each.default is not each.empty
    ]
    if variadic and len(by_name) == len(absent) > 0 and not out and not cast_first:
        # Calls with `*sizes` and names are the dearest ones, and mostly no name is given.
        compute = f"return body({', '.join(positional)}) if {' and '.join(absent)} else body({passed})"
    stored = f"(body if not CASTING else uncast(body))({passed}), out, ({', '.join(tensors) or 'None'},)"
    if inplace_of is not None:
        rest = "".join(f"{each}, " for each in positional[1:])
        compute = f"return run_inplace(body, {inplace_of!r}, {positional[0]}, ({rest}), {{{', '.join(keywords)}}})"
    source = _TEMPLATE.format(
        name=name,
        label=label,
        kinds="\n        ".join(filter(None, (_kind_check(each, label) for each in parameters))),
        values=", ".join(f"{each.name!r}: {each.name}" for each in parameters),
        parameters=", ".join(listed),
        overridden=(" or ".join(_overriding_tests(parameters, name)) if overridable else "")
        or "not DIRECT_TYPES and has_override(())",
        tensors=", ".join(tensors) or "None",
        positional="".join(f"{each}, " for each in positional),
        keywords=", ".join(keywords),
        other_names=f"if other_names: return renamed(this, SYNONYMS, other_names, {{{given}}}, {variadic or '()'})"
        if synonyms
        else "",
        older=f"if further: return reordered(this, OLDER, ({', '.join(positional)}, *further), {{{named}}})"
        if older
        else "",
        missing=f"if {' or '.join(f'{each} is MISSING' for each in late)}: "
        f"raise missing({name!r}, {{{', '.join(f'{each!r}: {each}' for each in late)}}})"
        if late
        else "",
        compute=f"if out is None: {compute}" if out else compute,
        out=f"return write_out({stored})" if out else "",
    )
    source = "\n".join(line for line in source.splitlines() if line.strip()) + "\n"
    file = f"{GENERATED}function {label}>"
    scope = {
        "body": body, "CASTING": CASTING, "uncast": uncast, "DIRECT_TYPES": DIRECT_TYPES, "NUMBERS": _NUMBERS,
        "LISTS": _LISTS, "all_plain": all_plain, "has_override": has_override, "run_override": run_override,
        "is_overriding": is_overriding,
        "run_inplace": run_inplace,
        "explain": explain, "check_kind": check_kind,
        "MISSING": _MISSING, "missing": _missing, "SYNONYMS": synonyms, "renamed": renamed,
        "OLDER": older, "reordered": reordered, "write_out": out if callable(out) else store_exactly, **defaults,
    }  # fmt: skip
    if cast_first:
        scope["by_rule"] = by_rule(rule or label, body)
    from ..._codegen.machine.bytecode import compiled_sources  # not before a function is called

    exec(compiled_sources([(file, source)])[0], scope)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    wrapped: Function = scope.pop(name)
    scope["this"] = wrapped  # not by its name, which a parameter may have too, or a function that it calls, as `type`
    wrapped.__doc__ = body.__doc__ if inplace_of is None else f"In-place form of `{inplace_of}`."
    wrapped.__module__ = body.__module__
    wrapped.__annotations__ = body.__annotations__
    vars(wrapped).update(__signature__=signature.replace(parameters=parameters), __wrapped__=body)
    return wrapped


_MISSING = object()
_LISTS = frozenset((list, tuple))
_NUMBERS = frozenset((type(None), bool, int, float, complex))
"""The types of arguments that override nothing, whatever they stand for."""


def _synonyms(parameters: list[Any], also: Mapping[str, str]) -> dict[str, str]:
    """Other names of the parameters. What is given one by one (`*size`) may come as one tuple, by its name."""
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return {}
    names = {each.name for each in parameters}
    variadic = {each.name: each.name for each in parameters[:2] if each.kind is each.VAR_POSITIONAL}
    numpy = {theirs: ours for theirs, ours in NUMPY_NAMES.items() if ours in names and theirs not in names}
    return {**numpy, **variadic, **also}


def _late(parameters: list[Any], synonyms: dict[str, str]) -> list[str]:
    """The parameters that must be given, but perhaps under another name: those from the first such one on."""
    required = [
        each.name for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    renamable = [position for position, each in enumerate(required) if each in synonyms.values()]
    return required[renamable[0] :] if renamable else []


def _missing(function: str, given: dict[str, Any]) -> TypeError:
    names = ", ".join(f'"{name}"' for name, value in given.items() if value is _MISSING)
    return TypeError(f"{function}() missing {names.count(',') + 1} required positional arguments: {names}")


def _overriding_tests(parameters: list[Any], function: str) -> list[str]:
    """For each argument that may be a tensor, the test that it has a `__torch_function__`; what PyTorch wants to be a
    tensor and is none is refused on the way.
    """
    tests = []
    for position, each in enumerate(parameters, 1):
        name = each.name
        if not _is_tensor(each):
            continue
        test = f"(type({name}) not in NUMBERS or not DIRECT_TYPES) and has_override(({name},))"
        if each.annotation == "list[Tensor]":
            test = f"not (type({name}) in LISTS and DIRECT_TYPES and all_plain({name})) and has_override(({name},))"
        if _must_be_tensor(each):
            test = f"is_overriding({name}, {function!r}, {name!r}, {position})"
            if each.annotation == "Tensor | None":
                test = f"{name} is not None and {test}"
        tests.append(f"(type({name}) not in DIRECT_TYPES and {test})")
    return tests


def is_overriding(value: Any, function: str, argument: str, position: int) -> bool:
    """Whether an argument that must be a tensor has a `__torch_function__` to be heeded; what is no tensor is
    refused.
    """
    if has_override((value,)):
        return True
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )
    return False


def _must_be_tensor(parameter: Any) -> bool:
    if parameter.kind is parameter.VAR_POSITIONAL or parameter.name == "out":
        return False
    if parameter.annotation == "Tensor | None":
        return True
    return parameter.annotation == "Tensor" and parameter.default is parameter.empty


def _is_tensor(parameter: Any) -> bool:
    annotation = str(parameter.annotation)
    return "Tensor" in annotation or "Operand" in annotation


def renamed(
    function: Function,
    synonyms: dict[str, str],
    names: dict[str, Any],
    given: dict[str, Any],
    one_by_one: tuple[Any, ...],
) -> Any:
    """Call `function` with the arguments `names` under the names of its parameters.

    `given` are the others, and `one_by_one` what was given for a parameter such as `*size`.
    """
    parameters: Mapping[str, Any] = vars(function)["__signature__"].parameters
    for name, value in names.items():
        ours = synonyms.get(name)
        if ours is None:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
        if ours not in given:
            taken, one_by_one = bool(one_by_one), (value,)
        else:
            taken = given[ours] is not _MISSING and given[ours] is not parameters[ours].default
            given[ours] = value
        if taken:
            raise TypeError(f"{function.__name__}() got multiple values for argument '{ours}', once as '{name}'")
    if not one_by_one:
        return function(**given)
    first = [given.pop(each.name) for each in parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return function(*first, *one_by_one, **given)


def reordered(
    function: Callable[..., Result], orders: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Result:
    """Call `function` with arguments in a deprecated order: the one of `orders` that has as many."""
    fitting = [each.split() for each in orders if len(each.split()) == len(args)]
    order = next((each for each in fitting if len(fitting) == 1 or isinstance(args[each.index("input")], Tensor)), None)
    if order is None:
        raise TypeError(f"{function.__name__}() received an invalid combination of arguments: {len(args)} by position")
    warn_user(
        f"This overload of {function.__name__} is deprecated: {function.__name__}({', '.join(order)}). Give "
        "the numbers by keyword, after the tensors."
    )
    return function(**{**kwargs, **dict(zip(order, args, strict=True))})


def write_out(result: Result, out: Any, operands: tuple[Any, ...] = ()) -> Result:
    """Store a result, computed from `operands`, in the tensor(s) given as `out=`."""
    from ..changes.out import store

    stored: Any
    computed: Any = result
    if isinstance(computed, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(computed):
            raise TypeError(f"out= must be a tuple of {len(computed)} tensors")
        stored = tuple(store(each, into, operands) for each, into in zip(computed, out, strict=True))
        if hasattr(computed, "_fields"):
            stored = type(computed)(*stored)
    else:
        stored = store(computed, out, operands)
    kept: Result = stored
    return kept


place_family_members()
