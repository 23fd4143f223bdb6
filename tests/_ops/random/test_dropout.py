"""Dropout and gumbel_softmax: the same random numbers as PyTorch, derivatives, in-place forms, errors, warnings."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.differential import differential, outcome, warned

FLOATS = ["float16", "bfloat16", "float32", "float64"]


def _ramp(T: Any, dtype: str, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return T.linspace(1, 2, count).reshape(shape).to(getattr(T, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
@differential(tolerance=0.0)
def test_the_same_mask_for_the_same_seed(T: Any, dtype: str, p: float) -> Any:
    return T.nn.functional.dropout(_ramp(T, dtype, 40, 25), p), T.nn.functional.dropout(_ramp(T, dtype, 3), p)


@pytest.mark.parametrize("dtype", FLOATS)
@differential
def test_every_form_draws_the_same_numbers(T: Any, dtype: str) -> Any:
    F = T.nn.functional
    x3, x4, x5 = _ramp(T, dtype, 2, 3, 4), _ramp(T, dtype, 2, 3, 2, 2), _ramp(T, dtype, 2, 3, 2, 2, 1)
    return (
        F.dropout1d(x3, 0.3),
        F.dropout1d(x3[0], 0.3),
        F.dropout2d(x4, 0.3),
        F.dropout3d(x5, 0.3),
        F.dropout3d(x4, 0.3),
        F.alpha_dropout(x3, 0.3, training=True),
        F.feature_alpha_dropout(x4, 0.3, training=True),
        T.feature_dropout(x4, 0.3, True),
        T.alpha_dropout(x3, 1.0, True),
        T.native_dropout(x3, 0.3, True),
        T.native_dropout(x3, 0.3, None),
        T.native_dropout(x3, 0.3, False),
        T.rand(2),  # as many numbers were taken
    )


@differential
def test_numbers_follow_the_layout_of_the_input(T: Any) -> Any:
    F, x = T.nn.functional, T.ones(4, 3).t()
    last = T.ones(2, 3, 2, 2).to(memory_format=T.channels_last)
    return F.dropout(x), T.native_dropout(x, 0.5, True), F.alpha_dropout(x, training=True), F.dropout2d(last)


@differential
def test_evaluation_gives_the_input_itself(T: Any) -> Any:
    F, x = T.nn.functional, T.ones(2, 3, 4)
    calls = (F.dropout, F.alpha_dropout, F.feature_alpha_dropout)
    return [call(x, 0.5, training=False) is x for call in calls], F.dropout(x, 0.0) is x, F.dropout1d(x, 0.0) is x


@differential
def test_gradients(T: Any) -> Any:
    F = T.nn.functional
    x = _ramp(T, "float64", 2, 3, 4).requires_grad_()
    results = [F.dropout(x), F.dropout1d(x), F.alpha_dropout(x, training=True), T.native_dropout(x, 0.3, True)[0]]
    (first,) = T.autograd.grad(results[3].sum(), x, create_graph=True)
    mask = T.tensor([True, False, True])
    scaled = T.ops.aten.native_dropout_backward(T.ones(3, requires_grad=True), mask, 2.0)
    return (
        results,
        [T.autograd.grad(result.sum(), x, retain_graph=True)[0] for result in results],
        first.detach(),
        scaled,
        T.ops.aten.native_dropout_backward(T.tensor([1, 2, 3]), mask, 2.5),
    )


@differential
def test_in_place(T: Any) -> Any:
    F = T.nn.functional
    calls = [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout]
    shapes = [(3,), (2, 3), (1, 2, 2, 2), (2, 2, 2, 2), (3,), (2, 3, 2)]
    observed = []
    for call, shape in zip(calls, shapes, strict=True):
        x = T.ones(shape)
        observed.append((call(x, 0.5, training=True, inplace=True) is x, x, x._version > 0))
    y = T.ones(4)
    leaf = T.ones(4, requires_grad=True)
    return observed, T.dropout_(y, 0.5, True) is y, y, outcome(lambda: F.dropout(leaf, 0.5, inplace=True), "a leaf")


@differential
def test_gumbel_softmax(T: Any) -> Any:
    F = T.nn.functional
    logits = T.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    soft, hard = F.gumbel_softmax(logits, 0.7), F.gumbel_softmax(logits, hard=True, dim=0)
    return soft, hard, T.autograd.grad((hard * logits.detach()).sum(), logits), F.gumbel_softmax(logits.half())


@differential
def test_errors_and_warnings(T: Any) -> Any:
    F, x = T.nn.functional, T.ones(3)
    wrong_p = "dropout probability has to be between 0 and 1"
    return (
        [outcome(lambda f=f: f(x, 1.5), wrong_p) for f in (F.dropout, F.dropout2d, F.alpha_dropout)],
        outcome(lambda: T.dropout(x, -1.0, True), wrong_p),
        outcome(lambda: F.dropout(x, -1.0, training=False), wrong_p),
        outcome(lambda: F.dropout(T.tensor([1, 2])), "can't be cast"),
        outcome(lambda: T.native_dropout(T.tensor([1, 2]), 0.5, True), "can't be cast"),
        outcome(lambda: F.dropout1d(x), "Expected 2D or 3D input"),
        outcome(lambda: T.feature_dropout(x, 0.5, True), "Feature dropout requires at least 2 dimensions"),
        warned(lambda: F.dropout2d(T.ones(2, 3, 4)).shape, "assuming that channel-wise 1D dropout behavior is"),
        warned(lambda: F.dropout2d(T.ones(2, 3)).shape, "Received a 2-D input to dropout2d, which is deprecated"),
        warned(lambda: F.gumbel_softmax(x, eps=1e-5).shape, "`eps` parameter is deprecated"),
        warned(lambda: F.dropout3d(T.ones(2, 3)).shape, "Received a 2-D input to dropout3d, which is deprecated"),
        outcome(lambda: F.rrelu(x, 0.5, 0.1), "Lower bound should be less than or equal to the upper bound"),
    )
