"""Products, attention, Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor

from .. import ops
from .._element_types import torch_type
from ._table import NotRead, Operator, reader


@reader("MatMul")
def matmul(node: Operator, a: Tensor, b: Tensor) -> Any:
    return flambeau.matmul(a, b)


@reader("Gemm")
def gemm(node: Operator, a: Tensor, b: Tensor, c: Tensor | None = None) -> Any:
    left = a.t() if node.get("transA", 0) else a
    right = b.t() if node.get("transB", 0) else b
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    product = flambeau.matmul(left, right)
    if alpha != 1:
        product = (product * alpha).to(a.dtype)
    if c is None:
        return product
    return product + (c if beta == 1 else (c * beta).to(a.dtype))


@reader("Einsum")
def einsum(node: Operator, *operands: Tensor) -> Any:
    return flambeau.einsum(node.get("equation").replace(" ", ""), *operands)


@reader("Det")
def det(node: Operator, x: Tensor) -> Any:
    return flambeau.linalg.det(x)


@reader("MatMulInteger")
def matmul_integer(node: Operator, a: Tensor, b: Tensor, a_zero: Any = None, b_zero: Any = None) -> Any:
    left, right = a.int(), b.int()
    if a_zero is not None:
        left = left - (a_zero.int().unsqueeze(-1) if a_zero.dim() else a_zero.int())
    if b_zero is not None:
        right = right - b_zero.int()
    return flambeau.matmul(left, right)


_ATTENTION_OPTIONS = {
    "q_num_heads", "kv_num_heads", "scale", "softcap", "is_causal", "qk_matmul_output_mode", "softmax_precision",
}  # fmt: skip


@reader("Attention")
def attention(
    node: Operator, query: Tensor, key: Tensor, value: Tensor, mask: Any = None, past_key: Any = None,
    past_value: Any = None, lengths: Any = None,
) -> Any:  # fmt: skip
    unknown = set(node.attributes) - _ATTENTION_OPTIONS
    if unknown or lengths is not None:
        raise NotRead(f"attention with {', '.join(sorted(unknown)) or 'padded keys'}")
    options = (
        bool(node.get("is_causal", 0)), node.get("kv_num_heads", 0), node.get("q_num_heads", 0),
        node.get("qk_matmul_output_mode", 0), node.get("scale"), node.get("softcap", 0.0),
        node.get("softmax_precision"),
    )  # fmt: skip
    return ops.attend(query, key, value, mask, past_key, past_value, *options, cap_first=True)


@reader("RotaryEmbedding")
def rotary_embedding(node: Operator, x: Tensor, cos: Tensor, sin: Tensor, places: Any = None) -> Any:
    return ops.rotary_embedding(x, cos, sin, places, **node.attributes)


@reader("DFT")
def dft(node: Operator, x: Tensor, length: Tensor | None = None, axis: Tensor | None = None) -> Any:
    dim = (node.get("axis", 1) if axis is None else int(axis.item())) % x.dim()
    if dim == x.dim() - 1:
        raise NotRead("a transform along real and imaginary parts")
    count = x.shape[dim] if length is None else int(length.item())
    numbers = flambeau.complex(x[..., 0], x[..., 1] if x.shape[-1] == 2 else flambeau.zeros_like(x[..., 0]))
    inverse, half = node.get("inverse", 0), node.get("onesided", 0)
    if inverse and half:
        whole = count if length is not None else 2 * (count - 1)
        return flambeau.fft.irfft(numbers, whole, dim).unsqueeze(-1)
    made = flambeau.fft.ifft(numbers, count, dim) if inverse else flambeau.fft.fft(numbers, count, dim)
    if half:
        made = made.narrow(dim, 0, count // 2 + 1)
    return flambeau.view_as_real(made)


@reader("STFT")
def stft(node: Operator, x: Tensor, step: Tensor, window: Tensor | None = None, length: Tensor | None = None) -> Any:
    if x.dim() == 3 and x.shape[-1] == 2:
        raise NotRead("the spectrum of a complex signal")
    signal = x.squeeze(-1) if x.dim() == 3 else x
    size = int(length.item()) if length is not None else len(window) if window is not None else 0
    frames = signal.unfold(-1, size, int(step.item()))
    if window is not None:
        frames = frames * window
    made = flambeau.fft.fft(frames, size, -1)
    if node.get("onesided", 1):
        made = made[..., : size // 2 + 1]
    return flambeau.view_as_real(made)


@reader("HannWindow", "HammingWindow", "BlackmanWindow")
def window_of(node: Operator, size: Tensor) -> Any:
    count = int(size.item())
    periodic = bool(node.get("periodic", 1))
    steps = flambeau.arange(count, dtype=flambeau.float64) * (2 * math.pi / (count if periodic else count - 1))
    terms = {
        "HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 21 / 46, 0.0), "BlackmanWindow": (0.42, 0.5, 0.08),
    }[node.kind]  # fmt: skip
    made = terms[0] - terms[1] * flambeau.cos(steps) + terms[2] * flambeau.cos(2 * steps)
    return made.to(torch_type(node.get("output_datatype", 1)))
