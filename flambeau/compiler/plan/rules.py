"""Which ops can be written to a schedule beside elementwise ones."""

from __future__ import annotations

WINDOWS = frozenset(("unsafe_view", "detach"))
"""Ops that only look at memory in another way, beside those that say so themselves."""

_IN_NUMPY = (
    "matmul", "mm", "addmm", "bmm", "baddbmm", "copied_like", "contiguous_clone", "clone", "threshold",
    "threshold_backward", "pow_number", "sum_all", "sum_dim", "mean_all", "mean_dim", "rnn_layer", "recurrent_backward",
    "cat", "stack", "mse_loss", "convolution", "convolution_backward", "masked_fill_number",
    "slice_backward", "select_backward", "matmul_of_batches", "matmul_of_batches_backward",
)  # fmt: skip
"""Ops whose kernels are written in NumPy's functions and in those of `_backends/arrays.py`."""

_WITH_A_WORKSPACE = (
    "softmax", "softmax_backward", "log_softmax", "log_softmax_backward", "nll_loss", "nll_loss2d", "nll_backward",
    "cross_entropy", "layer_norm", "layer_norm_backward", "rms_norm", "rms_norm_backward", "attention",
    "attention_backward", "max_pool", "max_pool2d_with_indices", "max_pool2d_backward", "avg_pool2d",
    "avg_pool2d_backward", "adaptive_avg_pool2d", "adaptive_avg_pool2d_backward", "native_batch_norm",
    "native_batch_norm_legit", "native_batch_norm_legit_no_stats", "native_batch_norm_legit_no_training",
    "batch_norm_with_update", "batch_norm_backward", "group_norm", "group_norm_backward", "move_running_statistics",
)  # fmt: skip
"""Ops whose lowerings take a workspace."""

CHANGES = frozenset(("move_running_statistics", "copy_"))
"""Ops that change what was there before."""

TRACED = frozenset(_IN_NUMPY + _WITH_A_WORKSPACE)
