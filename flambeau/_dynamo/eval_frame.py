"""`torch._dynamo.eval_frame`: what `torch.compile` gives for a module."""

from __future__ import annotations

from typing import Any

from ..compiler._entry import disable
from ..nn.modules.module import Module

__all__ = ["OptimizedModule", "disable", "is_dynamo_supported"]


class OptimizedModule(Module):
    """What `compile` gives for a module: as in PyTorch, a module around it, which its state dict shows."""

    def __init__(self, mod: Module, run: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training
        self.__dict__["_run"] = run or mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module itself gives."""
        return self.__dict__["_run"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or name in self.__dict__ or "_modules" not in self.__dict__:
            super().__setattr__(name, value)
        elif "_orig_mod" in self._modules and name != "training":
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


def compiled_module(model: Any, run: Any) -> OptimizedModule | None:
    """A module as `compile` gives it, called by `run`; None for what is no module."""
    return OptimizedModule(model, run) if isinstance(model, Module) else None


def is_dynamo_supported() -> bool:
    """Whether `torch.compile` runs on this Python."""
    return True
