"""`torch._dynamo.eval_frame`: what `torch.compile` gives for a module."""

from __future__ import annotations

from collections.abc import Callable, Sized
from types import MethodType
from typing import Any

from flambeau.compiler._entry import compile
from flambeau.compiler._marks import disable
from flambeau.nn.modules._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
from flambeau.nn.modules._paths import note_path
from flambeau.nn.modules.module import Module

__all__ = ["OptimizedModule", "disable", "is_dynamo_supported"]


GLOBAL_HOOKS = (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
"""The hooks of all modules."""


_OWN = ("_orig_mod", "_run", "forward")
"""What a compiled module may be given beside what every module has."""


class OptimizedModule(Module):
    """What `compile` gives for a module: as in PyTorch, a module around it, which its state dict shows."""

    def __init__(self, mod: Module, run: Any = None) -> None:
        super().__init__()
        vars(self).pop("training", None)  # it is the module's
        vars(self)["_run"] = run or mod
        self._modules["_orig_mod"] = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module itself gives."""
        return vars(self)["_run"](*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return bool(self._orig_mod.training)

    @training.setter
    def training(self, value: bool) -> None:
        self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._has_itself(name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if self._has_itself(name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def _has_itself(self, name: str) -> bool:
        """Whether a name is one of every module, or of this one; the others are those of the module inside."""
        return name in _OWN or name in vars(self) or hasattr(type(self), name)

    def __len__(self) -> int:
        if not isinstance(self._orig_mod, Sized):
            raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


class CompiledForward:
    """The `forward` of a module that was compiled in its place; a copy of the module has one of its own."""

    def __init__(self, module: Module, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> None:
        self._module, self._args, self._kwargs = module, args, kwargs or {}
        self.run = compile(MethodType(type(module).forward, module), *self._args, **self._kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledForward:
        return CompiledForward(memo[id(self._module)], self._args, self._kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledForward, (self._module, self._args, self._kwargs)


def call_module(module: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module with a `forward` that does what its own does; where there are hooks, call the module itself."""
    own = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    if any(own) or any(GLOBAL_HOOKS):
        return module(*args, **kwargs)
    try:
        return forward(*args, **kwargs)
    except Exception as error:
        note_path(error, module, args)
        raise


def compiled_module(model: Any, run: Any) -> OptimizedModule | None:
    """A module as `compile` gives it, called by `run`; None for what is no module."""
    return OptimizedModule(model, run) if isinstance(model, Module) else None


def is_dynamo_supported() -> bool:
    """Whether `torch.compile` runs on this Python."""
    return True
