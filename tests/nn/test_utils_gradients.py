"""`nn.utils`: clipping gradients, parameters as a vector."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned


def _parameters(T: Any) -> list[Any]:
    T.manual_seed(0)
    parameters = [T.nn.Parameter(T.randn(3, 4)), T.nn.Parameter(T.randn(5)), T.nn.Parameter(T.randn(2))]
    for each in parameters[:2]:
        each.grad = T.randn(*each.shape) * 3
    return parameters


@differential
@pytest.mark.parametrize("norm_type", [2.0, 1, 3, 0.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 1000])
def test_clip_grad_norm(T, norm_type, max_norm):
    results = []
    for foreach in (None, False, True):
        parameters = _parameters(T)
        total = T.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type, foreach=foreach)
        results.append((total, [each.grad for each in parameters]))
    return results


@differential
def test_total_norm(T):
    norm = T.nn.utils.get_total_norm
    ones = T.ones(2, 3)
    single = T.ones(2, requires_grad=True)
    single.grad = T.full((2,), 8.0)
    return (
        norm([]),
        norm(ones),
        norm([ones, T.ones(2, dtype=T.float64)]),
        norm([ones.half(), ones.bfloat16()]),
        norm(iter([ones, ones]), float("inf")),
        T.nn.utils.clip_grads_with_norm_(single, 2.0, T.tensor(4.0)),
        single.grad,
        T.nn.utils.clip_grads_with_norm_([T.ones(1)], 2.0, T.tensor(4.0)),
        outcome(lambda: norm([T.ones(2, dtype=T.int64)]), "floating point or complex"),
    )


@differential
def test_clip_what_is_not_finite(T):
    def gradient(value):
        weight = T.ones(2, requires_grad=True)
        weight.grad = T.tensor([value, 1.0])
        return weight

    clip = T.nn.utils.clip_grad_norm_
    return (
        [outcome(lambda v=v: clip(gradient(v), 1.0, error_if_nonfinite=True), "is non-finite") for v in (T.inf, T.nan)],
        [clip(gradient(v), 1.0) for v in (T.inf, T.nan)],
        clip([], 1.0),
        clip([T.ones(1)], 1.0),
        warned(lambda: clip((each for each in ()), 1.0), "empty generator"),
        warned(lambda: T.nn.utils.clip_grad_norm(gradient(2.0), 1.0), "clip_grad_norm_"),
    )


@differential
def test_clip_grad_value(T):
    results = []
    for foreach in (None, False, True):
        parameters = _parameters(T)
        T.nn.utils.clip_grad_value_(parameters, 1, foreach=foreach)
        T.nn.utils.clip_grad_value_(parameters[0], 0.5, foreach=foreach)
        results.append([each.grad for each in parameters])
    return results


@differential
def test_parameters_and_vectors(T):
    model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.Linear(3, 1))
    vector = T.nn.utils.parameters_to_vector(model.parameters())
    vector.sum().backward()
    new = T.arange(float(vector.numel()))
    T.nn.utils.vector_to_parameters(new, model.parameters())
    new[0] = 100.0  # shared
    return (
        vector,
        model[0].weight.grad,
        list(model.parameters()),
        outcome(lambda: T.nn.utils.vector_to_parameters([1], model.parameters()), "expected torch.Tensor"),
        outcome(lambda: T.nn.utils.vector_to_parameters(T.ones(2), model.parameters()), "is invalid for input of size"),
        outcome(lambda: T.nn.utils.parameters_to_vector([]), "non-empty list"),
    )
