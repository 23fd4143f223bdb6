"""Behaviours that programs may choose before they become the rule, under the names of `torch.__future__`."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let `module.to(...)` put new parameters in the place of the old ones, rather than change their data."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether `module.to(...)` puts new parameters in the place of the old ones."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let `module.to(...)` and `load_state_dict` swap parameters by `torch.utils.swap_tensors`."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters are swapped."""
    return _swap
