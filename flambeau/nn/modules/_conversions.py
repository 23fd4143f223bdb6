"""Changing all tensors of a module: dtype, device, memory, gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..._core.device import device, memory_format
from ..._core.device import device as Device
from ..._core.dtype import dtype
from ..._core.dtype import dtype as DType
from ..._core.self_type import Self
from ..._core.storage import share_together
from ..._core.tensor import Tensor
from ..._ops.create.like import empty_like
from ..._ops.tensor.convert import _targets
from ..._torch import __future__ as choices
from ...autograd.grad_mode import no_grad
from ..parameter import Parameter, is_lazy
from ._members import Members

if TYPE_CHECKING:
    from . import module as whole


class Conversions(Members):
    """`apply`, `to` and its kin, `requires_grad_`, `zero_grad`."""

    _is_replica = False
    """Whether it was made by `DataParallel`, for one device: its parameters are no leaves of the graph."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by `fn` of it; parameters stay the same objects if they can."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = _applied(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[whole.Module], Any]) -> Self:
        """Call `fn` with every module below, then with this one: the way to initialise a model."""
        for module in self.children():
            module.apply(fn)
        fn(cast("whole.Module", self))  # no other class has this base
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and convert all parameters and buffers, in place.

        `to(device, dtype, non_blocking)`, `to(dtype)`, `to(tensor)`, `to(memory_format=...)`. A dtype is for the
        floating-point and complex ones among them; a memory format for those with 4 or 5 dimensions.
        """
        target_dtype, target_device, options, layout = _parse_to(*args, **kwargs)
        if target_dtype is not None:
            if not (target_dtype.is_floating_point or target_dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={target_dtype}"
                )
            if target_dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature: some modules might not work as expected when using complex "
                    "tensors as parameters or buffers.",
                    stacklevel=2,
                )

        def convert(tensor: Any) -> Any:
            wanted = target_dtype if tensor.is_floating_point() or tensor.is_complex() else None
            arranged = {"memory_format": layout} if layout is not None and tensor.dim() in (4, 5) else {}
            try:
                return tensor.to(target_device, wanted, *options, **arranged)
            except NotImplementedError as error:
                if "Cannot copy out of meta tensor" not in str(error):
                    raise
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give all parameters and buffers new, uninitialised memory on a device."""
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse=recurse)

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to a CUDA device."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def ipu(self, device: Any = None) -> Self:
        """Move all parameters and buffers to an IPU."""
        return self._apply(lambda tensor: tensor.ipu(device))

    def xpu(self, device: Any = None) -> Self:
        """Move all parameters and buffers to an Intel GPU."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move all parameters and buffers to an MTIA device."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, integers too, to one dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Convert the floating-point parameters and buffers to float32."""
        return self._apply(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    def double(self) -> Self:
        """Convert the floating-point parameters and buffers to float64."""
        return self._apply(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def half(self) -> Self:
        """Convert the floating-point parameters and buffers to float16."""
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self) -> Self:
        """Convert the floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def share_memory(self) -> Self:
        """Move all parameters and buffers to memory that processes can share."""
        tensors: list[Any] = [*self.parameters(), *self.buffers()]
        tensors += [each.grad for each in self.parameters() if each.grad is not None]
        share_together([each.untyped_storage() for each in tensors if not is_lazy(each)])
        return self._apply(lambda tensor: tensor.share_memory_())

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say for all parameters whether autograd records what is done with them: False freezes the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters, to None or to zeros."""
        if self._is_replica:
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect: the parameters are "
                "copied (in a differentiable manner) from the original module and are no leaves of the graph.",
                stacklevel=2,
            )
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if gradient.grad_fn is not None:
                gradient.detach_()
            else:
                gradient.requires_grad_(False)
            gradient.zero_()


def _applied(parameter: Parameter, fn: Callable[[Any], Any]) -> Parameter:
    """`fn` of a parameter and of its gradient: the same object with new content, unless it goes to or from meta."""
    with no_grad():
        changed = fn(parameter)
        gradient = parameter.grad
        if gradient is not None:
            changed_gradient = fn(gradient)
            if changed_gradient.is_meta is gradient.is_meta:
                gradient.data = changed_gradient
            else:
                gradient = changed_gradient.requires_grad_(gradient.requires_grad)
    if choices.get_swap_module_params_on_conversion():
        from ...utils import swap_tensors

        other = Parameter(changed, parameter.requires_grad)
        other.grad = gradient
        swap_tensors(parameter, other)
        return parameter
    if changed.is_meta is parameter.is_meta and not choices.get_overwrite_module_params_on_conversion():
        parameter.data = changed
        return parameter
    result = Parameter(changed, parameter.requires_grad)
    result.grad = gradient
    return result


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    tensor: Tensor | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
    **unknown: Any,
) -> tuple[dtype | None, device | None, tuple[bool, ...], memory_format | None]:
    """Dtype, device, flags and memory format among the arguments of `to`."""
    if unknown:
        got = ", ".join(f"{name}={type(value).__name__}" for name, value in unknown.items())
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({got}), but it takes a device, a dtype, "
            "non_blocking, a tensor or memory_format="
        )
    named_dtype, named_device, flags = _targets(args if tensor is None else (tensor, *args))
    wanted = named_device if device is None else device
    element = named_dtype if dtype is None else dtype
    if element is not None and not isinstance(element, DType):
        raise TypeError(f"to() received an invalid combination of arguments: {type(element).__name__} is no dtype")
    return (
        element,
        Device(wanted) if isinstance(wanted, str) else wanted,
        (bool(flags[0]) if flags else non_blocking,),
        memory_format,
    )
