"""Tensors put together and elements rearranged, against PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _numbers(T: Any, *shape: int, dtype: str = "float64") -> Any:
    count = 1
    for size in shape:
        count *= size
    values = [((5 * number) % 13 - 6) / 4 for number in range(count)]
    return T.tensor(values, dtype=getattr(T, dtype)).reshape(shape)


OPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cat": lambda T, x, v: T.cat([x, x[:1], x.t()[:0, :1].expand(0, 4)]),
    "cat_transposed": lambda T, x, v: T.cat([x.t(), x.t()], 1),
    "cat_with_empty": lambda T, x, v: T.cat([v[:0], x, v[:0]], -1),
    "cat_promotes": lambda T, x, v: T.concat([x, x.float(), T.ones(1, 4, dtype=T.int64)]),
    "stack": lambda T, x, v: T.stack([v, x[0], v * v], -1),
    "hstack": lambda T, x, v: T.hstack([v, v]),
    "vstack": lambda T, x, v: T.vstack([v, x]),
    "row_stack": lambda T, x, v: T.row_stack([x, v]),
    "dstack": lambda T, x, v: T.dstack([v, v]),
    "column_stack": lambda T, x, v: T.column_stack([x.t(), v]),
    "block_diag": lambda T, x, v: T.block_diag(x, v, v[0]),
    "cartesian_prod": lambda T, x, v: T.cartesian_prod(v, v[:2], v[1:]),
    "tile": lambda T, x, v: v.tile(2, 3),
    "tile_keyword": lambda T, x, v: T.tile(x, dims=(2,)),
    "repeat": lambda T, x, v: x.t().repeat(2, 1, 3),
    "repeat_none": lambda T, x, v: x.repeat(1, 0),
    "repeat_interleave": lambda T, x, v: x.repeat_interleave(2, dim=1),
    "roll": lambda T, x, v: x.roll((1, -2), (0, 1)),
    "roll_flat": lambda T, x, v: x.t().roll(5),
    "flip": lambda T, x, v: x.t().flip(0, 1),
    "flip_keyword": lambda T, x, v: T.flip(x, dims=[1]),
    "fliplr": lambda T, x, v: x.fliplr(),
    "flipud": lambda T, x, v: x.flipud(),
    "rot90": lambda T, x, v: x.rot90(),
    "rot90_back": lambda T, x, v: x.rot90(-1, (1, 0)),
    "tril": lambda T, x, v: x.tril(1),
    "triu": lambda T, x, v: x.t().triu(-1),
    "diag_of_vector": lambda T, x, v: v.diag(-1),
    "diag_of_matrix": lambda T, x, v: x.diag(1),
    "diag_embed": lambda T, x, v: x.diag_embed(1, 0, 2),
    "diagflat": lambda T, x, v: x.diagflat(),
    "trace": lambda T, x, v: x.trace(),
    "select_scatter": lambda T, x, v: x.select_scatter(v, 0, -1),
    "slice_scatter": lambda T, x, v: x.slice_scatter(x[:2] * 3, 0, 1, None),
    "diagonal_scatter": lambda T, x, v: x.diagonal_scatter(v[1:], 1),
}


def _inputs(T: Any) -> tuple[Any, Any]:
    return _numbers(T, 3, 4).requires_grad_(), _numbers(T, 4).requires_grad_()


@pytest.mark.parametrize("name", OPS)
@differential
def test_values_and_two_derivatives(T: Any, name: str) -> Any:
    x, v = _inputs(T)
    result = OPS[name](T, x, v)
    weight = (_numbers(T, *result.shape).to(result.dtype) + 2).requires_grad_()
    grads = T.autograd.grad(result, [x, v], weight, create_graph=True, allow_unused=True)
    used = [grad for grad in grads if grad is not None]
    smooth = [grad for grad in used if grad.requires_grad]
    again = T.autograd.grad(smooth, [weight], [_numbers(T, *each.shape) for each in smooth]) if smooth else None
    return result, [grad.detach() for grad in used], [each.tolist() for each in again or ()]


@differential
def test_as_strided_scatter(T: Any) -> Any:
    x, v = _inputs(T)
    result = x.as_strided_scatter(v.view(2, 2), (2, 2), (5, 1), 1)
    # PyTorch's own gradient of the first input fails its gradcheck, so that only the second one is compared.
    return result, T.autograd.grad(result, v, _numbers(T, 3, 4))


def test_as_strided_scatter_passes_no_gradient_to_what_it_replaces() -> None:
    import flambeau

    x = flambeau.zeros(3, 4, requires_grad=True)
    x.as_strided_scatter(flambeau.ones(2, 2), (2, 2), (5, 1), 1).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1, 0, 0, 1], [1, 1, 0, 0], [1, 1, 1, 1]]


@differential
def test_channels_last_is_kept_by_cat(T: Any) -> Any:
    x = _numbers(T, 2, 3, 4, 5).contiguous(memory_format=T.channels_last)
    return T.cat([x, x], 1), T.cat([x, x.contiguous()], 1)


@differential
def test_in_place_and_out(T: Any) -> Any:
    x, v = _inputs(T)
    y = x * 2
    y.tril_()
    y.t().triu_(1)
    (grad,) = T.autograd.grad((y * y).sum(), x)
    target = T.empty(0, dtype=T.float64)
    same = T.cat([x.detach(), v.detach()[None]], out=target) is target
    return y, grad, same, target, T.diag(v.detach(), out=T.empty(4, 4, dtype=T.float64))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "complex128"])
@differential
def test_dtypes(T: Any, dtype: str) -> Any:
    x = (_numbers(T, 3, 4, dtype="float32") * 4 + 7).to(getattr(T, dtype))
    return T.cat([x, x]), T.stack([x, x]), x.flip(0), x.roll(1), x.triu(), x.diag(), x.repeat(2, 1), T.block_diag(x, x)


@differential
def test_repeat_interleave_with_counts(T: Any) -> Any:
    x, _ = _inputs(T)
    counts = T.tensor([2, 0, 1])
    result = x.repeat_interleave(counts, dim=0)
    errors = [
        outcome(lambda: x.repeat_interleave(-1), "Repeats must be non-negative"),
        outcome(lambda: x.repeat_interleave(counts, dim=1), "repeats must have the same size as input along dim"),
    ]
    return result, T.repeat_interleave(counts), T.autograd.grad(result.sum(), x), errors


@pytest.mark.parametrize("replaced", [False, True])
@differential
def test_combinations(T: Any, replaced: bool) -> Any:
    _, v = _inputs(T)
    result = T.combinations(v, 3, replaced)
    return result, T.autograd.grad((result**2).sum(), v), T.combinations(v.detach(), 0)


ERRORS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "cat_nothing": (lambda T, x: T.cat([]), "expected a non-empty list of Tensors"),
    "cat_scalar": (lambda T, x: T.cat([x[0, 0], x]), "zero-dimensional tensor (at position 0) cannot be concatenated"),
    "cat_sizes": (
        lambda T, x: T.cat([x, x.t()]),
        (
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 "
            "in the list"
        ),
    ),
    "cat_ranks": (lambda T, x: T.cat([x, x[0]]), "Tensors must have same number of dimensions: got 2 and 1"),
    "cat_number": (lambda T, x: T.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int"),
    "cat_tensor": (lambda T, x: T.cat(x), "argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    "stack_nothing": (lambda T, x: T.stack([]), "stack expects a non-empty TensorList"),
    "stack_sizes": (lambda T, x: T.stack([x, x.t()]), "stack expects each tensor to be equal size"),
    "meshgrid": (lambda T, x: T.meshgrid(x[0], x[1], indexing="ab"), 'indexing must be one of "xy" or "ij"'),
    "repeat": (lambda T, x: x.repeat(2), "can not be smaller than number of dimensions of tensor"),
    "roll": (lambda T, x: x.roll(1, (0, 1)), "shifts and dimensions must align"),
    "flip": (lambda T, x: x.flip(0, 0), "dim 0 appears multiple times in the list of dims"),
    "rot90": (lambda T, x: x.rot90(1, (0, 0)), "expected rotation dims to be different"),
    "tril": (lambda T, x: x[0].tril(), "input tensor must have at least 2 dimensions"),
    "diag": (lambda T, x: x[None].diag(), "Supports 1D or 2D tensors. Got 3D"),
    "trace": (lambda T, x: x[0].trace(), "expected a matrix"),
    "select_scatter": (
        lambda T, x: x.select_scatter(x, 0, 0),
        "expected src to have a size equal to the slice of self",
    ),
    "block_diag": (lambda T, x: T.block_diag(x[None]), "Input tensors must have 2 or fewer dimensions"),
    "broadcast_shapes": (
        lambda T, x: T.broadcast_shapes((2, 3), (3, 1)),
        "Attempting to broadcast a dimension of length",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
@differential
def test_errors(T: Any, name: str) -> Any:
    action, phrase = ERRORS[name]
    return outcome(lambda: action(T, T.zeros(2, 3)), phrase)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "shifts", "dims"),
    [((4, 40, 40, 24), (-3, 5), (1, 2)), ((70000,), 7, 0), ((300, 300), 12345, ()), ((5, 6, 7), (1, 2, 3), (0, 1, 0))],
)
@differential
def test_rolled_tensors_of_all_sizes_and_layouts(T: Any, dtype: str, shape: Any, shifts: Any, dims: Any) -> Any:
    x = T.arange(math.prod(shape)).reshape(shape)
    x = (x % 2 == 0) if dtype == "bool" else (x % 128).to(getattr(T, dtype))
    found = [x.roll(shifts, dims), x.transpose(0, -1).roll(shifts, dims), x[..., ::2].roll(shifts, dims)]
    return [(each.reshape(-1)[:: 1 + each.numel() // 997], each.stride()) for each in found]


@pytest.mark.parametrize("dim", [0, 1, -1])
@differential
def test_joined_with_gaps(T: Any, dim: int) -> Any:
    """Halves of a row, transposed and strided tensors, channels last: values, strides and gradients."""
    x = _numbers(T, 2, 6, 4, 8, dtype="float32").requires_grad_()
    halves = [-x[..., 4:], x[..., :4]]
    steps = [x[:, ::2], x[:, 1::2].transpose(2, 3).transpose(2, 3)]
    last = [x.contiguous(memory_format=T.channels_last), x.to(memory_format=T.channels_last) * 2]
    flat = [x[0, 0].t(), x[1, 1].t()]
    mixed = [x.contiguous(memory_format=T.channels_last), x]
    found = [T.cat(each, dim) for each in (halves, steps, last, flat, mixed)]
    weights = [T.linspace(-1, 1, each.numel()).reshape(each.shape) for each in found]
    total = T.stack([(each * weight).sum() for each, weight in zip(found, weights, strict=True)]).sum()
    return [(each, each.stride()) for each in found], T.autograd.grad(total, x)


@pytest.mark.parametrize("threads", [1, 3])
@differential
def test_many_lines_with_gaps(T: Any, threads: int) -> Any:
    """Rotated halves of heads, slices and transposed tensors, which a kernel copies line by line on all threads."""
    before = T.get_num_threads()
    T.set_num_threads(threads)
    try:
        heads = T.arange(4 * 64 * 8 * 64, dtype=T.float32).reshape(4, 64, 8, 64).transpose(1, 2)
        left, right = heads[..., :32], heads[..., 32:]
        apart = heads[:, 1::2, :, 8:40], heads.flip(0)[:, ::2], -heads[::4].expand(4, 8, 64, 64)[:, :4]
        deep = T.arange(3 * 4 * 5 * 6 * 64).reshape(3, 4, 5, 6, 64)
        found = [
            T.cat((-right, left), -1),
            T.cat((left, left, right), 2),
            T.stack((left, -right), 3),
            T.stack((left, right)),
            T.cat(apart, 3),
            T.cat((deep.permute(2, 0, 3, 1, 4), deep.permute(2, 0, 3, 1, 4)[..., 16:]), -1),
            T.cat((deep[:, ::2, ::2, ::2], deep[:, 1::2, :3, 3:]), 3),
        ]
        return [(each.reshape(-1)[:: 1 + each.numel() // 4999], each.stride()) for each in found]
    finally:
        T.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 4])
@differential
def test_large_tensors_along_the_first_dimension(T: Any, threads: int) -> Any:
    """Threads copy parts of the result that begin and end inside of a tensor."""
    before = T.get_num_threads()
    T.set_num_threads(threads)
    try:
        rows = [T.arange(70 * count).reshape(count, 70) + count for count in (1, 1703, 4000, 2)]
        planes = [T.arange(60_000).reshape(3, 200, 100) * number for number in range(3)]
        return T.cat(rows), T.cat([each.reshape(-1) for each in rows]), T.stack(planes), T.cat(planes, 0)
    finally:
        T.set_num_threads(before)
