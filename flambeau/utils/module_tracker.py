"""In which modules a program is, under the names of `torch.utils.module_tracker`."""

from __future__ import annotations

import weakref
from typing import Any

from ..nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context that knows the modules whose forward pass is running: `parents` holds their dotted names."""

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        from .._core.modes import THREAD

        return THREAD.modes.backward_pass is not None

    def _name_of(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            self._names[module] = root
            for name, inner in module.named_modules():
                if name:
                    self._names[inner] = f"{root}.{name}"
        return self._names[module]

    def __enter__(self) -> ModuleTracker:
        def before(module: Module, inputs: Any) -> None:
            self.parents.add(self._name_of(module))

        def after(module: Module, inputs: Any, output: Any) -> None:
            self.parents.discard(self._name_of(module))

        self._handles = [
            register_module_forward_pre_hook(before),
            register_module_forward_hook(after, always_call=True),
        ]
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        self.parents = {"Global"}
