"""Storages: bytes, offsets, sharing, `set_`, `resize_`, and memory shared with NumPy."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy
import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.tensor.dtype_names import ALL, FLOAT8


@differential
@pytest.mark.parametrize("name", ALL)
def test_sizes_in_bytes(T: Any, name: str) -> Any:
    tensor = T.zeros(2, 3, dtype=getattr(T, name))
    storage = tensor.untyped_storage()
    return (
        storage.nbytes(),
        storage.size(),
        len(storage),
        tensor.nbytes,
        tensor.itemsize,
        tensor.element_size(),
        storage.element_size(),
        type(storage).__name__,
    )


@differential
def test_bytes_of_a_storage(T: Any) -> Any:
    storage = T.tensor([1, 256], dtype=T.int16).untyped_storage()
    return storage.tolist(), list(storage), storage[0], bytes(storage.tolist()), storage.device, storage.is_cuda


@differential
def test_writing_bytes(T: Any) -> Any:
    tensor = T.zeros(2, dtype=T.int16)
    storage = tensor.untyped_storage()
    storage[1] = 1
    first = tensor.clone()
    storage.fill_(255)
    return first, tensor


@differential
def test_views_share_one_storage(T: Any) -> Any:
    base = T.arange(12.0).view(3, 4)
    row, column, part = base[1], base[:, 2], base[1:, 1:]
    size = base.element_size()
    return {
        "offsets": [view.storage_offset() for view in (base, row, column, part)],
        "pointers": [(view.data_ptr() - base.data_ptr()) // size for view in (row, column, part)],
        "same storage": [
            view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr() for view in (row, column, part)
        ],
        "bytes of a view": part.nbytes,
        "bytes of its storage": part.untyped_storage().nbytes(),
        "clone": row.clone().untyped_storage().nbytes(),
        "is_set_to": (base.is_set_to(base), base.is_set_to(row), base.view(3, 4).is_set_to(base)),
    }


@differential
def test_pointers(T: Any) -> Any:
    tensor = T.ones(3)
    return (
        tensor.data_ptr() == tensor.untyped_storage().data_ptr(),
        tensor.data_ptr() == tensor.clone().data_ptr(),
        type(tensor.data_ptr()),
        T.zeros(0).data_ptr(),
        tensor.detach().data_ptr() == tensor.data_ptr(),
        tensor[3:].data_ptr() == 0,
    )


@differential
def test_a_view_keeps_the_memory_alive(T: Any) -> Any:
    view = T.arange(1000.0)[500:502]
    gc.collect()
    return view


@differential
def test_typed_storage(T: Any) -> Any:
    tensor = T.tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2)
    storage = tensor.storage()
    storage[0] = 9.0
    return (
        tensor,
        storage.tolist(),
        len(storage),
        storage.size(),
        storage.dtype,
        tensor[1].storage().tolist(),
        list(storage),
    )


@differential
def test_set_shares_another_tensors_memory(T: Any) -> Any:
    source = T.arange(6.0)
    target = T.zeros(2)
    returned = target.set_(source) is target
    target[0] = 9
    parts = T.empty(0)
    parts.set_(source.untyped_storage(), 1, (2, 2), (2, 1))
    parts[0, 0] = -1
    whole = T.empty(0).set_(source.untyped_storage())
    cleared = T.ones(3).set_()
    return {
        "returned": returned,
        "target": target,
        "source": source,
        "parts": parts,
        "offset": parts.storage_offset(),
        "whole": whole,
        "cleared": cleared.shape,
    }


@differential
def test_set_refuses(T: Any) -> Any:
    source = T.arange(4.0)
    return {
        "dtype": outcome(lambda: T.zeros(2, dtype=T.int64).set_(source)),
        "negative stride": outcome(lambda: T.empty(0).set_(source.untyped_storage(), 0, (2,), (-1,))),
        "negative offset": outcome(lambda: T.empty(0).set_(source.untyped_storage(), -1, (2,), (1,))),
        "lengths": outcome(lambda: T.empty(0).set_(source.untyped_storage(), 0, (2,), (1, 1))),
    }


@differential
def test_assigning_data(T: Any) -> Any:
    leaf = T.zeros(2, requires_grad=True)
    replacement = T.ones(3)
    version = leaf._version
    leaf.data = replacement
    replacement[0] = 5

    def wrong() -> None:
        leaf.data = T.ones(2, dtype=T.int64)  # integers cannot require grad

    return (
        leaf,
        leaf._version - version,
        leaf.data_ptr() == replacement.data_ptr(),
        outcome(wrong, "must be floating point or complex dtype"),
    )


@differential
def test_resize(T: Any) -> Any:
    tensor = T.arange(6.0)
    storage = tensor.untyped_storage()
    smaller = tensor.resize_(2, 2).clone()
    kept = storage.nbytes()
    again = tensor.resize_((6,)).clone()
    tensor.resize_(10)
    grown = (
        tensor[:6].clone(),
        tensor.shape,
        tensor.untyped_storage().nbytes(),
        tensor.untyped_storage().nbytes() == storage.nbytes(),
    )
    return smaller, kept, again, grown, T.zeros(2).resize_(()).shape, T.empty(0).resize_as_(T.zeros(2, 3)).shape


@differential
def test_resize_starts_at_the_offset(T: Any) -> Any:
    base = T.arange(6.0)
    view = base[2:4]
    view.resize_(4)
    view[3] = -1
    return view, base, view.storage_offset()


@differential
def test_resize_refuses(T: Any) -> Any:
    leaf = T.zeros(2, requires_grad=True)
    array_backed = T.from_numpy(numpy.zeros(2))
    exported = T.zeros(2)
    exported.numpy()
    return {
        "leaf": outcome(lambda: leaf.resize_(3), "cannot resize variables that require grad"),
        "numpy": outcome(lambda: array_backed.resize_(100), "not resizable"),
        "negative": outcome(lambda: T.zeros(2).resize_(-1)),
        "exported": outcome(lambda: exported.resize_(100), "not resizable"),
    }


@differential
def test_storage_resize(T: Any) -> Any:
    tensor = T.arange(4.0)
    storage = tensor.untyped_storage()
    storage.resize_(32)
    return storage.nbytes(), tensor


@differential
def test_copies_of_storages(T: Any) -> Any:
    storage = T.tensor([1, 2], dtype=T.uint8).untyped_storage()
    cloned, copied = storage.clone(), copy.deepcopy(storage)
    storage.fill_(0)
    return cloned.tolist(), copied.tolist(), storage.tolist(), T.UntypedStorage(3).nbytes(), storage == storage


@differential
def test_two_copies_of_one_memory_stay_one(T: Any) -> Any:
    base = T.arange(4.0)
    first, second = copy.deepcopy((base, base[1:3]))
    first[1] = 9
    return first, second, base


def test_two_pickles_of_one_memory_stay_one() -> None:
    # PyTorch keeps this promise in torch.save only; here every pickle does.
    base = flambeau.arange(4.0)
    loaded, view = pickle.loads(pickle.dumps((base, base[1:3])))
    loaded[1] = 7
    assert view.tolist() == [7, 2]
    assert base.tolist() == [0, 1, 2, 3]


# --- memory shared with NumPy -----------------------------------------------------------------------------------


@differential
@pytest.mark.parametrize("name", [name for name in ALL if name not in ("bfloat16", "complex32", *FLOAT8)])
def test_numpy_shares_memory(T: Any, name: str) -> Any:
    tensor = T.zeros(2, 3, dtype=getattr(T, name))
    array = tensor.numpy()
    array[0, 1] = 1
    tensor[1, 2] = 1
    return tensor, array, array.strides, tensor.t().numpy(), tensor.t().numpy().strides, tensor[:, 1:].numpy()


@differential
def test_from_numpy_shares_memory(T: Any) -> Any:
    array = numpy.arange(6.0).reshape(2, 3)
    tensor = T.from_numpy(array)
    tensor[0, 0] = 9
    array[1, 2] = -1
    tensor.t()[2, 0] = 7
    tensor.add_(1)
    return (
        tensor,
        array,
        tensor.data_ptr() == array.ctypes.data,
        T.from_numpy(tensor.numpy()).data_ptr() == tensor.data_ptr(),
    )


@differential
def test_from_numpy_of_parts(T: Any) -> Any:
    array = numpy.arange(12.0).reshape(3, 4)
    column, block = T.from_numpy(array[:, 1]), T.from_numpy(array[1:, ::2])
    column.zero_()
    block.fill_(-1)
    return column, block, array, block.stride(), column.storage_offset(), block.storage_offset()


@differential
def test_numpy_refuses(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    return {
        "leaf": outcome(
            lambda: leaf.numpy(), "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()"
        ),
        "result": outcome(lambda: (leaf * 2).numpy(), "Can't call numpy() on Tensor that requires grad"),
        "force": leaf.numpy(force=True),
        "detached": leaf.detach().numpy(),
        "asarray": outcome(lambda: numpy.asarray(leaf), "requires grad"),
        "bfloat16": outcome(lambda: T.ones(2, dtype=T.bfloat16).numpy(), "unsupported ScalarType BFloat16"),
        # PyTorch conjugates lazily, and numpy() needs the resolved values; here they always are.
        "conjugate": T.tensor([1j]).conj().resolve_conj().numpy(),
        "allowed inside no_grad": _numpy_without_grad(T, leaf),
    }


def _numpy_without_grad(T: Any, leaf: Any) -> Any:
    with T.no_grad():
        return leaf.numpy()


@differential
def test_read_only_arrays_warn(T: Any) -> Any:
    array = numpy.zeros(2)
    array.flags.writeable = False
    return T.from_numpy(array)


@differential
def test_zero_size_storages(T: Any) -> Any:
    tensor = T.zeros(0, 3)
    return tensor.untyped_storage().nbytes(), tensor.nbytes, tensor.numpy(), tensor.storage_offset(), tensor.data_ptr()


@differential
def test_versions_are_shared_by_views_but_not_by_data(T: Any) -> Any:
    base = T.zeros(4)
    view, detached, data = base[1:], base.detach(), base.data
    base.add_(1)
    view.add_(1)
    data.add_(1)
    return base._version, view._version, detached._version, data._version, base.clone()._version


@differential
def test_storage_module(T: Any) -> Any:
    tensor = T.arange(3.0)
    return (
        T.storage.UntypedStorage is T.UntypedStorage,
        T.storage.TypedStorage is T.TypedStorage,
        isinstance(tensor.untyped_storage(), T.UntypedStorage),
        isinstance(tensor.storage(), T.TypedStorage),
    )
