"""Operators of one's own, under the names of `torch.library`: Python functions with a name in `torch.ops`.

`custom_op`, its kernels and its derivative work. Schemas, libraries of operators and rules for transforms are not built
yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core.names.absent import Table
from ._core.tensor import Tensor
from .ops._custom import OPERATORS

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "schemas and libraries of operators are not built yet",
        functions="impl define fallthrough_kernel register_autocast register_torch_dispatch register_vmap get_ctx "
        "get_kernel triton_op wrap_triton infer_schema opcheck",
        classes="Library",
    )
    .parts()
)


class CustomOpDef:
    """An operator of one's own: a function that derivatives and kernels for devices can be given to."""

    def __init__(self, namespace: str, name: str, fn: Callable[..., Any], device_types: Any) -> None:
        self._namespace = namespace
        self._name = name
        self._fn = fn
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._any_device = device_types is None
        for device in [] if device_types is None else _as_list(device_types):
            self._kernels[device] = fn
        self.__name__ = name
        self.__doc__ = fn.__doc__

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        first = next((each for each in args if isinstance(each, Tensor)), None)
        place = "cpu" if first is None else first.device.type
        if first is not None and first._kind.dataless and self._fake is not None:
            return self._fake(*args, **kwargs)
        kernel = self._kernels.get(place, self._fn if self._any_device else None)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._namespace}::{self._name}' with arguments from the '{place.upper()}' backend: "
                f"it has kernels for {sorted(self._kernels)}"
            )
        return kernel(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .autograd.function import Function

        if self._backward is None:
            return self._run(*args, **kwargs)
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

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Give the operator another function for some devices; as a decorator too."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if device_types is None:
                self._fn, self._any_device = function, True
            for device in [] if device_types is None else _as_list(device_types):
                self._kernels[device] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the operator a function that makes results without data: it runs on the meta device."""
        self._fake = fn
        return fn

    register_abstract = register_fake

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a derivative: `backward(ctx, *grads)`, for which `setup_context` saves what it needs."""
        self._backward, self._setup_context = backward, setup_context


def _as_list(device_types: Any) -> list[str]:
    return [device_types] if isinstance(device_types, str) else list(device_types)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a Python function an operator: `@custom_op("mine::double", mutates_args=())`, then `torch.ops.mine.double`.

    >>> @flambeau.library.custom_op("mine::double", mutates_args=())
    ... def double(x: flambeau.Tensor) -> flambeau.Tensor:
    ...     return x * 2
    >>> flambeau.ops.mine.double(flambeau.tensor([1.0]))
    tensor([2.])
    """
    if "::" not in name:
        raise ValueError(f"expected the name of an operator as 'namespace::name', got {name!r}")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        namespace, _, last = name.partition("::")
        definition = CustomOpDef(namespace, last, function, device_types)
        OPERATORS.setdefault(namespace, {})[last] = definition
        return definition

    return make if fn is None else make(fn)


def _definition(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    namespace, _, last = str(op).partition("::")
    found = OPERATORS.get(namespace, {}).get(last)
    if found is None:
        raise RuntimeError(f"there is no operator {op!r} that custom_op made")
    definition: CustomOpDef = found
    return definition


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Give an operator a function that makes results without data; as a decorator too."""
    definition = _definition(op)
    return definition.register_fake if func is None else definition.register_fake(func)


def impl_abstract(
    qualname: Any, func: Callable[..., Any] | None = None, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """The older name of `register_fake`."""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Give an operator another function for some devices; as a decorator too."""
    return _definition(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Give an operator a derivative."""
    _definition(op).register_autograd(backward, setup_context=setup_context)
