"""What users call: a function written as source around the one that computes.

Python itself binds the arguments. The function heeds `__torch_function__`, NumPy's and older names of parameters,
`out=` and autocast, looks at the types of flags and numbers, and explains the errors that leave it.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Mapping
from types import MappingProxyType, MethodType
from typing import Any, TypeVar, cast

from ..._core.modes import THREAD, Ruled
from ..._core.process.caller import GENERATED, warn_user
from ..._core.subclasses import all_plain
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..changes.inplace import run_inplace
from .namespaces import Namespace
from .overrides import has_override, run_override
from .places import is_compiled_at

Function = Callable[..., Any]
Body = TypeVar("Body", bound=Function)
Result = TypeVar("Result")
Writer = Callable[[Any, Any, tuple[Any, ...]], Any]
"""Stores a result, computed from operands, in what was given as `out=`."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})
CASTING: dict[Any, bool] = {}
"""The settings of threads with autocast on: if there are any, functions with a rule look into the thread's table."""

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""Keyword names of NumPy that PyTorch takes as well."""

LEADING = "namespace"
"""The first parameter of functions that are bound to a namespace; it takes no name from the others: only its position
counts."""

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


class _Spelling:
    """The parameters of a function, as its source spells them."""

    __slots__ = ("by_name", "keywords", "listed", "positional", "variadic")

    def __init__(
        self, listed: list[str], positional: list[str], by_name: list[str], keywords: list[str], variadic: str | None
    ) -> None:
        self.listed = listed
        """In the head of the function."""
        self.positional = positional
        """What is passed on by position."""
        self.by_name = by_name
        """What is passed on by name."""
        self.keywords = keywords
        """What is passed on by name, as entries of a dictionary."""
        self.variadic = variadic
        """The parameter that takes further positions, such as `*size`."""


def _spelling(parameters: list[Any], late: list[str], has_synonyms: bool, has_older: bool) -> _Spelling:
    listed, positional, keywords, by_name = [], [], [], []
    variadic = None
    marked = False  # whether what follows can be given by name only
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            variadic = each.name
            listed.append(f"*{each.name}")
            positional.append(f"*{each.name}")
            marked = True
            continue
        if each.kind is each.VAR_KEYWORD:
            listed.append(f"**{each.name}")
            keywords.append(f"**{each.name}")
            continue
        if each.kind is each.KEYWORD_ONLY:
            if not marked:
                listed.append("*further" if has_older else "*")
                marked = True
            keywords.append(f"{each.name!r}: {each.name}")
            by_name.append(f"{each.name}={each.name}")
        else:
            positional.append(each.name)
        default = "" if each.default is each.empty else f"=_{each.name}"
        listed.append(f"{each.name}{'=MISSING' if each.name in late else default}")
    if has_older and not marked:
        listed.append("*further")
    if has_synonyms:
        listed.append("**other_names")
    elif any(each.kind is each.VAR_KEYWORD for each in parameters):
        by_name.append(keywords[-1])
    return _Spelling(listed, positional, by_name, keywords, variadic)


def _computing(spelling: _Spelling, parameters: list[Any], takes_out: bool, casts: bool) -> tuple[str, str]:
    """The line that computes, and the one that stores in `out=`."""
    positional, by_name = spelling.positional, spelling.by_name
    passed = ", ".join([*positional, *(each for each in by_name if not (takes_out and each == "out=out"))])
    if not takes_out and not casts and spelling.variadic:
        # Calls with `*sizes` and names are the dearest ones, and mostly no name is given.
        absent = [
            f"{each.name} is _{each.name}"
            for each in parameters
            if each.kind is each.KEYWORD_ONLY and each.default is not each.empty
        ]
        if len(by_name) == len(absent) > 0:
            return f"return body({', '.join(positional)}) if {' and '.join(absent)} else body({passed})", ""
    compute = f"return {'(THREAD.modes.autocast[ruled] if CASTING else body)' if casts else 'body'}({passed})"
    if not takes_out:
        return compute, ""
    return f"if out is None: {compute}", f"(body if not CASTING else uncast(body))({passed})"


def _source(
    name: str,
    label: str,
    parameters: list[Any],
    synonyms: dict[str, str],
    takes_out: bool,
    has_older: bool,
    inplace_of: str | None,
    overridable: bool,
    casts: bool,
    leading: bool,
) -> str:
    late = _late(parameters, synonyms)
    spelling = _spelling(parameters, late, bool(synonyms), has_older)
    positional, keywords, variadic = spelling.positional, spelling.keywords, spelling.variadic
    named = ", ".join(each for each in keywords if not each.startswith("**"))
    given = ", ".join([*(f"{each!r}: {each}" for each in positional if each != f"*{variadic}"), named])
    tensors = ", ".join(each.name for each in parameters if overridable and _is_tensor(each)) or "None"
    compute, computed = _computing(spelling, parameters, takes_out, casts)
    if inplace_of is not None:
        rest = "".join(f"{each}, " for each in positional[1:])
        compute = f"return run_inplace(body, {inplace_of!r}, {positional[0]}, ({rest}), {{{', '.join(keywords)}}})"
    source = _TEMPLATE.format(
        name=name,
        label=label,
        kinds="\n        ".join(filter(None, (_kind_check(each, label) for each in parameters))),
        values=", ".join(f"{each.name!r}: {each.name}" for each in parameters),
        parameters=", ".join([f"{LEADING}, /", *spelling.listed] if leading else spelling.listed),
        overridden=(" or ".join(_overriding_tests(parameters, name)) if overridable else "")
        or "not DIRECT_TYPES and has_override(())",
        tensors=tensors,
        positional="".join(f"{each}, " for each in positional),
        keywords=", ".join(keywords),
        other_names=f"if other_names: return renamed(this, SYNONYMS, other_names, {{{given}}}, {variadic or '()'})"
        if synonyms
        else "",
        older=f"if further: return reordered(this, OLDER, ({', '.join(positional)}, *further), {{{named}}})"
        if has_older
        else "",
        missing=f"if {' or '.join(f'{each} is MISSING' for each in late)}: "
        f"raise missing({name!r}, {{{', '.join(f'{each!r}: {each}' for each in late)}}})"
        if late
        else "",
        compute=compute,
        out=f"return write_out({computed}, out, ({tensors},))" if computed else "",
    )
    return "\n".join(line for line in source.splitlines() if line.strip()) + "\n"


def with_protocol(
    body: Function,
    name: str,
    out: bool | Writer,
    label: str,
    also: Mapping[str, str] = NO_NAMES,
    older: tuple[str, ...] = (),
    inplace_of: str | None = None,
    overridable: bool = True,
    original: str | None = None,
    autocast: Mapping[str, Any] | None = None,
    owner: Namespace | None = None,
) -> Function:
    """`body` behind a function of the same signature that also heeds `__torch_function__`, NumPy's names and `out=`.

    The function is written out as source, so that Python itself binds the arguments, and kept where debuggers find it,
    under `label`: `sum` is one function, `masked.sum` another. With `inplace_of`, the name of the op, the result
    becomes the content of the first argument. A function that heeds `__torch_function__` by itself is not `overridable`
    here. `original` is the name under which it is documented, if that is another; `autocast` are its rules by type of
    device. With an `owner` it is bound to that, so that no class binds it.
    """
    import inspect

    from ..._codegen.machine.bytecode import compiled_sources  # not before a function is called
    from ..changes.exact_out import store_exactly
    from .docstrings.documentation import completed

    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    if inplace_of is not None:
        parameters = [each for each in parameters if each.name != "out"]
    if out:
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    synonyms = _synonyms(parameters, also)
    casts = overridable and inplace_of is None and autocast is not None
    leading = owner is not None
    source = _source(name, label, parameters, synonyms, bool(out), bool(older), inplace_of, overridable, casts, leading)
    is_method = not leading and is_compiled_at("", label)  # users call the function by its namespace
    file = f"{GENERATED}{'method' if is_method else 'function'} {label}>"
    defaults = {f"_{each.name}": each.default for each in parameters if each.default is not each.empty}
    scope = {
        "body": body, "CASTING": CASTING, "uncast": uncast, "DIRECT_TYPES": DIRECT_TYPES, "NUMBERS": _NUMBERS,
        "LISTS": _LISTS, "all_plain": all_plain, "has_override": has_override, "run_override": run_override,
        "is_overriding": is_overriding,
        "run_inplace": run_inplace,
        "explain": explain, "as_kind": as_kind,
        "MISSING": _MISSING, "missing": _missing, "SYNONYMS": synonyms, "renamed": renamed,
        "OLDER": older, "reordered": reordered, "write_out": out if callable(out) else store_exactly, **defaults,
    }  # fmt: skip
    if casts and autocast is not None:
        scope.update(ruled=Ruled(autocast, body), THREAD=THREAD)
    exec(compiled_sources([(file, source)])[0], scope)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    wrapped: Function = scope.pop(name)
    this = wrapped if owner is None else MethodType(wrapped, owner)
    scope["this"] = this  # not by its name, which a parameter may have too, or a function that it calls, as `type`
    own = body.__doc__ if inplace_of is None else f"In-place form of `{inplace_of}`."
    documented = inplace_of or original or label
    wrapped.__doc__ = completed(own, label, parameters, str(signature.return_annotation), documented)
    wrapped.__module__ = body.__module__
    wrapped.__annotations__ = body.__annotations__
    if leading:
        parameters.insert(0, inspect.Parameter(LEADING, inspect.Parameter.POSITIONAL_ONLY))
    vars(wrapped).update(__signature__=signature.replace(parameters=parameters), __wrapped__=body)
    return this


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


def takes_tensors(function: Function) -> bool:
    """Whether a parameter of a function may be a tensor, by its annotation."""
    import inspect

    return any(map(_is_tensor, inspect.signature(function).parameters.values()))


def with_leading(function: Function) -> Any:
    """The signature of a function with a parameter for its namespace in front."""
    import inspect

    signature = inspect.signature(function)
    leading = inspect.Parameter(LEADING, inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[leading, *signature.parameters.values()])


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
            raise unknown_keyword(function, name)
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


# ----- autocast -------------------------------------------------------------------------------------------------------


def uncast(own: Body) -> Body:
    """`own` within a region of autocast, on arguments as they are: what is stored in `out=` is not cast."""

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        from ..arguments.autocast import run_uncast

        return run_uncast(own, args, kwargs)

    return cast(Body, call)


# ----- types of arguments, and errors ---------------------------------------------------------------------------------


def explain(error: Exception, name: str, values: dict[str, Any], function: Function | None = None) -> None:
    """Raise a better error in place of one that leaves a public function, if there is one."""
    from . import explain as explaining  # most programs never need it

    explaining.explain(error, name, values, function)


def explain_call(
    error: Exception, name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise a better error in place of one that leaves a function which took its arguments as they came."""
    from . import explain as explaining

    explaining.explain_call(error, name, function, args, kwargs)


def check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call whose arguments fit none of PyTorch's forms of a function."""
    from . import explain as explaining

    explaining.check_call(name, args, kwargs)


def unknown_keyword(function: Function, name: str) -> TypeError:
    """What a call with a keyword that `function` does not have is told: the nearest one, and every form."""
    from . import explain as explaining

    return explaining.unknown_keyword(function, name)


def as_kind(name: str, parameter: str, value: Any, annotation: str = "") -> Any:
    """A flag, number or text that is of another type than usual, as the function takes it.

    It is refused if PyTorch does not take it, or if it is too large; tensors without dimensions and NumPy's scalars
    become the numbers that they hold.
    """
    from . import explain as explaining

    return explaining.as_kind(name, parameter, value, annotation)


FLAGS = frozenset((bool,))
"""The types of arguments that are flags."""
_UNUSUAL = {
    "bool": "{0} is not False and {0} is not True",
    "int": "type({0}) is not int or not -0x8000000000000000 <= {0} <= 0x7FFFFFFFFFFFFFFF",
    "float": "type({0}) is not float and type({0}) is not int",
    "str": "type({0}) is not str",
    "Number": "type({0}) is not float and type({0}) is not int",
}
"""By annotation the test that finds an argument that is to be looked at: of another type, or no number of 64 bits."""


def _kind_check(parameter: Any, label: str) -> str | None:
    """The line that looks at the type of an argument, and converts it, if its annotation says what is usual."""
    annotation, _, optional = str(parameter.annotation).partition(" | ")
    single = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if not single or annotation not in _UNUSUAL or optional not in ("", "None"):
        return None
    tests = [f"({_UNUSUAL[annotation]})"]
    if optional:
        tests.insert(0, "{0} is not None")
    elif parameter.default is not parameter.empty and annotation != "bool":
        tests.insert(0, "{0} is not _{0}")
    converted = f"{{0}} = as_kind({label!r}, {parameter.name!r}, {{0}}, {annotation!r})"
    return f"if {' and '.join(tests)}: {converted}".format(parameter.name)


def with_types(refusing: Function) -> Function:
    """A function that refuses every call, but looks at the types of its arguments first, as PyTorch's does."""

    @functools.wraps(refusing)
    def function(*args: Any, **kwargs: Any) -> Any:
        check_call(refusing.__name__, args, kwargs)
        return refusing(*args, **kwargs)

    return function
