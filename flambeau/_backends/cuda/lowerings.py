"""The kernels of CUDA devices: lowerings of ops, functions of `_backends/arrays.py`, and where they are.

A lowering takes the arguments of the op's kernel, and returns None for what it does not do.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..._core.backend import Backend
from ..families import PLACES
from .runtime.devices import Family

KERNELS = {
    # Lowerings of ops
    "safe_softmax": "rows.safe_softmax",
    "softmax": "rows.softmax",
    "softmax_backward": "rows.softmax_backward",
    "log_softmax": "rows.log_softmax",
    "log_softmax_backward": "rows.log_softmax_backward",
    "sum_all": "reduce.sum_all",
    "sum_dim": "reduce.sum_dim",
    "mean_all": "reduce.mean_all",
    "mean_dim": "reduce.mean_dim",
    "nll_loss": "losses.nll_loss",
    "nll_loss2d": "losses.nll_loss",
    "nll_backward": "losses.nll_loss_gradient",
    "embedding_dense_backward": "losses.embedding_backward",
    "layer_norm": "rows.layer_norm",
    "layer_norm_backward": "rows.layer_norm_backward",
    "rms_norm": "rows.rms_norm",
    "rms_norm_backward": "rows.rms_norm_backward",
    "group_norm": "group_norm.group_norm",
    "group_norm_backward": "group_norm.group_norm_backward",
    "uniform_": "random.uniform",
    "normal_": "random.normal",
    "log_normal_": "random.log_normal",
    "exponential_": "random.exponential",
    "cauchy_": "random.cauchy",
    "geometric_": "random.geometric",
    "random_": "random.integers",
    "random_between_": "random.integers_between",
    "multinomial": "permutations.multinomial",
    "randperm_": "permutations.permutation",
    "bernoulli": "random.bernoulli",
    "bernoulli_number_": "random.bernoulli_number",
    "bernoulli_tensor_": "random.bernoulli_tensor",
    "dropout_mask_": "random.dropout_mask",
    "clone": "copy.clone",
    "contiguous_clone": "copy.contiguous_clone",
    "copied_like": "copy.copied_like",
    "to_copy": "copy.to_copy",
    "check_rows": "gather.check_rows",
    "embedding": "gather.embedding",
    "index": "gather.index",
    "index_select": "gather.index_select",
    "gather": "gather.gather",
    "addmm": "linear.addmm",
    "addmm_of_transposed": "linear.addmm_of_transposed",
    "cat": "join.cat",
    "view": "views.view",
    "transpose": "views.transpose",
    "split": "views.split",
    "t": "views.t",
    "permute": "views.permute",
    "unsqueeze": "views.unsqueeze",
    "slice": "views.slice_",
    "select": "views.select",
    "unbind": "views.unbind",
    "stack": "join.stack",
    "bmm": "products.batches",
    "matmul": "products.matmul",
    "mm": "products.product",
    "mm_of_transposed": "products.by_rows",
    "product_by_rows": "products.by_rows",
    "rows_of_transposed": "products.by_rows",
    "product_of_narrow": "scaled.product",
    "norm_alone": "rows.norm_alone",
    "draw_and_drop": "random.dropout",
    "convolution": "conv.convolution",
    "convolution_backward": "conv.convolution_backward",
    "recurrent_network": "recurrent_network.forward",
    "recurrent_network_backward": "recurrent_network.backward",
    "attention": "attention.attention",
    "attention_backward": "attention.attention_gradients",
    "dropped_attention": "attention.dropped_attention",
    "dropped_attention_backward": "attention.dropped_attention_gradients",
    "native_batch_norm": "norms.batch_norm",
    "native_batch_norm_legit": "norms.batch_norm",
    "native_batch_norm_legit_no_stats": "norms.batch_norm",
    "native_batch_norm_legit_no_training": "norms.batch_norm",
    "batch_norm_with_update": "norms.batch_norm",
    "batch_norm_backward": "norms.batch_norm_backward",
    "move_running_statistics": "norms.move_running",
    "max_pool": "pool.max_pool",
    "max_pool2d_with_indices": "pool.max_pool_with_indices",
    "max_pool2d_backward": "pool.max_pool2d_backward",
    "adaptive_max_pool2d": "pool.adaptive_max_pool2d",
    "adaptive_max_pool2d_backward": "pool.adaptive_max_pool2d_backward",
    "avg_pool2d": "pool.avg_pool2d",
    "avg_pool2d_backward": "pool.avg_pool2d_backward",
    "adaptive_avg_pool2d": "pool.adaptive_avg_pool2d",
    "adaptive_avg_pool2d_backward": "pool.adaptive_avg_pool2d_backward",
    "adapt_loss_scale": "multi.adapt_loss_scale",
    "native_dropout": "fused.dropout",
    "pow_number": "fused.pow_number",
    "native_dropout_backward": "fused.dropout_backward",
    # Functions on arrays
    "add_slices": "row_sums.add_slices",
    "power_gradient": "fused.power_gradient",
    "sparse_product": "sparse_product.sparse_product",
    "sampled_product": "sparse_product.sampled_product",
    "library_product": "products.product",
    "product_of_columns": "products.product_of_columns",
    "products_of_batch": "products.batches",
    "correlate": "conv.correlate",
    "correlate_transposed": "conv.correlate_transposed",
    "weight_gradient": "conv.weight_gradient",
    "runs_recurrent_network": "recurrent_network.serves",
    "runs_dropped_attention": "attention.runs_dropped_attention",
    # Families
    "class_loss": "class_loss",
    "interchange": "interchange",
    "multi": "multi",
    "norms": "norms",
    "placeholders": "placeholders",
    "pointwise": "pointwise",
    "recurrent": "recurrent",
    "segments": "segments",
}
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
