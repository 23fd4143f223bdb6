"""How functions run on nested tensors: on their values, row by row, or on rows that are filled up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import flambeau as torch

from ..._core.tensor import Tensor
from ..._dispatch.public.overrides import original_of
from ..._torch._subclasses.carrier import is_no_op
from ..._torch._subclasses.functions import changes_its_first, is_elementwise
from .nested_tensor import NestedTensor
from .padding import for_each_element, padded, unpadded

Rule = Callable[..., Any]
_RULES: dict[str, Rule] = {}

ALIKE = frozenset(
    {
        "alpha_dropout", "bernoulli_", "bfloat16", "bool", "byte", "char", "clone", "contiguous", "copy_", "cpu",
        "cuda", "detach", "detach_", "double", "dropout", "dropout_", "empty_like", "fill_", "float", "full_like",
        "half", "int", "long", "masked_fill", "masked_fill_", "normal_", "ones_like", "rand_like", "randint_like",
        "randn_like", "short", "to", "type", "type_as", "uniform_", "where", "zero_", "zeros_like",
    }
)  # fmt: skip
"""Functions, beside the elementwise ones, that give each element its own."""


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of arguments of which some are nested tensors."""
    func = original_of(func)
    name = func.__name__
    rule = _RULES.get(name)
    if rule is not None:
        return rule(func, *args, **kwargs)
    if name in ALIKE or is_elementwise(name):
        return _on_values(func, args, kwargs)
    if is_no_op(func):
        return NestedTensor._run_no_op(func, args, kwargs)
    raise NotImplementedError(
        f"{name}() of nested tensors is not built: use values(), unbind() or to_padded_tensor(), and ordinary tensors"
    )


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _first(args: Any) -> NestedTensor:
    return next(_nested_in(args))


def _nested_in(args: Any) -> Iterator[NestedTensor]:
    for each in args:
        if isinstance(each, NestedTensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _nested_in(each)


def _same_rows(args: Any, name: str) -> NestedTensor:
    """The first nested argument; a RuntimeError if another one has other rows."""
    first = _first(args)
    for each in _nested_in(args):
        if (each._ragged_size, each._ragged_idx) != (first._ragged_size, first._ragged_idx):
            raise RuntimeError(
                f"cannot call binary pointwise function {name} with inputs of shapes {tuple(first.shape)} and "
                f"{tuple(each.shape)}"
            )
    return first


def _on_values(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that gives each element its own."""
    first = _same_rows((*args, *kwargs.values()), func.__name__)

    def inner(each: Any) -> Any:
        if isinstance(each, NestedTensor):
            return each._inner
        if isinstance(each, Tensor) and each.dim() > 0:
            return for_each_element(each, first, func.__name__)
        return each

    result = func(*map(inner, args), **{name: inner(each) for name, each in kwargs.items()})
    if changes_its_first(func.__name__) and isinstance(args[0], NestedTensor):
        return args[0]
    return _wrapped(result, first)


def _wrapped(result: Any, like: NestedTensor) -> Any:
    if isinstance(result, Tensor):
        return like.like(result) if result.dim() == like._inner.dim() else result
    if isinstance(result, tuple):
        return tuple([_wrapped(each, like) for each in result])
    return result


def _inner_dim(nested: NestedTensor, dim: int, name: str) -> int:
    """The dimension of the values that is `dim` of the nested tensor."""
    place = dim + nested.dim() if dim < 0 else dim
    if not 0 <= place < nested.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [{-nested.dim()}, {nested.dim() - 1}])")
    if place == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return place - 1


# Reductions -----------------------------------------------------------------------------------------------------------

_NEUTRAL: dict[str, float] = {
    "sum": 0, "mean": 0, "prod": 1, "amax": float("-inf"), "amin": float("inf"), "all": 1, "any": 0,
    "logsumexp": float("-inf"), "argmax": float("-inf"), "argmin": float("inf"),
}  # fmt: skip
"""What rows are filled up with, so that it does not count."""


@_rule(*_NEUTRAL)
def _reduction(func: Any, input: NestedTensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    name = func.__name__
    options = {key: value for key, value in options.items() if value is not None}
    if dim is None:
        return func(input._inner if input._lengths is None else _packed(input), **options)
    listed = sorted((each + input.dim()) % input.dim() for each in (dim if isinstance(dim, (list, tuple)) else [dim]))
    ragged = input._ragged_idx
    if 0 in listed and ragged not in listed:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
            "tensors"
        )
    if ragged not in listed:
        inner = [each - 1 for each in listed]
        values = func(input._inner, inner if len(inner) > 1 else inner[0], keepdim, **options)
        below = 0 if keepdim else sum(each < ragged for each in listed)
        return NestedTensor(values, input._offsets, input._lengths, ragged=ragged - below)
    if 0 in listed:  # the rows as well: every element of the values counts alike
        values = _packed(input)
        inner = [each - 1 for each in listed if each]
        result = func(values, inner if len(inner) > 1 else inner[0], keepdim, **options)
        return result.unsqueeze(0) if keepdim else result
    return _along_rows(func, input, listed, keepdim, options)


def _along_rows(func: Any, input: NestedTensor, dims: list[int], keepdim: bool, options: dict[str, Any]) -> Any:
    name = func.__name__
    neutral = _NEUTRAL[name]
    if neutral in (float("inf"), float("-inf")) and not input.dtype.is_floating_point:
        limits = torch.iinfo(input.dtype)
        neutral = limits.max if neutral > 0 else limits.min
    full = padded(input, neutral)
    where = dims if len(dims) > 1 else dims[0]
    if name != "mean":
        return func(full, where, keepdim, **options)
    count = input.row_lengths()
    for each in dims:
        count = count * (full.size(each) if each != input._ragged_idx else 1)
    total = full.sum(dims, keepdim, **options)
    return total / count.reshape(-1, *[1] * (total.dim() - 1))


def _packed(nested: NestedTensor) -> Tensor:
    """The elements of the rows alone, where there are others between them."""
    if nested._lengths is None:
        return nested._inner
    return unpadded(padded(nested, 0), nested, nested._ragged_idx)._inner


@_rule("softmax", "log_softmax")
def _softmax(func: Any, input: NestedTensor, dim: int, *rest: Any, **options: Any) -> NestedTensor:
    place = _inner_dim(input, dim, func.__name__) + 1
    if place != input._ragged_idx:
        return input.like(func(input._inner, place - 1, *rest, **options))
    return unpadded(func(padded(input, float("-inf")), place, *rest, **options), input, place)


# Views ----------------------------------------------------------------------------------------------------------------


@_rule("unbind")
def _unbind(func: Any, input: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if dim != 0:
        raise RuntimeError(f"unbind(): only supported for NestedTensor on dim=0, not on dim={dim}")
    place = input._ragged_idx - 1
    begins, lengths = input._offsets.tolist(), input.row_lengths().tolist()
    return tuple([input._inner.narrow(place, begin, length) for begin, length in zip(begins, lengths, strict=False)])


@_rule("__getitem__")
def _subscript(func: Any, input: NestedTensor, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    whole = slice(None)
    if isinstance(parts[0], int):
        row = _unbind(None, input)[parts[0]]
        return row[parts[1:]] if len(parts) > 1 else row
    if parts[0] is Ellipsis:
        parts = (*[whole] * (input.dim() - len(parts) + 1), *parts[1:])
    if (
        parts[0] != whole
        or len(parts) < input._ragged_idx
        or any(each != whole for place, each in enumerate(parts) if place == input._ragged_idx)
    ):
        raise RuntimeError("slice(): not supported for NestedTensor along the rows: use unbind()")
    values = input._inner[parts[1:]]
    kept = sum(not isinstance(each, int) for each in parts[1 : input._ragged_idx])
    return input.like(values, ragged=kept + 1)


@_rule("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    first, second = (_inner_dim(input, each, "transpose") for each in (dim0, dim1))
    swap = {first + 1: second + 1, second + 1: first + 1}
    return input.like(input._inner.transpose(first, second), swap.get(input._ragged_idx, input._ragged_idx))


@_rule("permute")
def _permute(func: Any, input: NestedTensor, dims: Any, *more: int) -> NestedTensor:
    order = [
        (each + input.dim()) % input.dim() for each in (dims if isinstance(dims, (list, tuple)) else (dims, *more))
    ]
    if order[0] != 0:
        raise RuntimeError("permute(): the rows of a NestedTensor stay dimension 0")
    return input.like(input._inner.permute([each - 1 for each in order[1:]]), order.index(input._ragged_idx))


@_rule("unsqueeze")
def _unsqueeze(func: Any, input: NestedTensor, dim: int) -> NestedTensor:
    place = dim + input.dim() + 1 if dim < 0 else dim
    if place == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return input.like(input._inner.unsqueeze(place - 1), input._ragged_idx + (place <= input._ragged_idx))


@_rule("squeeze")
def _squeeze(func: Any, input: NestedTensor, dim: int) -> NestedTensor:
    place = _inner_dim(input, dim, "squeeze") + 1
    if place == input._ragged_idx:
        return input
    removed = place < input._ragged_idx and input._inner.size(place - 1) == 1
    return input.like(input._inner.squeeze(place - 1), input._ragged_idx - removed)


@_rule("select")
def _select(func: Any, input: NestedTensor, dim: int, index: int) -> Any:
    if dim == 0:
        return _unbind(None, input)[index]
    place = _inner_dim(input, dim, "select") + 1
    if place == input._ragged_idx:
        raise RuntimeError("select(): not supported for NestedTensor along the rows: use unbind()")
    return input.like(input._inner.select(place - 1, index), input._ragged_idx - (place < input._ragged_idx))


@_rule("chunk", "split", "split_with_sizes")
def _split(func: Any, input: NestedTensor, sizes: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    place = _inner_dim(input, dim, func.__name__)
    if place + 1 == input._ragged_idx:
        raise RuntimeError(f"{func.__name__}(): not supported for NestedTensor along the rows: use unbind()")
    return tuple([input.like(each) for each in func(input._inner, sizes, place)])


@_rule("flatten")
def _flatten(func: Any, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    first, last = (_inner_dim(input, each, "flatten") for each in (start_dim, end_dim))
    ragged = input._ragged_idx - 1
    if first <= ragged <= last and first != last:
        raise RuntimeError("flatten(): not supported for NestedTensor over the dimension of the rows' lengths")
    return input.like(input._inner.flatten(first, last), input._ragged_idx - (last - first if last < ragged else 0))


@_rule("unflatten")
def _unflatten(func: Any, input: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    place = _inner_dim(input, dim, "unflatten")
    if place + 1 == input._ragged_idx:
        raise RuntimeError("unflatten(): not supported for NestedTensor along the rows")
    added = len(sizes) - 1 if place + 1 < input._ragged_idx else 0
    return input.like(input._inner.unflatten(place, sizes), input._ragged_idx + added)


@_rule("view", "reshape", "expand")
def _view(func: Any, input: NestedTensor, *shape: Any, **options: Any) -> NestedTensor:
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape)
    ragged = next((place for place, each in enumerate(sizes) if each == input._ragged_size), input._ragged_idx)
    fits = len(sizes) > ragged and sizes[ragged] in (-1, input._ragged_size) and sizes[0] in (-1, len(input))
    if not fits:
        raise RuntimeError(
            f"{func.__name__}(): cannot view shape {tuple(input.shape)} as {tuple(sizes)}: the rows stay"
        )
    sizes[ragged] = input._inner.size(input._ragged_idx - 1)
    return input.like(func(input._inner, sizes[1:]), ragged)


@_rule("cat", "concat", "concatenate", "stack")
def _join(func: Any, tensors: Any, dim: int = 0, **options: Any) -> NestedTensor:
    first = _same_rows(tensors, func.__name__)
    if not all(isinstance(each, NestedTensor) for each in tensors):
        raise RuntimeError(f"{func.__name__}(): nested and ordinary tensors cannot be joined")
    stacks = func.__name__ == "stack"
    place = dim + first.dim() + stacks if dim < 0 else dim
    if place == 0 or (place == first._ragged_idx and not stacks):
        raise RuntimeError(f"{func.__name__}(): not supported for NestedTensor on dim={dim}")
    joined = func([each._inner for each in tensors], place - 1)
    return first.like(joined, first._ragged_idx + (stacks and place <= first._ragged_idx))


# Layers ---------------------------------------------------------------------------------------------------------------


@_rule("linear", "layer_norm", "rms_norm")
def _layer(func: Any, input: NestedTensor, *rest: Any, **options: Any) -> NestedTensor:
    """Layers of the last dimension, or of the last ones."""
    last = input.dim() - (len(rest[0]) if func.__name__ != "linear" else 1)
    if input._ragged_idx >= last:
        raise RuntimeError(f"{func.__name__}(): not supported for NestedTensor over the dimension of the rows' lengths")
    return input.like(func(input._inner, *rest, **options))


@_rule("embedding")
def _embedding(func: Any, input: NestedTensor, weight: Tensor, *rest: Any, **options: Any) -> NestedTensor:
    return input.like(func(input._inner, weight, *rest, **options))


@_rule("embedding_bag")
def _embedding_bag(
    func: Any, input: NestedTensor, weight: Tensor, offsets: Any = None, *rest: Any, **options: Any
) -> Any:
    if offsets is not None:
        raise ValueError("embedding_bag(): the rows of a nested tensor are the bags: there are no other offsets")
    weights = options.get("per_sample_weights")
    if isinstance(weights, NestedTensor):
        options["per_sample_weights"] = _packed(weights)
    lengths = input.row_lengths()
    return func(_packed(input), weight, lengths.cumsum(0) - lengths, *rest, **options)


@_rule("matmul", "bmm")
def _matmul(func: Any, input: Any, other: Any, **options: Any) -> Any:
    if isinstance(input, NestedTensor) and not isinstance(other, NestedTensor) and other.dim() <= 2:
        if input._ragged_idx == input.dim() - 1:
            raise RuntimeError("matmul(): not supported for NestedTensor over the dimension of the rows' lengths")
        return input.like(func(input._inner, other))
    first = _first((input, other))
    left, right = (padded(each, 0) if isinstance(each, NestedTensor) else each for each in (input, other))
    result = func(left, right)
    keeps = isinstance(input, NestedTensor) and input._ragged_idx == input.dim() - 2
    if keeps:
        return unpadded(result, input, result.dim() - 2)
    if isinstance(other, NestedTensor) and other._ragged_idx == other.dim() - 1:
        return unpadded(result, first, result.dim() - 1)
    return result


@_rule("scaled_dot_product_attention")
def _attention(
    func: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    **options: Any,
) -> NestedTensor:  # fmt: skip
    """Row by row: each row attends to itself."""
    if not all(isinstance(each, NestedTensor) for each in (query, key, value)):
        raise RuntimeError("scaled_dot_product_attention(): query, key and value are nested tensors, or none is")
    if attn_mask is not None:
        raise ValueError("scaled_dot_product_attention(): nested tensors take no mask: rows attend to themselves")
    rows = zip(*(_unbind(None, each) for each in (query, key, value)), strict=True)
    place = query._ragged_idx - 1
    results = [func(*each, None, dropout_p, is_causal, **options) for each in rows]
    joined = torch.cat([each.movedim(place, 0) for each in results]).movedim(0, place)
    like: NestedTensor = query
    return like.like(joined)


@_rule("equal", "allclose")
def _equal(func: Any, input: NestedTensor, other: Any, *rest: Any, **options: Any) -> bool:
    same = isinstance(other, NestedTensor) and bool(input._offsets.equal(other._offsets))
    return same and bool(func(_packed(input), _packed(other), *rest, **options))


@_rule("tolist", "numpy", "__array__")
def _refused(func: Any, input: NestedTensor, *rest: Any, **options: Any) -> Any:
    raise RuntimeError(f".{func.__name__}() is not supported for tensor subclasses, got NestedTensor")
