"""Spread tensors: whatever the placements, results and gradients are those of whole tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau._ops.nn.attention import _dropped_attention
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    ones,
    zeros,
)
from flambeau.distributed.tensor.experimental import implicit_replication, local_map
from flambeau.distributed.testing import run_in_threads

F = torch.nn.functional

_TARGET = torch.tensor([0, 3, 1, -100, 2, 1])

OPS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "arithmetic": (lambda x, y: (x * y + x / 3 - y).tanh(), ((6, 4), (6, 4))),
    "broadcast": (lambda x, y: x * y + y, ((6, 4), (4,))),
    "activations": (lambda x: F.gelu(x) + F.silu(x) + F.relu(x) + x.sigmoid(), ((6, 4),)),
    "where": (lambda x, y: torch.where(x > 0, x, y).clamp(min=-0.5), ((6, 4), (6, 4))),
    "sum": (lambda x: x.sum() + x.sum(0).exp().sum() + x.sum(1, keepdim=True).sin().sum(), ((5, 4),)),
    "mean": (lambda x: x.mean() * x.mean(0) + x.mean(-1).exp().mean(), ((6, 4),)),
    "uneven mean": (lambda x: x.mean(0), ((5, 3),)),
    "amax": (lambda x: x.amax(1) + x.max(1).values + x.amin(0).sum(), ((6, 4),)),
    "var": (lambda x: x.var(1) + x.std(0).sum(), ((6, 4),)),
    "norm": (lambda x: x.norm() * torch.linalg.vector_norm(x, 3, dim=1), ((6, 4),)),
    "softmax": (lambda x: x.softmax(-1) * x.log_softmax(0), ((6, 4),)),
    "cumsum": (lambda x: x.cumsum(1) * x.flip(0), ((6, 4),)),
    "mm": (lambda x, y: x @ y, ((6, 4), (4, 8))),
    "mm of itself": (lambda x: x @ x.t(), ((6, 4),)),
    "bmm": (lambda x, y: torch.bmm(x, y), ((4, 3, 2), (4, 2, 6))),
    "matmul": (lambda x, y: x @ y, ((4, 3, 2), (2, 6))),
    "addmm": (lambda x, y, z: torch.addmm(x, y, z), ((4,), (6, 2), (2, 4))),
    "linear": (lambda x, w, b: F.linear(x, w, b), ((2, 6, 4), (8, 4), (8,))),
    "linear twice": (lambda x, w, v: F.linear(F.relu(F.linear(x, w)), v), ((6, 4), (8, 4), (4, 8))),
    "view": (lambda x: x.view(24) * 2, ((6, 4),)),
    "unfold a dimension": (lambda x: x.view(6, 4, 2).transpose(0, 1).sin(), ((6, 8),)),
    "heads": (lambda x: x.view(2, 3, 4, 2).transpose(1, 2).softmax(-1).transpose(1, 2).reshape(2, 3, 8), ((2, 3, 8),)),
    "permute": (lambda x: x.permute(2, 0, 1).unsqueeze(1).squeeze(1) * 2, ((4, 3, 2),)),
    "expand": (lambda x: x.unsqueeze(0).expand(3, 6, 4).sin(), ((6, 4),)),
    "select": (lambda x: x[0] + x[:, 1:3].sum() + x.narrow(1, 0, 2).sum(), ((6, 4),)),
    "split": (lambda x: torch.cat([each * 2 for each in x.split(2, 1)], 1) + torch.stack(x.unbind(1), 1), ((6, 4),)),
    "cat": (lambda x, y: torch.cat([x, y], 0).sin(), ((6, 4), (2, 4))),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((2, 6, 4), (4,), (4,))),
    "rms norm": (lambda x, w: F.rms_norm(x, (4,), w), ((6, 4), (4,))),
    "attention": (F.scaled_dot_product_attention, ((2, 4, 3, 2), (2, 4, 3, 2), (2, 4, 3, 2))),
    "attention with kept weights": (
        lambda q, k, v: _dropped_attention(q, k, v, (q @ k.mT).detach() > 0, 0.5, True, None, None)[0],
        ((2, 4, 3, 2), (2, 4, 3, 2), (2, 4, 3, 2)),
    ),
    "convolution": (lambda x, w, b: F.max_pool2d(F.conv2d(x, w, b), 2), ((4, 2, 5, 5), (3, 2, 2, 2), (3,))),
    "mse": (lambda x, y: F.mse_loss(x, y) + F.mse_loss(x, y, reduction="sum"), ((6, 4), (6, 4))),
    "matrices of a batch": (lambda x: torch.linalg.qr(x).R.tril() + torch.linalg.svdvals(x).sum(), ((4, 3, 3),)),
    "triangles": (
        lambda x, y: torch.linalg.solve_triangular(x.triu() + 3 * torch.ones_like(x).triu(), y, upper=True),
        ((4, 3, 3), (4, 3, 2)),
    ),
    "solutions of a batch": (
        lambda x, y: torch.linalg.lu_solve(*torch.linalg.lu_factor(x @ x.mT + x.abs().sum()), y),
        ((4, 3, 3), (4, 3, 2)),
    ),
    "distances": (lambda x, y: torch.cdist(x, y, p=1.5), ((4, 3, 2), (4, 5, 2))),
    "a part exchanged": (lambda x, y: x.select_scatter(y, 1, 2) * 2, ((6, 4, 2), (6, 2))),
    "extremes": (lambda x: x.aminmax(dim=1).max + x.argmax(1) + x.argmin(0).sum(), ((6, 4),)),
    "images": (
        lambda x: F.interpolate(F.adaptive_avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3), scale_factor=2.0),
        ((4, 2, 5, 5),),
    ),
    "one image": (lambda x: F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 2) * 2, ((4, 5, 5),)),
    "patches": (lambda x: F.fold(F.unfold(x, 2), (5, 5), 2), ((4, 2, 5, 5),)),
    "places in an image": (lambda x, y: F.grid_sample(x, y.tanh(), align_corners=False), ((4, 2, 5, 5), (4, 3, 3, 2))),
    "pairs as complex numbers": (lambda x: torch.view_as_real(torch.view_as_complex(x) * 2j), ((4, 6, 2),)),
    "other losses": (
        lambda x, y: F.huber_loss(x, y) + F.soft_margin_loss(x, y.sign().detach(), reduction="sum"),
        ((6, 4), (6, 4)),
    ),
    "without a rule": (lambda x: torch.linalg.inv(x @ x.t() + 1e-1 * torch.trace(x @ x.t())), ((4, 4),)),
}


def _placements(ndim: int) -> list[Any]:
    return [Replicate(), *(Shard(dim) for dim in range(ndim))]


def _combinations(shapes: tuple[tuple[int, ...], ...]) -> list[tuple[Any, ...]]:
    """Each operand cut in every way beside whole ones, and the first two cut alike or differently."""
    ways = [_placements(len(shape)) for shape in shapes]
    whole = [Replicate()] * len(shapes)
    found = [(*whole[:at], way, *whole[at + 1 :]) for at, each in enumerate(ways) for way in each]
    if len(shapes) > 1:
        found += [
            (one, ways[1][-1 - number % (len(ways[1]) - 1)], *whole[2:]) for number, one in enumerate(ways[0][1:])
        ]
    return list(dict.fromkeys(found))


def _check(name: str, mesh: Any, spread_by: list[tuple[Any, ...]]) -> None:
    function, shapes = OPS[name]
    generator = torch.Generator().manual_seed(len(name))
    whole = [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]
    expected = function(*whole)
    weights = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    grads = torch.autograd.grad((expected * weights).sum(), whole)
    parts = [
        distribute_tensor(each.detach(), mesh, by).requires_grad_() for each, by in zip(whole, spread_by, strict=False)
    ]
    result = function(*parts)
    assert isinstance(result, DTensor)
    context = f"{name} with {spread_by} gives {result.placements}"
    assert result.shape == expected.shape, context
    torch.testing.assert_close(result.full_tensor(), expected, msg=lambda text: f"{context}: {text}")
    (result.full_tensor() * weights).sum().backward()
    for part, grad in zip(parts, grads, strict=False):
        assert part.grad.placements == part.placements
        torch.testing.assert_close(part.grad.full_tensor(), grad, msg=lambda text: f"{context}, backward: {text}")


def test_ops_on_two_processes() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        for name, (_, shapes) in OPS.items():
            for by in _combinations(shapes):
                _check(name, mesh, [(each,) for each in by])

    run_in_threads(work, 2)


def test_ops_on_a_mesh_of_two_dimensions() -> None:
    names = (
        "arithmetic",
        "broadcast",
        "sum",
        "mean",
        "mm",
        "linear",
        "heads",
        "layer norm",
        "attention",
        "cat",
        "norm",
    )

    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2, 2))
        for name in names:
            _, shapes = OPS[name]
            ranks = [len(shape) for shape in shapes]
            for first, second in ((0, 1), (0, 0)):
                _check(name, mesh, [(Shard(min(first, ndim - 1)), Shard(min(second, ndim - 1))) for ndim in ranks])
            across = [(Replicate(), Shard(0))] * (len(ranks) - 1)
            _check(name, mesh, [(Shard(0), Replicate()), *across])

    run_in_threads(work, 4)


def test_every_layout_becomes_every_other() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2, 2))
        whole = torch.arange(35.0).view(7, 5)
        layouts = list(itertools.product((Replicate(), Shard(0), Shard(1)), repeat=2))
        for before, after in itertools.product(layouts[1:], layouts):
            spread = distribute_tensor(whole, mesh, before)
            moved = spread.redistribute(placements=after)
            assert torch.equal(moved.full_tensor(), whole), (before, after)
            assert torch.equal(moved.to_local(), distribute_tensor(whole, mesh, after).to_local()), (before, after)
        for after in layouts:
            summands = DTensor.from_local(whole * (rank + 1), mesh, [Partial(), Partial()])
            assert torch.equal(summands.redistribute(placements=after).full_tensor(), whole * 10)
            means = DTensor.from_local(whole * (rank + 1), mesh, [Partial("avg"), Partial("max")])
            assert torch.equal(means.redistribute(placements=after).full_tensor(), whole * 3)

    run_in_threads(work, 4)


def test_gradients_through_local_tensors() -> None:
    def work(rank: int) -> Any:
        mesh = init_device_mesh("cpu", (2,))
        local = torch.full((2, 3), float(rank + 1), requires_grad=True)
        spread = DTensor.from_local(local, mesh, [Shard(0)])
        assert spread.shape == (4, 3)
        (spread * 2).sum().full_tensor().backward()
        assert torch.equal(local.grad, torch.full((2, 3), 2.0))
        same = torch.ones(3, requires_grad=True)
        whole = DTensor.from_local(same, mesh, [Replicate()]).to_local(grad_placements=[Partial()])
        (whole * (rank + 1)).sum().backward()
        return same.grad.tolist()

    assert run_in_threads(work, 2) == [[3.0, 3.0, 3.0]] * 2


def test_cross_entropy_and_embedding() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        generator = torch.Generator().manual_seed(2)
        table = torch.randn(7, 4, generator=generator).requires_grad_()
        weight = torch.rand(4, generator=generator)
        indices = torch.tensor([0, 6, 3, 3, 1, 5])
        for reduction in ("mean", "sum"):
            for by, to, class_weight in itertools.product(_placements(2), _placements(1), (None, weight)):
                expected = F.cross_entropy(F.embedding(indices, table), _TARGET, class_weight, reduction=reduction)
                (grad,) = torch.autograd.grad(expected, table)
                own = distribute_tensor(table.detach(), mesh, [by]).requires_grad_()
                rows = F.embedding(distribute_tensor(indices, mesh, [to]), own)
                spread_weight = class_weight if class_weight is None else distribute_tensor(class_weight, mesh)
                loss = F.cross_entropy(rows, distribute_tensor(_TARGET, mesh, [to]), spread_weight, reduction=reduction)
                loss.backward()
                torch.testing.assert_close(loss.full_tensor(), expected)
                torch.testing.assert_close(own.grad.full_tensor(), grad)

    run_in_threads(work, 2)


def test_in_place_changes_and_views() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        whole = torch.arange(20.0).view(5, 4)
        spread = distribute_tensor(whole, mesh, [Shard(0)])
        whole = whole.clone()
        for each in (whole, spread):
            each.mul_(2).add_(1)
            each[:, 1] = 7
            each[:, 2:].fill_(3)
            each.t()[0].zero_()
        assert torch.equal(spread.full_tensor(), whole)
        summand = DTensor.from_local(torch.ones(3), mesh, [Partial()])
        summand.fill_(4)
        assert summand.full_tensor().tolist() == [4, 4, 4]

    run_in_threads(work, 2)


def test_optimizers_and_clipping_on_parts() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        generator = torch.Generator().manual_seed(0)
        start = torch.randn(5, 3, generator=generator)
        for make in (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad):
            whole = torch.nn.Parameter(start.clone())
            spread = torch.nn.Parameter(distribute_tensor(start, mesh, [Shard(0)]))
            assert isinstance(spread, torch.nn.Parameter)
            assert isinstance(spread, DTensor)
            assert spread.is_leaf
            optimizers = [make([each], lr=0.1) for each in (whole, spread)]
            for _ in range(3):
                for each, optimizer in zip((whole, spread), optimizers, strict=False):
                    optimizer.zero_grad()
                    each.pow(3).sum().backward()
                    norm = torch.nn.utils.clip_grad_norm_([each], 1.0)
                    optimizer.step()
            torch.testing.assert_close(spread.full_tensor(), whole.detach())
            assert isinstance(norm, DTensor)
            states = [each for each in optimizers[1].state[spread].values() if each is not None and each.ndim]
            assert all(
                isinstance(each, DTensor) and each.to_local().shape == spread.to_local().shape for each in states
            )

    run_in_threads(work, 2)


def test_modules() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        generator = torch.Generator().manual_seed(0)
        layer = torch.nn.Linear(4, 6)
        with torch.no_grad():
            for each in layer.parameters():
                each.copy_(torch.randn(each.shape, generator=generator))
        x = torch.randn(3, 4, generator=generator)
        expected = layer(x).detach()

        def partition(name: str, module: Any, mesh: Any) -> None:
            module.weight = torch.nn.Parameter(distribute_tensor(module.weight.data, mesh, [Shard(0)]))

        spread = distribute_module(
            layer, mesh, partition,
            lambda module, inputs, mesh: distribute_tensor(inputs[0], mesh, [Replicate()]),
            lambda module, outputs, mesh: outputs.redistribute(placements=[Replicate()]).to_local(),
        )  # fmt: skip
        assert spread.bias.placements == (Replicate(),)
        torch.testing.assert_close(spread(x), expected)

    run_in_threads(work, 2)


def test_what_it_says() -> None:
    def work(rank: int) -> Any:
        mesh = init_device_mesh("cpu", (2,))
        spread = distribute_tensor(torch.arange(3.0), mesh, [Shard(0)])
        with pytest.raises(RuntimeError, match=r"got mixed torch\.Tensor and DTensor"):
            spread + torch.ones(3)
        with pytest.raises(RuntimeError, match="redistributing to Partial is for internal use only"):
            spread.redistribute(placements=[Partial()])
        with pytest.raises(ValueError, match="must have the same length as"):
            distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)])
        with pytest.raises(IndexError, match="Dimension out of range"):
            distribute_tensor(torch.ones(2), mesh, [Shard(1)])
        with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
            spread.tolist()
        assert (spread + 1).sum().item() == 6
        assert bool((spread > 1).any())
        assert torch.equal(spread, spread)
        assert not torch.equal(spread, spread + 1)
        assert ones(3, device_mesh=mesh, placements=[Shard(0)]).full_tensor().tolist() == [1, 1, 1]
        with mesh:
            assert zeros(2, 2).placements == (Replicate(),)
        for same in (torch.zeros_like(spread), spread.clone(), spread.to(torch.float64), spread.detach(), -spread):
            assert same.placements == spread.placements
        return repr(spread)

    shown = run_in_threads(work, 2)
    mesh = "device_mesh=DeviceMesh((2,), 'cpu', stride=(1,)), placements=(Shard(dim=0),))"
    assert shown == [f"DTensor(local_tensor=tensor([0., 1.]), {mesh}", f"DTensor(local_tensor=tensor([2.]), {mesh}"]


def test_functions_of_parts_and_plain_tensors_beside_spread_ones() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        whole = torch.arange(12.0).view(4, 3)
        spread = distribute_tensor(whole, mesh, [Shard(0)])
        with implicit_replication():
            assert torch.equal((spread + torch.ones(3)).full_tensor(), whole + 1)
        summed = local_map(lambda x, scale: x.sum(0) * scale, [Partial()], ([Shard(0)], None))
        assert torch.equal(summed(spread, 2).full_tensor(), whole.sum(0) * 2)
        with pytest.raises(ValueError, match="mismatched placements"):
            summed(distribute_tensor(whole, mesh, [Shard(1)]), 2)

    run_in_threads(work, 2)


def test_records_say_where_tensors_are_cut() -> None:
    """Ops have no entry by name in the rules: what their records say of dimensions keeps batches in parts."""

    def work(rank: int) -> list[Any]:
        mesh = init_device_mesh("cpu", (2,))
        matrices, images = (
            distribute_tensor(torch.randn(shape, generator=torch.Generator().manual_seed(0)), mesh, [Shard(0)])
            for shape in ((4, 3, 3), (4, 2, 6, 6))
        )
        results = [
            torch.linalg.qr(matrices).R,
            torch.cdist(matrices, matrices),
            torch.linalg.lu_factor(matrices).pivots,
            F.avg_pool2d(images, 2),
            F.interpolate(images, scale_factor=2.0),
            F.huber_loss(images, images, reduction="none"),
            images.cumsum(1),
            images.argmax(2),
        ]
        return [each.placements for each in results]

    for found in run_in_threads(work, 2):
        assert found == [(Shard(0),)] * 8


def test_autograd_takes_distributed_tensors() -> None:
    whole = torch.arange(12.0).reshape(4, 3)
    grad = torch.arange(12.0).reshape(4, 3).cos()

    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        for places in ([Shard(0)], [Shard(1)], [Replicate()]):
            leaf = distribute_tensor(whole, mesh, places).requires_grad_()
            (found,) = torch.autograd.grad((leaf * leaf).sum(), leaf)
            assert torch.equal(found.full_tensor(), 2 * whole), places
            weights = distribute_tensor(grad, mesh, [Shard(0)])
            (found,) = torch.autograd.grad(leaf.sin(), [leaf], weights)
            torch.testing.assert_close(found.full_tensor(), grad * whole.cos())
            assert isinstance(found, DTensor)
            torch.autograd.backward([leaf.mean(), leaf * 2], [None, weights])
            torch.testing.assert_close(leaf.grad.full_tensor(), grad * 2 + 1 / 12)
            other = distribute_tensor(whole, mesh, places).requires_grad_()
            assert torch.autograd.grad(leaf.sum(), [leaf, other], allow_unused=True)[1] is None

    run_in_threads(work, 2)
