"""The operators that programs have made, by namespace: `torch.ops.mine.double`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.autocast import is_autocast_enabled
from .._dispatch.keys import key_name
from .._dispatch.overloads import OpOverloadPacket

OPERATORS: dict[str, dict[str, Operator]] = {}

_EVERYWHERE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "Meta": "meta", "XPU": "xpu", "MPS": "mps", "PrivateUse1": "privateuseone"}


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = OPERATORS.get(self._name, {}).get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        packet = self.__dict__[name] = OpOverloadPacket(self._name, name, found)
        return packet


class Operator:
    """An operator of one's own: what it runs on a device, under autocast, without data, and its derivative."""

    def __init__(self, namespace: str, name: str, schema: str | None = None) -> None:
        self._namespace = namespace
        self._name = name
        self._schema = schema
        self._everywhere: Callable[..., Any] | None = None
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._autocast: dict[str, Callable[..., Any]] = {}
        self._recorded: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self.__name__ = name

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def _implement(self, function: Callable[..., Any], key: Any) -> None:
        """Run the function where the dispatch key says."""
        name = key_name(key)
        if name in _EVERYWHERE or not name:
            self._everywhere = function
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

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        first = _first_tensor(args, kwargs)
        place = "cpu" if first is None else first.device.type
        kernel = self._kernels.get(place, self._everywhere)
        if first is not None and first._kind.dataless:
            kernel = self._kernels.get("meta", kernel)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the '{place.upper()}' backend: it has kernels "
                f"for {sorted(self._kernels)}"
            )
        return kernel(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._autocast:
            first = _first_tensor(args, kwargs)
            place = "cpu" if first is None else first.device.type
            if place in self._autocast and is_autocast_enabled(place):
                return self._autocast[place](*args, **kwargs)
        if self._recorded is not None:
            return self._recorded(*args, **kwargs)
        if self._backward is None:
            return self._run(*args, **kwargs)
        return self._differentiable(args, kwargs)

    def _differentiable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from ..autograd.function import Function

        definition = self

        class Recorded(Function):
            """The operator in the graph."""

            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = definition._run(*inputs, **kwargs)
                if definition._setup_context is not None:
                    definition._setup_context(ctx, inputs, output)
                return output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                assert definition._backward is not None
                return definition._backward(ctx, *grads)

        Recorded.__name__ = self._name
        return Recorded.apply(*args)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the operator a function that makes results without data: it runs on the meta device."""
        self._kernels["meta"] = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a derivative: `backward(ctx, *grads)`, for which `setup_context` saves what it needs."""
        self._backward, self._setup_context = backward, setup_context

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


def define(namespace: str, schema: str) -> Operator:
    """Make an operator, without a function yet, of a schema such as `double(Tensor x) -> Tensor`."""
    name = schema.partition("(")[0].strip()
    if "(" not in schema or "->" not in schema:
        raise RuntimeError(f"expected the schema of an operator as 'name(Tensor x) -> Tensor', got {schema!r}")
    operators = OPERATORS.setdefault(namespace, {})
    if name in operators:
        raise RuntimeError(
            f"Tried to register an operator ({namespace}::{schema}) with the same name and overload name multiple "
            "times."
        )
    operators[name] = Operator(namespace, name, schema)
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
