"""`Parameter` and `Buffer`, the tensors that modules count as theirs, and their forms that wait for a shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, cast

from .._core.pickling import warn_of_hooks
from .._core.tensor import Tensor, run_directly
from .._dispatch.public.overrides import default_torch_function, disabled_torch_function
from .._ops.create.constants import empty
from .._ops.tensor.legacy import make_subclass

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type):
    """Lets a class of tensors count tensors of other classes as its instances if they carry its mark."""

    _mark: str

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        mark = vars(cls).get("_mark")  # a subclass claims nothing by its parent's mark
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that counts as a parameter of the module to which it is assigned as an attribute.

    It is a leaf and requires a gradient by default.

    Args:
        data (Tensor, optional): the values; they are not copied. None means an empty tensor.
        requires_grad (bool): whether autograd computes its gradient. Default: `True`.

    Raises:
        TypeError: `data` is not a tensor.

    Example:
        >>> layer = flambeau.nn.Module()
        >>> layer.scale = flambeau.nn.Parameter(flambeau.ones(2))
        >>> [name for name, _ in layer.named_parameters()]
        ['scale']
    """

    __torch_function__ = disabled_torch_function
    _mark: ClassVar[str] = "_is_param"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"cannot assign '{type(data).__name__}' object as the data of a Parameter: a Tensor is expected"
            )
        if type(data) is Tensor or type(data) is Parameter:
            parameter: Parameter = make_subclass(cls, data, requires_grad)
            return parameter
        # A tensor of the user's own class stays of that class, and only counts as a parameter.
        custom = data.detach().requires_grad_(requires_grad)
        if type(custom) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(custom).__name__} was found instead. Define "
                "__torch_function__ so that detach() keeps the type."
            )
        vars(custom)["_is_param"] = True
        return cast(Parameter, custom)  # to `isinstance`, what is so marked is one

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        data = self.data
        result = type(self)(data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]  # mypy takes the options of special methods for positional
        return "Parameter containing:\n" + super().__repr__(**options)

    def __reduce_ex__(self, protocol: Any = 2) -> tuple[Any, ...]:
        warn_of_hooks(self)
        if Tensor.__module__ == "torch" and type(self) is Parameter:  # Flambeau stands in for it
            from .._serialization.rebuild import rebuild_parameter, rebuild_parameter_with_state

            parts = self.data, self.requires_grad, OrderedDict[Any, Any]()
            state = dict(vars(self))
            return (rebuild_parameter_with_state, (*parts, state)) if state else (rebuild_parameter, parts)
        return _rebuild_parameter, (type(self), self.data, self.requires_grad, dict(vars(self)))


def _rebuild_parameter(cls: type[Parameter], data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Parameter:
    parameter = cls(data, requires_grad)
    vars(parameter).update(state)
    return parameter


run_directly(Parameter)


class Buffer(Tensor, metaclass=_ParameterMeta):
    """A tensor that counts as a buffer of the module to which it is assigned as an attribute.

    A buffer is state that is not trained. The call returns a plain tensor that carries the mark.

    Args:
        data (Tensor, optional): the values; they are not copied. None means an empty tensor.
        persistent (bool): whether the buffer is in the module's state dict. Default: `True`.

    Example:
        >>> layer = flambeau.nn.Module()
        >>> layer.count = flambeau.nn.Buffer(flambeau.zeros(1))
        >>> dict(layer.state_dict())
        {'count': tensor([0.])}
    """

    __torch_function__ = disabled_torch_function
    _mark: ClassVar[str] = "_is_buffer"
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = empty(0)
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        made: Buffer = buffer  # to `isinstance`, what is so marked is one
        return made


_ALLOWED = frozenset(
    {"__hash__", "size", "get_device", "is_complex", "is_floating_point", "copy_", "to", "type", "cpu", "cuda"}
    | {"half", "bfloat16", "float", "double", "char", "short", "int", "long"}
)
"""What can be done with a tensor that has no shape yet."""


class UninitializedTensorMixin(Tensor):
    """A tensor that knows its dtype and device but not yet its shape: `materialize` gives it memory."""

    cls_to_become: type

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary tensor of this shape, with uninitialised elements."""
        self.data = empty(
            shape, device=self.device if device is None else device, dtype=self.dtype if dtype is None else dtype
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> NoReturn:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]  # mypy takes the options of special methods for positional
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any = 2) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            make, arguments = self.__reduce_ex__(2)
            memo[id(self)] = make(*arguments)
        return memo[id(self)]

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.__name__ not in _ALLOWED:
            _refuse(func.__name__)
        return default_torch_function(cls, func, types, args, kwargs)


def _refuse(name: str) -> NoReturn:
    raise ValueError(
        f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a `LazyModule` "
        "or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call "
        "`forward` with a dummy batch to initialize the parameters before calling torch functions"
    )


def _refusing(name: str) -> Callable[..., NoReturn]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(name)

    method.__name__ = name
    return method


for _name in (
    *("numel", "nelement", "dim", "stride", "storage_offset", "element_size", "data_ptr", "untyped_storage"),
    *("register_hook", "register_post_accumulate_grad_hook", "retain_grad", "backward", "requires_grad_"),
    *("is_inference", "__len__", "__bool__", "__array__"),
):  # methods that are no operators, and so do not ask `__torch_function__`
    setattr(UninitializedTensorMixin, _name, _refusing(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize(shape)` gives it memory.

    Lazy modules have such parameters until their first call.

    Args:
        requires_grad (bool): whether autograd computes its gradient. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Example:
        >>> weight = flambeau.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer whose shape is not known yet; `materialize(shape)` gives it memory.

    Args:
        requires_grad (bool): whether autograd computes its gradient. Default: `False`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.
        persistent (bool): whether the buffer is in the module's state dict. Default: `True`.

    Example:
        >>> buffer = flambeau.nn.UninitializedBuffer()
        >>> buffer.materialize((2, 3))
        >>> buffer.shape
        torch.Size([2, 3])
    """

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        buffer = make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        made: Buffer = buffer  # to `isinstance`, what is so marked is one
        return made

    def __reduce_ex__(self, protocol: Any = 2) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype, vars(self)["persistent"])


def is_lazy(param: Any) -> bool:
    """Whether `param` still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)
