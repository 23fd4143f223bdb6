"""What public functions raise: a sentence for all functions that refuse the same."""

from __future__ import annotations

from functools import cache

SENTENCES: dict[str, str] = {
    # shapes that do not fit
    "RuntimeError: the shapes cannot be broadcast together": """
        add sub subtract rsub mul multiply div divide true_divide floor_divide remainder fmod pow float_power atan2
        arctan2 hypot copysign nextafter maximum minimum fmax fmin gcd lcm ldexp logaddexp logaddexp2 xlogy xlog1py zeta
        eq ne not_equal lt less le less_equal gt greater ge greater_equal logical_and logical_or logical_xor bitwise_and
        bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift heaviside igamma igammac gammainc gammaincc
        isclose allclose lerp addcmul addcdiv where masked_fill broadcast_tensors dist""",
    "RuntimeError: `input` has not as many columns as `mat2` has rows, or one of them is no matrix": "mm",
    "RuntimeError: `mat1` has not as many columns as `mat2` has rows, or `input` cannot be broadcast to the product": (
        "addmm"
    ),
    "RuntimeError: the inner sizes of the matrices differ": "matmul bmm",
    "RuntimeError: the inner sizes of the matrices differ, or `input` cannot be broadcast to the result": (
        "baddbmm addbmm"
    ),
    "RuntimeError: the vector has not as many elements as the matrix has columns": "mv addmv",
    "RuntimeError: the tensors are not vectors of the same length": "dot vdot",
    "RuntimeError: the last dimensions differ": "inner",
    "RuntimeError: the dimensions that are summed over have other sizes": "tensordot",
    "RuntimeError: the equation and the operands do not fit": "einsum",
    "RuntimeError: the vectors along `dim` do not have three elements": "cross",
    "RuntimeError: the shapes differ in another dimension than the joined one": """
        cat concat concatenate hstack vstack row_stack dstack column_stack""",
    "RuntimeError: the tensors do not all have the same shape, or there are none": "stack",
    "RuntimeError: the new shape has another number of elements": "reshape view_copy unflatten",
    "RuntimeError: the shape cannot be had without a copy, or has another number of elements": "view",
    "RuntimeError: a size that is not 1 would change": "expand broadcast_to expand_copy",
    "RuntimeError: the sizes do not add up to the size of `dim`": "split_with_sizes split_with_sizes_copy",
    "RuntimeError: the dimensions are not each given once": "permute permute_copy",
    "RuntimeError: `start` and `length` reach beyond the dimension": "narrow narrow_copy",
    "RuntimeError: a size is negative": """
        zeros ones empty full rand randn eye new_zeros new_ones new_empty new_full""",
    "RuntimeError: `steps` is negative": "linspace logspace",
    "RuntimeError: the step is zero, or leads away from the end": "arange",
    # positions
    "IndexError: `dim` is not a dimension of the tensor": """
        sum nansum mean nanmean prod all any amax amin aminmax argmax argmin max min median nanmedian mode kthvalue
        quantile nanquantile logsumexp var std var_mean std_mean count_nonzero cumsum cumprod cummax cummin logcumsumexp
        softmax log_softmax softmin sort argsort topk unbind chunk split tensor_split select squeeze unsqueeze diff
        flip index_select index_add index_copy index_fill gather scatter scatter_add scatter_reduce renorm glu
        cosine_similarity""",
    "IndexError: `dim0` or `dim1` is not a dimension of the tensor": "transpose swapdims",
    "IndexError: an index is out of range": "index_select nn.functional.embedding take index_put select index_fill",
    "RuntimeError: an index is out of range": "gather scatter scatter_add scatter_reduce index_add",
    "RuntimeError: `k` is larger than the dimension": "topk kthvalue",
    "IndexError: a target is no class": "cross_entropy nll_loss",
    "RuntimeError: a class is negative, or not below `num_classes`": "one_hot",
    # numbers that have no meaning
    "ValueError: `p` is not between 0 and 1": """
        nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d
        nn.functional.alpha_dropout nn.functional.feature_alpha_dropout""",
    "RuntimeError: a probability is negative or not finite, or more are drawn than there are without replacement": (
        "multinomial"
    ),
    "RuntimeError: a probability is not between 0 and 1": "bernoulli",
    "RuntimeError: `std` is negative": "normal",
    "RuntimeError: both bounds are absent": "clamp clip",
    "RuntimeError: `n` is negative": "randperm",
    'RuntimeError: `rounding_mode` is not None, "trunc" or "floor"': "div divide",
    'ValueError: `reduction` is not "none", "mean" or "sum"': """
        nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss nn.functional.huber_loss
        nn.functional.cross_entropy nn.functional.nll_loss nn.functional.binary_cross_entropy
        nn.functional.binary_cross_entropy_with_logits nn.functional.kl_div nn.functional.soft_margin_loss
        nn.functional.hinge_embedding_loss nn.functional.cosine_embedding_loss nn.functional.margin_ranking_loss
        nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.triplet_margin_loss
        nn.functional.ctc_loss nn.functional.gaussian_nll_loss""",
    # layers
    "RuntimeError: `input` and `weight` have other numbers of features": "linear bilinear",
    "RuntimeError: `input` has another number of channels than `weight` takes, or the window is larger than it": """
        conv1d conv2d conv3d""",
    "RuntimeError: `input` has another number of channels than `weight` takes": """
        conv_transpose1d conv_transpose2d conv_transpose3d""",
    "RuntimeError: the window is larger than the padded input, or the padding than half of the window": """
        max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d""",
    "RuntimeError: the last dimensions of `input` are not `normalized_shape`": "layer_norm rms_norm",
    "RuntimeError: the channels do not divide into `num_groups`": "group_norm",
    "ValueError: in training there is one value for each channel": "nn.functional.batch_norm",
    "RuntimeError: `weight` is neither one number nor one for each channel": "prelu",
    "RuntimeError: the channels do not divide into squares of `upscale_factor`": "pixel_shuffle",
    "RuntimeError: the shapes of query, key and value do not fit": "scaled_dot_product_attention",
    # matrices
    "torch.linalg.LinAlgError: a matrix is not positive-definite": "cholesky",
    "torch.linalg.LinAlgError: a matrix is singular": "inv inverse linalg.solve",
    "RuntimeError: the matrices are not square": """
        det slogdet logdet inv inverse cholesky eig eigvals eigh eigvalsh matrix_exp matrix_power""",
}


@cache
def _by_name() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for sentence, names in SENTENCES.items():
        for name in names.split():
            found.setdefault(name, []).append(f"{sentence}.")
    return found


def raised(name: str, original: str) -> list[str]:
    """What a public function raises, for its docstring; `original` as in `return_docs.returned`.

    A name with its module is that function's alone, one without it belongs to all functions that are so called.
    """
    known = _by_name()
    keys = dict.fromkeys((original, name.rstrip("_"), original.rpartition(".")[2], name.rpartition(".")[2].rstrip("_")))
    return list(dict.fromkeys(sentence for key in keys for sentence in known.get(key, ())))
