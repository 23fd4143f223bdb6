"""Operators of `torch.ops.aten` that are composed of others here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau.nn import functional

from ..._core.dtype import bool_
from ..._core.names.absent import refusal
from ..._core.reduction import REDUCTIONS
from ..._core.tensor import Tensor


def _to_copy(
    input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    non_blocking: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A copy, in another dtype or on another device."""
    options = {"memory_format": memory_format} if memory_format is not None else {}
    return input.to(device=device or input.device, dtype=dtype or input.dtype, copy=True, **options)


def _is_all_true(input: Tensor) -> Tensor:
    """Whether all elements are true."""
    return input.all()


def _is_any_true(input: Tensor) -> Tensor:
    """Whether an element is true."""
    return input.any()


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """An error if the one element is not true."""
    from ..._dispatch.public.checks import _assert_async as check

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
    options: Any = {"reduction": REDUCTIONS[reduction], "label_smoothing": label_smoothing}
    return functional.cross_entropy(input, target, weight, ignore_index=ignore_index, **options)


def nll_loss_nd(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    """`nn.functional.nll_loss`, the kind of reduction as a number."""
    return functional.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


def _between(mode: str) -> Any:
    aligns = not mode.startswith("nearest")

    def upsample(input: Tensor, output_size: Any, *args: Any, **kwargs: Any) -> Tensor:
        """An image of another size: to a size, by scales, or by scales that give that size."""
        align = kwargs.get("align_corners", args[0] if aligns and args else None)
        rest = [*args[aligns:], *(value for name, value in kwargs.items() if name != "align_corners")]
        scales = next((each for each in rest if isinstance(each, (list, tuple))), rest)
        if scales and all(each is not None for each in scales):
            sizes = [int(extent * scale) for extent, scale in zip(input.shape[2:], scales, strict=True)]
            if output_size is None or list(output_size) == sizes:
                options: Any = {"recompute_scale_factor": False, "align_corners": align}
                return functional.interpolate(input, None, list(scales), mode, **options)
        return functional.interpolate(input, output_size, None, mode, align)

    return upsample


upsample_nearest1d = upsample_nearest2d = upsample_nearest3d = _between("nearest")
_upsample_nearest_exact1d = _upsample_nearest_exact2d = _upsample_nearest_exact3d = _between("nearest-exact")
upsample_linear1d, upsample_bilinear2d, upsample_trilinear3d, upsample_bicubic2d = map(
    _between, ("linear", "bilinear", "trilinear", "bicubic")
)


def sym_size(input: Tensor, dim: int | None = None) -> Any:
    """The shape, or the extent of one dimension."""
    return input.size() if dim is None else input.size(dim)


def _sparse_mm_reduce_impl(input: Tensor, other: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """Rows of a product with a sparse matrix, combined in another way than by a sum."""
    raise refusal("torch.ops.aten._sparse_mm_reduce_impl", "sparse products with another reduction are not built yet")


def kl_div(self: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div` without its advice."""
    losses = target.exp() * (target - self) if log_target else torch.xlogy(target, target) - target * self
    return (losses, losses.mean(), losses.sum())[reduction] if reduction in range(3) else losses


def lift_fresh(self: Tensor) -> Tensor:
    """A constant of a graph."""
    return self


lift = lift_fresh


def _trilinear(
    i1: Tensor, i2: Tensor, i3: Tensor, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int = 1
) -> Any:
    """The product of three tensors with further dimensions, summed over some."""
    product: Any = 1
    for factor, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in sorted(dims):
            factor = factor.unsqueeze(dim)
        product = factor * product
    return product.sum(list(sumdim)) if sumdim else product


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """`nn.functional.nll_loss`, and the weights of all targets together."""
    loss = nll_loss_nd(self, target, weight, reduction, ignore_index)
    if REDUCTIONS[reduction] == "none" and self.ndim > 1:
        return loss, self.new_zeros([])
    kept = target != ignore_index
    weights = torch.ones(self.shape[min(1, self.ndim - 1)], dtype=self.dtype) if weight is None else weight
    return loss, weights[target[kept]].sum()


nll_loss2d_forward = nll_loss_forward


def multilabel_margin_loss_forward(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """`nn.functional.multilabel_margin_loss`, and which classes are targets."""
    given = (target >= 0).cumprod(-1).bool()
    places = torch.where(given, target, 0)
    is_target = self.new_zeros(target.shape).scatter_add_(-1, places, given.to(self.dtype)).clamp_(max=1)
    return functional.multilabel_margin_loss(self, target, reduction=REDUCTIONS[reduction]), is_target


def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    """`nn.functional.logsigmoid`, and what its derivative uses: exp(-abs(self))."""
    return functional.logsigmoid(self), (-self.abs()).exp()


def rrelu_with_noise(
    self: Tensor, noise: Tensor, lower: Any = 0.125, upper: Any = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """`nn.functional.rrelu`, with the slopes that were drawn stored in `noise`."""
    from ..._ops.pointwise.activation import _slopes

    if not training:
        return torch.where(self < 0, self * ((float(lower) + float(upper)) / 2), self)
    noise.copy_(_slopes(self, float(lower), float(upper), generator))
    return self * noise


def _cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The distances of `torch.cdist`, in other operators."""
    return torch.cdist(x1, x2, p)


def _pdist_forward(self: Tensor, p: float = 2.0) -> Tensor:
    """The distances of `nn.functional.pdist`, in other operators."""
    return functional.pdist(self, p)


def _linalg_det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`linalg.det` with the factors from which it comes."""
    return torch.linalg.det(A), *torch.linalg.lu_factor_ex(A)[:2]


def _linalg_slogdet(A: Tensor) -> tuple[Tensor, ...]:
    """`linalg.slogdet` with the factors from which it comes."""
    return *torch.linalg.slogdet(A), *torch.linalg.lu_factor_ex(A)[:2]


def _linalg_solve_ex(A: Tensor, B: Tensor, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """`linalg.solve_ex` with the factors from which it comes."""
    result, info = torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    return result, *torch.linalg.lu_factor_ex(A)[:2], info


def _linalg_svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, driver: Any = None) -> Any:
    """`linalg.svd`, or the singular values alone."""
    if compute_uv:
        return tuple(torch.linalg.svd(A, full_matrices))
    return A.new_empty([0]), torch.linalg.svdvals(A), A.new_empty([0])


def _linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> Any:
    """`linalg.eigh`, or the eigenvalues alone."""
    return tuple(torch.linalg.eigh(A, UPLO)) if compute_v else (torch.linalg.eigvalsh(A, UPLO), A.new_empty([0]))


def _linalg_check_errors(info: Tensor, api_name: str, is_matrix: bool) -> None:
    """An error if a factorisation reports one."""
    from ..._ops.linalg.checks import check_codes

    check_codes(info, api_name)


def _to_sparse(self: Tensor, *args: Any, layout: Any = None, blocksize: Any = None, dense_dim: Any = None) -> Tensor:
    """The conversion of `Tensor.to_sparse`, in other operators."""
    if args:
        return self.to_sparse(*args)
    options = {"layout": layout, "blocksize": blocksize, "dense_dim": dense_dim}
    return self.to_sparse(**{name: value for name, value in options.items() if value is not None})


def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention, and the logarithms of the sums of the exponentials of its scores."""
    result = functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=bool_).tril().logical_not()
        scores = scores.masked_fill(hidden, -math.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype is bool_ else scores + attn_mask
    return result, scores.logsumexp(-1)


def _unique_consecutive(self: Tensor, dim: int | None, inverse: bool, counts: bool) -> tuple[Tensor, ...]:
    found = torch.unique_consecutive(self, True, True, dim)
    empty = found[1].new_empty([0])
    return found[0], found[1] if inverse or dim is not None else empty, found[2] if counts or dim is not None else empty


def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]:
    """`torch.unique_consecutive`, with an empty tensor for what is not asked for."""
    return _unique_consecutive(self, dim, return_inverse, return_counts)


def unique_dim_consecutive(
    self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """`torch.unique_consecutive` along a dimension."""
    return _unique_consecutive(self, dim, return_inverse, return_counts)


def max_unpool3d(self: Tensor, indices: Tensor, output_size: Any, stride: Any = None, padding: Any = None) -> Tensor:
    """The elements of `self` at their places in an image of another size, and zeros around them."""
    dims = len(output_size)
    lead = self.shape[: self.ndim - dims]
    result = self.new_zeros([*lead, *output_size]).reshape(*lead, -1)
    return result.scatter_(-1, indices.reshape(*lead, -1), self.reshape(*lead, -1)).reshape(*lead, *output_size)


max_unpool2d = max_unpool3d


def _batch_norm_impl_index(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """`native_batch_norm`, the memory that a kernel of a device reserves, and which kernel ran."""
    results = torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return *results, input.new_empty([0], dtype=torch.uint8), 0


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, ...]:  # fmt: skip
    """`torch.embedding_bag`, which has None where there is no padding."""
    padding = None if padding_idx < 0 else padding_idx
    options = scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    return tuple(torch.embedding_bag(weight, indices, offsets, *options))


_embedding_bag_forward_only = _embedding_bag


def _fractional(dims: int) -> Any:
    def pool(self: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor) -> Any:
        """`fractional_max_pool2d` or `3d` with the places of the elements."""
        function = getattr(functional, f"fractional_max_pool{dims}d")
        return function(self, kernel_size, output_size, None, True, random_samples)

    return pool


fractional_max_pool2d, fractional_max_pool3d = map(_fractional, (2, 3))


def _cast(name: str) -> Any:
    def cast(self: Tensor, non_blocking: bool = False) -> Any:
        """The elements in another dtype."""
        return getattr(self, name)()

    return cast


_cast_Byte, _cast_Char, _cast_Double, _cast_Float = map(_cast, ("byte", "char", "double", "float"))
_cast_Half, _cast_Int, _cast_Long, _cast_Short = map(_cast, ("half", "int", "long", "short"))


def _addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Tensor:
    """`addmm`, then `relu` or `gelu`."""
    result = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return functional.gelu(result, approximate="tanh") if use_gelu else result.relu()


def _scaled_dot_product_attention_math(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, dropout_mask: Any = None, *, scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention, and its weights."""
    if enable_gqa:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=bool_).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype is bool_ else scores + attn_mask
    weights = scores.softmax(-1)
    if dropout_p:
        return functional.dropout(weights, dropout_p) @ value, weights
    return weights @ value, weights


def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """A weight of a direction and a length, and the norms of the direction."""
    norms = torch.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


def _reshape_copy(self: Tensor, size: Any) -> Tensor:
    """A copy in another shape."""
    return self.reshape(size).clone()


def _grad_sum_to_size(self: Tensor, size: Any) -> Tensor:
    """`sum_to_size`, or the tensor itself."""
    return self if size is None else self.sum_to_size(size)


def _infer_size(a: Any, b: Any) -> list[int]:
    """The shape that two shapes are broadcast to."""
    return list(torch.broadcast_shapes(a, b))


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """The numbers of the places along a dimension."""
    return torch.arange(like.shape[dim])


def _functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    """An error if the one element is not true; a copy of the token otherwise."""
    _assert_async(self, assert_msg)
    return dep_token.clone()


def _functional_assert_scalar(self: Any, assert_msg: str, dep_token: Tensor) -> Tensor:
    """An error if a number is not true; a copy of the token otherwise."""
    _assert_scalar(self, assert_msg)
    return dep_token.clone()


def sym_constrain_range(size: Any, *, min: Any = None, max: Any = None) -> None:
    """An error if a number is out of a range."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


sym_constrain_range_for_size = sym_constrain_range


def _functional_sym_constrain_range(size: Any, min: Any, max: Any, dep_token: Tensor) -> Tensor:
    """An error if a number is out of a range; a copy of the token otherwise."""
    sym_constrain_range(size, min=min, max=max)
    return dep_token.clone()


_functional_sym_constrain_range_for_size = _functional_sym_constrain_range


def sym_numel(self: Tensor) -> int:
    """The number of elements."""
    return self.numel()


def sym_storage_offset(self: Tensor) -> Any:
    """Where the elements begin in the storage."""
    return self.storage_offset()


def sym_stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides, or that of one dimension."""
    return list(self.stride()) if dim is None else self.stride(dim)


def stft(
    self: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None,
    normalized: bool = False, onesided: Any = None, return_complex: Any = None, align_to_window: Any = None,
) -> Tensor:  # fmt: skip
    """`torch.stft` without padding."""
    options = {"normalized": normalized, "onesided": onesided, "return_complex": return_complex}
    return torch.stft(self, n_fft, hop_length, win_length, window, center=False, **options)


def _stft_center(
    self: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: Any = None, return_complex: Any = None,
    align_to_window: Any = None,
) -> Tensor:  # fmt: skip
    """`torch.stft`."""
    options = {"normalized": normalized, "onesided": onesided, "return_complex": return_complex}
    return torch.stft(self, n_fft, hop_length, win_length, window, center=center, pad_mode=pad_mode, **options)


def _efficientzerotensor(size: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, **_: Any) -> Tensor:
    """Zeros."""
    return torch.zeros(size, dtype=dtype, device=device)


def _histogramdd_bin_edges(
    self: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> list[Tensor]:
    """The edges of the bins of `histogramdd`."""
    return list(torch.histogramdd(self, bins, range=range, weight=weight, density=density).bin_edges)


def _histogramdd_from_bin_cts(
    self: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """The counts of `histogramdd`."""
    return torch.histogramdd(self, bins, range=range, weight=weight, density=density).hist


def _histogramdd_from_bin_tensors(self: Tensor, bins: Any, *, weight: Any = None, density: bool = False) -> Any:
    """The counts of `histogramdd` in bins that are given by their edges."""
    return torch.histogramdd(self, list(bins), weight=weight, density=density).hist


COMPOSED: dict[str, Callable[..., Any]] = {
    **{name: each for name, each in globals().items() if getattr(each, "__module__", "") == __name__},
    "stft.center": _stft_center,
}
"""By the names of operators, or of overloads: `mean.dim`."""
