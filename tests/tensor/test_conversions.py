"""From tensors to Python and NumPy and back: numbers, lists, copies, pickles, `to`."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.support.differential import differential, outcome
from tests.tensor.dtype_names import ALL, COMMON

# --- numbers ----------------------------------------------------------------------------------------------------


@differential(tolerance=0.0)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("name", ALL)
def test_item_of_one_element(T: Any, name: str, shape: tuple[int, ...]) -> Any:
    tensor = T.full(shape, 1, dtype=getattr(T, name))
    value = tensor.item()
    return (
        value,
        type(value),
        bool(tensor),
        outcome(lambda: int(tensor)),
        outcome(lambda: float(tensor)),
        complex(tensor),
    )


@differential(tolerance=0.0)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_item_widens_exactly(T: Any, name: str) -> Any:
    values = [0.1, 1 / 3, 1e-4, 65504.0, -0.0, float("inf"), float("nan")]
    return [T.tensor(value, dtype=getattr(T, name)).item() for value in values]


ONE_ELEMENT_ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda T, x: x.item(),
    "int": lambda T, x: int(x),
    "float": lambda T, x: float(x),
    "complex": lambda T, x: complex(x),
    "bool": lambda T, x: bool(x),
    "index": lambda T, x: operator.index(x),
    "math": lambda T, x: math.sqrt(x),
    "format": lambda T, x: f"{x:.2f}",
    "if": lambda T, x: 1 if x else 0,
    "not": lambda T, x: not x,
    "range": lambda T, x: list(range(x)),
    "round": lambda T, x: round(x),
    "trunc": lambda T, x: math.trunc(x),
    "list index": lambda T, x: [10, 20, 30][x],
}


@differential
@pytest.mark.parametrize(
    "case", ["two", "none", "one float", "one int", "zero-dim int", "zero-dim bool", "zero-dim complex", "one row"]
)
@pytest.mark.parametrize("name", ONE_ELEMENT_ERRORS)
def test_conversions_to_numbers(T: Any, name: str, case: str) -> Any:
    tensor = {
        "two": lambda: T.ones(2),
        "none": lambda: T.ones(0),
        "one float": lambda: T.tensor([2.5]),
        "one int": lambda: T.tensor([2]),
        "zero-dim int": lambda: T.tensor(2),
        "zero-dim bool": lambda: T.tensor(True),
        "zero-dim complex": lambda: T.tensor(1 + 2j),
        "one row": lambda: T.ones(1, 1, dtype=T.int64),
    }[case]()
    return outcome(lambda: ONE_ELEMENT_ERRORS[name](T, tensor))


@differential
def test_words_of_the_conversion_errors(T: Any) -> Any:
    return (
        outcome(lambda: T.ones(2).item(), "a Tensor with 2 elements cannot be converted to Scalar"),
        outcome(lambda: T.ones(0).item(), "a Tensor with 0 elements cannot be converted to Scalar"),
        outcome(lambda: bool(T.ones(2)), "Boolean value of Tensor with more than one value is ambiguous"),
        outcome(lambda: bool(T.ones(0)), "Boolean value of Tensor with no values is ambiguous"),
        outcome(lambda: int(T.ones(2)), "only one element tensors can be converted to Python scalars"),
        outcome(
            lambda: operator.index(T.ones(1)), "only integer tensors of a single element can be converted to an index"
        ),
        outcome(lambda: float(T.tensor(1j)), "value cannot be converted to type double without overflow"),
    )


@differential
def test_numbers_of_special_values(T: Any) -> Any:
    return {
        "int of nan": outcome(lambda: int(T.tensor(float("nan")))),
        "int of inf": outcome(lambda: int(T.tensor(float("inf")))),
        "bool of nan": bool(T.tensor(float("nan"))),
        "bool of negative zero": bool(T.tensor(-0.0)),
        "int truncates": int(T.tensor(-2.9)),
        "math.isnan": math.isnan(T.tensor(float("nan"))),
        "max": max(T.tensor([1, 5, 3])),
        "sum": sum(T.tensor([1, 2])),
        "sorted": sorted(T.tensor([3, 1, 2])),
        "abs": abs(T.tensor(-2.0)),
        "divmod": outcome(lambda: divmod(T.tensor(7), 2)),
        "round": outcome(lambda: round(T.tensor([1.26, 2.5]), 1)),
        "floor": math.floor(T.tensor(2.5)),
        "ceil": math.ceil(T.tensor(2.5)),
        "pos": +T.tensor([1]),
        "invert": ~T.tensor([5]),
        "int of large": int(T.tensor(2**62)),
        "requires grad": (float(T.tensor(1.5, requires_grad=True)), T.tensor(1.5, requires_grad=True).tolist()),
    }


# --- lists and iteration ----------------------------------------------------------------------------------------


@differential(tolerance=0.0)
@pytest.mark.parametrize("name", ALL)
def test_tolist(T: Any, name: str) -> Any:
    tensor = T.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(T, name))
    scalar = tensor[0, 1].tolist()
    return tensor.tolist(), tensor.t().tolist(), scalar, type(scalar), tensor[:0].tolist(), tensor[:, :0].tolist()


@differential
def test_iteration(T: Any) -> Any:
    matrix = T.arange(6.0).view(2, 3)
    rows = list(matrix)
    rows[0][0] = 9  # rows are views
    first, second = matrix
    return {
        "rows": rows,
        "matrix": matrix,
        "unpacked": (first, second),
        "reversed": list(reversed(matrix)),
        "enumerate": [(number, row.sum()) for number, row in enumerate(matrix)],
        "zip": [a + b for a, b in zip(matrix, matrix, strict=True)],
        "numbers": [value.item() for value in matrix[0]],
        "empty": list(T.zeros(0, 3)),
        "of recorded": [row.grad_fn.name() for row in T.ones(2, requires_grad=True) * 2],
        "len": (len(matrix), len(T.zeros(0)), len(matrix.t())),
        "star": [*T.arange(3)],
        "map": list(map(int, T.arange(3))),
    }


@differential
def test_contains(T: Any) -> Any:
    nan = float("nan")
    tensor = T.tensor([1.0, 2.0, nan])
    return (
        1 in tensor,
        3 in tensor,
        T.tensor(2.0) in tensor,
        nan in tensor,
        True in T.tensor([1, 0]),
        T.tensor([1.0, 2.0, 3.0]) in T.ones(2, 3),
        outcome(lambda: "a" in tensor, "Tensor.__contains__ only supports Tensor or scalar"),
        outcome(lambda: None in tensor, "Tensor.__contains__ only supports Tensor or scalar"),
        outcome(lambda: [1] in tensor, "Tensor.__contains__ only supports Tensor or scalar"),
    )


@differential
def test_hash_is_identity(T: Any) -> Any:
    a, b = T.ones(2), T.ones(2)
    return (
        hash(a) == hash(a),
        hash(a) == hash(b),
        len({a, b, a}),
        {a: 1}[a],
        b in {a: 1},
        len({id(view) for view in (a, a.view(2), a.detach())}),
    )


@differential
@pytest.mark.parametrize("specification", ["", ".2f", "5.1e", "d", "g", ">10", "x"])
@pytest.mark.parametrize("case", ["float", "int", "vector", "one", "bool"])
def test_format(T: Any, case: str, specification: str) -> Any:
    values = {"float": 3.14159, "int": 42, "vector": [1.5, 2.0], "one": [2.5], "bool": True}
    tensor = T.tensor(values[case])
    return outcome(lambda: format(tensor, specification))


# --- copies and pickles -----------------------------------------------------------------------------------------


@differential
def test_shallow_copy_shares_memory(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    leaf.grad = T.ones(2)
    shallow = copy.copy(leaf)
    return shallow, shallow is leaf, shallow.data_ptr() == leaf.data_ptr(), shallow.grad is None


@differential
@pytest.mark.parametrize("name", ALL)
def test_deep_copy_copies(T: Any, name: str) -> Any:
    tensor = T.arange(6).view(2, 3).to(getattr(T, name)).t()
    deep = copy.deepcopy(tensor)
    tensor.zero_()
    return deep, deep.stride(), deep.data_ptr() == tensor.data_ptr()


@differential
def test_deep_copy_of_recorded_tensors(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    leaf.grad = T.full((2,), 3.0)
    leaf.note = "kept"
    deep = copy.deepcopy(leaf)
    pair = copy.deepcopy([leaf, leaf])
    return {
        "leaf": deep,
        "grad": deep.grad,
        "grad is new": deep.grad is not leaf.grad,
        "attribute": getattr(deep, "note", None),
        "shared": pair[0] is pair[1],
        "result": outcome(lambda: copy.deepcopy(leaf * 2), "Only Tensors created explicitly by the user"),
    }


@differential
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", COMMON)  # PyTorch cannot load its own pickles of the others
def test_pickle_round_trip(T: Any, name: str, protocol: int) -> Any:
    tensor = T.arange(6).view(2, 3).to(getattr(T, name))
    loaded = pickle.loads(pickle.dumps(tensor.t(), protocol))
    return loaded, loaded.stride(), type(loaded)


@differential
def test_pickle_of_particular_tensors(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    leaf.grad = T.ones(2)
    tensors = {
        "leaf": leaf,
        "zero-dim": T.tensor(3),
        "empty": T.zeros(0, 3),
        "view": T.arange(10)[2:4],
        "expanded": T.ones(1).expand(4),
        "special": T.tensor([float("nan"), -0.0]),
    }
    loaded = pickle.loads(pickle.dumps(tensors))
    return (
        loaded,
        loaded["leaf"].grad is None,
        loaded["view"].storage_offset(),
        outcome(lambda: pickle.loads(pickle.dumps(leaf * 2))),
    )


# --- to and type ------------------------------------------------------------------------------------------------

TO_FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda T, x: x.to(),
    "dtype": lambda T, x: x.to(T.float64),
    "same dtype": lambda T, x: x.to(T.float32),
    "dtype keyword": lambda T, x: x.to(dtype=T.int64),
    "device text": lambda T, x: x.to("cpu"),
    "device": lambda T, x: x.to(T.device("cpu")),
    "device keyword": lambda T, x: x.to(device="cpu"),
    "both": lambda T, x: x.to("cpu", T.float16),
    "both keywords": lambda T, x: x.to(device="cpu", dtype=T.int32),
    "other": lambda T, x: x.to(T.ones(1, dtype=T.float64)),
    "other same": lambda T, x: x.to(T.ones(1)),
    "copy": lambda T, x: x.to(T.float32, copy=True),
    "copy device": lambda T, x: x.to("cpu", copy=True),
    "non_blocking": lambda T, x: x.to("cpu", T.float32, True),
    "non_blocking copy": lambda T, x: x.to("cpu", T.float32, False, True),
    "memory format": lambda T, x: x.to(T.float64, memory_format=T.contiguous_format),
    "meta": lambda T, x: x.to("meta"),
    "type_as": lambda T, x: x.type_as(T.ones(1, dtype=T.int64)),
    "type_as same": lambda T, x: x.type_as(T.ones(1)),
    "type dtype": lambda T, x: x.type(T.float64),
    "type text": lambda T, x: x.type("torch.DoubleTensor"),
    "type class": lambda T, x: x.type(T.LongTensor),
    "type same": lambda T, x: x.type("torch.FloatTensor"),
    "type of tensors": lambda T, x: x.int().type(T.Tensor),
    "cpu": lambda T, x: x.cpu(),
    "none dtype": lambda T, x: x.to("cpu", None),
    "none device": lambda T, x: x.to(device=None, dtype=T.float64),
    "error text": lambda T, x: x.to("float32"),
    "error type": lambda T, x: x.type("DoubleTensor"),
    "error builtin": lambda T, x: x.to(int),
    "error number": lambda T, x: x.to(1.5),
    "error keyword": lambda T, x: x.to(kind=T.float32),
    "error two dtypes": lambda T, x: x.to(T.float32, T.float64),
    "error list": lambda T, x: x.to([T.float32]),
    "builtin float": lambda T, x: x.to(float),
}


@differential
@pytest.mark.parametrize("name", TO_FORMS)
def test_forms_of_to(T: Any, name: str) -> Any:
    tensor = T.arange(6.0).view(2, 3).t()
    observed = outcome(lambda: TO_FORMS[name](T, tensor))
    if observed[0] == "error":
        return observed
    return observed, observed[1] is tensor


@differential
def test_to_is_recorded(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    cast = leaf.to(T.float64)
    (cast * 3).sum().backward()
    return cast, leaf.grad, leaf.to(T.float32) is leaf, leaf.to(T.float32, copy=True)


@differential
@pytest.mark.parametrize("name", ALL)
def test_type_names(T: Any, name: str) -> Any:
    tensor = T.zeros(1, dtype=getattr(T, name))
    return tensor.type(), tensor.dtype, type(tensor).__name__, T.is_tensor(tensor), isinstance(tensor, T.Tensor)


@differential
def test_is_tensor(T: Any) -> Any:
    return (
        T.is_tensor(T.ones(1)),
        T.is_tensor([1]),
        T.is_tensor(numpy.ones(1)),
        T.is_storage(T.ones(1).untyped_storage()),
    )


# --- NumPy ------------------------------------------------------------------------------------------------------


@differential
def test_array_protocol(T: Any) -> Any:
    tensor = T.arange(6.0).view(2, 3)
    shared = numpy.asarray(tensor)
    shared[0, 0] = 9
    return {
        "asarray": shared,
        "shares": tensor,
        "array": numpy.array(tensor),
        "dtype": numpy.asarray(tensor, dtype=numpy.float64),
        "__array__": tensor.__array__(),
        "__array__ dtype": tensor.__array__(numpy.int64),
        "strides": numpy.asarray(tensor.t()).strides,
        "scalar": numpy.asarray(T.tensor(3)),
        "list": numpy.array([T.tensor(1.0), T.tensor(2.0)]),
        "bool": numpy.asarray(T.tensor([True])),
        "empty": numpy.asarray(T.zeros(0, 2)),
    }


@differential
def test_numpy_functions_on_tensors(T: Any) -> Any:
    tensor = T.tensor([1.0, 4.0, 9.0])
    return {
        "sqrt": numpy.sqrt(tensor),
        "type of sqrt": type(numpy.sqrt(tensor)),
        "sum": numpy.sum(tensor.numpy()),
        "mean of array": numpy.mean(numpy.asarray(tensor)),
        "isnan": numpy.isnan(tensor),
        "allclose": numpy.allclose(tensor, [1, 4, 9]),
        "concatenate": numpy.concatenate([tensor, tensor]),
        "array_equal": numpy.array_equal(tensor, tensor),
    }


@differential
def test_arithmetic_with_numpy(T: Any) -> Any:
    tensor, array = T.tensor([1.0, 2.0]), numpy.array([3.0, 4.0], numpy.float32)
    return {
        "tensor + array": outcome(lambda: tensor + array),
        "tensor * array": outcome(lambda: tensor * array),
        "tensor + numpy scalar": tensor + numpy.float32(1.5),
        "tensor + numpy double": tensor + numpy.float64(1.5),
        "tensor * numpy int": tensor * numpy.int64(2),
        "int tensor * numpy float": T.tensor([1, 2]) * numpy.float64(1.5),
        "numpy double * tensor": numpy.float64(2.0) * tensor,
        "numpy single * tensor": numpy.float32(2.0) * tensor,
        "comparison": tensor > numpy.float64(1.5),
        "array == tensor": outcome(lambda: tensor == array),
    }


@differential
def test_dlpack(T: Any) -> Any:
    array = numpy.arange(3.0)
    tensor = T.from_dlpack(array)
    tensor[0] = 5
    back = numpy.from_dlpack(T.arange(3))
    return tensor, array, back, [int(each) for each in tensor.__dlpack_device__()]  # PyTorch's are enumerations


# --- attributes that users touch --------------------------------------------------------------------------------


@differential
def test_attributes(T: Any) -> Any:
    tensor = T.ones(2, 3)
    tensor.note = [1, 2]
    return {
        "note": tensor.note,
        "missing": outcome(lambda: tensor.nothing, "has no attribute 'nothing'"),
        "grad": tensor.grad,
        "names": tensor.ndim,
        "shape": outcome(lambda: setattr(tensor, "shape", (3, 2))),
        "dtype": outcome(lambda: setattr(tensor, "dtype", T.float64)),
        "device": outcome(lambda: setattr(tensor, "device", "cpu")),
        "output_nr": tensor.output_nr,
        "is_leaf": tensor.is_leaf,
        "retains_grad": tensor.retains_grad,
        "itemsize": tensor.itemsize,
        "is_inference": tensor.is_inference(),
        "is_conj": tensor.is_conj(),
        "is_neg": tensor.is_neg(),
        "is_shared": tensor.is_shared(),
        "is_pinned": tensor.is_pinned(),
    }


@differential
def test_equality_functions(T: Any) -> Any:
    a, b = T.tensor([1.0, 2.0]), T.tensor([1.0, 2.0 + 1e-9])
    nan = T.tensor([float("nan")])
    return {
        "equal": T.equal(a, a.clone()),
        "equal shape": T.equal(a, T.ones(3)),
        "equal dtype": outcome(lambda: T.equal(a, a.double())),
        "allclose": T.allclose(a, b),
        "allclose nan": (T.allclose(nan, nan), T.allclose(nan, nan, equal_nan=True)),
        "isclose": T.isclose(a, T.tensor([1.1, 2.0])),
        "same size": a.is_same_size(b),
        "allclose dtype": outcome(lambda: T.allclose(a, a.double()), ""),
    }


@differential
def test_data_keeps_the_subclass(T: Any) -> Any:
    class Own(T.Tensor):  # type: ignore[misc, name-defined]
        pass

    class OwnParameter(T.nn.Parameter):  # type: ignore[misc, name-defined]
        pass

    own = T.ones(2).as_subclass(Own)
    return (
        type(own.data).__name__,
        own.data.data_ptr() == own.data_ptr(),
        type(T.nn.Parameter(T.ones(2)).data).__name__,
        type(OwnParameter(T.ones(2)).data).__name__,
    )


@differential
def test_float64_to_float16_is_rounded_as_the_processor_has_it(T: Any) -> Any:
    """Halfway between two numbers, and a little beside it: to be rounded once, or by way of float32."""
    values = [1 + 2**-11 + 2**-40, 1 + 3 * 2**-11 - 2**-40, 1e300]
    results = []
    for count in (1, 20, 4000):
        double = T.tensor(values * count, dtype=T.float64)
        results += [
            double.half()[:3],
            T.zeros(len(double), dtype=T.float16).copy_(double)[:3],
            double.reshape(-1, 3).t().half(),
        ]
    results += [T.tensor(values[:2], dtype=T.float16), T.full((2,), values[0], dtype=T.float16)]
    return results, T.zeros(2, dtype=T.float16).fill_(values[1])
