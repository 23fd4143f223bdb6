"""In which modules a program is, under the names of `torch.utils.module_tracker`."""

from __future__ import annotations

import weakref
from typing import Any

from .._core.modes import THREAD
from .._core.tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context that knows the modules whose forward or backward pass is running.

    `parents` holds their dotted names. A module's backward pass begins when the gradient of its result arrives, and
    ends when those of all its inputs are there.
    """

    def __init__(self) -> None:
        self._forward: list[str] = []
        self._backward: set[str] = set()
        self._backward_pass: Any = None
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return THREAD.modes.backward_pass is not None

    @property
    def parents(self) -> set[str]:
        """The names of the modules that are running, and "Global"."""
        return {"Global", *self._forward, *(self._in_backward() if self.is_bw else ())}

    def _in_backward(self) -> set[str]:
        running = THREAD.modes.backward_pass
        if running is not self._backward_pass:  # what an earlier pass left: inputs of the first layers need no gradient
            self._backward_pass, self._backward = running, set()
        return self._backward

    def _name_of(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            self._names[module] = root
            for name, inner in module.named_modules():
                if name:
                    self._names[inner] = f"{root}.{name}"
        return self._names[module]

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def _before(self, module: Module, inputs: Any) -> None:
        name = self._name_of(module)
        self._forward.append(name)
        tensors = _recorded(inputs)
        if tensors:
            register_multi_grad_hook(tensors, lambda gradients: self._in_backward().discard(name))

    def _after(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._name_of(module)
        self._forward.pop()
        tensors = _recorded(output)
        if tensors:
            register_multi_grad_hook(tensors, lambda gradient: self._in_backward().add(name), mode="any")

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._forward.clear()
        self._backward_pass, self._backward = None, set()


def _recorded(values: Any) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor) and each.requires_grad]
