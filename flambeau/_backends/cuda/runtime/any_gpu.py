"""One GPU of each architecture, for which work is cut and kernels are chosen so that all GPUs of it do alike.

How a sum is divided, and which kernel a library takes, depends on how many multiprocessors there are to share the work,
and on how quick memory is. At the levels of `flambeau.reproducible` it must not: it is done as on a common GPU.
"""

from __future__ import annotations

from typing import NamedTuple

from ...._core.process.reproducibility import REPRODUCIBILITY
from .driver import driver


class Gpu(NamedTuple):
    """What libraries choose by. Clocks are in kHz."""

    name: str
    multiprocessors: int
    memory: int
    clock: int
    memory_clock: int
    cache: int
    fewest: int
    """The fewest multiprocessors that a GPU of this architecture has."""


_COMMON = {
    70: Gpu("Tesla V100-SXM2-32GB", 80, 32 << 30, 1_530_000, 877_000, 6 << 20, 80),
    75: Gpu("Tesla T4", 40, 16 << 30, 1_590_000, 5_001_000, 4 << 20, 14),
    80: Gpu("NVIDIA A100-SXM4-80GB", 108, 80 << 30, 1_410_000, 1_593_000, 40 << 20, 56),
    86: Gpu("NVIDIA A40", 84, 48 << 30, 1_740_000, 7_251_000, 6 << 20, 10),
    89: Gpu("NVIDIA GeForce RTX 4090", 128, 24 << 30, 2_520_000, 10_501_000, 72 << 20, 20),
    90: Gpu("NVIDIA H100 80GB HBM3", 132, 80 << 30, 1_980_000, 2_619_000, 50 << 20, 78),
    100: Gpu("NVIDIA B200", 148, 180 << 30, 1_965_000, 3_996_000, 126 << 20, 148),
    120: Gpu("NVIDIA GeForce RTX 5090", 170, 32 << 30, 2_407_000, 14_001_000, 96 << 20, 20),
}
"""By compute capability, times ten."""
_OTHERWISE = Gpu("NVIDIA GPU", 64, 16 << 30, 1_500_000, 5_000_000, 4 << 20, 8)


def common_gpu() -> Gpu | None:
    """The GPU to cut and choose for; None: this one."""
    return None if REPRODUCIBILITY.level is None else _COMMON.get(driver().generation(), _OTHERWISE)


def resident_threads() -> int:
    """How many threads can be on that GPU at a time."""
    gpu = common_gpu()
    return driver().resident_threads(0 if gpu is None else gpu.multiprocessors)
