"""Factory functions: what they fill in, with which dtype, device, strides and `requires_grad`."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from tests.support.differential import differential, outcome, supported
from tests.support.oracle import ON_X86
from tests.tensor.dtype_names import ALL, COMMON, FLOATS

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 2, 3, 2)]


@differential
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("factory", ["zeros", "ones"])
def test_constant_factories(T: Any, factory: str, shape: tuple[int, ...]) -> Any:
    make = getattr(T, factory)
    return make(shape), make(list(shape)), make(size=shape), make(*shape) if shape else None


@differential
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("factory", ["zeros", "ones"])
def test_constant_factories_with_dtype(T: Any, factory: str, name: str) -> Any:
    return getattr(T, factory)(2, 2, dtype=getattr(T, name))


@differential
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_empty_has_shape_and_strides(T: Any, shape: tuple[int, ...]) -> Any:
    tensor = T.empty(shape)
    strided = T.empty_strided((2, 3), (1, 2), dtype=T.int32)
    permuted = T.empty_permuted((2, 3, 4), (0, 2, 1))
    return (
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        strided.stride(),
        strided.dtype,
        permuted.shape,
        permuted.stride(),
    )


@differential
@pytest.mark.parametrize("value", [True, 3, -2.5, 1 + 2j, float("inf")], ids=str)
def test_full_infers_its_dtype_from_the_value(T: Any, value: Any) -> Any:
    return T.full((2, 2), value), T.full((), value), T.full((0,), value), T.full([2], fill_value=value)


@differential
@pytest.mark.parametrize("name", COMMON)
def test_full_with_dtype(T: Any, name: str) -> Any:
    return T.full((2,), 3, dtype=getattr(T, name)), T.full((2,), 1.5, dtype=getattr(T, name))


@differential
def test_full_from_tensor_and_out(T: Any) -> Any:
    out = T.empty(2, dtype=T.float64)
    return T.full((2,), T.tensor(4.0)), T.full((2,), 7, out=out), out, T.full((2,), 1.0, requires_grad=True)


@differential
@pytest.mark.parametrize(
    "arguments",
    [
        (5,),
        (0,),
        (2, 7),
        (2, 7, 2),
        (7, 2, -2),
        (0.0, 1.0, 0.25),
        (1.5,),
        (1, 2.5, 0.5),
        (-3, 3),
        (3, 3),
        (0, 1, 0.1),
        (5, 0, -1),
        (1.0, 10, 3),
        (0, 10**6, 250_000),
    ],
    ids=str,
)
def test_arange(T: Any, arguments: tuple[Any, ...]) -> Any:
    return T.arange(*arguments)


@differential
@pytest.mark.parametrize("name", ["uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"])
def test_arange_with_dtype(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    return (
        T.arange(4, dtype=dtype),
        T.arange(1, 10, 3, dtype=dtype),
        # PyTorch divides by the step in the dtype, and on x86-64 a division by zero ends the process.
        None if ON_X86 and not dtype.is_floating_point else outcome(lambda: T.arange(0, 2.5, 0.5, dtype=dtype)),
    )


@differential
def test_arange_keywords_and_errors(T: Any) -> Any:
    return {
        "keywords": T.arange(start=1, end=4, step=2),
        "end": T.arange(end=3),
        "grad": T.arange(3.0, requires_grad=True),
        "zero step": outcome(lambda: T.arange(0, 5, 0), "step must be nonzero"),
        "wrong way": outcome(lambda: T.arange(5, 0), "upper bound and lower bound inconsistent with step sign"),
        "wrong way up": outcome(lambda: T.arange(0, 5, -1), "upper bound and lower bound inconsistent with step sign"),
        "infinite": outcome(lambda: T.arange(0, float("inf")), "unsupported range"),
        "nan": outcome(lambda: T.arange(float("nan")), "unsupported range"),
        "nothing": outcome(lambda: T.arange()),
        "int grad": outcome(lambda: T.arange(3, requires_grad=True), "floating point"),
        "range": T.range(1, 4),
    }


@differential
@pytest.mark.parametrize(
    "arguments",
    [(0, 1, 5), (0, 1, 1), (0, 1, 0), (3, -3, 4), (2, 2, 3), (0, 10, 11), (-1.5, 2.5, 7), (0, 1e4, 3)],
    ids=str,
)
@pytest.mark.parametrize("name", FLOATS)
def test_linspace(T: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    return T.linspace(*arguments, dtype=getattr(T, name))


@pytest.mark.skipif(ON_X86, reason="compared bit for bit with PyTorch on ARM alone")
@differential(tolerance=0.0)
@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("ends", [(0.01, 20), (0, 1), (-3.3, 7.7), (1e-300, 1e-290), (0, 1e38)], ids=str)
def test_bits_of_linspace(T: Any, name: str, ends: tuple[float, float]) -> Any:
    return [T.linspace(*ends, steps, dtype=getattr(T, name)) for steps in (2, 7, 100, 1001)]


@differential
def test_linspace_of_the_largest_numbers(T: Any) -> Any:
    return T.linspace(0, 1e308, 7, dtype=T.float64), T.zeros(20, dtype=T.float64).uniform_(-8e307, 8e307)


@differential
def test_linspace_of_integers_and_errors(T: Any) -> Any:
    return {
        "int": T.linspace(0, 10, 5, dtype=T.int64),
        "tensors": T.linspace(T.tensor(0.0), T.tensor(1.0), 3),
        "complex": T.linspace(0, 1 + 1j, 3),
        "keywords": T.linspace(start=0, end=1, steps=2),
        "negative": outcome(lambda: T.linspace(0, 1, -1), "number of steps must be non-negative"),
        "no steps": outcome(lambda: T.linspace(0, 1)),
        "grad": T.linspace(0, 1, 2, requires_grad=True),
    }


@differential(tolerance=1e-5)
def test_logspace(T: Any) -> Any:
    return {
        "default": T.logspace(0, 3, 4),
        "base": T.logspace(0, 4, 5, base=2),
        "double": T.logspace(-2, 2, 5, dtype=T.float64),
        "one": T.logspace(1, 5, 1),
        "none": T.logspace(0, 1, 0),
        "negative": outcome(lambda: T.logspace(0, 1, -1), "number of steps must be non-negative"),
    }


@differential
@pytest.mark.parametrize("arguments", [(0,), (1,), (3,), (2, 3), (3, 2), (0, 3)], ids=str)
@pytest.mark.parametrize("name", ["bool", "int64", "float16", "float32", "complex64"])
def test_eye(T: Any, name: str, arguments: tuple[int, ...]) -> Any:
    return T.eye(*arguments, dtype=getattr(T, name))


@differential
def test_eye_errors(T: Any) -> Any:
    return (
        outcome(lambda: T.eye(-1), "must be greater or equal to 0"),
        outcome(lambda: T.eye(2, -3)),
        outcome(lambda: T.eye()),
    )


_TRIANGLES = [
    (3, 3), (3, 3, 1), (3, 3, -1), (4, 2), (2, 4, -2), (0, 3), (2, 3, 5), (5, 3, -2), (3, 5, 2), (3, 4, -9), (3, 0),
]  # fmt: skip


@differential
@pytest.mark.parametrize("arguments", _TRIANGLES, ids=str)
def test_triangle_indices(T: Any, arguments: tuple[int, ...]) -> Any:
    return T.tril_indices(*arguments), T.triu_indices(*arguments), T.tril_indices(*arguments, dtype=T.int32)


@differential
def test_the_few_elements_of_a_triangle_in_a_large_matrix(T: Any) -> Any:
    return T.triu_indices(10**15, 3), T.tril_indices(10**15, 3, 1 - 10**15), T.tril_indices(2, 10**15)


# --- tensor and as_tensor ---------------------------------------------------------------------------------------

DATA: dict[str, Any] = {
    "int": 3,
    "float": 2.5,
    "bool": True,
    "complex": 1 + 2j,
    "list": [1, 2, 3],
    "nested": [[1, 2], [3, 4]],
    "mixed int float": [1, 2.5],
    "mixed bool int": [True, 2],
    "mixed bool float": [True, 2.5],
    "mixed float complex": [1.0, 2j],
    "empty": [],
    "nested empty": [[], []],
    "tuple": (1.0, 2.0),
    "tuple of lists": ([1], [2]),
    "range": range(4),
    "numpy array": numpy.arange(4, dtype=numpy.int16),
    "numpy float16": numpy.ones((2, 1), numpy.float16),
    "numpy scalar": numpy.float32(1.5),
    "numpy int scalar": numpy.int8(3),
    "numpy bool": numpy.array([True, False]),
    "numpy zero-dim": numpy.array(5.0),
    "list of numpy scalars": [numpy.float32(1), numpy.float32(2)],
    "list of arrays": [numpy.ones(2), numpy.zeros(2)],
    "numpy strided": numpy.arange(6).reshape(2, 3).T,
    "large int": 2**40,
    "special": [float("nan"), float("inf"), -0.0],
    "deep": [[[1.0]], [[2.0]]],
}


@differential(tolerance=0.0)
@pytest.mark.parametrize("data", DATA)
def test_tensor_infers_shape_and_dtype(T: Any, data: str) -> Any:
    return T.tensor(DATA[data]), T.as_tensor(DATA[data]), T.asarray(DATA[data])


@differential
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("data", ["int", "nested", "mixed int float", "empty", "numpy array", "bool"])
def test_tensor_with_dtype(T: Any, data: str, name: str) -> Any:
    return outcome(lambda: T.tensor(DATA[data], dtype=getattr(T, name)))


@differential
def test_tensor_of_tensors(T: Any) -> Any:
    scalars = [T.tensor(1.0), T.tensor(2.0)]
    return {
        "scalars": T.tensor(scalars),
        "nested": T.tensor([[T.tensor(1), T.tensor(2)], [3, 4]]),
        "one-element": outcome(lambda: T.tensor([T.tensor([1]), T.tensor([2])])),
        "copy": T.tensor(T.ones(2)),
        "of a recorded": T.tensor(T.ones(2, requires_grad=True) * 2),
        "rows": outcome(lambda: T.tensor([T.ones(2), T.ones(2)]), "only one element tensors can be converted"),
    }


@differential
@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        ([[1], [2, 3]], "expected sequence of length 1 at dim 1 (got 2)"),
        ([[1, 2], 3], "not a sequence"),
        ([1, [2]], ""),
        ("text", "new(): invalid data type 'str'"),
        (["a"], "too many dimensions 'str'"),
        (None, "Could not infer dtype of NoneType"),
        ([None], "Could not infer dtype of NoneType"),
        ({"a": 1}, "Could not infer dtype of dict"),
        ({1}, "Could not infer dtype of set"),
        (Ellipsis, "Could not infer dtype of ellipsis"),
        ([2**70], ""),
        ([1j, "x"], ""),
    ],
    ids=str,
)
def test_tensor_refuses(T: Any, data: Any, phrase: str) -> Any:
    return outcome(lambda: T.tensor(data), phrase)


@differential
def test_tensor_argument_errors(T: Any) -> Any:
    return {
        "int grad": outcome(
            lambda: T.tensor([1], requires_grad=True), "nly Tensors of floating point and complex dtype can"
        ),
        "two data": outcome(lambda: T.tensor(1, 2)),
        "no data": outcome(lambda: T.tensor()),
        "dtype string": outcome(lambda: T.tensor([1], dtype="float32"), "dtype"),
        "device": outcome(lambda: T.tensor([1], device="nowhere"), "Expected one of cpu"),
        "unknown": outcome(lambda: T.tensor([1], shape=(1,)), "shape"),
        "complex to float": outcome(lambda: T.tensor([1j], dtype=T.float32)),
    }


@differential
def test_tensor_copies_and_as_tensor_shares(T: Any) -> Any:
    array = numpy.zeros(3, numpy.float32)
    tensor = T.zeros(3)
    copied, shared, kept, cast = (
        T.tensor(array),
        T.as_tensor(array),
        T.as_tensor(tensor),
        T.as_tensor(array, dtype=T.float64),
    )
    array[0] = 5
    return {
        "copied": copied,
        "shared": shared,
        "cast": cast,
        "same tensor": kept is tensor,
        "same dtype": T.as_tensor(tensor, dtype=T.float32) is tensor,
        "recorded": T.as_tensor(T.ones(2, requires_grad=True)).requires_grad,
        "asarray copy": T.asarray(tensor, copy=True) is tensor,
    }


@differential
def test_scalar_tensor(T: Any) -> Any:
    return T.scalar_tensor(3), T.scalar_tensor(3, dtype=T.int64), T.scalar_tensor(2.5, requires_grad=True)


@differential
@pytest.mark.parametrize(
    "numpy_dtype",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
    ],
)
def test_from_numpy(T: Any, numpy_dtype: str) -> Any:
    array = numpy.array([[0, 1, 2], [3, 4, 5]], dtype=numpy_dtype)
    tensor = T.from_numpy(array.T)
    array[0, 0] = 1
    return tensor, tensor.numpy()


@differential
def test_from_numpy_errors(T: Any) -> Any:
    return {
        "list": outcome(lambda: T.from_numpy([1, 2]), "expected np.ndarray (got list)"),
        "strings": outcome(lambda: T.from_numpy(numpy.array(["a"])), "can't convert np.ndarray of type numpy.str_"),
        "objects": outcome(lambda: T.from_numpy(numpy.array([None])), "can't convert np.ndarray of type numpy.object_"),
        "negative stride": outcome(lambda: T.from_numpy(numpy.arange(3)[::-1]), "negative"),
        "copied": T.from_numpy(numpy.arange(3)[::-1].copy()),
        "big endian": outcome(lambda: T.from_numpy(numpy.arange(3, dtype=">i4")), "byte order"),
    }


@differential
def test_frombuffer(T: Any) -> Any:
    buffer = bytearray(range(8))
    tensor = T.frombuffer(buffer, dtype=T.uint8)
    buffer[0] = 99
    return (
        tensor,
        T.frombuffer(buffer, dtype=T.int16, count=2, offset=2),
        outcome(lambda: T.frombuffer(b"", dtype=T.uint8)),
    )


# --- like and new -----------------------------------------------------------------------------------------------


def like_functions(T: Any) -> dict[str, Any]:
    return {
        "zeros": T.zeros_like,
        "ones": T.ones_like,
        "full": lambda tensor, **options: T.full_like(tensor, 3, **options),
    }


@differential
@pytest.mark.parametrize("kind", ["zeros", "ones", "full"])
@pytest.mark.parametrize("name", COMMON)
def test_like_factories(T: Any, kind: str, name: str) -> Any:
    like = like_functions(T)[kind]
    tensor = T.zeros(2, 3, dtype=getattr(T, name))
    return (
        like(tensor),
        like(tensor, dtype=T.float64),
        like(T.zeros(2, 3, requires_grad=True)),
        like(tensor, device="meta"),
    )


@differential
def test_like_factories_preserve_dense_strides(T: Any) -> Any:
    dense = T.zeros(2, 3, 4, 5)
    sources = {
        "transposed": dense.transpose(1, 2),
        "permuted": dense.permute(3, 0, 2, 1),
        "channels last": dense.contiguous(memory_format=T.channels_last),
        "sliced": dense[:, ::2],
        "expanded": T.zeros(3, 1).expand(3, 4),
        "zero-dim": T.zeros(()),
        "empty": T.zeros(0, 3).t(),
    }
    return {
        name: (
            T.zeros_like(source),
            T.empty_like(source).stride(),
            T.ones_like(source, memory_format=T.contiguous_format),
            T.rand_like(source).stride(),
            T.rand_like(source, memory_format=T.contiguous_format).stride(),
        )
        for name, source in sources.items()
    }


@differential
def test_like_factories_with_grad_and_errors(T: Any) -> Any:
    tensor = T.ones(2)
    return {
        "grad": T.ones_like(tensor, requires_grad=True),
        "list": outcome(lambda: T.ones_like([1, 2]), "ones_like"),
        "number": outcome(lambda: T.zeros_like(3), "zeros_like"),
        "full without value": outcome(lambda: T.full_like(tensor)),
        "full grad int": outcome(lambda: T.full_like(tensor, 1, dtype=T.int32, requires_grad=True)),
    }


@differential
@pytest.mark.parametrize("name", COMMON)
def test_new_factories(T: Any, name: str) -> Any:
    tensor = T.zeros(1, dtype=getattr(T, name))
    return {
        "zeros": tensor.new_zeros(2, 3),
        "zeros tuple": tensor.new_zeros((2, 3)),
        "ones": tensor.new_ones(2, dtype=T.int64),
        "full": tensor.new_full((2,), 1),
        "empty": tensor.new_empty(2, 3).stride(),
        "empty strided": tensor.new_empty_strided((2, 3), (1, 2)).stride(),
        "tensor": tensor.new_tensor([0, 1]),
        "tensor float": tensor.new_tensor([1.5]),
        "tensor of another": tensor.new_tensor(T.tensor([1.0, 0.0], dtype=T.float64)),
        "tensor of an array": tensor.new_tensor(numpy.array([1, 0], numpy.int16)),
        "grad": supported(lambda: tensor.new_zeros(2, requires_grad=True)),
        "meta": tensor.new_zeros(2, device="meta"),
    }


@differential
def test_new_of_a_recorded_tensor(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    return leaf.new_zeros(1), leaf.new_tensor([1.0], requires_grad=True), leaf.new_full((1,), 2.0), leaf.new(2).shape


@differential
@pytest.mark.parametrize("name", FLOATS)
def test_requires_grad_argument(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    with T.no_grad():
        inside = T.ones(2, dtype=dtype, requires_grad=True)
    return inside, T.zeros(2, dtype=dtype, requires_grad=True), T.tensor([1.0], dtype=dtype, requires_grad=True)


@differential
@pytest.mark.parametrize("name", ["bool", "uint8", "int64"])
def test_only_floats_require_grad(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    phrase = "floating point and complex dtype can require gradients"
    return (
        outcome(lambda: T.zeros(2, dtype=dtype, requires_grad=True), phrase),
        outcome(lambda: T.tensor([1], dtype=dtype, requires_grad=True), phrase),
        outcome(lambda: T.zeros(2, dtype=dtype).requires_grad_(), "only Tensors of floating point"),
    )


@differential
def test_factory_argument_errors(T: Any) -> Any:
    return {
        "negative": outcome(lambda: T.zeros(-1), "must be non-negative"),
        "float size": outcome(lambda: T.zeros(2.5)),
        "string": outcome(lambda: T.zeros("2")),
        "none": outcome(lambda: T.zeros(None)),
        "nothing": outcome(lambda: T.zeros()),
        "mixed": outcome(lambda: T.zeros((2,), 3)),
        "unknown keyword": outcome(lambda: T.zeros(2, colour=1)),
        "dtype": outcome(lambda: T.zeros(2, dtype="int")),
        "bool size": outcome(lambda: T.zeros(True).shape),
        "tensor size": T.zeros(T.tensor(2), T.tensor(3)),
        "numpy size": T.zeros(numpy.int64(2), 3),
        "numpy sizes": T.zeros((numpy.int32(2), numpy.int64(1))),
        "empty_strided lengths": outcome(lambda: T.empty_strided((2, 3), (1,))),
        "too large": outcome(lambda: T.empty(2**62, 2**10)),
    }


@differential
def test_out_argument_of_factories(T: Any) -> Any:
    out = T.empty(2, 3)
    same = T.zeros(2, 3, out=out)
    wrong_dtype = outcome(lambda: T.zeros(2, 3, dtype=T.int64, out=out))
    resized = T.ones(4, out=T.empty(0))
    return (
        same is out,
        out,
        wrong_dtype,
        resized,
        T.arange(3, out=T.empty(3)),
        T.eye(2, out=T.empty(2, 2, dtype=T.int32)),
    )


# --- legacy constructors ----------------------------------------------------------------------------------------

LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


@differential
@pytest.mark.parametrize("constructor", LEGACY)
def test_legacy_constructors(T: Any, constructor: str) -> Any:
    make = getattr(T, constructor)
    tensor = T.zeros(2, dtype=getattr(T, LEGACY[constructor]))
    return {
        "sizes": (make(5, 7).shape, make(5, 7).dtype),
        "size": make(T.Size((2, 3))).shape,
        "one size": make(3).shape,
        "none": make(),
        "data": make([1, 0]),
        "nested": make([[1, 0], [0, 1]]),
        "tuple": make((1, 0)),
        "array": make(numpy.array([1, 0])),
        "isinstance": isinstance(tensor, make),
        "not an instance": isinstance(T.zeros(1, dtype=T.complex64), make),
        "name": make.__name__,
        "shares": make(tensor).data_ptr() == tensor.data_ptr(),
    }


@differential
def test_legacy_tensor(T: Any) -> Any:
    return {
        "sizes": (T.Tensor(2, 3).shape, T.Tensor(2, 3).dtype),
        "data": T.Tensor([1, 2]),
        "none": T.Tensor(),
        "size object": T.Tensor(T.Size((2, 1))).shape,
        "tensor": T.Tensor(T.ones(2)),
        "keyword": outcome(lambda: T.Tensor([1.0], dtype=T.float32), "dtype"),
        "wrong dtype": outcome(lambda: T.Tensor(T.ones(2, dtype=T.int64))),
        "float size": outcome(lambda: T.Tensor(2.5)),
        "string": outcome(lambda: T.Tensor("ab")),
        "wrong type": outcome(lambda: T.LongTensor(T.ones(2))),
        "fractions": outcome(lambda: T.LongTensor([1.5])),
    }


@differential
def test_complex_and_polar(T: Any) -> Any:
    real, imaginary = T.tensor([1.0, 2.0]), T.tensor([3.0, -4.0])
    return {
        "complex": T.complex(real, imaginary),
        "double": T.complex(real.double(), imaginary.double()),
        "polar": T.polar(real, imaginary),
        "mixed": outcome(lambda: T.complex(real, imaginary.double()), "Expected object of scalar type"),
        "int": outcome(lambda: T.complex(real.long(), imaginary.long()), "Expected both inputs to be"),
    }


@differential
def test_grids_and_diagonals(T: Any) -> Any:
    left, right = T.arange(3), T.arange(2)
    return {
        "ij": T.meshgrid(left, right, indexing="ij"),
        "xy": T.meshgrid(left, right, indexing="xy"),
        "product": T.cartesian_prod(left, right),
        "diag": T.diag(left),
        "diag 1": T.diag(T.ones(2, 3), 1),
        "diag_embed": T.diag_embed(T.ones(2, 2), offset=1),
        "vander": T.vander(left),
        "block": T.block_diag(T.ones(1, 2), T.ones(2, 1)),
    }
