"""Memory shared with other libraries: DLPack, the protocols of NumPy and CUDA, and names that the Array API needs."""

from __future__ import annotations

import gc
from typing import Any

import numpy
import pytest
import torch as pytorch

import flambeau

from ..support.differential import differential, outcome

NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
    "float8_e5m2fnuz",
]  # fmt: skip


def example(T: Any, name: str) -> Any:
    return T.tensor([[0.0, 1.0, 2.0], [4.0, 0.5, 1.0]]).to(getattr(T, name))


def as_bytes(tensor: Any) -> bytes:
    return bytes(tensor.contiguous().untyped_storage().tolist())


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_both_ways_with_pytorch(name: str, max_version: Any) -> None:
    for source, target in ((pytorch, flambeau), (flambeau, pytorch)):
        tensor = example(source, name).t()
        capsule = tensor.__dlpack__(max_version=max_version)
        assert ("versioned" in repr(capsule)) == (max_version is not None)
        for taken in (target.from_dlpack(capsule), target.from_dlpack(tensor)):
            assert str(taken.dtype) == str(tensor.dtype)
            assert tuple(taken.shape) == tuple(tensor.shape)
            assert taken.stride() == tensor.stride()
            assert taken.data_ptr() == tensor.data_ptr()
            assert as_bytes(taken) == as_bytes(tensor)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 3), (3, 1)])
def test_shapes(shape: tuple[int, ...]) -> None:
    for source, target in ((pytorch, flambeau), (flambeau, pytorch), (flambeau, flambeau)):
        taken = target.from_dlpack(source.ones(shape))
        assert tuple(taken.shape) == shape
        assert taken.tolist() == source.ones(shape).tolist()


@differential
def test_windows_and_expansions(T: Any) -> Any:
    base = T.arange(12.0).view(3, 4)
    window, wide = T.from_dlpack(base[1:, ::2]), T.from_dlpack(T.ones(1).expand(3))
    base[2, 2] = -1
    window[0, 0] = -2
    return window, wide.stride(), base, window.storage_offset(), window._is_view(), window.requires_grad


def test_the_memory_lives_as_long_as_its_users() -> None:
    for source, target in ((flambeau, pytorch), (pytorch, flambeau), (flambeau, flambeau)):
        taken = target.from_dlpack(source.full((1000,), 7.0))
        unused = source.ones(1000).__dlpack__()
        gc.collect()
        assert taken.tolist() == [7.0] * 1000
        del unused


@differential
def test_memory_of_capsules_can_be_written(T: Any) -> Any:
    results = []
    for version in (None, (1, 0)):
        for take in (T.from_dlpack, T.asarray):
            x = T.arange(6.0).reshape(2, 3)
            taken = take(x.t().__dlpack__(max_version=version))
            taken[0] = 9
            results += [x, taken.stride(), take(T.empty(0, 3).__dlpack__(max_version=version)).shape]
    return results


@differential
def test_capsules_are_used_once(T: Any) -> Any:
    results = []
    for version in (None, (1, 0), (0, 8), (2, 5)):
        capsule = T.arange(3).__dlpack__(max_version=version)
        first = T.from_dlpack(capsule)
        results += [first, outcome(lambda capsule=capsule: T.from_dlpack(capsule), "consumed only once")]
    return results, [outcome(lambda x=x: T.from_dlpack(x), "invalid capsule") for x in (3, [1], None)]


@differential
def test_arguments(T: Any) -> Any:
    x = T.arange(3.0)
    return {
        "device": [int(each) for each in x.__dlpack_device__()],
        "device kind": x.__dlpack_device__()[0].name,
        "stream": [outcome(lambda stream=stream: x.__dlpack__(stream=stream) is None) for stream in (None, -1, 1, "a")],
        "positional": outcome(lambda: x.__dlpack__(1)),
        "same device": T.from_dlpack(x.__dlpack__(dl_device=(1, 0))),
        "copy": T.from_dlpack(x.__dlpack__(copy=True)).data_ptr() == x.data_ptr(),
        "no copy": T.from_dlpack(x.__dlpack__(copy=False)).data_ptr() == x.data_ptr(),
        "from, copy": [T.from_dlpack(x, copy=copy).data_ptr() == x.data_ptr() for copy in (None, True, False)],
        "from, device": T.from_dlpack(x, device="cpu"),
        "from, meta": outcome(lambda: T.from_dlpack(x, device="meta"), "Cannot pack tensors on meta"),
        "from, cuda": outcome(lambda: T.from_dlpack(x, device="cuda"), "not compiled with CUDA"),
        "meta": outcome(lambda: T.ones(1, device="meta").__dlpack__(), "Cannot pack tensors on meta"),
        "meta device": outcome(lambda: T.ones(1, device="meta").__dlpack_device__(), "Unknown device type meta"),
        "gradient": outcome(lambda: T.ones(1, requires_grad=True).__dlpack__(), "require gradient"),
        "from, gradient": outcome(lambda: T.from_dlpack(T.ones(1, requires_grad=True)), "require gradient"),
        "function, gradient": T.from_dlpack(T.to_dlpack(T.ones(1, requires_grad=True))),
        "no tensor": outcome(lambda: T.to_dlpack(3)),
        "same functions": T.utils.dlpack.to_dlpack is T.to_dlpack and T.utils.dlpack.from_dlpack is T.from_dlpack,
        "kinds": {each.name: int(each) for each in T.utils.dlpack.DLDeviceType},
    }


@differential
def test_with_numpy(T: Any) -> Any:
    array = numpy.arange(6.0).reshape(2, 3)
    tensor = T.from_dlpack(array)
    tensor[0, 0] = 9
    return {
        "in": tensor,
        "shared": array,
        "transposed": T.from_dlpack(array.T).stride(),
        "bool": T.from_dlpack(numpy.array([True])),
        "copy": T.from_dlpack(array, copy=True).data_ptr() == tensor.data_ptr(),
        "out": numpy.from_dlpack(T.arange(3)),
        "out, transposed": numpy.from_dlpack(T.ones(2, 3).t()).strides,
        "asarray": T.asarray(array),
        "bfloat16": outcome(lambda: numpy.from_dlpack(T.ones(1, dtype=T.bfloat16)), "Unsupported dtype"),
        "strings": outcome(lambda: T.from_dlpack(numpy.array(["a"]))),
        "byte order": outcome(lambda: T.from_dlpack(numpy.arange(3, dtype=">i4"))),
    }


def test_better_than_pytorch() -> None:
    with pytest.raises(ValueError, match="negative"):  # PyTorch ends the process
        flambeau.from_dlpack(numpy.arange(3.0)[::-1])
    array = numpy.arange(3.0)
    array.flags.writeable = False
    tensor = flambeau.from_dlpack(array)
    with pytest.raises((RuntimeError, ValueError), match="read-only"):  # PyTorch writes to it
        tensor[0] = 1
    for change in (lambda: tensor.add_(1), lambda: tensor.mul_(tensor.clone()), lambda: tensor.exp_()):
        with pytest.raises(ValueError, match="read-only"):
            change()
    assert array[0] == 0
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        flambeau.ones(1).__dlpack__(dl_device=(2, 0))


def test_libraries_with_the_first_version_of_the_protocol() -> None:
    class Old:
        def __init__(self) -> None:
            self.array = numpy.arange(3.0)

        def __dlpack__(self, stream: Any = None) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    old = Old()
    shared, copied = flambeau.from_dlpack(old), flambeau.from_dlpack(old, copy=True)
    old.array[0] = 5
    assert (shared.tolist(), copied.tolist()) == ([5, 1, 2], [0, 1, 2])

    class Elsewhere(Old):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 8, 0

    with pytest.raises(BufferError, match="kind 8"):
        flambeau.from_dlpack(Elsewhere())


@differential
def test_other_protocols(T: Any) -> Any:
    x = T.ones(2)
    return {
        "cuda": [
            outcome(lambda y=y: y.__cuda_array_interface__, "on non-CUDA tensor type: torch.FloatTensor")
            for y in (x, T.ones(1, requires_grad=True))
        ],
        "present": [
            hasattr(x, f"__{name}__")
            for name in ("array_interface", "cuda_array_interface", "array_namespace", "array_function", "array_ufunc")
        ],
        "buffer": outcome(lambda: memoryview(x)),
        "memory of the array": bytes(memoryview(x.numpy())),
        "storage": bytes(x.untyped_storage()),
        "from a buffer": T.frombuffer(bytearray(memoryview(x.numpy())), dtype=T.float32),
    }


@differential
def test_numpy_functions(T: Any) -> Any:
    x = T.arange(6.0).view(2, 3)
    return {
        "ufuncs": [numpy.add(x, 1), numpy.add(x, x.numpy()), numpy.add.reduce(x), numpy.matmul(x, x.T)],
        "several results": numpy.modf(x),
        "methods": [numpy.transpose(x), numpy.reshape(x, (3, 2)), numpy.clip(x, 1, 2), numpy.argmax(x), numpy.round(x)],
        "arrays": [numpy.sort(x), numpy.where(x > 1, x, 0), numpy.stack([x, x]), numpy.dot(x, x.T), numpy.ravel(x)],
        "attributes": [numpy.shape(x), numpy.ndim(x)],
        "out": outcome(lambda: numpy.add(x, 1, out=x)),
        "gradient": outcome(lambda: numpy.sqrt(T.ones(1, requires_grad=True)), "Can't call numpy()"),
    }


@differential
def test_names_that_the_array_api_needs(T: Any) -> Any:
    x = T.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    running = (
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "logcumsumexp",
        "logsumexp",
        "softmax",
        "log_softmax",
        "unsqueeze",
    )
    return {
        "axis": {name: getattr(T, name)(x, axis=0) for name in running},
        "axis of methods": {name: getattr(x, name)(axis=-1) for name in running},
        "missing": [outcome(lambda name=name: getattr(T, name)(x), 'arguments: "dim"') for name in running],
        "unknown": outcome(lambda: T.cumsum(x, axes=0)),
        "roll": [T.roll(x, 1, dims=None), T.roll(x, 1, None), x.roll(2, dims=(1,))],
    }
