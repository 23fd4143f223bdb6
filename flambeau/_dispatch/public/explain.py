"""What a user reads when a call fails: PyTorch's type of error and words, and nothing of what is below.

`explain` runs only when an error leaves a public function, so a call that succeeds pays nothing for it. It looks at
three things, in this order: whether PyTorch would have taken arguments of these types at all, whether memory ran out,
and whether the error was meant for a user or comes from the array library or from Python itself.
"""

from __future__ import annotations

import copy
import dis
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from ..._core.device import device, layout, memory_format
from ..._core.dtype import INTEGER, LEGACY_NAMES, dtype, is_packed
from ..._core.names.error_classes import OutOfMemoryError
from ..._core.process.caller import GENERATED, PACKAGE
from ..._core.process.tracebacks import leave_out_library
from ..._core.size import fits_int64
from ..._core.tensor import Tensor
from ..._core.text.memory_errors import out_of_memory
from ..arguments.scalar import integer
from .overrides import has_override
from .protocol import NUMPY_NAMES
from .schema import Argument, FunctionSchema, parse
from .schemas import dispatched, schemas_of, written_in_python
from .written_forms import WRITTEN

_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_RAISES = dis.opmap["RAISE_VARARGS"]

_WORDS = {
    "Scalar": "Number",
    "ScalarType": "torch.dtype",
    "Device": "torch.device",
    "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format",
    "Generator": "torch.Generator",
    "int[]": "tuple of ints",
    "float[]": "tuple of floats",
    "Scalar[]": "tuple of Scalars",
    "bool[]": "tuple of bools",
    "Tensor[]": "tuple of Tensors",
    "Tensor?[]": "tuple of Tensors",
}
_OTHER_SPACES = ("masked.", "signal.", "result_type")
"""Written in Python by PyTorch: functions of the same names as ops, with parameters of their own. And a function whose
forms have one name for different places."""

_OWN_PARSER = (
    "quantized_gru", "quantized_lstm", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
    "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor",
)  # fmt: skip
"""Functions that find out by themselves what they were given."""

_KEPT: dict[type[Exception], type[Exception]] = {
    TypeError: TypeError,
    AttributeError: TypeError,
    IndexError: IndexError,
    NotImplementedError: NotImplementedError,
    ZeroDivisionError: ZeroDivisionError,
}
"""What becomes of errors that are not meant for users; of all others, a RuntimeError."""


class _Parameter:
    """One parameter of a form of an op."""

    __slots__ = ("by_name", "has_default", "is_optional", "is_symbolic", "kind", "length", "name")

    def __init__(self, argument: Argument) -> None:
        self.name = "input" if argument.name == "self" else argument.name
        self.has_default = argument.has_default_value()
        self.by_name = argument.kwarg_only
        kind = argument.type_text.replace("SymInt", "int")
        self.is_symbolic = kind != argument.type_text
        self.is_optional = kind.endswith("?")
        self.length = argument.N or 0
        self.kind = re.sub(r"\[\d+\]", "[]", kind.removesuffix("?"))

    def renamed(self, name: str) -> _Parameter:
        """A copy of this parameter under another name."""
        other = copy.copy(self)
        other.name = name
        return other

    def takes(self, value: Any) -> bool:
        """Whether PyTorch takes `value` here, as far as its type goes."""
        if value is None:
            return self.is_optional or not (self.kind in _CHECKS or self.kind.endswith("[]"))
        if self.length and self.kind in ("int[]", "float[]") and _is_listed(self.kind[:-2], value):
            return not isinstance(value, np.ndarray)
        if self.is_symbolic and self.kind == "int" and isinstance(value, (Tensor, np.ndarray)):
            return integer(value) is not None
        if self.kind.endswith("[]"):
            if not isinstance(value, (tuple, list)):
                return False
            # PyTorch looks at the first integer more closely than at the others.
            kind = self.kind[:-2]
            return all(_is_listed(kind, each) or (place and isinstance(each, bool)) for place, each in enumerate(value))
        return _is_one(self.kind, value)


def _is_one(kind: str, value: Any) -> bool:
    if isinstance(value, Tensor):
        if kind in ("Any", "Tensor", "Tensor?"):
            return True
        if value.dim() or value.requires_grad:
            return False
        if kind == "int":
            return value._kind.dtype.category == INTEGER
        return kind in ("float", "Scalar")
    check = _CHECKS.get(kind)
    return True if check is None else check(value) or has_override((value,))


def _is_listed(kind: str, value: Any) -> bool:
    """Whether a list takes `value` as an item: a tensor of one integer that is not recorded is an integer there."""
    if kind == "int" and isinstance(value, (Tensor, np.ndarray)):
        return integer(value) is not None
    return _is_one(kind, value) and not (kind == "float" and isinstance(value, Tensor))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number, np.bool_))


def _is_int(value: Any) -> bool:
    return not isinstance(value, (bool, np.bool_, np.ndarray)) and hasattr(value, "__index__")


def _is_generator(value: Any) -> bool:
    from ..._core.generator import Generator

    return isinstance(value, Generator)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: False,
    "Tensor?": lambda value: value is None,
    "Scalar": _is_number,
    "float": lambda value: isinstance(value, (int, float, np.floating, np.integer, np.bool_)),
    "int": _is_int,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, (str, bytes)),
    "ScalarType": lambda value: isinstance(value, dtype) or value in (float, int, bool, complex),
    "Device": lambda value: isinstance(value, (device, str, bytes)) or _is_int(value),
    "Layout": lambda value: isinstance(value, layout),
    "MemoryFormat": lambda value: isinstance(value, memory_format),
    "Generator": _is_generator,
}

Form = tuple[_Parameter, ...]


@functools.cache
def forms_of(name: str) -> tuple[Form, ...]:
    """The forms in which PyTorch takes the arguments of a public function; none if it is not an op there."""
    if name.startswith(_OTHER_SPACES):
        return ()
    written = WRITTEN.get(name) or WRITTEN.get(_short(name))
    if written is not None:
        return (form_of(parse(f"{name}({written}) -> Tensor")),)
    key = _short(name)
    if key in written_in_python() or key in _OWN_PARSER:
        return ()
    schemas = [each for each in dispatched(key) if not any(one.is_out for one in each.arguments)]
    forms = {_signature(form): form for form in map(form_of, schemas)}
    return tuple([forms[each] for each in sorted(forms)])


def form_of(schema: FunctionSchema) -> Form:
    """The parameters of a schema."""
    return tuple([_Parameter(each) for each in schema.arguments])


def _signature(form: Form) -> str:
    """A form as a text that says all of it but the defaults' values."""
    shown = [
        f"{each.kind}{each.length}{'?' * each.is_optional} {each.name}{'=' * each.has_default}{'*' * each.by_name}"
        for each in form
    ]
    return ", ".join(shown)


def _short(name: str) -> str:
    """The name of a public function as PyTorch's errors have it."""
    return name.removeprefix("nn.functional.").removeprefix("ops.aten.").replace(".", "_")


def _misfit(form: Form, values: Mapping[str, Any], known: set[str]) -> _Parameter | None:
    """The first parameter of `form` that the values do not fit; None if the form takes them."""
    for parameter in form:
        if parameter.name in values and not parameter.takes(values[parameter.name]):
            return parameter
    own = {parameter.name for parameter in form}
    for name, value in values.items():
        if name in known and name not in own and value is not None and value is not False:
            return _Parameter(Argument(name, "None"))
    return None


def _beyond(form: Form, values: Mapping[str, Any]) -> Iterator[tuple[_Parameter, int | None]]:
    """The integers that do not fit into 64 bits, with their place in a tuple."""
    for parameter in form:
        value = values.get(parameter.name)
        if parameter.kind == "int" and _is_huge(value):
            yield parameter, None
        elif parameter.kind == "int[]":
            if _is_huge(value):
                yield parameter, None
            elif isinstance(value, (tuple, list)):
                yield from ((parameter, place) for place, each in enumerate(value, 1) if _is_huge(each))


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and not fits_int64(value)


def _overflow(function: str, parameter: str) -> ValueError:
    return ValueError(f"Overflow when unpacking long long: {function}() was given a {parameter} beyond 64 bits")


def _kind_of(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        inner = ", ".join(type(each).__name__ for each in value[:8])
        return f"{type(value).__name__} of ({inner}{',' if len(value) == 1 else ''})"
    return type(value).__name__


def _aligned(form: Form, order: list[str], values: Mapping[str, Any]) -> Form:
    """The form with our names for parameters that are called otherwise in it: `src` is `value` where it is a number."""
    own = {parameter.name for parameter in form}
    result = []
    for position, parameter in enumerate(form):
        ours = order[position] if position < len(order) else parameter.name
        absent = values.get(parameter.name) is None
        if absent and not parameter.by_name and ours not in own and ours not in _SIZE_LISTS:
            parameter = parameter.renamed(ours)
        result.append(parameter)
    return tuple(result)


def check_types(name: str, values: Mapping[str, Any], order: list[str]) -> None:
    """Refuse arguments whose types fit none of PyTorch's forms of this function; `order`: of all its parameters."""
    forms = forms_of(name)
    if not forms or (name in NUMBERS_AS_TENSORS and all(map(_is_number, list(values.values())[:2]))):
        return
    if name in _BY_NUMBER:
        return
    if name.startswith("nn.functional."):
        forms = tuple([tuple([each for each in form if each.name not in _OTHERWISE]) for form in forms])
    else:
        forms = tuple([_aligned(form, order, values) for form in forms])
    known = {parameter.name for form in forms for parameter in form}
    values = _by_their_names(values, known)
    misfits = []
    for form in forms:
        misfit = _misfit(form, values, known)
        if misfit is None:
            for parameter, place in _beyond(form, values):
                if place is None:
                    raise _overflow(name, parameter.name)
                raise TypeError(
                    f"{name}(): argument '{parameter.name}' failed to unpack the object at pos {place} with error "
                    '"Overflow when unpacking long long"'
                )
            return
        misfits.append(misfit)
    short = _short(name)
    same = {(each.name, each.kind) for each in misfits}
    if len(same) == 1 and misfits[0].kind != "None":
        misfit = misfits[0]
        position = [each.name for each in forms[0]].index(misfit.name) + 1 if len(forms) == 1 else 0
        where = f" (position {position})" if position and not misfit.by_name else ""
        raise TypeError(_one_misfit(short, misfit, values[misfit.name], [each.name for each in forms[0]], where))
    given = ", ".join(f"{word}={_kind_of(value)}" for word, value in values.items() if word in known)
    expected = "".join(f"\n * ({', '.join(map(_described, form))})" for form in forms)
    raise TypeError(
        f"{short}() received an invalid combination of arguments - got ({given}), but expected one of:{expected}"
    )


def _one_misfit(function: str, misfit: _Parameter, value: Any, order: list[str], where: str) -> str:
    """What is wrong with one argument."""
    if misfit.kind.endswith("[]") and isinstance(value, (tuple, list)):
        number, wrong = next((at, each) for at, each in enumerate(value) if not _is_listed(misfit.kind[:-2], each))
        found = type(wrong).__name__
        if misfit.kind == "Tensor[]":
            return f"expected Tensor as element {number} in argument {order.index(misfit.name)}, but got {found}"
        found = f"but found element of type {found} at pos {number + 1}"
    else:
        found = f"not {type(value).__name__}"
    return f"{function}(): argument '{misfit.name}'{where} must be {_WORDS.get(misfit.kind, misfit.kind)}, {found}"


def _described(parameter: _Parameter) -> str:
    return f"{_WORDS.get(parameter.kind, parameter.kind)} {parameter.name}"


_BY_NUMBER = ("result_type", "_native_batch_norm_legit")
"""Functions whose arguments have other names in each form: they look at them themselves."""
NUMBERS_AS_TENSORS = ("add", "div", "divide", "floor_divide", "mul", "multiply", "sub", "subtract", "true_divide")
"""Functions that take two numbers, too: PyTorch makes tensors of them."""
_OTHERWISE = ("reduction", "train", "output_ratio", "output_size")
"""Parameters of `nn.functional` that are of another type than those of the ops below it."""
_SIZES = ("size", "dims", "shape", "repeats")
_SIZE_LISTS = ("sizes", "more", "bounds", "bounds_and_size", "args", "options", "out")


def _by_their_names(values: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    """The arguments that a form can have; sizes that were given one by one are put together."""
    found = {name: value for name, value in values.items() if name in known}
    target = next((name for name in _SIZES if name in known), None)
    if target is None:
        return found
    if "sizes" in values and found.get(target) is None:
        found[target] = values["sizes"]
    given = found.get(target)
    if "more" in values:
        given = (given, *values["more"])
    if isinstance(given, tuple) and len(given) == 1 and ("more" in values or isinstance(given[0], (tuple, list))):
        given = given[0] if isinstance(given[0], (tuple, list)) or not _is_int(given[0]) else given
    if given is not None:
        found[target] = given
    return found


def _fits(form: Form, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a form of an op takes these arguments, as far as their number and types go."""
    by_position = [each for each in form if not each.by_name]
    values = {each.name: value for each, value in zip(by_position, args, strict=False)} | dict(kwargs)
    names = {each.name for each in form}
    if len(args) > len(by_position) or not values.keys() <= names:
        return False
    if kwargs.keys() & {each.name for each in by_position[: len(args)]}:
        return False
    return all(each.has_default or each.name in values for each in form) and _misfit(form, values, names) is None


@functools.cache
def _form_of_schema(schema: FunctionSchema, may_be_number: bool) -> Form:
    """The parameters of a schema as operators take them: numbers stand for dtypes, and some for tensors."""
    form = form_of(schema)
    for each in form:
        if each.kind in ("ScalarType", "Layout", "MemoryFormat") or (may_be_number and each.kind == "Tensor"):
            each.kind = "Any"
    return form


def takes_numbers(operator: str) -> bool:
    """Whether an operator takes a number for a tensor."""
    return operator.removesuffix("_") in NUMBERS_AS_TENSORS


def fits(schema: FunctionSchema, args: tuple[Any, ...], kwargs: Mapping[str, Any], may_be_number: bool = False) -> bool:
    """Whether a schema takes these arguments; with `may_be_number` a number for a tensor too."""
    if schema.is_vararg:
        return True
    words = {"input" if word == "self" else word: value for word, value in kwargs.items()}
    return _fits(_form_of_schema(schema, may_be_number), args, words)


def check_schema(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse a call of the operator `aten.name` as PyTorch does, where a function raises a TypeError."""
    fitting = any(fits(each, args, kwargs) for each in schemas_of("aten", name).values())
    if not fitting or any(map(_is_huge, (*args, *kwargs.values()))):
        raise refusal_of_schemas(name, args, kwargs)


def refusal_of_schemas(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> RuntimeError:
    """What says that no schema of the operator `aten.name` takes these arguments."""
    given = ", ".join([*map(_kind_of, args), *(f"{word}={_kind_of(value)}" for word, value in kwargs.items())])
    expected = "".join(f"\n{each}" for each in schemas_of("aten", name).values())
    return RuntimeError(
        f"aten::{name}() Expected a value of another type for one of its arguments, or another number of them: it "
        f"was given ({given}). Overloaded torch operator invoked from Python failed to match any schema:{expected}"
    )


def check_call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse a call whose arguments fit none of PyTorch's forms of a function."""
    forms = forms_of(name)
    # What comes with every function is not a part of the forms.
    kwargs = {word: value for word, value in kwargs.items() if word not in ("out", "requires_grad")}
    renamed = {NUMPY_NAMES.get(word, word): value for word, value in kwargs.items()}
    if forms and not any(_fits(form, args, words) for form in forms for words in (kwargs, renamed)):
        for position, (parameter, value) in enumerate(zip(forms[0], args, strict=False), 1):
            if len(forms) == 1 and not parameter.by_name and not parameter.takes(value):
                order = [each.name for each in forms[0]]
                raise TypeError(_one_misfit(_short(name), parameter, value, order, f" (position {position})"))
        given = ", ".join([*map(_kind_of, args), *(f"{word}={_kind_of(value)}" for word, value in kwargs.items())])
        expected = "".join(f"\n * ({', '.join(map(_described, form))})" for form in forms)
        raise TypeError(
            f"{_short(name)}() received an invalid combination of arguments - got ({given}), but expected one of:"
            f"{expected}"
        )


def as_kind(name: str, parameter: str, value: Any, annotation: str = "") -> Any:
    """A flag, number or text of another type than usual as the function takes it; refused if PyTorch does not take it.

    Tensors without dimensions and NumPy's scalars become the numbers that they hold, unless a form of the function
    takes a tensor there.
    """
    if name.startswith("nn.functional.") and parameter in _OTHERWISE:
        return value
    forms = forms_of(name)
    found = [(each, place) for form in forms for place, each in enumerate(form, 1) if each.name == parameter]
    if parameter == "requires_grad":
        found = found or [
            (_Parameter(Argument("requires_grad", "bool?", kwarg_only=True)), 0)
        ]  # of every function that makes a tensor
    taking = [each for each, _ in found if each.takes(value)]
    if found and not taking:
        misfit, place = found[0]
        where = f" (position {place})" if len(forms) == 1 and not misfit.by_name else ""
        raise TypeError(_one_misfit(_short(name), misfit, value, [parameter], where))
    if _is_huge(value) and found and all(each.kind == "int" for each, _ in found):
        raise _overflow(name, parameter)
    if isinstance(value, (Tensor, np.generic, np.ndarray)):
        kinds = {each.kind for each in taking} or {_KINDS.get(annotation, annotation)}
        return value if any(each.startswith("Tensor") for each in kinds) else _as_number(value, min(kinds))
    return value


_KINDS = {"Number": "Scalar"}
"""The kinds of annotations that are called otherwise, for functions that PyTorch has written in Python."""


def _as_number(value: Any, kind: str) -> Any:
    """The number in a tensor without dimensions or a scalar of NumPy's."""
    if kind == "int":
        whole = integer(value)
        return value if whole is None else whole
    if isinstance(value, np.ndarray) or (isinstance(value, Tensor) and (value.dim() or value.requires_grad)):
        return value
    number = value.item()
    return float(number) if kind == "float" and isinstance(number, int) else number


def unknown_keyword(function: Callable[..., Any], keyword: str) -> TypeError:
    """The error for a keyword that `function` does not have: it names the nearest one, and lists the valid forms."""
    import difflib

    name = function.__name__
    parameters = inspect.signature(function).parameters
    close = difflib.get_close_matches(keyword, parameters, 1)
    told = f"got an unexpected keyword argument '{keyword}'" + (f" (did you mean '{close[0]}'?)" if close else "")
    forms = [f"({', '.join(map(_described, form))})" for form in forms_of(name)]
    if len(forms) > 1:
        listed = "".join(f"\n * {each}" for each in forms)
        return TypeError(
            f"{name}() received an invalid combination of arguments - {told}, but expected one of:{listed}"
        )
    return TypeError(f"{name}() {told}; it takes {forms[0] if forms else '(' + ', '.join(parameters) + ')'}")


def explain(error: Exception, name: str, values: Mapping[str, Any], function: Callable[..., Any] | None = None) -> None:
    """Raise a better error in place of `error`, which leaves the public function `name`.

    If there is none, return: the traceback of `error` then shows the user's lines and the one that raised.
    """
    _raise_better(error, name, values, function)
    leave_out_library(error)


def _raise_better(error: Exception, name: str, values: Mapping[str, Any], function: Callable[..., Any] | None) -> None:
    if isinstance(error, (OutOfMemoryError, Warning)):
        return
    if isinstance(error, MemoryError):
        raise out_of_memory(error) from None
    from ..._core.arrays.abstract import NeedsData

    if isinstance(error, NeedsData):
        _refuse_without_data(name, values)
    if name.startswith("nn.functional.") and isinstance(error, ValueError) and _is_meant(error):
        return  # PyTorch, too, looks at some values there before it looks at types
    try:
        check_types(name, _given(values, function), list(values))
    except (TypeError, ValueError) as found:
        if type(found) is type(error) and _is_meant(error):
            return  # it says the same, and more
        raise found.with_traceback(None) from None
    if not _is_meant(error):
        _translate(error, name, values)


def _refuse_without_data(name: str, values: Mapping[str, Any]) -> NoReturn:
    """Say that a call needs elements of tensors that have none."""
    devices = list(dict.fromkeys([each.device for each in _tensors(list(values.values()))]))
    if len(devices) > 1:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {devices[0]} and "
            f"{devices[1]}! (in {name}; move one of them with .to('{devices[0]}'))"
        ) from None
    raise NotImplementedError(
        f"Cannot copy out of meta tensor; no data! {name} needs the elements of: {_shown(values)}"
    ) from None


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in _tensors(each)]
    return [value] if isinstance(value, Tensor) else []


def _given(values: Mapping[str, Any], function: Callable[..., Any] | None) -> Mapping[str, Any]:
    """The values that are not the defaults of the parameters."""
    if function is None:
        return values
    parameters = inspect.signature(function).parameters
    found = {}
    for name, value in values.items():
        parameter = parameters.get(name)
        if parameter is None or parameter.default is not value:
            # Sizes come one by one, or together as one of them.
            together = parameter is not None and parameter.kind is parameter.VAR_POSITIONAL and len(value) == 1
            found[name] = value[0] if together and isinstance(value[0], (tuple, list)) else value
    return found


def explain_call(error: Exception, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Raise a better error, if there is one, for a function that was called with `args` and `kwargs`."""
    try:
        values: Mapping[str, Any] = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError as unbound:
        if not _is_meant(error):
            raise TypeError(f"{name}() {unbound}") from None
        return
    explain(error, name, values)


_UNDERSTANDABLE = ("read-only", "step cannot be zero")
"""Phrases of Python's and the array library's that say in a user's terms what is wrong, as PyTorch's do."""


def _packed(values: Mapping[str, Any]) -> dtype | None:
    """A type without arithmetic among the arguments, or that of a tensor among them."""
    found = (each.dtype if isinstance(each, Tensor) else each for each in values.values())
    return next((each for each in found if isinstance(each, dtype) and is_packed(each)), None)


def _translate(error: Exception, name: str, values: Mapping[str, Any]) -> NoReturn:
    text = str(error)
    packed = _packed(values)
    if packed is not None:
        raise NotImplementedError(
            f'"{name}" not implemented for {LEGACY_NAMES[packed]!r}: tensors of {packed} have bytes, and no numbers'
        ) from error
    if isinstance(error, ValueError) and any(phrase in text for phrase in _UNDERSTANDABLE):
        raise error
    if isinstance(error, OverflowError) and any(_is_huge(each) for each in values.values()):
        raise OverflowError(f"{name}(): a number does not fit into the dtype: {_shown(values)}") from error
    if "array is too big" in text or "Maximum allowed dimension" in text or isinstance(error, OverflowError):
        raise RuntimeError(f"{name}(): Storage size calculation overflowed: {_shown(values)}") from error
    if isinstance(error, TypeError) and _is_converted(name, values):
        raise RuntimeError(
            f"{name}(): value cannot be converted to type double without overflow: {_shown(values)}"
        ) from error
    kind = next((target for source, target in _KEPT.items() if isinstance(error, source)), RuntimeError)
    raise kind(f"{name}(): these arguments do not go together: {_shown(values)}") from error


def _is_converted(name: str, values: Mapping[str, Any]) -> bool:
    """Whether a complex number was given where PyTorch takes any number, and converts it."""
    converted = {parameter.name for form in forms_of(name) for parameter in form if parameter.kind == "Scalar"}
    return any(isinstance(value, complex) and word in converted for word, value in values.items())


def _shown(values: Mapping[str, Any]) -> str:
    """The arguments as an error shows them."""
    return ", ".join(
        f"{name}={_value(value)}" for name, value in values.items() if value is not None and not name.startswith("_")
    )


def _value(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor of shape {list(value.shape)} and {value.dtype}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(each) for each in value[:4])}{', ...' if len(value) > 4 else ''}]"
    if not isinstance(value, (int, float, complex, str, bytes, dict)):
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_of_the_user(trace: TracebackType) -> bool:
    """Whether an error comes from code that nobody here calls: that of a signal's handler, wherever that interrupts."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return not trace.tb_frame.f_code.co_filename.startswith((PACKAGE, GENERATED, _NUMPY, _STANDARD, "<frozen"))


def _is_meant(error: Exception) -> bool:
    """Whether an error was raised on purpose, by this package or by a user's own code that it called."""
    if type(error).__module__.partition(".")[0] == "numpy":
        return False
    trace: TracebackType | None = error.__traceback__
    if trace is None:
        return True
    trace = trace.tb_next  # the public function itself
    if trace is None or _is_of_the_user(trace):
        return True
    while True:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(_NUMPY):
            return False
        if not file.startswith((PACKAGE, GENERATED)):
            return True
        if trace.tb_next is None:
            return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISES
        trace = trace.tb_next
