"""The kernels of CUDA devices: lowerings of ops, functions of `_backends/arrays.py`, and where they are.

A lowering takes the arguments of the op's kernel, and returns None for what it does not do.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..._core.backend import Backend
from ..families import PLACES, by_family
from .runtime.devices import Family

_LOWERINGS = by_family(
    rows=(
        "safe_softmax softmax softmax_backward log_softmax log_softmax_backward layer_norm layer_norm_backward "
        "rms_norm rms_norm_backward norm_alone"
    ),
    reduce="sum_all sum_dim mean_all mean_dim",
    losses="nll_loss nll_loss2d=nll_loss nll_backward=nll_loss_gradient embedding_dense_backward=embedding_backward",
    group_norm="group_norm group_norm_backward",
    random=(
        "uniform_=uniform normal_=normal log_normal_=log_normal exponential_=exponential cauchy_=cauchy "
        "geometric_=geometric random_=integers random_between_=integers_between bernoulli "
        "bernoulli_number_=bernoulli_number bernoulli_tensor_=bernoulli_tensor dropout_mask_=dropout_mask "
        "draw_and_drop=dropout"
    ),
    permutations="multinomial randperm_=permutation",
    copy="clone contiguous_clone copied_like to_copy",
    gather="check_rows embedding index index_select gather",
    linear="addmm addmm_of_transposed",
    join="cat stack",
    views="view transpose split t permute unsqueeze slice=slice_ select unbind",
    products=(
        "bmm=batches matmul mm=product mm_of_transposed=by_rows product_by_rows=by_rows rows_of_transposed=by_rows"
    ),
    scaled="product_of_narrow=product",
    conv="convolution convolution_backward",
    recurrent_network="recurrent_network=forward recurrent_network_backward=backward",
    attention=(
        "attention attention_backward=attention_gradients dropped_attention "
        "dropped_attention_backward=dropped_attention_gradients"
    ),
    norms=(
        "native_batch_norm=batch_norm native_batch_norm_legit=batch_norm native_batch_norm_legit_no_stats=batch_norm "
        "native_batch_norm_legit_no_training=batch_norm batch_norm_with_update=batch_norm batch_norm_backward "
        "move_running_statistics=move_running"
    ),
    pool=(
        "max_pool max_pool2d_with_indices=max_pool_with_indices max_pool2d_backward adaptive_max_pool2d "
        "adaptive_max_pool2d_backward avg_pool2d avg_pool2d_backward adaptive_avg_pool2d adaptive_avg_pool2d_backward"
    ),
    multi="adapt_loss_scale",
    fused="native_dropout=dropout pow_number native_dropout_backward=dropout_backward",
)
"""Lowerings of ops."""

_FUNCTIONS = by_family(
    row_sums="add_slices",
    fused="power_gradient",
    sparse_product="sparse_product sampled_product",
    products="library_product=product product_of_columns products_of_batch=batches",
    layer_gradients="addmm_gradients",
    conv="correlate correlate_transposed weight_gradient",
    recurrent_network="runs_recurrent_network=serves",
    attention="runs_dropped_attention",
)
"""Functions of `_backends/arrays.py`."""

_FAMILIES = ("class_loss", "interchange", "multi", "norms", "placeholders", "pointwise", "recurrent", "segments")

KERNELS = {**_LOWERINGS, **_FUNCTIONS, **{name: name for name in _FAMILIES}}
"""For the name of a kernel `family.function`; for that of a family the family."""


def push(backend: Backend) -> None:
    """Put the kernels into the table of the devices' arrays; where there are several devices, each leads to its own."""

    def find(name: str) -> Any:
        family, _, function = KERNELS[name].partition(".")
        module: Any = importlib.import_module(f"{__package__}.{PLACES[family]}")
        if backend.is_for_several:
            module = Family(module)
        return getattr(module, function) if function else module

    backend.push(dict.fromkeys(KERNELS, find))
