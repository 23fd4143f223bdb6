"""What the names of `torch.cuda` say where there is no such device."""

from __future__ import annotations

from .._core.names.absent import Table

NOT_COMPILED = (
    "Torch not compiled with CUDA enabled: torch.cuda.{name} needs a CUDA device, and this version of Flambeau has none"
)
NEEDS_CUDA = "torch.cuda.{name} needs a CUDA device, and this version of Flambeau has none"
_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short"
TENSORS = " ".join(f"{each}Tensor" for each in _TYPES.split())
STORAGES = " ".join(f"{each}Storage" for each in (*_TYPES.split(), "ComplexDouble", "ComplexFloat"))

kernels = Table("flambeau").raising(
    NotImplementedError,
    "Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is a kernel of another device, in PyTorch "
    "too",
    functions="batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
    "batch_norm_gather_stats_with_counts batch_norm_stats cudnn_affine_grid_generator "
    "cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu "
    "cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm miopen_convolution "
    "miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss "
    "miopen_depthwise_convolution miopen_rnn",
)
"""Functions of `torch` itself that run on GPUs alone."""
kernels.returning(lambda: False, functions="cudnn_is_acceptable")
