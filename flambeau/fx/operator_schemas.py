"""Arguments put in the order of their functions' signatures, under the names of `torch.fx.operator_schemas`."""

from __future__ import annotations

import inspect
import numbers
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from .._core.dtype import dtype
from .._core.tensor import Tensor
from .._dispatch.public.overloads import OpOverload, OpOverloadPacket
from ..nn.modules.module import Module

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
    "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures that a function has; None if it cannot be asked for one."""
    target: Any = op
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        from ..ops._bodies import public_function

        name = target._name if isinstance(target, OpOverload) else target.__name__
        target = public_function(name)
    try:
        found = [inspect.signature(target)]
    except (TypeError, ValueError):
        return (None, None) if return_schemas else None
    return (found, None) if return_schemas else found


def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a function that changes its arguments."""
    name: str = getattr(target, "_name", None) or getattr(target, "__name__", None) or ""
    package = (getattr(target, "__module__", None) or "").partition(".")[0]
    changes = (name.endswith("_") and not name.endswith("__")) or kwargs.get("out") is not None
    if package in ("flambeau", "torch") and changes:
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so operations that mutate "
            "operands in-place (e.g. via `out` arguments) are not supported"
        )


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of types: `[int, int]` as `list[int]`; anything else as it is."""
    if not isinstance(x, (list, tuple)):
        return x

    def of(element: Any) -> Any:
        return list[element] if isinstance(x, list) else tuple[element, ...]

    if not x:
        return of(Any)
    base = x[0]
    for each in x:
        if issubclass(each, base):
            continue
        if issubclass(base, each):
            base = each
        else:
            return of(Any)
    return of(base)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type can be given for a parameter of another."""
    if signature_type is argument_type or signature_type is Any:
        return True
    origin, parts = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin is typing.Union:
        return any(type_matches(each, argument_type) for each in parts)
    if origin is list:
        inner = typing.get_args(argument_type)
        if argument_type is int and parts[0] is int:
            return True  # a number may stand for a list of that number
        return typing.get_origin(argument_type) in (list, tuple) and all(
            each is ... or (inspect.isclass(each) and issubclass(each, parts[0])) for each in inner
        )
    if signature_type is int and argument_type is dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def normalize_function(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a function as its signature orders them, defaults filled in; None if they do not fit it."""
    signatures = get_signature_for_torch_op(target)
    for signature in signatures or ():
        found = _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
        if found is not None:
            return found
    return None


def normalize_module(
    root: Module, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a call of a layer of `torch.nn` by name; None for any other module."""
    module = root.get_submodule(target)
    if type(module).__module__.partition(".")[0] not in ("flambeau", "torch"):
        return None
    return _bound(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], all_by_name: bool
) -> ArgsKwargsPair | None:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters
    if any(each.kind not in kinds for each in parameters.values()) and list(parameters) != ["input", "from"]:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    names = [name for name in parameters if name != "out" or isinstance(bound.arguments["out"], Tensor)]
    by_position = [] if all_by_name else names[: len(args)]
    values = bound.arguments
    return ArgsKwargsPair(
        tuple(values[name] for name in by_position), {name: values[name] for name in names if name not in by_position}
    )
