"""The description of a GPU for which cuDNN chooses kernels, where all GPUs of an architecture must do alike."""

from __future__ import annotations

import json
from functools import cache

from ..runtime.any_gpu import Gpu, common_gpu
from ..runtime.synchronization import HERE
from .descriptors import CHARACTER, INT32, closed, read_text

_GPU, _ORDINAL, _TEXT = 38, 2700, 2702
"""The descriptor, and its attributes: which GPU of this machine, and all that the library knows of it."""


def described_gpu() -> int | None:
    """The descriptor of the GPU to choose for; None: this one. Refused by versions that choose for no other."""
    gpu = common_gpu()
    return None if gpu is None else _described(HERE.ordinal, gpu)


@cache
def _described(ordinal: int, gpu: Gpu) -> int:
    """What architectures do not share is that GPU's, the rest this one's."""
    own = json.loads(read_text(closed(_GPU, ((_ORDINAL, INT32, (ordinal,)),)), _TEXT))
    own |= {
        "deviceName": gpu.name,
        "multiProcessorCount": gpu.multiprocessors,
        "totalGlobalMem": gpu.memory,
        "smClockRateKHz": gpu.clock,
        "memClockRateKHz": gpu.memory_clock,
        "l2CacheSize": gpu.cache,
    }
    return closed(_GPU, ((_TEXT, CHARACTER, json.dumps(own).encode()),))
