"""`DistributedDataParallel` in two processes, each with several devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch as pytorch

import flambeau as torch
from flambeau import nn

_SCRIPT = """
import json, sys
from tests.support.simulated_cuda import install_simulated_device
install_simulated_device(2)
import flambeau as torch
from flambeau import distributed, nn

rank, file = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
torch.manual_seed(0)

class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 5).to(0), nn.Linear(5, 2).to(1)

    def forward(self, x):
        return self.b(self.a(x.to(0)).tanh().to(1))

def train(model, module):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.arange(16.0).reshape(4, 4).chunk(2)[rank] / 8 - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    places = [str(each.device) for each in module.parameters()]
    return {name: each.tolist() for name, each in module.state_dict().items()}, places

found = []
for module, device_ids in ((Halves(), None), (nn.Linear(4, 2).to(rank), [rank])):
    model = nn.parallel.DistributedDataParallel(module, device_ids=device_ids)
    begin = {name: each.tolist() for name, each in module.state_dict().items()}
    found.append((begin, *train(model, module)))
print(json.dumps(found))
"""


def _trained(begin: dict[str, Any], forward: Any) -> dict[str, Any]:
    """Parameters after three steps with PyTorch on the whole batch."""
    weights = {name: pytorch.tensor(each, requires_grad=True) for name, each in begin.items()}
    optimizer = pytorch.optim.SGD(weights.values(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        forward(weights, pytorch.arange(16.0).reshape(4, 4) / 8 - 1).square().mean().backward()
        optimizer.step()
    return weights


def _halves(weights: Any, x: Any) -> Any:
    hidden = pytorch.nn.functional.linear(x, weights["a.weight"], weights["a.bias"]).tanh()
    return pytorch.nn.functional.linear(hidden, weights["b.weight"], weights["b.bias"])


def _linear(weights: Any, x: Any) -> Any:
    return pytorch.nn.functional.linear(x, weights["weight"], weights["bias"])


@pytest.mark.skipif(torch.cuda.device_count() != 2, reason="its processes have two simulated devices each")
def test_two_processes_with_two_devices_each(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", _SCRIPT, str(rank), str(tmp_path / "store")] for rank in range(2)]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for each in commands]
    outputs = [each.communicate(timeout=120) for each in running]
    assert [each.returncode for each in running] == [0, 0], outputs
    found = [json.loads(out.splitlines()[-1]) for out, _ in outputs]
    for number, forward in enumerate((_halves, _linear)):
        (begin, end, places), (_, other_end, other_places) = found[0][number], found[1][number]
        assert end == other_end
        assert (places, other_places) == (
            (["cuda:0"] * 2 + ["cuda:1"] * 2,) * 2 if number == 0 else (["cuda:0"] * 2, ["cuda:1"] * 2)
        )
        for name, expected in _trained(begin, forward).items():
            assert pytorch.allclose(pytorch.tensor(end[name]), expected.detach(), 1e-5, 1e-6)


@pytest.fixture
def _alone(tmp_path: Path) -> Any:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("_alone")
def test_device_ids_name_one_device() -> None:
    ddp = nn.parallel.DistributedDataParallel
    with pytest.raises(ValueError, match="device_ids can only be None or contain a single element"):
        ddp(nn.Linear(2, 2).cuda(), device_ids=[0, 1])
    with pytest.raises(ValueError, match="only work with single-device"):
        ddp(nn.Linear(2, 2), device_ids=[0])
    model = ddp(nn.Linear(2, 2).to(1), device_ids=[1])
    assert (model.device_ids, model.output_device) == ([1], 1)
    assert str(model(torch.ones(3, 2)).device) == "cuda:1"
    assert str(model(input=torch.ones(3, 2)).device) == "cuda:1"
