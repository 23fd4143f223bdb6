"""Random orders and choices: what PyTorch gave on an H200, and what they must be anywhere."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._backends.cuda.arrays.host import HOST_CALLS

ORDERS = {0: [0, 1, 9, 5, 7, 8, 6, 3, 4, 2], 7: [0, 6, 4, 2, 5, 8, 3, 1, 7, 9]}


@pytest.mark.parametrize("seed", ORDERS)
def test_an_order_is_pytorchs(seed: int) -> None:
    torch.manual_seed(seed)
    assert torch.randperm(10, device="cuda").tolist() == ORDERS[seed]
    assert torch.cuda.default_generators[0].get_offset() == 16


def test_an_order_in_other_types_and_of_keys_that_are_equal() -> None:
    HOST_CALLS.clear()
    for dtype in (torch.int16, torch.int32, torch.float32):
        torch.manual_seed(0)
        assert torch.randperm(10, device="cuda", dtype=dtype).tolist() == ORDERS[0]
    for seed in range(40):  # of some the keys are not all different
        torch.manual_seed(seed)
        assert sorted(torch.randperm(20, device="cuda").tolist()) == list(range(20))
    assert torch.randperm(0, device="cuda").tolist() == []
    assert not HOST_CALLS
    with pytest.raises(NotImplementedError):
        torch.randperm(3, device="cuda", dtype=torch.bool)


def test_choices_with_replacement_are_pytorchs() -> None:
    torch.manual_seed(11)
    weights = torch.tensor(
        [
            [0.637, 0.27, 0.041, 0.017, 0.813, 0.913, 0.607],
            [0.729, 0.544, 0.935, 0.816, 0.003, 0.857, 0.034],
            [0.73, 0.176, 0.863, 0.541, 0.3, 0.423, 0.028],
        ]
    )
    found = torch.multinomial(weights.cuda(), 5, replacement=True)
    assert found.tolist() == [[6, 5, 5, 5, 5], [0, 3, 3, 3, 5], [2, 1, 3, 3, 3]]


def test_categories_without_weight_are_never_chosen() -> None:
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0]).cuda()
    found = torch.multinomial(weights, 4000, replacement=True).cpu()
    counts = torch.bincount(found, minlength=5).tolist()
    assert counts[0] == counts[2] == counts[4] == 0
    assert 2800 < counts[1] < 3200
    with pytest.raises(RuntimeError, match="inf"):
        torch.multinomial(torch.tensor([-1.0, 2.0]).cuda(), 3, replacement=True)


@pytest.mark.parametrize(("dtype", "count"), [("float32", 16), ("bfloat16", 30), ("float32", 33)])
def test_dropout_at_once_is_its_mask_and_a_product(dtype: str, count: int) -> None:
    kind = getattr(torch, dtype)
    x = torch.randn(5, count).to(kind).cuda().requires_grad_()
    result, mask = torch.native_dropout(x, 0.25, True)
    factors = mask.float() * (1 / 0.75)
    assert result.tolist() == (x.detach().float() * factors).to(kind).tolist()
    assert 0.5 < mask.float().mean().item() < 0.95
    grad = torch.autograd.grad(result.sum(), x)[0]
    assert grad.tolist() == factors.to(kind).tolist()
    assert type(result.grad_fn).__name__ == "NativeDropoutBackward0"
    turned = x.detach().t()  # by two kernels
    result, mask = torch.native_dropout(turned, 0.25, True)
    assert result.tolist() == (turned.float() * mask * (1 / 0.75)).to(kind).tolist()
