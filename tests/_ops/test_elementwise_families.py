"""Elementwise ops against PyTorch: values, dtypes, node names, first and second derivatives."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from ..support.differential import compare, differential, outcome

INF, NAN = float("inf"), float("nan")
REAL = [
    "abs",
    "neg",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "sigmoid",
    "erf",
    "erfc",
    "sinc",
    "i0",
    "square",
    "nan_to_num",
    "deg2rad",
    "rad2deg",
    "reciprocal",
    "angle",
]
UNIT = ["asin", "acos", "atanh", "erfinv", "logit", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"]
TESTS = ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit", "logical_not"]
COMPLEX = [
    "abs",
    "neg",
    "sgn",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "square",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "reciprocal",
    "angle",
    "sinc",
]


def _derivatives(T: Any, make: Any, *values: Any) -> Any:
    """The result, its gradients, and the gradients of the gradients' weighted sum."""
    inputs = [T.tensor(each, dtype=T.float64 if not isinstance(each[0], complex) else T.complex128) for each in values]
    for each in inputs:
        each.requires_grad_()
    result = make(*inputs)
    weights = T.linspace(0.5, 1.5, result.numel(), dtype=T.float64).reshape(result.shape).to(result.dtype)
    first = T.autograd.grad(result, inputs, weights, create_graph=True)
    total = sum((each * each.detach().conj()).real.sum() if each.is_complex() else (each * 1.5).sum() for each in first)
    second = T.autograd.grad(total, inputs, allow_unused=True) if total.requires_grad else ()
    return result, [each.detach() for each in first], [None if each is None else each.abs().sum() for each in second]


@pytest.mark.parametrize("name", REAL)
@differential(tolerance=1e-5)
def test_real_functions(T: Any, name: str) -> Any:
    return _derivatives(T, lambda x: getattr(x, name)(), [-2.3, -0.7, 0.3, 1.4, 2.6, 7.1])


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
@differential(tolerance=1e-3)
def test_gamma_functions(T: Any, name: str) -> Any:
    # PyTorch's own polygamma(1, x), the derivative, is good to nine digits only.
    return _derivatives(T, lambda x: getattr(x, name)(), [-2.3, -0.7, 0.3, 1.4, 2.6, 7.1])


@pytest.mark.parametrize("name", UNIT)
@differential(tolerance=1e-5)
def test_functions_of_the_unit_interval(T: Any, name: str) -> Any:
    return _derivatives(T, lambda x: getattr(x, name)(), [0.01, 0.2, 0.5, 0.77, 0.99])


@pytest.mark.parametrize("name", COMPLEX)
@differential(tolerance=1e-5)
def test_complex_functions(T: Any, name: str) -> Any:
    return _derivatives(T, lambda x: getattr(x, name)(), [0.4 + 0.3j, -0.2 + 0.7j, 0.6 - 0.5j])


@pytest.mark.parametrize("name", [*REAL, *UNIT, *TESTS, "sgn", "lgamma", "digamma"])
@differential(tolerance=2e-6)
def test_special_values(T: Any, name: str) -> Any:
    return getattr(T.tensor([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]), name)()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("name", ["exp", "sigmoid", "sqrt", "erf", "sign", "square", "isnan", "logical_not", "lgamma"])
@differential
def test_other_dtypes(T: Any, name: str, dtype: str) -> Any:
    return getattr(T.tensor([0, 1, 2, 5]).to(getattr(T, dtype)), name)()


@pytest.mark.parametrize("name", ["erf", "lgamma", "erfinv", "sigmoid", "nan_to_num", "logit", "relu"])
@differential
def test_layouts_are_kept(T: Any, name: str) -> Any:
    base = T.linspace(0.1, 0.9, 24).reshape(2, 3, 4)
    return [getattr(x, name)() for x in (base.permute(2, 0, 1), base[:, ::2], base[:1].expand(3, 3, 4), base[0, 0, 0])]


@pytest.mark.parametrize(
    "expression",
    [
        "a + b",
        "a - b",
        "a * b",
        "a / b",
        "a ** b",
        "a.maximum(b)",
        "a.minimum(b)",
        "a.fmax(b)",
        "a.fmin(b)",
        "a.atan2(b)",
        "a.hypot(b)",
        "a.logaddexp(b)",
        "a.logaddexp2(b)",
        "a.xlogy(b)",
        "T.special.xlog1py(a, b)",
        "a.copysign(b)",
        "a.fmod(b)",
        "a.remainder(b)",
        "a.div(b, rounding_mode='floor')",
        "a.div(b, rounding_mode='trunc')",
        "a.ldexp(b)",
        "a.add(b, alpha=3)",
        "a.sub(b, alpha=3)",
        "T.rsub(a, b, alpha=2)",
        "1 - a + b",
        "2 / a * b",
        "2 ** a + b",
        "a ** 3 + b",
        "a.lerp(b, 0.3)",
        "a.lerp(b, 0.7)",
        "a.lerp(b, b)",
        "T.addcmul(a, b, b, value=0.5)",
        "T.addcdiv(a, b, b, value=0.5)",
        "a.clamp(0.6, 1.6) * b",
        "a.clamp(b, b + 1)",
        "a.clamp_min(b)",
        "a.clamp_max(1.0) * b",
        "a.float_power(b)",
        "a.nextafter(b)",
    ],
)
@differential(tolerance=1e-5)
def test_two_operands(T: Any, expression: str) -> Any:
    return _derivatives(
        T, lambda a, b: eval(expression, {"T": T, "a": a, "b": b}), [0.5, 1.7, 2.0, 3.1], [2.0, 0.4, 2.0, 1.2]
    )


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
@differential(tolerance=0.0)
def test_rounded_quotients(T: Any, mode: str, dtype: str) -> Any:
    a = T.tensor([7, -7, 7, -7, 0, 6], dtype=getattr(T, dtype))
    b = T.tensor([2, 2, -2, -2, 5, 3], dtype=getattr(T, dtype))
    return T.div(a, b, rounding_mode=mode), a // b, a % b, T.fmod(a, b), a // 4, a % -4


@differential
def test_errors_of_arithmetic(T: Any) -> Any:
    whole, truth, z = T.tensor([1, 2]), T.tensor([True, False]), T.tensor([1j, 2.0])
    return (
        outcome(lambda: whole // 0, "ZeroDivisionError"),
        outcome(lambda: whole % 0, "ZeroDivisionError"),
        outcome(lambda: truth - truth, "Subtraction, the `-` operator"),
        outcome(lambda: 1 - truth, "Subtraction, the `-` operator"),
        outcome(lambda: -truth, "Negation, the `-` operator"),
        outcome(lambda: ~T.tensor([1.0]), "~ (operator.invert) is only implemented on integer and Boolean"),
        outcome(lambda: whole**-1, "Integers to negative integer powers are not allowed"),
        outcome(lambda: z < z, "not implemented for 'ComplexFloat'"),
        outcome(lambda: z.maximum(z), "not implemented for complex tensors"),
        outcome(lambda: T.add(whole, whole, alpha=0.5), "argument alpha must not be a floating point number"),
        outcome(lambda: T.tensor([1.0]) & 1, "not implemented for 'Float'"),
        outcome(lambda: whole.clamp(), "At least one of 'min' or 'max' must not be None"),
        outcome(lambda: T.ones(3) + T.ones(2), "must match the size of tensor b (2) at non-singleton dimension 0"),
        outcome(lambda: T.div(whole, whole, rounding_mode="up"), "rounding_mode"),
    )


@differential
def test_operators_with_foreign_operands(T: Any) -> Any:
    x = T.tensor([1.0, 2.0])
    return (
        x == None,  # noqa: E711
        x != None,  # noqa: E711
        x == "a",
        outcome(lambda: x + "a"),
        outcome(lambda: x < None),
        outcome(lambda: None // x),
        x + numpy.ones(2),
        x.__eq__(None) is NotImplemented,
        x.__iadd__("a") is NotImplemented,
    )


@differential
def test_in_place_operators(T: Any) -> Any:
    results = []
    for change in ("x += y", "x -= y", "x *= y", "x /= y", "x //= y", "x %= y", "x **= 2", "x += 1", "x -= 2.5"):
        scope = {"x": T.tensor([5.0, 7.0]), "y": T.tensor([2.0, 3.0])}
        before = scope["x"]
        exec(change, scope)
        results.append((scope["x"], scope["x"] is before, before._version))
    for change in ("n &= 6", "n |= 1", "n ^= 3", "n <<= 1", "n >>= 1"):
        scope = {"n": T.tensor([5, 12])}
        exec(change, scope)
        results.append(scope["n"])
    return results


@differential(tolerance=0.0)
def test_bits_and_comparisons(T: Any) -> Any:
    n, m, x = T.tensor([1, -6, 12]), T.tensor([3, 2, -1]), T.tensor([1.0, NAN, 2.0])
    return (
        n & m,
        n | m,
        n ^ m,
        ~n,
        n << 2,
        n >> 1,
        1 << n.abs(),
        n.gcd(m),
        n.lcm(m),
        x == x,
        x != x,
        x < 1.5,
        x >= n,
        T.isclose(x, x),
        T.isclose(x, x, equal_nan=True),
        T.allclose(x, x),
        T.equal(n, n),
        T.equal(n, m[:2]),
        n.logical_xor(m),
        T.tensor([0.1], dtype=T.float16) == 0.1,
        T.tensor([0.1], dtype=T.bfloat16) < 0.1,
    )


@differential
def test_out_and_in_place_forms(T: Any) -> Any:
    x, y, out = T.tensor([0.3, 0.6]), T.tensor([2.0, 3.0]), T.zeros(2)
    return (
        T.exp(x, out=out),
        T.add(x, y, out=T.zeros(2)),
        T.clamp(x, max=0.5, out=T.zeros(2)),
        x.clone().sigmoid_(),
        x.clone().clamp_(0.4),
        x.clone().pow_(2),
        x.clone().lerp_(y, 0.5),
        x.clone().addcmul_(x, y),
        x.clone().eq_(x),
        x.clone().div_(y, rounding_mode="floor"),
        T.polygamma(1, x),
        x.polygamma(2),
        x.clone().relu_(),
        out,
    )


def test_erf_and_lgamma_are_accurate() -> None:
    """Few and many elements take different ways."""

    def scenario(T: Any, count: int) -> Any:
        x = T.linspace(-5, 5, count, dtype=T.float64)
        return x.erf(), x.erfc(), (x + 5.1).lgamma(), (x / 5.0001).erfinv(), x.float().erf()

    for count in (7, 1001):
        compare(scenario, count)
