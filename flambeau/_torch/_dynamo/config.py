"""Settings of PyTorch's compiler: they can be made, and are kept."""

from __future__ import annotations

from flambeau._core.names.settings_module import settings

__getattr__, __dir__ = settings(
    __name__,
    accumulated_cache_size_limit=256,
    accumulated_recompile_limit=256,
    allow_unspec_int_on_nn_module=False,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_size_limit=8,
    capture_dynamic_output_shape_ops=False,
    capture_func_transforms=True,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    disable=False,
    dynamic_shapes=True,
    error_on_recompile=False,
    fail_on_recompile_limit_hit=False,
    force_parameter_static_shapes=True,
    guard_nn_modules=True,
    inline_inbuilt_nn_modules=True,
    log_level=None,
    numpy_default_float="float64",
    optimize_ddp=True,
    recompile_limit=8,
    skip_fwd_side_effects_in_bwd_under_checkpoint=False,
    specialize_int=False,
    suppress_errors=False,
    trace_numpy=True,
    verbose=False,
)
