"""Layers spread over processes: outputs, gradients and training are those of one process."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from flambeau.distributed.testing import run_in_threads

F = nn.functional
GENERATOR = torch.Generator().manual_seed(3)
TOKENS = torch.randint(0, 12, (3, 2, 4), generator=GENERATOR)
TARGETS = torch.randint(0, 12, (3, 2, 4), generator=GENERATOR)


class Attention(nn.Module):
    """Heads of which each process has some: their number is found by the size of what arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Any) -> Any:
        q, k, v = (layer(x).unflatten(-1, (-1, 2)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).flatten(2))


class Feedforward(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        return self.down(F.gelu(self.up(x)))


class Model(nn.Module):
    """A transformer with one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(12, 8)
        self.layers = nn.ModuleList([nn.ModuleDict({
            "attention": Attention(), "feedforward": Feedforward(),
            "attention_norm": nn.LayerNorm(8), "feedforward_norm": nn.RMSNorm(8),
        })])  # fmt: skip
        self.norm, self.output = nn.LayerNorm(8), nn.Linear(8, 12, bias=False)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for each in self.parameters():
                each.copy_(torch.randn(each.shape, generator=generator) * 0.4)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens)
        for layer in self.layers:
            x = x + layer["attention"](layer["attention_norm"](x))
            x = x + layer["feedforward"](layer["feedforward_norm"](x))
        return self.output(self.norm(x))


def trained(model: Any, loss_of: Any) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for tokens, targets in zip(TOKENS, TARGETS, strict=True):
        optimizer.zero_grad()
        loss = loss_of(model(tokens), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def plain_loss(logits: Any, targets: Any) -> Any:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def compare(spread: nn.Module, whole: nn.Module) -> None:
    for (name, one), (other, two) in zip(spread.named_parameters(), whole.named_parameters(), strict=True):
        assert name == other
        value = one.full_tensor() if isinstance(one, DTensor) else one
        torch.testing.assert_close(value, two, msg=lambda text, name=name: f"{name}: {text}")


def test_columns_and_rows() -> None:
    whole = Model()
    losses = trained(whole, plain_loss)
    columns, rows = ColwiseParallel(), RowwiseParallel()
    plan = {
        "tokens": RowwiseParallel(),
        "layers.*.attention.q": columns, "layers.*.attention.k": columns, "layers.*.attention.v": columns,
        "layers.*.attention.out": rows,
        "layers.*.feedforward.up": columns, "layers.*.feedforward.down": rows,
        "output": ColwiseParallel(output_layouts=Replicate()),
    }  # fmt: skip
    plan["tokens"].input_layouts = (Replicate(),)

    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        model = parallelize_module(Model(), mesh, plan)
        assert model.layers[0]["attention"].q.weight.to_local().shape == (4, 8)
        assert model.layers[0]["feedforward"].down.weight.placements == (Shard(1),)
        assert trained(model, plain_loss) == pytest.approx(losses, rel=1e-5)
        compare(model, whole)

    run_in_threads(work, 2)


def test_sequences_and_the_loss() -> None:
    whole = Model()
    losses = trained(whole, plain_loss)

    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        columns, rows = ColwiseParallel(), RowwiseParallel(output_layouts=Shard(1))
        gathers = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        layer = {
            "attention_norm": SequenceParallel(), "attention": gathers,
            "attention.q": columns, "attention.k": columns, "attention.v": columns, "attention.out": rows,
            "feedforward_norm": SequenceParallel(), "feedforward": gathers,
            "feedforward.up": columns, "feedforward.down": rows,
        }  # fmt: skip
        model = parallelize_module(Model(), mesh, {
            "tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            **{f"layers.*.{name}": style for name, style in layer.items()},
            "norm": SequenceParallel(),
            "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
        })  # fmt: skip

        def loss_of(logits: Any, targets: Any) -> Any:
            assert logits.placements == (Shard(2),)
            with loss_parallel():
                loss = plain_loss(logits, targets)
            assert loss.placements == (Replicate(),)
            return loss

        assert trained(model, loss_of) == pytest.approx(losses, rel=1e-5)
        compare(model, whole)

    run_in_threads(work, 2)


def test_inputs_and_outputs_are_prepared() -> None:
    class Doubled(nn.Module):
        def forward(self, x: Any, *, y: Any) -> Any:
            assert isinstance(x, DTensor)
            assert isinstance(y, DTensor)
            return x * 2 + y, x

    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        style = PrepareModuleInputOutput(
            input_layouts=Shard(0), desired_input_layouts=Replicate(),
            input_kwarg_layouts={"y": Replicate()}, desired_input_kwarg_layouts={"y": Replicate()},
            output_layouts=(Replicate(), None), desired_output_layouts=(Shard(0), None),
        )  # fmt: skip
        model = parallelize_module(Doubled(), mesh, style)
        first, second = model(torch.full((2, 3), float(rank)), y=torch.ones(4, 3))
        assert torch.equal(first, torch.full((2, 3), 2.0 * rank + 1))
        assert isinstance(second, DTensor)
        assert second.shape == (4, 3)

    run_in_threads(work, 2)


def test_what_it_says() -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        with pytest.raises(NotImplementedError, match=r"only support nn.Linear and nn.Embedding"):
            parallelize_module(nn.ReLU(), mesh, ColwiseParallel())
        with pytest.raises(ValueError, match="a mesh of one dimension"):
            parallelize_module(nn.ReLU(), init_device_mesh("cpu", (2, 1)), ColwiseParallel())
        with pytest.raises(AssertionError, match="should have same length"):
            PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=(Shard(0), Partial()))

    run_in_threads(work, 2)
    assert repr(ColwiseParallel()) == (
        "ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), use_local_output=True)"
    )
    assert repr(SequenceParallel()) == "SequenceParallel(sequence_dim=1, use_local_output=False)"
