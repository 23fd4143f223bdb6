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
    seen = []
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


def test_parts_are_on_the_device_and_the_host_is_named() -> None:
    before = HOST_OPS.total()
    matrix = torch.eye(3, device="cuda").to_sparse_csr()
    assert {each.device.type for each in (matrix.crow_indices(), matrix.col_indices(), matrix.values())} == {"cuda"}
    assert (matrix.values() + 1).tolist() == [2, 2, 2]
    assert HOST_OPS.total() > before


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
