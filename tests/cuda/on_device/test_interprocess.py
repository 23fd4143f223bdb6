"""Memory and events that are lent to other processes: here one process plays both sides, and on a GPU there are two."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import pytest

import flambeau as torch
from flambeau._backends.cuda.memory import interprocess
from flambeau._core.storage import storage_of
from flambeau.multiprocessing.reductions import ForkingPickler
from tests.cuda.on_device.conftest import is_simulated

_SIMULATED = torch.cuda.is_available() and is_simulated()
simulated = pytest.mark.skipif(not _SIMULATED, reason="a GPU opens no handle in the process that made it")


@pytest.fixture(autouse=True)
def _whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated driver has no function that says where a piece of memory begins."""
    if _SIMULATED:
        monkeypatch.setattr(interprocess, "_piece_of", lambda pointer: pointer)


def _bytes_of(tensor: Any) -> Any:
    return interprocess.lend(tensor.untyped_storage())


@simulated
def test_borrowed_memory_is_the_owners_until_it_is_given_back() -> None:
    x = torch.arange(4.0, device="cuda")
    loan = _bytes_of(x)._replace(owner=0)  # as if this were another process
    array = interprocess.borrow(loan)
    seen = torch.empty(0, device="cuda").set_(storage_of(array, x.device), 0, (4,), (1,))
    seen += 1
    assert x.tolist() == [1, 2, 3, 4]
    numbers = interprocess._numbers_in(loan.numbers)
    assert numbers[loan.place] == 1
    kept = len(interprocess._LENDER.loans)
    with pytest.raises(RuntimeError, match="received from another process"):
        interprocess.lend(seen.untyped_storage())
    del array, seen
    gc.collect()
    assert numbers[loan.place] == 0
    torch.cuda.ipc_collect()
    assert len(interprocess._LENDER.loans) < kept


@simulated
def test_two_loans_of_one_piece_open_it_once() -> None:
    x = torch.ones(8, device="cuda")
    first, second = (interprocess.borrow(_bytes_of(x)._replace(owner=0)) for _ in range(2))
    assert first.pointer == second.pointer
    del first, second
    gc.collect()


def test_what_comes_back_to_its_process_is_the_memory_itself() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)[1:].requires_grad_()
    read = pickle.loads(ForkingPickler.dumps(x))
    assert read.data_ptr() == x.data_ptr()
    assert read.requires_grad
    assert read.tolist() == [[3, 4, 5]]


def test_events_of_several_processes() -> None:
    event = torch.cuda.Event(interprocess=True)
    event.record()
    assert len(event.ipc_handle()) > 0
    with pytest.raises(RuntimeError, match="invalid argument"):
        torch.cuda.Event(enable_timing=True, interprocess=True)
    with pytest.raises(RuntimeError, match="interprocess=True"):
        torch.cuda.Event().ipc_handle()


@simulated
def test_an_event_by_its_handle() -> None:
    event = torch.cuda.Event(interprocess=True)
    event.record()
    again = pickle.loads(ForkingPickler.dumps(event))
    again.wait()
    again.synchronize()
    assert again.query()
    assert str(again.device) == "cuda:0"
