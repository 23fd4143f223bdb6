"""PyTorch's databases of modules and of optimizers on a GPU, beside the CPU."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch as pytorch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import flambeau as torch
from tests.conformance.compare import tensors_in
from tests.nn.test_module_database import Pair, _mapped, _quiet, _samples
from tests.optim.both import MATRICES, SHAPES, parameters, run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU")


@pytest.fixture(autouse=True)
def _whole_float32() -> Iterator[None]:
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def _moved(value: Any, found: dict[int, Any]) -> Any:
    """Arguments on the GPU, with leaves for leaves; one tensor in two places stays one."""

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return found.setdefault(id(value), value.detach().cuda().requires_grad_(value.requires_grad))

    return _mapped(move, value)


def _close(expected: Any, actual: Any) -> None:
    for want, found in zip(tensors_in(expected), tensors_in(actual), strict=True):
        assert found.is_cuda
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        assert torch.allclose(found.cpu().double(), want.double(), 1e-4, 1e-4, equal_nan=True)


def _differentiated(result: Any, leaves: list[Any]) -> list[Any]:
    outputs = [each for each in tensors_in(result) if each.requires_grad]
    wanted = [each for each in leaves if each.requires_grad]
    if not outputs or not wanted:
        return []
    total: Any = sum([each.sum() if each.dtype.is_floating_point else each.abs().sum() for each in outputs])
    found: list[Any] = list(torch.autograd.grad(total, wanted, allow_unused=True))
    return [each for each in found if each is not None]


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.module_cls.__name__)
def test_module(info: Any) -> None:
    with _quiet():
        for sample in _samples(info, pytorch.float32, False, 4):
            pair = Pair(info, sample, pytorch.float32, False)
            there = copy.deepcopy(pair.actual).cuda()
            moved: dict[int, Any] = {}
            args, kwargs = _moved(pair.translated_args, moved), _moved(pair.translated_kwargs, moved)
            expected, actual = pair.call_flambeau(pair.actual), there(*args, **kwargs)
            _close(expected, actual)
            if info.module_cls.__name__ == "CTCLoss":
                continue
            given = [*tensors_in([pair.translated_args, pair.translated_kwargs]), *pair.actual.parameters()]
            own = [*tensors_in([args, kwargs]), *there.parameters()]
            _close(_differentiated(expected, given), _differentiated(actual, own))


def _options(info: Any) -> list[dict[str, Any]]:
    found = [each.kwargs for each in info.optim_inputs_func(device="cpu", dtype=pytorch.float32)]
    return [each for each in found if not any(isinstance(value, pytorch.Tensor) for value in each.values())]


@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.optim_cls.__name__)
def test_optimizer(info: Any) -> None:
    name = info.optim_cls.__name__
    if name in ("LBFGS", "SparseAdam"):
        pytest.skip("its steps need a closure, or sparse gradients")
    for options in _options(info):
        results = []
        for device in ("cpu", "cuda"):
            made = parameters(torch, "float32", MATRICES if name == "Muon" else SHAPES)
            params = [each.detach().to(device).requires_grad_() for each in made]
            optimizer: Any = getattr(torch.optim, name)(params, **options)

            class On:
                """Where gradients are made."""

                @staticmethod
                def tensor(array: Any, dtype: Any, device: str = device) -> Any:
                    return torch.tensor(array, dtype=dtype).to(device)

            run(On, optimizer, params, 4)
            results.append(params)
        for want, found in zip(*results, strict=True):
            assert torch.allclose(found.detach().cpu(), want.detach(), 2e-4, 2e-5), options
