"""Calls that exercise the converters: a function and its inputs, by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau as T
from flambeau.nn import functional as F

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def floats(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    return T.from_numpy(np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32))


def ints(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> Any:
    return T.from_numpy(np.random.RandomState(seed).randint(low, high, shape))


def bools(*shape: int, seed: int = 0) -> Any:
    return ints(*shape, low=0, high=2, seed=seed).bool()


X, Y, P = floats(3, 4), floats(3, 4, seed=1), floats(3, 4, low=0.1, high=0.9)
N, M = ints(3, 4), ints(3, 4, low=1, seed=1)
B, C = bools(3, 4), bools(3, 4, seed=1)
IMAGE, VOLUME, LINE = floats(2, 4, 6, 6), floats(1, 2, 4, 4, 4), floats(2, 3, 8)
ODD = T.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -1.5])


def _unary(names: str, x: Any) -> list[Case]:
    return [(getattr(T, name), (x,)) for name in names.split()]


POINTWISE: list[Case] = [
    *_unary(
        "abs asinh atan ceil cos cosh erf erfc exp exp2 expm1 floor neg relu round sigmoid sign sgn sin sinc sinh "
        "tan tanh trunc frac deg2rad rad2deg square angle",
        X,
    ),
    *_unary("acos asin atanh erfinv log log10 log1p log2 reciprocal rsqrt sqrt logit", P),
    (T.acosh, (P + 1,)),
    *_unary("floor ceil round trunc abs neg sign", N),
    *_unary("isnan isinf isposinf isneginf isfinite isreal signbit nan_to_num", ODD),
    (T.isnan, (N,)),
    (lambda x: T.nan_to_num(x, 1.0, 2.0, -2.0), (ODD,)),
    (lambda x: T.round(x, decimals=1), (X,)),
    (lambda a, b: (a + b, a - b, a * b, a / b, 2 - a, T.rsub(a, b)), (X, Y)),
    (lambda a, b: (a + b, a * b, a / b, a + 1.5, a // b, a % b), (N, M)),
    (lambda a, b: (a + b, a - b), (N, Y)),
    (lambda a, b: (a + b, a * b), (B, C)),
    (lambda a, b: (T.add(a, b, alpha=2), T.sub(a, b, alpha=0.5), T.rsub(a, b, alpha=3)), (X, Y)),
    (
        lambda a, b: (T.floor_divide(a, b), T.div(a, b, rounding_mode="floor"), T.div(a, b, rounding_mode="trunc")),
        (X, Y),
    ),
    (lambda a, b: (T.div(a, b, rounding_mode="floor"), T.div(a, b, rounding_mode="trunc")), (N, M)),
    (lambda a: T.div(a.half(), 0.5, rounding_mode="trunc"), (X,)),
    (lambda a, b: (T.fmod(a, b), T.fmod(a, 1.5), T.remainder(a, b), T.remainder(a, 1.5)), (X, Y)),
    (lambda b: T.remainder(2, b), (M,)),
    (lambda a, b: (a**2, a**0.5, a**b, a**1.7, 2**b), (P, Y)),
    (lambda a, b: (T.maximum(a, b), T.minimum(a, b), T.fmax(a, b), T.fmin(a, b)), (X, Y)),
    (lambda a, b: (T.maximum(a, b), T.minimum(a, b)), (B, C)),
    (lambda a, b: (T.atan2(a, b), T.hypot(a, b), T.copysign(a, b), T.heaviside(a, b)), (X, Y)),
    (lambda b: T.copysign(T.tensor(2.0), b), (Y,)),
    (lambda a, b: (T.logaddexp(a, b), T.logaddexp2(a, b)), (X, Y)),
    (lambda a, b: (T.xlogy(a, b), T.special.xlog1py(a, b), T.xlogy(2, b), T.xlogy(a, 2.0)), (X, P)),
    (lambda a, b: (T.special.xlog1py(2, b), T.special.xlog1py(b, 2.0)), (X, P)),
    (lambda a, n: T.ldexp(a, n), (X, N)),
    (
        lambda a, b, c: (T.addcmul(a, b, c, value=0.5), T.addcdiv(a, b, c), T.lerp(a, b, 0.3), T.lerp(a, b, c)),
        (X, Y, P),
    ),
    (lambda a, b: (a == b, a != b, a < b, a <= b, a > b, a >= b, a > 0.5), (X, Y)),
    (lambda a, b: (a == b, a < 2, a > 0.5, a != b), (N, M)),
    (lambda a, b: (a == b, a > b, a & b, a | b, a ^ b, ~a), (B, C)),
    (lambda a, b: (a & b, a | b, a ^ b, ~a), (N, M)),
    (lambda a: (a << 2, a >> 1), (N,)),
    (lambda a, b: (T.logical_and(a, b), T.logical_or(a, b), T.logical_xor(a, b), T.logical_not(a)), (N, C)),
    (lambda a, b: (T.isclose(a, b), T.isclose(a, a, equal_nan=True)), (X, Y)),
    (lambda a: (a.clamp(-1, 1), a.clamp(min=0), a.clamp(max=0.5), T.clamp_min(a, 0.1), T.clamp_max(a, 0.1)), (X,)),
    (lambda a, b, c: (a.clamp(b, c), T.clamp_min(a, b), T.clamp_max(a, c)), (X, Y, P)),
    (
        lambda c, a, b: (T.where(c, a, b), T.where(c, a, 0.0), a.masked_fill(c, 3.0), a.masked_fill(c, b[0, 0])),
        (B, X, Y),
    ),
    (lambda a: (a.double(), a.int(), a.bool(), a.half()), (X,)),
    (lambda a: (a.clone(), a.detach(), a.contiguous(), T.alias_copy(a)), (X,)),
    (lambda a: T.isin(a, T.tensor([1, 2, 3])), (N,)),
    (lambda a: T.isin(a, T.tensor([1, 2, 3]), invert=True), (N,)),
    (T.special.entr, (X,)),
    (T.special.log_ndtr, (X,)),
    # No converters: their bodies, step by step
    *[
        (getattr(T.special, name), (X,))
        for name in ("bessel_j0", "bessel_j1", "i0", "i0e", "i1", "i1e", "erfcx", "spherical_bessel_j0")
    ],
    *[(getattr(T.special, name), (P,)) for name in ("bessel_y0", "bessel_y1", "digamma", "gammaln", "ndtri")],
    *[(getattr(T.special, f"modified_bessel_{name}"), (P,)) for name in ("i0", "i1", "k0", "k1")],
    *[(getattr(T.special, f"scaled_modified_bessel_{name}"), (P,)) for name in ("k0", "k1")],
    (T.special.airy_ai, (X,)),
]

ACTIVATION: list[Case] = [
    *[
        (getattr(F, name), (X,))
        for name in (
            [
                "leaky_relu",
                "elu",
                "selu",
                "celu",
                "gelu",
                "hardshrink",
                "softshrink",
                "hardsigmoid",
                "hardswish",
                "hardtanh",
                "mish",
                "silu",
                "softplus",
                "logsigmoid",
                "relu6",
                "tanhshrink",
                "softsign",
                "rrelu",
            ]
        )
    ],
    (lambda x: F.gelu(x, approximate="tanh"), (X,)),
    (lambda x: F.celu(x.double(), 2.0), (X,)),
    (lambda x: F.elu(x, 0.7), (X,)),
    (lambda x: F.softplus(x, 2.0), (X,)),
    (lambda x: F.threshold(x, 0.5, 9.0), (X,)),
    (lambda x: F.glu(x, 1), (X,)),
    (lambda x, w: F.prelu(x, w), (X, floats(4))),
    (lambda x: T.logit(x, 0.2), (P,)),
    (lambda x: (T.softmax(x, 0), T.log_softmax(x, 1), F.softmin(x, 1)), (X,)),
    (lambda x: T._safe_softmax(x, 1), (X,)),
]

SHAPE: list[Case] = [
    (lambda x: (x.view(4, 3), x.reshape(-1), x.unflatten(1, (2, 2)), x.t().reshape(2, 6)), (X,)),
    (lambda x: (x.expand(2, 3, 4), x[:, :1].expand(3, 5)), (X,)),
    (lambda x: (x.permute(2, 0, 1), x.transpose(0, 2), x.mT, x.movedim(0, 1)), (LINE,)),
    (lambda x: (x.unsqueeze(1), x[None].squeeze(), x[None].squeeze(0), x[None, :, None].squeeze((0, 2))), (X,)),
    (lambda x: (x[1], x[:, 2], x[1:], x[:, ::2], x[-1], x[..., 1:3], x[None, 0]), (X,)),
    (lambda x: (x.unbind(0), x.split(1), x.split([1, 2]), x.chunk(2, 1), x.split(5)), (X,)),
    (lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(-1), T.diag(x[0]), T.diag(x[0], 1)), (X,)),
    (lambda x: T.diag_embed(x, -1), (X,)),
    (lambda x: (x.unfold(1, 2, 1), x.unfold(0, 2, 1)), (X,)),
    (lambda x: T.as_strided(x, (2, 2), (1, 2), 1), (X,)),
    (lambda a, b: (T.cat([a, b]), T.cat([a, b], 1), T.stack([a, b], 1), T.hstack([a, b])), (X, Y)),
    (lambda a, n: T.cat([a, n]), (X, N)),
    (lambda x: (x.repeat(2, 1), x.repeat(2, 1, 3), x.tile(2)), (X,)),
    (lambda x: (x.flip(0), x.flip(0, 1), x.fliplr()), (X,)),
    (lambda x: (x.roll(1, 0), x.roll(5), x.roll((1, -1), (0, 1))), (X,)),
    (lambda x: (x.rot90(), x.rot90(2), x.rot90(3), x.rot90(4)), (X,)),
    (lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 0, 2), value=3.0), F.pad(x, (-1, 1))), (X,)),
    (lambda x: F.pad(x, (1, 1)), (B,)),
    (lambda x: (F.pad(x, (1, 2), mode="reflect"), F.pad(x, (1, 2), mode="replicate")), (LINE,)),
    (lambda x: (F.pad(x, (1, 2, 0, 1), mode="reflect"), F.pad(x, (1, 2, 0, 1), mode="replicate")), (IMAGE,)),
    (lambda x: (F.pad(x, (1,) * 6, mode="reflect"), F.pad(x, (1,) * 6, mode="replicate")), (VOLUME,)),
    (lambda x: F.pad(x, (1, 2), mode="circular"), (LINE,)),
    (lambda x: (x.tril(), x.triu(1), x.tril(-1)), (X,)),
    (lambda a, b: T.block_diag(a, b), (X, floats(2, 2))),
    (lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.pixel_shuffle(x[0], 2)), (IMAGE,)),
    (lambda x: (F.channel_shuffle(x, 2), T.native_channel_shuffle(x, 2)), (IMAGE,)),
    (lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(T.tensor([1, 0, 2]), 0)), (X,)),
    (lambda x: (T.narrow_copy(x, 1, 1, 2), T.select_copy(x, 0, 1), T.slice_copy(x, 1, 0, 3, 2)), (X,)),
    (lambda x: (T.view_copy(x, (12,)), T.expand_copy(x, (2, 3, 4)), T.permute_copy(x, (1, 0)), T.t_copy(x)), (X,)),
    (lambda x: (T.transpose_copy(x, 0, 1), T.unsqueeze_copy(x, 0), T.unfold_copy(x, 1, 2, 1)), (X,)),
    (lambda x: (T.squeeze_copy(x[None]), T.squeeze_copy(x[None], 0), T.squeeze_copy(x[None], (0,))), (X,)),
    (lambda x: (T.split_copy(x, 2), T.split_with_sizes_copy(x, [1, 2]), T.unbind_copy(x), T.diagonal_copy(x)), (X,)),
    (lambda x: (T.unsafe_split(x, 2), T.unsafe_split_with_sizes(x, [1, 2]), T.as_strided_copy(x, (2,), (3,))), (X,)),
    (lambda x: x.clone().t_() + x.clone().transpose_(0, 1) + x.clone().unsqueeze_(0).squeeze_(0).t(), (X,)),
    (lambda x: x.clone().unsqueeze_(0).squeeze_() + x.clone().unsqueeze_(0).squeeze_((0,)), (X,)),
    (lambda x: x.clone().as_strided_((2, 2), (1, 2)), (X,)),
]

CREATE: list[Case] = [
    (lambda x: (T.zeros(2, 3) + T.ones(2, 3), T.full((2,), 3.5), T.arange(4), T.eye(3), T.linspace(0, 1, 5)), (X,)),
    (lambda x: (T.zeros_like(x), T.ones_like(x), T.full_like(x, 2), x.new_zeros(2), x.new_full((2,), 3)), (X,)),
    (lambda x: T.empty_strided((2, 2), (1, 2)).fill_(1) + x[:2, :2], (X,)),
    (
        lambda x: (
            T.fill(x, 2.0),
            T.fill(x, x[0, 0]),
            x.clone().fill_(1.5),
            x.clone().zero_(),
            x.clone().fill_(x[0, 0]),
        ),
        (X,),
    ),
    (lambda x, y: (x.clone().copy_(y), x.clone().copy_(y[0]), T.copysign(x, y)), (X, Y)),
]

REDUCE: list[Case] = [
    (lambda x: (x.sum(), x.sum(0), x.sum((0, 1), keepdim=True), x.mean(), x.mean(1), x.prod(), x.prod(1)), (X,)),
    (lambda x: (x.sum(), x.sum(0), x.prod(1), x.amax(), x.max(), x.min()), (N,)),
    (lambda x: (x.sum(), x.sum(0), x.any(), x.all(), x.any(0), x.all(1, keepdim=True), x.amax(0)), (B,)),
    (lambda x: (T.nansum(x), T.nansum(x[:1])), (ODD,)),
    (lambda x: (x.amax(0), x.amin((0, 1)), x.max(), x.min(), x.max(1), x.min(0, keepdim=True), x.aminmax(dim=0)), (X,)),
    (lambda x: (x.argmax(), x.argmax(1), x.argmin(0, keepdim=True)), (X,)),
    (lambda x: (T.count_nonzero(x), T.count_nonzero(x, 0)), (N,)),
    (lambda x: (x.logsumexp(1), x.logsumexp((0, 1)), x.var(), x.var(1), x.std(0, keepdim=True)), (X,)),
    (lambda x: (x.var(0, correction=0), T.var_mean(x, 1), T.std_mean(x)), (X,)),
    (lambda x: (x.norm(), x.norm(1, 1), T.linalg.vector_norm(x, 3), T.linalg.vector_norm(x, float("inf"), 1)), (X,)),
    (lambda x: (T.linalg.vector_norm(x, 0, 1), T.linalg.vector_norm(x, float("-inf")), x.norm(p=2, dim=0)), (X,)),
    (lambda x, y: (T.dist(x, y), T.dist(x, y, 1), T.renorm(x, 2, 0, 1.0)), (X, Y)),
    (lambda v, g: T._weight_norm(v, g, 0), (X, floats(3, 1))),
    (lambda x, y: T._foreach_norm([x, y]), (X, Y)),
    (lambda x: (x.cumsum(0), x.cumsum(1), x.cumprod(1), x.logcumsumexp(1)), (X,)),
    (lambda x: (x.cumsum(0), x.cummax(0), x.cummin(1)), (N,)),
    (lambda x: (x.cummax(1), x.cummin(0)), (X,)),
    (lambda x: T.trace(x), (X,)),
    (lambda x: (F.normalize(x), F.cosine_similarity(x, x + 1)), (X,)),
]

SORT: list[Case] = [
    (lambda x: (x.sort(1), x.sort(0, descending=True), T.sort(x, stable=True), x.argsort(1)), (X,)),
    (lambda x: (x.topk(2), x.topk(2, 0, largest=False), x.kthvalue(2, 1), x.median(), x.median(1)), (X,)),
    (lambda x: (x.sort(0)[0], x.topk(2)[0]), (ints(7, 5, low=0, high=99),)),
    (lambda x: (x.nonzero(), T.masked_select(x, x > 0)), (X,)),
    (lambda x, m: T.masked_select(x, m), (X, bools(4))),
    (lambda x: T.unique(x, return_inverse=True, return_counts=True), (N,)),
    (lambda s, v: (T.searchsorted(s, v), T.searchsorted(s, v, right=True), T.bucketize(v, s)), (T.arange(5.0), X)),
    (lambda x: (T.bincount(x), T.bincount(x, minlength=9), T.bincount(x, x.float())), (ints(6, low=0),)),
]

I = T.tensor([2, 0])  # noqa: E741
INDEX: list[Case] = [
    (lambda x, i: (x[i], x[:, i], x[i, i], x[i, :, None], x[0, i], x[i][:, i]), (X, I)),
    (lambda x, i: (x[i, :, i], x[:, i, i], x[:, i, :, i[:1]]), (floats(3, 3, 3, 3), I)),
    (lambda x, i: (x[i[:, None], i], x[i, 1], x[..., i]), (X, I)),
    (lambda x, m: (x[m], x[m[:, 0]], x[m[:, 0], 1:]), (X, B)),
    (lambda x: (x[[0, 2]], x[[True, False, True]]), (X,)),
    (lambda x, i: (x.index_select(1, i), x.take(i), T.take_along_dim(x, i[None], 1)), (X, I)),
    (
        lambda x, n: (x.gather(1, n), x.scatter(1, n, x), x.scatter_add(1, n, x), x.scatter(1, n, 9.0)),
        (X, ints(3, 2, low=0, high=4)),
    ),
    (lambda x, n: x.gather(0, n), (X, ints(2, 4, low=0, high=3))),
    (
        lambda x, n, s: [
            x.scatter_reduce(0, n, s, r, include_self=f)
            for r in ("sum", "prod", "mean", "amax", "amin")
            for f in (True, False)
        ],
        (X, ints(3, 4, low=0, high=3), Y),
    ),
    (
        lambda x, n, s: (
            x.scatter(0, n, s, reduce="add"),
            x.scatter(0, n, s, reduce="multiply"),
            x.scatter(0, n, 2.0, reduce="add"),
        ),
        (X, ints(3, 4, low=0, high=3), Y),
    ),
    (lambda x, n, s: x.scatter_reduce(0, n, s, "amax", include_self=False), (N, ints(3, 4, low=0, high=3), M)),
    (
        lambda x, i, s: (
            x.index_add(0, i, s),
            x.index_add(0, i, s, alpha=2),
            x.index_copy(0, i, s),
            x.index_fill(0, i, 7.0),
        ),
        (X, I, Y[:2]),
    ),
    (lambda x, i, s: (x.index_reduce(0, i, s, "prod"), x.index_fill(1, i, s[0, 0])), (X, I, Y[:2])),
    (lambda x, i, s: (x.put(i, s), x.put(i, s, accumulate=True)), (X, I, floats(2))),
    (
        lambda x, i, v: (x.index_put((i,), v), x.index_put((i, i), v[:, 0]), x.index_put((i,), v, accumulate=True)),
        (X, I, Y[:2]),
    ),
    (
        lambda x, y: (
            T.select_scatter(x, y[0], 0, 1),
            T.slice_scatter(x, y[:1], 0, 1, 2),
            T.slice_scatter(x, y[:, :2], 1, 0, 4, 2),
        ),
        (X, Y),
    ),
    (lambda x, s: (T.diagonal_scatter(x, s), T.diagonal_scatter(x, s[:2], 1)), (floats(3, 3), floats(3))),
    (lambda x, m, s: x.masked_scatter(m, s), (X, B, Y)),
    (lambda x: (F.one_hot(x, 5), F.one_hot(x)), (ints(3, low=0, high=4),)),
    (lambda x: T.unravel_index(x, (3, 4)), (ints(3, low=0, high=12),)),
    (lambda n, w: F.embedding(n, w), (ints(2, 3, low=0, high=5), floats(5, 4))),
]


def _written(x: Any, y: Any) -> Any:
    """Views that are written through, and others that see it."""
    z = x.clone()
    row, column = z[1], z[:, 2]
    z[0] = 5.0
    row.add_(1)
    column.mul_(y[:, 0])
    z[:, 1:3] += y[:, 1:3]
    z.t()[0].copy_(y[:, 3])
    flat = z.view(-1)
    flat[::5] = 0
    z[T.tensor([0, 2])] = y[:2]
    z[z > 1.5] = -1.0
    return z, row, column, flat


INPLACE: list[Case] = [
    (_written, (X, Y)),
    (lambda x: (x.clone().add_(1).mul_(2).relu_(), x.clone().clamp_(0, 1), x.clone().sigmoid_()), (X,)),
    (lambda x: T.stack([x.clone().index_fill_(0, T.tensor([1]), 3.0), x.clone().masked_fill_(x > 0, 1.0)]), (X,)),
]

MATRICES = floats(3, 2, 4), floats(3, 4, 5)
LINALG: list[Case] = [
    (lambda a, b: (a @ b, T.bmm(a, b), T.matmul(a[0], b), T.mm(a[0], b[0]), T.mv(a[0], b[0, :, 0])), MATRICES),
    (
        lambda a, b: (T.addmm(a, b, b.t()[:, :3]), T.addmm(a[0, :3], b, b.t()[:, :3], beta=0.5, alpha=2)),
        (floats(3, 3), X),
    ),
    (lambda a, b: (a @ b, T.addmm(a[:, :3], a, b)), (N, ints(4, 3))),
    (
        lambda a, b, c: (
            T.addmv(c[:, 0], c[:, :2], a[0, 0, :2]),
            T.baddbmm(c[None, :2], a, b[..., :3]),
            T.addbmm(c[:2], a, b[..., :3]),
        ),
        (*MATRICES, floats(3, 3)),
    ),
    (lambda a, b: (T.dot(a[0], b[0]), T.vdot(a[0], b[0]), T.outer(a[0], b[0]), T.addr(a, a[:, 0], b[0])), (X, Y)),
    (lambda a, b: T.linalg.cross(a, b), (floats(4, 3), floats(4, 3, seed=1))),
    (lambda a: T.linalg.det(a), (floats(2, 3, 3),)),
    (lambda a, b: [T.cdist(a, b, p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))], (X, Y)),
    (lambda a, b: T.cdist(a, b), (floats(30, 4), floats(30, 4, seed=1))),
    (lambda a: (F.pdist(a), F.pdist(a, 1.0)), (X,)),
    (
        lambda a, b: (T.einsum("bij,bjk->bik", a, b), F.linear(a, b[0].t()), F.bilinear(a[0], a[0], floats(2, 4, 4))),
        MATRICES,
    ),
]

FAMILIES: dict[str, list[Case]] = {
    "pointwise": POINTWISE,
    "activation": ACTIVATION,
    "shape": SHAPE,
    "create": CREATE,
    "reduce": REDUCE,
    "sort": SORT,
    "index": INDEX,
    "inplace": INPLACE,
    "linalg": LINALG,
}
