"""What programs set for cuDNN, which this build does not use."""

from __future__ import annotations

from types import SimpleNamespace

from ._flags import setters

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10
fp32_precision = "none"
depthwise_kernel: str | None = None
conv = SimpleNamespace(fp32_precision="tf32")
rnn = SimpleNamespace(fp32_precision="tf32")


def is_available() -> bool:
    """Whether the library can be used: it needs a GPU."""
    return False


def version() -> int | None:
    """The library's version, or None where there is none."""
    return None


def is_acceptable(tensor: object) -> bool:
    """Whether the library could work on a tensor."""
    return False


set_flags, flags = setters(
    globals(),
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    depthwise_kernel=None,
)
