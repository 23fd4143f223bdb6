"""Which ways of computing `scaled_dot_product_attention` may be taken; `bias` has causal masks."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from ..._core.names.absent import Table
from ..._ops.nn import attention
from . import bias

__all__ = ["SDPBackend", "bias", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("experimental flex_attention varlen")
    .elsewhere(
        "activate_flash_attention_impl current_flash_attention_impl list_flash_attention_impls "
        "register_flash_attention_impl restore_flash_attention_impl",
        "nn.attention._registry",
    )
    .parts()
)


class SDPBackend(enum.Enum):
    """A way of computing attention. The CPU has two: MATH, from its parts, and FLASH_ATTENTION, in one op.

    Example:
        >>> torch.nn.attention.SDPBackend.MATH
        <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, object]]:
    """A context in which attention is computed in one of these ways, or not at all.

    `set_priority` says that those named first are preferred; of the CPU's, FLASH_ATTENTION always is.

    Args:
        backends (list of SDPBackends or SDPBackend): the ways that are allowed.
        set_priority (bool): whether their order says which to prefer. Default: `False`.

    Returns:
        a context manager.

    Example:
        >>> q = torch.ones(1, 1, 2, 4)
        >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
        torch.Size([1, 1, 2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    before = attention.ENABLED.copy()
    attention.ENABLED.clear()
    attention.ENABLED.update(each.name for each in (backends if isinstance(backends, list) else [backends]))
    try:
        yield {}
    finally:
        attention.ENABLED.clear()
        attention.ENABLED.update(before)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The ways of computing attention that are allowed now."""
    order = "CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH", "OVERRIDEABLE"
    return [SDPBackend[each] for each in order if each in attention.ENABLED]
