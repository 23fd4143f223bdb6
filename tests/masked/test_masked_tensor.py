"""Tensors with masks, beside PyTorch's: how they print, what functions make of them, and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def _parts(torch: Any) -> tuple[Any, Any]:
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [False, False, True]])


def _masked(torch: Any, *, requires_grad: bool = False) -> Any:
    data, mask = _parts(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that masked tensors are a prototype
        return torch.masked.masked_tensor(data, mask, requires_grad=requires_grad)


@differential
def test_what_a_masked_tensor_is(torch: Any) -> Any:
    masked = torch.masked
    data, mask = _parts(torch)
    own = _masked(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [
            masked.masked_tensor(data[0], mask[0]),
            masked.masked_tensor(torch.arange(3), mask[0]),
            masked.masked_tensor(data > 2, mask),
            masked.masked_tensor(torch.tensor(1.0), torch.tensor(False)),
            masked.masked_tensor(data.reshape(1, 2, 3), mask.reshape(1, 2, 3)),
            masked.MaskedTensor(data, mask),
            masked.as_masked_tensor(data, mask),
        ]
        errors = (
            outcome(lambda: masked.masked_tensor(data, mask[0]), "data.dim() must equal mask.dim()"),
            outcome(lambda: masked.masked_tensor(data, data), "mask must have dtype bool"),
            outcome(lambda: masked.masked_tensor([1], mask), "data must be a Tensor"),
            outcome(lambda: masked.masked_tensor(own, mask), "data must be a Tensor"),
        )
    return (
        repr(own),
        [repr(each) for each in others],
        (own.get_data(), own.get_mask(), own.to_tensor(-1.0)),
        (masked.is_masked_tensor(own), masked.is_masked_tensor(data), isinstance(own, torch.Tensor)),
        (own.shape, str(own.dtype), own.dim(), own.numel(), len(own), own.is_sparse_coo(), own.is_sparse_csr()),
        (own.is_sparse, own.requires_grad),
        errors,
    )


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda torch, x: x + x,
    "number": lambda torch, x: x * 2,
    "plain": lambda torch, x: x + _parts(torch)[0],
    "sin": lambda torch, x: x.sin(),
    "neg": lambda torch, x: -x,
    "eq": lambda torch, x: x == x,
    "pow": lambda torch, x: x**2,
    "div": lambda torch, x: x / 2,
    "greater": lambda torch, x: x > 1,
    "maximum": lambda torch, x: torch.maximum(x, x),
    "clamp": lambda torch, x: x.clamp(1, 2),
    "sigmoid": lambda torch, x: torch.sigmoid(x),
    "in place": lambda torch, x: x.clone().add_(1),
    "where": lambda torch, x: torch.where(_parts(torch)[1], x, x),
    "ones_like": lambda torch, x: torch.ones_like(x),
    "to": lambda torch, x: x.to(torch.float64),
    "detach": lambda torch, x: x.detach(),
    "sum": lambda torch, x: x.sum(),
    "sum of rows": lambda torch, x: x.sum(1),
    "sum kept": lambda torch, x: x.sum(1, keepdim=True),
    "mean": lambda torch, x: x.mean(0),
    "largest": lambda torch, x: x.amax(1),
    "largest of all": lambda torch, x: x.amax(),
    "smallest": lambda torch, x: x.amin(1),
    "prod": lambda torch, x: x.prod(1),
    "std": lambda torch, x: x.std(),
    "all": lambda torch, x: (x > 0).all(1),
    "softmax": lambda torch, x: torch.softmax(x, 1),
    "transpose": lambda torch, x: x.t(),
    "row": lambda torch, x: x[0],
    "view": lambda torch, x: x.view(3, 2),
    "reshape": lambda torch, x: x.reshape(-1),
    "unsqueeze": lambda torch, x: x.unsqueeze(0).expand(2, 2, 3),
    "select": lambda torch, x: x.select(0, 1),
    "cat": lambda torch, x: torch.cat([x, x]),
    "stack": lambda torch, x: torch.stack([x, x]),
    "split": lambda torch, x: list(x.split(1)),
    "chunk": lambda torch, x: list(x.chunk(2)),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions(name: str) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        return repr(_FUNCTIONS[name](torch, _masked(torch)))

    scenario()


@differential
def test_masks_that_differ_are_refused(torch: Any) -> Any:
    data, mask = _parts(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = torch.masked.masked_tensor(data, ~mask)
    own = _masked(torch)
    return (
        outcome(lambda: own + other, "Input masks must match"),
        outcome(lambda: own.tolist(), "is not supported for tensor subclasses"),
        own.sum().item(),
    )


@differential
def test_gradients(torch: Any) -> Any:
    product, mean = _masked(torch, requires_grad=True), _masked(torch, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of the masked tensors that it makes itself
        (product.sin() * product).sum().backward()
        mean.mean(1).sum().backward()
    return repr(product.grad), repr(mean.grad), product.is_leaf, product.requires_grad


def test_gradients_flow_back_to_the_data() -> None:
    data, mask = _parts(flambeau)
    data.requires_grad_()
    masked = flambeau.masked.as_masked_tensor(data, mask)
    (masked * masked).sum().backward()
    assert data.grad is not None
    assert data.grad.tolist() == [[0.0, 0.0, 4.0], [0.0, 0.0, 10.0]]


def test_what_is_not_built_says_so() -> None:
    masked = _masked(flambeau)
    with pytest.raises(TypeError, match=r"linear\(\) of masked tensors is not built"):
        flambeau.nn.functional.linear(masked, flambeau.ones(2, 3))
    with pytest.raises(TypeError, match="not those of a sparse layout"):
        flambeau.masked.masked_tensor(flambeau.eye(2).to_sparse(), flambeau.eye(2).bool())


@differential
def test_autograd_takes_masked_tensors(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that masked tensors are a prototype
        leaf = _masked(torch, requires_grad=True)
        torch.autograd.backward((leaf * 2).sum())
        (found,) = torch.autograd.grad((leaf * leaf).sum(), leaf)
        return leaf.grad.to_tensor(0.0), found.to_tensor(0.0)
