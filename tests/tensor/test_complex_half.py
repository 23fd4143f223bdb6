"""complex32, also called chalf: what PyTorch does with it on the CPU, and that kernels compute it in complex64."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome, supported
from tests.tensor.dtype_names import ALL

VALUES = [1.5 + 1j, -2 - 0.1j, 0.25, 3j, 0.1, 0]


def vector(T: Any) -> Any:
    return T.tensor(VALUES, dtype=T.complex32)


@differential(tolerance=0.0)
def test_creation_and_printing(T: Any) -> Any:
    x = vector(T)
    made = {
        "tensor": x,
        "scalar": T.tensor(2 + 1j, dtype=T.chalf),
        "overflow": T.tensor([1e6, 1 - 1e9j], dtype=T.chalf),
        "zeros": T.zeros(2, 3, dtype=T.chalf),
        "ones": T.ones(2, dtype=T.chalf),
        "full": T.full((2,), 0.1 + 2j, dtype=T.chalf),
        "full of too large a number": T.full((2,), 1e6, dtype=T.chalf),
        "like": T.full_like(x, 3),
        "new": x.new_tensor([1.0, 2.0]),
        "from tensors": T.tensor([x[0], x[1]]),
        "empty": T.empty(0, dtype=T.chalf),
    }
    return made, {name: (repr(each), str(each.dtype), each.type()) for name, each in made.items()}


@differential(tolerance=0.0)
@pytest.mark.parametrize("name", ALL)
def test_conversions(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    numbers = T.tensor([0, 1, 2, 100, 127]).to(dtype)
    return vector(T).to(dtype), numbers.to(T.chalf), T.zeros(5, dtype=T.chalf).copy_(numbers), numbers.chalf()


@differential(tolerance=0.0)
def test_conversion_rounds_from_single_precision(T: Any) -> Any:
    numbers = T.arange(-70000, 70000, 467, dtype=T.float64) * (1 + 2.0**-12)
    return numbers.to(T.chalf), T.complex(numbers, -numbers).to(T.chalf), T.tensor([2**40, 2049, -3]).to(T.chalf)


@differential(tolerance=0.0)
def test_parts_and_views(T: Any) -> Any:
    x = vector(T)
    x.real[0] = 7
    x.imag = T.arange(6)
    pairs = T.view_as_real(x)
    pairs[1, 0] = -1
    matrix = x.view(2, 3)
    return {
        "x": x,
        "parts": (x.real, x.imag, pairs),
        "back": T.view_as_complex(pairs),
        "shared": T.view_as_complex(pairs).data_ptr() == x.data_ptr(),
        "halves": x.view(T.float16),
        "bytes": x[:2].view(T.uint8),
        "wide": x.view(T.complex64),
        "transposed": (matrix.T, matrix.T.contiguous(), matrix.T.clone().stride(), matrix.T.real),
        "windows": (x.unfold(0, 3, 2), x.as_strided((2, 2), (1, 2), 1), x[1:].expand(2, 5)),
        "items": (x.tolist(), x[1].item(), complex(x[3]), bool(x[4]), x.storage().tolist()),
        "joined": T.complex(T.tensor([1.0, 2.0]).half(), T.tensor(3.0).half()),
        "numpy": outcome(lambda: x.numpy(), "Got unsupported ScalarType ComplexHalf"),
        "copies": copy.deepcopy(x),
    }


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda T, x: x + x.flip(0) if T is flambeau else x + T.tensor(VALUES[::-1], dtype=T.chalf),
    "mul": lambda T, x: x * x,
    "neg": lambda T, x: -x,
    "numbers": lambda T, x: (x + 1, 2.5 - x, x * 0.1, x * 2j, x == 0.1, x == 3j, x != 0.25),
    "alpha": lambda T, x: T.add(x, x, alpha=3),
    "promotion": lambda T, x: (
        x + T.ones(6), x * T.ones(6, dtype=T.float64), x + T.ones(6).half(), x + T.ones(6).bfloat16(),
        x + T.tensor(1.0, dtype=T.float64), x * T.ones(6, dtype=T.int64), x * T.tensor(2 + 1j), x * T.tensor(True),
    ),
    "half with complex": lambda T, x: x.real * 2j,
    "in place": lambda T, x: (x.clone().add_(x), x.clone().mul_(2), x.clone().fill_(1j), x.clone().zero_()),
    "out": lambda T, x: T.mul(x, x, out=T.empty(6, dtype=T.chalf)),
    "parts": lambda T, x: (x.abs(), x.conj() * 1),
    "tests": lambda T, x: (x.isnan(), x.isinf(), x.isfinite(), T.isreal(x), T.isclose(x, x), T.allclose(x, x)),
    "pick": lambda T, x: (x[T.tensor([3, 0])], x[x != 0], x.index_select(0, T.tensor([1, 1])), x.view(2, 3)[:, [2, 0]]),
    "choose": lambda T, x: (T.where(x == 3j, x, 0), x.masked_fill(x == 3j, 2), x.masked_select(x != 0)),
    "join": lambda T, x: (T.cat([x, x]), T.stack([x, x], 1), T.cat([x, T.ones(1)]), T.hstack([x, x])),
    "rearrange": lambda T, x: (x.roll(2), x.view(2, 3).tril(), T.diag(x[:2]), x.repeat(2), x.repeat_interleave(2)),
    "add at": lambda T, x: x.index_add(0, T.tensor([0, 0, 1]), x[:3]),
    "copy at": lambda T, x: (x.index_copy(0, T.tensor([0]), x[3:4]), x.index_fill(0, T.tensor([5]), 1j)),
    "reductions": lambda T, x: (x.any(), x.all(), x.nonzero(), T.count_nonzero(x), x.norm()),
}  # fmt: skip


@differential
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(T: Any, name: str) -> Any:
    return outcome(lambda: OPERATIONS[name](T, vector(T)))


@differential
def test_assignment(T: Any) -> Any:
    x = vector(T)
    x[0] = 5
    x[1:3] = T.tensor([1 + 1j, 2.0])
    x[T.tensor([True, False, False, False, False, True])] = 1j
    x[[4, 4]] = x[:2].clone()
    return x, x.index_put_((T.tensor([0, 0]),), x[1:3].clone(), accumulate=True), x[2:4].copy_(T.ones(2)), x


@differential
def test_gradients(T: Any) -> Any:
    x = vector(T)[:4].requires_grad_()
    (x * x).to(T.complex64).abs().sum().backward()
    half = T.tensor([1.0, 2.0], dtype=T.float16, requires_grad=True)
    (half * (1 + 2j)).abs().to(T.float32).sum().backward()
    return x.grad, half.grad


@differential
def test_without_data(T: Any) -> Any:
    x = T.empty(2, 3, dtype=T.chalf, device="meta")
    return x * 2, T.cat([x, x]), x.abs(), x.T.contiguous().stride(), x.to(T.float64), x.real, x.sum(0).dtype


@differential(tolerance=0.0)
def test_random_numbers(T: Any) -> Any:
    return T.rand(3, dtype=T.chalf), T.randn(2, 9, dtype=T.chalf), T.randn_like(T.ones(3, 2, dtype=T.chalf).T)


# PyTorch has no kernel for these; here they are those of complex64, rounded once.
WITHOUT_KERNEL: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: (x.sum(), x.view(2, 3).sum(0), x.mean()),
    "prod": lambda x: (x.prod(), x.cumsum(0)),
    "div": lambda x: (x / 3, 2j / x[:5]),
    "functions": lambda x: (x.conj_physical(), x.sgn(), x.exp(), x.sqrt(), x.sin(), x.pow(2)),
    "gather": lambda x: (x.flip(0), x.take(flambeau.tensor([5, 0])), x.gather(0, flambeau.tensor([1]))),
    "scatter": lambda x: x.scatter(0, flambeau.tensor([2, 0]), x[:2]).scatter_add_(0, flambeau.tensor([1]), x[:1]),
}


@pytest.mark.parametrize("name", WITHOUT_KERNEL)
def test_kernels_compute_in_complex64(name: str) -> None:
    x = vector(flambeau)
    found, wide = WITHOUT_KERNEL[name](x), WITHOUT_KERNEL[name](x.to(flambeau.complex64))
    for half, full in zip(found, wide, strict=True):
        assert half.dtype is flambeau.complex32
        assert half.tolist() == full.to(flambeau.complex32).tolist()


def test_a_dtype_that_is_asked_for_is_kept() -> None:
    x = vector(flambeau)
    assert x.sum(dtype=flambeau.complex64).dtype is flambeau.complex64
    assert x.sum(dtype=flambeau.complex64).item() == x.to(flambeau.complex64).sum().item()
    assert x.to(flambeau.complex64).sum(dtype=flambeau.chalf).dtype is flambeau.complex32


def test_pickle() -> None:
    x = vector(flambeau)
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


@differential
def test_what_only_real_tensors_have(T: Any) -> Any:
    x = vector(T)
    return {
        "maximum": outcome(lambda: T.maximum(x, x)),
        "sign": outcome(lambda: x.sign()),
        "order": supported(lambda: x < x),
        "sort": outcome(lambda: x.sort()),
        "bfloat16 pairs": outcome(lambda: T.view_as_complex(T.ones(1, 2, dtype=T.bfloat16)), "view_as_complex is only"),
        "float": outcome(lambda: float(x[3]), "without overflow"),
    }
