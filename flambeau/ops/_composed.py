"""Operators of `torch.ops.aten` that are composed of others here."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor


def _to_copy(
    input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    non_blocking: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A copy, in another dtype or on another device."""
    options = {"memory_format": memory_format} if memory_format is not None else {}
    return input.to(device=device or input.device, dtype=dtype or input.dtype, copy=True, **options)


def convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of a convolution by its input, its weight and its bias, as far as the mask asks for them."""
    from flambeau import convolution, zeros
    from flambeau.autograd import grad
    from flambeau.autograd.grad_mode import enable_grad

    with enable_grad():
        parts: Any = [input.detach().requires_grad_(), weight.detach().requires_grad_()]
        if bias_sizes is not None:
            parts.append(zeros(tuple(bias_sizes), dtype=weight.dtype).requires_grad_())
        bias = parts[2] if len(parts) == 3 else None
        options = (stride, padding, dilation, transposed, output_padding, groups)
        result = convolution(parts[0], parts[1], bias, *options)
        wanted = [number for number, asked in enumerate(output_mask) if asked and number < len(parts)]
        gradients = dict(zip(wanted, grad(result, [parts[each] for each in wanted], grad_output), strict=True))
    return tuple(gradients.get(number) for number in range(3))
