"""What programs choose about the libraries of a GPU: the public package of settings sets it, the backend reads it."""

from __future__ import annotations

from .determinism import DETERMINISM
from .reproducibility import REPRODUCIBILITY


class _Choices:
    """The choices, with PyTorch's defaults."""

    shortened_products = False
    """Whether products of float32 may shorten their operands to 19 bits (TF32)."""
    shortened_convolutions = True
    """Whether convolutions of float32 may."""
    shortened_networks = True
    """Whether recurrent networks of float32 may."""
    measured = False
    """Whether the ways to compute a convolution are tried, the quickest to be kept."""
    uses_library = True
    """Whether the vendor's library of layers may be used at all."""
    deterministic = False
    """Whether convolutions take only ways that always give the same bits."""

    @property
    def repeatable(self) -> bool:
        """Whether all layers take only ways that always give the same bits."""
        return self.deterministic or DETERMINISM.asked

    @property
    def tried(self) -> bool:
        """Whether ways are tried and the quickest is kept: another run may find another one the quickest."""
        return self.measured and REPRODUCIBILITY.level is None


CHOICES = _Choices()
