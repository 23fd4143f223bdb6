"""How functions run on masked tensors: on the elements, with the mask going along."""

from __future__ import annotations

import importlib
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.public.overrides import original_of
from ..._torch._subclasses.carrier import is_no_op
from ..._torch._subclasses.functions import changes_its_first, is_elementwise
from .core import MaskedTensor, _masked

_ALIKE = frozenset(
    {
        "bfloat16", "clone", "contiguous", "detach", "double", "dropout", "empty_like", "float", "full_like", "half",
        "int", "long", "masked_fill", "ones_like", "rand_like", "randn_like", "short", "to", "type", "where",
        "zeros_like",
    }
)  # fmt: skip
"""Functions, beside the elementwise ones, that give each element its own."""

_MOVING = frozenset(
    {
        "__getitem__", "cat", "chunk", "concat", "expand", "expand_as", "flatten", "flip", "index_select", "mT",
        "movedim", "narrow", "permute", "reshape", "roll", "select", "split", "split_with_sizes", "squeeze", "stack",
        "swapaxes", "t", "tile", "transpose", "unbind", "unflatten", "unsqueeze", "view", "repeat",
    }
)  # fmt: skip
"""Functions that only move elements: the mask is moved alike."""

_REDUCTIONS = {
    "sum": "sum", "prod": "prod", "amax": "amax", "amin": "amin", "mean": "mean", "argmax": "argmax",
    "argmin": "argmin", "std": "std", "var": "var", "all": "all", "any": "any", "max": "amax",
    "min": "amin", "logsumexp": "logsumexp",
}  # fmt: skip
"""Functions that make one element of many, and the function of `masked` that does it with a mask."""


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of arguments of which some are masked tensors."""
    func = original_of(func)
    name = func.__name__
    if name in _REDUCTIONS:
        return _reduce(name, *args, **kwargs)
    if name in _MOVING:
        return _move(func, args, kwargs)
    if name in ("softmax", "log_softmax"):
        return _normalize(name, *args, **kwargs)
    if name in _ALIKE or is_elementwise(name):
        return _on_elements(func, args, kwargs)
    if name in ("item", "is_floating_point", "is_complex"):
        return func(args[0]._inner)
    if name in ("tolist", "numpy", "__array__"):
        raise RuntimeError(f".{name}() is not supported for tensor subclasses, got MaskedTensor")
    if is_no_op(func):
        return MaskedTensor._run_no_op(func, args, kwargs)
    raise TypeError(f"{name}() of masked tensors is not built: use get_data() and get_mask(), or to_tensor(value)")


def _mask_of(args: Any) -> Tensor:
    """The mask of all masked arguments; a ValueError if they have different ones."""
    masks = [each._mask for each in args if isinstance(each, MaskedTensor)]
    if any(each is not masks[0] and not each.equal(masks[0]) for each in masks[1:]):
        raise ValueError("Input masks must match: elements count in one operand and not in another")
    return masks[0]


def _inner(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_inner(each) for each in value]
    return value._inner if isinstance(value, MaskedTensor) else value


def _on_elements(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mask = _mask_of((*args, *kwargs.values()))
    result = func(*map(_inner, args), **{name: _inner(each) for name, each in kwargs.items()})
    if changes_its_first(func.__name__) and isinstance(args[0], MaskedTensor):
        return args[0]
    return _masked(result, mask.expand(result.shape)) if isinstance(result, Tensor) else result


def _move(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def mask_of(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
            return [mask_of(each) for each in value]
        return value._mask if isinstance(value, MaskedTensor) else value

    def data_of(value: Any) -> Any:
        return _inner(value) if isinstance(value, (list, MaskedTensor)) else value

    data = func(*map(data_of, args), **kwargs)
    masks = func(*map(mask_of, args), **kwargs)
    if isinstance(data, Tensor):
        return _masked(data, masks)
    return tuple([_masked(each, mask) for each, mask in zip(data, masks, strict=True)])


def _reduce(name: str, input: MaskedTensor, dim: Any = None, *rest: Any, **options: Any) -> MaskedTensor:
    masked = importlib.import_module("flambeau.masked")
    options = {key: value for key, value in options.items() if value is not None}
    mask = input._mask
    dim = None if dim == () else dim
    keepdim = bool(rest[-1]) if rest and isinstance(rest[-1], bool) else bool(options.pop("keepdim", False))
    if name in ("all", "any"):
        filled = input.to_tensor(name == "all")
        result = getattr(filled, name)() if dim is None else getattr(filled, name)(dim, keepdim)
    else:
        result = getattr(masked, _REDUCTIONS[name])(input._inner, dim, keepdim=keepdim, mask=mask, **options)
    counts = mask.any() if dim is None else _any_of(mask, dim, keepdim)
    return _masked(result, counts)


def _any_of(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return mask.any(list(dim) if isinstance(dim, (list, tuple)) else dim, keepdim)


def _normalize(name: str, input: MaskedTensor, dim: int, *rest: Any, **options: Any) -> MaskedTensor:
    masked = importlib.import_module("flambeau.masked")
    dtype = options.get("dtype")
    return _masked(getattr(masked, name)(input._inner, dim, mask=input._mask, dtype=dtype), input._mask)
