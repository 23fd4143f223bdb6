"""`torch.sparse.FloatTensor` and its kin, which programs of old call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import outcome

from .both import same

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda T, made: made(),
    "sizes": lambda T, made: made(2, 3),
    "a Size": lambda T, made: made(T.Size([2, 3])),
    "a size by name": lambda T, made: made(size=(2, 3)),
    "a number in a tensor": lambda T, made: made(T.tensor(2)),
    "with a device": lambda T, made: made(2, device="cpu"),
    "parts": lambda T, made: made(T.tensor([[0, 1]]), T.tensor([1.0, 2.0])),
    "parts and a size": lambda T, made: made(T.tensor([[0, 1]]), T.tensor([1.0, 2.0]), T.Size([4])),
    "parts by name": lambda T, made: made(indices=T.tensor([[0, 1]]), values=T.tensor([1.0, 2.0])),
    "values of another dtype": lambda T, made: made(T.tensor([[0]]), T.tensor([1])),
}
REFUSED: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "a list": ("only accepts sizes", lambda T, made: made([1, 2])),
    "a tuple": ("only accepts sizes", lambda T, made: made((2, 3))),
    "values alone": ("invalid combination", lambda T, made: made(T.tensor([1.0]))),
    "a float": ("invalid combination", lambda T, made: made(2.5)),
    "a bool": ("invalid combination", lambda T, made: made(True)),
    "a word": ("invalid combination", lambda T, made: made("two")),
    "None": ("invalid combination", lambda T, made: made(None)),
    "a sparse tensor": ("invalid combination", lambda T, made: made(T.eye(2).to_sparse())),
    "a negative size": ("numel: integer multiplication overflow", lambda T, made: made(-1)),
    "another device": ("legacy constructor expects device type", lambda T, made: made(2, device="meta")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
@same
def test_calls(T: Any, call: str) -> Any:
    made = T.sparse.FloatTensor
    new = T.eye(2).to_sparse().new
    return [CALLS[call](T, each) for each in ((made,) if "parts by" in call else (made, new))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", REFUSED)
@same
def test_refused_calls(T: Any, call: str) -> Any:
    words, function = REFUSED[call]
    return outcome(lambda: function(T, T.sparse.FloatTensor), words)


@same
def test_classes(T: Any) -> Any:
    made, x = T.sparse.FloatTensor, T.eye(2)
    return (
        [isinstance(each, made) for each in (x, x.to_sparse(), x.double().to_sparse(), x.to_sparse_csr(), 1)],
        [made.dtype, made.layout, made.is_sparse, made.is_cuda, made.__name__, repr(made)],
        outcome(lambda: T.set_default_tensor_type(made), "only dense types"),
        outcome(lambda: T.set_default_tensor_type("torch.sparse.FloatTensor"), "only dense types"),
        outcome(lambda: T.sparse.BoolTensor, "no attribute 'BoolTensor'"),
    )


@pytest.mark.parametrize("name", ["torch.sparse.DoubleTensor", "torch.DoubleTensor", "torch.sparse.FloatTensor"])
@same
def test_conversions_by_type(T: Any, name: str) -> Any:
    dense, x = T.eye(2), T.eye(2).to_sparse()
    given = T.sparse.DoubleTensor if "sparse.Double" in name else T.sparse.FloatTensor
    return dense.type(name), x.type(name), dense.type(given), x.type(given), x.type(given) is x, x.type()
