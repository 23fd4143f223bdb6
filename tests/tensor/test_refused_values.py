"""Calls that PyTorch refuses for a value, a rank or a dtype, and some that it does not refuse: the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.differential import differential, outcome

CALLS = {
    "NaN is in no range": (
        "T.cdist(T.ones(1, 2), T.ones(1, 2), nan)",
        "F.pdist(T.ones(2, 2), nan)",
        "T.isclose(T.ones(1), T.ones(1), rtol=nan)",
        "T.allclose(T.ones(1), T.ones(1), atol=nan)",
        "T.renorm(T.ones(2, 2), nan, 0, 1)",
        "T.renorm(T.ones(2, 2), 2, 0, nan)",
        "F.huber_loss(T.ones(1), T.ones(1), delta=nan)",
        "F.smooth_l1_loss(T.ones(1), T.ones(1), beta=nan)",
        "F.softshrink(T.ones(1), nan)",
        "F.cosine_similarity(T.ones(1, 2), T.ones(1, 2), eps=-1.0)",
    ),
    "flags are no sizes": (
        "T.ones(4).split(True)",
        "T.hsplit(T.ones(4), True)",
        "T.tensor_split(T.ones(4), True)",
        "T.tensor_split(T.ones(4), [1.5])",
        "T.ones(4).hsplit()",
        "T.linspace(0, 1, True)",
        "T.logspace(0, 1, 3, 1j)",
        "T.signal.windows.hann(1.5)",
        "T.signal.windows.gaussian(True)",
        "T.sparse_coo_tensor([[0]], [1.0], 4)",
        "T.as_strided(T.ones(4), (2,), 1)",
    ),
    "beyond 64 bits": (
        "T.ones(4).split(2**63)",
        "T.signal.windows.hann(2**63)",
        "F.adaptive_avg_pool2d(T.ones(1, 2, 2), 2**63)",
        "F.unfold(T.ones(1, 1, 3, 3), 2**63)",
    ),
    "a dimension that is not there": (
        "F.avg_pool2d(T.ones(4), 2)",
        "F.fractional_max_pool2d(T.ones(4), 2, output_ratio=(0.5, 0.5))",
        "F.unfold(T.ones(()), 2)",
        "F.grid_sample(T.ones(()), T.ones(1, 1, 1, 2), align_corners=False)",
        "F.cross_entropy(T.ones(()), T.tensor([0]))",
        "T.gru_cell(T.ones(2), T.ones(1, 4), T.ones(12, 2), T.ones(12, 4))",
        "T.gru_cell(T.ones(1, 2), T.ones(4), T.ones(12, 2), T.ones(12, 4))",
        "T.gru_cell(T.ones(1, 1, 2), T.ones(1, 4), T.ones(12, 2), T.ones(12, 4))",
        "F.batch_norm(T.ones(2, 3), T.ones(1, 3), T.ones(1, 3))",
        "F.embedding(T.tensor([0]), T.ones(()), padding_idx=1)",
        "F.embedding(T.tensor([0]), T.ones(3), max_norm=1.0)",
    ),
    "no kernel for a dtype, whatever the other operand's": (
        "T.bmm(T.ones(1, 1, 1, dtype=T.bool), T.ones(1, 1, 1))",
        "T.linalg.cross(T.ones(3, dtype=T.bool), T.ones(3))",
        "T.linalg.eigh(T.ones(2, 2, dtype=T.int64))",
        "T.linalg.lu(T.ones(2, 2, dtype=T.bool))",
        "F.conv_transpose1d(T.ones(1, 1, 3, dtype=T.bool), T.ones(1, 1, 1), T.ones(1))",
        "F.nll_loss(T.ones(1, 2, dtype=T.int64), T.tensor([0]), T.ones(2))",
        "T.isin(T.ones(2), T.tensor([True]))",
        "T.ones(2, dtype=T.int64).round(decimals=0)",
        "F.embedding(T.tensor([0]), T.ones(2, 2, dtype=T.int64), max_norm=1.0)",
    ),
    "tensors and other types in place of numbers": (
        "T.ones(2).uniform_(T.ones(2))",
        "T.randint(T.ones(2), (3,))",
        "F.interpolate(T.ones(1, 1, 2), scale_factor=T.ones(2))",
        "F.gaussian_nll_loss(T.ones(2), T.ones(2), 1)",
        "T.fft.fft2(T.ones(2, 2), dim=None)",
        "T.rand_like(T.ones(2), dtype={})",
        "F.fold(T.ones(1, 4, 4), {}, 2)",
        "F.adaptive_max_pool2d(T.ones(1, 2, 2), b'a')",
        "T.nn.FractionalMaxPool3d(-1, output_ratio=0.5)",
        "T.nn.FractionalMaxPool2d(2, output_ratio=())",
        "F.fractional_max_pool2d(T.ones(1, 4, 4), 2, output_ratio=0.5)",
        "T.nn.init.calculate_gain(['relu'])",
        "F.scaled_dot_product_attention(T.ones(2, 2), T.ones(2, 2), T.ones(2, 2), None, 1.5)",
        "T.nn.utils.clip_grad_value_([T.ones(2, requires_grad=True)], 1.0)",
    ),
    "what is written to keeps its shape": (
        "T.ones(2).floor_divide_(T.ones(1, 2))",
        "T.ones(()).igamma_(T.ones(1))",
        "T.linalg.lu_solve(T.eye(2), T.tensor(1, dtype=T.int32), T.ones(2, 1))",
        "T.lu_unpack(T.ones(4), T.ones(2, dtype=T.int32))",
    ),
    "numbers that no tensor holds": (
        "T.arange(2**63)",
        "T.arange(0, 2**63, 2**62)",
        "T.arange(2**63, dtype=T.float32)",
        "T.full((2,), 2**70, dtype=T.float64)",
        "T.where(T.ones(2) > 0, T.ones(2), 2**70)",
    ),
    "arrays of NumPy's as operands": (
        "T.ones(2) + np.array(2.0)",
        "T.ones(2) * np.array(2)",
        "T.ones(2) - np.array([2, 3])",
        "T.ones(2, dtype=T.int64) / np.array([2, 3])",
        "T.ones(2) // np.float32(2)",
        "T.ones(2, dtype=T.float64) ** np.array(2.0, dtype=np.float32)",
    ),
    "flags and margins of other types": (
        "T.ones(2, 2).norm(2, 1, 1)",
        "F.multi_margin_loss(T.ones(1, 2), T.tensor([0]), margin='a')",
        "T.nn.LSTMCell(2, 2)(T.ones(2), (T.ones(2),))",
    ),
    "not refused": (
        "T.roll(T.ones(0), 1, 5)",
        "T.diff(T.ones(3), 0, 7)",
        "T.diagonal(T.ones(3, 3), 10**15)",
        "T.ones(2).round(decimals=10**6)",
        "F.fractional_max_pool3d(T.ones(1, 4, 4, 4), 2, output_ratio=(0.5, 0.5, 0.5, 0.5)).shape",
    ),
}


@pytest.mark.parametrize("text", [text for texts in CALLS.values() for text in texts])
@differential
def test_answers_are_pytorchs(T: Any, text: str) -> Any:
    scope = {"T": T, "F": T.nn.functional, "nan": float("nan"), "np": np}
    return outcome(lambda: eval(text, scope))[:2]
