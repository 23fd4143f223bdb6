"""layer_norm, group_norm, rms_norm: values, dtypes, layouts, derivatives, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome


def _input(T: Any, *shape: int, dtype: Any = None) -> Any:
    count = 1
    for size in shape:
        count *= size
    x = T.linspace(-3, 4, count).reshape(shape)
    x = x * x.cos() + x
    return x if dtype is None else x.to(dtype)


@differential(tolerance=1e-5)
def test_layer_norm(T: Any) -> Any:
    F, x = T.nn.functional, _input(T, 2, 3, 4)
    weight, bias = _input(T, 3, 4), _input(T, 3, 4).sin()
    return (
        F.layer_norm(x, (4,)),
        F.layer_norm(x, [3, 4], weight, bias, 0.1),
        F.layer_norm(x, (2, 3, 4), bias=_input(T, 2, 3, 4)),
        F.layer_norm(x.transpose(0, 2), (2,)),
        F.layer_norm(x[:0], (3, 4), weight),
        F.layer_norm(T.ones(1), (1,)),
        F.layer_norm(x.to("meta"), (4,)),
        T.native_layer_norm(x, (3, 4), weight, None, 1e-5),
        T.layer_norm(x, (4,), None, None, 1e-3, False),
    )


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@differential(tolerance=1e-5)
def test_half_precision_with_parameters_of_either_dtype(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    x, weight, scale = _input(T, 3, 4, 2, dtype=dtype), _input(T, 2), _input(T, 4)
    return (
        T.native_layer_norm(x, (2,), weight, weight, 1e-5),
        T.native_layer_norm(x, (2,), weight.to(dtype), None, 1e-5),
        T.native_group_norm(x, scale, scale, 3, 4, 2, 2, 1e-5),
        T.native_group_norm(x, scale.to(dtype), None, 3, 4, 2, 2, 1e-5),
        T.rms_norm(x, (2,), weight.to(dtype)),
    )


@differential(tolerance=1e-5)
def test_nodes_and_gradients(T: Any) -> Any:
    F = T.nn.functional
    x = _input(T, 2, 4, 3).requires_grad_()
    weight, bias = _input(T, 3).requires_grad_(), _input(T, 3).requires_grad_()
    scale, shift = _input(T, 4).requires_grad_(), _input(T, 4).requires_grad_()
    layer = F.layer_norm(x, (3,), weight, bias)
    group = F.group_norm(x, 2, scale, shift)
    rms = F.rms_norm(x, (3,), weight)
    return (
        (
            layer,
            layer.grad_fn._saved_result1.detach(),
            layer.grad_fn._saved_normalized_shape,
            layer.grad_fn._saved_bias,
        ),
        (group, group.grad_fn._saved_result2.detach(), group.grad_fn._saved_HxW, group.grad_fn._saved_group),
        T.autograd.grad((layer * layer.detach().cos()).sum(), (x, weight, bias)),
        T.autograd.grad((group * group.detach().cos()).sum(), (x, scale, shift)),
        T.autograd.grad((rms * rms.detach().cos()).sum(), (x, weight)),
        T.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5),
    )


@differential(tolerance=1e-5)
def test_group_norm(T: Any) -> Any:
    F, x = T.nn.functional, _input(T, 2, 6, 2, 2)
    weight = _input(T, 6)
    return (
        [F.group_norm(x, groups, weight, weight.sin(), 0.1) for groups in (1, 2, 3, 6)],
        F.group_norm(x.to(memory_format=T.channels_last), 2),
        F.group_norm(x.transpose(0, 2), 3),
        F.group_norm(x[:0], 2),
        F.group_norm(x.to("meta"), 2),
        T.group_norm(x, 2, weight, None, 1e-5, False),
    )


@differential(tolerance=1e-5)
def test_rms_norm(T: Any) -> Any:
    F, x = T.nn.functional, _input(T, 2, 3, 4)
    small = T.tensor([1e-3, 2e-3])
    return (
        F.rms_norm(x, (4,)),
        F.rms_norm(x, [3, 4], _input(T, 3, 4), 0.5),
        [F.rms_norm(small.to(dtype), (2,)) for dtype in (T.float16, T.bfloat16, T.float32, T.float64)],
        F.rms_norm(T.complex(x, x), (4,)),
        F.rms_norm(x.transpose(0, 2), (2,)),
        T.rms_norm(x.to("meta"), (4,)),
    )


@pytest.mark.parametrize(
    "expression", ["layer_norm(x, (2, 3), w, b)", "group_norm(x, 2, s, t)", "rms_norm(x, (3,), v)"]
)
def test_derivatives(expression: str) -> None:
    double = flambeau.float64
    shapes = {"w": (2, 3), "b": (2, 3), "s": (4,), "t": (4,), "v": (3,)}
    names = [name for name in shapes if f", {name}" in expression]
    x = _input(flambeau, 2, 4, 2, 3, dtype=double).requires_grad_()
    parameters = [_input(flambeau, *shapes[name], dtype=double).requires_grad_() for name in names]

    def op(x: Any, *parameters: Any) -> Any:
        scope = {"x": x, "F": flambeau.nn.functional, **dict(zip(names, parameters, strict=True))}
        return eval(f"F.{expression}", scope)

    assert flambeau.autograd.gradcheck(op, (x, *parameters))
    assert flambeau.autograd.gradgradcheck(op, (x, *parameters))


@differential
def test_errors(T: Any) -> Any:
    F, x = T.nn.functional, T.ones(2, 3, 4)
    return (
        outcome(lambda: F.layer_norm(x, ()), "Expected normalized_shape to be at least 1-dimensional"),
        outcome(lambda: F.layer_norm(x, (3,)), "Given normalized_shape=[3], expected input with shape [*, 3]"),
        outcome(lambda: F.layer_norm(x, 4), "must be tuple of ints, not int"),
        outcome(lambda: F.layer_norm(x, (4,), T.ones(3)), "Expected weight to be of same shape as normalized_shape"),
        outcome(lambda: F.layer_norm(x, (4,), None, T.ones(3)), "Expected bias to be of same shape"),
        outcome(lambda: F.layer_norm(x.long(), (4,)), "not implemented for 'Long'"),
        outcome(lambda: F.layer_norm(x.double(), (4,), T.ones(4)), "all inputs must share same datatype"),
        outcome(lambda: F.rms_norm(x.long(), (4,)), "not implemented for 'Long'"),
        outcome(lambda: F.group_norm(x, 2), "Expected number of channels in input to be divisible by num_groups"),
        outcome(lambda: F.group_norm(T.ones(3), 1), "Expected at least 2 dimensions"),
        outcome(lambda: F.group_norm(x, 1, T.ones(2)), "Expected weight to be a vector of size equal to"),
        outcome(lambda: F.group_norm(T.ones(1, 3), 3), "Expected more than 1 value per channel"),
        outcome(lambda: T.native_group_norm(x, None, None, 2, 3, 5, 1, 1e-5), "N * C * HxW"),
        outcome(lambda: T.native_group_norm(x.transpose(1, 2), None, None, 2, 4, 3, 1, 1e-5), "is_contiguous"),
    )
