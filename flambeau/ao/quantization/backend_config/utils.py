"""Questions to a `BackendConfig`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....nn import functional as F
from ..utils import Pattern
from .backend_config import BackendConfig, DTypeConfig

__all__ = [
    "entry_to_pretty_str", "get_fused_module_classes", "get_fuser_method_mapping",
    "get_fusion_pattern_to_extra_inputs_getter", "get_fusion_pattern_to_root_node_getter", "get_module_to_qat_module",
    "get_pattern_to_dtype_configs", "get_pattern_to_input_type_to_index", "get_qat_module_classes",
    "get_root_module_to_quantized_reference_module", "pattern_to_human_readable", "remove_boolean_dispatch_from_name",
]  # fmt: skip


def get_pattern_to_dtype_configs(backend_config: BackendConfig) -> dict[Pattern, list[DTypeConfig]]:
    """The types of each pattern."""
    return {pattern: config.dtype_configs for pattern, config in backend_config.by_nested_pattern.items()}


def get_pattern_to_input_type_to_index(backend_config: BackendConfig) -> dict[Pattern, dict[str, int]]:
    """Where weight and bias stand among the arguments of each pattern."""
    return {pattern: config._input_type_to_index for pattern, config in backend_config.by_nested_pattern.items()}


def _classes(backend_config: BackendConfig, name: str) -> tuple[type, ...]:
    found = (getattr(config, name) for config in backend_config.configs)
    return tuple({each for each in found if each is not None})


def get_qat_module_classes(backend_config: BackendConfig) -> tuple[type, ...]:
    """The classes for training."""
    return _classes(backend_config, "qat_module")


def get_fused_module_classes(backend_config: BackendConfig) -> tuple[type, ...]:
    """The classes that patterns become."""
    return _classes(backend_config, "fused_module")


def get_root_module_to_quantized_reference_module(backend_config: BackendConfig) -> dict[type, type]:
    """The class that computes in floats as quantized layers will, for each class of layers."""
    return {
        config.root_module: config.reference_quantized_module
        for config in backend_config.configs
        if config.root_module is not None and config.reference_quantized_module is not None
    }


def get_module_to_qat_module(backend_config: BackendConfig) -> dict[Pattern, type]:
    """The class for training for each class of layers."""
    found = backend_config.by_nested_pattern.items()
    return {pattern: config.qat_module for pattern, config in found if config.qat_module is not None}


def _of_nested(method: Callable[..., Any], number: int) -> Callable[..., Any]:
    """A function of parts in a row as one of nested pairs, the last part first."""
    if number == 2:
        return lambda is_qat, last, first: method(is_qat, first, last)
    return lambda is_qat, last, rest: method(is_qat, rest[1], rest[0], last)


def get_fuser_method_mapping(backend_config: BackendConfig) -> dict[Pattern, Callable[..., Any]]:
    """What makes one module of each pattern's parts, which it takes nested, the last first."""
    found: dict[Pattern, Callable[..., Any]] = {}
    for pattern, config in backend_config.by_nested_pattern.items():
        if config.fuser_method is not None:
            own = config.fuser_method
            found[pattern] = own if config.pattern is None else _of_nested(own, len(config.pattern))
    return found


def get_fusion_pattern_to_root_node_getter(backend_config: BackendConfig) -> dict[Pattern, Callable[..., Any]]:
    """What finds the node whose place a fused pattern takes, where it is not the innermost."""
    found = backend_config.by_nested_pattern.items()
    return {pattern: config._root_node_getter for pattern, config in found if config._root_node_getter is not None}


def get_fusion_pattern_to_extra_inputs_getter(backend_config: BackendConfig) -> dict[Pattern, Callable[..., Any]]:
    """What finds the further inputs of a fused pattern."""
    found = backend_config.by_nested_pattern.items()
    return {
        pattern: config._extra_inputs_getter for pattern, config in found if config._extra_inputs_getter is not None
    }


_POOLS = {
    getattr(F, name): f"torch.nn.functional.{name}"
    for number in (1, 2, 3)
    for name in (f"adaptive_max_pool{number}d", f"fractional_max_pool{number}d", f"max_pool{number}d")
    if hasattr(F, name)
}


def remove_boolean_dispatch_from_name(p: Any) -> Any:
    """The name of a pooling function, whose own text says nothing; all else as it is."""
    return _POOLS.get(p, p)


def pattern_to_human_readable(p: Any) -> Any:
    """A pattern with the names of pooling functions in their place."""
    if isinstance(p, tuple):
        return tuple(map(pattern_to_human_readable, p))
    return remove_boolean_dispatch_from_name(p) if callable(p) and not isinstance(p, type) else p


_ORDER = ("pattern", "dtype_configs", "num_tensor_args_to_observation_type", "observation_type")


def _lines(value: Any, indent: str) -> str:
    """A value; lists and dictionaries on lines of their own."""
    inner = indent + "  "
    if isinstance(value, list):
        return "".join(["[\n", *(f"{inner}{_lines(each, inner)},\n" for each in value), f"{indent}]"])
    if isinstance(value, dict) and not all(isinstance(key, str) and isinstance(each, int) and not isinstance(each, bool) for key, each in value.items()):  # noqa: E501  # fmt: skip
        rows = (f"{inner}{key!r}: {_lines(each, inner)},\n" for key, each in value.items())
        return "".join(["{\n", *rows, f"{indent}}}"])
    return str(value)


def entry_to_pretty_str(entry: dict[str, Any]) -> str:
    """The dictionary of a pattern, for reading."""
    ordered = {key: entry[key] for key in _ORDER if key in entry}
    ordered.update((key, value) for key, value in entry.items() if key not in ordered)
    if "pattern" in ordered:
        ordered["pattern"] = pattern_to_human_readable(ordered["pattern"])
    return _lines(ordered, "")
