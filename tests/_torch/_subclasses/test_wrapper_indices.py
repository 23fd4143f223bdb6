"""Indexing where an index, the tensor or the value is a wrapper: its class runs the operator, its array has no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential


def wrapper(torch: Any) -> tuple[Any, list[str]]:
    """A class that wraps another tensor, and the operators that it has run."""
    ran: list[str] = []

    class Wrapper(torch.Tensor):  # type: ignore[misc]
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, elem: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls, elem.shape, dtype=elem.dtype, device=elem.device, requires_grad=elem.requires_grad
            )
            made.elem = elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            ran.append(str(func))
            tree_map = torch.utils._pytree.tree_map
            args, kwargs = tree_map(lambda each: getattr(each, "elem", each), (args, kwargs or {}))
            return tree_map(lambda each: cls(each) if isinstance(each, torch.Tensor) else each, func(*args, **kwargs))

    return Wrapper, ran


READS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "positions": lambda torch, W, x: x[W(torch.tensor([2, -1]))],
    "positions of int32": lambda torch, W, x: x[W(torch.tensor([2], dtype=torch.int32))],
    "behind a slice": lambda torch, W, x: x[:, W(torch.tensor([0, 2]))],
    "behind a part": lambda torch, W, x: x[1:, W(torch.tensor([0, 2])), None],
    "behind all": lambda torch, W, x: x[..., W(torch.tensor([0, 2]))],
    "behind a number": lambda torch, W, x: x[1, W(torch.tensor([0, 2]))],
    "beside positions": lambda torch, W, x: x[W(torch.tensor([0, 2])), torch.tensor([1, 1])],
    "beside a list": lambda torch, W, x: x[[0, 1], W(torch.tensor([0, 2]))],
    "a mask": lambda torch, W, x: x[W(torch.tensor([True, False, True]))],
    "a mask of all": lambda torch, W, x: x[W(x > 5)],
    "a mask, then positions": lambda torch, W, x: x[None][W(x[None] > 5)],
    "one truth": lambda torch, W, x: x[W(torch.tensor(True))],
    "one falsehood": lambda torch, W, x: x[W(torch.tensor(False))],
    "one number": lambda torch, W, x: x[W(torch.tensor(1))],
    "wrapper by positions": lambda torch, W, x: W(x)[torch.tensor([2, 0])],
    "wrapper by a list": lambda torch, W, x: W(x)[[0, 1]],
    "wrapper by positions and a slice": lambda torch, W, x: W(x)[torch.tensor([0, 1]), 1:],
    "wrapper by a mask": lambda torch, W, x: W(x)[torch.tensor([True, False, True])],
    "wrapper by a new dimension": lambda torch, W, x: W(x)[None, torch.tensor([1])],
    "the operator": lambda torch, W, x: torch.ops.aten.index(x, [None, W(torch.tensor([0, 2]))]),
}


@pytest.mark.parametrize("name", READS)
@differential
def test_reading(torch: Any, name: str) -> Any:
    Wrapper, ran = wrapper(torch)
    found = READS[name](torch, Wrapper, torch.arange(12.0).view(3, 4))
    return type(found).__name__, getattr(found, "elem", found), ran


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "positions": lambda torch, W, x: x.__setitem__(W(torch.tensor([2, 0])), 5.0),
    "positions, tensors": lambda torch, W, x: x.__setitem__((slice(None), W(torch.tensor([1]))), torch.ones(3, 1)),
    "a mask": lambda torch, W, x: x.__setitem__(W(x > 5), 5.0),
    "a wrapped value": lambda torch, W, x: x.__setitem__(torch.tensor([1]), W(torch.ones(1, 4))),
    "index_put_": lambda torch, W, x: x.index_put_((W(torch.tensor([2])),), torch.ones(4)),
    "index_put_, added": lambda torch, W, x: x.index_put_((W(torch.tensor([2, 2])),), torch.ones(4), accumulate=True),
    "a wrapper": lambda torch, W, x: W(x).__setitem__(torch.tensor([1]), 5.0),
    "a wrapper by a mask": lambda torch, W, x: W(x).__setitem__(x > 5, 5.0),
}


@pytest.mark.parametrize("name", WRITES)
@differential
def test_writing(torch: Any, name: str) -> Any:
    Wrapper, _ = wrapper(torch)
    x = torch.arange(12.0).view(3, 4)
    WRITES[name](torch, Wrapper, x)
    return x


@differential
def test_gradient(torch: Any) -> Any:
    Wrapper, _ = wrapper(torch)
    x = torch.arange(5.0, requires_grad=True)
    found = x[Wrapper(torch.tensor([1, 2, 1]))]
    found.sum().backward()
    return found.grad_fn.name(), x.grad.elem


@differential
def test_out_of_place(torch: Any) -> Any:
    Wrapper, _ = wrapper(torch)
    return torch.arange(5.0).index_put((Wrapper(torch.tensor([1])),), torch.ones(1)).elem


@differential
def test_operators_take_dimensions_whole(torch: Any) -> Any:
    x, rows = torch.arange(12.0).view(3, 4), torch.tensor([1, 1])
    operators = torch.ops.aten
    return (
        *(operators.index(x, [None, rows]), operators.index_put(x, [None, rows], torch.ones(3, 2), True)),
        *(operators.index_put_(x, [None, rows], torch.ones(3, 1)), x, operators.index_put(x, [rows], torch.ones(4))),
    )
