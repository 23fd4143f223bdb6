"""Scenarios with sparse tensors, run under PyTorch and under Flambeau."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch as pytorch

import flambeau
from tests.support.differential import describe, differences

Scenario = Callable[..., Any]


def seen(value: Any) -> Any:
    """What a scenario observed: a sparse tensor as its layout, places, values, size and flags."""
    if isinstance(value, (pytorch.Tensor, flambeau.Tensor)) and str(value.layout) != "torch.strided":
        plain: Any = value.detach()
        if str(value.layout) == "torch.sparse_coo":
            parts = [plain._indices(), plain._values(), plain.is_coalesced()]
        elif str(value.layout)[-1] == "r":
            parts = [plain.crow_indices(), plain.col_indices(), plain.values()]
        else:
            parts = [plain.ccol_indices(), plain.row_indices(), plain.values()]
        return {
            "layout": str(value.layout),
            "dtype": str(value.dtype),
            "size": tuple(value.shape),
            "parts": [_without_strides(seen(each)) for each in parts],
            "requires_grad": value.requires_grad,
            "is_leaf": value.is_leaf,
        }
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    return describe(value)


def _without_strides(observed: Any) -> Any:
    """PyTorch keeps room for more places, which shows in their strides; nothing follows from it."""
    return {key: item for key, item in observed.items() if key != "stride"} if isinstance(observed, dict) else observed


def same(function: Scenario) -> Scenario:
    """A test that runs its scenario under both libraries and compares what it returned."""

    @functools.wraps(function)
    def test(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch says that its sparse tensors are a beta, and unchecked
            expected, actual = seen(function(pytorch, *args, **kwargs)), seen(function(flambeau, *args, **kwargs))
        found = list(differences(expected, actual))
        assert not found, "\n".join(found)

    del test.__wrapped__  # type: ignore[attr-defined]
    import inspect

    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1:]
    test.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return test


def matrix(T: Any, coalesced: bool = False, **options: Any) -> Any:
    """A 2x3 matrix in which one place is named twice; coalesced, if asked for."""
    made = T.sparse_coo_tensor(T.tensor([[0, 1, 1], [2, 0, 0]]), T.tensor([3.0, 4.0, 5.0]), (2, 3), **options)
    return made.coalesce() if coalesced else made


def rows(T: Any, **options: Any) -> Any:
    """A 2x3 CSR matrix."""
    return T.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (2, 3), **options)
