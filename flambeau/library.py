"""Operators of one's own, under the names of `torch.library`: Python functions with a name in `torch.ops`."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from ._core.names.absent import Table
from ._core.process.caller import warn_user
from ._core.text.inherited_docs import documented_like as _documented_like
from ._dispatch.public.keys import key_name
from .ops._custom import OPERATORS, Operator
from .ops._custom import define as _define
from .ops._custom import operator_named as _operator
from .ops._schema import infer_schema, parse

__getattr__, __dir__ = Table(__name__).elsewhere("opcheck", "ops._opcheck").parts()

_RESERVED = ("prim",)


def fallthrough_kernel() -> Any:
    """What stands for "nothing is done here": registered for a dispatch key, it leaves the operator as it is.

    Returns:
        nothing: it is not called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Operators of a namespace, defined and given functions: `Library("mine", "DEF")`.

    >>> library = flambeau.library.Library("my_library", "DEF")
    >>> library.define("triple(Tensor x) -> Tensor")
    'triple'
    >>> library.impl("triple", lambda x: x * 3, "CompositeImplicitAutograd")
    >>> flambeau.ops.my_library.triple(flambeau.tensor([1.0]))
    tensor([3.])

    Args:
        ns (str): the namespace.
        kind (str): "DEF" for a new namespace, "IMPL" or "FRAGMENT" to add to one.
        dispatch_key (str): the key of functions that name none. Default: `""`.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, key_name(dispatch_key)
        self._made: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Make an operator of a schema; it gets its function by `impl`."""
        if self.kind == "IMPL":
            raise RuntimeError(f"a library of kind IMPL, such as this one of {self.ns!r}, defines no operators")
        name = _define(self.ns, schema)._name
        self._made.append(name)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: Any = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Give an operator its function for a dispatch key, by default the library's own."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError("Library.impl: functions that are given dispatch keys do not exist in Flambeau")
        text = op_name if isinstance(op_name, str) else op_name.name()
        text = text if "::" in text else f"{self.ns}::{text}"
        if text.startswith("aten::"):
            raise NotImplementedError(f"{text} is an op of Flambeau's own, which a library cannot replace")
        if fn is not fallthrough_kernel:
            _operator(text)._implement(fn, dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")

    def fallback(self, fn: Callable[..., Any], dispatch_key: Any = "", *, with_keyset: bool = False) -> None:
        """A function for all operators at once: ops of this package have their reference kernels in that place."""
        raise NotImplementedError(
            "Library.fallback: a function for the operators of every namespace at a dispatch key does not exist in "
            "Flambeau; to see every op use torch.utils._python_dispatch.TorchDispatchMode"
        )

    def register_symm_mem_args(self, op_name: Any, arg_names: Any) -> None:
        """Note which arguments of an operator are to lie in memory that GPUs share; compiled programs here put none."""
        text = op_name if isinstance(op_name, str) else op_name.name()
        operator = _operator(text if "::" in text else f"{self.ns}::{text}")
        known = [each.name for each in operator._written.arguments] if operator._written else []
        for name in arg_names:
            if name not in known:
                raise ValueError(f"{text} has no argument {name!r}: it has {', '.join(known)}")
        operator._symm_mem_args = tuple(arg_names)

    def _destroy(self) -> None:
        for name in self._made:
            OPERATORS.get(self.ns, {}).pop(name, None)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


class CustomOpDef(Operator):
    """An operator of one's own: a function that derivatives and kernels for devices can be given to.

    Args:
        namespace (str): its namespace.
        name (str): its name.
        schema (str): its schema.
        fn (Callable): its function.
        tags: tags of `torch.Tag`.

    Example:
        >>> @torch.library.custom_op("docs::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> double(torch.ones(1)), type(double).__name__
        (tensor([2.]), 'CustomOpDef')
    """

    is_opaque = True

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        super().__init__(namespace, name, parse(name + schema, namespace))
        self._init_fn = fn
        self.__doc__ = fn.__doc__

    register_abstract = Operator.register_fake

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Let floating-point arguments have a dtype in autocast regions of a device."""
        register_autocast(self, device_type, cast_inputs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


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

    Args:
        name (str): the operator's full name.
        fn (Callable, optional): the function; None returns a decorator.
        mutates_args: the names of arguments that it changes, or "unknown".
        device_types: the types of devices that it runs on; None means all.
        schema (str, optional): its schema; None takes it from annotations.
        tags: tags of `torch.Tag`.

    Returns:
        the operator, or a decorator.
    """
    if "::" not in name:
        raise ValueError(f"expected the name of an operator as 'namespace::name', got {name!r}")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        namespace, _, last = name.partition("::")
        written = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        definition = CustomOpDef(namespace, last, written, function, tags)
        definition.register_kernel(device_types, function)
        OPERATORS.setdefault(namespace, {})[last] = definition
        return definition

    return make if fn is None else make(fn)


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Make an operator of a schema: `define("mine::double", "(Tensor x) -> Tensor")`.

    Args:
        qualname (str or Library): the operator's full name, such as "mine::double"; or a library whose operator it is,
            with its name in the schema, for a decorator of its function.
        schema (str): its parameters and results.
        lib (Library, optional): the library that keeps it alive; None means for ever.
        tags: tags of `torch.Tag`. Default: `()`.

    Returns:
        nothing; for a library, the decorator.

    Example:
        >>> torch.library.define("docs::triple", "(Tensor x) -> Tensor")
        >>> _ = torch.library.impl("docs::triple", "default", lambda x: 3 * x)
        >>> torch.ops.docs.triple(torch.ones(1))
        tensor([3.])
    """
    if isinstance(qualname, Library):
        return lambda function: _implemented(qualname, qualname.define(schema, tags=tags), "", function)
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, _, name = qualname.partition("::")
    if not name:
        raise ValueError(f"Expected `qualname` to be of the form 'namespace::name', got {qualname!r}")
    _define(namespace, name + schema)
    return None


def _implemented(library: Library, name: str, key: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    library.impl(name, function, key)
    return function


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Give an operator its function for some types of devices, "default" for all; as a decorator too.

    `impl(library, "double", "CPU")` is a decorator too: a library, the name of its operator, and a dispatch key.

    Args:
        qualname: the operator's full name, such as "mine::double".
        types: types of devices, or a dispatch key.
        func (Callable, optional): the function; None returns a decorator.
        lib (Library, optional): the library that keeps it alive; None means for ever.

    Returns:
        the function, or a decorator.

    Example:
        >>> torch.library.define("docs::negated", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("docs::negated", "cpu")
        ... def negated(x):
        ...     return -x
        >>> torch.ops.docs.negated(torch.ones(1))
        tensor([-1.])
    """
    if isinstance(qualname, Library):
        return functools.partial(_implemented, qualname, types, func or "")
    operator, listed = _operator(qualname), [types] if isinstance(types, str) else list(types)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in listed:
            if each in ("default", "CompositeExplicitAutograd"):
                operator._implement(function, "CompositeExplicitAutograd")
            elif each[:1].isupper():
                operator._implement(function, each)
            else:
                operator.register_kernel(each, function)
        return function

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Give an operator a function that makes results without data; as a decorator too.

    Args:
        op: the operator, or its full name.
        func (Callable, optional): the function; None returns a decorator.
        lib: the library that keeps it alive; None means for ever.
        allow_override (bool): whether a function that is there already may be replaced. Default: `True`.

    Returns:
        the function, or a decorator.

    Example:
        >>> @torch.library.custom_op("docs::shaped", mutates_args=())
        ... def shaped(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> @torch.library.register_fake("docs::shaped")
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> shaped(torch.ones(3, device="meta")).shape
        torch.Size([3])
    """
    definition = _operator(op)
    return definition.register_fake if func is None else definition.register_fake(func)


def impl_abstract(
    qualname: Any, func: Callable[..., Any] | None = None, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """The older name of `register_fake`.

    Args:
        qualname: the operator's full name, such as "mine::double".
        func (Callable, optional): the function; None returns a decorator.
        lib: the library that keeps it alive; None means for ever.

    Returns:
        the function, or a decorator.

    Example:
        >>> @torch.library.custom_op("docs::older_fake", mutates_args=())
        ... def older_fake(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     _ = torch.library.impl_abstract("docs::older_fake", torch.empty_like)
        >>> older_fake(torch.ones(3, device="meta")).shape
        torch.Size([3])
    """
    warn_user("torch.library.impl_abstract was renamed to torch.library.register_fake: use that name", FutureWarning)
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


@_documented_like(register_fake)
def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Give an operator another function for some devices; as a decorator too.

    Args:
        device_types: the types of devices.

    Example:
        >>> @torch.library.custom_op("docs::slow", mutates_args=())
        ... def slow(x: torch.Tensor) -> torch.Tensor:
        ...     return x + x
        >>> @torch.library.register_kernel("docs::slow", "cpu")
        ... def _(x):
        ...     return 2 * x
        >>> slow(torch.ones(1))
        tensor([2.])
    """
    return _operator(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Give an operator a derivative.

    Args:
        op: the operator, or its full name.
        backward (Callable): `backward(ctx, *grads)` returns a gradient for each argument.
        setup_context (Callable, optional): `setup_context(ctx, inputs, output)` saves what `backward` needs.
        lib: the library that keeps it alive; None means for ever.

    Example:
        >>> @torch.library.custom_op("docs::cubed", mutates_args=())
        ... def cubed(x: torch.Tensor) -> torch.Tensor:
        ...     return x**3
        >>> def save(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, grad):
    ...     return grad * 3 * ctx.saved_tensors[0] ** 2
    >>> torch.library.register_autograd(cubed, backward, setup_context=save)
    >>> x = torch.tensor(2.0, requires_grad=True)
        >>> torch.autograd.grad(cubed(x), x)
        (tensor(12.),)
    """
    _operator(op).register_autograd(backward, setup_context=setup_context)


@_documented_like(register_fake)
def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Give an operator a rule for `vmap`; as a decorator too.

    Example:
        >>> @torch.library.custom_op("docs::plus_one", mutates_args=())
        ... def plus_one(x: torch.Tensor) -> torch.Tensor:
        ...     return x + 1
        >>> @torch.library.register_vmap("docs::plus_one")
        ... def _(info, in_dims, x):
        ...     return plus_one(x), in_dims[0]
        >>> torch.vmap(plus_one)(torch.zeros(2))
        tensor([1., 1.])
    """
    return _operator(op).register_vmap(func)


@_documented_like(register_fake)
def register_torch_dispatch(
    op: Any, torch_dispatch_class: type, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Say what an operator does in a `TorchDispatchMode`, or for a subclass of tensors; as a decorator too.

    Args:
        torch_dispatch_class (type): the mode or the subclass.
    """
    return _operator(op).register_torch_dispatch(torch_dispatch_class, func)


class FakeImplCtx:
    """What a function for tensors without data may ask for."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size that depends on data: there are no such sizes here."""
        raise NotImplementedError(
            "new_dynamic_size: shapes that depend on data have no symbol in Flambeau; such operators run on data only"
        )

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeImplCtx:
    """What the function that `register_fake` was given may ask for.

    Returns:
        FakeImplCtx: the context.
    """
    return FakeImplCtx()


def get_kernel(op: Any, dispatch_key: Any) -> Callable[..., Any]:
    """The function of an operator for a dispatch key.

    Args:
        op: the operator, or its full name.
        dispatch_key: the key, such as "CPU".

    Returns:
        Callable: the function.

    Example:
        >>> @torch.library.custom_op("docs::kept", mutates_args=())
        ... def kept(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> callable(torch.library.get_kernel("docs::kept", "CPU"))
        True
    """
    return _operator(op)._function_for(dispatch_key)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Let an operator's floating-point arguments have a dtype in autocast regions of a device.

    Args:
        op: the operator, or its full name.
        device_type (str): the type of device.
        cast_inputs: the dtype.
        lib (Library, optional): the library that keeps it alive; None means for ever.

    Example:
        >>> @torch.library.custom_op("docs::halved", mutates_args=())
        ... def halved(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> torch.library.register_autocast("docs::halved", "cpu", torch.bfloat16)
        >>> with torch.autocast("cpu"):
        ...     halved(torch.ones(1)).dtype
        torch.bfloat16
    """
    from ._core.tensor import Tensor
    from .amp import autocast

    operator = _operator(op)

    def converted(value: Any) -> Any:
        fits = isinstance(value, Tensor) and value.is_floating_point() and value.device.type == device_type
        return value.to(cast_inputs) if fits else value

    def cast(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=False):
            return operator(*map(converted, args), **{name: converted(each) for name, each in kwargs.items()})

    operator._autocast[device_type] = cast


def triton_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, schema: str | None = None
) -> Any:
    """Make a function that launches kernels of Triton's an operator: as `custom_op`, whatever it launches.

    Args:
        name (str): the operator's full name.
        fn (Callable, optional): the function; None returns a decorator.
        mutates_args: the names of arguments that it changes, or "unknown".
        schema (str, optional): its schema; None takes it from annotations.

    Returns:
        the operator, or a decorator.

    Example:
        >>> @torch.library.triton_op("docs::launched", mutates_args=())
        ... def launched(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> launched(torch.ones(1))
        tensor([2.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """A kernel of Triton's as something that capture sees: a call of it is an opaque step anyway, so itself.

    Args:
        triton_kernel (Callable): the kernel.

    Returns:
        the kernel.
    """
    kernels = importlib.import_module("triton.runtime.jit")
    if not isinstance(triton_kernel, kernels.KernelInterface):
        raise RuntimeError("wrap_triton only works on functions annotated with triton.jit or triton.autotune")
    return triton_kernel
