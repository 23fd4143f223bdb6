"""What programs set for cuDNN, which this build does not use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10


def is_available() -> bool:
    """Whether the library can be used: it needs a GPU."""
    return False


def version() -> int | None:
    """The library's version, or None where there is none."""
    return None


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """These settings inside a `with` block, and those before it afterwards."""
    wanted = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    module = globals()
    before = {name: module[name] for name in wanted}
    module.update(wanted)
    try:
        yield
    finally:
        module.update(before)
