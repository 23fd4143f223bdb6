"""Paths of modules and tensors, and the mask as a parametrization."""

from __future__ import annotations

from typing import Any

from ...._core.tensor import Tensor
from ....nn.modules.module import Module
from ....nn.utils.parametrize import is_parametrized

__all__ = [
    "FakeSparsity",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "module_contains_param",
    "module_to_fqn",
    "swap_module",
]


class FakeSparsity(Module):
    """A weight times a mask. The mask is not part of the state: the sparsifier keeps it."""

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        """The weight as far as the mask lets it through."""
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """An empty state: the mask belongs to the layer."""
        return {}


def module_contains_param(module: Module, parametrization: type[Module]) -> bool:
    """Whether a module has a tensor with a parametrization of a class."""
    if not is_parametrized(module):
        return False
    lists: Any = module.parametrizations
    return any(isinstance(each, parametrization) for found in lists.values() for each in found)


def swap_module(mod: Module, mapping: dict[type[Module], type[Module]]) -> Module:
    """The module that takes the place of one whose weight has a mask; others stay."""
    original = type_before_parametrizations(mod)
    if original not in mapping or not module_contains_param(mod, FakeSparsity):
        return mod
    made: Any = mapping[original]
    new: Module = made.from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for after in mod._forward_hooks.values():
        new.register_forward_hook(after)
    return new


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class of a module without what parametrizations made of it."""
    kind = type(module)
    return kind.__bases__[0] if is_parametrized(module) else kind


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The path of a module in a model; None if it is not there."""
    for name, each in model.named_modules(prefix=prefix, remove_duplicate=False):
        if each is module:
            return name
    return None


def fqn_to_module(model: Module | None, path: str) -> Any:
    """The module, or the tensor, at a path; None if there is none."""
    found: Any = model
    for part in path.split(".") if path else []:
        found = getattr(found, part, None)
    return found


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """The module with the tensor of a path, its path, and the tensor's name."""
    path, _, name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": path,
        "module": fqn_to_module(model, path),
        "tensor_name": name,
        "tensor_fqn": tensor_fqn,
    }
