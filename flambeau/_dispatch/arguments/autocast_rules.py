"""Which functions autocast casts the inputs of, for each type of device, and to what.

The keys are the public names of functions, with their namespace. A rule is a word, a condition, or a function that
is called with the function's own body, its arguments and a caster (`casting_calls.Caster`), and returns the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ..._core.dtype import float32

LOWER, FULL, WIDEST, FULL_RESULT = "lower", "full", "widest", "full_result"
"""Rules: in the lower precision (products of matrices and what is made of them); in float32 (what needs the range or
the precision); in the widest dtype of the inputs (what only brings tensors together); with `dtype=float32` unless the
caller says otherwise (sums and their kin)."""


class FullIf(NamedTuple):
    """In float32 if an argument is one of some values: `among` them, or else if it is none of them."""

    parameter: str
    values: tuple[Any, ...]
    among: bool


def lower_result(body: Any, args: Any, kwargs: Any, caster: Any) -> Any:
    """In the precision of the inputs up to the last step, which is a product of matrices."""
    return caster.in_lower(body(*args, **kwargs))


def by_state(body: Any, args: Any, kwargs: Any, caster: Any) -> Any:
    """Recurrent steps: products in the lower precision, the state in its own."""
    position = 1 if isinstance(args[1], (list, tuple)) or args[1].is_floating_point() else 2  # 2: after batch_sizes
    state = args[position]
    low, low_kwargs = caster.all_in(LOWER, args, kwargs)
    if (state[0] if isinstance(state, (list, tuple)) else state).dtype is not float32:
        return body(*low, **low_kwargs)
    rounded = *low[:position], state, *low[position + 1 :]
    back, back_kwargs = caster.all_in(FULL, rounded, low_kwargs)
    return body(*back, **back_kwargs)


def refused(body: Any, args: Any, kwargs: Any, caster: Any) -> NoReturn:
    """Not at all: the logarithms of probabilities that were rounded to half precision are of no use."""
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use "
        "binary_cross_entropy_with_logits or BCEWithLogitsLoss on what goes into the sigmoid: they are safe."
    )


Rule = str | FullIf | Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any], Any]


def _table(*groups: tuple[Rule, str]) -> dict[str, Rule]:
    return {name: rule for rule, names in groups for name in names.split()}


_PRODUCTS = """
    addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    linalg.vecdot matmul mm prelu nn.functional.linear nn.functional.scaled_dot_product_attention
"""
_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss kl_div margin_ranking_loss
    poisson_nll_loss triplet_margin_loss
    nn.functional.binary_cross_entropy_with_logits nn.functional.cosine_embedding_loss nn.functional.cross_entropy
    nn.functional.hinge_embedding_loss nn.functional.huber_loss nn.functional.kl_div nn.functional.l1_loss
    nn.functional.margin_ranking_loss nn.functional.mse_loss nn.functional.multi_margin_loss
    nn.functional.multilabel_margin_loss nn.functional.nll_loss nn.functional.poisson_nll_loss
    nn.functional.smooth_l1_loss nn.functional.soft_margin_loss nn.functional.triplet_margin_loss
"""

RULES: dict[str, dict[str, Rule]] = {
    "cpu": _table(
        (LOWER, f"{_PRODUCTS} lstm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"),
        (lower_result, "corrcoef cov linalg.pinv"),
        (by_state, "gru gru_cell lstm_cell"),
        (
            FULL,
            f"""
            {_LOSSES} cdist cholesky cholesky_inverse cholesky_solve ctc_loss geqrf grid_sampler grid_sampler_2d
            grid_sampler_3d inverse lu lu_solve nanquantile orgqr ormqr pca_lowrank pinverse polar prod qr quantile
            stft svd svd_lowrank trace triangular_solve view_as_complex fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft
            fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn
            linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh
            linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq linalg.matrix_rank linalg.qr
            linalg.solve linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve
            nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool3d nn.functional.avg_pool3d
            nn.functional.binary_cross_entropy nn.functional.fractional_max_pool2d
            nn.functional.fractional_max_pool3d nn.functional.ctc_loss nn.functional.grid_sample
            nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d
            """,
        ),
        (FullIf("return_indices", (True,), False), "max_pool3d nn.functional.max_pool3d"),
        (FullIf("mode", ("reflect", "replicate"), True), "nn.functional.pad"),
        (WIDEST, "cat column_stack dstack hstack index_copy stack vstack"),
    ),
    "cuda": _table(
        (
            LOWER,
            f"""
            {_PRODUCTS} addmv addr chain_matmul convolution einsum gru gru_cell linalg.multi_dot lstm lstm_cell mv
            rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
            """,
        ),
        (
            FULL,
            f"""
            {_LOSSES} cdist cosine_similarity dist group_norm layer_norm linalg.matrix_norm linalg.norm
            linalg.vector_norm logsumexp native_layer_norm norm pdist pow renorm rms_norm square
            nn.functional.group_norm nn.functional.layer_norm nn.functional.normalize pairwise_distance
            nn.functional.softplus nn.functional.triplet_margin_with_distance_loss nn.functional.upsample_bilinear
            nn.functional.upsample_nearest
            """,
        ),
        (FullIf("mode", ("area",), False), "nn.functional.interpolate"),
        (FULL_RESULT, "cumprod cumsum log_softmax nn.functional.softmin prod softmax sum"),
        (
            WIDEST,
            """
            addcdiv addcmul bilinear cross dot grid_sampler index_put nn.functional.grid_sample scatter_add tensordot
            vdot
            """,
        ),
        (refused, "nn.functional.binary_cross_entropy"),
    ),
}
"""For each type of device the functions that have a rule."""

ELEMENTWISE: dict[str, dict[str, Rule]] = {
    "cuda": _table(
        (FULL, "acos asin cosh erfinv exp expm1 log log10 log1p log2 reciprocal rsqrt sinh tan"),
        (WIDEST, "atan2"),
    )
}
"""The same for elementwise ops, by the names of the ops."""

NAMES = frozenset(name for rules in RULES.values() for name in rules)
"""The functions that have a rule for some type of device."""

ELEMENTWISE_NAMES = frozenset(name for rules in ELEMENTWISE.values() for name in rules)
"""The elementwise ops among them."""
