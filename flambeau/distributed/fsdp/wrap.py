"""Which modules become units of their own: policies, and what applies them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.modules.multihead_attention import MultiheadAttention

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

_CONTAINERS = (ModuleList, ModuleDict)


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """A policy that wraps every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """The modules for which a function says so."""
    return True if recurse else bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """The modules of some classes, such as the layers of a transformer."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """The modules with so many elements that no unit below them has."""
    whole = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = _CONTAINERS if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    enough = nonwrapped_numel >= min_num_params
    return enough and not isinstance(module, whole if recurse else excluded)


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: list[Callable[..., bool]]) -> bool:
    """The modules that one of several policies names."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


class ModuleWrapPolicy:
    """The modules of some classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return True if recurse else isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy:
    """The modules for which a function returns True, or other options for their units."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def options(self, module: Module) -> bool | dict[str, Any]:
        """What the function says of a module."""
        return self._lambda_fn(module)


def wrap_children(module: Module, policy: Any, make: Callable[..., Module], ignored: set[Module]) -> int:
    """Make units of the modules below that a policy names; the number of elements that are in one."""
    taken = 0
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        taken += _wrapped(module, name, child, policy, make, ignored)
    return taken


def _wrapped(
    parent: Module, name: str, module: Module, policy: Any, make: Callable[..., Module], ignored: set[Module]
) -> int:
    count = sum(each.numel() for each in module.parameters())
    if isinstance(policy, CustomPolicy):
        taken = wrap_children(module, policy, make, ignored)
        chosen = policy.options(module)
        if chosen is False or isinstance(module, _CONTAINERS):
            return taken
        setattr(parent, name, make(module, **(chosen if isinstance(chosen, dict) else {})))
        return count
    taken = 0
    if policy(module=module, recurse=True, nonwrapped_numel=count):
        taken = wrap_children(module, policy, make, ignored)
    if isinstance(module, _CONTAINERS) or not policy(module=module, recurse=False, nonwrapped_numel=count - taken):
        return taken
    setattr(parent, name, make(module))
    return count


def _recursive_wrap(
    module: Module, auto_wrap_policy: Callable[..., bool], wrapper_cls: Callable[..., Module],
    ignored_modules: set[Module], ignored_params: set[Any], only_wrap_children: bool = False, **kwargs: Any,
) -> tuple[Module, int]:  # fmt: skip
    """Wrap the modules that a policy names, from the inside out; the module, and how many elements are in wrapped ones.

    Unlike `wrap_children` it wraps containers, too, and asks about the module itself.
    """
    if isinstance(wrapper_cls, type):
        for each in module.modules():
            if each not in ignored_modules and isinstance(each, wrapper_cls):
                raise AssertionError(f"Child module {each} is already wrapped by {wrapper_cls}")
    count = sum(each.numel() for each in module.parameters() if each not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=count):
        return module, 0
    taken = 0
    for name, child in list(module.named_children()):
        if child not in ignored_modules:
            made, inside = _recursive_wrap(
                child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
            )
            setattr(module, name, made)
            taken += inside
    if only_wrap_children or not auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=count - taken):
        return module, taken
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})}), count


class _Wrapping(threading.local):
    def __init__(self) -> None:
        self.settings: list[tuple[Any, dict[str, Any]]] = []


_WRAPPING = _Wrapping()


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A context in which `wrap` wraps modules by a class with some options."""
    _WRAPPING.settings.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _WRAPPING.settings.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module, wrapped if this is inside of `enable_wrap`."""
    if not _WRAPPING.settings:
        return module
    wrapper, options = _WRAPPING.settings[-1]
    made: Module = wrapper(module, **{**options, **wrap_overrides})
    return made
