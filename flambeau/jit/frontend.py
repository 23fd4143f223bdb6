"""`torch.jit.frontend`: reading Python for TorchScript, which nothing does here."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "TorchScript's compiler does not exist: what is scripted runs as Python",
        functions="get_jit_class_def get_jit_def get_default_args get_class_properties",
    )
    .parts()
)


class FrontendError(Exception):
    """Python that TorchScript does not have."""


class NotSupportedError(FrontendError):
    """A construct that TorchScript does not have."""


class UnsupportedNodeError(NotSupportedError):
    """A node of the syntax tree that TorchScript does not have."""


class FrontendTypeError(FrontendError):
    """A type that TorchScript does not have."""
