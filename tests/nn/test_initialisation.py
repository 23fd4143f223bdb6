"""The same seed makes the same layer: parameters and buffers, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential

LAYERS: dict[str, Any] = {
    "Linear": lambda nn: nn.Linear(20, 30),
    "Linear-no-bias": lambda nn: nn.Linear(3, 2, bias=False),
    "Bilinear": lambda nn: nn.Bilinear(3, 4, 5),
    "PReLU": lambda nn: nn.PReLU(3),
    "Conv1d": lambda nn: nn.Conv1d(4, 6, 3, groups=2),
    "Conv2d": lambda nn: nn.Conv2d(3, 8, 5),
    "Conv2d-no-bias": lambda nn: nn.Conv2d(3, 8, (3, 1), bias=False),
    "Conv3d": lambda nn: nn.Conv3d(2, 3, 2),
    "ConvTranspose1d": lambda nn: nn.ConvTranspose1d(4, 6, 3, groups=2),
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(3, 8, 3),
    "ConvTranspose3d": lambda nn: nn.ConvTranspose3d(2, 3, 2),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(4),
    "BatchNorm2d": lambda nn: nn.BatchNorm2d(4, bias=False),
    "BatchNorm3d": lambda nn: nn.BatchNorm3d(4, affine=False),
    "SyncBatchNorm": lambda nn: nn.SyncBatchNorm(4),
    "InstanceNorm1d": lambda nn: nn.InstanceNorm1d(4, affine=True),
    "InstanceNorm2d": lambda nn: nn.InstanceNorm2d(4, track_running_stats=True),
    "InstanceNorm3d": lambda nn: nn.InstanceNorm3d(4),
    "LayerNorm": lambda nn: nn.LayerNorm((4, 5)),
    "GroupNorm": lambda nn: nn.GroupNorm(2, 4),
    "RMSNorm": lambda nn: nn.RMSNorm(4),
    "Embedding": lambda nn: nn.Embedding(7, 5, padding_idx=2),
    "Embedding-small": lambda nn: nn.Embedding(3, 5),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(7, 5, padding_idx=-1),
    "AdaptiveLogSoftmaxWithLoss": lambda nn: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], head_bias=True),
    "LinearCrossEntropyLoss": lambda nn: nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True),
}
LAZY: dict[str, Any] = {
    "LazyLinear": (lambda nn: nn.LazyLinear(4), (2, 3)),
    "LazyConv1d": (lambda nn: nn.LazyConv1d(4, 3, groups=2), (2, 6, 5)),
    "LazyConv2d": (lambda nn: nn.LazyConv2d(4, 3), (2, 3, 5, 5)),
    "LazyConv3d": (lambda nn: nn.LazyConv3d(4, 2, bias=False), (3, 5, 5, 5)),
    "LazyConvTranspose1d": (lambda nn: nn.LazyConvTranspose1d(4, 3, groups=2), (2, 6, 5)),
    "LazyConvTranspose2d": (lambda nn: nn.LazyConvTranspose2d(4, 3), (2, 3, 5, 5)),
    "LazyConvTranspose3d": (lambda nn: nn.LazyConvTranspose3d(4, 2), (2, 3, 3, 3, 3)),
    "LazyBatchNorm1d": (lambda nn: nn.LazyBatchNorm1d(), (2, 3)),
    "LazyBatchNorm2d": (lambda nn: nn.LazyBatchNorm2d(bias=False), (2, 3, 2, 2)),
    "LazyBatchNorm3d": (lambda nn: nn.LazyBatchNorm3d(affine=False), (2, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": (lambda nn: nn.LazyInstanceNorm1d(), (2, 3, 4)),
    "LazyInstanceNorm2d": (lambda nn: nn.LazyInstanceNorm2d(bias=False), (2, 3, 2, 2)),
    "LazyInstanceNorm3d": (lambda nn: nn.LazyInstanceNorm3d(track_running_stats=False), (2, 3, 2, 2, 2)),
}


def _observed(T: Any, layer: Any) -> Any:
    return [type(layer).__name__, repr(layer), dict(layer.state_dict()), [p.requires_grad for p in layer.parameters()]]


@pytest.mark.parametrize("name", LAYERS)
@differential(tolerance=0.0)
def test_same_seed_same_layer(T: Any, name: str) -> Any:
    observed = []
    for dtype in (T.float32, T.float64):
        T.manual_seed(3)
        T.set_default_dtype(dtype)
        try:
            layer = LAYERS[name](T.nn)
        finally:
            T.set_default_dtype(T.float32)
        observed.append(_observed(T, layer))
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
            observed.append(_observed(T, layer))
        observed.append(T.rand(2))  # as many numbers were drawn
    return observed


@pytest.mark.parametrize("name", LAZY)
@differential(tolerance=0.0)
def test_same_seed_same_lazy_layer(T: Any, name: str) -> Any:
    make, shape = LAZY[name]
    T.manual_seed(3)
    layer = make(T.nn)
    before = [type(layer).__name__, repr(layer), list(layer.state_dict())]
    layer(T.zeros(shape))
    return before, _observed(T, layer), T.rand(2)


@pytest.mark.parametrize("name", ["Conv2d", "BatchNorm2d", "LayerNorm", "GroupNorm", "RMSNorm", "Embedding", "Linear"])
@differential
def test_factory_arguments(T: Any, name: str) -> Any:
    arguments = {"Conv2d": (3, 4, 3), "GroupNorm": (2, 4), "Embedding": (3, 4), "Linear": (3, 4)}.get(name, (4,))
    return [
        dict(getattr(T.nn, name)(*arguments, **options).state_dict())
        for options in ({"dtype": T.float64, "device": "meta"}, {"device": T.device("meta")})
    ]
