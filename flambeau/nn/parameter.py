"""`Parameter`: a tensor that modules count among their parameters."""

from __future__ import annotations

from typing import Any

from .._core.pickling import warn_of_hooks
from .._core.tensor import PLAIN_TYPES, Tensor
from .._ops.legacy import make_subclass
from .._ops.overrides import disabled_torch_function


class Parameter(Tensor):
    """A leaf that requires grad by default. Assigned to a module's attribute, it becomes one of its parameters."""

    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            from .._ops.create import empty

            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"cannot assign '{type(data).__name__}' object as the data of a Parameter: a Tensor is expected"
            )
        parameter: Parameter = make_subclass(cls, data, requires_grad)
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        data: Any = self.data
        result = type(self)(data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__(**options)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:  # type: ignore[override]
        warn_of_hooks(self)
        return _rebuild_parameter, (type(self), self.data, self.requires_grad, dict(vars(self)))


def _rebuild_parameter(cls: type[Parameter], data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Parameter:
    parameter = cls(data, requires_grad)
    vars(parameter).update(state)
    return parameter


PLAIN_TYPES.add(Parameter)
