"""Which of PyTorch's operators an op of this package is: what dispatch modes and profiles call it.

An op is the operator of its name in the generated table of schemas (`schemas.txt.gz`), if it has what that requires:
`overloads.py` looks there. This file has the exceptions. Ops that are no operator of PyTorch's are operators of this
package: `torch.ops.flambeau.<name>.default`.
"""

from __future__ import annotations

OTHERWISE_CALLED = frozenset((
    "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "avg_pool2d_backward",
    "avg_pool3d_backward", "cdist", "cross", "gelu_backward", "hardswish_backward", "heaviside", "lu_unpack",
    "matrix_exp", "ormqr", "pdist", "sigmoid_backward", "tanh_backward", "threshold_backward",
    "upsample_linear1d_backward",
))  # fmt: skip
"""Ops that are the operator of their name, by position: their parameters have other names than its arguments."""

NO_OPERATORS = frozenset((
    "cosine_similarity", "det", "eigvals", "isfinite", "isreal", "multilabel_margin_loss", "nll_loss", "pinv",
    "slogdet", "solve_ex", "svdvals", "to_dense", "upsample_lanczos2d_aa", "value_selecting_reduction_backward",
))  # fmt: skip
"""Ops that are not the operator of their name: it has other results, or PyTorch's modes see what it is made of."""

_POLYNOMIALS = """
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
    hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"""

_OTHERS = """
    adaptive_avg_pool2d=_adaptive_avg_pool2d adaptive_avg_pool2d_backward=_adaptive_avg_pool2d_backward
    adaptive_avg_pool3d=_adaptive_avg_pool3d adaptive_avg_pool3d_backward=_adaptive_avg_pool3d_backward
    add_scaled=add.Tensor airy_ai=special_airy_ai all=all.dim any=any.dim
    bitwise_left_shift=bitwise_left_shift.Tensor|bitwise_left_shift.Tensor_Scalar
    bitwise_right_shift=bitwise_right_shift.Tensor|bitwise_right_shift.Tensor_Scalar chunks=_chunk_cat
    clamp_max_number=clamp_max clamp_max_tensor=clamp_max.Tensor clamp_min_number=clamp_min
    clamp_min_tensor=clamp_min.Tensor clamp_numbers=clamp clamp_tensors=clamp.Tensor conj=_conj
    conjugate=_conj_physical ctc_loss_backward=_ctc_loss_backward div_number=div.Tensor eigh=_linalg_eigh
    fill_=fill_.Scalar fill_number=fill.Scalar fill_tensor=fill.Tensor filled_with_number=fill.Scalar
    fmod_by_number=fmod.Scalar index_fill_number=index_fill.int_Scalar index_fill_tensor=index_fill.int_Tensor
    inv_ex=linalg_inv_ex item=_local_scalar_dense lerp_number=lerp.Scalar lerp_tensor=lerp.Tensor
    log_softmax=_log_softmax masked_fill_number=masked_fill.Scalar masked_fill_tensor=masked_fill.Tensor max_all=max
    max_dim=max.dim mean_all=mean mean_dim=mean.dim median_all=median median_dim=median.dim min_all=min
    min_dim=min.dim mul_number=mul.Tensor nanmedian_all=nanmedian nanmedian_dim=nanmedian.dim
    pow=pow.Tensor_Tensor|pow.Tensor_Scalar pow_number=pow.Tensor_Scalar prelu=_prelu_kernel prod_all=prod
    prod_dim=prod.dim_int remainder_by_number=remainder.Scalar rms_norm=_fused_rms_norm round_decimals=round.decimals
    rsub_scaled=rsub.Tensor scaled_modified_bessel_k0=special_scaled_modified_bessel_k0
    scaled_modified_bessel_k1=special_scaled_modified_bessel_k1 scatter_src=scatter.src
    scatter_src_reduce=scatter.reduce scatter_value=scatter.value scatter_value_reduce=scatter.value_reduce
    softmax=_softmax special_xlog1py=special_xlog1py|special_xlog1py.other_scalar
    special_zeta=special_zeta|special_zeta.other_scalar spherical_bessel_j0=special_spherical_bessel_j0
    squeeze_all=squeeze squeeze_dim=squeeze.dim squeeze_dims=squeeze.dims std=std.correction
    std_mean=std_mean.correction sub_scaled=sub.Tensor sum_all=sum sum_dim=sum.dim_IntList svd=_linalg_svd
    var=var.correction var_mean=var_mean.correction view_dtype=view.dtype
    with_logits=binary_cross_entropy_with_logits xlogy=xlogy.Tensor|xlogy.Scalar_Other"""

OTHERS: dict[str, tuple[str, ...]] = {
    **{op: tuple(operators.split("|")) for op, _, operators in (each.partition("=") for each in _OTHERS.split())},
    **{op: (f"special_{op}", f"special_{op}.n_scalar") for op in _POLYNOMIALS.split()},
}
"""Ops that are operators of other names or overloads; of two the second is for a number as the second operand."""

CLOSE_TO = {
    "accumulate_grad": "add_",
    "attention": "_scaled_dot_product_flash_attention_for_cpu",
    "attention_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
    "batch_norm_backward": "native_batch_norm_backward",
    "convolution_backward": "convolution_backward",
    "copied_like": "clone",
    "draw_and_drop": "native_dropout",
    "full": "full",
    "group_norm": "native_group_norm",
    "group_norm_backward": "native_group_norm_backward",
    "layer_norm": "native_layer_norm",
    "layer_norm_backward": "native_layer_norm_backward",
    "leaky_relu_backward": "leaky_relu_backward",
    "log_softmax_backward": "_log_softmax_backward_data",
    "max_pool2d_backward": "max_pool2d_with_indices_backward",
    "max_pool3d_backward": "max_pool3d_with_indices_backward",
    "native_batch_norm": "native_batch_norm",
    "nll_backward": "nll_loss_backward",
    "nll_loss": "nll_loss_forward",
    "norm_alone": "native_layer_norm",
    "product_by_rows": "mm",
    "product_of_narrow": "_scaled_mm",
    "relu_derivative": "threshold_backward",
    "softmax_backward": "_softmax_backward_data",
}
"""Ops that do an operator's work, but not with its arguments: profiles list them under its name."""
