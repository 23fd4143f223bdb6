"""`cond`: one of two functions, by the truth of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.tensor import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` or `false_fn(*operands)`, by the truth of `pred`.

    Args:
        pred (bool or Tensor): what decides; a tensor has one element.
        true_fn: the function that runs if `pred` is true.
        false_fn: the function that runs if it is not.
        operands (tuple): the arguments of both.

    Returns:
        what the function returns. While a CUDA graph is captured and `pred` is on the device, both functions become
        nodes of the graph, and each replay runs one of them.

    Raises:
        RuntimeError: a branch is not callable, or `pred` or `operands` are of another type.

    Example:
        >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(1),))
        tensor([2.])
    """
    if not callable(true_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple, but got {operands}.")
    if isinstance(pred, Tensor) and pred.is_cuda:
        from flambeau.cuda._graphs import captured_branches, is_current_stream_capturing

        if is_current_stream_capturing():
            return captured_branches(pred, true_fn, false_fn, operands)
    return (true_fn if pred else false_fn)(*operands)
