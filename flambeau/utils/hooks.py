"""Hooks: handles that take them off again, and the pair of graph nodes behind a module's full backward hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .._core.hooks import RemovableHandle
from .._core.pickling import warn_of_hooks as warn_if_has_hooks
from .._core.tensor import Tensor
from ..autograd.function import Function
from ..autograd.grad_mode import is_grad_enabled

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

Hook = TypeVar("Hook", bound=Callable[..., Any])


def unserializable_hook(f: Hook) -> Hook:
    """Mark a tensor hook as one that need not be pickled: no warning will say that it is left out."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]  # PyTorch marks functions so
    return f


class BackwardHookFunction(Function):
    """The identity: a node in the graph around which a module's inputs, or its outputs, are gathered."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[each for each in args if not each.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        return args


class BackwardHook:
    """The full backward hooks of one call of a module.

    An identity node before the module and one after it see the gradients of all inputs and of all outputs: the second
    runs first in backward and keeps the gradients of the outputs, the first then calls the users' hooks with both.
    """

    def __init__(self, module: Any, user_hooks: Iterable[Any], user_pre_hooks: Iterable[Any]) -> None:
        self.module = module
        self.user_hooks = list(user_hooks)
        self.user_pre_hooks = list(user_pre_hooks)
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = self.n_outputs = 0
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] = []

    def setup_input_hook(self, args: tuple[Any, ...]) -> Any:
        """The arguments for `forward`, led through the first node."""
        self.n_inputs = len(args)
        args, self.input_tensors_index = _through_node(args, self._inputs_ready)
        return args

    def setup_output_hook(self, args: Any) -> Any:
        """What `forward` gave, led through the second node."""
        outputs = args if isinstance(args, tuple) else (args,)
        self.n_outputs = len(outputs)
        outputs, found = _through_node(outputs, self._outputs_ready)
        self.output_tensors_index = found or []
        return outputs if isinstance(args, tuple) else outputs[0]

    def _outputs_ready(self, grad_inputs: Any, grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        gradients = _at_places(self.output_tensors_index, grad_outputs, self.n_outputs)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, gradients)
            if changed is not None:
                gradients = _as_many(changed, gradients, "Backward pre hook returned an invalid number of grad_output")
        if self.input_tensors_index is None:
            self._call_without_inputs(gradients)
        else:
            self.grad_outputs = gradients
        return tuple([gradients[i] for i in self.output_tensors_index])

    def _call_without_inputs(self, grad_outputs: tuple[Any, ...]) -> None:
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                f"inputs require gradients (module {type(self.module).__name__})",
                stacklevel=2,
            )
        for hook in self.user_hooks:
            changed = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(each is None for each in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )

    def _inputs_ready(self, grad_inputs: tuple[Any, ...], grad_outputs: Any) -> tuple[Any, ...] | None:
        if self.grad_outputs is None:
            # The gradient reached the inputs past the outputs: there is nothing to tell the hooks.
            return None
        assert self.input_tensors_index is not None
        gradients = _at_places(self.input_tensors_index, grad_inputs, self.n_inputs)
        for hook in self.user_hooks:
            changed = hook(self.module, gradients, self.grad_outputs)
            if changed is not None:
                gradients = _as_many(changed, gradients, "Backward hook returned an invalid number of grad_input")
        self.grad_outputs = None
        return tuple([gradients[i] for i in self.input_tensors_index])


def _through_node(values: tuple[Any, ...], hook: Callable[..., Any]) -> tuple[Any, list[int] | None]:
    """`values` with the tensors among them led through a node that has `hook`, and the places of these tensors.

    None instead of places if no graph is recorded.
    """
    places = [i for i, each in enumerate(values) if isinstance(each, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in places):
        return values, None
    passed = BackwardHookFunction.apply(*[values[i] for i in places])
    node = next(each.grad_fn for each in passed if each.grad_fn is not None)
    node.register_hook(hook)
    replaced = list(values)
    for i, each in zip(places, passed, strict=True):
        replaced[i] = each
    return type(values)(*replaced) if hasattr(values, "_fields") else tuple(replaced), places


def _at_places(places: Sequence[int], gradients: Sequence[Any], size: int) -> tuple[Any, ...]:
    """The gradients at their places among `size` values, None elsewhere."""
    spread: list[Any] = [None] * size
    for i, gradient in zip(places, gradients, strict=True):
        spread[i] = gradient
    return tuple(spread)


def _as_many(changed: Any, expected: tuple[Any, ...], complaint: str) -> tuple[Any, ...]:
    gradients: tuple[Any, ...] = changed if isinstance(changed, tuple) else (changed,)
    if len(gradients) != len(expected):
        raise RuntimeError(f"{complaint}, got {len(gradients)}, but expected {len(expected)}")
    return gradients
