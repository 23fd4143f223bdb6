"""Scans with functions of one's own, beside PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

from tests.support.differential import differential, outcome


def _scan(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}._higher_order_ops.associative_scan").associative_scan


@differential
def test_along_each_dimension(torch: Any) -> Any:
    scan = _scan(torch)
    x = torch.linspace(-1, 2, 2 * 7).reshape(2, 7)
    found = [scan(torch.add, x[:, :count], 1, combine_mode="generic") for count in range(1, 8)]
    found += [scan(torch.mul, x, 0, reverse, "generic") for reverse in (False, True)]
    found.append(scan(lambda a, b: a @ b, torch.linspace(-1, 1, 20).reshape(5, 2, 2), 0, combine_mode="generic"))
    return found


@differential
def test_trees_and_gradients(torch: Any) -> Any:
    scan = _scan(torch)
    decay = torch.linspace(0.1, 0.9, 10).reshape(2, 5).requires_grad_()
    given = torch.linspace(-1, 1, 10).reshape(2, 5).requires_grad_()

    def combined(left: Any, right: Any) -> Any:
        return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}

    found = scan(combined, {"a": decay, "b": given}, -1, reverse=True, combine_mode="generic")
    return found, torch.autograd.grad(found["b"].square().sum(), (decay, given))


@differential
def test_what_is_refused(torch: Any) -> Any:
    scan, x = _scan(torch), torch.ones(2, 3)
    return [
        outcome(lambda: scan(torch.add, x, 1), "all input tensors need to be on CUDA or XPU"),
        outcome(lambda: scan(torch.add, x, 1, combine_mode="other"), "Combine_mode must either"),
        outcome(lambda: scan(3, x, 1, combine_mode="generic"), "Combine_fn must be a callable"),
        outcome(lambda: scan(torch.add, x, 1.5, combine_mode="generic"), "Dim must be an int"),
        outcome(lambda: scan(torch.add, x, 5, combine_mode="generic"), "Dimension out of range"),
        outcome(lambda: scan(torch.add, x[:, :0], 1, combine_mode="generic"), "scan dimension > 0"),
    ]
