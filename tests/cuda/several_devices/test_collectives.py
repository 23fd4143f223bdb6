"""Collective operations of the devices of one process (`torch.cuda.nccl`)."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

nccl = torch.cuda.nccl
COUNT = torch.cuda.device_count()


def _each(*shape: int, dtype: Any = torch.float32) -> list[Any]:
    """A tensor on each device, no two alike."""
    count = torch.Size(shape).numel()
    return [
        ((torch.arange(count) + 3 * number + 1) % 7).to(dtype).reshape(shape).to(f"cuda:{number}")
        for number in range(COUNT)
    ]


def _together(tensors: Any) -> Any:
    return torch.stack([each.cpu() for each in tensors])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("op", [0, 1, 2, 3, 4])
def test_all_reduce(op: int, dtype: Any) -> None:
    if op == 4 and dtype is torch.int64:
        pytest.skip("a mean of integers is none")
    inputs = _each(2, 3, dtype=dtype)
    outputs = [torch.zeros_like(each) for each in inputs]
    whole = _together(inputs)
    nccl.all_reduce(inputs, outputs, op)
    expected = [whole.sum(0), whole.prod(0), whole.amax(0), whole.amin(0), whole.double().mean(0)][op].to(dtype)
    for number, each in enumerate(outputs):
        assert str(each.device) == f"cuda:{number}"
        assert torch.equal(each.cpu(), expected)
    assert torch.equal(_together(inputs), whole)
    nccl.all_reduce(inputs, op=op)
    assert all(torch.equal(each.cpu(), expected) for each in inputs)


def test_reduce_and_broadcast() -> None:
    inputs = _each(4)
    whole = _together(inputs)
    nccl.reduce(inputs, root=1)
    assert torch.equal(inputs[1].cpu(), whole.sum(0))
    assert torch.equal(inputs[0].cpu(), whole[0])
    target = torch.zeros(4, device="cuda:0")
    nccl.reduce(_each(4), target, op=2)
    assert torch.equal(target.cpu(), whole.amax(0))
    with pytest.warns(FutureWarning, match="output tensor list is deprecated"):
        nccl.reduce(_each(4), outputs=[target, *_each(4)[1:]])
    assert torch.equal(target.cpu(), whole.sum(0))
    nccl.broadcast(inputs, 1)
    assert all(torch.equal(each.cpu(), whole.sum(0)) for each in inputs)


def test_gather_and_scatter() -> None:
    inputs = _each(2, 3)
    outputs = [torch.zeros(COUNT * 6, device=each.device) for each in inputs]
    nccl.all_gather(inputs, outputs)
    assert all(torch.equal(each.cpu(), _together(inputs).reshape(-1)) for each in outputs)
    given = _each(COUNT, 3)
    parts = [torch.zeros(3, device=each.device) for each in given]
    nccl.reduce_scatter(given, parts)
    assert torch.equal(_together(parts), _together(given).sum(0))


def test_in_streams() -> None:
    """The work is done in the streams that are named, and no other stream is in use afterwards."""
    inputs = _each(5)
    streams = [torch.cuda.Stream(number) for number in range(COUNT)]
    for number, each in enumerate(streams):
        each.wait_stream(torch.cuda.current_stream(number))
    whole = _together(inputs)
    nccl.all_reduce(inputs, streams=streams)
    for each in streams:
        each.synchronize()
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    assert all(torch.equal(each.cpu(), whole.sum(0)) for each in inputs)


def test_what_is_refused() -> None:
    x, y = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    assert nccl.is_available([x, y])
    assert not nccl.is_available([x, x])
    assert not nccl.is_available([x, y.cpu()])
    assert not nccl.is_available([torch.ones(2, 2, device="cuda:0").t()])
    for wrong, words in (
        ([x, x], "unique devices"), ([x, y.cpu()], "cuda dense"), ([x, y.double()], "same Tensor dtype"),
        ([x, torch.ones(3, device="cuda:1")], "number of elements"),
        ([x, torch.ones(4, device="cuda:1")[::2]], "contiguous"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            nccl.all_reduce(wrong)
    with pytest.raises(RuntimeError, match="same length"):
        nccl.all_reduce([x, y], [x])
    with pytest.raises(TypeError, match="collection of tensors"):
        nccl.broadcast(x)
    with pytest.raises(RuntimeError, match="invalid reduction 9"):
        nccl.all_reduce([x, y], op=9)
    with pytest.raises(ValueError, match="can not be both"):
        nccl.reduce([x, y], x, outputs=[x, y])
