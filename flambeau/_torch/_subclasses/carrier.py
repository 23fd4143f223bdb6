"""Tensors around another tensor, which autograd follows: nested and masked ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._core.tensor import Tensor

Own = TypeVar("Own", bound="Carrier")


class Carrier(Tensor):
    """A tensor whose elements, and place in the graph, are those of an inner one.

    Functions come to its `__torch_function__`, which runs them on the inner tensors. What looks at the slots beside it
    sees the inner tensor's memory, outside of the graph.
    """

    if TYPE_CHECKING:
        _inner: Tensor

    def _carry(self, inner: Tensor) -> None:
        """Take over an inner tensor: the first thing that an instance does."""
        plain = inner.detach()
        for slot in ("_array", "_kind", "_counter", "_output_nr", "_view", "_extra"):
            setattr(self, slot, getattr(plain, slot))
        self._grad_fn, self._grad, self._requires_grad = None, None, False
        self._inner = inner

    def _around(self: Own, inner: Tensor) -> Own:
        """A carrier of this class around another inner tensor."""
        raise NotImplementedError

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted."""
        return bool(self._inner.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._inner.requires_grad = value

    def requires_grad_(self: Own, requires_grad: bool = True) -> Own:
        """Want gradients, or not."""
        self._inner.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed from others that need gradients."""
        return bool(self._inner.is_leaf)

    @property
    def grad_fn(self) -> Any:
        """The node that made the elements."""
        return self._inner.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient, carried alike."""
        found = self._inner.grad
        return None if found is None else self._around(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._inner.grad = value._inner if isinstance(value, Carrier) else value

    def retain_grad(self) -> None:
        """Keep the gradient though it is no leaf."""
        self._inner.retain_grad()

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call a function with the gradient, carried alike, when it is there; what it returns takes its place."""

        def on_inner(grad: Tensor) -> Any:
            replaced = hook(self._around(grad))
            return replaced._inner if isinstance(replaced, Carrier) else replaced

        return self._inner.register_hook(on_inner)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Gradients of what it was computed from, given its own."""
        own = gradient._inner if isinstance(gradient, Carrier) else gradient
        self._inner.backward(own, retain_graph, create_graph, inputs)

    def _as_text(self) -> str:
        """How it prints."""
        raise NotImplementedError

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)


def _repr(self: Carrier, *, tensor_contents: str | None = None) -> str:
    return self._as_text()


# Put there afterwards: the type checker takes the options of special methods for positional.
setattr(Carrier, "__repr__", _repr)  # noqa: B010
