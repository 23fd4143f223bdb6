"""Segments, finite differences, checksums and other small families against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.differential import differential, outcome


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@differential(tolerance=1e-5)
def test_segment_reduce(T: Any, reduce: str) -> Any:
    observed = []
    for values in ([1.0, 2, 3, 4, 5, 6], [1.0, 1, 0, 3, 0, 5], [2.0, 0, 4, 5, 7, float("nan")]):
        for initial in (None, 2):
            for words in ({"lengths": T.tensor([2, 0, 3, 1])}, {"offsets": T.tensor([0, 2, 2, 6])}):
                x = T.tensor(values, dtype=T.float64, requires_grad=True)
                result = T.segment_reduce(x, reduce, initial=initial, **words)
                weights = T.linspace(1.0, 2.0, len(result), dtype=T.float64)
                observed += [result, T.autograd.grad(result, x, weights)]
    return observed


@differential(tolerance=1e-5)
def test_segments_of_inner_dimensions(T: Any) -> Any:
    x = T.arange(24.0).reshape(2, 4, 3).requires_grad_()
    lengths = T.tensor([[1, 3, 0], [2, 0, 2]])
    result = T.segment_reduce(x, "max", lengths=lengths, axis=1)
    short = T.segment_reduce(x, "sum", lengths=lengths[:, :2], axis=1, unsafe=True)
    return (
        result,
        T.autograd.grad(result[:, :1].sum(), x),
        short,
        T.segment_reduce(x[0].half(), "mean", lengths=lengths[0]),
    )


@differential
def test_segment_reduce_refuses(T: Any) -> Any:
    x, lengths = T.arange(6.0), T.tensor([2, 4])
    return [
        outcome(lambda: T.segment_reduce(x, "sum"), "Either lengths or offsets must be defined"),
        outcome(lambda: T.segment_reduce(x, "sum", indices=lengths), "indices based reduction is not supported"),
        outcome(lambda: T.segment_reduce(x, "median", lengths=lengths), "reduce argument must be either"),
        outcome(lambda: T.segment_reduce(x, "sum", lengths=lengths + 1), "Expected all rows of lengths"),
        outcome(lambda: T.segment_reduce(x, "sum", lengths=T.tensor([7, -1])), "lengths contains negative value"),
        outcome(lambda: T.segment_reduce(x.long(), "sum", lengths=lengths), "not implemented for 'Long'"),
        outcome(lambda: T.segment_reduce(x, "sum", lengths=lengths, axis=3), "Dimension out of range"),
    ]


@pytest.mark.parametrize(
    "words",
    ["", "spacing=2.0", "edge_order=2", "spacing=[0.5, 3.0], dim=(1, 0)", "dim=1", "spacing=[c, c], edge_order=2"],
)
@differential(tolerance=1e-5)
def test_gradient(T: Any, words: str) -> Any:
    names = {"T": T, "c": T.tensor([0.0, 1, 3, 4], dtype=T.float64)}
    names["x"] = T.arange(16, dtype=T.float64).reshape(4, 4).sin().requires_grad_()
    results = eval(f"T.gradient(x, {words})", names)
    integers = T.gradient(T.tensor([1, 4, 9, 16]), spacing=2)
    return results, T.autograd.grad(sum((each * each).sum() for each in results), names["x"]), integers


@differential
def test_gradient_refuses(T: Any) -> Any:
    x = T.arange(9.0).reshape(3, 3)
    return [
        outcome(lambda: T.gradient(x, edge_order=3), "only supports edge_order=1"),
        outcome(lambda: T.gradient(x, dim=(0, 0)), "appears multiple times"),
        outcome(lambda: T.gradient(x, spacing=[1.0]), "since dim argument was not given"),
        outcome(lambda: T.gradient(x, spacing=[1.0], dim=(0, 1)), "to have the same length"),
        outcome(lambda: T.gradient(x[:, :1]), "at least edge_order+1"),
        outcome(lambda: T.gradient(x.to(T.uint8)), "does not support uint8"),
        outcome(lambda: T.gradient(x, spacing=[x, x]), "to have one dimension"),
    ]


@differential
def test_frexp(T: Any) -> Any:
    x = T.tensor([1.5, -0.0, float("inf"), -3, 1e-40, 0.1], requires_grad=True)
    result = T.frexp(x)
    (gradient,) = T.autograd.grad(result.mantissa.sum(), x)
    out = T.empty(0), T.empty(0, dtype=T.int32)
    T.frexp(x.detach(), out=out)
    wrong = T.empty(0), T.empty(0)
    return [
        result, gradient, out, T.frexp(T.tensor([3.0]).half()),
        outcome(lambda: T.frexp(T.tensor([1])), "only supports floating-point dtypes"),
        outcome(lambda: T.frexp(x.detach(), out=wrong), "expects exponent to have"),
    ]  # fmt: skip


@differential
def test_hash_tensor(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3)
    hashes = [
        T.hash_tensor(x),
        T.hash_tensor(x, 1),
        T.hash_tensor(x.bool(), (0, 1), keepdim=True),
        (-x.long()).hash_tensor(0),
    ]
    return [
        [(str(each.dtype), each.tolist()) for each in hashes],
        outcome(lambda: T.hash_tensor(x, mode=1), "Unknown hash_tensor mode"),
        outcome(lambda: T.hash_tensor(x[:0]), "Expected reduction dim to be specified"),
        outcome(lambda: T.hash_tensor(x[:0], 0), "to have non-zero size"),
        outcome(lambda: T.hash_tensor(x, out=T.empty(0)), "of dtype uint64"),
    ]


@differential(tolerance=1e-5)
def test_histogramdd(T: Any) -> Any:
    x = T.linspace(0.0, 60.0, 40).sin().reshape(20, 2)
    edges = [T.tensor([-1.0, 0.1, 0.7]), T.tensor([-0.5, 0.5])]
    return [
        T.histogramdd(x, 3),
        T.histogramdd(x, [2, 3], range=[-1.0, 1, 0, 0.5], weight=T.arange(20.0)),
        T.histogramdd(x, edges, density=True),
        outcome(lambda: T.histogramdd(x, [2, 2, 2]), "size of bins must be equal"),
        outcome(lambda: T.histogramdd(x, edges[:1]), "expected 2 sequences of bin edges"),
        outcome(lambda: T.histogramdd(x, [2, 0]), "bins must be > 0"),
        outcome(lambda: T.histogramdd(x, 2, range=[0.0, 1.0]), "range should have 4 elements"),
        outcome(lambda: T.histogramdd(x, 2, weight=T.ones(3)), "excluding its innermost dimension"),
    ]


@differential
def test_chunk_cat(T: Any) -> Any:
    x, y = T.arange(12.0).reshape(6, 2), T.ones(3)
    out = T.empty(2, 8, dtype=T.float64)
    T._chunk_cat([x, y], 0, 2, out=out)
    return (
        T._chunk_cat([x], 0, 4),
        T._chunk_cat([x, y], 0, 2),
        out,
        outcome(lambda: T._chunk_cat([x, y], 1, 2), "dim < ndim"),
    )


@differential
def test_unsafe_masked_index(T: Any) -> Any:
    x = T.arange(12.0).reshape(6, 2).requires_grad_()
    values = T.ones(2, 2, requires_grad=True)
    mask = T.tensor([[True, False], [True, True]])
    indices = [T.tensor([[1], [7]]), T.tensor([[0, -9]])]
    read = T._unsafe_masked_index(x, mask, indices, -5.0)
    written = T._unsafe_masked_index_put_accumulate(x, mask, indices, values)
    gradients = T.autograd.grad((written * written).sum(), [x, values])
    return read, T.autograd.grad((read * read).sum(), x), written, gradients


@differential
def test_sum_to_size_and_aten(T: Any) -> Any:
    x = T.arange(12.0).reshape(3, 2, 2).requires_grad_()
    y = T.tensor([[True, False], [True, True]])
    aten = T.ops.aten
    part = aten.slice(x, 0, 1, 3, 2)
    return [
        x.sum_to_size(1, 2), x.sum_to_size((3, 1, 2)), y.sum_to_size(2), x.sum_to_size(3, 2, 2) is x,
        part, part._is_view(),
        outcome(lambda: x.sum_to_size(4, 2), "is not expandable to size"),
        outcome(lambda: aten.slice(x, 0, 1, 2, -1), "slice step must be positive"),
        aten._softmax_backward_data(x.detach(), x.detach().softmax(1), 1, T.float32),
        outcome(lambda: aten._softmax_backward_data(x, x[:1], 1, T.float32), "to have same size as tensor"),
    ]  # fmt: skip
