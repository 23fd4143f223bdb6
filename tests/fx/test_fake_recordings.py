"""`make_fx` of examples without data writes down the same changes as of examples with data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as T
from flambeau.fx.experimental.proxy_tensor import make_fx


def _changed(change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = x.clone()
        change(y, x)
        return y * 2

    return function


_CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "copy_": lambda y, x: y.copy_(x.flip(0)),
    "copy_ of a part": lambda y, x: y[1:].copy_(x[:-1]),
    "copy_ of another dtype": lambda y, x: y.copy_(x.double().flip(1)),
    "copy_ of a row": lambda y, x: y.copy_(x[0]),
    "a row": lambda y, x: y.__setitem__(0, x[1]),
    "a number": lambda y, x: y.__setitem__(0, 3.0),
    "a column": lambda y, x: y.__setitem__((slice(None), 1), x[:, 0]),
    "steps": lambda y, x: y.__setitem__(slice(None, None, 2), x[1::2]),
    "ellipsis": lambda y, x: y.__setitem__((..., 0), 1.5),
    "positions": lambda y, x: y.index_put_((T.arange(2),), x[2:]),
    "add_": lambda y, x: y.add_(x, alpha=3),
    "fill_": lambda y, x: y[2].fill_(7.0),
    "fill_ with an element": lambda y, x: y[2].fill_(x[0, 0]),
    "rows with a number": lambda y, x: y.__setitem__(slice(1, 3), 3),
    "rows with an element": lambda y, x: y.__setitem__(slice(1, 3), x[0, 1]),
    "zero_": lambda y, x: y[:2].zero_(),
    "masked_fill_": lambda y, x: y.masked_fill_(x > 0, 1.0),
    "index_add_": lambda y, x: y.index_add_(0, T.arange(2), x[:2]),
    "index_copy_": lambda y, x: y.index_copy_(0, T.arange(2), x[2:]),
    "scatter_": lambda y, x: y.scatter_(0, T.arange(3)[None], x[:1]),
    "clamp_": lambda y, x: y.clamp_(0.1, 0.2),
    "out=": lambda y, x: T.mul(x, x, out=y),
    "out= of a reduction": lambda y, x: T.sum(x, 0, out=y[0]),
    "out= of a product": lambda y, x: T.mm(x, x[:3], out=y),
    "out= of a join": lambda y, x: T.cat([x[2:], x[:2]], out=y),
    "out= of a part": lambda y, x: T.exp(x[:2], out=y[2:]),
    "set to a transpose": lambda y, x: y[:3].t().copy_(x[:3]),
    "unbind": lambda y, x: [each.mul_(2) for each in y.unbind(0)],
    "foreach": lambda y, x: T._foreach_add_([y[0], y[1]], 1.0),
    "lerp_": lambda y, x: y.lerp_(x.flip(0), 0.5),
    "baddbmm_": lambda y, x: y[None].baddbmm_(x[None], x[None, :3]),
    "tril_": lambda y, x: y.tril_(),
    "fill_diagonal_": lambda y, x: y.fill_diagonal_(4.0),
    "a range": lambda y, x: y.copy_(T.arange(12.0).view(4, 3)),
    "evenly spaced": lambda y, x: y[:, 0].copy_(T.linspace(0, 1, 4)),
    "an identity": lambda y, x: y[:3].copy_(T.eye(3)),
    "a tensor of numbers": lambda y, x: y[0].copy_(T.tensor([1.0, 2.0, 3.0])),
    "triangular positions": lambda y, x: y[:2].copy_(T.tril_indices(2, 2).float()),
}


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("name", _CHANGES)
def test_changes_of_tensors_without_data_are_written_down(name: str, mode: str) -> None:
    function = _changed(_CHANGES[name])
    recorded = make_fx(function, tracing_mode=mode)(T.ones(4, 3))
    x = T.arange(12.0).view(4, 3) / 5 - 1
    kept = x.clone()
    assert T.equal(recorded(x), function(x)), recorded.code
    assert T.equal(x, kept)


_MADE: dict[str, Callable[[Any], Any]] = {
    "histc": lambda x: x.histc(3, -1, 2),
    "histc of all": lambda x: x.histc(4),
    "histogram": lambda x: T.histogram(x + x * x / 50, 3),
    "histogram of one value": lambda x: T.histogram(x * 0 + 1, 4),
    "histogramdd": lambda x: T.histogramdd(x + x * x / 50, [2, 3, 2])[0],
    "as_strided_scatter": lambda x: T.as_strided_scatter(x, x[:2, :2] * 5, (2, 2), (1, 3), 1),
    "embedding_bag": lambda x: T.nn.functional.embedding_bag(T.tensor([[0, 1], [2, 3], [1, 1]]), x),
    "a mask": lambda x: x.clone().index_put_((x > 0,), T.tensor(7.0)),
    "a mask by index": lambda x: _masked(x, 0.0),
    "a mask with an element": lambda x: _masked(x, x[0, 0]),
    "a mask of rows": lambda x: _masked_rows(x),
    "rrelu": lambda x: T.nn.functional.rrelu(x, training=True).sign(),
}


def _masked(x: Any, value: Any) -> Any:
    y = x.clone()
    y[x > 0] = value
    return y


def _masked_rows(x: Any) -> Any:
    y = x.clone()
    y[x[:, 0] > 0] = x[0]
    return y


@pytest.mark.parametrize("name", _MADE)
def test_what_a_look_at_elements_decides_stays_an_op(name: str) -> None:
    """A result without data is no constant of the graph."""
    x = T.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [0.0, 0.75, 2.0], [-0.5, 1.5, -3.0]])
    for example in (x, x * -2 + 0.25):
        expected = _MADE[name](example)
        for mode in ("fake",) if name.startswith("hist") else ("real", "fake"):
            found = make_fx(_MADE[name], tracing_mode=mode)(x)(example)
            for one, other in zip(
                *[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True
            ):
                T.testing.assert_close(one, other)
