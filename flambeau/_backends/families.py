"""Where the kernels of a family stand: the same folder and file for the CPU and for CUDA, as far as both have them."""

from __future__ import annotations

_FOLDERS = {
    "arrays": "placeholders views",
    "convolution": "conv grid_sample pad pool",
    "elementwise": "copy fused multi pointwise ranges",
    "indexing": "gather join masks row_sums",
    "layers": "attention class_loss linear recurrent recurrent_network",
    "linalg": "distances fourier gemm layer_gradients matmul packed_weights products sparse_product threaded_blas",
    "random": "fills gamma_gradient permutations rejection",
    "reductions": "group_norm losses norms reduce rows scan select window_sums",
    "runtime": "call_list identities segments",
}
PLACES: dict[str, str] = {
    **{family: f"{folder}.{family}" for folder, families in _FOLDERS.items() for family in families.split()},
    "choices": "runtime.autotune",
    "conv_blocks": "convolution.blocks",
    "conv_few": "convolution.small",
    "conv_one_tap": "convolution.one_tap",
    "interchange": "memory.dlpack",
    "random": "random.sampling",
    "scaled": "linalg.scaled_mm",
}
"""For a family its module, as seen from `_backends/cpu` and from `_backends/cuda`."""


def by_family(**families: str) -> dict[str, str]:
    """For the name of each kernel `family.function`, from the kernels that each family has: `name`, or `name=function`
    where the function has another name.
    """
    entries = ((family, *each.partition("=")) for family, names in families.items() for each in names.split())
    return {name: f"{family}.{function or name}" for family, name, _, function in entries}
