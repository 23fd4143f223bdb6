"""The 8-bit floats, the wide unsigned integers, and what is particular to other narrow types."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome, supported
from tests.support.oracle import ON_X86
from tests.tensor.dtype_names import FLOAT8

WIDE_UNSIGNED = ("uint16", "uint32", "uint64")

every_float8 = pytest.mark.parametrize("name", FLOAT8)


# ----- 8-bit floats -----------------------------------------------------------------------------------------------


@differential(tolerance=0.0)
@every_float8
def test_every_float8_is_read_as_in_pytorch(T: Any, name: str) -> Any:
    codes = T.arange(256).to(T.uint8)
    numbers = codes.view(getattr(T, name))
    finite = numbers[numbers.float().isfinite()]
    return {
        "floats": (numbers.float(), numbers.half(), numbers.bfloat16(), numbers.double(), numbers.to(T.complex64)),
        "integers": (finite.int(), finite.long(), finite.to(T.uint8), finite.bool()),
        "items": numbers[:3].tolist() + [numbers[100].item()],
        "bytes": (numbers.view(T.uint8), numbers.element_size()),
    }


@differential(tolerance=0.0)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@every_float8
def test_rounding_to_float8(T: Any, name: str, source: str) -> Any:
    steps = T.arange(-2000, 2000, dtype=T.float64)
    limits = T.tensor([464.0, 465.0, 240.0, 248.0, 57344.0, 61439.0, 61440.0, 65000.0, 0.0, float("inf"), float("nan")])
    numbers = T.cat([steps / 4, steps * 2.0**-13, steps * 2.0**-20, steps * 31, limits.double(), -limits[:-1].double()])
    rounded = numbers.to(getattr(T, source)).to(getattr(T, name))
    # The sign of a NaN is left open: on x86-64 PyTorch's bfloat16 ones are negative.
    return T.where(rounded.float().isnan(), 0x7F, rounded.view(T.uint8)), rounded.float().isnan()


@differential(tolerance=0.0)
@every_float8
def test_float8_from_other_types(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    return {
        "integers": T.tensor([2**40, -(2**40), 17, -19, 0]).to(dtype).view(T.uint8),
        "bool": T.tensor([True, False]).to(dtype),
        "complex": T.tensor([1.7 + 2j, -300]).to(dtype),
        "data": T.tensor([[0.1, -2], [1e9, float("nan")]], dtype=dtype).view(T.uint8),
        "fill": (T.full((2,), 0.3, dtype=dtype), T.ones(2, dtype=dtype), T.zeros(2, dtype=dtype).fill_(1.1)),
        "too large": outcome(lambda: T.full((2,), 1e6, dtype=dtype), "value cannot be converted to type c10::Float8"),
        "infinite": outcome(lambda: T.zeros(2, dtype=dtype).fill_(float("inf"))),
        "copy_": T.zeros(2, dtype=dtype).copy_(T.tensor([1000.0, 0.7])),
    }


@differential
@every_float8
def test_operations_on_float8(T: Any, name: str) -> Any:
    x = T.tensor([1.5, -2.0, 0.25, 3.0], dtype=getattr(T, name))
    y = x.clone()
    y[0] = 2
    y[T.tensor([3])] = x[:1]
    return {
        "text": (repr(x), x.type(), repr(x.dtype)),
        "compare": (x == y, x != 1.5, x.isnan(), x.abs()),
        "pick": (x[T.tensor([3, 0])], x[x == x], x.index_select(0, T.tensor([1])), y),
        "join": (T.cat([x, x]), T.stack([x, x], 1), T.where(x == y, x, y), x.roll(1), x.repeat(2), T.diag(x)),
        "views": (x.view(2, 2).T.contiguous(), x.view(2, 2).T.clone().stride(), x.view(T.int16), x.expand(2, 4)),
        "copies": (copy.deepcopy(x), x.numel(), x.storage().tolist()),
        "promotion": outcome(lambda: x + T.ones(4), "Promotion for Float8 Types is not supported"),
        "promotion of 0-d": outcome(lambda: T.ones(4, dtype=T.int32) + x[0], "Promotion for Float8 Types"),
        "complex": outcome(lambda: x * 1j, "Unknown Complex ScalarType"),
        "free": (supported(lambda: x + x), supported(lambda: x.sum()), supported(lambda: x * 2)),
        "numpy": outcome(lambda: x.numpy(), "Got unsupported ScalarType Float8"),
        "default": outcome(lambda: T.set_default_dtype(x.dtype), "couldn't find storage object"),
        "gradient": x.float().requires_grad_().to(x.dtype).float().sum(),
        "meta": x.to("meta").view(2, 2).T.contiguous(),
    }


def test_float8_is_computed_in_float32_and_rounded_once() -> None:
    x = flambeau.tensor([1.5, -2.0, 0.25, 3.0], dtype=flambeau.float8_e4m3fn)
    assert (x * 1.1).tolist() == (x.float() * flambeau.tensor(1.1).to(x.dtype).float()).to(x.dtype).tolist()
    assert x.sum().item() == 2.75
    assert (x * 1000).tolist() == [448.0, -448.0, 112.0, 448.0]


def _matrices(T: Any, name: str) -> tuple[Any, Any]:
    numbers = T.arange(96, dtype=T.float32)
    return (numbers[:32].sin().view(2, 16).to(getattr(T, name)), numbers.cos()[:64].view(4, 16).to(T.float8_e4m3fn).t())


@differential
@every_float8
def test_scaled_products(T: Any, name: str) -> Any:
    # oneDNN, which PyTorch asks on processors with AMX, takes other types and checks less.
    with T.backends.mkldnn.flags(enabled=False, allow_tf32=False):
        return _scaled_products(T, name)


def _scaled_products(T: Any, name: str) -> Any:
    a, b = _matrices(T, name)
    one, two, rows, columns = T.tensor(0.5), T.tensor([2.0]), T.rand(2, 1), T.rand(1, 4)
    product = functools.partial(T._scaled_mm, a, b)
    v2 = functools.partial(T._scaled_mm_v2, a, b)
    return {
        "own dtype": product(one, two),
        "float32": product(one, two, out_dtype=T.float32),
        "rows": product(rows, columns, out_dtype=T.float32),
        "bias": product(one, two, bias=T.arange(4.0), out_dtype=T.bfloat16),
        "scaled": product(one, two, scale_result=T.tensor(4.0), out_dtype=T.float8_e5m2),
        "out": product(one, two, out=T.empty(0)),
        "by recipe": v2([one], [0], [0], [two], [0], [0], None, T.float32),
        "by rows": v2([rows], [1], [0], [columns], [1], [0], None, T.float32),
        "errors": [
            outcome(lambda: T._scaled_mm(a.float(), b, one, two), "Invalid scaling configuration"),
            outcome(lambda: T._scaled_mm(a[0], b, one, two), "must be a matrix"),
            outcome(lambda: T._scaled_mm(a, b[:8], one, two), "shapes cannot be multiplied"),
            outcome(lambda: product(rows, two), "Invalid scaling configuration"),
            outcome(lambda: product(one.double(), two), "Invalid scaling configuration"),
            outcome(lambda: product(one, two, bias=T.ones(3)), "Bias must be size 4 but got 3"),
            outcome(lambda: product(one, two, out_dtype=T.float16, out=T.empty(0)), "out_dtype must match"),
            outcome(lambda: product(rows, T.rand(4, 2)[:, 0][None]), "Invalid scaling configuration"),
            outcome(lambda: v2([rows], [1], [0], [T.rand(1, 8)[:, ::2]], [1], [0], None, None), "stride(1) to be 1"),
            outcome(lambda: v2([rows], [0], [0], [two], [0], [0], None, None), "scale_a must have 1 Float element"),
            outcome(lambda: v2([one], [2], [0], [two], [2], [0], None, None), "Invalid scaling configuration"),
            outcome(lambda: v2([one], [0], [1], [two], [0], [0], None, None), "does not support swizzle"),
            outcome(lambda: v2([one], [0], [0], [two], [0], [0], None, None, [1]), "contraction_dim"),
        ],
    }


# ----- wide unsigned integers -------------------------------------------------------------------------------------

UNSIGNED_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda T, x: (x * 2, x == 3, x / 2, x + 1.5, x.sqrt()),
    "too negative": lambda T, x: T.full_like(x, -3),
    "sums": lambda T, x: (x.sum(), x.prod(), x.cumsum(0), x.any(), x.all()),
    "order": lambda T, x: (x.sort(), x.unique(), T.equal(x, x)),
    "tests": lambda T, x: (x.isnan(), x.isinf(), x.isfinite(), T.isclose(x, x), x.nan_to_num()),
    "move": lambda T, x: (x.roll(1), x.repeat(2), T.cat([x, x]), T.where(x == 3, x, x), x[[1, 0]], T.diag(x)),
    "with floats": lambda T, x: (x + T.ones(3), x * T.ones(3).half(), x + T.tensor(1.0)),
    "with bool": lambda T, x: x + T.ones(3, dtype=T.bool),
    "with int64": lambda T, x: x + T.ones(3, dtype=T.int64),
    "with complex": lambda T, x: x + T.ones(3, dtype=T.complex64),
    "with a complex number": lambda T, x: T.result_type(x, 1j),
    "with a 0-d bool": lambda T, x: x * T.tensor(True),
    "cat": lambda T, x: T.cat([x, T.ones(1, dtype=T.uint8)]),
    "mean": lambda T, x: x.mean(),
    "print": lambda T, x: repr(x),
}


@differential
@pytest.mark.parametrize("name", WIDE_UNSIGNED)
@pytest.mark.parametrize("operation", UNSIGNED_OPERATIONS)
def test_wide_unsigned_integers(T: Any, operation: str, name: str) -> Any:
    x = T.tensor([3, 60000, 0], dtype=getattr(T, name))
    return supported(lambda: UNSIGNED_OPERATIONS[operation](T, x))


# ----- other narrow types -----------------------------------------------------------------------------------------


@differential(tolerance=0.0)
@pytest.mark.parametrize("count", [1, 3, 64])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "complex64", *FLOAT8])
def test_negative_floats_wrap_round_in_uint8(T: Any, source: str, count: int) -> Any:
    numbers = T.tensor([-2.0, -0.5, 200.0]).repeat(count).to(getattr(T, source))
    return numbers.to(T.uint8), T.zeros(3 * count, dtype=T.uint8).copy_(numbers)


@pytest.mark.skipif(
    ON_X86, reason="PyTorch's vector code for x86-64 rounds once; which elements it gets depends on sizes and threads"
)
@differential(tolerance=0.0)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_alpha_rounds_before_it_adds(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    a, b = (T.arange(40) * 0.37).to(dtype), (T.arange(40) * 1.713).to(dtype)
    return [(T.add(a, b, alpha=each), T.sub(a, b, alpha=each), T.rsub(a, b, alpha=each)) for each in (-3.125, 0.3, 2)]


@differential
@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int64"])
def test_integers_become_floats(T: Any, name: str) -> Any:
    x = T.tensor([[1, 2, 3], [4, 5, 6]], dtype=getattr(T, name))
    return T.nn.functional.pairwise_distance(x, x + 1), T.polygamma(1, T.tensor([-8, -1, 0, 3], dtype=T.int8))
