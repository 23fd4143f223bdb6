"""The operators that programs have made, by namespace: `torch.ops.mine.double`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .._core.modes import THREAD, recording
from .._core.names.documentation import page
from .._core.storage import are_apart
from .._core.tensor import Tensor
from .._dispatch.arguments.autocast import is_autocast_enabled
from .._dispatch.changes.history import end_change
from .._dispatch.public.keys import key_name
from .._dispatch.public.overloads import OpOverload, OpOverloadPacket
from ..autograd.function import Function
from ._schema import FunctionSchema, parse
from ._whole import run_whole, writer_of_operators

OPERATORS: dict[str, dict[str, Operator]] = {}

_EVERYWHERE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "Meta": "meta", "XPU": "xpu", "MPS": "mps", "PrivateUse1": "privateuseone"}


class VmapInfo(NamedTuple):
    """What a rule for `vmap` is told."""

    batch_size: int
    randomness: str


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self._name}' from 'torch.ops'>"

    def __getattr__(self, name: str) -> Any:
        known = OPERATORS.get(self._name, {})
        if not any(each.partition(".")[0] == name for each in known):
            raise AttributeError(
                f"'_OpNamespace' '{self._name}' object has no attribute '{name}': those of a library's compiled part "
                f"do not exist here ({page('names')})"
            )
        packet = self.__dict__[name] = Packet(self._name, name)
        return packet


class Packet(OpOverloadPacket):
    """An operator of one's own with all its lists of parameters: `torch.ops.mine.double`."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(namespace, name, self.__call__)

    def _operators(self) -> dict[str, Operator]:
        found = {}
        for name, operator in OPERATORS.get(self._namespace, {}).items():
            first, _, overload = name.partition(".")
            if first == self.__name__:
                found[overload or "default"] = operator
        return found

    def overloads(self) -> list[str]:
        """The names of the overloads, in the order of definition."""
        return list(self._operators())

    def __getattr__(self, overload: str) -> OpOverload:
        operator = None if overload.startswith("__") else self._operators().get(overload)
        if operator is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        made = OpOverload(self._namespace, self.__name__, overload)
        made.own, made._packet = operator, self
        made.__dict__["_schema"] = operator.schema if operator.has_schema else None
        self.__dict__[overload] = made
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operators = list(self._operators().values())
        if len(operators) == 1:
            return operators[0](*args, **kwargs)
        for operator in operators:
            if operator.schema.takes(args, kwargs):
                return operator(*args, **kwargs)
        listed = "\n".join(str(operator.schema) for operator in operators)
        raise RuntimeError(f"{self}(): no overload takes these arguments; there are\n{listed}")


class Operator:
    """An operator of one's own: what it runs on a device, under autocast, without data, and its derivative."""

    is_opaque = False
    """Whether autograd sees the operator alone, and never what it runs."""

    def __init__(self, namespace: str, name: str, schema: FunctionSchema | None = None) -> None:
        self._namespace = namespace
        self._name = name
        self._written = schema
        self._everywhere: Callable[..., Any] | None = None
        self._is_composite = False
        """Whether its only function calls other operators, which graphs hold in its place."""
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._autocast: dict[str, Callable[..., Any]] = {}
        self._recorded: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._batched: Callable[..., Any] | None = None
        self._watched: dict[type, Callable[..., Any]] = {}
        self._switched_off: set[str] = set()
        self._symm_mem_args: tuple[str, ...] = ()
        self._whole: Any = None
        """The op that it is to compiled calls."""
        self.__name__ = name

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> OpOverload:
        name, _, overload = self._name.partition(".")
        space = getattr(sys.modules[__package__], self._namespace)  # `torch.ops`, where an overload is one object
        found: OpOverload = getattr(getattr(space, name), overload or "default")
        return found

    @property
    def has_schema(self) -> bool:
        """Whether it is known what the operator takes and gives."""
        return self._written is not None

    @property
    def schema(self) -> FunctionSchema:
        """What the operator takes and gives."""
        if self._written is None:
            raise RuntimeError(f"{self._qualname} has no schema")
        return self._written

    def _implement(self, function: Callable[..., Any], key: Any) -> None:
        """Run the function where the dispatch key says."""
        name = key_name(key)
        if name in _EVERYWHERE or not name:
            self._everywhere, self._is_composite = function, name in ("", "CompositeImplicitAutograd")
        elif name in _DEVICES:
            self._kernels[_DEVICES[name]] = function
        elif name.startswith("Autocast"):
            self._autocast[name.removeprefix("Autocast").lower()] = function
        elif name.startswith("Autograd"):
            self._recorded = function
        else:
            raise NotImplementedError(
                f"{self._qualname} cannot have a function for the dispatch key {name} in Flambeau: operators run by "
                "device, under autocast and with a derivative"
            )

    def _function_for(self, key: Any) -> Callable[..., Any]:
        """The function for a dispatch key."""
        name = key_name(key)
        found = self._kernels.get(_DEVICES.get(name, ""), self._everywhere)
        if found is None:
            raise RuntimeError(f"no kernel for {self._qualname} with the dispatch key {name}")
        return found

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_opaque and (results := run_whole(self, args, kwargs)) is not None:
            return results
        return self._run_kernel(*args, **kwargs)

    def _run_kernel(self, *args: Any, **kwargs: Any) -> Any:
        first = _first_tensor(args, kwargs)
        place = "cpu" if first is None else first.device.type
        kernel = None if place in self._switched_off else self._kernels.get(place)
        if kernel is None:
            kernel = self._everywhere
        if first is not None and first._kind.dataless:
            kernel = self._kernels.get("meta", None if self.is_opaque else kernel)
            if kernel is None and self.has_schema and self.schema.is_mutable and not self.schema.returns:
                return None  # there is nothing whose shape is asked
            if kernel is None and self.is_opaque:
                raise RuntimeError(
                    f"There was no fake impl registered for {self!r}: without data it cannot run. Please use "
                    f"`{self._name}.register_fake` to add an fake impl."
                )
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the '{place.upper()}' backend: it has kernels "
                f"for {sorted(self._kernels)}"
            )
        result = kernel(*args, **kwargs)
        if self.is_opaque:
            self._check_results(args, kwargs, result)
        return result

    def _check_results(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Results are new tensors; what the schema calls changed has changed."""
        given = _tensors_of((*args, *kwargs.values()))
        for each in _tensors_of((result,)):
            if not each._kind.dataless and not all(are_apart(each._array, other._array) for other in given):
                raise RuntimeError(
                    f"{self._name} (with implementation in {getattr(self, '_init_fn', self).__module__}): The output "
                    "of this custom operator (1) must not also be an input to this custom operator and (2) may not "
                    "alias any inputs to this custom operator or other returns. Return a clone of it."
                )
        for argument, value in zip(self.schema.arguments, (*args, *kwargs.values()), strict=False):
            if argument.is_write:
                for each in _tensors_of((value,)):
                    end_change(each)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._watched and (watcher := self._watcher(args, kwargs)) is not None:
            return watcher(args, kwargs)
        if self._batched is not None and (level := _innermost_batch(args, kwargs)) is not None:
            return self._run_batched(level, args, kwargs)
        if self.is_opaque:
            args, kwargs = self.schema.bind(args, kwargs)
        writer = None if self._is_composite or self._written is None else writer_of_operators()
        if writer is not None:
            return writer.run_operator(self._opoverload, *self.schema.bind(args, kwargs), self._call)
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._autocast:
            first = _first_tensor(args, kwargs)
            place = "cpu" if first is None else first.device.type
            if place in self._autocast and is_autocast_enabled(place):
                return self._autocast[place](*args, **kwargs)
        if self._recorded is not None:
            return self._recorded(*args, **kwargs)
        if self._backward is None and not self.is_opaque:
            return self._run(*args, **kwargs)
        if self.is_opaque and self.schema.is_mutable:
            with recording(False):
                return self._run(*args, **kwargs)
        return self._differentiable(args, kwargs)

    def _differentiable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        definition = self

        class Recorded(Function):
            """The operator in the graph."""

            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = definition._run(*inputs, **kwargs)
                if definition._setup_context is not None:
                    named = {"keyword_only_inputs": kwargs} if kwargs else {}
                    definition._setup_context(ctx, inputs, **named, output=output)
                return output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if definition._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {definition._namespace}.{definition._name}.default but no "
                        "autograd formula was registered. Please use register_autograd to add one."
                    )
                return definition._backward(ctx, *grads)

        Recorded.__name__ = self._name
        return Recorded.apply(*args)

    def _watcher(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any, Any], Any] | None:
        """What was registered for a mode that is entered, or for the class of an argument."""
        overload = self._opoverload
        given = _tensors_of((*args, *kwargs.values()))
        for mode in reversed(THREAD.modes.interpreters):
            if type(mode) in self._watched:
                rule = self._watched[type(mode)]
                return lambda given_args, named: rule(mode, overload, tuple(map(type, given)), given_args, named)
        for each in given:
            if type(each) in self._watched:
                of_class = self._watched[type(each)]
                return lambda given_args, named: of_class(overload, tuple(map(type, given)), given_args, named)
        return None

    def _run_batched(self, level: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The rule for `vmap`: it is given all examples along the first dimension."""
        assert self._batched is not None
        in_dims = tuple(0 if level.has(each) else None for each in args)
        values = [each.value if level.has(each) else each for each in args]
        with level.outside():
            info = VmapInfo(batch_size=level.size, randomness=level.randomness)
            results, out_dims = self._batched(info, in_dims, *values, **kwargs)
            if isinstance(results, Tensor):
                return _wrapped(level, results, out_dims)
            return tuple(_wrapped(level, each, dim) for each, dim in zip(results, out_dims, strict=True))

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the operator a function that makes results without data: it runs on the meta device."""
        self._kernels["meta"] = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a derivative: `backward(ctx, *grads)`, for which `setup_context` saves what it needs."""
        self._backward, self._setup_context = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Give the operator a rule for `vmap`: `func(info, in_dims, *args)` gives results and their dimensions."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._batched = function
            return function

        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /) -> Any:
        """What to do in a `TorchDispatchMode`, `fn(mode, func, types, args, kwargs)`, or for a subclass of tensors."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._watched[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context in which the function for a device is not used, or is again."""
        before = set(self._switched_off)
        (self._switched_off.discard if enabled else self._switched_off.add)(device_type)
        try:
            yield
        finally:
            self._switched_off = before

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Give the operator another function for some devices; as a decorator too."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if device_types is None:
                self._everywhere = function
            for device in [] if device_types is None else _as_list(device_types):
                self._kernels[device] = function
            return function

        return register if fn is None else register(fn)


def _as_list(device_types: Any) -> list[str]:
    return [device_types] if isinstance(device_types, str) else list(device_types)


def _first_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    for each in (*args, *kwargs.values()):
        if isinstance(each, Tensor):
            return each
        if isinstance(each, (list, tuple)) and each and isinstance(each[0], Tensor):
            return each[0]
    return None


def _tensors_of(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for each in values:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += [inner for inner in each if isinstance(inner, Tensor)]
    return found


def _innermost_batch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The innermost level of `vmap` among the arguments."""
    levels = [each.level for each in _tensors_of((*args, *kwargs.values())) if hasattr(each, "level")]
    return max(levels, key=lambda level: level.number, default=None)


def _wrapped(level: Any, result: Any, dim: int | None) -> Any:
    return result if dim is None else level.wrapped(result.movedim(dim, 0))


def define(namespace: str, schema: str) -> Operator:
    """Make an operator, without a function yet, of a schema such as `double(Tensor x) -> Tensor`."""
    parsed = parse(schema, namespace)
    name = schema.partition("(")[0].strip()
    operators = OPERATORS.setdefault(namespace, {})
    if name in operators:
        raise RuntimeError(
            f"Tried to register an operator ({namespace}::{schema}) with the same name and overload name multiple "
            "times."
        )
    operators[name] = Operator(namespace, name, parsed)
    return operators[name]


def operator_named(op: Any) -> Operator:
    """The operator that a name `namespace::name`, an overload of it, or the operator itself stands for."""
    if isinstance(op, Operator):
        return op
    text = op.name() if hasattr(op, "name") else str(getattr(op, "_qualified_op_name", op))
    namespace, _, last = text.partition("::")
    found = OPERATORS.get(namespace, {}).get(last.removesuffix(".default"))
    if found is None:
        raise RuntimeError(f"operator {text} does not exist")
    return found
