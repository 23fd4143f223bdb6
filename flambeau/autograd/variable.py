"""`Variable`, the wrapper of PyTorch's first years. Tensors do everything themselves now."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.public.overrides import DisableTorchFunctionSubclass, as_subclass_result, retype
from .engine import queue_callback
from .grad_mode import no_grad


class VolatileTensor(Tensor):
    """A tensor made with `volatile=True`: whatever is computed from it is volatile too, and never recorded."""

    volatile = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass(), no_grad():
            return as_subclass_result(func(*args, **(kwargs or {})), VolatileTensor)

    # mypy takes the options of special methods for positional
    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return repr(Tensor._from_parts(self._parts()))


class ExecutionEngine:
    """The engine as an object: `Variable._execution_engine`, whose callbacks libraries use."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call a function at the end of the backward pass that is running."""
        queue_callback(callback)

    @staticmethod
    def run_backward(
        tensors: Sequence[Tensor],
        grad_tensors: Sequence[Tensor | None],
        keep_graph: bool,
        create_graph: bool,
        inputs: Sequence[Tensor] = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple[Tensor | None, ...] | None:
        """What `backward` (with `accumulate_grad`) and `grad` run."""
        from . import backward, grad

        if accumulate_grad:
            backward(tensors, grad_tensors, keep_graph, create_graph, inputs=tuple(inputs) or None)
            return None
        found: tuple[Tensor | None, ...] = grad(
            tensors, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable
        )
        return found

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether re-entrant checkpoints may run."""
        from . import _is_checkpoint_valid

        return _is_checkpoint_valid()


class VariableMeta(type):
    """Every tensor counts as a `Variable`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=True)` returns a tensor. Write `tensor.requires_grad_()` instead."""

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        from .._ops.create.constants import empty

        source = empty(0) if data is None else data
        if not isinstance(source, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(source).__name__}")
        tensor = source.detach()
        if volatile and requires_grad:
            raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead: this tensor, and "
                "everything computed from it, is kept out of the graph as if you had.",
                UserWarning,
                stacklevel=2,
            )
            return retype(tensor, VolatileTensor)
        if requires_grad:
            tensor.requires_grad = True
        return tensor
