"""Operators that PyTorch's own code calls, and that compilers and exporters therefore meet, in public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.dtype import float32
from .._core.dtype import promote_types as promoted
from .._core.tensor import Tensor
from .._dispatch.public.registry import function_named
from ..jit._language.numbers_of import dtype_of_number, memory_format_of_number

_LARGEST_HALF = 65504.0
_NO_OVERLAP, _OVERLAP, _TOO_HARD = range(3)


def _called(space: str, name: str, *args: Any) -> Any:
    """What a public function gives, found when it is needed: its family may not be loaded yet."""
    return function_named(space, name)(*args)


def upsample(input: Tensor, size: Any, scale_factor: Any, mode: str = "nearest", align_corners: Any = None) -> Any:
    """`interpolate`; with a size the factor does not count."""
    factor = scale_factor if size is None else None
    return _called("nn.functional", "interpolate", input, size, factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any, scale_factor: Any) -> Any:
    """`interpolate` between the corners of images."""
    if size is None and isinstance(scale_factor, (list, tuple)):
        scale_factor = list(scale_factor[:2])
    return upsample(input, size, scale_factor, "bilinear", True)


def autocast_to_full_precision(self: Tensor, cuda_enabled: bool, cpu_enabled: bool) -> Tensor:
    """Numbers of 16 bits as float32 where autocast is on for their device."""
    enabled = cuda_enabled if self.is_cuda else cpu_enabled
    narrow = self.is_floating_point() and self.element_size() == 2
    return self.to(float32) if enabled and narrow else self


def autocast_to_reduced_precision(
    self: Tensor, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: Any, cpu_dtype: Any
) -> Tensor:
    """float32 as the dtype of autocast where that is on for the device."""
    enabled, dtype = (cuda_enabled, cuda_dtype) if self.is_cuda else (cpu_enabled, cpu_dtype)
    if not enabled or self.dtype is not float32:
        return self
    return self.to(dtype_of_number(dtype) if isinstance(dtype, int) else dtype)


def unscale(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by a number in place; `found_inf` becomes 1 where one is not finite."""
    for each in self:
        if not bool(each.isfinite().all()):
            found_inf.fill_(1)
        each.mul_(inv_scale.reshape(()))


def unscaled(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> tuple[list[Tensor], Tensor]:
    """Gradients multiplied by a number, and whether one is not finite."""
    copies, found = [each.clone() for each in self], found_inf.clone()
    unscale(copies, found, inv_scale)
    return copies, found


def debug_has_internal_overlap(self: Tensor) -> int:
    """0 if no two elements share memory, 1 if some do, 2 if that takes longer to find out."""
    if is_non_overlapping_and_dense(self):
        return _NO_OVERLAP
    shared = any(step == 0 and size > 1 for size, step in zip(self.shape, self.stride(), strict=True))
    return _OVERLAP if shared else _TOO_HARD


def is_non_overlapping_and_dense(self: Tensor) -> bool:
    """Whether the elements fill their memory, in whatever order of the dimensions."""
    wanted = 1
    for step, size in sorted((step, size) for size, step in zip(self.shape, self.stride(), strict=True) if size != 1):
        if self.numel() and step != wanted:
            return False
        wanted *= size
    return True


def has_same_storage_numel(self: Tensor, other: Tensor) -> bool:
    """Whether the memory of both has room for as many elements."""
    counts = [each.untyped_storage().nbytes() // each.element_size() for each in (self, other)]
    return counts[0] == counts[1]


def new_zeros_with_same_feature_meta(self: Tensor, other: Tensor, self_num_batch_dims: int = 0) -> Any:
    """Zeros like `other`, batched as `self` is."""
    return other.new_zeros((*self.shape[:self_num_batch_dims], *other.shape))


def ncf_unsqueeze(self: Tensor, ndim: int) -> Any:
    """A vector of channels as the second of `ndim` dimensions."""
    return self.view([self.shape[0] if dim == 1 else 1 for dim in range(ndim)])


def ncf_view(self: Tensor, input_shape: Sequence[int], normalized_ndim: int) -> Any:
    """Statistics in the shape of the input, 1 where it was normalised."""
    kept = len(input_shape) - normalized_ndim
    return self.reshape([size if dim < kept else 1 for dim, size in enumerate(input_shape)])


def powsum(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of powers of the absolute values."""
    numbers = self if dtype is None else self.to(dtype)
    powers = numbers.abs() ** ord
    dims = list(range(self.ndim)) if dim is None else dim
    return powers.sum(dims, keepdim) if dims else powers


def normal_functional(self: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normally distributed numbers in a new tensor."""
    return self.clone().normal_(mean, std, generator=generator)


def normal_out(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None, out: Tensor) -> Tensor:
    """Normally distributed numbers in the place for results."""
    return out.resize_(self.shape).normal_(mean, std, generator=generator)


def flatten_dense_tensors(tensors: Sequence[Tensor]) -> Any:
    """All elements in one vector."""
    return _called("", "cat", [each.reshape(-1) for each in tensors])


def unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a vector in the shapes of `tensors`."""
    parts = flat.split([each.numel() for each in tensors])
    return [part.view(each.shape) for part, each in zip(parts, tensors, strict=True)]


def sym_is_contiguous(self: Tensor, memory_format: Any = 0) -> Any:
    """`is_contiguous` of a memory format by its number."""
    given = memory_format_of_number(memory_format) if isinstance(memory_format, int) else memory_format
    return self.is_contiguous(memory_format=given)


INTERNALS: dict[str, Callable[..., Any]] = {
    "__upsample": upsample,
    "__upsample_nearest": upsample,
    "__upsample_bilinear": upsample_bilinear,
    "_autocast_to_full_precision": autocast_to_full_precision,
    "_autocast_to_reduced_precision": autocast_to_reduced_precision,
    "_amp_foreach_non_finite_check_and_unscale_": unscale,
    "_amp_foreach_non_finite_check_and_unscale": unscaled,
    "_debug_has_internal_overlap": debug_has_internal_overlap,
    "is_non_overlapping_and_dense": is_non_overlapping_and_dense,
    "_has_same_storage_numel": has_same_storage_numel,
    "_has_compatible_shallow_copy_type": lambda self, other: self.layout == other.layout,
    "_is_zerotensor": lambda self: False,
    "_fw_primal": lambda self, level: self.view_as(self),
    "_new_zeros_with_same_feature_meta": new_zeros_with_same_feature_meta,
    "_ncf_unsqueeze": ncf_unsqueeze,
    "_ncf_view": ncf_view,
    "_reshape_from_tensor": lambda self, shape: self.reshape(shape.tolist()),
    "_saturate_weight_to_fp16": lambda weight: weight.clamp_(-_LARGEST_HALF, _LARGEST_HALF),
    "_size_if_not_equal": lambda self_size, other_size: None if self_size == other_size else self_size,
    "_to_cpu": lambda tensors: [each.cpu() for each in tensors],
    "flatten_dense_tensors": flatten_dense_tensors,
    "unflatten_dense_tensors": unflatten_dense_tensors,
    "sym_is_contiguous": sym_is_contiguous,
    "promote_types": lambda type1, type2: promoted(type1, type2),
    "to_dense_backward": lambda grad, input, masked_grad=None: grad.sparse_mask(input) if input.is_sparse else grad,
    "normal_functional": normal_functional,
    "normal.out": normal_out,
    "bernoulli.Tensor": lambda self, p, *, generator=None: _called("", "empty_like", self).bernoulli_(
        p, generator=generator
    ),
    "set_data": lambda self, new_data: setattr(self, "data", new_data),
    "linalg__powsum": powsum,
    "result_type.Scalar_Tensor": lambda scalar, tensor: _called("", "result_type", scalar, tensor),
    "Size": lambda sizes: list(sizes),
}
