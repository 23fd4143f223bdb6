"""One level of `vmap`: tensors that stand for one example each, and the values behind them.

A `BatchedTensor` has the shape of one example. Its `value` has all examples, along a first dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..._core.modes import THREAD
from ..._core.tensor import Tensor, new
from ..._dispatch.public.return_types import named
from ..._ops.create.constants import filled
from .._level import Level, Wrapper

_DATA_DEPENDENT = (
    "vmap: It looks like you're calling .{what} on a Tensor. We don't support vmap over calling .{what} on a Tensor: a "
    "number in Python would have to be the same for every example. Try to rewrite it with torch.where, or move it out "
    "of the function that is vmapped."
)


class Example(np.ndarray):
    """The shape and dtype of one example. It has no elements that could be looked at: each example has others."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(READ)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _OF_SHAPES:
            return super().__array_function__(function, types, args, kwargs)
        raise RuntimeError(READ)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(READ)

    item = tolist = astype = take = nonzero = argsort = searchsorted = tobytes = copy = _refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = _refuse


READ = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow: the function would "
    "have to look at elements, which every example has others of. We don't support that; compute with tensors "
    "instead, for example by torch.where."
)
_OF_SHAPES = frozenset({np.may_share_memory, np.shares_memory, np.empty_like, np.shape, np.ndim, np.size})


class BatchedTensor(Wrapper):
    """One example of many: the tensor that a function under `vmap` sees."""

    __slots__ = ("example", "value")
    if TYPE_CHECKING:
        value: Tensor
        level: Vmap
        example: Any

    @property
    def _array(self) -> Any:
        """Zeros in the shape of one example: all that code above the ops may ask of it is shape and dtype."""
        if not self.level.running:
            raise RuntimeError(
                "vmap: a tensor from inside a function under vmap was used after that function had returned. Return it "
                "from the function instead of keeping it elsewhere."
            )
        return self.example

    @_array.setter
    def _array(self, array: Any) -> None:
        self.example = array

    def _before_change(self) -> Tensor:
        """What an out-of-place op reads where this tensor is about to change."""
        if THREAD.modes.grad:
            with self.level.outside():
                return self.level.wrapped(self.value.clone())
        return self

    def _filled_alike(self, shape: Sequence[int], kind: Any, value: Any) -> Tensor:
        """A new tensor for each example, as `zeros_like` and `new_empty` make them: it may be written to."""
        shape = (self.level.size, *shape)
        with self.level.outside():
            inner = self.value  # of an outer level too: what is made has its examples as well
            made = inner._filled_alike(shape, kind, value) if inner._is_wrapper else filled(shape, kind, value)
            return self.level.wrapped(made)

    def _become(self, other: Tensor) -> None:
        """Take the shape and the examples of a view of this tensor."""
        assert isinstance(other, BatchedTensor)
        self.value, self.example = other.value, other.example

    def _one_by_one(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
        """`function`, which looks at elements, on each example of the innermost level among its arguments."""
        return _innermost((*args, *options.values())).one_by_one(function, args, options)

    def _custom_function(self, function: Any, args: Sequence[Any]) -> Any:
        """A user's `autograd.Function` of examples."""
        return _innermost(args).custom_function(function, args)

    def _resize(self, shape: tuple[int, ...]) -> None:
        """Take another shape; the elements of each example stay where it begins, and what is added has no value."""
        level = self.level
        with level.outside():
            flat = self.value.reshape(level.size, self.example.size)
            count = math.prod(shape)
            if count > self.example.size:
                longer = flat.new_empty((level.size, count))
                longer[:, : self.example.size] = flat
                flat = longer
            self._become(level.wrapped(flat[:, :count].reshape(level.size, *shape)))

    def _refuse_reading(self) -> NoReturn:
        raise RuntimeError(READ)

    def item(self) -> Any:
        raise RuntimeError(_DATA_DEPENDENT.format(what="item()"))

    def tolist(self) -> Any:
        raise RuntimeError(_DATA_DEPENDENT.format(what="tolist()"))

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(_DATA_DEPENDENT.format(what="numpy()"))

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: it stands for one example")

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
            "support that yet: the branch taken would have to be the same for every example. Use torch.where."
        )

    @property
    def data(self) -> Tensor:
        with self.level.outside():
            return self.level.wrapped(self.value.data)

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("vmap: the data of a tensor under vmap cannot be exchanged; use copy_")


def _innermost(values: Sequence[Any]) -> Vmap:
    """The innermost level that has a tensor among `values`."""
    return max((each.level for each in values if type(each) is BatchedTensor), key=lambda level: level.number)


class Shared:
    """Among the results of a rule: a tensor that is the same for every example."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


Rule = Callable[["Vmap", Any, Sequence[Any]], Any]
"""From a level, an op and its arguments to values, which have the examples along their first dimension."""


class Vmap(Level):
    """The tensors of one `vmap` call; the `Interpreter` runs ops on them."""

    leading = 1

    def __init__(self, size: int, randomness: str) -> None:
        super().__init__()
        self.size = size
        self.randomness = randomness

    # ----- tensors of this level --------------------------------------------------------------------------------

    def has(self, value: Any) -> bool:
        """Whether `value` is a tensor with examples of this level."""
        return type(value) is BatchedTensor and value.level is self

    def among(self, values: Sequence[Any]) -> bool:
        """Whether one of `values`, or of the lists among them, is such a tensor."""
        for each in values:
            if type(each) is BatchedTensor:
                if each.level is self:
                    return True
            elif (type(each) is list or type(each) is tuple) and each and self.among(each):
                return True
        return False

    def wrapped(self, value: Tensor) -> BatchedTensor:
        """One example of `value`."""
        tensor: BatchedTensor = new(BatchedTensor)
        array = value._array
        tensor.level = self
        tensor.value = value
        tensor.example = np.zeros(array.shape[1:], array.dtype).view(Example)
        tensor._kind = value._kind
        tensor._counter = None if value._counter is None else [0, None]
        tensor._output_nr = 0
        tensor._grad = None
        tensor._extra = None
        return tensor

    def value(self, tensor: Any) -> Tensor:
        """All examples of a batched tensor; anything else as it is."""
        return tensor.value if type(tensor) is BatchedTensor and tensor.level is self else tensor

    def front(self, tensor: Any) -> Any:
        """All examples, along the first dimension: those of an unbatched tensor are one memory."""
        if self.has(tensor):
            return tensor.value
        return tensor.unsqueeze(0).expand(self.size, *tensor._array.shape)

    # ----- results ----------------------------------------------------------------------------------------------

    def finished(self, result: Any) -> Any:
        """The results of a rule as examples."""
        if isinstance(result, Tensor):
            return self.wrapped(result)
        if result is None:
            return None
        if type(result) is Shared:
            return result.tensor
        finished = [self.finished(each) for each in result]
        return finished if type(result) is list else named(type(result), finished)

    def one_by_one(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The results of a function that looks at elements, on each example by itself."""
        raise NotImplementedError

    def custom_function(self, function: Any, args: Sequence[Any]) -> Any:
        """The results of a user's `autograd.Function`."""
        raise NotImplementedError
