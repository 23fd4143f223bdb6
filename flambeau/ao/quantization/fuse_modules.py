"""Neighbouring modules of a model become one, by their names."""

from __future__ import annotations

import copy
from typing import Any

from ...nn.modules.linear import Identity
from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list: list[Any], is_qat: bool, additional_fuser_method_mapping: Any = None) -> list[Any]:
    """One module that does what several do, and identities in the places of the others."""
    fuse = get_fuser_method(tuple(map(type, mod_list)), additional_fuser_method_mapping)
    fused = fuse(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    identities = [Identity().train(mod_list[0].training) for _ in mod_list[1:]]
    return [fused, *identities]


def _fuse(model: Any, names: list[str], is_qat: bool, fuser_func: Any, config: dict[str, Any] | None) -> None:
    further = (config or {}).get("additional_fuser_method_mapping", {})
    fused = fuser_func([model.get_submodule(name) for name in names], is_qat, further)
    for name, module in zip(names, fused, strict=True):
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, module)


def _fuse_all(model: Any, names: Any, is_qat: bool, inplace: bool, fuser_func: Any, config: Any) -> Any:
    if not inplace:
        model = copy.deepcopy(model)
    for group in [names] if all(isinstance(each, str) for each in names) else names:
        _fuse(model, group, is_qat, fuser_func, config)
    return model


def fuse_modules(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """A copy of a model in which lists of neighbouring modules, given by name, are one module each.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()).eval()
    >>> torch.ao.quantization.fuse_modules(model, ["0", "1"])[1]
    Identity()
    """
    return _fuse_all(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """Fuse modules of a model that is to be trained with rounding."""
    return _fuse_all(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
