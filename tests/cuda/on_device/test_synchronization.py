"""Where the host waits for the device, and what it learns then."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau._backends.cuda.runtime.synchronization import SYNCHRONIZATIONS
from tests.cuda.on_device.conftest import is_simulated

cuda = torch.cuda
F = torch.nn.functional


def _steps(make: Any, autocast: bool = False) -> Any:
    torch.manual_seed(0)
    layers = torch.nn
    net = layers.Sequential(
        layers.Embedding(11, 16), layers.Linear(16, 32), layers.GELU(), layers.LayerNorm(32), layers.Dropout(0.1),
        layers.Flatten(), layers.Linear(128, 5),
    ).cuda()  # fmt: skip
    optimizer = make(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    given, labels = torch.randint(0, 11, (6, 4)).cuda(), torch.randint(0, 5, (6,)).cuda()

    def step() -> Any:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(net(given), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        return loss.detach()

    step()
    return step


@pytest.mark.parametrize("name", ["SGD", pytest.param("Adam", marks=pytest.mark.needs_gpu), "AdamW"])
@pytest.mark.parametrize(
    "autocast", [False, pytest.param(True, marks=pytest.mark.needs_gpu)], ids=["float32", "autocast"]
)
def test_a_training_step_does_not_wait(name: str, autocast: bool) -> None:
    step = _steps(lambda params: getattr(torch.optim, name)(params, 1e-2), autocast)
    cuda.set_sync_debug_mode("error")
    before = SYNCHRONIZATIONS.count
    losses = [step() for _ in range(3)]
    assert SYNCHRONIZATIONS.count == before
    cuda.set_sync_debug_mode("default")
    assert all(each.item() > 0 for each in losses)
    assert SYNCHRONIZATIONS.count == before + 3


def _scaled_training(name: str, options: dict[str, Any], device: str, infinite: tuple[int, ...]) -> list[Any]:
    """Steps with a scaled loss, some of which are infinite: parameters, states, the scale."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(device)
    optimizer = getattr(torch.optim, name)(net.parameters(), 1e-2, fused=True, **options)
    scaler = torch.amp.GradScaler(device, init_scale=1000.0, growth_interval=2)
    given, labels = torch.randn(5, 6).to(device), torch.randint(0, 3, (5,)).to(device)
    factors = [torch.tensor(torch.inf if step in infinite else 1.0).to(device) for step in range(6)]
    before = SYNCHRONIZATIONS.count
    if device == "cuda":
        cuda.set_sync_debug_mode("error")
    for factor in factors:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(net(given), labels) * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    cuda.set_sync_debug_mode("default")
    assert SYNCHRONIZATIONS.count == before
    seen: list[Any] = [*net.parameters(), *[each.grad for each in net.parameters()]]
    seen += [each for state in optimizer.state.values() for each in state.values()]
    return [scaler.get_scale(), *[each.detach().cpu() for each in seen]]


@pytest.mark.parametrize("infinite", [(), (0, 3), (5,)])
@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True, "maximize": True})],
)
def test_a_fused_optimizer_skips_without_a_wait(name: str, options: dict[str, Any], infinite: tuple[int, ...]) -> None:
    """As on the CPU, where the answer is read."""
    expected = _scaled_training(name, options, "cpu", infinite)
    actual = _scaled_training(name, options, "cuda", infinite)
    assert actual[0] == expected[0]
    for found, wanted in zip(actual[1:], expected[1:], strict=True):
        assert torch.allclose(found, wanted, 1e-5, 1e-6, equal_nan=True)


def test_modes() -> None:
    given = torch.ones(3, device="cuda")
    assert cuda.get_sync_debug_mode() == 0
    cuda.set_sync_debug_mode("warn")
    assert cuda.get_sync_debug_mode() == 1
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation") as caught:
        given.sum().item()
    if not is_simulated():  # whose driver is no part of the package
        assert caught[0].filename == __file__
    cuda.set_sync_debug_mode(2)
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        given.tolist()
    cuda.synchronize()
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        cuda.set_sync_debug_mode("loud")


_POSITIONS = [0, 1, 7, 2]
_WRONG = {
    "nll_loss": lambda index: F.cross_entropy(torch.zeros(4, 3, device="cuda"), index),
    "embedding": lambda index: F.embedding(index, torch.ones(3, 5, device="cuda", requires_grad=True)),
    "index_select": lambda index: torch.ones(3, 5, device="cuda").index_select(0, index),
    "gather": lambda index: torch.ones(3, 5, device="cuda").gather(0, index.expand(1, 4)),
    "indexing": lambda index: torch.ones(3, 5, device="cuda")[index],
    "take": lambda index: torch.ones(7, device="cuda").take(index),
}


@pytest.mark.parametrize("op", _WRONG)
def test_a_wrong_index_is_reported_at_the_next_wait(op: str) -> None:
    results = []

    def run() -> None:
        results.append(_WRONG[op](torch.tensor(_POSITIONS, device="cuda")))
        results[0].sum().item()

    with pytest.raises(IndexError, match=f"(?s)7 is out of bounds.*{op}.*test_synchronization.py"):
        run()
    assert results or is_simulated()  # whose library is NumPy, which looks at indices too
    cuda.synchronize()  # once
    assert torch.ones(2, device="cuda").sum().item() == 2


@pytest.mark.needs_gpu
def test_training_goes_on_after_a_wrong_index() -> None:
    table: Any = torch.nn.Embedding(5, 4).cuda()
    table(torch.tensor([1, 9], device="cuda")).sum().backward()
    with pytest.raises(IndexError, match=r"9 is out of bounds.*embedding"):
        cuda.synchronize()
    assert bool(table.weight.grad.isfinite().all())
    table.zero_grad()
    table(torch.tensor([1, 1], device="cuda")).sum().backward()
    assert table.weight.grad.sum(1).tolist() == [0, 8, 0, 0, 0]
