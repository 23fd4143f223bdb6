"""dtypes: attributes, numeric limits, the promotion tables, the default dtype, casts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tests.support.differential import differential, outcome
from tests.tensor.dtype_names import ALL, COMMON, COMPLEXES, FLOAT8, FLOATS, INTEGERS, SIGNED, UNSIGNED

ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


@differential
@pytest.mark.parametrize("name", ALL)
def test_attributes(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    return (
        repr(dtype),
        str(dtype),
        f"{dtype}",
        dtype.itemsize,
        dtype.is_floating_point,
        dtype.is_complex,
        dtype.is_signed,
        dtype.to_real() if name not in ("bool", *INTEGERS) else None,
        isinstance(dtype, T.dtype),
        type(dtype).__name__,
        dtype == dtype,
        dtype == name,
        {dtype: 1}[getattr(T, name)],
    )


@differential
@pytest.mark.parametrize("name", ALL)
def test_complex_counterpart(T: Any, name: str) -> Any:
    return outcome(lambda: getattr(T, name).to_complex())


@differential
@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_the_same_object(T: Any, alias: str) -> Any:
    return getattr(T, alias) is getattr(T, ALIASES[alias]), repr(getattr(T, alias))


@differential
@pytest.mark.parametrize("name", ALL)
def test_copies_and_pickles_are_the_same_object(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    return copy.copy(dtype) is dtype, copy.deepcopy(dtype) is dtype, pickle.loads(pickle.dumps(dtype)) is dtype


@differential
def test_dtypes_cannot_be_called(T: Any) -> Any:
    return outcome(lambda: T.float32(3), "not callable")


@differential
@pytest.mark.parametrize("name", [*FLOAT8, *FLOATS])
def test_finfo(T: Any, name: str) -> Any:
    info = T.finfo(getattr(T, name))
    fields = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")
    # As text, so that no tolerance hides a difference in the smallest numbers.
    return {field: repr(getattr(info, field)) for field in fields} | {"repr": repr(info)}


@differential
@pytest.mark.parametrize("name", ["complex32", *COMPLEXES])
def test_finfo_of_a_complex_dtype_is_that_of_its_parts(T: Any, name: str) -> Any:
    info = T.finfo(getattr(T, name))
    return info.bits, repr(info.eps), repr(info.max), repr(info.tiny), info.dtype


@differential
@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(T: Any, name: str) -> Any:
    info = T.iinfo(getattr(T, name))
    return info.bits, info.max, info.min, info.dtype, repr(info)


@differential
def test_infos_refuse_the_other_kind(T: Any) -> Any:
    return {
        "finfo int": outcome(lambda: T.finfo(T.int32), "floating point"),
        "finfo bool": outcome(lambda: T.finfo(T.bool), "floating point"),
        "iinfo float": outcome(lambda: T.iinfo(T.float32), "requires an integer input type"),
        "iinfo bool": outcome(lambda: T.iinfo(T.bool), "bool"),
        "iinfo complex": outcome(lambda: T.iinfo(T.complex64), "requires an integer input type"),
        "iinfo string": outcome(lambda: T.iinfo("int32")),
    }


@differential
def test_finfo_of_the_default_dtype(T: Any) -> Any:
    return repr(T.finfo())


@differential
@pytest.mark.parametrize("left", ALL)
def test_promote_types(T: Any, left: str) -> Any:
    return {right: outcome(lambda r=right: T.promote_types(getattr(T, left), getattr(T, r))) for right in ALL}


@differential
@pytest.mark.parametrize("left", ALL)
def test_can_cast(T: Any, left: str) -> Any:
    return {right: T.can_cast(getattr(T, left), getattr(T, right)) for right in ALL}


@differential
@pytest.mark.parametrize("left_shape", [(2,), ()], ids=["dimensioned", "zero-dim"])
@pytest.mark.parametrize("left", ALL)
def test_result_type_of_tensor_with_tensor(T: Any, left: str, left_shape: tuple[int, ...]) -> Any:
    tensor = T.empty(left_shape, dtype=getattr(T, left))
    results = {}
    for right in ALL:
        for shape in ((2,), ()):
            other = T.empty(shape, dtype=getattr(T, right))
            results[f"{right} {shape}"] = outcome(lambda o=other: T.result_type(tensor, o))
    return results


@differential
@pytest.mark.parametrize("shape", [(2,), ()], ids=["dimensioned", "zero-dim"])
@pytest.mark.parametrize("name", ALL)
def test_result_type_of_tensor_with_number(T: Any, name: str, shape: tuple[int, ...]) -> Any:
    tensor = T.empty(shape, dtype=getattr(T, name))
    numbers = (True, 1, 1.0, 1j)
    return [
        (outcome(lambda n=n: T.result_type(tensor, n)), outcome(lambda n=n: T.result_type(n, tensor))) for n in numbers
    ]


@differential
def test_result_type_of_numbers(T: Any) -> Any:
    numbers = (True, 1, 1.0, 1j)
    return [[T.result_type(left, right) for right in numbers] for left in numbers]


@differential
def test_tables_refuse_wrong_arguments(T: Any) -> Any:
    return {
        "promote string": outcome(lambda: T.promote_types("float32", T.int8)),
        "promote one": outcome(lambda: T.promote_types(T.int8)),
        "can_cast tensor": outcome(lambda: T.can_cast(T.ones(1), T.int8)),
    }


@differential
@pytest.mark.parametrize("name", FLOATS)
def test_default_dtype_decides_what_python_numbers_become(T: Any, name: str) -> Any:
    before = T.get_default_dtype()
    try:
        T.set_default_dtype(getattr(T, name))
        return {
            "default": T.get_default_dtype(),
            "tensor": T.tensor(1.5),
            "list": T.tensor([1.5, 2.0]),
            # PyTorch knows no complex counterpart of bfloat16; Flambeau takes complex64.
            "complex": T.tensor(1j).dtype if name != "bfloat16" else None,
            "int": T.tensor(1).dtype,
            "bool": T.tensor(True).dtype,
            "zeros": T.zeros(2).dtype,
            "arange": T.arange(0.0, 1.0, 0.5).dtype,
            "int arange": T.arange(3).dtype,
            "division": (T.ones(1, dtype=T.int64) / 2).dtype,
            "sqrt": T.ones(1, dtype=T.int32).sqrt().dtype,
            "with float": (T.ones(1, dtype=T.int32) * 1.5).dtype,
            "result_type": T.result_type(1.0, 1),
            "eye": T.eye(2).dtype,
            "Tensor": T.Tensor([1.0]).dtype if name in ("float32", "float64") else None,
        }
    finally:
        T.set_default_dtype(before)


@differential
def test_default_dtype_must_be_a_float(T: Any) -> Any:
    return {
        "int": outcome(lambda: T.set_default_dtype(T.int64), "only floating-point types are supported"),
        "complex": outcome(lambda: T.set_default_dtype(T.complex64), "only floating-point types are supported"),
        "string": outcome(lambda: T.set_default_dtype("float32")),
        "kept": T.get_default_dtype(),
    }


@differential
@pytest.mark.parametrize("name", ALL)
def test_predicates_of_tensors(T: Any, name: str) -> Any:
    tensor = T.empty(1, dtype=getattr(T, name))
    return (
        tensor.is_floating_point(),
        T.is_floating_point(tensor),
        tensor.is_complex(),
        T.is_complex(tensor),
        tensor.is_signed(),
        tensor.element_size(),
        tensor.itemsize,
        tensor.type(),
    )


@differential(tolerance=0.0)
@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("source", COMMON)
def test_casts_within_range(T: Any, source: str, target: str) -> Any:
    values = T.tensor([0, 1, 2, 100, 127]).to(getattr(T, source))
    return values.to(getattr(T, target))


@differential(tolerance=0.0)
@pytest.mark.parametrize("target", ["bool", *INTEGERS])
@pytest.mark.parametrize("source", INTEGERS)
def test_casts_between_integers_wrap(T: Any, source: str, target: str) -> Any:
    info = T.iinfo(getattr(T, source))
    values = T.tensor([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype=getattr(T, source))
    return values.to(getattr(T, target))


@differential(tolerance=0.0)
@pytest.mark.parametrize("target", ["bool", *SIGNED, "uint8"])
@pytest.mark.parametrize("source", FLOATS)
def test_casts_of_floats_truncate_towards_zero(T: Any, source: str, target: str) -> Any:
    smallest = 0.0 if target == "uint8" else -2.75
    values = T.tensor([smallest, -0.5, -0.0, 0.5, 0.999, 1.0, 2.5, 99.9]).to(getattr(T, source))
    return values.to(getattr(T, target))


@differential
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_casts_of_floats_without_an_integer_give_some_integer(T: Any, source: str, target: str) -> Any:
    values = T.tensor([float("nan"), float("inf"), -float("inf"), -1.5, 1e30], dtype=getattr(T, source))
    result = values.to(getattr(T, target))  # the values are the processor's choice
    return result.dtype, result.shape, [type(value) for value in result.tolist()]


@differential(tolerance=0.0)
@pytest.mark.parametrize("target", ["bool", *FLOATS, *COMPLEXES])
@pytest.mark.parametrize("source", FLOATS)
def test_casts_of_special_floats(T: Any, source: str, target: str) -> Any:
    nan, inf = float("nan"), float("inf")
    values = T.tensor([nan, inf, -inf, -0.0, 65504.0, 65520.0, 3.0e38, 1e-8, 1e-40], dtype=T.float64)
    return values.to(getattr(T, source)).to(getattr(T, target))


@differential(tolerance=0.0)
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32"])
def test_casts_to_narrower_floats_round_to_even(T: Any, target: str) -> Any:
    values = T.tensor(
        [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 0.1]
    )
    exact = T.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-8, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 2**24 + 1.0], dtype=T.float64)
    return values.to(getattr(T, target)), exact.to(getattr(T, target))


@differential(tolerance=0.0)
@pytest.mark.parametrize("target", ["bool", "float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("source", COMPLEXES)
def test_casts_of_complex_drop_the_imaginary_part(T: Any, source: str, target: str) -> Any:
    values = T.tensor([1 + 2j, 0j, 0 + 1j, -3.5 - 1j], dtype=getattr(T, source))
    return values.to(getattr(T, target))


@differential
@pytest.mark.parametrize("name", ["bool", *UNSIGNED, *SIGNED])
def test_python_integers_out_of_range(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    numbers = (-1, 255, 256, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64)
    return {number: outcome(lambda n=number: T.tensor([n], dtype=dtype)) for number in numbers}


@differential
@pytest.mark.parametrize("name", FLOATS)
def test_python_integers_as_floats(T: Any, name: str) -> Any:
    return T.tensor([2**24 + 1, -3, 10**4, True], dtype=getattr(T, name))


@differential
@pytest.mark.parametrize("name", [*SIGNED, "uint8", "bool"])
def test_fractions_given_to_an_integer_dtype(T: Any, name: str) -> Any:
    return T.tensor([2.9, 0.5, 100.1], dtype=getattr(T, name))


@differential
@pytest.mark.parametrize(
    "method",
    ["half", "bfloat16", "float", "double", "byte", "char", "short", "int", "long", "bool", "cfloat", "cdouble"],
)
@pytest.mark.parametrize("source", ["bool", "int16", "float32", "complex64"])
def test_cast_methods(T: Any, source: str, method: str) -> Any:
    tensor = T.tensor([[0, 1], [2, 3]]).to(getattr(T, source)).t()
    result = getattr(tensor, method)()
    return result, result is tensor, result.data_ptr() == tensor.data_ptr()


@differential
@pytest.mark.parametrize("target", ["float64", "bfloat16", "complex64"])
def test_casts_are_differentiable(T: Any, target: str) -> Any:
    leaf = T.tensor([1.0, 2.0], requires_grad=True)
    result = leaf.to(getattr(T, target))
    result.sum().abs().backward()
    return result, leaf.grad


@differential
def test_casts_to_integers_cut_the_graph(T: Any) -> Any:
    leaf = T.tensor([1.5, 2.5], requires_grad=True)
    return leaf.to(T.int64), leaf.bool(), leaf.long()
