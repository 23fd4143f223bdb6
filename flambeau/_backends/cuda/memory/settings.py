"""Settings of the pool of device memory, in the form of PyTorch's `PYTORCH_CUDA_ALLOC_CONF`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ...._core.process.caller import warn_user_once

VARIABLES = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
_MIB = 1 << 20
_WITHOUT_EFFECT = frozenset((
    "pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
    "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom",
))  # fmt: skip
"""Options about how PyTorch's own allocator works inside; they change no program's results."""


class Settings:
    """What the options say; every pool of a process has the same."""

    def __init__(self) -> None:
        self.max_split_size: int | None = None
        """Blocks of so many bytes or more are never cut; None: all are."""
        self.max_rounding = 20 * _MIB
        """How much larger than its request a block may be that is not cut."""
        self.divisions: dict[int, int] = {}
        """For sizes up to a power of two, into how many steps the way to the next power is divided; 0: the others."""
        self.collection_threshold = 0.0
        """Above this part of what it may have, the pool returns unused segments before it takes more."""
        self.fraction: float | None = None
        self.expandable = False
        """Whether a queue has one segment that grows, in place of many of fixed sizes."""

    def read(self, text: str) -> None:
        """Take options from a text such as `max_split_size_mb:128,garbage_collection_threshold:0.8`."""
        for option in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", re.sub(r"\s", "", text)):
            name, _, value = option.strip(",").partition(":")
            if not value:
                raise RuntimeError(f"Error parsing CachingAllocator settings: {name!r} has no value in {text!r}")
            self._set(name, value)

    def _set(self, name: str, value: str) -> None:
        if name == "max_split_size_mb":
            if _number(name, value) <= 20:
                raise RuntimeError(
                    f"CachingAllocator option max_split_size_mb too small, must be > 20, but got {value}"
                )
            self.max_split_size = int(_number(name, value)) * _MIB
        elif name == "max_non_split_rounding_mb":
            self.max_rounding = int(_number(name, value)) * _MIB
        elif name == "garbage_collection_threshold":
            self.collection_threshold = _number(name, value)
            if not 0 < self.collection_threshold < 1:
                raise RuntimeError(f"garbage_collect_threshold is invalid, set it in (0.0, 1.0), but got {value}")
        elif name == "per_process_memory_fraction":
            self.fraction = _number(name, value)
            if not 0 <= self.fraction <= 1:
                raise RuntimeError(f"per_process_memory_fraction is invalid, set it in [0.0, 1.0], but got {value}")
        elif name == "roundup_power2_divisions":
            self._set_divisions(name, value)
        elif name == "expandable_segments":
            if value.lower() not in ("true", "false"):
                raise RuntimeError(f"Expected a single True/False argument for expandable_segments, but got {value}")
            self.expandable = value.lower() == "true"
        elif name == "backend":
            if value != "native":
                warn_user_once(f"the allocator backend {value!r} is not there: memory comes from the native one")
        elif name not in _WITHOUT_EFFECT:
            raise RuntimeError(f"Unrecognized CachingAllocator option: {name}")

    def _set_divisions(self, name: str, value: str) -> None:
        parts = value.strip("[]").split(",") if value.startswith("[") else [f">:{value}"]
        self.divisions = {}
        for part in parts:
            limit, _, count = part.partition(":")
            number = int(_number(name, count))
            if number & (number - 1) or number < 0:
                raise RuntimeError(f"For roundups, the divisions has to be power of 2, but got {count}")
            self.divisions[0 if limit == ">" else int(_number(name, limit)) * _MIB] = number

    def rounded(self, nbytes: int, unit: int) -> int:
        """The bytes of the block for a request."""
        if self.divisions:
            limits = sorted(limit for limit in self.divisions if limit >= nbytes)
            count = self.divisions[limits[0]] if limits else self.divisions.get(0, 0)
            if count > 1 and nbytes > unit * count and nbytes & (nbytes - 1):
                step = (1 << (nbytes.bit_length() - 1)) // count
                return -(-nbytes // step) * step
        return (nbytes + unit - 1) & -unit or unit

    def may_cut(self, size: int) -> bool:
        """Whether a block is cut for a large request of so many bytes."""
        return self.max_split_size is None or size < self.max_split_size

    def fits(self, block: int, size: int) -> bool:
        """Whether a free block may serve a large request, one of at most its size."""
        if self.max_split_size is None:
            return True
        if size < self.max_split_size:
            return block < self.max_split_size
        return block < size + self.max_rounding


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RuntimeError(f"Error parsing CachingAllocator option {name}: {value!r} is no number") from None


def settings_of(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that the environment has."""
    found = Settings()
    for name in VARIABLES:
        if environment.get(name):
            found.read(environment[name])
            break
    return found
