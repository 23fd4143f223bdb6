"""Settings of PyTorch's code generator: they can be made, and are kept."""

from __future__ import annotations

from types import SimpleNamespace

from flambeau._core.names.settings_module import settings

__getattr__, __dir__ = settings(
    __name__,
    allow_buffer_reuse=True,
    coordinate_descent_tuning=False,
    cpp=SimpleNamespace(threads=-1, simdlen=None, min_chunk_size=512, enable_kernel_profile=False),
    cpp_wrapper=False,
    debug=False,
    dce=False,
    epilogue_fusion=True,
    fallback_random=False,
    force_disable_caches=False,
    force_fuse_int_mm_with_mul=False,
    freezing=False,
    fx_graph_cache=True,
    fx_graph_remote_cache=None,
    max_autotune=False,
    max_autotune_gemm=False,
    max_autotune_gemm_backends="ATEN,TRITON,CPP",
    max_autotune_pointwise=False,
    permute_fusion=False,
    reorder_for_compute_comm_overlap=False,
    shape_padding=True,
    size_asserts=True,
    split_reductions=True,
    trace=SimpleNamespace(enabled=False, graph_diagram=False),
    triton=SimpleNamespace(cudagraphs=False, cudagraph_trees=True, unique_kernel_names=False),
    use_mixed_mm=True,
    verbose_progress=False,
)
