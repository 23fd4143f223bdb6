"""Memory of the device in the hands of other libraries, by DLPack: the same elements, and on a GPU the same memory."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.utils.dlpack import to_dlpack
from tests.cuda.on_device.conftest import is_simulated

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.float8_e4m3fn]


def _same(found: Any, given: Any) -> None:
    assert found.is_cuda
    assert (found.dtype, found.shape, found.stride()) == (given.dtype, given.shape, given.stride())
    assert found.float().tolist() == given.float().tolist()
    if not is_simulated():  # whose library has no memory of its own
        assert found.data_ptr() == given.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(dtype: torch.dtype) -> None:
    given = torch.arange(12.0).reshape(3, 4).to(dtype).cuda()
    assert tuple(map(int, given.__dlpack_device__())) == (2, 0)
    _same(torch.from_dlpack(given), given)
    _same(torch.from_dlpack(given.t()), given.t())


@pytest.mark.needs_gpu
def test_capsules_parts_and_copies() -> None:
    given = torch.arange(12.0, device="cuda").reshape(3, 4)
    _same(torch.from_dlpack(to_dlpack(given)), given)
    _same(torch.from_dlpack(given[:, 1:3]), given[:, 1:3])
    torch.from_dlpack(given[1:])[0, 0] = -1
    assert given[1, 0].item() == -1
    copied = torch.from_dlpack(given, copy=True)
    assert copied.data_ptr() != given.data_ptr()
    assert copied.tolist() == given.tolist()
    with pytest.raises(BufferError, match="require gradient"):
        torch.from_dlpack(given.requires_grad_())


@pytest.mark.needs_gpu
def test_another_library() -> None:
    """PyTorch has the same GPU, and another queue of its own."""
    import torch as pytorch

    given = torch.arange(6.0, device="cuda").to(torch.bfloat16)
    theirs = pytorch.from_dlpack(given)
    assert (str(theirs.dtype), theirs.data_ptr()) == ("torch.bfloat16", given.data_ptr())
    ours = torch.from_dlpack(theirs * 2)
    assert ours.tolist() == [0, 2, 4, 6, 8, 10]
