"""Training on several devices: `DataParallel`, models cut in parts by hand, optimizers; losses beside PyTorch's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch as pytorch

import flambeau as torch
from flambeau import nn

COUNT = torch.cuda.device_count()
LAST = COUNT - 1
DEVICES = list(range(COUNT))


def network(T: Any) -> Any:
    """A small network with a convolution and a batch norm, which takes the place of the convolution's bias."""
    return T.nn.Sequential(
        T.nn.Conv2d(1, 4, 3, padding=1, bias=False), T.nn.BatchNorm2d(4), T.nn.ReLU(), T.nn.MaxPool2d(2),
        T.nn.Flatten(), T.nn.Linear(64, 16), T.nn.Tanh(), T.nn.Linear(16, 3),
    )  # fmt: skip


def pair(make: Any) -> tuple[Any, Any]:
    """A module of Flambeau's and one of PyTorch's with the same parameters."""
    pytorch.manual_seed(5)
    theirs = make(pytorch)
    ours = make(torch)
    ours.load_state_dict({name: torch.from_numpy(each.numpy()) for name, each in theirs.state_dict().items()})
    return ours, theirs


def batches(count: int) -> list[tuple[Any, Any]]:
    """Images and classes, as PyTorch's tensors."""
    generator = pytorch.Generator().manual_seed(1)
    return [
        (pytorch.randn(8, 1, 8, 8, generator=generator), pytorch.randint(3, (8,), generator=generator))
        for _ in range(count)
    ]


def ours_of(tensor: Any, place: Any) -> Any:
    return torch.from_numpy(tensor.numpy()).to(place)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_data_parallel(optimizer: str) -> None:
    """Each device has its own statistics of a batch norm, so that the reference computes with the same parts."""
    ours, theirs = pair(network)
    net = nn.DataParallel(ours.cuda(), device_ids=DEVICES)
    steps = getattr(torch.optim, optimizer)(net.parameters(), lr=0.05)
    their_steps = getattr(pytorch.optim, optimizer)(theirs.parameters(), lr=0.05)
    for images, classes in batches(4):
        output = net(ours_of(images, "cuda"))
        loss = nn.functional.cross_entropy(output, ours_of(classes, "cuda"))
        steps.zero_grad()
        loss.backward()
        steps.step()
        parts = [
            theirs(part) if number == 0 else pytorch.func.functional_call(copy.deepcopy(theirs), params(theirs), part)
            for number, part in enumerate(images.chunk(COUNT))
        ]
        expected: Any = pytorch.nn.functional.cross_entropy(pytorch.cat(parts), classes)
        their_steps.zero_grad()
        expected.backward()
        their_steps.step()
        assert str(output.device) == "cuda:0"
        assert loss.item() == pytest.approx(expected.item(), rel=2e-5)
    for own, other in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        assert torch.allclose(own.cpu().float(), ours_of(other, "cpu").float(), 1e-4, 1e-5)


def params(module: Any) -> dict[str, Any]:
    return dict(module.named_parameters())


def test_programs_of_notes() -> None:
    """`net = torch.nn.DataParallel(model, device_ids=[0, 1, 2])` and what follows it."""
    ours, theirs = pair(lambda T: T.nn.Linear(2, 2))
    input_var = torch.arange(12.0).reshape(6, 2)
    if COUNT < 3:
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            torch.nn.DataParallel(ours.cuda(), device_ids=[0, 1, 2])
        return
    net = torch.nn.DataParallel(ours.cuda(), device_ids=[0, 1, 2])
    output = net(input_var)
    assert torch.allclose(output.cpu(), ours_of(theirs(pytorch.arange(12.0).reshape(6, 2)).detach(), "cpu"))


def test_parts_of_data_parallel() -> None:
    module: Any = nn.Linear(3, 2).cuda()
    inputs = nn.parallel.scatter(torch.arange(12.0).reshape(4, 3), DEVICES)
    assert [str(each.device) for each in inputs] == [f"cuda:{each}" for each in DEVICES]
    replicas = nn.parallel.replicate(module, DEVICES)
    assert [str(each.weight.device) for each in replicas] == [f"cuda:{each}" for each in DEVICES]
    results = nn.parallel.parallel_apply(replicas, [(each,) for each in inputs], devices=DEVICES)
    whole = nn.parallel.gather(results, LAST)
    assert str(whole.device) == f"cuda:{LAST}"
    whole.sum().backward()
    assert str(module.weight.grad.device) == "cuda:0"
    assert torch.allclose(module.weight.grad.cpu(), torch.arange(12.0).reshape(4, 3).sum(0).expand(2, 3))


def test_parallel_apply_names_the_device_of_an_error() -> None:
    replicas = nn.parallel.replicate(nn.Linear(3, 2).cuda(), DEVICES)
    wrong = [(torch.ones(1, 3 + (each == LAST), device=f"cuda:{each}"),) for each in DEVICES]
    with pytest.raises(RuntimeError, match=f"in replica {LAST} on device {LAST}"):
        nn.parallel.parallel_apply(replicas, wrong, devices=DEVICES)


class Halves(nn.Module):
    """A model whose second half is on the last device."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__()
        self.a, self.b = first.to(0), second.to(LAST)

    def forward(self, x: Any) -> Any:
        return self.b(self.a(x.to(0)).relu().to(LAST))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("foreach", [None, False])
def test_a_model_cut_in_halves(optimizer: str, foreach: bool | None) -> None:
    first, their_first = pair(lambda T: T.nn.Linear(6, 8))
    second, their_second = pair(lambda T: T.nn.Linear(8, 3))
    model: Any = Halves(first, second)
    their_params = [*their_first.parameters(), *their_second.parameters()]
    steps = getattr(torch.optim, optimizer)(model.parameters(), lr=0.02, foreach=foreach)
    their_steps = getattr(pytorch.optim, optimizer)(their_params, lr=0.02)
    generator = pytorch.Generator().manual_seed(2)
    for _ in range(4):
        x, target = (pytorch.randn(5, each, generator=generator) for each in (6, 3))
        loss = nn.functional.mse_loss(model(ours_of(x, "cpu")), ours_of(target, LAST))
        steps.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        expected: Any = pytorch.nn.functional.mse_loss(their_second(their_first(x).relu()), target)
        their_steps.zero_grad()
        expected.backward()
        their_norm = pytorch.nn.utils.clip_grad_norm_(their_params, 1.0)
        their_steps.step()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        assert norm.item() == pytest.approx(their_norm.item(), rel=1e-5)
    assert [str(each.grad.device) for each in model.parameters()] == ["cuda:0"] * 2 + [f"cuda:{LAST}"] * 2


def test_a_checkpoint_goes_on_elsewhere(tmp_path: Any) -> None:
    """Saved after two steps on the first device, loaded on the last one: the third step is the same."""
    ours, _ = pair(lambda T: T.nn.Linear(4, 2))
    ours = ours.cuda(0)
    steps = torch.optim.Adam(ours.parameters(), lr=0.1)
    data = torch.arange(12.0).reshape(3, 4)

    def train(module: Any, optimizer: Any, place: int) -> float:
        loss = module(data.to(place)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss)

    for _ in range(2):
        train(ours, steps, 0)
    torch.save({"model": ours.state_dict(), "steps": steps.state_dict()}, tmp_path / "state.pt")
    there = nn.Linear(4, 2).cuda(LAST)
    steps_there = torch.optim.Adam(there.parameters(), lr=0.1)
    content = torch.load(tmp_path / "state.pt", map_location={"cuda:0": f"cuda:{LAST}"})
    there.load_state_dict(content["model"])
    steps_there.load_state_dict(content["steps"])
    for _ in range(2):
        assert train(there, steps_there, LAST) == train(ours, steps, 0)
    assert {str(each.device) for each in there.parameters()} == {f"cuda:{LAST}"}


def test_loss_scales_and_autocast_on_several_devices() -> None:
    model: Any = Halves(nn.Linear(4, 4), nn.Linear(4, 2))
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.ones(3, 4)).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(steps)
    scaler.update()
    assert all(torch.isfinite(each.grad).all().item() for each in model.parameters())


def test_gradients_of_one_tensor_used_on_all_devices() -> None:
    x: Any = torch.arange(3.0, device="cuda:0", requires_grad=True)
    total: Any = sum([(x.to(each) * (each + 1)).sum().to(0) for each in DEVICES])
    total.backward()
    assert x.grad.tolist() == [sum(range(1, COUNT + 1))] * 3
