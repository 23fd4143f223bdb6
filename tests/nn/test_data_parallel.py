"""`DataParallel` and its parts, on several devices that the CPU plays."""

from __future__ import annotations

import collections
import io
import os
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import pytest
import torch as pytorch

import flambeau
from flambeau import nn
from flambeau._core import device as devices
from flambeau.nn.parallel import comm, data_parallel, gather, parallel_apply, replicate, scatter
from flambeau.nn.parallel.scatter_gather import scatter_kwargs

from ..support.differential import differential

CPUS = ["cpu", "cpu:1", "cpu:2"]


@pytest.fixture(autouse=True)
def several_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "CPU_DEVICES", 4)


def places(tensors: Any) -> list[str]:
    return [str(each.device) for each in tensors]


# ----- devices that the CPU plays -------------------------------------------------------------------------------------


def test_devices_are_apart() -> None:
    x = flambeau.arange(3.0)
    y = x.to("cpu:1")
    assert (str(y.device), y.is_cpu, y.get_device(), y.type()) == ("cpu:1", True, 1, "torch.FloatTensor")
    assert "device='cpu:1'" in repr(y)
    y.add_(1)
    assert x.tolist() == [0, 1, 2]
    assert y.tolist() == [1, 2, 3]
    assert y.to("cpu:1") is y
    assert x.to(x.device) is x
    assert y.cpu().device is x.device is flambeau.ones(1, device="cpu:0").device
    assert {str(y.to(flambeau.float64).device), str(y.long().device), str((y * 2).device)} == {"cpu:1"}
    assert str((flambeau.tensor(2.0) * y).device) == "cpu:1"  # a number goes along
    with flambeau.device("cpu:2"):
        assert str(flambeau.ones(2).device) == "cpu:2"


@pytest.mark.parametrize(
    "meeting",
    [
        lambda x, y: x + y,
        lambda x, y: x.add_(y),
        lambda x, y: x @ y,
        lambda x, y: flambeau.cat([x, y]),
        lambda x, y: flambeau.where(x > 0, x, y),
        lambda x, y: nn.functional.linear(x, y),
        lambda x, y: x * y.sum(),  # a number, but not the CPU's
    ],
)
def test_devices_do_not_meet(meeting: Any) -> None:
    x, y = flambeau.ones(2, 2), flambeau.ones(2, 2, device="cpu:1")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
        meeting(x, y)


def test_misuse_of_devices() -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal: cpu:4"):
        flambeau.ones(2, device="cpu:4")
    with pytest.raises(TypeError, match="can't convert cpu:1 device type tensor to numpy"):
        flambeau.ones(2, device="cpu:1").numpy()


def test_gradients_return_to_their_device() -> None:
    x = flambeau.ones(3, requires_grad=True)
    number = flambeau.tensor(2.0, requires_grad=True)
    moved = x.to("cpu:1", flambeau.float64)
    assert moved.grad_fn.name() == "ToCopyBackward0"
    (moved * number).sum().backward()
    assert str(x.grad.device) == "cpu"
    assert x.grad.tolist() == [2, 2, 2]
    assert x.grad.dtype is flambeau.float32
    assert str(number.grad.device) == "cpu"
    assert number.grad.item() == 3
    y = flambeau.ones(2, device="cpu:1", requires_grad=True)
    z = flambeau.zeros(2).copy_(y)
    assert z.grad_fn.name() == "torch::autograd::CopyBackwards"
    (z * 3).sum().backward()
    assert str(y.grad.device) == "cpu:1"
    assert y.grad.tolist() == [3, 3]


def test_saving_and_loading() -> None:
    file = io.BytesIO()
    flambeau.save(flambeau.arange(3.0, device="cpu:1"), file)
    for load, options, place in (
        (pytorch.load, {}, "cpu"),  # PyTorch knows of one CPU
        (flambeau.load, {}, "cpu"),
        (flambeau.load, {"map_location": "cpu:2"}, "cpu:2"),
    ):
        file.seek(0)
        loaded = load(file, **options)
        assert str(loaded.device) == place
        assert loaded.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "expected"), [("3", "cpu:2"), (None, "cpu"), ("none", "ValueError"), ("0", "ValueError")]
)
def test_environment_variable(value: str | None, expected: str) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "FLAMBEAU_CPU_DEVICES"}
    environment |= {} if value is None else {"FLAMBEAU_CPU_DEVICES": value}
    program = "import flambeau; print(flambeau.ones(1, device='cpu:2').device)"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert expected in (done.stdout or done.stderr)
    assert "ValueError" not in expected or "FLAMBEAU_CPU_DEVICES must be a number" in done.stderr


# ----- scatter and gather ---------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Any
    right: Any


def test_scatter_through_containers() -> None:
    x, note = flambeau.arange(5), object()
    value = {"pair": Pair(x, [x, note]), "nothing": None, "empty": (), "more": (x, {"deep": x})}
    parts = scatter(collections.OrderedDict(value), CPUS)
    assert [type(part) for part in parts] == [collections.OrderedDict] * 3
    for part, place, expected in zip(parts, CPUS, ([0, 1], [2, 3], [4]), strict=True):
        assert isinstance(part["pair"], Pair)
        assert isinstance(part["pair"].right, list)
        assert part["pair"].right[1] is note
        assert part["nothing"] is None
        assert part["empty"] == ()
        for tensor in (part["pair"].left, part["pair"].right[0], part["more"][0], part["more"][1]["deep"]):
            assert str(tensor.device) == place
            assert tensor.tolist() == expected
    assert isinstance(scatter(x, CPUS), tuple)


def test_scatter_fewer_than_devices_and_other_dim() -> None:
    assert [part.tolist() for part in scatter(flambeau.arange(2), [0, 1, 2])] == [[0], [1]]
    parts = scatter(flambeau.arange(6).view(2, 3), [0, 1, 2], dim=1)
    assert [part.tolist() for part in parts] == [[[0], [3]], [[1], [4]], [[2], [5]]]


def test_scatter_kwargs_pads() -> None:
    x = flambeau.arange(4)
    inputs, kwargs = scatter_kwargs((x,), None, [0, 1])
    assert len(inputs) == 2
    assert kwargs == ({}, {})
    inputs, kwargs = scatter_kwargs((), {"x": x, "flag": True}, [0, 1])
    assert inputs == ((), ())
    assert [each["x"].tolist() for each in kwargs] == [[0, 1], [2, 3]]
    assert all(each["flag"] for each in kwargs)
    inputs, kwargs = scatter_kwargs((flambeau.arange(1), 7), {"y": 1}, [0, 1])
    assert len(inputs) == len(kwargs) == 2
    assert inputs[1] == ()
    assert kwargs[1] == {"y": 1}
    assert scatter_kwargs((), {}, [0, 1]) == ((), ())


def test_gather_through_containers() -> None:
    def result(place: str) -> Any:
        x = flambeau.ones(2, 1, device=place)
        return {"pair": Pair(x, [x * 2, None]), "both": (x, x)}

    joined = gather([result(place) for place in CPUS], "cpu:1")
    assert isinstance(joined["pair"], Pair)
    assert joined["pair"].right[1] is None
    assert isinstance(joined["both"], tuple)
    assert joined["pair"].right[0].shape == (6, 1)
    assert str(joined["both"][1].device) == "cpu:1"
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        gather([{"a": flambeau.ones(1)}, {}], 0)


def test_gather_numbers_warns_and_has_gradients() -> None:
    numbers = [flambeau.tensor(float(i), device=place, requires_grad=True) for i, place in enumerate(CPUS)]
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        joined = gather(numbers, 0)
    assert joined.tolist() == [0, 1, 2]
    assert joined.grad_fn.name() == "GatherBackward"
    (joined * flambeau.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert [each.grad.item() for each in numbers] == [1, 2, 3]
    assert places(each.grad for each in numbers) == CPUS


def test_scatter_gather_derivatives() -> None:
    x = flambeau.randn(5, 2, dtype=flambeau.float64, requires_grad=True)

    def there_and_back(x: Any) -> Any:
        return gather([part**3 for part in scatter(x, CPUS)], "cpu:3")

    assert [part.grad_fn.name() for part in scatter(x, CPUS)] == ["ScatterBackward"] * 3
    assert flambeau.autograd.gradcheck(there_and_back, (x,))
    assert flambeau.autograd.gradgradcheck(there_and_back, (x,))


def test_scattered_parts_can_be_changed_in_place() -> None:
    x = flambeau.ones(4, requires_grad=True)
    first, second = scatter(x * 1, [0, 1])
    gather([first, second.mul_(3)], 0).sum().backward()
    assert x.grad.tolist() == [1, 1, 3, 3]


# ----- comm -----------------------------------------------------------------------------------------------------------


def test_comm_broadcast_and_reduce() -> None:
    x = flambeau.arange(3.0)
    copies = comm.broadcast(x, CPUS)
    assert copies[0] is x
    assert places(copies) == CPUS
    targets = [flambeau.empty(3, device=place) for place in CPUS]
    assert [each.tolist() for each in comm.broadcast(x, out=targets)] == [[0, 1, 2]] * 3
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out'"):
        comm.broadcast(x)
    lists = comm.broadcast_coalesced([x, x * 2], [0, 1])
    assert lists[0][0] is x
    assert places(lists[1]) == ["cpu:1"] * 2
    assert lists[1][1].tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match=r"must be on devices\[0\]"):
        comm.broadcast_coalesced([x], [1, 0])
    total = comm.reduce_add(copies, 1)
    assert str(total.device) == "cpu:1"
    assert total.tolist() == [0, 3, 6]
    assert copies[1].tolist() == [0, 1, 2]
    assert [each.tolist() for each in comm.reduce_add_coalesced([[x, x], [copies[1], copies[1]]], 0)] == [[0, 2, 4]] * 2
    with pytest.raises(RuntimeError, match="destination to be on the same GPU with one of the tensors"):
        comm.reduce_add(copies, 3)
    with pytest.raises(ValueError, match="input 1 has invalid size: got 2, but expected 3"):
        comm.reduce_add([x, flambeau.ones(2, device="cpu:1")], 0)


def test_comm_scatter_and_gather() -> None:
    x = flambeau.arange(6.0)
    parts = comm.scatter(x, CPUS, chunk_sizes=[1, 2, 3])
    assert [part.tolist() for part in parts] == [[0], [1, 2], [3, 4, 5]]
    assert places(parts) == CPUS
    out = (flambeau.empty(4), flambeau.empty(2, device="cpu:2"))
    assert [part.tolist() for part in comm.scatter(x, out=out)] == [[0, 1, 2, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="'devices' must not be specified when 'out' is specified"):
        comm.scatter(x, [0], out=out)
    with pytest.raises(RuntimeError, match="of same length"):
        comm.scatter(x, [0, 1], chunk_sizes=[6])
    assert comm.gather(parts, destination="cpu:2").tolist() == x.tolist()
    with pytest.warns(FutureWarning, match="Using -1 to represent CPU tensor is deprecated"):
        assert str(comm.gather(parts, destination=-1).device) == "cpu"
    target = flambeau.empty(6, device="cpu:3")
    assert comm.gather(parts, out=target) is target
    assert target.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"input 1 has invalid size: got \[2, 2\], but expected \[2, 3\]"):
        comm.gather([flambeau.ones(1, 3), flambeau.ones(2, 2)])


# ----- replicate and parallel_apply -----------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.again = self.first  # shared
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.missing = None
        self.factors = nn.ParameterList([nn.Parameter(flambeau.ones(2)) for _ in range(2)])
        self.frozen = nn.Parameter(flambeau.full((2,), 0.5), requires_grad=False)

    def forward(self, x: Any, *, scale: Any = 1.0) -> Any:
        return self.last(self.norm(self.first(x))) * self.factors[0] * self.factors[1] * scale + self.frozen


def test_replicas() -> None:
    net = Net()
    replicas = replicate(net, CPUS)
    for replica, place in zip(replicas, CPUS, strict=True):
        assert replica is not net
        assert replica.again is replica.first
        assert replica.missing is None
        assert list(replica.last[1].parameters()) == []
        assert str(replica.first.weight.device) == place
        assert replica.first.weight.grad_fn.name() == "BroadcastBackward"
        assert not replica.frozen.requires_grad
        assert str(replica.norm.running_mean.device) == place
    assert replicas[0].norm.running_mean is net.norm.running_mean
    sum(replica.first.bias.to("cpu") * (i + 1) for i, replica in enumerate(replicas)).sum().backward()
    assert net.first.bias.grad.tolist() == [6] * 4
    assert len(list(net.parameters())) == 8  # the original is as before
    assert replicate(net, [0, 1], detach=True)[1].first.weight.grad_fn is None
    assert replicate(net, []) == []


def test_parallel_apply_in_threads_with_the_modes_of_the_caller() -> None:
    class Spy(nn.Module):
        def forward(self, x: Any) -> Any:
            return threading.get_ident(), flambeau.is_grad_enabled(), (x @ x).dtype

    inputs = [flambeau.ones(2, 2, device=place) for place in CPUS]
    with flambeau.no_grad(), flambeau.autocast("cpu", flambeau.float16):
        seen = parallel_apply([Spy(), Spy(), Spy()], inputs)
    assert len({each[0] for each in seen} - {threading.get_ident()}) >= 1
    assert [each[1:] for each in seen] == [(False, flambeau.float16)] * 3
    assert parallel_apply([Spy()], [inputs[:1]])[0] == (threading.get_ident(), True, flambeau.float32)
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 3"):
        parallel_apply([Spy()], inputs)
    with pytest.raises(RuntimeError, match="no device was provided and no tensor input was found"):
        parallel_apply([Spy()], [()])


class Failing(nn.Module):
    def __init__(self, error: Any) -> None:
        super().__init__()
        self.error = error
        self.weight = nn.Parameter(flambeau.ones(1))

    def forward(self, x: Any) -> Any:
        if str(x.device) == "cpu:1":
            raise self.error
        return x * self.weight


class Complicated(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(ValueError("odd"), ValueError), (KeyError("name"), KeyError), (Complicated(1, 2), RuntimeError)],
)
def test_errors_in_a_replica(error: Exception, expected: type[Exception]) -> None:
    net = nn.DataParallel(nn.Sequential(nn.Identity(), Failing(error)), device_ids=[0, 1, 2])
    with pytest.raises(expected) as caught:
        net(flambeau.ones(6, 1))
    text = str(caught.value)
    assert f"Caught {type(error).__name__} in replica 1 on device cpu:1.\nOriginal Traceback" in text
    assert "raise self.error" in text
    assert "in module `1` (Failing) of Sequential" in text
    assert caught.value.__cause__ is error
    assert error.__traceback__ is not None


# ----- DataParallel ---------------------------------------------------------------------------------------------------


def test_data_parallel_equals_one_device() -> None:
    flambeau.manual_seed(0)
    net = Net()
    net.norm.eval()  # the statistics of a part of the batch are others
    x = flambeau.randn(7, 3, requires_grad=True)
    scale = flambeau.rand(7, 1)
    expected = net(x, scale=scale)
    expected.square().sum().backward()
    gradients = {name: each.grad for name, each in net.named_parameters() if each.requires_grad}
    input_gradient, x.grad = x.grad, None
    net.zero_grad()
    parallel = nn.DataParallel(net, device_ids=[0, "cpu:1", flambeau.device("cpu:2")], output_device=1)
    assert parallel.device_ids == [0, 1, 2]
    assert parallel.output_device == 1
    for result in (parallel(x, scale=scale), data_parallel(net, (x,), [0, 1, 2], 1, module_kwargs={"scale": scale})):
        assert str(result.device) == "cpu:1"
        assert result.grad_fn.name() == "GatherBackward"
        flambeau.testing.assert_close(result.cpu(), expected)
        result.square().sum().backward()
        flambeau.testing.assert_close(x.grad, input_gradient)
        for name, gradient in gradients.items():
            flambeau.testing.assert_close(net.get_parameter(name).grad, gradient)
        x.grad = None
        net.zero_grad()
    assert list(parallel.state_dict()) == [f"module.{name}" for name in net.state_dict()]
    with flambeau.no_grad():
        assert not parallel(x, scale=scale).requires_grad


def test_training_with_data_parallel() -> None:
    def train(wrap: Any) -> list[float]:
        flambeau.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        model = wrap(net)
        optimizer = flambeau.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = flambeau.randn(10, 3)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(nn.DataParallel) == pytest.approx(train(lambda net: net), rel=1e-5)


def test_buffers_of_the_first_replica_are_the_modules() -> None:
    net = nn.BatchNorm1d(2)
    x = flambeau.randn(8, 2)
    nn.DataParallel(net, device_ids=[0, 1])(x)
    assert net.num_batches_tracked.item() == 1
    flambeau.testing.assert_close(net.running_mean, x[:4].mean(0) * 0.1)


def test_recurrent_module_and_nested_results() -> None:
    net = nn.LSTM(3, 4, num_layers=2)
    x = flambeau.randn(5, 6, 3)
    expected = net(x)
    output, (hidden, cell) = nn.DataParallel(net, device_ids=[0, 1, 2], dim=1)(x)
    for actual, wanted in zip((output, hidden, cell), (expected[0], *expected[1]), strict=True):
        flambeau.testing.assert_close(actual, wanted)


def test_one_device_few_samples_no_parameters_no_arguments() -> None:
    x = flambeau.ones(2, 3)
    one = nn.DataParallel(nn.Linear(3, 1), device_ids=[2])
    assert str(one.module.weight.device) == "cpu:2"
    assert str(one(x).device) == "cpu:2"
    assert nn.DataParallel(nn.Linear(3, 1), device_ids=[0, 1, 2, 3])(x).shape == (2, 1)
    assert nn.DataParallel(nn.ReLU())(x - 2).tolist() == [[0, 0, 0]] * 2

    class Constant(nn.Module):
        def forward(self) -> Any:
            return flambeau.ones(3)

    assert nn.DataParallel(Constant())().tolist() == [1, 1, 1]


def test_misuse_of_data_parallel() -> None:
    net = nn.Linear(2, 2)
    expected = r"parameters and buffers on device cpu:1 \(device_ids\[0\]\) but found one of them on device: cpu"
    with pytest.raises(RuntimeError, match=expected):
        nn.DataParallel(net, device_ids=[1, 0])(flambeau.ones(2, 2))
    with pytest.raises(RuntimeError, match=expected):
        data_parallel(net, flambeau.ones(2, 2), [1, 0])
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        nn.DataParallel(net, device_ids=[0, 9])


@differential
def test_on_a_machine_with_only_a_cpu(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(devices, "CPU_DEVICES", 1)
    net = torch.nn.DataParallel(torch.nn.Linear(2, 2), device_ids=[0, 1, 2])
    x = torch.ones(3, 2, requires_grad=True)
    result = net(x)
    result.sum().backward()
    return str(net), net.device_ids, list(net.state_dict()), result, x.grad, net.module.weight.grad
