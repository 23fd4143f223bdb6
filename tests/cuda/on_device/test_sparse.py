"""Sparse tensors of a device: what they compute, and the gradients of dense tensors that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau._core.process.host_calls import HOST_OPS

_SOME = [[0, 1, 3], [1, 2, 0]]


def _places(x: Any) -> Any:
    return torch.tensor(_SOME, device=x.device)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "coordinates": lambda x, y: x.to_sparse(),
    "rows": lambda x, y: x.to_sparse_csr(),
    "columns": lambda x, y: x.to_sparse_csc(),
    "blocks": lambda x, y: x.to_sparse_bsr((2, 2)),
    "values": lambda x, y: x.to_sparse().coalesce().values() * 2,
    "product": lambda x, y: x.to_sparse() @ y,
    "product by rows": lambda x, y: x.to_sparse_csr() @ y,
    "sparse.mm": lambda x, y: torch.sparse.mm(x.to_sparse(), y),
    "sparse.mm, largest": lambda x, y: torch.sparse.mm(x.to_sparse_csr(), y, "amax"),
    "sparse.mm, mean": lambda x, y: torch.sparse.mm(x.to_sparse_csr(), y, "mean"),
    "sparse.addmm": lambda x, y: torch.sparse.addmm(y, x.to_sparse(), y),
    "sampled_addmm": lambda x, y: torch.sparse.sampled_addmm(x.detach().to_sparse_csr(), y, y.T.contiguous()),
    "sum of two": lambda x, y: x.to_sparse() + x.to_sparse(),
    "times a number": lambda x, y: x.to_sparse() * 2,
    "sparse.sum": lambda x, y: torch.sparse.sum(x.to_sparse(), 0),
    "sparse.softmax": lambda x, y: torch.sparse.softmax(x.to_sparse(), 1) * 3,
    "transposed": lambda x, y: x.to_sparse().t(),
    "relu": lambda x, y: torch.relu(x.to_sparse()),
    "mask": lambda x, y: x.sparse_mask(x.detach().to_sparse()),
    "chosen rows": lambda x, y: x.to_sparse().index_select(0, torch.tensor([3, 0, 3], device=x.device)),
    "chosen columns": lambda x, y: x.to_sparse(1).index_select(1, torch.tensor([2, 0], device=x.device)),
    "one row": lambda x, y: x.to_sparse()[1],
    "product of two": lambda x, y: torch.sparse.mm(x.to_sparse(), x.t().to_sparse()),
    "product of two by rows": lambda x, y: torch.sparse.mm(x.to_sparse_csr(), x.to_sparse_csr()),
    "product with a vector": lambda x, y: x.to_sparse_csr() @ y.T.reshape(-1)[:4],
    "vector of coordinates": lambda x, y: x.to_sparse() @ y.T.reshape(-1)[:4],
    "elementwise product": lambda x, y: x.to_sparse() * (x * 2).to_sparse(),
    "times a dense one": lambda x, y: x.to_sparse() * x,
    "dense plus sparse": lambda x, y: x + x.to_sparse(),
    "difference": lambda x, y: x.to_sparse() - x.t().to_sparse(),
    "divided": lambda x, y: x.to_sparse() / 3,
    "smallest of rows": lambda x, y: torch.sparse.mm(x.to_sparse_csr(), y, "amin"),
    "whole sum": lambda x, y: x.to_sparse().sum(),
    "log_softmax": lambda x, y: torch.sparse.log_softmax(x.to_sparse(), 0) * 2,
    "norm": lambda x, y: x.to_sparse().norm(),
    "rows to coordinates": lambda x, y: x.to_sparse_csr().to_sparse_coo(),
    "columns of blocks": lambda x, y: x.to_sparse_bsc((2, 2)).to_sparse_coo(),
    "coordinates to columns": lambda x, y: x.to_sparse().to_sparse_csc(),
    "dtype": lambda x, y: x.to_sparse().double().float(),
    "sparse_coo_tensor": lambda x, y: torch.sparse_coo_tensor(_places(x), y[0], (4, 4)),
    "sparse_csr_tensor": lambda x, y: torch.sparse_csr_tensor(_places(x)[0].sort()[0], _places(x)[1], y[0], (2, 4)),
    "embedding": lambda x, y: torch.nn.functional.embedding(_places(x)[0], x, sparse=True),
}


def _dense(tensor: Any) -> Any:
    return tensor if tensor is None or tensor.layout is torch.strided else tensor.to_dense()


@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_are_those_of_the_cpu(name: str) -> None:
    torch.manual_seed(3)
    x, y = torch.randn(4, 4) * (torch.rand(4, 4) > 0.5), torch.randn(4, 3)
    seen, before = [], HOST_OPS.total()
    for place in ("cpu", "cuda"):
        operands = [each.to(place, copy=True).requires_grad_() for each in (x, y)]
        result = CALLS[name](*operands)
        assert result.device.type == place
        dense = _dense(result)
        dense.square().sum().backward()
        seen.append([dense.detach(), *[_dense(each.grad) for each in operands]])
    for ours, theirs in zip(*seen, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert theirs.is_cuda
            torch.testing.assert_close(theirs.cpu(), ours)
    assert HOST_OPS.total() == before


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.bool]
)
def test_equal_coordinates_are_added_in_every_dtype(dtype: Any) -> None:
    before, found = HOST_OPS.total(), []
    for place in ("cpu", "cuda"):
        where = torch.tensor([[0, 2, 0, 1, 2], [1, 0, 1, 3, 0]], device=place)
        values = torch.arange(1, 6, device=place).to(dtype)
        made = torch.sparse_coo_tensor(where, values, (3, 4))
        found.append((made.coalesce().indices().cpu(), made.coalesce().values().cpu(), made.to_dense().cpu()))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
    assert HOST_OPS.total() == before


def test_wrong_places_are_refused_as_on_the_cpu() -> None:
    for place in ("cpu", "cuda"):
        values = torch.ones(2, device=place)
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            torch.sparse_coo_tensor(torch.tensor([[0, 5]], device=place), values, (3,))
        with pytest.raises(RuntimeError, match="found negative index"):
            torch.sparse_coo_tensor(torch.tensor([[0, -1]], device=place), values, (3,))
        with pytest.raises(RuntimeError, match="crow_indices must begin with 0"):
            torch.sparse_csr_tensor(
                torch.tensor([0, 2, 1], device=place), torch.tensor([0, 1], device=place), values, (2, 2)
            )


def test_a_sparse_tensor_moves_between_devices() -> None:
    x = torch.eye(3).to_sparse()
    there = x.to("cuda")
    assert there.indices().is_cuda
    assert there.cpu().to_dense().tolist() == x.to_dense().tolist()
    assert str(there.cpu().device) == "cpu"


def test_parts_are_on_the_device() -> None:
    matrix = torch.eye(3, device="cuda").to_sparse_csr()
    assert {each.device.type for each in (matrix.crow_indices(), matrix.col_indices(), matrix.values())} == {"cuda"}
    assert (matrix.values() + 1).tolist() == [2, 2, 2]


def test_training_with_sparse_gradients() -> None:
    tables = []
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 3, sparse=True).to(place)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([0, 2, 2], device=place)).square().sum().backward()
            optimizer.step()
        tables.append(table.weight.detach().cpu())
    torch.testing.assert_close(*tables)
