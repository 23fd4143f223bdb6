"""Calls of hooks during backward: what they return takes the place of gradients, if it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.node import Node
from .._core.tensor import Tensor


def run_hooks_on(gradient: Any, hooks: Any) -> Any:
    """Pass a tensor's gradient (None, if it received none) through its hooks."""
    for hook in list(hooks.values()):
        replaced = hook(gradient)
        if replaced is not None:
            _check_replacement(hook, gradient, replaced)
            gradient = replaced
    return gradient


def _check_replacement(hook: Any, original: Tensor | None, replaced: Any) -> None:
    if original is None:
        raise RuntimeError(
            f"can't replace a None gradient with a non-None value: hook '{_hook_name(hook)}' got None, which stands "
            "for zeros"
        )
    if not isinstance(replaced, Tensor):
        raise TypeError(
            f"expected Variable, but hook returned '{type(replaced).__name__}': '{_hook_name(hook)}' must "
            "return a Tensor, or None to leave the gradient as it is"
        )
    given, got = original._kind, replaced._kind
    if got.dtype is not given.dtype or got.device.type != given.device.type:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was {given.legacy_name} got {got.legacy_name})"
        )
    if replaced._array.shape != original._array.shape:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the size of value: {list(original._array.shape)} became "
            f"{list(replaced._array.shape)}"
        )


def _hook_name(hook: Any) -> str:
    return getattr(hook, "__name__", None) or repr(hook)


def run_pre_hooks(node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """Node pre-hooks: each sees, and may replace, all gradients of the node's outputs."""
    hooks = node._hooks
    assert hooks is not None
    for hook in list(hooks.pre.values()):
        replaced = hook(tuple(grads))
        if replaced is not None:
            grads = list(_checked_tuple(hook, grads, replaced))
    return grads


def run_post_hooks(
    node: Node, results: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> Sequence[Tensor | None]:
    """Node post-hooks: each sees the gradients that came and those that go, and may replace the latter."""
    hooks = node._hooks
    assert hooks is not None
    for hook in list(hooks.post.values()):
        replaced = hook(tuple(results), tuple(grads))
        if replaced is not None:
            results = _checked_tuple(hook, results, replaced)
    return results


def _checked_tuple(hook: Any, originals: Sequence[Tensor | None], values: Any) -> tuple[Any, ...]:
    """What a node's hook has returned in the place of several gradients."""
    if not isinstance(values, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(values).__name__}': '{_hook_name(hook)}' must return a tuple "
            "with one gradient for each that it got, or None to leave them as they are"
        )
    if len(values) != len(originals):
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has returned an incorrect number of values (got {len(values)}, but expected "
            f"{len(originals)})"
        )
    for original, value in zip(originals, values, strict=True):
        if value is not None:
            _check_replacement(hook, original, value)
    return values
