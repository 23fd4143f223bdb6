"""Models in stages: outputs, losses and gradients are those of the whole model."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    SplitPoint,
    pipe_split,
    pipeline,
)
from flambeau.distributed.testing import run_in_threads

F = nn.functional


class Layer(nn.Module):
    """A layer that adds to what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 6)

    def forward(self, x: Any) -> Any:
        return x + self.second(self.first(x).tanh())


class Model(nn.Module):
    """Layers of which the last uses what came before the first."""

    def __init__(self, count: int, splits: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(10, 6)
        self.layers = nn.ModuleList(Layer() for _ in range(count))
        self.output = nn.Linear(6, 3)
        self.splits = splits
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for each in self.parameters():
                each.copy_(torch.randn(each.shape, generator=generator) * 0.3)

    def forward(self, tokens: Any) -> Any:
        start = x = self.tokens(tokens)
        for layer in self.layers:
            if self.splits:
                pipe_split()
            x = layer(x)
        return self.output(x + start)


GENERATOR = torch.Generator().manual_seed(5)
TOKENS = torch.randint(0, 10, (8, 4), generator=GENERATOR)
TARGETS = torch.randn(8, 4, 3, generator=GENERATOR)


@pytest.mark.parametrize(("schedule", "size"), [(ScheduleGPipe, 2), (Schedule1F1B, 2), (Schedule1F1B, 4)])
def test_stages_that_were_cut(schedule: Any, size: int) -> None:
    whole = Model(size)
    output = whole(TOKENS)
    loss = F.mse_loss(output, TARGETS)
    loss.backward()
    grads = {name: each.grad for name, each in whole.named_parameters()}

    spec = {f"layers.{number}": SplitPoint.BEGINNING for number in range(1, size)}
    # Tracing is a matter of the whole process: the threads that play processes do not do it at once.
    pipes = [pipeline(Model(size), (TOKENS[:2],), split_spec=spec) for _ in range(size)]

    def work(rank: int) -> set[str]:
        pipe = pipes[rank]
        assert pipe.num_stages == size
        torch.testing.assert_close(pipe(TOKENS), output)
        stage = pipe.build_stage(rank, torch.device("cpu"))
        run = schedule(stage, 4, loss_fn=F.mse_loss)
        for _ in range(2):
            stage.submod.zero_grad()
            losses: list[Any] = []
            if rank == 0:
                run.step(TOKENS)
            elif rank == size - 1:
                found = run.step(target=TARGETS, losses=losses)
                torch.testing.assert_close(found, output)
                torch.testing.assert_close(torch.stack(losses).mean(), loss)
            else:
                run.step()
            for name, each in stage.submod.named_parameters():
                torch.testing.assert_close(each.grad, grads[name], msg=lambda text, name=name: f"{name}: {text}")
        shown = run.eval(TOKENS) if rank == 0 else run.eval()
        if rank == size - 1:
            torch.testing.assert_close(shown, output)
        return {name for name, _ in stage.submod.named_parameters()}

    assert set.union(*run_in_threads(work, size)) == set(grads)


def test_marks_in_the_forward_function() -> None:
    whole = Model(2)
    pipe = pipeline(Model(2, splits=True), (TOKENS,))
    assert pipe.num_stages == 3
    assert [name for name, _ in pipe.get_stage_module(1).named_parameters()] == [
        f"layers.0.{part}.{kind}" for part in ("first", "second") for kind in ("weight", "bias")
    ]
    torch.testing.assert_close(pipe(TOKENS), whole(TOKENS))
    at_end = pipeline(Model(2), (TOKENS,), split_spec={"layers.0": SplitPoint.END})
    assert at_end.num_stages == 2
    torch.testing.assert_close(at_end(TOKENS), whole(TOKENS))


def test_stages_made_by_hand_train() -> None:
    parts = [nn.Sequential(nn.Linear(4, 5), nn.ReLU()), nn.Linear(5, 2)]
    whole = nn.Sequential(*copy.deepcopy(parts))
    x, y = torch.randn(6, 4), torch.randn(6, 2)
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        F.mse_loss(whole(x), y).backward()
        optimizer.step()

    def work(rank: int) -> Any:
        stage = PipelineStage(copy.deepcopy(parts[rank]), rank, 2, torch.device("cpu"))
        run = Schedule1F1B(stage, 3, F.mse_loss)
        own = torch.optim.SGD(stage.submod.parameters(), lr=0.5)
        for _ in range(3):
            own.zero_grad()
            run.step(*((x,) if rank == 0 else ()), target=y if rank else None)
            own.step()
        return stage.submod.state_dict()

    found = run_in_threads(work, 2)
    for number, state in enumerate(found):
        for name, value in state.items():
            torch.testing.assert_close(value, whole[number].state_dict()[name])


def test_what_it_says() -> None:
    def work(rank: int) -> None:
        stage = PipelineStage(nn.Linear(2, 2), rank, 2, torch.device("cpu"))
        assert stage.is_first == (rank == 0)
        assert stage.is_last == (rank == 1)
        with pytest.raises(ValueError, match="greater than or equal to the number of stages"):
            Schedule1F1B(stage, 1)
        with pytest.raises(RuntimeError, match="cannot be larger than number of stages"):
            PipelineStage(nn.Linear(2, 2), 0, 1, torch.device("cpu"))
        if rank == 0:
            with pytest.raises(RuntimeError, match="cannot be cut into 4"):
                ScheduleGPipe(stage, 4).step(torch.ones(3, 2))

    run_in_threads(work, 2)
    with pytest.raises(AttributeError):
        pipeline(nn.Linear(2, 2), (torch.ones(1, 2),), split_spec={"nowhere": SplitPoint.END})
