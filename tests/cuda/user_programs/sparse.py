"""Sparse tensors: coordinates and compressed rows, products, gradients, training."""

from __future__ import annotations

from typing import Any

from .registry import program


def _matrix(torch: Any, device: str, rows: int = 30, columns: int = 20) -> Any:
    x = torch.randn(rows, columns)
    return (x * (torch.arange(rows * columns).reshape(rows, columns) * 7 % 5 == 0)).to(device)


@program("sparse")
def coordinates(torch: Any, device: str) -> Any:
    places = torch.tensor([[0, 2, 0, 1, 2], [1, 0, 1, 3, 0]]).to(device)
    x = torch.sparse_coo_tensor(places, torch.arange(1.0, 6).to(device), (3, 4), check_invariants=True)
    tight = x.coalesce()
    return tight.indices(), tight.values(), x.to_dense(), x.is_coalesced(), tight.is_coalesced(), x._nnz()


@program("sparse")
def products_of_coordinates(torch: Any, device: str) -> Any:
    a = _matrix(torch, device)
    sparse = a.to_sparse().requires_grad_()
    dense = torch.randn(20, 6).to(device).requires_grad_()
    found = torch.sparse.mm(sparse, dense)
    found.square().sum().backward()
    vector = torch.randn(20).to(device)
    with torch.no_grad():
        more = [sparse @ vector, torch.sparse.addmm(torch.ones(30, 6, device=device), sparse, dense, beta=0.5)]
    return found, dense.grad, sparse.grad.to_dense(), more


@program("sparse")
def compressed_rows(torch: Any, device: str) -> Any:
    a = _matrix(torch, device)
    rows = a.to_sparse_csr()
    dense = torch.randn(20, 5).to(device)
    return [
        rows.crow_indices(), rows.col_indices(), rows.values(), rows @ dense, rows @ dense[:, 0], rows.to_dense(),
        rows.to_sparse_coo().to_dense(), rows.to_sparse_csc().ccol_indices(), (rows * 2).values(),
        torch.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), rows.values() + 1, (30, 20)).to_dense(),
    ]  # fmt: skip


@program("sparse")
def gradients_of_compressed_rows(torch: Any, device: str) -> Any:
    rows = _matrix(torch, device).to_sparse_csr().requires_grad_()
    dense = torch.randn(20, 5).to(device).requires_grad_()
    (rows @ dense).square().sum().backward()
    return dense.grad, rows.grad.to_dense()


@program("sparse")
def elementwise_and_sums(torch: Any, device: str) -> Any:
    a = _matrix(torch, device).to_sparse()
    b = (_matrix(torch, device) * 2).to_sparse()
    return [
        (a + b).to_dense(), (a * b).to_dense(), (a * 3).to_dense(), (-a).to_dense(), torch.sparse.sum(a),
        torch.sparse.sum(a, 0).to_dense(), a.t().to_dense(), a.abs().to_dense(), torch.sqrt(a.abs()).to_dense(),
        torch.sparse.softmax(a, 1).to_dense(), (a - b).coalesce().values(), a.to(torch.float64).to_dense(),
        a.index_select(0, torch.tensor([3, 1], device=device)).to_dense(), torch.relu(a).to_dense(), a.sum(),
    ]  # fmt: skip


@program("sparse")
def embedding_with_sparse_gradients(torch: Any, device: str) -> Any:
    table = torch.nn.Embedding(50, 6, sparse=True).to(device)
    optimizer, words = torch.optim.SparseAdam(table.parameters(), 0.05), (torch.arange(12) * 17 % 50).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        table(words).square().sum().backward()
        optimizer.step()
    grad = table.weight.grad
    return table.weight, grad.layout, grad.coalesce().indices(), grad.coalesce().values()


@program("sparse")
def network_over_a_graph(torch: Any, device: str) -> Any:
    nodes = 40
    ends = torch.stack([torch.arange(120) * 7 % nodes, torch.arange(120) * 11 % nodes]).to(device)
    adjacency = torch.sparse_coo_tensor(ends, torch.full((120,), 0.2, device=device), (nodes, nodes)).coalesce()
    layers = torch.nn.ModuleList([torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)]).to(device)
    optimizer, x = torch.optim.Adam(layers.parameters(), 0.01), torch.randn(nodes, 8).to(device)
    wanted, losses = (torch.arange(nodes) % 3).to(device), []
    for _ in range(5):
        optimizer.zero_grad()
        hidden = torch.relu(torch.sparse.mm(adjacency, layers[0](x)))
        loss = torch.nn.functional.cross_entropy(torch.sparse.mm(adjacency, layers[1](hidden)), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@program("sparse")
def masks_and_blocks(torch: Any, device: str) -> Any:
    a = _matrix(torch, device, 12, 8)
    mask = (a != 0).float().to_sparse()
    return a.sparse_mask(mask).to_dense(), a.to_sparse_bsr((2, 2)).to_dense(), a.to_sparse(1).to_dense()
