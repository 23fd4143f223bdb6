"""`linear_cross_entropy` against PyTorch, in one piece and in chunks."""

from __future__ import annotations

from typing import Any

import pytest

from ....support.differential import differential, outcome, warned

CHUNKS = {"batch_chunk_size": 3, "allow_retain_graph": True}


def _options(T: Any, **changed: Any) -> Any:
    return T.nn.LinearCrossEntropyOptions(**{**CHUNKS, **changed})


def _inputs(T: Any) -> tuple[Any, Any, Any, Any]:
    x = T.linspace(0.0, 40.0, 32, dtype=T.float64).sin().reshape(8, 4).requires_grad_()
    w = T.linspace(1.0, 70.0, 20, dtype=T.float64).cos().reshape(5, 4).requires_grad_()
    b = T.linspace(-1.0, 1.0, 5, dtype=T.float64).requires_grad_()
    return x, w, b, T.tensor([0, 4, 2, -100, 3, 1, 1, 0])


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@differential(tolerance=1e-5)
def test_values_and_gradients(T: Any, chunked: bool, reduction: str) -> Any:
    observed = []
    for with_bias, weight in ((False, None), (True, T.tensor([1.0, 2, 0, 0.5, 3], dtype=T.float64))):
        x, w, b, target = _inputs(T)
        words = {"linear_bias": b if with_bias else None, "weight": weight, "reduction": reduction}
        loss = T.nn.functional.linear_cross_entropy(x, w, target, options=_options(T) if chunked else None, **words)
        loss.backward(T.linspace(1.0, 2.0, loss.numel(), dtype=T.float64).reshape(loss.shape))
        observed += [loss, x.grad, w.grad, b.grad]
        alone = T.nn.functional.linear_cross_entropy(x[0], w, target[0], options=_options(T) if chunked else None)
        observed.append(alone.detach())
    return observed


@differential(tolerance=1e-5)
def test_more_dimensions_and_probabilities(T: Any) -> Any:
    x, _, _, _ = _inputs(T)
    w = T.linspace(1.0, 70.0, 24, dtype=T.float64).cos().reshape(3, 2, 4)
    labels, likely = T.zeros(8, 2, dtype=T.int64), T.ones(8, 3, 2, dtype=T.float64) / 3
    F = T.nn.functional
    return [
        F.linear_cross_entropy(x, w, labels, linear_bias=w[..., 0], reduction="none"),
        F.linear_cross_entropy(x, w, likely, label_smoothing=0.1),
        warned(lambda: F.linear_cross_entropy(x, w, labels, options=_options(T)), "``options`` ignored"),
    ]


@pytest.mark.parametrize("method", [None, "auto", "aspect_ratio", "aspect_ratio:4"])
@differential(tolerance=1e-5)
def test_chunks_by_rule(T: Any, method: Any) -> Any:
    x, w, _, target = _inputs(T)
    options = _options(T, batch_chunk_size=None, chunking_method=method)
    return repr(options), T.nn.functional.linear_cross_entropy(x, w, target, options=options)


@differential
def test_wrong_input(T: Any) -> Any:
    x, w, b, target = _inputs(T)
    loss = T.nn.functional.linear_cross_entropy
    chunks = _options(T)
    return [
        outcome(lambda: loss(x[None], w, target), "expected input with dimensionality 1 or 2"),
        outcome(lambda: loss(x, w[0], target), "dimensionality at least 2"),
        outcome(lambda: loss(x, w[:, :2], target), "last dimensions (in_features)"),
        outcome(lambda: loss(x[0], w[:, None], target), "requires batched input"),
        outcome(lambda: loss(x, w, target, linear_bias=b[:2]), "expected linear_bias shape"),
        outcome(lambda: loss(x, w, x[:, :1].expand(8, 5), ignore_index=0), "ignore_index cannot be specified"),
        outcome(lambda: loss(x, w, target + 3, options=chunks), "is out of bounds for dimension 1"),
        outcome(lambda: loss(x, w.float(), target, options=chunks), "to have the same dtype"),
        outcome(lambda: loss(x, w, target, options=_options(T, acc_dtype=T.float32)), "acc_dtype"),
        outcome(lambda: _options(T, batch_chunk_size=0), "batch_chunk_size must be positive"),
        outcome(lambda: _options(T, chunking_method="rows"), "invalid chunking_method"),
        outcome(lambda: _options(T, acc_policy="rough"), "invalid acc_policy"),
        outcome(lambda: _options(T, acc_dtype=T.int64), "acc_dtype must be one of"),
    ]
