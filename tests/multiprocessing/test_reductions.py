"""How tensors are taken apart and put together again on their way to another process."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

import flambeau
from flambeau import multiprocessing as mp
from tests.support.differential import differential, outcome

from . import targets


def there_and_back(value: Any) -> Any:
    """What a process gets that is sent a value by this one."""
    return pickle.loads(ForkingPickler.dumps(value))


@differential
def test_rebuilding(T: Any) -> Any:
    reductions = importlib.import_module(f"{T.__name__}.multiprocessing.reductions")
    storage = T.arange(6.0).untyped_storage()
    typed = reductions.rebuild_typed_storage(storage, T.float32)
    window = reductions.rebuild_tensor(T.Tensor, typed, (1, (2, 2), (2, 1), False))
    parameter = reductions.rebuild_tensor(T.nn.Parameter, typed, (0, (3,), (1,), True))
    meta = reductions.rebuild_meta_tensor(T.Tensor, (2, 3), (3, 1), 0, T.float16, 24, True)
    return (
        (window, parameter, isinstance(parameter, T.nn.Parameter)),
        meta,
        reductions.rebuild_storage_empty(T.UntypedStorage).nbytes(),
        type(typed).__name__,
        outcome(lambda: reductions.reduce_tensor(T.ones(2, requires_grad=True) * 2), "Cowardly refusing"),
    )


def test_memory_is_shared() -> None:
    sparse = flambeau.tensor([[0.0, 3.0], [4.0, 0.0]])
    rows = [flambeau.ones(2, 3), flambeau.zeros(1, 3)]
    layouts = (flambeau.sparse_coo, flambeau.sparse_csr, flambeau.sparse_csc)
    values = [sparse.to_sparse(layout=each) for each in layouts]
    for value in values:
        arrived = there_and_back(value)
        arrived.values().mul_(2)
        assert arrived.layout is value.layout
        assert value.to_dense().equal(sparse * 2)
        value.values().div_(2)
    nested = flambeau.nested.nested_tensor(rows, layout=flambeau.jagged)
    arrived = there_and_back(nested)
    assert [each.tolist() for each in arrived.unbind()] == [each.tolist() for each in rows]
    assert there_and_back(flambeau.UntypedStorage(0)).nbytes() == 0
    typed = flambeau.arange(3.0).storage()
    there_and_back(typed)[1] = 7.0
    assert typed.tolist() == [0.0, 7.0, 2.0]
    rebuild, parts = mp.reductions.reduce_typed_storage_child(typed)
    assert rebuild(parts[0], flambeau.FloatStorage).tolist() == typed.tolist()


def test_storages_that_arrived_are_remembered() -> None:
    reductions = mp.reductions
    storage = flambeau.arange(4.0).share_memory_().untyped_storage()
    reference = reductions.StorageWeakRef(storage)
    same = reductions.StorageWeakRef.from_weakref(reference.cdata)
    assert same == reference
    assert hash(same) == hash(reference)
    assert not reference.expired()
    cache = reductions.SharedCache()
    for number in range(200):
        cache[number] = reductions.StorageWeakRef(flambeau.UntypedStorage(8))
    cache["kept"] = reference
    cache.free_dead_references()
    assert list(cache) == ["kept"]
    arrived = there_and_back(storage)
    assert any(not each.expired() for each in reductions.shared_cache.values())
    assert reductions.storage_from_cache(None, "no such key") is None
    del storage, arrived
    gc.collect()
    assert reference.expired()
    with pytest.raises(RuntimeError, match="cdata"):
        reductions.StorageWeakRef.from_weakref(reference.cdata)


def test_queues_and_pools() -> None:
    context = multiprocessing.get_context("fork")
    for queue in (mp.queue.SimpleQueue(ctx=context), mp.queue.Queue(ctx=context)):
        tensor = flambeau.arange(3.0)
        queue.put(tensor)
        arrived = queue.get()
        arrived.add_(1)
        assert tensor.tolist() == [1.0, 2.0, 3.0]
        queue.close()
    first, second = (mp.queue.ConnectionWrapper(each) for each in mp.Pipe())
    first.send(flambeau.ones(2))
    assert second.poll(60)
    assert second.recv().tolist() == [1.0, 1.0]
    with mp.pool.Pool(1, context=context) as pool:
        assert [each.tolist() for each in pool.map(targets.double, [flambeau.ones(2)])] == [[2.0, 2.0]]


@pytest.mark.skipif(flambeau.cuda.is_available(), reason="there is a device")
def test_what_a_device_shares_needs_one() -> None:
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        mp.reductions.rebuild_event(None, b"")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        mp.reductions.rebuild_cuda_storage(b"", 0, 4, 0, 1, None, 0)
