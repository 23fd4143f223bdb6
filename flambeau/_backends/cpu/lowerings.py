"""The CPU's kernels beside NumPy's: lowerings of ops, functions of `_backends/arrays.py`, and where they are.

A lowering takes the arguments of the op's kernel, and returns None for what it does not do. Its module is imported when
the op first runs: that may start a compiler.
"""

from __future__ import annotations

from typing import Any

from ..._core.backend import Kernel, backend_of
from ..tiers import generated, library
from .convolution import tiers as convolution

KERNELS = {
    # Lowerings of ops
    "int8pack_mm": "packed_weights.int8pack_mm",
    "int4pack_mm": "packed_weights.int4pack_mm",
    "softmax": "rows.softmax",
    "safe_softmax": "rows.safe_softmax",
    "softmax_backward": "rows.softmax_backward",
    "log_softmax": "rows.log_softmax",
    "log_softmax_backward": "rows.log_softmax_backward",
    "logsumexp": "rows.logsumexp",
    "cosine_similarity": "rows.cosine",
    "nll_loss": "losses.nll_loss",
    "nll_loss2d": "losses.nll_loss",
    "nll_backward": "losses.nll_loss_gradient",
    "cross_entropy": "losses.cross_entropy",
    "layer_norm": "norms.layer_norm",
    "layer_norm_backward": "norms.layer_norm_backward",
    "rms_norm": "norms.rms_norm",
    "rms_norm_backward": "norms.rms_norm_backward",
    "group_norm": "norms.group_norm",
    "group_norm_backward": "norms.group_norm_backward",
    "native_batch_norm": "norms.batch_norm",
    "native_batch_norm_legit": "norms.batch_norm",
    "native_batch_norm_legit_no_stats": "norms.batch_norm",
    "native_batch_norm_legit_no_training": "norms.batch_norm",
    "batch_norm_with_update": "norms.batch_norm",
    "batch_norm_backward": "norms.batch_norm_backward",
    "move_running_statistics": "norms.move_running",
    "list_norms": "multi.norms",
    "grid_sampler_2d": "grid_sample.sampled",
    "grid_sampler_2d_backward": "grid_sample.sampled_backward",
    "grid_sampler_3d": "grid_sample.sampled",
    "grid_sampler_3d_backward": "grid_sample.sampled_backward",
    "reflection_pad1d": "pad.reflected",
    "reflection_pad2d": "pad.reflected",
    "reflection_pad3d": "pad.reflected",
    "replication_pad1d": "pad.replicated",
    "replication_pad2d": "pad.replicated",
    "replication_pad3d": "pad.replicated",
    "embedding_dense_backward": "gather.embedding_backward",
    "max_pool": "pool.max_pool",
    "max_pool2d_with_indices": "pool.max_pool_with_indices",
    "max_pool2d_backward": "pool.max_pool2d_backward",
    "adaptive_max_pool2d": "pool.adaptive_max_pool2d",
    "adaptive_max_pool2d_backward": "pool.adaptive_max_pool2d_backward",
    "avg_pool2d": "pool.avg_pool2d",
    "avg_pool2d_backward": "pool.avg_pool2d_backward",
    "adaptive_avg_pool2d": "pool.adaptive_avg_pool2d",
    "adaptive_avg_pool2d_backward": "pool.adaptive_avg_pool2d_backward",
    "attention": "attention.attention",
    "attention_backward": "attention.attention_gradients",
    "uniform_": "fills.uniform",
    "normal_": "fills.normal",
    "log_normal_": "fills.log_normal",
    "exponential_": "fills.exponential",
    "cauchy_": "fills.cauchy",
    "geometric_": "fills.geometric",
    "random_between_": "fills.whole_between",
    "bernoulli_number_": "fills.coins",
    "bernoulli": "fills.coins_of_chances",
    "randperm_": "fills.permutation",
    "aminmax": "reduce.aminmax",
    "mode": "select.mode",
    "poisson": "rejection.poisson",
    "binomial": "rejection.binomial",
    "gamma": "rejection.gamma",
    "dirichlet": "rejection.dirichlet",
    "multinomial": "rejection.multinomial",
    "fft_c2c": "fourier.complex_to_complex",
    "fft_r2c": "fourier.real_to_complex",
    "fft_c2r": "fourier.complex_to_real",
    # Functions on arrays
    "copy_into": "copy.copy_into",
    "contiguous": "copy.contiguous",
    "flipped": "copy.flipped",
    "triangle": "copy.triangle",
    "concatenated": "join.concatenated",
    "fill_spaced": "ranges.fill_spaced",
    "fill_where": "masks.fill",
    "within": "gather.within",
    "gathered": "gather.gathered",
    "selected": "gather.selected",
    "selected_places": "gather.selected_places",
    "embedding": "gather.embedding",
    "scattered": "gather.scattered",
    "add_slices": "gather.add_slices",
    "taps_summed": "window_sums.summed",
    "product": "matmul.product",
    "product_of_few_rows": "matmul.product_of_few_rows",
    "products_of_batch": "library.products_of_batch",
    "library_product": "library.product",
    "threaded_product": "threaded_blas.product",
    "sparse_product": "sparse_product.sparse_product",
    "all_distances": "distances.all_distances",
    "distances_of_pairs": "distances.distances_of_pairs",
    "increased": "pointwise.increased",
    "reduced": "reduce.reduced",
    "bounds": "reduce.bounds",
    "variances": "reduce.variances",
    "squared_deviations": "reduce.squared_deviations",
    "running": "scan.running",
    "running_extremes": "scan.extremes",
    "ranked": "select.selected",
    "leading": "select.leading",
    "extremes": "select.extremes",
    "gamma_integral": "gamma_gradient.gamma_integral",
    # Families
    "multi": "multi",
    "pointwise": "pointwise",
    "random": "random",
    "recurrent": "recurrent",
}
"""For the name of a kernel `family.function`; for that of a family the family."""

CONVOLUTIONS = ("correlate", "correlate_transposed", "weight_gradient")
"""The functions on arrays that choose among families."""


def _find(name: str) -> Any:
    family, _, function = KERNELS[name].partition(".")
    module: Any = library() if family == "library" else generated(family)
    return getattr(module, function) if function and module is not None else module


def _choosing(name: str) -> Kernel:
    """A function that chooses among families, which it loads itself."""
    found: Kernel = getattr(convolution, name)
    return found


def push() -> None:
    """Put the kernels into the table of NumPy's arrays."""
    backend_of("cpu").push({**dict.fromkeys(KERNELS, _find), **dict.fromkeys(CONVOLUTIONS, _choosing)})
