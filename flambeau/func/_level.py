"""Levels: interpreters whose tensors wrap others, as those of `vmap` and of `functionalize` do.

Of nested levels each wraps the tensors of the next. Autograd follows the innermost values and never sees the wrappers,
which is why derivatives inside and outside of a level are the ordinary engine's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.modes import THREAD
from .._core.process.interrupts import uninterrupted
from .._core.tensor import Tensor
from .._dispatch.interpreter import Interpreter
from .._dispatch.public.overrides import disabled_torch_function


class Level(Interpreter):
    """An interpreter with tensors of its own, each of which stands for a `value`."""

    records_inside = True
    leading = 0
    """How many dimensions a value has before those of the tensor that stands for it."""

    def __init__(self) -> None:
        self.number = len(levels()) + 1
        self.running = True

    def has(self, value: Any) -> bool:
        """Whether `value` is a tensor of this level."""
        return getattr(value, "level", None) is self

    def wrapped(self, value: Tensor) -> Tensor:
        """The tensor of this level that stands for `value`."""
        raise NotImplementedError

    def front(self, tensor: Any) -> Any:
        """The value behind a tensor; one that is not of this level is given the dimensions of a value."""
        raise NotImplementedError

    def finished(self, result: Any) -> Any:
        """What was computed with values as tensors of this level."""
        raise NotImplementedError

    def outside(self) -> Outside:
        """A context in which this level and those inside of it are left: for computing with values."""
        return Outside(self)


class Outside:
    """A context outside of a level."""

    def __init__(self, level: Level) -> None:
        self.level = level

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self.before = modes.interpreters
        if self.level in self.before:
            modes.interpreters = self.before[: self.before.index(self.level)]
            modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.interpreters = self.before
        modes.refresh()


def levels() -> list[Level]:
    """The levels that are running, the innermost last."""
    return [each for each in THREAD.modes.interpreters if isinstance(each, Level)]


def _nothing(self: Any, value: Any) -> None:
    """Where a wrapper would be put into a graph: its value is there already."""


class Wrapper(Tensor):
    """A tensor of a level, around another tensor: its `value`."""

    __slots__ = ("level",)
    if TYPE_CHECKING:
        level: Any

        @property
        def value(self) -> Tensor: ...

    _is_wrapper = True
    __torch_function__ = disabled_torch_function

    _requires_grad = property(lambda self: False, _nothing)
    _grad_fn = property(lambda self: None, _nothing)
    _view = property(lambda self: None, _nothing)

    def _on_values(self, function: Callable[..., Any], *tensors: Tensor) -> Any:
        """`function` of the values of all `tensors`: its results are tensors of this level again."""
        level: Level = self.level
        with level.outside():
            return level.finished(function(*[level.front(each) for each in tensors]))

    # mypy takes the options of special methods for positional
    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return self._text()

    def _text(self) -> str:
        """What the wrapper prints."""
        with self.level.outside():
            inner = repr(self.value).replace("\n", "\n    ")
        return f"{type(self).__name__}(lvl={self.level.number}, {'bdim=0, ' * self.level.leading}value=\n    {inner}\n)"


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor inside a transformed function stands for: all examples of `vmap`. To be looked at alone.

    >>> flambeau.vmap(lambda x: (print(flambeau.func.debug_unwrap(x)), x)[1])(flambeau.arange(2))
    tensor([0, 1])
    tensor([0, 1])

    Args:
        tensor (Tensor): the tensor inside a transformed function.
        recurse (bool): whether to go down through all transforms. Default: `True`.

    Returns:
        the tensor that holds the data.
    """
    while isinstance(tensor, Wrapper):
        tensor = tensor.value
        if not recurse:
            break
    return tensor
