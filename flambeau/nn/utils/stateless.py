"""Calling a module with other tensors in the places of its parameters and buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._core.tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated: use `flambeau.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with the given tensors as its parameters and buffers; the module itself stays as it is."""
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*arguments, **(kwargs or {}))


@contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """A context in which the given tensors stand in the places of the module's own.

    What the module assigns to these places meanwhile, as to a buffer that it counts in, is then in the dictionary.
    """
    given = _untied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_keys(module, given)
    places = {name: _place(module, name, value) for name, value in given.items()}
    before = {name: members.get(own) for name, (members, own) in places.items()}
    try:
        for name, (members, own) in places.items():
            members[own] = given[name]
        yield
    finally:
        for name, (members, own) in places.items():
            if name in parameters_and_buffers and own in members:
                parameters_and_buffers[name] = members[own]
            if before[name] is None:
                del members[own]
            else:
                members[own] = before[name]


def _place(module: Module, path: str, value: Any) -> tuple[dict[str, Any], str]:
    """The dictionary and the name in it under which the tensor at a dotted path stands."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    prefix, _, name = path.rpartition(".")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    holder = module.get_submodule(prefix)
    for members in (holder._parameters, holder._buffers):
        if name in members:
            return members, name
    return vars(holder), name


def _named_tensors(module: Module) -> list[tuple[str, Any]]:
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


def _check_keys(module: Module, given: dict[str, Tensor]) -> None:
    own = {name for name, _ in _named_tensors(module)}
    lists = (("Unexpected", given.keys() - own), ("Missing", own - given.keys()))
    problems = [f"{word} key(s): {', '.join(map(repr, sorted(names)))}." for word, names in lists if names]
    if problems:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))


def _untied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given` with entries for the other names of the same tensors."""
    groups: dict[int, set[str]] = {}
    for name, value in _named_tensors(module):
        groups.setdefault(id(value), set()).add(name)
    untied = dict(given)
    for names in groups.values():
        values = {id(given[name]): given[name] for name in names if name in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names & given.keys())}, which are tied. "
                "Consider using tie_weights=False"
            )
        for value in values.values():
            untied.update(dict.fromkeys(names, value))
    return untied
