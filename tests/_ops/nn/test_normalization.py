"""batch_norm, instance_norm, local_response_norm: values, running statistics, derivatives, layouts, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome

DOUBLE = flambeau.float64


def _channels(T: Any, dtype: Any = None) -> Any:
    x = (T.linspace(0, 100, 2 * 3 * 4 * 5).reshape(2, 3, 4, 5) * 1.7).sin() * 3
    return x if dtype is None else x.to(dtype)


def _parameters(T: Any, dtype: Any = None) -> dict[str, Any]:
    values = {"weight": [0.5, -1.0, 2.0], "bias": [0.1, 0.2, -0.3]}
    return {name: T.tensor(value, dtype=dtype) for name, value in values.items()}


def _statistics(T: Any, dtype: Any = None) -> tuple[Any, Any]:
    return T.tensor([0.5, -0.5, 0.0], dtype=dtype), T.tensor([1.0, 2.0, 0.5], dtype=dtype)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("momentum", [0.1, 0.0, 1.0])
@differential(tolerance=1e-5)
def test_batch_norm_moves_the_running_statistics_in_training(T: Any, training: bool, momentum: float) -> Any:
    mean, variance = _statistics(T)
    result = T.nn.functional.batch_norm(
        _channels(T), mean, variance, **_parameters(T), training=training, momentum=momentum, eps=1e-3
    )
    return result, mean, variance, mean._version


@pytest.mark.parametrize("training", [True, False])
@differential(tolerance=1e-5)
def test_batch_norm_records_one_node(T: Any, training: bool) -> Any:
    mean, variance = _statistics(T)
    x = _channels(T).requires_grad_()
    parameters = {name: each.requires_grad_() for name, each in _parameters(T).items()}
    result = T.nn.functional.batch_norm(x, mean, variance, **parameters, training=training)
    node = result.grad_fn
    weights = T.linspace(0, 1, result.numel()).reshape(result.shape)
    return (
        [each[0].name() for each in node.next_functions],
        (node._saved_weight, node._saved_training, node._saved_result1.detach(), node._saved_result2.detach()),
        T.autograd.grad((result * weights).sum(), [x, *parameters.values()]),
    )


@pytest.mark.parametrize("input_dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("parameter_dtype", [None, "float32", "same"])
@differential(tolerance=1e-5)
def test_half_precision_keeps_float32_parameters(T: Any, input_dtype: str, parameter_dtype: str | None) -> Any:
    dtype = getattr(T, input_dtype)
    x = _channels(T, dtype)
    if parameter_dtype is None:
        return T.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    kept = dtype if parameter_dtype == "same" else T.float32
    mean, variance = _statistics(T, kept)
    parameters = _parameters(T, kept)
    results = [
        T.native_batch_norm(x, parameters["weight"], parameters["bias"], mean, variance, training, 0.1, 1e-5)
        for training in (True, False)
    ]
    return results, mean, variance


@differential
def test_native_forms(T: Any) -> Any:
    x = _channels(T).requires_grad_()
    weight, bias = _parameters(T).values()
    aten = T.ops.aten
    return (
        T.native_batch_norm(x, weight, bias, *_statistics(T), True, 0.1, 1e-5),
        T.native_batch_norm(x, weight, bias, *_statistics(T), False, 0.1, 1e-5),
        T._native_batch_norm_legit(x, weight, bias, *_statistics(T), True, 0.1, 1e-5),
        T._native_batch_norm_legit(x, weight, bias, True, 0.1, 1e-5),
        T._native_batch_norm_legit_no_training(x, weight, bias, *_statistics(T), 0.1, 1e-5),
        aten._batch_norm_with_update(x, weight, bias, *_statistics(T), 0.1, 1e-5),
        T.batch_norm(x, weight, bias, *_statistics(T), True, 0.1, 1e-5, True),
        T.instance_norm(x, weight, bias, *_statistics(T), True, 0.1, 1e-5, True),
    )


@differential
def test_layouts(T: Any) -> Any:
    F, x = T.nn.functional, _channels(T)
    last = x.to(memory_format=T.channels_last)
    return (
        F.batch_norm(last, None, None, training=True),
        F.batch_norm(last, *_statistics(T)),
        F.batch_norm(x.transpose(2, 3), None, None, training=True),
        F.batch_norm(x[:, :, ::2], None, None, training=True),
        F.instance_norm(last),
        F.batch_norm(x[:0], *_statistics(T), training=True),
        F.batch_norm(T.ones(4, 3, device="meta"), None, None, training=True),
    )


@differential(tolerance=1e-5)
def test_instance_norm(T: Any) -> Any:
    mean, variance = _statistics(T)
    x = _channels(T)
    trained = T.nn.functional.instance_norm(x, mean, variance, **_parameters(T), momentum=0.3)
    evaluated = T.nn.functional.instance_norm(x, mean, variance, use_input_stats=False)
    return trained, evaluated, mean, variance, mean._version


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@differential
def test_local_response_norm(T: Any, size: int) -> Any:
    F, x = T.nn.functional, _channels(T)
    return F.local_response_norm(x, size), F.local_response_norm(x[0], size, 0.1, 0.5, 2.0)


@pytest.mark.parametrize("training", [True, False])
def test_derivatives(training: bool) -> None:
    x = _channels(flambeau, DOUBLE)[:, :, :2, :2].contiguous().requires_grad_()
    weight, bias = (each.requires_grad_() for each in _parameters(flambeau, DOUBLE).values())

    def op(x: Any, weight: Any, bias: Any) -> Any:
        return flambeau.nn.functional.batch_norm(x, *_statistics(flambeau, DOUBLE), weight, bias, training)

    assert flambeau.autograd.gradcheck(op, (x, weight, bias))
    assert flambeau.autograd.gradgradcheck(op, (x, weight, bias))


@differential
def test_errors(T: Any) -> Any:
    F, x, three, four = T.nn.functional, T.ones(2, 3), T.ones(3), T.ones(4)
    return (
        outcome(
            lambda: F.batch_norm(T.ones(1, 3), None, None, training=True), "Expected more than 1 value per channel"
        ),
        outcome(lambda: F.batch_norm(x, None, None), "running_mean must be defined in evaluation mode"),
        outcome(lambda: F.batch_norm(x, four, three), "running_mean should contain 3 elements not 4"),
        outcome(lambda: F.batch_norm(x, three, three, four), "weight should contain 3 elements not 4"),
        outcome(lambda: F.batch_norm(x, three, None, training=True), "must either both be None or neither be None"),
        outcome(lambda: F.batch_norm(x.long(), None, None, training=True), "not implemented for 'Long'"),
        outcome(lambda: F.batch_norm(x, three, three, three.double()), "mixed dtype (CPU)"),
        outcome(
            lambda: F.batch_norm(x.half(), three, three, three.half()), "expected scalar type Half but found Float"
        ),
        outcome(lambda: F.batch_norm(x, three.requires_grad_(), T.ones(3)), "is not differentiable with respect to"),
        outcome(lambda: F.batch_norm(x, None, None, training=True, momentum=None), "must be float, not NoneType"),
        outcome(lambda: F.instance_norm(T.ones(2, 3, 1)), "Expected more than 1 spatial element"),
        outcome(lambda: F.instance_norm(T.ones(2, 3, 4), use_input_stats=False), "to be defined when use_input_stats"),
        outcome(lambda: F.local_response_norm(x, 2), "Expected 3D or higher dimensionality"),
        outcome(lambda: F.local_response_norm(T.ones(1, 2, 3), 0), "kernel size should be greater than zero"),
    )
