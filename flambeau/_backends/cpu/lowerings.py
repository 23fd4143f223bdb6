"""Which ops the CPU has kernels for beside NumPy's: names of ops, and where the functions are that run them.

A lowering takes the arguments of the op's kernel, and returns None for what it does not do. Its module is imported when
the op first runs: that may start a compiler.
"""

from __future__ import annotations

from ..._core.backend import Find, Kernel, backend_of
from ..tiers import generated

_GENERATED = {
    "softmax": "rows.softmax",
    "softmax_backward": "rows.softmax_backward",
    "log_softmax": "rows.log_softmax",
    "log_softmax_backward": "rows.log_softmax_backward",
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
    "attention": "attention.attention",
    "attention_backward": "attention.attention_gradients",
}
"""Ops with generated kernels, as `family.function`."""


def _generated(name: str) -> Kernel | None:
    family, function = _GENERATED[name].split(".")
    module = generated(family)
    return None if module is None else getattr(module, function)


def push() -> None:
    """Put the lowerings into the table of the CPU's backend."""
    lowerings: dict[str, Find] = dict.fromkeys(_GENERATED, _generated)
    backend_of("cpu").push(lowerings)
