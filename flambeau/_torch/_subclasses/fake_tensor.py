"""Fake tensors: shape, strides, dtype and any device, but no data, under the names of `torch._subclasses.fake_tensor`.

    with FakeTensorMode():
        model = Model()                      # of any size: nothing is allocated
        result = model(torch.randn(8, 512, device="cuda"))

A fake tensor is a tensor of a kind whose device is the fake form of another. To ops that is one more device without
data, like `meta`: views, in-place changes, the graph and backward passes need no code of their own. What is left for
the mode is to make every new tensor a fake one, and to refuse what would need elements.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core.arrays.abstract import meta_array
from flambeau._core.device import CPU, device, fake_device
from flambeau._core.kind import FakeKind, Kind, kind_of
from flambeau._core.modes import THREAD
from flambeau._core.process.defaults import make_fakes
from flambeau._core.tensor import Tensor, new_counter, run_directly
from flambeau._dispatch.abstract.fake import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
)
from flambeau._dispatch.factory import Factory, constant
from flambeau._dispatch.op import Op
from flambeau._dispatch.public.overloads import operator_call
from flambeau._dispatch.public.overrides import disabled_torch_function
from flambeau.nn.parameter import Parameter
from flambeau.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from flambeau.utils.weak import WeakTensorKeyDictionary

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor",
    "FakeTensorDeviceMismatchError", "FakeTensorMode",
    "UnsupportedFakeTensorException", "is_fake", "is_fake_tensor", "unset_fake_temporarily",
]  # fmt: skip


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that has no fake form."""


class FakeTensor(Tensor):
    """A tensor without data that is said to be on a device: what ops give under a `FakeTensorMode`."""

    __module__ = "flambeau._subclasses.fake_tensor"

    def __new__(cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any, constant: Any = None) -> Any:
        """A fake tensor on `device` with the shape, strides and dtype of `elem`."""
        with fake_mode:
            return _fake(elem, kind_of(elem.dtype, fake_device(elem.device if device is None else device)), fake_mode)

    __torch_function__ = disabled_torch_function

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]  # mypy takes the options of special methods for positional
        text = super().__repr__(**options)
        return f"Parameter({text})" if isinstance(self, Parameter) else text

    @property
    def fake_device(self) -> device:
        """The device that the tensor is said to be on."""
        return self._kind.shown

    @property
    def fake_mode(self) -> Any:
        """The mode that made the tensor; of a result that was computed outside of any mode the newest one."""
        found = vars(self).get("_fake_mode")
        if found is None:
            entered = [each for each in THREAD.modes.interpreters if isinstance(each, FakeTensorMode)]
            found = entered[-1] if entered else _NEWEST[0]()
        return found

    @property
    def constant(self) -> Any:
        """The numbers of which the tensor was made, as long as nobody has changed it; None of any other."""
        mode = self.fake_mode
        return mode._constants[self] if mode is not None and mode._is_constant(self) else None

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> Any:
        """The fake form of a tensor in a mode."""
        return fake_mode.from_tensor(t)


run_directly(FakeTensor)
FakeKind.tensor_type = FakeTensor
_NEWEST: list[Callable[[], Any]] = [lambda: None]
"""A weak reference to the mode that was made last."""


def is_fake_tensor(value: Any) -> bool:
    """Whether a value is a fake tensor."""
    return isinstance(value, FakeTensor)


is_fake = is_fake_tensor


def _fake(tensor: Tensor, kind: Kind, mode: FakeTensorMode) -> Tensor:
    made = Tensor._from_parts((meta_array(tensor._array), kind, new_counter()))
    vars(made)["_fake_mode"] = mode
    return made


def _fake_kind(kind: Kind) -> Kind:
    return kind if kind.dataless else kind_of(kind.dtype, fake_device(kind.device))


class FakeTensorMode(TorchDispatchMode):
    """A context in which tensors have no data: every one that is made is fake.

    >>> from flambeau._subclasses.fake_tensor import FakeTensorMode
    >>> with FakeTensorMode():
    ...     flambeau.nn.Linear(1000000, 1000000, device="cuda")(flambeau.empty(8, 1000000, device="cuda")).shape
    torch.Size([8, 1000000])
    """

    def __init__(
        self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, shape_env: Any = None,
        static_shapes: bool | None = None, export: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = static_shapes
        self.export = export
        self._made = WeakTensorKeyDictionary()
        """The fake forms of real tensors."""
        self._constants = WeakTensorKeyDictionary()
        """The data of tensors that were made of numbers, which Python may read as long as nobody has changed them."""
        _NEWEST[0] = weakref.ref(self)

    def __enter__(self) -> Any:
        make_fakes(1)
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        make_fakes(-1)

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        """The fake form of a tensor: a leaf of the same kind, shape and strides; of the same tensor always the same."""
        found = self._made.get(tensor)
        if found is None:
            kind = tensor._kind
            if kind.plain is not kind or tensor.layout.name != "strided":
                raise UnsupportedFakeTensorException(f"a tensor of the kind {kind!r} and layout {tensor.layout}")
            found = _fake(tensor, _fake_kind(kind), self)
            if isinstance(tensor, Parameter):
                vars(found)["_is_param"] = True
            found._requires_grad = tensor.requires_grad
            self._made[tensor] = found
        return found

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        result = self._run(op, args)
        for each in result if isinstance(result, tuple) else (result,):
            if type(each) is FakeTensor:
                vars(each)["_fake_mode"] = self
        return result

    def _run(self, op: Op, args: Sequence[Any]) -> Any:
        if op.reads:
            if all(isinstance(each, Tensor) and self._is_constant(each) for each in args):
                return op(*[self._constants[each] for each in args])
            raise DataDependentOutputException(operator_call(op, args)[0])
        if isinstance(op, Factory):
            made = op(*args[:-1], _fake_kind(args[-1]))
            if op is constant and made._counter is not None:
                self._constants[made] = Tensor._from_parts((args[0], kind_of(args[-1].dtype, CPU), [0, None]))
            return made
        return op(*[self._faked(op, args, each) for each in args])

    def _is_constant(self, tensor: Tensor) -> bool:
        return tensor in self._constants and tensor._counter is not None and tensor._counter[0] == 0

    def _faked(self, op: Op, args: Sequence[Any], value: Any) -> Any:
        """An argument without data; real tensors are refused, unless the mode allows them."""
        if isinstance(value, Tensor) and not value._kind.dataless:
            if not self.allow_non_fake_inputs:
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                    f"'allow_non_fake_inputs'. Found in {operator_call(op, args)[0]}: a real tensor of shape "
                    f"{list(value.shape)}; mode.from_tensor(tensor) makes a fake one"
                )
            return self.from_tensor(value)
        if type(value) is FakeTensor and vars(value).get("_fake_mode", self) is not self:
            raise AssertionError(
                f"Mixing fake modes NYI: a tensor of {value.fake_mode} was given to {operator_call(op, args)[0]} under "
                f"{self}; make it under this mode too"
            )
        if type(value) in (list, tuple):
            return type(value)([self._faked(op, args, each) for each in value])
        return value


class unset_fake_temporarily:
    """A context in which no fake mode is on, so that real tensors can be made."""

    def __enter__(self) -> None:
        self._modes = _disable_current_modes()
        disabled = self._modes.__enter__()
        self._count = sum(isinstance(each, FakeTensorMode) for each in disabled)
        make_fakes(-self._count)

    def __exit__(self, *exception: Any) -> None:
        make_fakes(self._count)
        self._modes.__exit__(*exception)
