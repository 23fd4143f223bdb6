"""Storages, pickles and further ways to make tensors that have no other place."""

from __future__ import annotations

import copy
import pickle
import warnings
from array import array
from typing import Any

import numpy
import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_views_follow_a_storage_that_grows(T: Any) -> Any:
    base = T.arange(6.0)
    view, storage = base[2:4], base.untyped_storage()
    base.resize_(10)
    base[2] = 99
    return view, view.untyped_storage().nbytes(), storage.nbytes(), base._version, view.data_ptr() - base.data_ptr()


@differential
def test_shared_memory(T: Any) -> Any:
    base = T.arange(4.0)
    view = base[1:]
    before = base.is_shared()
    base.share_memory_()
    base[1] = 7
    return before, base.is_shared(), view.is_shared(), view


@differential
def test_text_of_storages(T: Any) -> Any:
    tensor = T.arange(4, dtype=T.int16)
    storage, typed = tensor.untyped_storage(), tensor.storage()
    return (
        repr(storage),
        repr(typed),
        storage is tensor.untyped_storage(),
        storage[1:3].tolist(),
        typed.pickle_storage_type(),
        typed.element_size(),
        T.UntypedStorage([1, 2, 3]).tolist(),
        outcome(lambda: typed[0:1], "slices are only supported"),
        T.is_storage(typed),
    )


@differential
def test_copying_storages(T: Any) -> Any:
    tensor = T.zeros(2, dtype=T.int16)
    tensor.untyped_storage().copy_(T.UntypedStorage([1, 2, 3, 4]))
    typed = tensor.storage().clone()
    typed.fill_(5)
    return tensor, typed.tolist(), outcome(lambda: tensor.untyped_storage().copy_(T.UntypedStorage(3)))[0]


@differential
def test_set_from_storages(T: Any) -> Any:
    return (
        T.zeros(3).set_(T.arange(4.0).storage()),
        T.zeros(0).set_(T.arange(4.0), 1, (2,), (1,)),
        T.FloatTensor(T.arange(3.0).storage()),
        T.empty(0).set_(T.ones(2).untyped_storage(), 0, (4,), (1,)).untyped_storage().nbytes(),
    )


def test_pickled_views_share_memory_again() -> None:
    base = flambeau.arange(4.0)
    loaded, view = pickle.loads(pickle.dumps((base, base[1:3])))
    loaded[1] = 7
    assert view.tolist() == [7.0, 2.0]
    assert loaded.untyped_storage() is view.untyped_storage()


@differential
def test_attributes_survive_pickles(T: Any) -> Any:
    tensor = T.ones(2)
    tensor.note = [1]
    loaded, shallow = pickle.loads(pickle.dumps(tensor)), copy.copy(tensor)
    return loaded, loaded.note, shallow.note, shallow.data_ptr() == tensor.data_ptr()


@differential
def test_hooks_are_not_pickled(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: grad)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pickle.dumps(leaf)
    return [(each.category.__name__, str(each.message)[:14]) for each in caught]


@differential
def test_meta_tensors_are_made_and_copied(T: Any) -> Any:
    matrix = T.zeros(2, 3, device="meta").t()
    return (
        T.zeros(2, device="meta").resize_(5),
        T.zeros(2, device="meta").untyped_storage().nbytes(),
        matrix.clone(),
        copy.deepcopy(matrix),
        pickle.loads(pickle.dumps(T.zeros(2, device="meta"))),
        T.ones(2, device="meta").copy_(T.ones(2)),
        T.arange(3, device="meta"),
        T.linspace(0, 1, 3, device="meta"),
        T.ones(2, requires_grad=True).to("meta"),
    )


@differential
def test_asarray(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    return {
        "array": T.asarray(numpy.arange(3)),
        "grad": T.asarray([1.0, 2.0], requires_grad=True),
        "no alias": outcome(lambda: T.asarray(numpy.arange(3), dtype=T.float32, copy=False), "can't alias"),
        "list without copy": outcome(lambda: T.asarray([1], copy=False)),
        "buffer": T.asarray(bytearray(b"\0\0\x80?")),
        "array of Python's": [T.asarray(array("f", [1, 2]), copy=copy) for copy in (None, True, False)],
        "array of Python's as another dtype": T.asarray(array("q", [1, 2]), dtype=T.int32),
        "number": T.asarray(3),
        "numpy number": T.asarray(numpy.float32(2)),
        "leaf": T.asarray(leaf),
        "leaf without": T.asarray(leaf, requires_grad=False),
        "leaf with": T.asarray(leaf, requires_grad=True),
    }


@differential
@pytest.mark.parametrize("name", ["int64", "uint8", "float32", "float64", "bfloat16", "complex64"])
def test_linspace_and_logspace(T: Any, name: str) -> Any:
    dtype = getattr(T, name)
    ends = [(0, 10), (-5, 9), (1.2, 4.3), (4, 0)] if name != "uint8" else [(0, 10), (1.2, 4.3)]
    return [
        (T.linspace(start, end, steps, dtype=dtype), T.logspace(start / 4, end / 4, steps, dtype=dtype))
        for start, end in ends
        for steps in (0, 1, 2, 5, 6)
    ]


@differential
def test_vander(T: Any) -> Any:
    whole = T.vander(T.tensor([1, 2, 3]), 2, increasing=True)
    return T.vander(T.tensor([1.0, 2.0, -3.0])), whole, T.vander(T.arange(3), 0)


@differential
def test_predicates(T: Any) -> Any:
    tensors = (T.ones(1), T.ones((), dtype=T.float64), T.ones(2, dtype=T.int32))
    others = (1, 1.5, 1j, T.ones(2, dtype=T.float16), T.tensor(True))
    dtypes = (T.bool, T.int8, T.float16, T.complex64)
    return {
        "result_type": [T.result_type(tensor, other) for tensor in tensors for other in others],
        "can_cast": [T.can_cast(source, target) for source in dtypes for target in dtypes],
        "typename": (T.typename(T.ones(1)), T.typename(1), T.typename(T.FloatTensor)),
        "nonzero": (T.is_nonzero(T.tensor([2])), outcome(lambda: T.is_nonzero(T.ones(2)), "ambiguous")),
        "signed": [T.zeros(1, dtype=dtype).is_signed() for dtype in (T.uint8, T.int8, T.float32)],
        "numel": T.numel(T.ones(2, 3)),
    }


@differential
def test_default_tensor_type(T: Any) -> Any:
    try:
        T.set_default_tensor_type(T.DoubleTensor)
        wide = T.tensor(1.0).dtype
        T.set_default_tensor_type("torch.FloatTensor")
        return wide, T.tensor(1.0).dtype, outcome(lambda: T.set_default_tensor_type("nothing"))[0]
    finally:
        T.set_default_dtype(T.float32)


@differential
def test_parameters(T: Any) -> Any:
    parameter = T.nn.Parameter(T.ones(2))
    parameter.grad = T.ones(2)
    deep, loaded = copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))
    pair = copy.deepcopy([parameter, parameter])
    return {
        "text": repr(parameter),
        "types": [
            type(each).__name__
            for each in (parameter, deep, loaded, parameter * 1, parameter.data, parameter.detach(), parameter.clone())
        ],
        "deep": (deep, deep.grad, deep.data_ptr() == parameter.data_ptr()),
        "loaded": loaded,
        "one": pair[0] is pair[1],
        "frozen": T.nn.Parameter(T.ones(1, dtype=T.int64), requires_grad=False),
        "integers": outcome(lambda: T.nn.Parameter(T.ones(1, dtype=T.int64)), "floating point"),
        "nothing": repr(T.nn.Parameter()),
        "is a tensor": isinstance(parameter, T.Tensor),
    }
