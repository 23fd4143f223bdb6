"""Reductions, scans, order and counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import Call, Inputs, enter

Function = Callable[[Any, Any], Any]


def _flat(name: str, call: Function, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.real()
        return lambda: call(inputs.torch, x)

    enter(name, make, differentiable)


def _matrix(name: str, call: Function, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.real(*inputs.square)
        return lambda: call(inputs.torch, x)

    enter(name, make, differentiable)


def _counts(name: str, call: Function) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.whole(0, 100)
        return lambda: call(inputs.torch, x)

    enter(name, make, False)


for _name in ("sum", "mean", "prod", "max", "min", "std", "median", "nanmedian", "amax", "nansum"):
    _flat(_name, lambda torch, x, name=_name: getattr(torch, name)(x))  # type: ignore[misc]
_flat("norm", lambda torch, x: torch.linalg.vector_norm(x))
_flat("norm, p=3", lambda torch, x: torch.linalg.vector_norm(x, 3))
_flat("logsumexp", lambda torch, x: torch.logsumexp(x, 0))
_flat("kthvalue", lambda torch, x: torch.kthvalue(x, x.numel() // 3 + 1))
_flat("quantile", lambda torch, x: torch.quantile(x, 0.3))
_flat("sort", lambda torch, x: torch.sort(x))
_flat("topk 5", lambda torch, x: torch.topk(x, 5))
_flat("argsort", lambda torch, x: torch.argsort(x, stable=True), False)
_flat("argmax", lambda torch, x: torch.argmax(x), False)
_flat("count_nonzero", lambda torch, x: torch.count_nonzero(x), False)
_flat("aminmax", lambda torch, x: torch.aminmax(x))
_flat("histc", lambda torch, x: torch.histc(x, 50, -2, 2), False)
_flat("unique", lambda torch, x: torch.unique(x), False)
_flat("diff", lambda torch, x: torch.diff(x))
for _name in ("cumsum", "cumprod", "cummax", "logcumsumexp"):
    _flat(_name, lambda torch, x, name=_name: getattr(torch, name)(x, 0))  # type: ignore[misc]
for _dim in (0, 1):
    for _name in ("sum", "amax", "max", "var", "median", "sort", "cumsum", "softmax"):
        _matrix(f"{_name}, dim={_dim}", lambda torch, x, name=_name, dim=_dim: getattr(torch, name)(x, dim))  # type: ignore[misc]
_matrix("mean, dim=1", lambda torch, x: x.mean(1))
_matrix("logsumexp, dim=1", lambda torch, x: x.logsumexp(1))
_matrix("log_softmax, dim=1", lambda torch, x: torch.log_softmax(x, 1))
_matrix("argmax, dim=1", lambda torch, x: x.argmax(1), False)
_matrix("kthvalue, dim=1", lambda torch, x: x.kthvalue(2, 1))
_matrix("topk 3, dim=1", lambda torch, x: x.topk(3, 1) if x.shape[1] > 3 else x.topk(1, 1))
_matrix("mode, dim=1", lambda torch, x: torch.mode(x.round(), 1)[0], False)
_matrix("norm, dim=1", lambda torch, x: torch.linalg.vector_norm(x, dim=1))
_counts("bincount", lambda torch, x: torch.bincount(x))
_counts("unique, int64", lambda torch, x: torch.unique(x))
_counts("sum, int64", lambda torch, x: x.sum())
_counts("sort, int64", lambda torch, x: torch.sort(x)[0])
_counts("cumsum, int64", lambda torch, x: x.cumsum(0))


def _bool_reduction(name: str) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.truth() if name == "any" else inputs.truth() | True
        return lambda: getattr(x, name)()

    enter(f"{name}, bool", make, False)


_bool_reduction("any")
_bool_reduction("all")


def _searchsorted(inputs: Inputs) -> Call:
    borders, x = inputs.torch.arange(-3, 3, 0.01), inputs.real()
    return lambda: inputs.torch.searchsorted(borders, x)


enter("searchsorted", _searchsorted, False)
