"""Calls that remember what they need by the layouts of their operands give what the CPU gives, the second time too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "stack": lambda x, y: [torch.stack([x, y, x], dim) for dim in range(-4, 4)],
    "stack of views": lambda x, y: torch.stack([x.transpose(0, 2), y.transpose(0, 2)], 1),
    "stack of channels last": lambda x, y: torch.stack([x[None].contiguous(memory_format=torch.channels_last)[0]] * 2),
    "gradient of unbind": lambda x, y: torch.autograd.grad((x.unbind(1)[0] * y[:, 0]).sum(), x),
    "mean": lambda x, y: [x.mean(), x.mean(1), y.transpose(0, 1).mean((0, 2), keepdim=True), x.mean(-1).mean(0)],
    "bmm": lambda x, y: x.bmm(y.transpose(1, 2)),
    "bmm of views": lambda x, y: x.transpose(0, 1).bmm(y.permute(1, 2, 0)),
    "bmm of gaps": lambda x, y: x[:, ::2, ::2].bmm(y[:, ::2, ::2].transpose(1, 2)),
    "bmm of one matrix": lambda x, y: x[:1].expand(3, -1, -1).bmm(y[:1].expand(3, -1, -1).mT),
    "bmm without elements": lambda x, y: [x[:0].bmm(y[:0].mT), x[:, :, :0].bmm(y[:, :, :0].mT)],
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(name: str, dtype: str) -> None:
    for shift in (0, 2):
        here = [(torch.arange(48.0).reshape(2, 4, 6) % (5 + shift)).to(getattr(torch, dtype)) for _ in range(2)]
        there = [each.cuda().requires_grad_() for each in here]
        expected, found = CALLS[name](*[each.requires_grad_() for each in here]), CALLS[name](*there)
        for own, other in _pairs(expected, found):
            assert other.cpu().tolist() == own.tolist()
            assert (other.stride(), other.dtype) == (own.stride(), own.dtype)


@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 3, 6), (2, 1, 3, 6), (2, 0, 6)])
def test_linear_layers_of_any_number_of_dimensions(shape: tuple[int, ...]) -> None:
    """Results, gradients, and PyTorch's nodes behind them."""
    outcomes = []
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        layer, given = torch.nn.Linear(6, 4), torch.randint(-3, 4, shape).float()
        with torch.no_grad():
            layer.weight.copy_((torch.arange(24.0) % 5 - 2).reshape(4, 6))
            layer.bias.copy_(torch.arange(4.0))
        layer, given = layer.to(place), given.to(place).requires_grad_()
        for _ in range(2):
            result = layer(given * 1)
            gradients = torch.autograd.grad(result.sum(), [given, *layer.parameters()], retain_graph=True)
        nodes, node = [], result.grad_fn
        while node is not None:
            nodes.append(type(node).__name__)
            following = [each for each, _ in node.next_functions if each is not None]
            node = following[1] if nodes[-1] == "AddmmBackward0" else following[0] if following else None
        outcomes.append((nodes, [(each.cpu().tolist(), each.stride()) for each in (result, *gradients)]))
    assert outcomes[0] == outcomes[1]


MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "mul of a row": lambda x, y: x * y[:, 0],
    "turned": lambda x, y: x.transpose(0, 1) - y.transpose(0, 1),
    "compared": lambda x, y: x < y,
    "quotient": lambda x, y: x / (y + 1),
    "shapes that do not fit": lambda x, y: x[:1] + y[:, :, :3],
}


@pytest.mark.parametrize("dtypes", ["float32 bfloat16", "bfloat16 float32", "float16 bfloat16", "int64 float32"])
@pytest.mark.parametrize("name", MIXED)
def test_operands_of_different_dtypes(name: str, dtypes: str) -> None:
    given = [getattr(torch, each) for each in dtypes.split()]
    for shift in (0, 1):
        here = [((torch.arange(48.0) + shift + 3 * n).reshape(2, 4, 6) % 7).to(each) for n, each in enumerate(given)]
        there = [each.cuda() for each in here]
        for each in (*here, *there):
            each.requires_grad_(each.is_floating_point())
        outcomes = [_outcome(MIXED[name], each) for each in (here, there)]
        assert outcomes[0] == outcomes[1]


def _outcome(function: Callable[[Any, Any], Any], operands: list[Any]) -> Any:
    """Elements, dtype, strides and gradients of a result, or the error."""
    try:
        result = function(*operands)
    except RuntimeError as error:
        return str(error)
    leaves = [each for each in operands if each.requires_grad]
    found = result.cpu().tolist(), str(result.dtype), result.stride()
    if not result.requires_grad:
        return found
    gradients = torch.autograd.grad(result, leaves, torch.ones_like(result))
    return found, [(each.cpu().tolist(), str(each.dtype)) for each in gradients]


def _pairs(expected: Any, found: Any) -> list[tuple[Any, Any]]:
    return [(expected, found)] if isinstance(expected, torch.Tensor) else list(zip(expected, found, strict=True))
