"""Small training runs that draw random numbers wherever a program can, for the tests of resuming."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flambeau
from flambeau import nn
from flambeau.utils import TrainingState
from flambeau.utils.data import DataLoader, Dataset

EPOCHS, SAMPLES, BATCH = 2, 22, 4
STEPS = EPOCHS * -(-SAMPLES // BATCH)


class Noisy(Dataset[Any]):
    """Samples with noise from all three generators of the process, drawn where a sample is loaded."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        noise = flambeau.randn(self.shape) * random.random() + float(np.random.rand())
        return noise + index / SAMPLES, index % 3


class ConvNet(nn.Module):
    """The convolutional network of users' notes, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.conv2 = nn.Conv2d(4, 6, 3)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(24, 3)

    def forward(self, x: Any) -> Any:
        F = nn.functional
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(self.dropout(x.flatten(1)))


class Recurrent(nn.Module):
    """Two layers of LSTM with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 7, 2, batch_first=True, dropout=0.3)
        self.fc = nn.Linear(7, 3)

    def forward(self, x: Any) -> Any:
        return self.fc(self.lstm(x)[0][:, -1])


def seed_all(seed: int) -> None:
    flambeau.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


class Run:
    """One training run. `seed` differs in a process that resumes, to show that nothing of it stays."""

    def __init__(self, kind: str, workers: int, seed: int = 3) -> None:
        seed_all(seed)
        self.noise = np.random.default_rng(seed)
        order = None
        optim = flambeau.optim
        self.scaler: Any = flambeau.amp.GradScaler("cpu", 8.0, growth_interval=2, enabled=kind == "convnet")
        if kind == "convnet":
            self.model: Any = ConvNet()
            self.optimizer: Any = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
            self.scheduler: Any = optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)
            data = Noisy(1, 10, 10)
        else:
            self.model = Recurrent()
            self.optimizer = optim.Adam(self.model.parameters(), lr=0.05)
            self.scheduler = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 4)
            data = Noisy(6, 5)
            order = flambeau.Generator().manual_seed(seed)
        loader = DataLoader(data, BATCH, shuffle=True, num_workers=workers, generator=order)
        self.state = TrainingState(
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            scaler=self.scaler,
            loader=loader,
            generators=self.noise,
        )

    def train(self, after_step: Callable[[], Any] | None = None) -> Iterator[int]:
        """Train to the end; `after_step` is called where programs save, and then the step's number is given."""
        state = self.state
        state.values.setdefault("losses", [])
        for epoch in state.epochs(EPOCHS):
            offset = flambeau.rand(1)
            for inputs, targets in state.batches():
                output = self.model(inputs + offset + self.noise.random())
                loss = nn.functional.cross_entropy(output, targets)
                self.scaler.scale(loss).backward()
                if state.step % 2 == 0:  # gradients accumulate over two steps
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                    self.optimizer.zero_grad()
                state.values["losses"].append(loss.item().hex())
                if after_step is not None:
                    after_step()
                yield state.step
            self.scheduler.step()
            state.values["losses"].append((epoch, self.scheduler.get_last_lr()[0], self.scaler.get_scale()))
            if after_step is not None:
                after_step()

    def result(self) -> str:
        """Losses, learning rates, scales and the bits of the weights."""
        weights = {name: value.numpy().tobytes().hex() for name, value in self.model.state_dict().items()}
        return json.dumps([self.state.values["losses"], weights])


def complete(run: Run) -> str:
    """Train to the end without saving."""
    for _ in run.train():
        pass
    return run.result()
