"""What programs choose about the libraries of a GPU: `torch.backends.cuda` and `torch.backends.cudnn` set it."""

from __future__ import annotations


class _Choices:
    """The choices, with PyTorch's defaults."""

    shortened_products = False
    """Whether products of float32 may shorten their operands to 19 bits: `backends.cuda.matmul.allow_tf32`."""
    shortened_convolutions = True
    """Whether convolutions of float32 may: `backends.cudnn.allow_tf32`."""
    measured = False
    """Whether the ways to compute a convolution are tried, the quickest to be kept: `backends.cudnn.benchmark`."""
    uses_cudnn = True
    """Whether cuDNN may be used at all: `backends.cudnn.enabled`."""
    deterministic = False
    """Whether only ways that always give the same bits are taken: `backends.cudnn.deterministic`."""


CHOICES = _Choices()
