"""Green contexts: work on some of the device's multiprocessors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

cuda = torch.cuda


def test_work_in_a_green_context() -> None:
    found = cuda.GreenContext.create(num_sms=2)
    assert 2 <= found.num_sms <= cuda.get_device_properties(0).multi_processor_count
    x = torch.arange(1000.0, device="cuda")
    before = cuda.current_stream()
    found.set_context()
    assert cuda.current_stream() == found.Stream()
    assert cuda.current_stream() != before
    y = (x * 2).sum()
    z = torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")
    found.pop_context()
    assert cuda.current_stream() == before
    assert y.item() == 999000.0
    assert z.sum().item() == 64.0**3


def test_its_stream_is_a_stream() -> None:
    stream = cuda.GreenContext.create(num_sms=1, device_id=0).Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        x = torch.ones(10, device="cuda") * 3
    stream.synchronize()
    assert x.tolist() == [3.0] * 10
    assert stream.query()
    assert stream.device_index == 0


def test_what_is_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "at least one of num_sms"), ({"num_sms": 0}, "at least 1"), ({"num_sms": 9999}, "too many"),
        ({"workqueue_scope": "balanced"}, "workqueues"),
    ]  # fmt: skip
    for options, words in wrong:
        with pytest.raises(RuntimeError, match=words):
            cuda.GreenContext.create(**options)
    with pytest.raises(RuntimeError, match="workqueues"):
        cuda.GreenContext.max_workqueue_concurrency()
    with pytest.raises(TypeError, match=r"GreenContext\.create"):
        cuda.GreenContext()
    with pytest.raises(RuntimeError, match="without set_context"):
        cuda.GreenContext.create(num_sms=1).pop_context()
