"""What programs set for oneDNN, under its older name; where it is installed, kernels use it by themselves."""

from __future__ import annotations

from types import SimpleNamespace

from ._flags import setters
from ._modules import settings_class

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2
enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
matmul = SimpleNamespace(fp32_precision="none")
conv = SimpleNamespace(fp32_precision="none")
rnn = SimpleNamespace(fp32_precision="none")

set_flags, flags = setters(globals(), enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none")


def is_available() -> bool:
    """Whether the library is installed and used."""
    from .._backends.cpu.onednn import library

    return bool(library.available())


def is_acl_available() -> bool:
    """Whether it was built with ARM's library."""
    return False


class verbose:
    """A context in which the library says what it does; it says nothing to Python."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


settings_class(
    "MkldnnModule",
    __name__,
    "enabled deterministic allow_tf32 matmul conv rnn fp32_precision",
    is_available=staticmethod(is_available),
)
