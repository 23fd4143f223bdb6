"""The CPU's kernels beside NumPy's: lowerings of ops, functions of `_backends/arrays.py`, and where they are.

A lowering takes the arguments of the op's kernel, and returns None for what it does not do. Its module is imported when
the op first runs: that may start a compiler.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..._core.backend import Kernel, backend_of
from ..families import by_family
from ..tiers import generated, library

_LOWERINGS = by_family(
    packed_weights="int8pack_mm int4pack_mm",
    rows="softmax safe_softmax softmax_backward log_softmax log_softmax_backward logsumexp cosine_similarity=cosine",
    losses="nll_loss nll_loss2d=nll_loss nll_backward=nll_loss_gradient cross_entropy",
    norms=(
        "layer_norm layer_norm_backward rms_norm rms_norm_backward group_norm group_norm_backward "
        "native_batch_norm=batch_norm native_batch_norm_legit=batch_norm native_batch_norm_legit_no_stats=batch_norm "
        "native_batch_norm_legit_no_training=batch_norm batch_norm_with_update=batch_norm batch_norm_backward "
        "move_running_statistics=move_running"
    ),
    multi="list_norms=norms",
    grid_sample=(
        "grid_sampler_2d=sampled grid_sampler_2d_backward=sampled_backward grid_sampler_3d=sampled "
        "grid_sampler_3d_backward=sampled_backward"
    ),
    pad=(
        "reflection_pad1d=reflected reflection_pad2d=reflected reflection_pad3d=reflected "
        "replication_pad1d=replicated replication_pad2d=replicated replication_pad3d=replicated"
    ),
    gather="embedding_dense_backward=embedding_backward",
    pool=(
        "max_pool max_pool2d_with_indices=max_pool_with_indices max_pool2d_backward adaptive_max_pool2d "
        "adaptive_max_pool2d_backward avg_pool2d avg_pool2d_backward adaptive_avg_pool2d adaptive_avg_pool2d_backward"
    ),
    attention="attention attention_backward=attention_gradients",
    linear="addmm_of_transposed rows_of_transposed mm_of_transposed=rows_of_transposed",
    fills=(
        "uniform_=uniform normal_=normal log_normal_=log_normal exponential_=exponential cauchy_=cauchy "
        "geometric_=geometric random_between_=whole_between bernoulli_number_=coins bernoulli=coins_of_chances "
        "randperm_=permutation"
    ),
    reduce="aminmax",
    select="mode",
    rejection="poisson binomial gamma dirichlet multinomial",
    fourier="fft_c2c=complex_to_complex fft_r2c=real_to_complex fft_c2r=complex_to_real",
)
"""Lowerings of ops."""

_FUNCTIONS = by_family(
    copy="copy_into contiguous flipped triangle",
    join="concatenated",
    ranges="fill_spaced",
    masks="fill_where=fill",
    gather="within gathered selected selected_places embedding scattered add_slices",
    window_sums="taps_summed=summed",
    matmul="product product_of_few_rows",
    library="products_of_batch library_product=product",
    threaded_blas="threaded_product=product",
    sparse_product="sparse_product",
    distances="all_distances distances_of_pairs",
    pointwise="increased",
    reduce="reduced bounds variances squared_deviations",
    scan="running running_extremes=extremes",
    select="ranked=selected leading extremes",
    gamma_gradient="gamma_integral",
)
"""Functions of `_backends/arrays.py`."""

_FAMILIES = ("multi", "pointwise", "random", "recurrent")

KERNELS = {**_LOWERINGS, **_FUNCTIONS, **{name: name for name in _FAMILIES}}
"""For the name of a kernel `family.function`; for that of a family the family."""

CONVOLUTIONS = ("correlate", "correlate_transposed", "weight_gradient")
"""The functions on arrays that choose among families."""


def _find(name: str) -> Any:
    family, _, function = KERNELS[name].partition(".")
    module: Any = library() if family == "library" else generated(family)
    return getattr(module, function) if function and module is not None else module


def _choosing(name: str) -> Kernel:
    """A function that chooses among families, which it loads itself."""
    found: Kernel = getattr(importlib.import_module(f"{__package__}.convolution.tiers"), name)
    return found


def push() -> None:
    """Put the kernels into the table of NumPy's arrays."""
    backend_of("cpu").push({**dict.fromkeys(KERNELS, _find), **dict.fromkeys(CONVOLUTIONS, _choosing)})
