"""Type promotion: which dtype a result has, and which in-place results are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome, supported
from tests.tensor.dtype_names import ALL, COMMON, FLOATS, REPRESENTATIVE, SIGNED

Binary = Callable[[Any, Any, Any], Any]

BINARY: dict[str, Binary] = {
    "add": lambda T, a, b: a + b,
    "sub": lambda T, a, b: a - b,
    "mul": lambda T, a, b: a * b,
    "truediv": lambda T, a, b: a / b,
    "floordiv": lambda T, a, b: a // b,
    "mod": lambda T, a, b: a % b,
    "pow": lambda T, a, b: a**b,
    "eq": lambda T, a, b: a == b,
    "lt": lambda T, a, b: a < b,
    "and": lambda T, a, b: a & b,
    "or": lambda T, a, b: a | b,
    "xor": lambda T, a, b: a ^ b,
    "lshift": lambda T, a, b: a << b,
    "rshift": lambda T, a, b: a >> b,
    "maximum": lambda T, a, b: T.maximum(a, b),
    "fmin": lambda T, a, b: T.fmin(a, b),
    "atan2": lambda T, a, b: T.atan2(a, b),
    "logical_and": lambda T, a, b: T.logical_and(a, b),
    "where": lambda T, a, b: T.where(T.tensor([True, False]), a, b),
    "cat": lambda T, a, b: T.cat([a, b]),
    "stack": lambda T, a, b: T.stack([a, b]),
    "remainder": lambda T, a, b: T.remainder(a, b),
    "fmod": lambda T, a, b: T.fmod(a, b),
    "div floor": lambda T, a, b: T.div(a, b, rounding_mode="floor"),
    "div trunc": lambda T, a, b: T.div(a, b, rounding_mode="trunc"),
    "hypot": lambda T, a, b: T.hypot(a, b),
    "copysign": lambda T, a, b: T.copysign(a, b),
    "gcd": lambda T, a, b: T.gcd(a, b),
    "addcmul": lambda T, a, b: T.addcmul(a, a, b),
    "lerp": lambda T, a, b: T.lerp(a, b, 0.5),
}


@differential
@pytest.mark.parametrize("left", COMMON)
@pytest.mark.parametrize("operation", BINARY)
def test_tensor_with_tensor(T: Any, operation: str, left: str) -> Any:
    a = T.tensor([1, 3]).to(getattr(T, left))
    return {
        right: supported(lambda r=right: BINARY[operation](T, a, T.tensor([2, 1]).to(getattr(T, r))))
        for right in COMMON
    }


@differential
@pytest.mark.parametrize("left", REPRESENTATIVE)
@pytest.mark.parametrize(
    "operation", ["add", "mul", "truediv", "pow", "floordiv", "eq", "and", "maximum", "where", "atan2"]
)
def test_tensor_with_zero_dim_tensor(T: Any, operation: str, left: str) -> Any:
    vector, scalar = T.tensor([1, 3]).to(getattr(T, left)), T.tensor(3).to(getattr(T, left))
    observed = {}
    for right in REPRESENTATIVE:
        other_scalar = T.tensor(2).to(getattr(T, right))
        observed[f"vector, {right} scalar"] = supported(lambda b=other_scalar: BINARY[operation](T, vector, b))
        observed[f"{right} scalar, vector"] = supported(lambda b=other_scalar: BINARY[operation](T, b, vector))
        observed[f"scalar, {right} scalar"] = supported(lambda b=other_scalar: BINARY[operation](T, scalar, b))
    return observed


NUMBERS: dict[str, Any] = {"bool": True, "int": 2, "float": 2.5, "complex": 1 + 1j, "negative": -3}
WITH_NUMBERS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "eq",
    "lt",
    "and",
    "or",
    "lshift",
    "where",
    "remainder",
    "fmod",
]


@differential
@pytest.mark.parametrize("name", COMMON)
@pytest.mark.parametrize("operation", WITH_NUMBERS)
def test_tensor_with_number(T: Any, operation: str, name: str) -> Any:
    vector, scalar = T.tensor([1, 3]).to(getattr(T, name)), T.tensor(3).to(getattr(T, name))
    observed = {}
    for kind, number in NUMBERS.items():
        if kind == "negative" and operation in ("lshift", "pow"):
            continue  # undefined shifts and integer powers have their own test
        observed[f"vector, {kind}"] = supported(lambda n=number: BINARY[operation](T, vector, n))
        observed[f"scalar, {kind}"] = supported(lambda n=number: BINARY[operation](T, scalar, n))
        observed[f"{kind}, vector"] = supported(lambda n=number: BINARY[operation](T, n, vector))
    return observed


INPLACE: dict[str, Binary] = {
    "add_": lambda T, a, b: a.add_(b),
    "mul_": lambda T, a, b: a.mul_(b),
    "div_": lambda T, a, b: a.div_(b),
    "sub_": lambda T, a, b: a.sub_(b),
    "pow_": lambda T, a, b: a.pow_(b),
    "floor_divide_": lambda T, a, b: a.floor_divide_(b),
    "copy_": lambda T, a, b: a.copy_(b),
    "eq_": lambda T, a, b: a.eq_(b),
    "logical_and_": lambda T, a, b: a.logical_and_(b),
    "bitwise_and_": lambda T, a, b: a.bitwise_and_(b),
}


@differential
@pytest.mark.parametrize("left", COMMON)
@pytest.mark.parametrize("operation", INPLACE)
def test_in_place_results_must_fit(T: Any, operation: str, left: str) -> Any:
    def run(right: str) -> Any:
        tensor = T.tensor([1, 3]).to(getattr(T, left))
        return supported(lambda: INPLACE[operation](T, tensor, T.tensor([2, 1]).to(getattr(T, right))))

    return {right: run(right) for right in COMMON}


@differential
@pytest.mark.parametrize(
    ("left", "right"),
    [("int64", "float32"), ("bool", "int64"), ("float32", "complex64"), ("uint8", "float64"), ("bool", "float32")],
)
def test_words_of_the_in_place_error(T: Any, left: str, right: str) -> Any:
    tensor, other = T.ones(2, dtype=getattr(T, left)), T.ones(2, dtype=getattr(T, right))
    names = {
        "int64": "Long",
        "float32": "Float",
        "bool": "Bool",
        "complex64": "ComplexFloat",
        "uint8": "Byte",
        "float64": "Double",
    }
    phrase = f"result type {names[right]} can't be cast to the desired output type {names[left]}"
    return (
        outcome(lambda: tensor.add_(other), phrase),
        outcome(lambda: T.add(tensor, other, out=tensor), phrase),
        tensor,
    )


@differential
@pytest.mark.parametrize("name", COMMON)
def test_in_place_with_numbers(T: Any, name: str) -> Any:
    def run(method: str, number: Any) -> Any:
        tensor = T.tensor([1, 3]).to(getattr(T, name))
        return supported(lambda: getattr(tensor, method)(number))

    return {
        f"{method} {kind}": run(method, number)
        for method in ("add_", "mul_", "div_", "sub_", "fill_")
        for kind, number in NUMBERS.items()
        if not (kind == "negative" and name == "uint8")
    }


UNARY_TO_FLOAT = [
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "rsqrt",
    "reciprocal",
    "atan",
    "erf",
    "log1p",
    "expm1",
]
UNARY_SAME = [
    "neg",
    "abs",
    "square",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "relu",
    "positive",
    "sgn",
    "bitwise_not",
    "clone",
]
REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "argmax",
    "all",
    "any",
    "cumsum",
    "cumprod",
    "std",
    "var",
    "median",
    "logsumexp",
    "nansum",
]


@differential
@pytest.mark.parametrize("name", COMMON)
@pytest.mark.parametrize(
    "operation", UNARY_TO_FLOAT + UNARY_SAME + ["isnan", "isfinite", "logical_not", "angle", "frac"]
)
def test_unary_results(T: Any, operation: str, name: str) -> Any:
    return supported(lambda: getattr(T, operation)(T.tensor([1, 2]).to(getattr(T, name))))


@differential
@pytest.mark.parametrize("name", COMMON)
@pytest.mark.parametrize("operation", REDUCTIONS)
def test_reduction_results(T: Any, operation: str, name: str) -> Any:
    tensor = T.tensor([1, 2, 3]).to(getattr(T, name))
    needs_dim = operation in ("cumsum", "cumprod", "logsumexp")
    return supported(lambda: getattr(T, operation)(tensor, 0) if needs_dim else getattr(T, operation)(tensor))


@differential
@pytest.mark.parametrize("operation", ["sum", "prod", "cumsum", "mean", "softmax"])
@pytest.mark.parametrize("name", ["bool", "int32", "float16", "float32"])
def test_reductions_with_a_chosen_dtype(T: Any, name: str, operation: str) -> Any:
    tensor = T.tensor([1, 0, 1]).to(getattr(T, name))
    return {
        target: supported(lambda t=target: getattr(T, operation)(tensor, 0, dtype=getattr(T, t)))
        for target in ("int64", "float32", "float64", "complex64")
    }


# --- values -----------------------------------------------------------------------------------------------------


@differential
@pytest.mark.parametrize("name", ["uint8", *SIGNED])
def test_integer_overflow_wraps(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    info = T.iinfo(dtype)
    largest, smallest = T.tensor([info.max], dtype=dtype), T.tensor([info.min], dtype=dtype)
    return {
        "add": largest + 1,
        "sub": smallest - 1,
        "mul": largest * 2,
        "neg": -smallest,
        "abs": smallest.abs(),
        "square": largest.square(),
        "pow": T.tensor([3], dtype=dtype) ** 50,
        "sum": T.cat([largest, largest]).sum(),
        "in place": largest.clone().add_(1),
        "shift": T.tensor([1], dtype=dtype) << 7,
        "tensor": largest + largest,
        "prod": T.cat([largest, largest]).prod(),
        "cumsum": T.cat([largest, largest]).cumsum(0),
    }


@differential
def test_bool_arithmetic(T: Any) -> Any:
    a, b = T.tensor([True, True, False, False]), T.tensor([True, False, True, False])
    return {
        "add": a + b,
        "mul": a * b,
        "div": a.float() / 2,
        "sub": outcome(lambda: a - b, "Subtraction, the `-` operator, with two bool tensors is not supported"),
        "sub number": outcome(lambda: a - True, "Subtraction, the `-` operator"),
        "rsub": outcome(lambda: 1 - a, "Subtraction, the `-` operator, with a bool tensor is not supported"),
        "neg": outcome(lambda: -a, "Negation, the `-` operator, on a bool tensor is not supported"),
        "not": ~a,
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "sum": a.sum(),
        "add int": a + 1,
        "mul float": a * 0.5,
        "comparison": a > b,
        "max": a.max(),
        "cumsum": a.cumsum(0),
        "int power": a**2,
    }


@differential
@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64", "float16"])
def test_kinds_of_division(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    a = T.tensor([7, -7, 7, -7, 6, 0]).to(dtype)
    b = T.tensor([2, 2, -2, -2, 3, 5]).to(dtype)
    return {
        "true": a / b,
        "floor": a // b,
        "mod": a % b,
        "fmod": T.fmod(a, b),
        "remainder": T.remainder(a, b),
        "trunc": T.div(a, b, rounding_mode="trunc"),
        "floor mode": T.div(a, b, rounding_mode="floor"),
        "none mode": T.div(a, b, rounding_mode=None),
        "number": (a / 2, a // 2, a % 2, 7 // b, 7 % b, 7 / b),
        "negative number": (a // -2, a % -2, T.fmod(a, -2)),
        "true_divide": T.true_divide(a, b),
        "floor_divide": T.floor_divide(a, b),
        "wrong mode": outcome(lambda: T.div(a, b, rounding_mode="up"), "rounding_mode"),
    }


@differential(tolerance=0.0)
@pytest.mark.parametrize("name", FLOATS)
def test_division_by_zero_of_floats(T: Any, name: str) -> Any:
    a = T.tensor([1.0, -1.0, 0.0, float("inf"), float("nan")]).to(getattr(T, name))
    zero = T.zeros(5, dtype=getattr(T, name))
    return {
        "true": a / zero,
        "negative zero": a / -zero,
        "floor": a // zero,
        "mod": a % zero,
        "fmod": T.fmod(a, zero),
        "trunc": T.div(a, zero, rounding_mode="trunc"),
        "infinite": (a // float("inf"), a % float("inf")),
        "power": a**0,
    }


@differential
def test_division_by_zero_of_integers(T: Any) -> Any:
    a, zero = T.tensor([1, -1, 0]), T.zeros(3, dtype=T.int64)
    return {
        "true": a / zero,
        "floor": outcome(lambda: a // zero, "ZeroDivisionError"),
        "mod": outcome(lambda: a % zero, "ZeroDivisionError"),
        "fmod": outcome(lambda: T.fmod(a, zero), "ZeroDivisionError"),
        "number": outcome(lambda: a // 0, "ZeroDivisionError"),
    }


@differential
def test_integer_powers(T: Any) -> Any:
    a = T.tensor([-2, -1, 0, 1, 2])
    phrase = "Integers to negative integer powers are not allowed"
    return {
        "square": a**2,
        "zero": a**0,
        "tensor": a ** T.tensor([0, 1, 2, 3, 4]),
        "float exponent": a.abs() ** 0.5,
        "negative": outcome(lambda: a**-1, phrase),
        "negative tensor": T.tensor([1, -1, 2]) ** T.tensor([-1, -1, -2]),
        "number base": 2 ** T.tensor([0, 1, 10]),
        "float base": 2.0 ** T.tensor([-1, 1]),
        "float": T.tensor([-8.0, 4.0]) ** (1 / 3),
    }


@differential
def test_comparison_results_are_bool(T: Any) -> Any:
    a = T.tensor([1.0, float("nan"), 3.0])
    b = T.tensor([1, 2, 2])
    return a == b, a != b, a < b, a <= b, a > b, a >= b, a == 1, b.__gt__(2), b == 1.5, a == a, T.tensor(1) == True  # noqa: E712


@differential
def test_comparisons_with_other_objects(T: Any) -> Any:
    a = T.ones(2)
    return {
        "none": outcome(lambda: a == None),  # noqa: E711
        "not none": outcome(lambda: a != None),  # noqa: E711
        "text": outcome(lambda: a == "x"),
        "less than text": outcome(lambda: a < "x"),
        "list": outcome(lambda: a == [1, 1]),
    }


@differential
def test_numbers_too_large_for_the_dtype(T: Any) -> Any:
    return {
        "uint8 add": outcome(lambda: T.ones(1, dtype=T.uint8) + 300),
        "int8 mul": outcome(lambda: T.ones(1, dtype=T.int8) * 1000),
        "int64": outcome(lambda: T.ones(1, dtype=T.int64) + 2**70),
        "float32": T.ones(1) * 1e39,
        "float16": T.ones(1, dtype=T.float16) * 70000,
        "comparison": outcome(lambda: T.ones(1, dtype=T.uint8) < 300),
    }


@differential
@pytest.mark.parametrize("name", ALL)
def test_same_dtype_addition_keeps_the_dtype(T: Any, name: str) -> Any:
    tensor = T.ones(2, dtype=getattr(T, name))
    return supported(lambda: tensor + tensor)


@differential
def test_gradients_have_the_dtype_of_their_tensor(T: Any) -> Any:
    single, double = T.ones(2, requires_grad=True), T.ones(2, dtype=T.float64, requires_grad=True)
    half = T.ones((), dtype=T.float16, requires_grad=True)
    (single * double * half).sum().backward()
    return single.grad, double.grad, half.grad


@differential
def test_matmul_refuses_mixed_dtypes(T: Any) -> Any:
    single, double = T.ones(2, 2), T.ones(2, 2, dtype=T.float64)
    return {
        "matmul": outcome(lambda: single @ double, "expected m1 and m2 to have the same dtype"),
        "dot": outcome(lambda: T.dot(single[0], double[0]), ""),
        "int": T.ones(2, 2, dtype=T.int64) @ T.ones(2, 2, dtype=T.int64),
        "bool": outcome(lambda: T.ones(2, 2, dtype=T.bool) @ T.ones(2, 2, dtype=T.bool)),
    }
