"""Calls of layers, losses and random numbers that exercise the converters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as T
from flambeau._ops.nn.attention import _dropped_attention
from flambeau.nn import functional as F

from .cases import IMAGE, LINE, VOLUME, Case, P, X, Y, bools, floats, ints


def _norm(**options: Any) -> Callable[..., Any]:
    return lambda x, m, v, w: F.batch_norm(x, m, v, w, **options)


CHANNELS = (floats(4), floats(4, low=0.5, high=2), floats(4, seed=2))
NN: list[Case] = [
    (
        lambda x, w, b: (F.conv2d(x, w, b), F.conv2d(x, w, b, 2, 1, 2), F.conv2d(x, w[:, :2], b, groups=2)),
        (IMAGE, floats(6, 4, 3, 3), floats(6)),
    ),
    (lambda x, w: (F.conv1d(x, w), F.conv1d(x, w, padding="same"), F.conv1d(x[0], w)), (LINE, floats(2, 3, 3))),
    (lambda x, w: F.conv3d(x, w, padding=1), (VOLUME, floats(2, 2, 3, 3, 3))),
    (
        lambda x, w, b: (F.conv_transpose2d(x, w, b), F.conv_transpose2d(x, w, b, 2, 1, 1)),
        (IMAGE, floats(4, 5, 3, 3), floats(5)),
    ),
    (lambda x, w: F.conv_transpose1d(x, w, stride=2), (LINE, floats(3, 2, 3))),
    (lambda x, w, b: T.conv_tbc(x, w, b, 1), (floats(5, 2, 3), floats(3, 3, 4), floats(4))),
    (_norm(), (IMAGE, *CHANNELS)),
    (_norm(training=True), (IMAGE, *CHANNELS)),
    (lambda x: F.batch_norm(x, None, None, training=True), (IMAGE,)),
    (lambda x, m, v, w: T.native_batch_norm(x, w, m, m, v, True, 0.1, 1e-5)[0], (IMAGE, *CHANNELS)),
    (lambda x, m, v, w: T._native_batch_norm_legit(x, w, m, m, v, True, 0.1, 1e-5)[0], (IMAGE, *CHANNELS)),
    (lambda x, w: T._native_batch_norm_legit(x, w, w, True, 0.1, 1e-5)[0], (IMAGE, floats(4))),
    (lambda x, m, v, w: T._native_batch_norm_legit_no_training(x, w, m, m, v, 0.1, 1e-5)[0], (IMAGE, *CHANNELS)),
    (lambda x, m, v, w: T.ops.aten._batch_norm_with_update(x, w, m, m, v, 0.1, 1e-5)[0], (IMAGE, *CHANNELS)),
    (lambda x: (F.instance_norm(x), F.layer_norm(x, (6, 6)), F.local_response_norm(x, 2)), (IMAGE,)),
    (lambda x, w: (F.layer_norm(x, (4,), w, w), F.rms_norm(x, (4,), w), F.rms_norm(x, (4,))), (X, floats(4))),
    (lambda x, w: (F.group_norm(x, 2, w, w), F.group_norm(x, 4)), (IMAGE, floats(4))),
    (lambda x: (F.unfold(x, 3), F.unfold(x, 2, 2, 1, 2)), (IMAGE,)),
    (lambda x: F.fold(x, (6, 6), 2, stride=2), (floats(2, 16, 9),)),
    (
        lambda x, w, o: [F.embedding_bag(x, w, o, mode=m) for m in ("sum", "mean", "max")],
        (ints(6, low=0, high=5), floats(5, 3), T.tensor([0, 2, 2])),
    ),
    (
        lambda x, w, o, s: (
            F.embedding_bag(x, w, o, mode="sum", per_sample_weights=s),
            F.embedding_bag(x, w, o, mode="sum", include_last_offset=True),
            F.embedding_bag(x, w, o, padding_idx=1),
        ),
        (ints(6, low=0, high=5), floats(5, 3), T.tensor([0, 2, 6]), floats(6)),
    ),
    (
        lambda q: (F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q, is_causal=True)),
        (floats(2, 2, 5, 4),),
    ),
    (lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m, scale=0.3), (floats(2, 2, 5, 4), bools(5, 5))),
    (
        lambda q, m: _dropped_attention(q, q, q, m, 0.25, True, None, None)[0],
        (floats(2, 2, 5, 4), bools(2, 2, 5, 5)),
    ),
]

POOL: list[Case] = [
    (lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, 1, dilation=2)), (IMAGE,)),
    (
        lambda x: (
            F.max_pool2d(x, 3, 2, ceil_mode=True),
            F.max_pool2d(x, 2, return_indices=True),
            F.max_pool2d(x[0], 2),
        ),
        (IMAGE,),
    ),
    (lambda x: (F.max_pool1d(x, 2), F.max_pool1d(x, 3, 2, 1), F.avg_pool1d(x, 2)), (LINE,)),
    (lambda x: (F.max_pool3d(x, 2), F.avg_pool3d(x, 2)), (VOLUME,)),
    (
        lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
        (IMAGE,),
    ),
    (
        lambda x: (
            F.avg_pool2d(x, 3, 2, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.avg_pool2d(x[0], 2),
        ),
        (IMAGE,),
    ),
    (
        lambda x: (
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_avg_pool2d(x, 3),
            F.adaptive_avg_pool2d(x, (4, 5)),
            F.adaptive_avg_pool1d(x[0], 4),
        ),
        (IMAGE,),
    ),
    (lambda x: (F.adaptive_avg_pool3d(x, 1), F.adaptive_avg_pool3d(x, 2), F.adaptive_max_pool3d(x, 2)), (VOLUME,)),
    (
        lambda x: (
            F.adaptive_max_pool2d(x, 1, return_indices=True),
            F.adaptive_max_pool2d(x, 3),
            F.adaptive_max_pool2d(x, 4),
        ),
        (IMAGE,),
    ),
    (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (IMAGE,)),
    (lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2), (VOLUME,)),
    (lambda x: (F.lp_pool2d(x, 2, 2), F.adaptive_max_pool1d(x[0], 2)), (IMAGE,)),
]


def _scaled(mode: str, x: Any, **options: Any) -> tuple[Any, ...]:
    rank = x.dim() - 2
    given = [{"scale_factor": 2.0}, {"size": (5,) * rank}]
    return tuple(F.interpolate(x, mode=mode, **each, **options) for each in given)


GRID = floats(2, 3, 3, 2, low=-1, high=1)
IMAGES: list[Case] = [
    *[(lambda x, m=mode: _scaled(m, x), (x,)) for x in (LINE, IMAGE, VOLUME) for mode in ("nearest", "nearest-exact")],
    *[
        (lambda x, m=mode, a=aligned: _scaled(m, x, align_corners=a), (x,))
        for x, mode in ((LINE, "linear"), (IMAGE, "bilinear"), (IMAGE, "bicubic"), (VOLUME, "trilinear"))
        for aligned in (False, True)
    ],
    *[
        (lambda x, g, m=mode, p=pad, a=aligned: F.grid_sample(x, g, m, p, a), (IMAGE, GRID))
        for mode in ("bilinear", "nearest", "bicubic")
        for pad, aligned in (("zeros", False), ("border", True), ("reflection", False))
    ],
    (lambda x, g: F.grid_sample(x, g, align_corners=False), (VOLUME, floats(1, 2, 2, 2, 3, low=-1, high=1))),
    *[(lambda t, a=aligned: F.affine_grid(t, (2, 3, 4, 5), a), (floats(2, 2, 3),)) for aligned in (False, True)],
    (lambda t: F.affine_grid(t, (1, 1, 2, 3, 4), False), (floats(1, 3, 4),)),
]

ANTIALIASED: list[Case] = [
    (lambda x: F.interpolate(x, size=(4, 4), mode="bilinear", antialias=True), (IMAGE,)),
    (lambda x: F.interpolate(x, size=(4, 4), mode="bicubic", antialias=True), (IMAGE,)),
]

R: Any = ("none", "mean", "sum")
CLASSES = ints(3, low=0, high=4)
LOSS: list[Case] = [
    (
        lambda x, y: [
            (
                F.mse_loss(x, y, reduction=r),
                F.smooth_l1_loss(x, y, reduction=r),
                F.huber_loss(x, y, reduction=r),
                F.l1_loss(x, y, reduction=r),
            )
            for r in R
        ],
        (X, Y),
    ),
    (
        lambda x, y, w: [
            (F.binary_cross_entropy(x, y, w, reduction=r), F.binary_cross_entropy(x, y, reduction=r)) for r in R
        ],
        (P, P, P),
    ),
    (
        lambda x, y, w: (
            F.binary_cross_entropy_with_logits(x, y),
            F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w),
        ),
        (X, P, P),
    ),
    (lambda x, y: F.soft_margin_loss(x, y), (X, Y.sign())),
    (
        lambda x, y, w: [
            (F.nll_loss(x, y, reduction=r), F.nll_loss(x, y, w, reduction=r), F.cross_entropy(x, y, w, reduction=r))
            for r in R
        ],
        (X, CLASSES, P[0]),
    ),
    (lambda x, y: (F.cross_entropy(x, y), F.cross_entropy(x, y, ignore_index=1)), (X, CLASSES)),
    (lambda x, y: F.nll_loss(x, y), (IMAGE, ints(2, 6, 6, low=0, high=4))),
    (
        lambda x, y, w: (F.multi_margin_loss(x, y), F.multi_margin_loss(x, y, 2, 0.5, w, reduction="none")),
        (X, CLASSES, P[0]),
    ),
    (
        lambda x, y: (F.kl_div(x, y, reduction="batchmean"), F.poisson_nll_loss(x, y), F.gaussian_nll_loss(x, y, P)),
        (X, P),
    ),
]


def _recurrent() -> list[Case]:
    state = T.get_rng_state()
    T.manual_seed(0)
    nn = T.nn
    layers = [
        nn.LSTM(3, 4),
        nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
        nn.LSTM(3, 4, bias=False),
        nn.LSTM(3, 4, proj_size=2),
        nn.GRU(3, 4, 2, bidirectional=True),
        nn.RNN(3, 4),
        nn.RNN(3, 4, nonlinearity="relu"),
    ]
    packed = nn.LSTM(3, 4, bidirectional=True)
    cells = nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)
    T.set_rng_state(state)

    def pack(x: Any) -> Any:
        rows = nn.utils.rnn.pack_padded_sequence(x, [5, 3], enforce_sorted=True)
        return nn.utils.rnn.pad_packed_sequence(packed(rows)[0])[0]

    made: list[Case] = [(each, (floats(5, 2, 3),)) for each in layers]
    return [*made, *[(each, (floats(2, 3),)) for each in cells], (pack, (floats(5, 2, 3),))]


RNN = _recurrent()


def _drawn(x: Any) -> Any:
    """Random numbers: only that they are converted can be seen."""
    return (
        T.rand(2),
        T.randn(2),
        T.randint(5, (2,)),
        T.randperm(4),
        T.bernoulli(x),
        T.bernoulli(x, 0.5),
        T.normal(x, 1.0),
        T.normal(0.0, x),
        T.normal(x, x),
        x.clone().exponential_(),
        x.clone().log_normal_(),
        x.clone().cauchy_(),
        x.clone().bernoulli_(0.5),
        x.clone().bernoulli_(x),
        T.multinomial(x, 2),
        T.multinomial(x, 3, True),
        F.dropout(x),
        T.native_dropout(x, 0.5, True),
        T.native_dropout(x, 0.5, False),
    )


DRAWING: list[Case] = [(_drawn, (P,))]

FAMILIES: dict[str, list[Case]] = {"nn": NN, "pool": POOL, "image": IMAGES, "loss": LOSS, "rnn": RNN}
