"""The modules of the API reference, in the order in which its first page lists them."""

from __future__ import annotations

from flambeau._torch import _rare_names
from flambeau.cuda._missing import kernels

GROUPS: dict[str, list[str]] = {
    "Tensors": ["", "Tensor", "linalg", "fft", "special", "signal.windows", "sparse", "masked", "nested", "random"],
    "Automatic differentiation": [
        "autograd",
        "autograd.functional",
        "autograd.graph",
        "autograd.forward_ad",
        "func",
        "utils.checkpoint",
    ],
    "Neural networks": [
        "nn",
        "nn.functional",
        "nn.init",
        "nn.attention",
        "nn.attention.flex_attention",
        "nn.parallel",
        "nn.utils",
        "nn.utils.rnn",
        "nn.utils.parametrize",
        "nn.utils.parametrizations",
        "nn.utils.prune",
        "models",
        "distributions",
        "distributions.constraints",
        "distributions.transforms",
    ],
    "Training": [
        "optim",
        "optim.lr_scheduler",
        "optim.swa_utils",
        "amp",
        "utils.data",
        "utils.tensorboard",
        "profiler",
        "utils.benchmark",
        "utils.flop_counter",
    ],
    "Files and interchange": [
        "serialization",
        "safetensors",
        "utils.dlpack",
        "hub",
        "package",
        "onnx",
        "export",
        "jit",
        "fx",
    ],
    "Devices, processes, compilation": [
        "compiler",
        "cuda",
        "accelerator",
        "multiprocessing",
        "distributed",
        "distributed.tensor",
        "distributed.tensor.parallel",
        "distributed.fsdp",
        "distributed.checkpoint",
        "distributed.pipelining",
    ],
    "Extending": ["library", "overrides", "testing"],
}

_INTERNAL = (
    "jit",
    "ops.",
    "_core.names.legacy",
    "_serialization",
    "_utils",
    "_tensor",
    "_dispatch.public.keys",
    "storage",
)
_HOMES = _rare_names.HOMES
HIDDEN = frozenset(
    name for name, home in _HOMES.items() if home.startswith(_INTERNAL) or name.startswith("_")
) | frozenset(kernels.makers)
"""Names that the package has for old programs and libraries alone; some are there once they were asked for."""

HELPERS = frozenset({
    "autograd.forward_ad.adopt_tangent", "autograd.forward_ad.Elementwise", "autograd.forward_ad.owner_of",
    "autograd.forward_ad.propagate", "autograd.forward_ad.propagate_custom", "autograd.forward_ad.tangent_of",
    "accelerator.where_present", "cuda.is_present",
    "cuda.usable_device", "cuda.where_present", "library.key_name", "library.Operator",
    "library.parse", "library.warn_user",
})  # fmt: skip
"""Functions that a public module uses and that are no part of PyTorch's API."""
