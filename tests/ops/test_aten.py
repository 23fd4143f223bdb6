"""Operators called by their aten names, as compilers, exporters and quantisers call them."""

from __future__ import annotations

from typing import Any

from tests.support.differential import differential, outcome


def _numbers(T: Any, *shape: int) -> Any:
    count = 1
    for extent in shape:
        count *= extent
    return (T.arange(count, dtype=T.float32).reshape(shape) * 7 % 11 - 5) / 4


@differential
def test_out_keeps_its_shape(T: Any) -> Any:
    aten = T.ops.aten
    out = [T.zeros(2, 2) for _ in range(5)]
    aten.arange.start_out(0, 4, out=out[0])
    aten.linspace.out(0, 3, 4, out=out[1])
    aten.logspace.out(0, 1, 4, out=out[2])
    T.arange(4.0, out=out[3])
    T.linspace(0, 3, 4, out=out[4])
    return [each.flatten() for each in out], [each.shape for each in out]


@differential
def test_losses_take_reductions_as_numbers(T: Any) -> Any:
    aten = T.ops.aten
    x, y = _numbers(T, 3, 4), _numbers(T, 3, 4).abs()
    losses = aten.kl_div, aten.l1_loss, aten.mse_loss, aten.smooth_l1_loss, aten.huber_loss, aten.soft_margin_loss
    return [[loss(x, y, number) for number in range(3)] for loss in losses], [loss(x, y) for loss in losses]


@differential
def test_negative_log_likelihood(T: Any) -> Any:
    aten = T.ops.aten
    x, target, weight = _numbers(T, 4, 3).log_softmax(1), T.tensor([0, 2, 1, 2]), T.tensor([1.0, 2.0, 0.5])
    found = []
    for given in (None, weight):
        for reduction in range(3):
            loss, total = aten.nll_loss_forward(x, target, given, reduction, 1)
            args = T.ones_like(loss), x, target, given, reduction, 1, total
            found.append((loss, total, aten.nll_loss_backward(*args)))
    return found


@differential
def test_unpooling_takes_the_size(T: Any) -> Any:
    pooled, places = T.ops.aten.max_pool2d_with_indices(_numbers(T, 1, 2, 4, 6), [2, 2])
    return T.ops.aten.max_unpool2d(pooled, places, [4, 6])


@differential
def test_gradient_of_a_convolution_without_sizes_of_the_bias(T: Any) -> Any:
    x, w = _numbers(T, 2, 3, 5, 5), _numbers(T, 4, 3, 3, 3)
    grad = T.ops.aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    args = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    masks = [True, True, True], [False, True, False]
    return [T.ops.aten.convolution_backward(grad, x, w, None, *args, mask) for mask in masks]


@differential
def test_convolutions_under_their_inner_names(T: Any) -> Any:
    x, w = _numbers(T, 2, 3, 5, 5), _numbers(T, 4, 3, 3, 3)
    args = [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True
    return T.ops.aten._convolution(x, w, None, *args, True), T.ops.aten._convolution.deprecated(x, w, None, *args)


@differential
def test_further_results_of_bags(T: Any) -> Any:
    weight, indices, offsets = _numbers(T, 5, 3), T.tensor([1, 2, 4, 4]), T.tensor([0, 2])
    return [T.ops.aten.embedding_bag(weight, indices, offsets, False, mode) for mode in range(3)]


@differential
def test_threshold_of_integers(T: Any) -> Any:
    x = T.tensor([-1, 0, 3])
    return T.ops.aten.threshold_backward(T.tensor([4, 5, 6]), x, 0), T.ops.aten.threshold_backward(
        _numbers(T, 3), _numbers(T, 3), 0.5
    )


@differential
def test_none_among_indices(T: Any) -> Any:
    x, rows = _numbers(T, 3, 4), T.tensor([0, 2, 2])
    plain, summed, inner = x.clone(), x.clone(), x.clone()
    T.ops.aten.index_put_(plain, [None, rows[:2]], T.zeros(3, 2))
    T.ops.aten.index_put_(summed, [None, rows], T.ones(3, 3), True)
    T.ops.aten._index_put_impl_(inner, [rows], T.ones(3, 4), True, False)
    return plain, summed, inner, T.ops.aten.index(x, [None, rows]), T.ops.aten._unsafe_index(x, [rows, None])


@differential
def test_keyword_names_of_the_schema(T: Any) -> Any:
    aten, x = T.ops.aten, _numbers(T, 3, 4)
    return (
        aten.add.Tensor(self=x, other=x, alpha=2),
        aten.sum.dim_IntList(self=x, dim=[0], dtype=T.float64),
        aten.gelu.default(self=x, approximate="tanh"),
        aten.elu(self=x, alpha=2, scale=1.5, input_scale=0.5),
        aten.clamp(self=x, min=-0.5),
        outcome(lambda: aten.add.Tensor(input=x, other=x)),
    )


@differential
def test_dtypes_and_formats_as_numbers(T: Any) -> Any:
    aten, x = T.ops.aten, _numbers(T, 1, 2, 3, 4)
    numbers = aten.sum.default(x, dtype=7), aten.to.dtype(x, 5), aten.zeros([2], dtype=4)
    return numbers, aten.clone.default(x, memory_format=T.channels_last).stride()


@differential
def test_derivatives_of_activations(T: Any) -> Any:
    aten, x, grad = T.ops.aten, _numbers(T, 3, 4), T.ones(3, 4)
    noise = T.full((3, 4), 0.2)
    return (
        aten.elu_backward(grad, 1.5, 1, 1, False, x),
        aten.silu_backward(grad, x),
        aten.mish_backward(grad, x),
        aten.leaky_relu_backward(grad, x, 0.1, False),
        aten.hardtanh_backward(grad, x, -1, 1),
        aten.softplus_backward(grad, x, 1, 20),
        aten.log_sigmoid_backward(grad, x, aten.log_sigmoid_forward(x)[1]),
        aten.glu_backward(T.ones(3, 2), x, -1),
        aten.rrelu_with_noise_backward(grad, x, noise, 0.1, 0.3, True, False),
        aten._softmax_backward_data(grad, x.softmax(-1), -1, T.float32),
        aten._log_softmax_backward_data(x, x.log_softmax(-1), -1, T.float32),
    )


@differential
def test_derivatives_of_normalisations(T: Any) -> Any:
    aten, x, grad = T.ops.aten, _numbers(T, 2, 4, 3), _numbers(T, 2, 4, 3) + 1
    weight, mask = T.arange(4.0), [True, True, True]
    layer = aten.native_layer_norm(x, [3], T.ones(3), T.zeros(3), 1e-5)
    group = aten.native_group_norm(x, weight, weight, 2, 4, 3, 2, 1e-5)
    batch = aten.native_batch_norm(x, weight, weight, None, None, True, 0.1, 1e-5)
    return (
        aten.native_layer_norm_backward(grad, x, [3], *layer[1:], T.ones(3), T.zeros(3), mask),
        aten.native_group_norm_backward(grad, x, *group[1:], weight, 2, 4, 3, 2, mask),
        aten.native_batch_norm_backward(grad, x, weight, None, None, *batch[1:], True, 1e-5, mask),
    )


@differential
def test_values_of_python(T: Any) -> Any:
    aten = T.ops.aten
    return (
        aten.Bool.Tensor(T.tensor(1)), aten.Int.Tensor(T.tensor(2.5)), aten.Float.Tensor(T.tensor(3)),
        aten.ScalarImplicit(T.tensor(1.5)), aten.size(T.ones(2, 3)), aten.size.int(T.ones(2, 3), 1),
        aten.__and__.bool(True, False), aten.any.bool([False, True]), aten.all.int([1, 0]), aten.add.int(2, 3),
        aten.floordiv.int(7, 2), aten.log.int(3), aten.gcd.int(4, 6),
        aten.eq.int_list([1], [1]),
        aten.upper("ab"), aten.numpy_T(T.ones(2, 3)).shape, aten.is_leaf(T.ones(1)), aten.dim(T.ones(2, 3)),
    )  # fmt: skip


@differential
def test_operators_of_linear_algebra(T: Any) -> Any:
    aten, a = T.ops.aten, T.eye(3) * 2 + _numbers(T, 3, 3)
    return (
        aten.linalg_cross(a, a.T), aten._linalg_det(a)[0], aten.linalg_solve(a, T.ones(3)), aten.linalg_inv(a),
        aten._trilinear(a, T.ones(2, 3, 3), a, [1, 3], [0], [1, 2], [2, 3]), aten.fft_fft(a),
        aten.special_expit(a), aten.linalg_norm(a),
    )  # fmt: skip


@differential
def test_forms_that_follow_from_others(T: Any) -> Any:
    aten, x = T.ops.aten, _numbers(T, 3, 4)
    out, changed = T.empty(0), x.clone()
    return (
        aten.silu_(changed), changed, aten.mish.out(x, out=out), out, aten._reshape_alias(x, [4, 3], [3, 1]),
        aten.view_copy(x, [12]), aten._foreach_sin.out([x], out=[T.empty(0)]), aten.relu6_(x.clone()),
        aten.hann_window.out(4, out=T.empty(0)), aten.fill.Scalar(x, 2),
        aten.embedding_renorm(x, T.tensor([0]), 1.0, 2.0), aten.select_backward(T.ones(4), [3, 4], 0, 1),
        aten.upsample_bilinear2d_backward(
            T.ones(1, 1, 4, 4), [4, 4], [1, 1, 2, 2], False
        ),
    )  # fmt: skip


@differential
def test_upsampling(T: Any) -> Any:
    aten, x = T.ops.aten, _numbers(T, 1, 2, 3, 4)
    return (
        aten.upsample_nearest2d(x, [6, 8]), aten.upsample_nearest2d.vec(x, None, [2.0, 2.0]),
        aten.upsample_bilinear2d(x, [5, 7], False), aten.upsample_bilinear2d(x, [6, 8], True, 2.0, 2.0),
        aten.upsample_bicubic2d(x, [5, 7], False), aten._upsample_nearest_exact2d(x, [5, 7]),
    )  # fmt: skip


@differential
def test_primitive_operators(T: Any) -> Any:
    prims, x = T.ops.prims, _numbers(T, 2, 3, 4)
    options = {"dtype": T.int64, "device": T.device("cpu"), "requires_grad": False}
    return (
        prims.collapse(x, 0, 1), prims.view_of(x), prims.split_dim(x, 2, 2), prims.squeeze(x[:1], [0]),
        prims.iota(4, start=2, step=3, **options), prims.broadcast_in_dim(x[0, 0], [2, 4], [1]),
        prims.convert_element_type(x, T.float64), prims.div(T.tensor([7, -7]), T.tensor([2, 2])), prims.sum(x, [0]),
        prims.full([2], 3, **options), prims.var(x, [0], 1),
    )  # fmt: skip


@differential
def test_calls_that_no_schema_takes(T: Any) -> Any:
    aten, x = T.ops.aten, T.ones(2)
    return (
        outcome(lambda: aten.maximum(x, 2)), outcome(lambda: aten.sin.default(2)), outcome(lambda: aten.add.Tensor(x)),
        outcome(lambda: aten.sin.default(x, x)), outcome(lambda: aten.add.nothing), outcome(lambda: aten.nothing),
    )  # fmt: skip
