"""Tensors around another tensor, which autograd follows: nested and masked ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau._core.tensor import Tensor
from flambeau._dispatch.public.overrides import DisableTorchFunctionSubclass

Own = TypeVar("Own", bound="Carrier")
_OWN = (__name__.partition(".")[0], "torch", "")
"""The packages whose functions are ops: this one, under its name and under that for which it may stand in."""


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

    @staticmethod
    def _run_no_op(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function of carriers that is no op: a user's, or one of autograd."""
        if func.__module__.partition(".")[2] != "autograd":
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        found = func(*_inner_of(args), **{name: _inner_of(each) for name, each in kwargs.items()})
        if found is None:
            return None
        _, wanted = args
        return tuple(
            each if each is None or not isinstance(like, Carrier) else like._around(each)
            for each, like in zip(found, wanted, strict=True)
        )

    def _as_text(self) -> str:
        """How it prints."""
        raise NotImplementedError

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)


def _inner_of(value: Any) -> Any:
    """What carriers, alone or in a list, carry."""
    if isinstance(value, (list, tuple)):
        return type(value)(_inner_of(each) for each in value)
    return value._inner if isinstance(value, Carrier) else value


def is_no_op(func: Any) -> bool:
    """Whether a function is autograd's or a user's, and no function of tensors."""
    home = (getattr(func, "__module__", None) or "").split(".")
    return home[1:] == ["autograd"] or home[0] not in _OWN


def _repr(self: Carrier, *, tensor_contents: str | None = None) -> str:
    return self._as_text()


# Put there afterwards: the type checker takes the options of special methods for positional.
setattr(Carrier, "__repr__", _repr)  # noqa: B010
