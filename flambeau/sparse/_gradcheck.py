"""Checks of derivatives for functions of sparse tensors: the function is seen as one of dense ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.device import strided
from .._core.tensor import Tensor


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is not strided


def _opened(value: Any, masked: bool) -> Any:
    """A result as `gradcheck` takes it: dense."""
    if isinstance(value, (list, tuple)):
        return type(value)(_opened(each, masked) for each in value)
    return value.to_dense(masked_grad=masked) if _is_sparse(value) else value


def _like(dense: Tensor, pattern: Any, masked: bool) -> Any:
    """A dense tensor in the layout of a sparse one: at its places alone, or with all elements, zeros too."""
    places = pattern.detach()
    if not masked:
        options = {"blocksize": pattern.values().shape[-2:]} if "_bs" in str(pattern.layout) else {}
        places = dense.detach().new_ones(dense.shape).to_sparse(layout=pattern.layout, **options)
    return dense.sparse_mask(places.coalesce() if places.is_sparse else places)


def checked_as_dense(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck` for functions of sparse tensors."""

    @functools.wraps(gradcheck)
    def gradcheck_with_sparse_support(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        masked = kwargs.pop("masked", False)
        given = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        dense = [
            each.detach().to_dense().requires_grad_(each.requires_grad) if _is_sparse(each) else each for each in given
        ]

        def of_dense(*values: Any) -> Any:
            made = [
                _like(value, pattern, masked) if _is_sparse(pattern) else value
                for value, pattern in zip(values, given, strict=True)
            ]
            return _opened(func(*made), masked)

        return gradcheck(of_dense, tuple(dense), **kwargs)

    return gradcheck_with_sparse_support
