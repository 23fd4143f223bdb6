"""Programs of users' notes about several GPUs, trained for some steps: losses are PyTorch's on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch as pytorch

import flambeau as torch

COUNT = torch.cuda.device_count()
IDS = [0, 1, 2] if COUNT > 2 else [0, 1]


def digits(T: Any) -> Any:
    """A network for images of digits, with two convolutions."""

    class Digits(T.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = T.nn.Conv2d(1, 4, 5)
            self.pool1 = T.nn.MaxPool2d(2, 2)
            self.conv2 = T.nn.Conv2d(4, 6, 5)
            self.pool2 = T.nn.MaxPool2d(2, 2)
            self.fc1 = T.nn.Linear(96, 20)
            self.fc2 = T.nn.Linear(20, 10)

        def forward(self, input: Any) -> Any:
            x = self.pool1(T.nn.functional.relu(self.conv1(input)))
            x = self.pool2(T.nn.functional.relu(self.conv2(x)))
            x = x.view(x.size(0), -1)
            return self.fc2(T.nn.functional.relu(self.fc1(x)))

    return Digits()


def steps(T: Any) -> Any:
    """A cell that is used at every time step; the loss is the sum over them."""

    class Steps(T.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.i2h = T.nn.Linear(9, 5)
            self.h2o = T.nn.Linear(5, 3)

        def forward(self, data: Any, last_hidden: Any) -> tuple[Any, Any]:
            hidden = self.i2h(T.cat((data, last_hidden), 1))
            return hidden, self.h2o(hidden)

    return Steps()


def alike(make: Any) -> tuple[Any, Any]:
    """A module of Flambeau's and one of PyTorch's with the same parameters."""
    pytorch.manual_seed(3)
    theirs, ours = make(pytorch), make(torch)
    ours.load_state_dict({name: torch.from_numpy(each.numpy()) for name, each in theirs.state_dict().items()})
    return ours, theirs


def of(T: Any, tensor: Any, place: Any) -> Any:
    return tensor if T is pytorch else torch.from_numpy(tensor.numpy()).to(place)


def test_data_parallel_trains_a_convolutional_network() -> None:
    ours, theirs = alike(digits)
    net = torch.nn.DataParallel(ours.cuda(), device_ids=IDS)
    found: dict[Any, list[float]] = {torch: [], pytorch: []}
    for T, model, parameters in ((torch, net, ours.parameters()), (pytorch, theirs, theirs.parameters())):
        pytorch.manual_seed(7)
        optimizer = T.optim.SGD(parameters, lr=0.05, momentum=0.9)
        loss_fn = T.nn.CrossEntropyLoss()
        for _ in range(4):
            images, target = pytorch.randn(6, 1, 28, 28), pytorch.randint(10, (6,))
            output = model(of(T, images, "cuda"))
            loss = loss_fn(output, of(T, target, "cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found[T].append(loss.item())
    assert found[torch] == pytest.approx(found[pytorch], rel=1e-4)


def test_data_parallel_with_a_loop_over_time() -> None:
    ours, theirs = alike(steps)
    net = torch.nn.DataParallel(ours.cuda(), device_ids=IDS)
    found: dict[Any, list[float]] = {torch: [], pytorch: []}
    for T, model, parameters in ((torch, net, ours.parameters()), (pytorch, theirs, theirs.parameters())):
        pytorch.manual_seed(8)
        optimizer = T.optim.Adam(parameters, lr=0.02)
        loss_fn = T.nn.MSELoss()
        for _ in range(3):
            batch, target = of(T, pytorch.randn(6, 4), "cuda"), of(T, pytorch.zeros(6, 3), "cuda")
            hidden = of(T, pytorch.zeros(6, 5), "cuda")
            loss: Any = 0
            for _ in range(4):
                hidden, output = model(batch, hidden)
                loss = loss + loss_fn(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found[T].append(loss.item())
    assert found[torch] == pytest.approx(found[pytorch], rel=1e-4)


@pytest.mark.parametrize(
    ("saved", "options", "place"),
    [
        ("cuda:0", {"map_location": "cpu"}, "cpu"), ("cuda:0", {}, "cuda:1"), ("cuda:1", {}, "cuda:1"),
        ("cpu", {"map_location": "cuda:0"}, "cuda:1"), ("cuda:1", {"map_location": {"cuda:1": "cuda:0"}}, "cuda:0"),
    ],
)  # fmt: skip
def test_a_model_saved_on_one_device_trains_on_another(saved: str, options: Any, place: str, tmp_path: Any) -> None:
    ours, theirs = alike(steps)
    path = tmp_path / "model.pt"
    torch.save(ours.to(saved).state_dict(), path)
    model: Any = steps(torch)
    model.load_state_dict(torch.load(path, **options))
    device = torch.device(place)
    model.to(device)
    data, hidden = pytorch.ones(2, 4), pytorch.zeros(2, 5)
    losses: list[list[float]] = [[], []]
    for number, (T, net) in enumerate(((torch, model), (pytorch, theirs))):
        optimizer = T.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            loss = net(of(T, data, device), of(T, hidden, device))[1].square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[number].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert {str(each.device) for each in model.parameters()} == {place}


def test_hooks_of_replicas() -> None:
    """Forward and backward hooks of a layer run once for each replica, each with its part."""
    ours, _ = alike(digits)
    seen: list[Any] = []
    ours.conv2.register_forward_hook(lambda module, inputs, output: seen.append((str(output.device), len(inputs[0]))))
    net: Any = torch.nn.DataParallel(ours.cuda(), device_ids=[0, 1])
    net(torch.ones(4, 1, 28, 28, device="cuda")).sum().backward()
    assert sorted(seen) == [("cuda:0", 2), ("cuda:1", 2)]
