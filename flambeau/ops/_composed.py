"""Operators of `torch.ops.aten` that are composed of others here."""

from __future__ import annotations

from typing import Any

from .._core.names.absent import refusal
from .._core.reduction import REDUCTIONS
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


def _pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """A copy in memory that devices read directly."""
    return input.pin_memory()


def _local_scalar_dense(input: Tensor) -> Any:
    """The one element as a number."""
    return input.item()


def _is_all_true(input: Tensor) -> Tensor:
    """Whether all elements are true."""
    return input.all()


def _is_any_true(input: Tensor) -> Tensor:
    """Whether an element is true."""
    return input.any()


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """An error if the one element is not true."""
    from .._dispatch.public.checks import _assert_async as check

    check(input, assert_msg) if assert_msg else check(input)


def _assert_scalar(value: Any, assert_msg: str) -> None:
    """An error if a number is not true."""
    if not value:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """An error if a tensor is not as it is said to be."""
    for what, said, found in (("dtype", dtype, a.dtype), ("layout", layout, a.layout), ("device", device, a.device)):
        if said is not None and said != found:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {said}, Got: {found}")
    for what, said, numbers in (("sizes", size, a.shape), ("strides", stride, a.stride())):
        if said is not None and tuple(said) != tuple(numbers):
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {list(said)}, Got: {list(numbers)}")


def cross_entropy_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`nn.functional.cross_entropy`, the kind of reduction as a number."""
    from flambeau.nn.functional import cross_entropy

    options: Any = {"reduction": REDUCTIONS[reduction], "label_smoothing": label_smoothing}
    return cross_entropy(input, target, weight, ignore_index=ignore_index, **options)


def nll_loss_nd(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    """`nn.functional.nll_loss`, the kind of reduction as a number."""
    from flambeau.nn.functional import nll_loss

    return nll_loss(input, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


def linalg_vector_norm(
    input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """`linalg.vector_norm`."""
    from flambeau.linalg import vector_norm

    return vector_norm(input, ord, dim, keepdim, dtype=dtype)


def _nearest(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """The nearest pixels of an image of one, two or three dimensions."""
    from flambeau.nn.functional import interpolate

    return interpolate(input, output_size, scale_factors)


upsample_nearest1d = upsample_nearest2d = upsample_nearest3d = _nearest


def _between(mode: str) -> Any:
    def upsample(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any = None) -> Tensor:
        """An image of another size, its pixels from several."""
        from flambeau.nn.functional import interpolate

        return interpolate(input, output_size, scale_factors, mode, align_corners)

    return upsample


upsample_bilinear2d, upsample_trilinear3d, upsample_bicubic2d = map(_between, ("bilinear", "trilinear", "bicubic"))


def lift_fresh_copy(input: Tensor) -> Tensor:
    """A copy of a constant of a graph, which may be changed."""
    return input.clone()


def sym_size(input: Tensor, dim: int | None = None) -> Any:
    """The shape, or the extent of one dimension."""
    return input.size() if dim is None else input.size(dim)


def _sparse_mm_reduce_impl(input: Tensor, other: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """Rows of a product with a sparse matrix, combined in another way than by a sum."""
    raise refusal("torch.ops.aten._sparse_mm_reduce_impl", "sparse products with another reduction are not built yet")
