"""Programs around a device: data, copies of a model, files, queues side by side, mixed precision."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch as pytorch

import flambeau as torch
from flambeau._backends.cuda.arrays.host import HOST_CALLS
from tests.cuda.on_device.conftest import is_simulated

cuda = torch.cuda


def _net() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def test_a_loader_pins_batches() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(8, 3), torch.arange(8))
    loader = torch.utils.data.DataLoader(data, 4, pin_memory=True)
    seen = []
    for rows, labels in loader:
        assert rows.is_pinned()
        assert labels.is_pinned()
        there = rows.to("cuda", non_blocking=True)
        seen += there.sum(1).tolist()
    assert seen == torch.arange(24.0).reshape(8, 3).sum(1).tolist()


def test_data_parallel() -> None:
    net = _net()
    given = torch.randn(5, 6)
    expected = net(given)
    parallel = torch.nn.DataParallel(net.cuda())
    found = parallel(given.cuda())
    assert found.is_cuda
    assert torch.allclose(found.cpu(), expected, 1e-5, 1e-5)
    found.sum().backward()
    assert net[0].weight.grad.is_cuda


def test_a_model_from_the_device_loads_on_the_cpu_and_in_pytorch() -> None:
    net = _net().cuda()
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    ours = torch.load(file, map_location="cpu")
    file.seek(0)
    theirs = pytorch.load(file, map_location="cpu")
    file.seek(0)
    again = torch.load(file)
    for name, value in net.state_dict().items():
        assert ours[name].device.type == "cpu"
        assert again[name].device == value.device
        assert ours[name].tolist() == theirs[name].tolist() == value.tolist()
    copies = {"cpu": "cuda:0"}
    file = io.BytesIO()
    torch.save(_net().state_dict(), file)
    for place in ("cuda", torch.device("cuda", 0), copies, lambda storage, location: storage.cuda()):
        file.seek(0)
        assert all(each.is_cuda for each in torch.load(file, map_location=place).values())


def test_devices_in_all_forms() -> None:
    for form in ("cuda", "cuda:0", 0, torch.device("cuda"), torch.device("cuda:0"), torch.device("cuda", 0)):
        made = torch.ones(2).to(form)
        assert made.device == torch.device("cuda:0")
        assert made.get_device() == 0
    assert torch.ones(2, device="cuda").new_zeros(3).is_cuda
    with cuda.device(0), cuda.device_of(made):
        assert cuda.current_device() == 0
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(2).to("cuda:7")
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2).cuda() + torch.ones(2)


def test_queues_and_marks() -> None:
    side = cuda.Stream()
    assert cuda.current_stream() == cuda.default_stream() != side
    begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.stream(side):
        assert cuda.current_stream() == side
        begin.record()
        result = torch.ones(1000, device="cuda") * 2
        end.record()
    cuda.current_stream().wait_stream(side)
    result.record_stream(cuda.current_stream())
    assert result.sum().item() == 2000
    end.synchronize()
    assert begin.query()
    assert begin.elapsed_time(end) > 0
    assert cuda.ExternalStream(side.cuda_stream) == side
    with pytest.raises(ValueError, match="enable_timing"):
        cuda.Event().elapsed_time(end)


@pytest.mark.needs_gpu
def test_two_queues_overlap() -> None:
    def duration(streams: list[Any]) -> float:
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        begin.record()
        for stream in streams:
            stream.wait_event(begin)
            with cuda.stream(stream):
                cuda._sleep(40_000_000)
            cuda.current_stream().wait_stream(stream)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    one, other = cuda.Stream(), cuda.Stream()
    duration([one, other])
    assert duration([one, other]) < 0.75 * duration([one, one])


@pytest.mark.needs_gpu
def test_mixed_precision() -> None:
    net, given = _net().cuda(), torch.randn(5, 6).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cuda", dtype):
            result = net(given)
            assert result.dtype is dtype
            assert torch.softmax(result, 1).dtype is torch.float32
            loss = result.float().square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        before = net[0].weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        assert not torch.equal(net[0].weight, before)
    net[0].weight.grad.fill_(float("inf"))
    before = net[0].weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(net[0].weight, before)
    assert scaler.get_scale() == 512.0


def test_switches() -> None:
    from flambeau._core.process.gpu_choices import CHOICES

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    try:
        assert (matmul.allow_tf32, matmul.fp32_precision) == (False, "none")
        torch.set_float32_matmul_precision("high")
        assert (matmul.allow_tf32, CHOICES.shortened_products) == (True, True)
        matmul.allow_tf32 = False
        assert (torch.get_float32_matmul_precision(), CHOICES.shortened_products) == ("highest", False)
        matmul.fp32_precision = "tf32"
        assert CHOICES.shortened_products
        with pytest.raises(RuntimeError, match="Unknown precision"):
            matmul.fp32_precision = "fp7"
        with pytest.raises(AttributeError):
            setattr(matmul, "allow_tf64", True)  # noqa: B010
        with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=False):
            assert (CHOICES.measured, CHOICES.deterministic, CHOICES.shortened_convolutions) == (True, True, False)
        assert (CHOICES.measured, CHOICES.deterministic, CHOICES.shortened_convolutions) == (False, False, True)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_every_name_of_the_oracle() -> None:
    unusable = []
    for name in pytorch.cuda.__all__:
        found = getattr(torch.cuda, name, None)
        if found is None or getattr(found, "__unusable__", False) or getattr(found, "__absent__", False):
            unusable.append(name)
    assert unusable == []
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.memory_allocated() == cuda.memory_allocated()


def test_types_of_old() -> None:
    made = cuda.FloatTensor([1, 2])
    assert made.type() == "torch.cuda.FloatTensor"
    assert isinstance(made, cuda.FloatTensor)
    assert not isinstance(made.cpu(), cuda.FloatTensor)
    storage = cuda.FloatStorage([1, 2, 3])
    assert storage.is_cuda
    assert storage.tolist() == [1, 2, 3]
    assert storage.cpu().device.type == "cpu"


def test_a_kernel_of_the_programs_own() -> None:
    template = "template <typename T> T scaled(T x, T y, T factor) { return x * y * factor; }"
    scaled = torch.cuda.jiterator._create_jit_fn(template, factor=2.0)
    x = torch.arange(4.0).cuda()
    assert scaled(x, x[:1] + 3).tolist() == [0, 6, 12, 18]
    assert scaled(x, x, factor=-1).tolist() == [0, -1, -4, -9]
    with pytest.raises(RuntimeError, match="unexpected keyword"):
        scaled(x, x, part=1)


def test_decompositions() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5, 5, dtype=torch.float64)
    square = x @ x.mT + torch.eye(5, dtype=torch.float64)
    there = square.cuda()
    for name in ("cholesky", "inv", "det", "eigvalsh", "svdvals"):
        function = getattr(torch.linalg, name)
        assert torch.allclose(function(there).cpu(), function(square), 1e-8, 1e-8), name
    assert torch.allclose((there @ torch.linalg.solve(there, x.cuda())).cpu(), x, 1e-8, 1e-8)
    q, r = torch.linalg.qr(there)
    assert torch.allclose((q @ r).cpu(), square, 1e-8, 1e-8)
    with pytest.raises(RuntimeError, match="not positive-definite"):
        torch.linalg.cholesky(-there)
    if not is_simulated():
        from flambeau._backends.cuda.arrays.host import HOST_CALLS

        HOST_CALLS.clear()
        torch.linalg.svd(there)
        torch.linalg.eigh(there)
        assert not HOST_CALLS


def test_gradients_are_unscaled_together() -> None:
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    params: list[Any] = [torch.zeros(size, device="cuda", requires_grad=True) for size in (3, 2000, 1)]
    optimizer = torch.optim.SGD(params, lr=1.0)
    scaler.scale(torch.ones(1, device="cuda"))
    for each in params:
        each.grad = torch.full_like(each, 512.0)
    scaler.unscale_(optimizer)
    assert [each.grad.unique().tolist() for each in params] == [[0.5]] * 3
    scaler.step(optimizer)
    scaler.update()
    assert params[1].unique().tolist() == [-0.5]
    for each in params:
        each.grad = torch.full_like(each, 512.0)
    params[1].grad[1999] = float("nan")
    scaler.step(optimizer)
    scaler.update()
    assert params[1].unique().tolist() == [-0.5]
    assert scaler.get_scale() == 512.0


@pytest.mark.parametrize(
    "call",
    [
        lambda n: torch.zeros(2, device=f"cuda:{n}"), lambda n: torch.zeros(2).cuda(n), torch.cuda.set_device,
        torch.cuda.get_device_properties, torch.cuda.memory_allocated, torch.cuda.Stream,
        lambda n: torch.cuda.current_stream(f"cuda:{n}"), torch.cuda.synchronize, torch.cuda.get_rng_state,
        lambda n: torch.Generator(f"cuda:{n}"),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there(call: Any) -> None:
    """Whatever names it is refused, and nothing is done on another in its place."""
    count = torch.cuda.device_count()
    with pytest.raises(RuntimeError, match=f"invalid device ordinal: cuda:{count}"):
        call(count)


def test_reductions_into_positions_stay_on_the_device() -> None:
    before = dict(HOST_CALLS)
    index = torch.arange(24).reshape(6, 4).remainder(5).cuda()
    for dtype in (torch.float32, torch.int64, torch.bfloat16):
        values = torch.arange(24).reshape(6, 4).to(dtype)
        for kind in ("sum", "prod", "mean", "amax", "amin"):
            found = torch.ones(5, 4, dtype=dtype).cuda().scatter_reduce(0, index, values.cuda(), kind)
            expected = torch.ones(5, 4, dtype=dtype).scatter_reduce(0, index.cpu(), values, kind)
            assert found.tolist() == expected.tolist()
    assert dict(HOST_CALLS) == before
