"""What public functions return: a sentence for all functions that return alike.

The text before a colon is the type shown, or the names of several results; otherwise it is Tensor.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

SENTENCES: dict[str, str] = {
    # of the input's shape
    "of the shape of `input`": """
        square positive round logit angle nan_to_num conj conj_physical resolve_conj resolve_neg clamp clip clamp_min
        clamp_max polygamma mvlgamma multigammaln bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0
        modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 threshold prelu rrelu selu celu hardshrink relu
        hardtanh relu6 leaky_relu elu gelu silu mish softplus logsigmoid softsign tanhshrink hardsigmoid hardswish
        softshrink softmax log_softmax softmin cumsum cumprod logcumsumexp normalize renorm msort flip fliplr flipud
        roll tril triu fftshift ifftshift dropout feature_dropout alpha_dropout feature_alpha_dropout dropout1d
        dropout2d dropout3d layer_norm rms_norm group_norm batch_norm instance_norm local_response_norm channel_shuffle
        native_channel_shuffle fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
        fused_moving_avg_obs_fake_quant gumbel_softmax ndtr poisson bernoulli""",
    "of the shape of `x`": """
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
        hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p""",
    "a new tensor of the shape and dtype of `input`": """
        put index_add index_copy index_fill index_reduce masked_fill masked_scatter scatter scatter_add scatter_reduce
        index_put select_scatter slice_scatter diagonal_scatter as_strided_scatter fill clone alias_copy
        detach_copy""",
    "of the shape, dtype and device of `input`, unless told otherwise": """
        zeros_like ones_like empty_like full_like rand_like randn_like randint_like""",
    "int64, of the shape of `input`": "argsort",
    "bool, of the shape of the broadcast operands": "isclose",
    "bool, of the shape of `elements`": "isin",
    "of the shape to which the operands are broadcast": """
        add sub subtract rsub div divide true_divide remainder fmod pow float_power xlogy xlog1py zeta copysign ldexp
        heaviside lerp addcmul addcdiv complex polar logaddexp binomial""",
    # made from sizes
    "of the given shape": """
        zeros ones empty empty_strided empty_permuted full rand randn randint normal empty_quantized new_zeros new_ones
        new_empty new_full new_empty_strided""",
    "0-d": "scalar_tensor",
    "(n, m)": "eye",
    "of the shape of the nested data": "tensor as_tensor asarray new_tensor new",
    "the array's shape, dtype and memory": "from_numpy from_dlpack",
    "one dimension, on the buffer's or the file's memory": "frombuffer from_file",
    "one dimension, with as many elements as there are steps from start to end": "arange range",
    "one dimension, `steps` elements": "linspace logspace",
    "(2, number of elements), row numbers above column numbers": "tril_indices triu_indices",
    "(number of elements, N)": "vander",
    "int64, n elements": "randperm",
    "int64, (..., num_samples)": "multinomial",
    "one dimension, one number for each point of the window": """
        hann_window hamming_window bartlett_window blackman_window kaiser_window hamming hann blackman nuttall
        exponential cosine gaussian kaiser general_cosine bartlett general_hamming""",
    # parts and joints
    "of the shape of `index`": "gather take",
    "of the broadcast shape of `input` and `indices`, except along `dim`": "take_along_dim",
    "of `input`'s shape, with the length of `index` at `dim`": "index_select",
    "of the broadcast shape of the three; with a condition alone a tuple of positions, one for each dimension": "where",
    "the selected elements in row-major order, in one dimension": "masked_select",
    "int64, (number of elements found, dimensions); a tuple of one tensor for each dimension with `as_tuple`": (
        "nonzero"
    ),
    "int64, (number of elements found, dimensions)": "argwhere",
    "int64, (size, dimensions)": "nonzero_static",
    "tuple of Tensors: the positions along each dimension, in the shape of `indices`": "unravel_index",
    "of the tensors' shape, with the sum of their sizes along the joined dimension": """
        cat concat concatenate hstack vstack row_stack dstack column_stack""",
    "one dimension more than the tensors have": "stack",
    "a matrix, as high and as wide as all blocks together": "block_diag",
    "tuple of Tensors: one for each vector, all of the grid's shape": "meshgrid",
    "(number of combinations, number of vectors)": "cartesian_prod",
    "(number of combinations, r)": "combinations",
    "tuple of Tensors: views, which share memory with the input": """
        split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit""",
    "tuple of Tensors: the parts": """
        unsafe_split unsafe_split_with_sizes unsafe_chunk split_copy split_with_sizes_copy unbind_copy""",
    # views
    "a view of the given shape; a copy where the strides do not allow a view": "reshape reshape_as flatten ravel",
    "a view of the given shape": "view view_as unflatten expand expand_as broadcast_to as_strided",
    "a view with the two dimensions exchanged": "transpose swapdims swapaxes t adjoint",
    "a view with the dimensions in another order": "permute movedim moveaxis",
    "a view without the dimensions of size 1": "squeeze",
    "a view with one dimension more": "unsqueeze",
    "a view with one dimension less": "select",
    "a view, smaller along one dimension": "narrow",
    "a view of the diagonals, which are its last dimension": "diagonal",
    "a view whose last dimension is the window": "unfold",
    "a view on the same memory": "detach view_as_real view_as_complex real imag",
    "a copy with the shape that the view has": """
        as_strided_copy diagonal_copy expand_copy permute_copy select_copy slice_copy narrow_copy squeeze_copy t_copy
        transpose_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy""",
    "Size: the common shape": "broadcast_shapes",
    "tuple of Tensors: views of the common shape": "broadcast_tensors",
    "Tensor or tuple of Tensors: one for each tensor given": "atleast_1d atleast_2d atleast_3d",
    "of the given shape, summed over the dimensions that it lacks": "sum_to_size",
    "of `input`'s shape, each size times its number of copies": "tile repeat",
    "of `input`'s shape, longer along `dim`; one dimension without `dim`": "repeat_interleave",
    "of `input`'s shape, with the two dimensions exchanged if `k` is odd": "rot90",
    "a matrix of a vector, the diagonal of a matrix": "diag",
    "a matrix for each row of `input`": "diag_embed",
    "a matrix": "diagflat",
    "the sum, 0-d": "trace",
    "the tensor before it was sliced": "slice_inverse",
    # reductions that differ from the others
    "(Tensor, Tensor): both as `mean` and `var` alone": "var_mean std_mean",
    "Tensor or (values, indices): the largest or smallest element; with `dim`, also where each one is": "max min",
    "(min, max): both in the reduced shape": "aminmax",
    "of `input`'s shape without `dim`; a position in the flat tensor if that is None": "argmax argmin",
    "(values, indices): in the reduced shape": "kthvalue mode",
    "of `input`'s shape without `dim`": "masked.median",
    "Tensor or (values, indices): the median; with `dim`, also where each one is": "median nanmedian",
    "of the shape of `q` in front of the reduced shape": "quantile nanquantile",
    "int64, of the reduced shape": "count_nonzero",
    "the distance, 0-d": "dist",
    "(values, indices): in the shape of `input`": "cummax cummin sort",
    "(values, indices): `input`'s shape, with size `k` at `dim`": "topk",
    "of `input`'s shape, shorter by `n` along `dim`": "diff",
    "of `y`'s shape without `dim`": "trapezoid trapz",
    "of `y`'s shape, shorter by 1 along `dim`": "cumulative_trapezoid",
    "one result for each segment along `axis`": "segment_reduce",
    "Tensor or tuple of Tensors: the elements; then, if asked for, positions and counts": "unique unique_consecutive",
    "int64 or int32, of the shape of the values": "searchsorted bucketize",
    "one dimension, a count for each number from 0 to the largest": "bincount",
    "one dimension, `bins` elements": "histc",
    "(hist, bin_edges): the counts, and one edge more than there are bins": "histogram",
    "(hist, bin_edges): the counts, and the edges of each dimension": "histogramdd",
    "(variables, variables)": "cov corrcoef",
    "tuple of Tensors: one derivative for each dimension, in the shape of `input`": "gradient",
    "(mantissa, exponent): in the shape of `input`; exponents are int32": "frexp",
    # products and linear algebra
    "(n, p), for matrices (n, m) and (m, p)": (
        "mm addmm spmm dsmm hsmm hspmm smm sspaddmm saddmm _sparse_mm _sparse_addmm"
    ),
    "(b, n, p), for batches (b, n, m) and (b, m, p)": "bmm baddbmm",
    "(n, p), the sum over the batch": "addbmm",
    "(n), for a matrix (n, m)": "mv addmv",
    "(n, m), for vectors of n and m elements": "outer ger addr",
    "the sum of products, 0-d": "dot vdot",
    "of the leading dimensions of `input`, then those of `other`": "inner",
    "(..., n, p), the batch dimensions broadcast; vectors leave no dimension behind": "matmul",
    "(..., out_features)": "linear bilinear",
    "the dimensions that the equation names after the arrow": "einsum",
    "the dimensions of `a` that are not summed over, then those of `b`": "tensordot",
    "(rows of the first matrix, columns of the last)": "chain_matmul multi_dot",
    "of the shape of the matrix": """
        matrix_power matrix_exp inverse inv cholesky cholesky_inverse householder_product orgqr""",
    "of the product of the operands' shapes, dimension by dimension": "kron",
    "of the broadcast shape of both": "cross",
    "of the shape of the right-hand sides": """
        cholesky_solve lu_solve ldl_solve solve solve_triangular ormqr""",
    "of the batch shape, one number for each matrix": "det logdet cond matrix_rank",
    "(sign, logabsdet): one number each for each matrix": "slogdet",
    "(inverse, info): info is 0 where there is an inverse": "inv_ex",
    "(result, info): info is 0 where there is a solution": "solve_ex",
    "(L, info): info is 0 where the matrix is positive definite": "cholesky_ex",
    "(solution, cloned_coefficient): the X, and a copy of `A`": "triangular_solve",
    "(Q, R): (..., m, k) and (..., k, n), with k the smaller one of m and n; m if complete": "qr",
    "(U, S, Vh): (..., m, k), (..., k) and (..., k, n); `torch.svd` gives V, (..., n, k), in place of Vh": "svd",
    "(U, S, V): (m, q), (q) and (n, q)": "svd_lowrank pca_lowrank",
    "(..., the smaller one of rows and columns)": "svdvals",
    "(eigenvalues, eigenvectors): (..., n) and (..., n, n), a column for each": "eigh eig",
    "(..., n)": "eigvalsh eigvals",
    "(..., n, m) of a matrix (..., m, n)": "pinv pinverse",
    "(solution, residuals, rank, singular_values): (..., n, k) and what `driver` computes beside it": "lstsq",
    "(a, tau): reflectors and R in one matrix, and a factor for each reflector": "geqrf",
    "(LD, pivots): both factors in one matrix, and the exchanges of rows": "ldl_factor",
    "(LD, pivots, info): info is 0 where D is regular": "ldl_factor_ex",
    "(eigenvalues, eigenvectors): (..., k) and (..., n, k)": "lobpcg",
    "(P, L, U): whose product is the matrix": "lu_unpack linalg.lu",
    "(LU, pivots): both factors in one matrix, and the exchanges of rows": "lu lu_factor",
    "(LU, pivots, info): info is 0 where U has no zero on its diagonal": "lu_factor_ex",
    "of the shape without `dim`": "vecdot",
    "of `A`'s shape, its last dimensions first": "tensorinv",
    "of the shape of `A` without the dimensions of `B`": "tensorsolve",
    "(..., P, R) of (..., P, M) and (..., R, M)": "cdist",
    "one dimension, a number for each pair of rows": "pdist",
    "of the broadcast shape without the dimension of the vectors": "pairwise_distance cosine_similarity",
    "the rows of each group times its matrix, one below the other": "grouped_mm",
    "one norm for each slice, in a shape that broadcasts with `v`": "norm_except_dim",
    # networks
    "(N, out_channels, out_length), where out = (in + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1": (
        "conv1d"
    ),
    "(N, out_channels, out_height, out_width), where out = (in + 2 * padding - dilation * (kernel - 1) - 1) // stride "
    "+ 1": "conv2d",
    "(N, out_channels, out_depth, out_height, out_width), where out = (in + 2 * padding - dilation * (kernel - 1) - 1) "
    "// stride + 1": "conv3d",
    "(N, out_channels, ...), where out = (in - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding "
    "+ 1": ("conv_transpose1d conv_transpose2d conv_transpose3d"),
    "(N, out_channels, ...), as `conv1d` to `conv3d` return it": "convolution mkldnn_convolution",
    "(time + 2 * pad - kernel + 1, N, out_channels)": "conv_tbc",
    "(..., L, Ev)": "scaled_dot_product_attention",
    "(output, weights): (L, N, E) and (N, L, S); the weights are None without `need_weights`": (
        "multi_head_attention_forward"
    ),
    "of the shape of the indices, then the features": "embedding",
    "(bags, features)": "nn.functional.embedding_bag",
    "(Tensor, Tensor, Tensor, Tensor): the bags, the bag of each index, the sizes of bags, the rows of maxima": (
        "embedding_bag"
    ),
    "int64, of the shape of `input`, then `num_classes`": "one_hot",
    "(N, H, W, 2), or (N, D, H, W, 3) for volumes": "affine_grid affine_grid_generator",
    "(N, C * kernel elements, number of blocks)": "nn.functional.unfold",
    "(N, C, height, width) of `output_size`": "fold",
    "(N, C, ...), with the spatial shape of `grid`": "grid_sample grid_sampler grid_sampler_2d grid_sampler_3d",
    "(N, C, ...), with the new spatial size": "interpolate upsample upsample_nearest upsample_bilinear",
    "of `input`'s shape, each size plus what stands before and after it": "pad constant_pad_nd",
    "(..., C, H * r, W * r)": "pixel_shuffle",
    "(..., C * r**2, H / r, W / r)": "pixel_unshuffle",
    "(Tensor, Tensor, Tensor): the result, the means and 1 / the standard deviations": """
        native_layer_norm native_group_norm native_batch_norm""",
    "the reduced loss, 0-d; with no reduction, one loss for each element or sample": """
        binary_cross_entropy_with_logits kl_div mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy nll_loss
        cross_entropy ctc_loss cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss
        poisson_nll_loss gaussian_nll_loss linear_cross_entropy hinge_embedding_loss margin_ranking_loss
        soft_margin_loss multilabel_soft_margin_loss multi_margin_loss multilabel_margin_loss""",
    "(N, C, ...), where out = (in + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1": """
        max_pool1d max_pool2d max_pool3d quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
        mkldnn_max_pool2d mkldnn_max_pool3d""",
    "(N, C, ...), where out = (in + 2 * padding - kernel) // stride + 1": """
        avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d""",
    "(N, C, ...) of `output_size`": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d
        fractional_max_pool2d fractional_max_pool3d mkldnn_adaptive_avg_pool2d nn.functional.adaptive_max_pool1d""",
    "(N, C, ...), as large as the input of the pooling was": "max_unpool1d max_unpool2d max_unpool3d",
    "(Tensor, Tensor): the maxima, and their positions in the flat windowed dimensions": """
        adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
        adaptive_max_pool3d_with_indices fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
        max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices""",
    "(Tensor, Tensor, Tensor): the outputs of all steps, the last states and the last cells": "lstm quantized_lstm",
    "(Tensor, Tensor): the outputs of all steps, and the last states": "gru rnn_tanh rnn_relu quantized_gru",
    "(Tensor, Tensor): the next state and cell, (N, hidden_size)": "lstm_cell quantized_lstm_cell",
    "(N, hidden_size), the next state": """
        gru_cell rnn_tanh_cell rnn_relu_cell quantized_gru_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell""",
    "of `input`'s shape, with half the size at `dim`": "glu",
    "(Tensor, Tensor): the result and the mask, both in the shape of `input`": "native_dropout",
    "(Tensor, Tensor): the means and the variances, one for each channel": "batch_norm_update_stats",
    # signals
    "complex, of the shape of `input`, with `n` elements at `dim`": "fft ifft",
    "complex, of the shape of `input`, with n // 2 + 1 elements at `dim`": "rfft ihfft",
    "real, of the shape of `input`, with `n` elements at `dim`": "irfft hfft",
    "complex, of the shape of `input`, with the sizes `s` at `dim`": "fftn fft2 ifftn ifft2",
    "complex, of the shape of `input`, the last dimension with s // 2 + 1 elements": "rfftn rfft2 ihfftn ihfft2",
    "real, of the shape of `input`, with the sizes `s` at `dim`": "irfftn irfft2 hfftn hfft2",
    "n elements, in cycles per unit": "fftfreq",
    "n // 2 + 1 elements, in cycles per unit": "rfftfreq",
    "complex, (..., frequencies, frames)": "stft",
    "(..., samples)": "istft",
    # sparse and quantized tensors
    "sparse, in the layout that the function names": """
        sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc
        sampled_addmm spdiags sparse_mask coalesce _sparse_softmax _sparse_log_softmax""",
    "the sum, 0-d; with `dim`, the remaining dimensions, sparse while one of them is": "_sparse_sum",
    "int64, one dimension": """
        crow_indices col_indices ccol_indices row_indices crow_indices_copy col_indices_copy ccol_indices_copy
        row_indices_copy""",
    "int64, (sparse dimensions, number of values)": "indices",
    "(number of values, ...)": "values",
    "strided, of the same shape": "to_dense",
    "of the layout `torch._mkldnn`": "to_mkldnn",
    "int: the number of dimensions": "sparse_dim dense_dim",
    "quantized, of the shape of `input`": """
        quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic quantized_batch_norm""",
    "float32, of the shape of the quantized tensor": "dequantize",
    "integers, of the shape of `input`": "int_repr",
    "float: the scale": "q_scale",
    "int: the zero point": "q_zero_point",
    "int: the dimension": "q_per_channel_axis",
    "one number for each slice": "q_per_channel_scales q_per_channel_zero_points",
    "qscheme: such as `torch.per_tensor_affine`": "qscheme",
    "(Tensor, Tensor): the upper and the lower end, one element each": "choose_qparams_optimized",
    "(Tensor, Tensor, float, int): codes, sums of columns, scale and zero point": "fbgemm_linear_quantize_weight",
    "the packed matrix": "fbgemm_pack_quantized_matrix fbgemm_pack_gemm_matrix_fp16",
    "float32, (..., out_features)": """
        fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_int8_weight fbgemm_linear_fp16_weight_fp32_activation
        fbgemm_linear_fp16_weight""",
    "(Tensor, Tensor or None): the gradients of the weight and of the bias": "mkldnn_linear_backward_weights",
    "(Tensor, Tensor, Tensor, Tensor): outputs, the last state and cell, and memory for the backward pass": (
        "mkldnn_rnn_layer"
    ),
    # conversions
    "of the shape of `input`; `input` itself if it is that already": """
        to float double half bfloat16 int long short chalf cfloat cdouble char byte bool cpu cuda type_as contiguous
        pin_memory""",
    "str or Tensor: the name; with an argument the converted tensor": "type",
    "numpy.ndarray: on the tensor's memory": "numpy",
    "number: an int, float, complex or bool": "item",
    "list or number: nested as deep as the tensor has dimensions": "tolist",
    "capsule: for the consumer's `from_dlpack`": "to_dlpack",
    "subclass of Tensor: on the same memory": "as_subclass",
    "the new value of the parameter": "module_load",
    "a view of the given shape, with as many elements": "resize resize_as",
    "TypedStorage: the memory as elements": "storage",
    "type: a class of storages": "storage_type",
    "tuple of ints: the dimensions, the slowest first": "dim_order",
    "int: the address": "const_data_ptr",
    # answers
    "bool: the answer": """
        allclose equal is_conj is_neg is_coalesced is_contiguous is_floating_point is_complex is_signed is_nonzero
        is_same_size is_inference is_tensor is_storage can_cast is_distributed is_shared is_pinned is_set_to""",
    "int: the number of elements": "numel",
    "int: the device's number, -1 on the CPU": "get_device",
    "dtype: the common dtype": "result_type",
    "str: the name": "typename",
    "Generator: the default generator": "manual_seed",
    "int: the seed": "seed initial_seed",
    "uint8, the generator's state": "get_rng_state",
    "Generator or None: what to pass as `generator=`": "thread_safe_generator",
}

CHANGED = "`input` itself, changed"
REDUCED = "of `input`'s shape without `dim`, or with size 1 there if `keepdim`; 0-d if all are reduced"
"""Of functions with `dim` and `keepdim`."""


@cache
def _sentences() -> dict[str, str]:
    return {name: sentence for sentence, names in SENTENCES.items() for name in names.split()}


def returned(name: str, original: str, parameters: Collection[str], annotation: str) -> str:
    """What a public function returns, for its docstring; its annotation where that says all.

    `original` is the function of which it is another name or the in-place form.
    """
    sentences = _sentences()
    keys = (name, original, name.rpartition(".")[2], original.rpartition(".")[2])
    found = next((sentences[key] for key in keys if key in sentences), "")
    if annotation in _SAY_ALL:
        return annotation
    if name.endswith("_"):
        found = CHANGED
    elif not found and "keepdim" in parameters and "dim" in parameters:
        found = REDUCED
    if not found:
        return annotation
    return f"{found}." if ": " in found else f"Tensor: {found}."


_SAY_ALL = ("None", "NoReturn")
