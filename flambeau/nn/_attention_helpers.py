"""Steps of multi-head attention that libraries call by PyTorch's private names in `nn.functional`."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from ..overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic

__all__ = [
    "_canonical_mask", "_in_projection", "_in_projection_packed", "_mha_shape_check", "_none_or_dtype",
    "_verify_batch_size", "assert_int_or_pair", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic",
]  # fmt: skip


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a mask, if there is one."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:
    """A mask as numbers to be added to scores: a boolean one hides where it is True."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise TypeError(f"{mask_name} must be Tensor, not {type(mask).__name__}")
    if mask.dtype.name != "bool" and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        import warnings

        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            UserWarning,
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    from .. import zeros_like

    return zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Tensor | None = None,
    b_k: Tensor | None = None, b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Queries, keys and values through a linear layer each."""
    from .functional import linear

    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Query, key and value projected by three layers in one weight."""
    from .functional import linear

    if k is v and q is k:
        return list(linear(q, w, b).chunk(3, dim=-1))
    weights = w.chunk(3)
    biases: Any = (None, None, None) if b is None else b.chunk(3)
    return [linear(each, *parts) for each, *parts in zip((q, k, v), weights, biases, strict=True)]


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether inputs come in batches; an AssertionError if their dimensions do not belong together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {query.dim()}-D `query`, expected `key` and `value` to be {query.dim()}-D but found {key.dim()}-D "
            f"and {value.dim()}-D tensors respectively"
        )
    batched = query.dim() == 3
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"expected `key_padding_mask` to be None or {query.dim() - 1}-D but found {key_padding_mask.dim()}-D tensor"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(f"expected `attn_mask` to be None, 2-D or 3-D but found {attn_mask.dim()}-D tensor")
        expected = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.dim() == 3 and tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}")
    return batched


def _verify_batch_size(size: list[int]) -> None:
    """Refuse to normalise one value by itself."""
    product = size[0]
    for each in size[2:]:
        product *= each
    if product == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Refuse what is neither a number nor a pair."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))
