"""Nested tensors in the jagged layout: values, rows, gradients and words beside PyTorch's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def _rows(torch: Any, *sizes: int, width: int = 4) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(size, width) for size in sizes]


def _nested(torch: Any, *, requires_grad: bool = False) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nested tensors are a prototype
        return torch.nested.nested_tensor(_rows(torch, 2, 3, 1), layout=torch.jagged, requires_grad=requires_grad)


def _told(nested: Any) -> Any:
    """What a nested tensor is, but for the number of its word."""
    words = re.sub(r"j\d+", "j", repr(nested))
    words = re.sub(r", grad_fn=<.*?>", ", grad_fn", words)
    return words, nested.values().detach(), nested.offsets(), str(nested.dtype), nested._ragged_idx


def _each(torch: Any, functions: dict[str, Callable[[Any], Any]], nested: Any) -> dict[str, Any]:
    found = {}
    for name, function in functions.items():
        result = function(nested)
        found[name] = _told(result) if getattr(result, "is_nested", False) else result
    return found


@differential
def test_what_a_nested_tensor_is(torch: Any) -> Any:
    nested = _nested(torch)
    other = _nested(torch)
    shape = nested.shape
    return (
        _told(nested),
        [re.sub(r"j\d+", "j", str(each)) for each in (shape, nested.size(), nested.size(1), nested.stride())],
        (nested.size(0), nested.size(-1), nested.dim(), nested.ndim, nested.numel(), len(nested)),
        (str(nested.layout), nested.is_nested, nested.is_contiguous(), nested.requires_grad, nested.is_leaf),
        (shape[1] == nested.shape[1], shape[1] == other.shape[1], re.sub(r"j\d+", "j", repr(shape[1] * 2))),
        nested.lengths(),
        (nested._get_max_seqlen(), nested._get_min_seqlen()),
        isinstance(nested, torch.Tensor),
        list(nested.unbind()),
        [row.shape for row in nested],
        (nested[1], nested[0, 1], nested.select(0, 2)),
    )


@differential
def test_ways_to_make_one(torch: Any) -> Any:
    make = torch.nested
    values, offsets, lengths = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 2, 5, 6]), torch.tensor([2, 3, 1])
    with_holes = make.nested_tensor_from_jagged(values, offsets, torch.tensor([1, 2, 1]))
    block = torch.arange(30.0).reshape(3, 5, 2)
    mask = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
    window = make.narrow(block, 1, torch.tensor([0, 1, 0]), lengths, layout=torch.jagged)
    same = make.narrow(block, 1, 1, lengths, layout=torch.jagged)
    columns = [torch.ones(2, 3), torch.zeros(2, 4)]
    return (
        _told(make.nested_tensor_from_jagged(values, offsets)),
        _told(make.nested_tensor_from_jagged(values, lengths=lengths)),
        (_told(with_holes), list(with_holes.unbind()), with_holes.lengths()),
        _told(make.nested_tensor_from_jagged(values.reshape(2, 6, 1), offsets, jagged_dim=2)),
        outcome(lambda: make.nested_tensor_from_jagged(values), "At least one of offsets or lengths"),
        (list(window.unbind()), window.is_contiguous(), window.offsets()),
        list(same.unbind()),
        _told(make.masked_select(torch.arange(9.0).reshape(3, 3), mask)),
        _told(make.as_nested_tensor(block, layout=torch.jagged)),
        _told(make.as_nested_tensor(columns, layout=torch.jagged)),
        _told(make.nested_tensor([[1, 2], [3]], layout=torch.jagged)),
        _told(make.nested_tensor(columns, layout=torch.jagged, dtype=torch.float64)),
        outcome(lambda: make.nested_tensor([], layout=torch.jagged), "empty tensor list"),
        outcome(lambda: make.nested_tensor([torch.ones(2, 3), torch.ones(3, 4)], layout=torch.jagged), "single ragged"),
    )


_ALIKE: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + 1,
    "radd": lambda x: 2 - x,
    "mul": lambda x: x * x,
    "pow": lambda x: x**2,
    "div": lambda x: x / 3,
    "neg": lambda x: -x,
    "compare": lambda x: x > 0,
    "invert": lambda x: ~(x > 0),
    "equal": lambda x: x == x,
    "sin": lambda x: x.sin(),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "abs": lambda x: x.abs().sqrt(),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "double": lambda x: x.double(),
    "to": lambda x: x.to(x.dtype),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
}


@differential
def test_elementwise(torch: Any) -> Any:
    nested = _nested(torch)
    nn = torch.nn.functional
    changed = _nested(torch)
    changed.mul_(2)
    changed += 1
    changed -= 0.5
    dense = {
        "row": torch.arange(4.0),
        "one": torch.tensor(2.0),
        "by row": torch.arange(12.0).reshape(3, 1, 4),
        "by row alone": torch.arange(3.0).reshape(3, 1, 1),
    }
    return (
        _each(torch, _ALIKE, nested),
        _told(torch.where(nested > 0, nested, 0.0)),
        _told(nn.gelu(nested)),
        _told(nn.dropout(nested, 0.0)),
        _told(torch.zeros_like(nested)),
        _told(nn.silu(nn.relu(nested))),
        _told(changed),
        {name: _told(nested + other) for name, other in dense.items()},
        outcome(lambda: nested + torch.ones(5, 4), "cannot call binary pointwise function"),
        outcome(lambda: nested + _nested(torch), "cannot call binary pointwise function"),
        outcome(lambda: nested.tolist(), "is not supported for tensor subclasses"),
        (bool((nested == nested).all()), bool(nested.isnan().any())),
    )


@differential(tolerance=1e-5)
def test_reductions_and_layers(torch: Any) -> Any:
    nested = _nested(torch)
    torch.manual_seed(1)
    linear, norm, table = torch.nn.Linear(4, 5), torch.nn.LayerNorm(4), torch.nn.Embedding(10, 3)
    bag = torch.nn.EmbeddingBag(10, 3, mode="sum")
    words = torch.nested.nested_tensor([torch.tensor([1, 2]), torch.tensor([3])], layout=torch.jagged)
    functions: dict[str, Callable[[Any], Any]] = {
        "sum": lambda x: x.sum(),
        "sum rows": lambda x: x.sum(1),
        "sum kept": lambda x: x.sum(1, keepdim=True),
        "sum last": lambda x: x.sum(-1),
        "sum all rows": lambda x: x.sum((0, 1)),
        "mean rows": lambda x: x.mean(1),
        "mean last": lambda x: x.mean(-1),
        "largest": lambda x: x.amax(1),
        "smallest": lambda x: x.amin(1),
        "argmax": lambda x: x.argmax(-1),
        "softmax": lambda x: torch.softmax(x, -1),
        "softmax of rows": lambda x: torch.softmax(x, 1),
        "log softmax": lambda x: torch.nn.functional.log_softmax(x, -1),
        "linear": linear,
        "norm": norm,
        "matmul": lambda x: x @ torch.arange(8.0).reshape(4, 2),
        "bmm": lambda x: x.bmm(torch.arange(24.0).reshape(3, 4, 2)),
        "padded": lambda x: x.to_padded_tensor(-1.0),
        "padded to": lambda x: torch.nested.to_padded_tensor(x, 0.5, (3, 5, 4)),
    }
    return (
        _each(torch, functions, nested),
        _told(table(words)),
        bag(words).detach(),
        outcome(lambda: nested.sum(0), "reducing along the batch dimension but not the ragged"),
    )


@differential
def test_views(torch: Any) -> Any:
    nested = _nested(torch)
    functions: dict[str, Callable[[Any], Any]] = {
        "transpose": lambda x: x.transpose(1, 2),
        "permute": lambda x: x.permute(0, 2, 1),
        "unsqueeze": lambda x: x.unsqueeze(-1),
        "squeeze": lambda x: x.unsqueeze(2).squeeze(2),
        "view": lambda x: x.view(3, -1, 2, 2),
        "unflatten": lambda x: x.unflatten(-1, [2, 2]),
        "flatten": lambda x: x.unflatten(-1, [2, 2]).flatten(2),
        "select": lambda x: x.select(-1, 0),
        "cat": lambda x: torch.cat([x, x], -1),
        "stack": lambda x: torch.stack([x, x], -1),
        "contiguous": lambda x: x.transpose(1, 2).transpose(1, 2).contiguous(),
        "expand": lambda x: x.expand(3, -1, 4),
    }
    return (
        _each(torch, functions, nested),
        [_told(each) for each in nested.chunk(2, -1)],
        [_told(each) for each in nested.split(3, -1)],
    )


@differential(tolerance=1e-5)
def test_attention(torch: Any) -> Any:
    torch.manual_seed(2)
    rows = [torch.randn(size, 8) for size in (2, 5, 3)]
    flat = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
    heads = flat.unflatten(-1, [2, 4]).transpose(1, 2)
    result = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
    joined = result.transpose(1, 2).flatten(-2)
    (joined.values() * torch.arange(80.0).reshape(10, 8)).sum().backward()
    return _told(result)[1:], _told(joined)[1:], flat.grad.values(), [row.shape for row in result.unbind()]


@differential(tolerance=1e-5)
def test_gradients(torch: Any) -> Any:
    rows = [row.requires_grad_() for row in _rows(torch, 2, 3, 1)]
    of_rows = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    (of_rows * 2).sin().pow(2).sum().backward()
    torch.manual_seed(1)
    linear = torch.nn.Linear(4, 5)
    leaf = _nested(torch, requires_grad=True)
    (linear(leaf) ** 2).sum().backward()
    once = leaf.grad.values().clone()
    padded = _nested(torch, requires_grad=True)
    torch.softmax(padded, -1).to_padded_tensor(0.0).cumsum(1).prod(-1).sum().backward()
    seeded = _nested(torch, requires_grad=True)
    result = seeded * 3
    result.backward(torch.ones_like(result))
    return (
        [row.grad for row in rows],
        of_rows.requires_grad,
        (leaf.is_leaf, leaf.grad.is_nested, once, linear.weight.grad),
        padded.grad.values(),
        seeded.grad.values(),
    )


def test_causal_attention_is_that_of_each_row() -> None:
    flambeau.manual_seed(3)
    rows = [flambeau.randn(2, size, 4) for size in (3, 2)]
    nested = flambeau.nested.as_nested_tensor([row.transpose(0, 1) for row in rows], layout=flambeau.jagged)
    heads = nested.transpose(1, 2)
    attention = flambeau.nn.functional.scaled_dot_product_attention
    found = attention(heads, heads, heads, is_causal=True).unbind()
    for row, result in zip(rows, found, strict=True):
        assert flambeau.allclose(attention(row, row, row, is_causal=True), result, atol=1e-6)


def test_gradients_of_means_of_rows() -> None:
    leaf = _nested(flambeau, requires_grad=True)
    leaf.mean(1).sum().backward()
    expected = flambeau.tensor([1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1])[:, None].expand(6, 4)
    assert flambeau.allclose(leaf.grad.values(), expected)


def test_gradients_of_a_softmax_over_rows() -> None:
    """PyTorch's are not those of the rows: of each column of a row they must add up to zero."""
    leaf = _nested(flambeau, requires_grad=True)
    flambeau.softmax(leaf, 1).pow(2).values().sum().backward()
    rows = [row.requires_grad_() for row in _rows(flambeau, 2, 3, 1)]
    flambeau.cat([flambeau.softmax(row, 0).pow(2) for row in rows]).sum().backward()
    assert flambeau.allclose(leaf.grad.values(), flambeau.cat([row.grad for row in rows]), atol=1e-6)


def test_hooks_and_retained_gradients() -> None:
    leaf = _nested(flambeau, requires_grad=True)
    seen: list[Any] = []
    doubled = leaf * 2
    doubled.retain_grad()
    doubled.register_hook(lambda grad: seen.append(grad.offsets().tolist()))
    doubled.sum().backward()
    assert seen == [[0, 2, 5, 6]]
    assert doubled.grad.values().tolist() == flambeau.ones(6, 4).tolist()
    assert leaf.grad.is_nested
    leaf.grad = None
    assert leaf.grad is None


def test_what_is_not_built_says_so() -> None:
    nested = _nested(flambeau)
    with pytest.raises(NotImplementedError, match=r"conv1d\(\) of nested tensors is not built"):
        flambeau.nn.Conv1d(4, 3, 1)(nested)
    with pytest.raises(RuntimeError, match="cannot view shape"):
        nested.view(2, 12)
    with pytest.raises(RuntimeError, match="over the dimension of the rows' lengths"):
        flambeau.nn.Linear(4, 4)(nested.transpose(1, 2))


@differential
def test_operators_heed_overrides(torch: Any) -> Any:
    class Told(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "told"

    told = torch.ones(2, 2).as_subclass(Told)
    changes = ("__isub__", "__itruediv__", "__imod__", "__ipow__")
    return [told**2, ~told, told.split(1), told % 2, told // 2, *(getattr(told, change)(2) for change in changes)]


@differential
def test_autograd_takes_nested_tensors(torch: Any) -> Any:
    def found(differentiate: Callable[[Any, Any], Any]) -> Any:
        leaf = _nested(torch, requires_grad=True)
        grad = differentiate(leaf * leaf, leaf)
        return type(grad).__name__, grad.values()

    def backward(result: Any, leaf: Any) -> Any:
        torch.autograd.backward(result, torch.ones_like(result))
        return leaf.grad

    return (
        found(lambda result, leaf: torch.autograd.grad(result, leaf, torch.ones_like(result))[0]),
        found(lambda result, leaf: torch.autograd.grad(result.values().sum(), [leaf])[0]),
        found(backward),
    )


@differential
def test_functions_of_ones_own_take_nested_tensors(torch: Any) -> Any:
    def double(x: Any) -> Any:
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(double, (x,), x)
        return x * 2

    return double(_nested(torch)).values()
