"""The table of everything that a program may call. A name that is not in it is refused when a program comes to it.

`torch.add` and `ops.aten.add` mean the operator `aten::add`, whose overload follows from the arguments: on numbers,
strings, lists and dicts it is a function of `plain.py`, on tensors the package's own function of that name, where
PyTorch's schemas have it, or one of `tensors.py`, where its arguments differ.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..._dispatch.public import catalogue
from ..._dispatch.public.explain import forms_of
from ..._dispatch.public.overloads import packet
from ..._dispatch.public.registry import function_named
from ..._dispatch.public.schema import FunctionSchema
from ..._dispatch.public.schemas import dispatched
from .composed import COMPOSED
from .numbers_of import dtype_of_number, layout_of_number, memory_format_of_number, words
from .plain import PLAIN
from .prims import FREE, PRIMS
from .tensors import ADAPTED, LISTS, OLDER

BUILTINS = FREE

_REFUSED = frozenset({"from_file", "save", "load", "numpy", "tolist", "backward", "apply_", "map_", "map2_"})
"""Names that files must not reach: they open other files, or call Python."""

_SPACES = ("ops.aten", "")
_PREFIXES = ("linalg", "fft", "special")
_CONVERSIONS: dict[str, Callable[[int], Any]] = {
    "ScalarType": dtype_of_number,
    "Layout": layout_of_number,
    "MemoryFormat": memory_format_of_number,
}
_BY_NAME = {
    "dtype": dtype_of_number,
    "out_dtype": dtype_of_number,
    "layout": layout_of_number,
    "memory_format": memory_format_of_number,
}


def operator_named(name: str, version: int) -> Callable[..., Any]:
    """What runs a call of `torch.…` or `ops.….…`; an operator that does not exist is an error once it is called."""
    space, _, last = name.partition(".")
    if space == "ops":
        space, _, last = last.partition(".")
        if space == "prim" and last in PRIMS:
            return PRIMS[last]
        if space not in ("aten", "prim"):
            return _custom(space, last)
    elif last == "device":
        return FREE["device"]
    if space != "prim" and last in OLDER and version <= OLDER[last][0]:
        return OLDER[last][1]
    return _operator(last) or _missing(f"{'prim' if space == 'prim' else 'aten'}::{last}")


def has_operator(name: str) -> bool:
    """Whether a program may call `torch.{name}`."""
    return _operator(name) is not None


def _missing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"the program calls {name[:200]}, which Flambeau does not have")

    return refuse


def _custom(space: str, name: str) -> Callable[..., Any]:
    """An operator that the user's own program has registered."""

    def call(*args: Any, **kwargs: Any) -> Any:
        import flambeau

        # A file may call what the program has registered, and nothing else that could be found under such a name.
        if name not in flambeau.ops._custom.OPERATORS.get(space, {}):
            return _missing(f"{space}::{name}")()
        return getattr(getattr(flambeau.ops, space), name)(*args, **kwargs)

    return call


@functools.cache
def _operator(name: str) -> Callable[..., Any] | None:
    plain, of_tensors = PLAIN.get(name), _on_tensors(name)
    if plain is None or of_tensors is None:
        return plain or of_tensors

    def call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        if isinstance(first, Tensor) or (
            not isinstance(first, (list, dict, str)) and any(isinstance(each, Tensor) for each in args)
        ):
            return of_tensors(*args, **kwargs)
        return plain(*args, **kwargs)

    return call


def _on_tensors(name: str) -> Callable[..., Any] | None:
    if name in ADAPTED:
        return ADAPTED[name]
    function = _public(name)
    if name in _OTHERWISE or (function is not None and _differs(name, function)):
        return _by_schema(name)
    return None if function is None else _with_numbers(name, function)


_OTHERWISE = frozenset(words(
    "__and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __or__ __xor__ _log_softmax _unsafe_view alias "
    "as_tensor atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod col2im "
    "cpu ctc_loss einsum element_size expand floordiv hardsigmoid_ hardswish_ im2col index_put index_put_ "
    "is_contiguous log_sigmoid manual_seed meshgrid mish_ nll_loss2d norm output_nr reflection_pad1d "
    "reflection_pad2d reflection_pad3d relu6_ replication_pad1d replication_pad2d replication_pad3d requires_grad_ "
    "retain_grad silu_ split storage_offset stride tensor to where"
))  # fmt: skip
"""Operators whose arguments are not those of a public function of their name: their schemas say how to call them."""


def _functional_schemas(name: str) -> list[FunctionSchema]:
    return [each for each in dispatched(name) if not any(argument.is_out for argument in each.arguments)]


def _differs(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function takes other arguments than the operator of its name, which has one list of them."""
    schemas = _functional_schemas(name)
    parameters = list(inspect.signature(function).parameters.values()) if len(schemas) == 1 else []
    if not parameters:
        return False
    arguments = [each for each in schemas[0].arguments if not each.kwarg_only]
    pairs = list(zip(arguments, parameters, strict=False))
    return len(pairs) < len(arguments) or any(
        parameter.kind is parameter.KEYWORD_ONLY
        or (number and argument.name != parameter.name)
        or (argument.name == "reduction" and isinstance(parameter.default, str))  # a word, not its number
        for number, (argument, parameter) in enumerate(pairs)
    )


def _by_schema(name: str) -> Callable[..., Any]:
    """What binds arguments by an operator's schema, and hands them to what the operator runs here."""
    schemas = _functional_schemas(name)
    if len(schemas) == 1:
        return _bound(schemas[0], name)
    chosen: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        kinds = (*map(_kind, args), *kwargs)
        if kinds not in chosen:
            operator = packet("aten", name)
            fitting = operator.fitting(args, kwargs)
            if fitting is None:
                return operator(*args, **kwargs)  # a number may be given as a tensor, or nothing fits
            chosen[kinds] = _bound(fitting._schema, name)
        return chosen[kinds](*args, **kwargs)

    return call


def _kind(value: Any) -> Any:
    """What tells the overloads of an operator apart: a type, of a list that of its first item too."""
    return (list, type(value[0]) if value else None) if type(value) is list else type(value)


def _bound(schema: Any, name: str) -> Callable[..., Any]:
    places = {each.name: number for number, each in enumerate(schema.arguments)}
    defaults = [each.default for each in schema.arguments]
    gives_list = name in LISTS
    body: Any = functools.cache(lambda: SLOTS.operator_body(schema))  # not before it is needed: it loads all ops

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *defaults[len(args) :]]
        for each, value in kwargs.items():
            values[places[each]] = value
        result = body()(*values)
        return list(result) if gives_list and isinstance(result, tuple) else result

    return call


def _public(name: str) -> Callable[..., Any] | None:
    """The package's function or method that takes the arguments of the operator."""
    found: Callable[..., Any]
    if name in _REFUSED or not dispatched(name) or name.startswith("__"):
        return None
    if name in COMPOSED:
        return COMPOSED[name]
    for space in _SPACES:
        if name in catalogue.FUNCTIONS[space]:
            return function_named(space, name)
    for space in _PREFIXES:
        last = name.removeprefix(f"{space}_")
        if last != name and last in catalogue.FUNCTIONS[space]:
            return function_named(space, last)
    if name in catalogue.METHODS:
        found = getattr(Tensor, name)
        return found if callable(found) else lambda value: getattr(value, name)
    return function_named("nn.functional", name) if name in catalogue.FUNCTIONS["nn.functional"] else None


def _positions(name: str) -> dict[int, Callable[[int], Any]]:
    """The positions at which every form of an operator has a dtype, layout or memory format."""
    forms = forms_of(name)
    found: dict[int, Callable[[int], Any]] = {}
    for place in range(max(map(len, forms), default=0)):
        kinds = {form[place].kind for form in forms if len(form) > place and not form[place].by_name}
        if len(kinds) == 1:
            convert = _CONVERSIONS.get(kinds.pop())
            if convert is not None:
                found[place] = convert
    return found


def _with_numbers(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, given dtypes where the program has the numbers that stand for them."""
    positions, gives_list = _positions(name), name in LISTS
    if not positions and not gives_list:

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **by_name(kwargs)) if kwargs else function(*args)

        return call

    def call_converted(*args: Any, **kwargs: Any) -> Any:
        converted = list(args)
        for place, convert in positions.items():
            if place < len(args) and type(args[place]) is int:
                converted[place] = convert(args[place])
        result = function(*converted, **by_name(kwargs))
        return list(result) if gives_list and isinstance(result, (tuple, list)) else result

    return call_converted


def by_name(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, without those that are None, and with dtypes in the place of their numbers."""
    return {
        name: _BY_NAME[name](value) if name in _BY_NAME and type(value) is int else value
        for name, value in kwargs.items()
        if value is not None
    }
