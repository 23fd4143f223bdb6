"""What an operator of PyTorch runs here, found from its schema.

An operator is a public function under another name, with the arguments in another order or form: numbers for dtypes,
layouts and reductions, arguments that only PyTorch's kernels need. `_relatives.py` finds the others.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.reduction import REDUCTIONS
from .._core.tensor import Tensor
from .._dispatch.public import catalogue
from .._dispatch.public.overloads import overload_named
from .._dispatch.public.registry import function_named
from .._dispatch.public.schema import Argument, FunctionSchema
from .._dispatch.public.schemas import dispatched, schemas_of
from ..jit._language.composed import COMPOSED
from ..jit._language.numbers_of import dtype_of_number, layout_of_number, memory_format_of_number, number_of_dtype
from ..jit._language.plain import PLAIN
from ..jit._language.tensors import ADAPTED
from ._backwards import BACKWARDS
from ._gradients import GRADIENTS
from ._internals import INTERNALS
from ._layers import LAYERS
from ._quantizing import QUANTIZING
from ._sobol import SOBOL
from ._sparse import SPARSE
from ._updates import UPDATES

Body = Callable[..., Any]
"""Takes all arguments of a schema in its order."""

_WRITTEN: dict[str, Body] = {
    **ADAPTED, **COMPOSED, **BACKWARDS, **GRADIENTS, **INTERNALS, **LAYERS, **QUANTIZING, **SOBOL,
    **SPARSE, **UPDATES,
}  # fmt: skip
"""Functions that take the schema's arguments as they are, by the names of operators or of overloads: `mean.dim`."""

_PREFIXES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}
_SPACES = ("ops.aten", "", "nn.functional")


_SEARCHED: set[FunctionSchema] = set()
"""Schemas that are being looked for: a relative of theirs must not come back to them."""


@functools.cache
def body_of(schema: FunctionSchema) -> Body | None:
    """What takes an operator's arguments, all in the schema's order, and gives its results; None if nothing does."""
    from ._relatives import RELATIVES

    if schema in _SEARCHED:
        return None
    _SEARCHED.add(schema)
    try:
        return _direct(schema) or next((body for find in RELATIVES if (body := find(schema)) is not None), None)
    finally:
        _SEARCHED.discard(schema)


def _direct(schema: FunctionSchema) -> Body | None:
    """A function that is the operator."""
    name, overload = names_of(schema)
    kinds = [each.type_text for each in schema.arguments]
    of_lists = schema not in dispatched(name) and kinds[:1] == ["Tensor[]"]
    if name in PLAIN and (of_lists or not any("Tensor" in each for each in kinds)):
        return _of_plain_values(PLAIN[name], schema)
    function = _WRITTEN.get(f"{name}.{overload}") or _WRITTEN.get(name) or public_function(name)
    if function is None:
        return _of_plain_values(PLAIN[name], schema) if name in PLAIN else _by_op(schema)
    return taking(function, schema) if _takes_outs(function, schema) else None


def _by_op(schema: FunctionSchema) -> Body | None:
    """An op that is the operator, with the same parameters."""
    name, overload = names_of(schema)
    form = next((each for each in overload_named("aten", name, overload).forms if each.is_complete), None)
    if form is None:
        return None
    count = len(form.names)

    def body(*values: Any) -> Any:
        return form.op(*(form.bound(values[:count], {}) or ()))

    return body


def _of_plain_values(function: Body, schema: FunctionSchema) -> Body:
    """A function of numbers, strings, lists and dicts, which are made what the schema says that they are."""
    kinds = [_PLAIN_TYPES.get(each.type_text) for each in schema.arguments]
    keeps = any(each.type_text == "Tensor[]" for each in schema.arguments)

    def body(*values: Any) -> Any:
        values = tuple(each.item() if isinstance(each, Tensor) and not keeps else each for each in values)
        values = tuple(list(each) if isinstance(each, list) else each for each in values)  # the caller keeps its own
        made = [each if kind is None else kind(each) for each, kind in zip(values, kinds, strict=False)]
        result = function(*made, *values[len(kinds) :])
        kind = _PLAIN_TYPES.get(schema.returns[0].type_text) if len(schema.returns) == 1 else None
        return result if kind is None else kind(result)

    return body


_PLAIN_TYPES: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "complex": complex}


def names_of(schema: FunctionSchema) -> tuple[str, str]:
    """The names of an operator and of its overload."""
    return schema.name.partition("::")[2], schema.overload_name or "default"


def public_function(name: str) -> Any:
    """The public function or method that is the operator `name`, whatever it calls its parameters; None without one."""
    for space in _SPACES:
        if name in catalogue.FUNCTIONS[space]:
            return function_named(space, name)
    for prefix, space in _PREFIXES.items():
        if name.startswith(prefix) and name.removeprefix(prefix) in catalogue.FUNCTIONS[space]:
            return function_named(space, name.removeprefix(prefix))
    return getattr(Tensor, name, None)


@functools.cache
def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


_WITHOUT_OUT = frozenset({
    "bernoulli.float_out", "isinf.out", "isnan.out", "median.out", "nanmedian.out", "prod.out", "relu.out", "sum.out",
})  # fmt: skip
"""Overloads that only operators have: the public functions refuse `out=` with these arguments."""


def _takes_outs(function: Body, schema: FunctionSchema) -> bool:
    """Whether a function takes the tensors that results are stored in, if there are any."""
    if ".".join(names_of(schema)) in _WITHOUT_OUT:
        return False
    outs = [each.name for each in schema.arguments if each.is_out]
    known = {} if isinstance(function, property) else _parameters(function)
    return not outs or "out" in known or all(each in known for each in outs)


def taking(function: Any, schema: FunctionSchema) -> Body:
    """A body that hands the schema's arguments to a function under the names and in the forms that it has for them."""
    if isinstance(function, property):
        return lambda self: function.__get__(self)
    parameters = _parameters(function)
    places = _places(list(parameters.values()), schema)
    outs = [each.name for each in schema.arguments if each.is_out]
    outs = [] if all(each in parameters for each in outs) and outs != ["out"] else outs
    gives_number = [each.type_text for each in schema.returns] == ["ScalarType"]
    readers = [_reader(each, parameters.get(each.name)) for each in schema.arguments]

    def body(*values: Any) -> Any:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        stored = []
        for argument, value, place, read in zip(schema.arguments, values, places, readers, strict=True):
            if argument.name in outs:
                stored.append(value)
            elif place is None:
                _check_meaningless(schema, argument, value)
            elif place == "":
                args.append(read(value))
            elif value is not None or not argument.has_default_value():
                kwargs[place] = read(value)
        if stored:
            kwargs["out"] = stored[0] if len(stored) == 1 else tuple(stored)
        result = function(*args, **kwargs)
        return number_of_dtype(result) if gives_number else result

    return body


def _places(parameters: list[inspect.Parameter], schema: FunctionSchema) -> list[str | None]:
    """For each argument the name by which a function takes it, "" for by position, None if it does not take it."""
    names = {each.name for each in parameters}
    takes_all = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    takes_names = any(each.kind is each.VAR_KEYWORD for each in parameters)
    ours = {each.name for each in schema.arguments}
    places: list[str | None] = []
    in_order = True
    for number, argument in enumerate(schema.arguments):
        here = parameters[number] if number < len(parameters) else None
        fits = here is not None and here.kind is not here.KEYWORD_ONLY and not argument.kwarg_only
        unnamed = here is not None and here.name not in ours and argument.name not in names
        same = here is not None and (number == 0 or here.name == argument.name or unnamed)
        if (takes_all and not argument.kwarg_only and argument.name not in names) or (in_order and fits and same):
            places.append("")
        else:
            in_order = False
            places.append(argument.name if argument.name in names or takes_names else None)
    return places


def _check_meaningless(schema: FunctionSchema, argument: Argument, value: Any) -> None:
    """Refuse the value of an argument that nothing takes here, unless it changes nothing."""
    if value is None or value is False or argument.name in _ONLY_KERNELS:
        return
    if isinstance(value, Tensor) or not argument.has_default_value() or value != argument.default:
        raise NotImplementedError(f"{schema.name}: there is nothing here that takes {argument.name}={value!r}")


_ONLY_KERNELS = frozenset({
    "allow_tf32", "benchmark", "cudnn_enable", "cudnn_enabled", "deterministic", "implicit", "layout", "non_blocking",
    "pin_memory",
})  # fmt: skip
"""Arguments that say which kernel of PyTorch's runs, not what it computes."""


def _reader(argument: Argument, parameter: inspect.Parameter | None) -> Callable[[Any], Any]:
    """What a function takes for the value of an argument: the object in place of its number."""
    if argument.name == "reduction" and parameter is not None and isinstance(parameter.default, str):
        return lambda value: REDUCTIONS[value] if isinstance(value, int) else value
    convert = _NUMBERED.get(argument.type_text.rstrip("?"))
    return (lambda value: value) if convert is None else lambda value: convert(value) if type(value) is int else value


_NUMBERED = {"ScalarType": dtype_of_number, "MemoryFormat": memory_format_of_number, "Layout": layout_of_number}


def overload_like(schema: FunctionSchema, name: str, without: Sequence[Argument] = ()) -> FunctionSchema | None:
    """The overload of `name` with a schema's arguments but those in `without`, of the same types if there is one."""
    wanted = [each for each in schema.arguments if each not in without]
    names = [each.name for each in wanted]
    found = []
    for other in schemas_of("aten", name).values():
        shared = [each for each in other.arguments if each.name in names or not each.has_default_value()]
        if [each.name for each in shared] == names and other != schema:
            found.append((sum(a.type_text != b.type_text for a, b in zip(shared, wanted, strict=True)), other))
    return min(found, key=lambda each: (each[0], len(each[1].arguments)), default=(0, None))[1]


def called_like(functional: FunctionSchema, body: Body, names: Sequence[str]) -> Callable[..., Any]:
    """A body that is called with the values of some arguments alone, and by name with further ones."""

    def call(*values: Any, **further: Any) -> Any:
        given = dict(zip(names, values, strict=True)) | further
        return body(*(given.get(each.name, each.default_value) for each in functional.arguments))

    return call
