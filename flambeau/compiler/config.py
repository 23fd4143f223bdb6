"""Settings of PyTorch's compiler: they can be made, and are kept. None changes what a program does."""

from __future__ import annotations

from .._core.names.settings_module import settings

__getattr__, __dir__ = settings(
    __name__,
    accumulated_recompile_limit=256,
    allow_unspec_int_on_nn_module=False,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_key_tag="",
    capture_dynamic_output_shape_ops=False,
    capture_scalar_outputs=False,
    dynamic_shapes=True,
    dynamic_sources="",
    enable_cpp_symbolic_shape_guards=False,
    fail_on_recompile_limit_hit=False,
    force_disable_caches=False,
    job_id=None,
    log_file_name=None,
    recompile_limit=8,
    reorderable_logging_functions=set(),
    skip_tensor_guards_with_matching_dict_tags=True,
    verbose=False,
    wrap_top_frame=False,
)
