"""Operators as objects, under the names of `torch.ops`: what `__torch_dispatch__` is given, and may call.

An op of this package becomes an overload and the arguments that PyTorch's operator has (`operator_call`). Called with
such arguments, the overload runs the op.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.dtype import bool_
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..op import OPS, Op
from .aten_names import CLOSE_TO, NO_OPERATORS, OTHERS, OTHERWISE_CALLED
from .explain import NUMBERS_AS_TENSORS, check_schema, fits, refusal_of_schemas, takes_numbers
from .operator_calls import CALLS
from .operator_numbers import with_numbers
from .registry import load_all
from .schema import Argument, FunctionSchema
from .schemas import schemas_of

_NONE: Any = object()


class Form:
    """How the parameters of an op become an operator's arguments, and back."""

    def __init__(self, op: Op, operator: str) -> None:
        self.op = op
        self.name, _, overload = operator.partition(".")
        self.overload = overload or "default"
        schema = schemas_of("aten", self.name)[self.overload]
        self.places: list[int | None] = []
        """For each argument the position of the op's parameter; None for a flag that the op does not have."""
        self.defaults: list[Any] = []
        self.names: list[str] = []
        self.positional = 0
        others = _renamed(op, schema)
        for each in schema.arguments:
            name = others.get(each.name, each.name)
            if name in op.parameters:
                self.places.append(op.parameters.index(name))
                self.defaults.append(_default(each))
            elif each.has_default_value() or each.is_out:
                continue
            else:
                assert each.type_text == "bool", f"{operator}: {op} has no {each.name}"
                self.places.append(None)
                self.defaults.append(False)
            self.names.append(each.name)
            self.positional += not each.kwarg_only
        self.is_complete = set(self.places) - {None} == set(range(len(op.parameters)))
        """Whether the op's arguments follow from the operator's."""

    def arguments(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The operator's arguments for a call of the op; what has its default's value is left out."""
        values = [
            default if place is None else _listed(args[place])
            for place, default in zip(self.places, self.defaults, strict=True)
        ]
        keep = [
            place is None or default is _NONE or not _same(value, default)
            for place, value, default in zip(self.places, values, self.defaults, strict=True)
        ]
        if "dtype" in self.names and isinstance(args[0], Tensor):  # None, to an operator, is the tensor's own
            number = self.names.index("dtype")
            keep[number] = keep[number] and values[number] is not args[0].dtype
        last = max((i + 1 for i in range(self.positional) if keep[i]), default=0)
        by_name = {self.names[i]: values[i] for i in range(self.positional, len(values)) if keep[i]}
        return tuple(values[:last]), by_name

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any] | None:
        """The op's arguments for a call of the operator; None if it cannot be this op."""
        if len(args) > len(self.names) or kwargs.keys() - set(self.names):
            return None
        taken: list[Any] = [None] * len(self.op.parameters)
        for number, (name, place, default) in enumerate(zip(self.names, self.places, self.defaults, strict=True)):
            value = args[number] if number < len(args) else kwargs.get(name, default)
            if value is _NONE:
                return None
            if place is not None:
                taken[place] = tuple(value) if type(value) is list and place != self.op.list_position else value
        return taken


def _renamed(op: Op, schema: FunctionSchema) -> dict[str, str]:
    """Where an op calls what its operator needs otherwise, all arguments by position: `grad_output` is `self` there."""
    if _required(schema) <= set(op.parameters):
        return {}
    return dict(zip([each.name for each in schema.arguments], op.parameters, strict=False))


def _required(schema: FunctionSchema) -> set[str]:
    """What an op must have to be an operator; flags that it does not have are false."""
    return {each.name for each in schema.arguments if not each.has_default_value() and each.type_text != "bool"}


def _default(argument: Argument) -> Any:
    """The value with which an argument may be left out: a list, where one number stands for several."""
    if not argument.has_default_value():
        return _NONE
    value = argument.default_value
    return [value] * argument.N if argument.N and type(value) is int else value


def _listed(value: Any) -> Any:
    """Sizes and the like are lists among an operator's arguments."""
    return list(value) if type(value) is tuple else value


def _same(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, Tensor) and type(value) is type(default) and value == default)


class OpOverload:
    """An operator with one list of parameters: `torch.ops.aten.add.Tensor`."""

    def __init__(self, namespace: str, name: str, overload: str) -> None:
        self.namespace = namespace
        self._name, self._overloadname = name, overload
        self.__name__ = f"{name}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torch._ops.{namespace}"
        self.forms: list[Form] = []
        """The ops that the operator may be."""
        self.own: Callable[..., Any] | None = None
        """What a program's own operator runs."""
        self._packet: OpOverloadPacket | None = None

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator with all its lists of parameters."""
        return self._packet or packet(self.namespace, self._name)

    @property
    def op(self) -> Callable[..., Any]:
        """What a call runs."""
        return self.__call__

    def name(self) -> str:
        """The name in the form `aten::add.Tensor`."""
        return f"{self.namespace}::{self._name}" + ("" if self._overloadname == "default" else f".{self._overloadname}")

    @property
    def is_view(self) -> bool:
        """Whether the result is a window on the memory of the first argument."""
        return any(form.op.is_view for form in self.forms)

    @functools.cached_property
    def _schema(self) -> FunctionSchema | None:
        """The schema of the operator; None for an op of this package's own."""
        return schemas_of(self.namespace, self._name).get(self._overloadname)

    @functools.cached_property
    def _body(self) -> Callable[..., Any] | None:
        """What takes all arguments of the schema; None if there is nothing here that does."""
        return None if self._schema is None else SLOTS.operator_body(self._schema)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.own is not None:
            return self.own(*args, **kwargs)
        if self._schema is None:
            return _op_named(self._name)(*args)
        return self._run_body(args, kwargs)

    def _run_body(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        schema: Any = self._schema
        if self.namespace == "aten":
            args, kwargs = with_numbers(schema, args, kwargs)
        positional, by_name = schema.bind(args, kwargs, may_be_number=takes_numbers(self._name))
        if self._body is None:
            raise NotImplementedError(f"there is no {self} here")
        values = (*positional, *by_name.values())
        try:
            result = self._body(*values)
        except (AttributeError, IndexError, TypeError, ValueError):
            check_schema(self._name, args, kwargs)
            raise
        if not schema.returns:
            return None
        if result is None and self._name.endswith("_"):
            return args[0]
        return list(result) if type(result) is tuple and schema.returns[0].type_text.endswith("]") else result

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._name}.{self._overloadname}"

    def __reduce__(self) -> Any:
        return overload_named, (self.namespace, self._name, self._overloadname)

    def __copy__(self) -> OpOverload:
        return self

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self


class OpOverloadPacket:
    """An operator: `torch.ops.aten.add`. Called, it finds its overload by itself."""

    def __init__(self, namespace: str, name: str, own: Callable[..., Any] | None = None) -> None:
        self._namespace, self.__name__, self._own = namespace, name, own
        self._qualified_op_name = f"{namespace}::{name}"
        self.__doc__ = getattr(own, "__doc__", None)
        self.__qualname__ = f"{namespace}.{name}"
        self.__module__ = f"torch._ops.{namespace}"

    def __getattr__(self, overload: str) -> OpOverload:
        if overload not in self.overloads():
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        if self._own is None:
            found = overload_named(self._namespace, self.__name__, overload)
        else:
            found = OpOverload(self._namespace, self.__name__, overload)
            found.own, found._packet = self._own, self
        setattr(self, overload, found)
        return found

    @property
    def op(self) -> Callable[..., Any]:
        """What a call runs."""
        return self._own or self.__call__

    def overloads(self) -> list[str]:
        """The names of the overloads, in the order in which a call tries them."""
        return list(schemas_of(self._namespace, self.__name__)) or ["default"]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        overloads = self.overloads()
        if self._own is not None or len(overloads) == 1:
            return getattr(self, overloads[0])(*args, **kwargs)
        fitting = self.fitting(args, kwargs)
        if fitting is not None:
            return fitting(*args, **kwargs)
        may_be_number = takes_numbers(self.__name__)
        for overload in overloads:
            found = getattr(self, overload)
            others, named = with_numbers(found._schema, args, kwargs)
            if fits(found._schema, others, named, may_be_number):
                return found(*others, **named)
        raise refusal_of_schemas(self.__name__, args, kwargs)

    def fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload | None:
        """The overload whose parameters these arguments are, as they are."""
        may_be_number = takes_numbers(self.__name__)
        found = (getattr(self, overload) for overload in self.overloads())
        return next((each for each in found if fits(each._schema, args, kwargs, may_be_number)), None)

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"


_OVERLOADS: dict[tuple[str, str, str], OpOverload] = {}


@functools.cache
def packet(namespace: str, name: str) -> OpOverloadPacket:
    """The one object of an operator."""
    return OpOverloadPacket(namespace, name)


def overload_named(namespace: str, name: str, overload: str) -> OpOverload:
    """The one object of an overload."""
    key = namespace, name, overload
    found = _OVERLOADS.get(key)
    if found is None:
        found = _OVERLOADS.setdefault(key, OpOverload(namespace, name, overload))
        if namespace == "aten":
            load_all()
            for op in list(OPS.values()):
                found.forms += [form for form in forms_of(op) if (form.name, form.overload) == (name, overload)]
    return found


def _op_named(name: str) -> Op:
    if name not in OPS:
        load_all()
    return OPS[name]


_PREFIXES = ("", "_", "linalg_", "special_")


@functools.cache
def forms_of(op: Op) -> tuple[Form, ...]:
    """The operators that an op may be: none, one, or one for tensors and one for a number as the second operand."""
    if op.name in OTHERWISE_CALLED:
        return (Form(op, op.name),)
    if op.name in OTHERS:
        return tuple([Form(op, each) for each in OTHERS[op.name]])
    if op.name in NO_OPERATORS or op.name in CALLS:
        return ()
    found = (_namesakes(op, prefix + op.name) for prefix in _PREFIXES)
    return next((tuple([Form(op, each) for each in names]) for names in found if names), ())


def _namesakes(op: Op, name: str) -> list[str]:
    """The overloads of an operator that an op can be, which has the operator's name: it has all that they require."""
    schemas = {key: each for key, each in schemas_of("aten", name).items() if not any(a.is_out for a in each.arguments)}
    fitting = [overload for overload, schema in schemas.items() if _has_required(op, schema)]
    if "default" in fitting:
        return [name]
    if "Tensor" in fitting and "Scalar" in schemas and name not in NUMBERS_AS_TENSORS:
        return [f"{name}.Tensor", f"{name}.Scalar"]
    return [f"{name}.{each}" for each in fitting[:1]]


def _has_required(op: Op, schema: FunctionSchema) -> bool:
    tensors = {op.parameters[place] for place in op.tensor_positions}
    return _required(schema) <= set(op.parameters) and tensors <= {each.name for each in schema.arguments}


def operator_call(op: Op, args: Sequence[Any]) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """PyTorch's operator for a call of an op, and its arguments by position and by name."""
    call = CALLS[op.name](*args) if op.name in CALLS else None
    if call is not None:
        operator, positional, kwargs = call
        name, _, overload = operator.partition(".")
        return overload_named("aten", name, overload), positional, kwargs
    forms = forms_of(op)
    if forms:
        form = forms[-1] if len(forms) > 1 and not isinstance(args[1], Tensor) else forms[0]
        if _promotes_by_itself(op, form, args):
            return overload_named("flambeau", op.name, "default"), tuple(args), {}
        return (overload_named("aten", form.name, form.overload), *form.arguments(args))
    if op.name == "full":
        return _creation(*args)
    return overload_named("flambeau", op.name, "default"), tuple(args), {}


def _promotes_by_itself(op: Op, form: Form, args: Sequence[Any]) -> bool:
    """Whether an op is told a dtype that its operator would not find: that of `where` with a number made a tensor."""
    if form.is_complete or "dtype" not in op.parameters or "dtype" in form.names:
        return False
    wanted = args[op.parameters.index("dtype")]
    return any(each.dtype is not wanted and each.dtype is not bool_ for each in op.tensors_of(args))


def _creation(shape: Any, value: Any, kind: Any) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    options = {"dtype": kind.dtype, "device": kind.device}
    if value is None:
        return overload_named("aten", "empty", "memory_format"), (list(shape),), options
    if type(value) in (int, float) and value in (0, 1):
        return overload_named("aten", "ones" if value else "zeros", "default"), (list(shape),), options
    return overload_named("aten", "full", "default"), (list(shape), value), options


def as_results(result: Any) -> Any:
    """What a `__torch_dispatch__` returned, in the form in which ops give it: several results are a plain tuple."""
    return tuple(result) if isinstance(result, (list, tuple)) else result


@functools.cache
def profiled_name(op: Op) -> str:
    """What profiles call an op: `aten::mm`, `flambeau::update_parameters`."""
    if op.in_place_of is not None:
        return f"{profiled_name(op.in_place_of)}_"
    forms = forms_of(op)
    if forms:
        return f"aten::{forms[0].name}"
    return f"aten::{CLOSE_TO[op.name]}" if op.name in CLOSE_TO else f"flambeau::{op.name}"
