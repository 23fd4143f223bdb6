"""`Module`, the base class of all layers and models."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from ..._core.self_type import Self
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..._ops.tensor.predicates import typename
from ..parameter import Buffer, Parameter
from ._conversions import Conversions
from ._hooks import (
    Hooks,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._members import HookDict, Members
from ._paths import note_path
from ._state_dict import (  # noqa: F401  (programs import some of them from this file)
    _EXTRA_STATE_KEY_SUFFIX,
    StateDict,
    _IncompatibleKeys,
)

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)

    class _HasForward(Protocol[P, R_co]):
        @property
        def forward(self) -> Callable[P, R_co]: ...

    class _Call:
        """The type of `Module.__call__`: a module is called as its `forward` is."""

        def __get__(self, module: _HasForward[P, R_co], owner: type) -> Callable[P, R_co]: ...


__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_HOOK_DICTS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


_NO_MEMBERS: Mapping[str, Any] = {}


class Module(Hooks, StateDict, Conversions):
    """The base class of all layers and models.

    Subclasses call `super().__init__()`, assign parameters, buffers and other modules to attributes, which registers
    them, and define `forward`. Calling the module runs `forward` and the hooks. `parameters()` walks over all
    parameters, `state_dict()` and `load_state_dict()` save and restore them, `to()` moves them, `train()` and `eval()`
    switch the mode.

    Args:
        args: none are taken, unless `call_super_init` is set: then they go to the next class in line.
        kwargs: as `args`.

    Attributes:
        training (bool): whether the module is in training mode, which `Dropout` and `BatchNorm` look at

    Example:
        >>> class Scale(flambeau.nn.Module):
        ...     def __init__(self, factor):
        ...         super().__init__()
        ...         self.factor = flambeau.nn.Parameter(flambeau.tensor(factor))
        ...
        ...     def forward(self, input):
        ...         return input * self.factor
        >>> Scale(3.0)(flambeau.ones(2))
        tensor([3., 3.], grad_fn=<MulBackward0>)
    """

    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    """The type of the dictionary that `state_dict` fills."""

    dump_patches: bool = False
    training: bool
    call_super_init: bool = False
    """Whether `__init__` hands its arguments on to the next class in line, for multiple inheritance."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.partition(".")[0] in ("flambeau", "torch"):
            _evaluate_annotations(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            _refuse_arguments(self, args, kwargs)
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        for name in _HOOK_DICTS:
            state[name] = OrderedDict()
        state["_is_full_backward_hook"] = None
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ----- the call ---------------------------------------------------------------------------------------------

    if TYPE_CHECKING:
        forward: Callable[..., Any]
        __call__: ClassVar[_Call]
    else:

        def forward(self, *input: Any) -> None:
            """What the module computes; every subclass defines it."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            try:
                if (
                    self._forward_hooks
                    or self._forward_pre_hooks
                    or self._backward_hooks
                    or self._backward_pre_hooks
                    or _global_forward_hooks
                    or _global_forward_pre_hooks
                    or _global_backward_hooks
                    or _global_backward_pre_hooks
                ):
                    return call_with_hooks(self, args, kwargs)
                return self.forward(*args, **kwargs)
            except Exception as error:
                note_path(error, self, args)
                raise

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the module in its place: from now on `forward` is what `torch.compile(forward, ...)` gives."""
        self.__dict__["forward"] = SLOTS.compiled_forward(self, args, kwargs)

    # ----- registration -----------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` the parameter `name`; None is a place without a parameter, which the state dict leaves out."""
        self._check_name("parameter", name, self.__dict__.get("_parameters"))
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None "
                    "required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly."
                    f" To express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
        self._parameters[name] = _hooked(_global_parameter_registration_hooks, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` the buffer `name`: state that is not trained. The state dict has it if it is `persistent`."""
        self._check_name("buffer", name, self.__dict__.get("_buffers"))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _hooked(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` the submodule `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self.__dict__.get("_modules"))
        self._modules[name] = _hooked(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a module below this one: `add_module` under another name."""
        self.add_module(name, module)

    def _check_name(self, what: str, name: Any, group: dict[str, Any] | None) -> None:
        if group is None:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in group and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # ----- attributes -------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        if "_parameters" in state:  # else its `__init__` has not run yet
            if name in (members := state["_parameters"]):
                return members[name]
            if name in (members := state.get("_modules", _NO_MEMBERS)):
                return members[name]
            if name in (members := state.get("_buffers", _NO_MEMBERS)):
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Tensor):
            if isinstance(value, Parameter):
                self._set_parameter(name, value)
                return
            if isinstance(value, Buffer):
                self._set_buffer(name, value, value.persistent)
                return
        elif isinstance(value, Module):
            if name in state.get("_parameters", ()):
                raise _wrong_type(value, "parameter", name, "torch.nn.Parameter or None")
            if "_modules" not in state:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            self._modules[name] = _hooked(_global_module_registration_hooks, self, name, value)
            return
        # The names of members accept None, and those of buffers any tensor.
        if name in state.get("_parameters", ()):
            if value is not None:
                raise _wrong_type(value, "parameter", name, "torch.nn.Parameter or None")
            self.register_parameter(name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise _wrong_type(value, "child module", name, "torch.nn.Module or None")
            self._modules[name] = _hooked(_global_module_registration_hooks, self, name, value)
        elif name in state.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise _wrong_type(value, "buffer", name, "torch.nn.Buffer, torch.Tensor or None")
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            super().__setattr__(name, value)

    def _set_parameter(self, name: str, value: Parameter) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameters before Module.__init__() call")
        self._forget(name, "_modules", "_buffers")
        self.register_parameter(name, value)

    def _set_buffer(self, name: str, value: Tensor, persistent: bool) -> None:
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if name in self._parameters:
            raise _wrong_type(value, "parameter", name, "torch.nn.Parameter or None")
        if name in self._modules:
            raise _wrong_type(value, "child module", name, "torch.nn.Module or None")
        self.register_buffer(name, value, persistent)

    def _forget(self, name: str, *groups: str) -> None:
        """Take `name` out of the plain attributes and out of other groups of members."""
        state = self.__dict__
        state.pop(name, None)
        for group in groups:
            state[group].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for group in (self._parameters, self._buffers, self._modules):
            if name in group:
                del group[name]
                if group is self._buffers:
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())  # "0" cannot be typed after a dot

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_DICTS:  # what an older version did not save
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    # ----- mode -------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to training mode, or with False to evaluation mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch this module and all below it to evaluation mode."""
        return self.train(False)

    # ----- printing ---------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What to print between the parentheses beside the submodules; for subclasses to define."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({extra})"
        lines += [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        return self._get_name() + ("(\n  " + "\n  ".join(lines) + "\n)" if lines else "()")

    def _repr_html_(self) -> str:
        """What notebooks show: a tree that can be folded."""
        from ._html import module_html

        return module_html(self)

    def _replicate_for_data_parallel(self) -> Self:
        """A copy for another device: its own dictionaries, without parameters, which the copier supplies."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica


def _addindent(s_: str, numSpaces: int) -> str:
    """All lines but the first, indented."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _hooked(hooks: HookDict, module: Module, name: str, value: Any) -> Any:
    """`value` as the registration hooks of all modules want it."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _wrong_type(value: Any, what: str, name: str, expected: str) -> TypeError:
    return TypeError(f"cannot assign '{typename(value)}' as {what} '{name}' ({expected} expected)")


def _evaluate_annotations(cls: type) -> None:
    """Let a layer's annotations be types, as PyTorch's are, and not their texts: programs look at them from elsewhere.

    What is there for the type checker alone goes.
    """
    names = vars(sys.modules[cls.__module__])
    types: dict[str, Any] = {}
    for name, text in inspect.get_annotations(cls).items():
        if isinstance(text, str) and text.startswith("ClassVar"):
            continue
        types[name] = text
        with contextlib.suppress(NameError):  # imported for the type checker alone
            types[name] = eval(text, names) if isinstance(text, str) else text
    if types or "__annotations__" in vars(cls):
        cls.__annotations__ = types


def _refuse_arguments(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    name = type(module).__name__
    if kwargs:
        raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if args:
        raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")


for _base in (Members, Conversions):  # their annotations name this file: libraries evaluate those of their modules
    vars(sys.modules[_base.__module__])["whole"] = sys.modules[__name__]
