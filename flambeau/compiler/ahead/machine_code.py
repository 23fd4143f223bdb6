"""Machine code to take along: what one process has compiled, as bytes that another one need not compile."""

from __future__ import annotations

import functools
import io
import logging
from collections import defaultdict

from ..._backends.tiers import available
from .archive import pack, unpack

_KIND = "kernel"
_FOLDER = "code/"


class CacheInfo:
    """What such bytes hold: names, by their kind."""

    def __init__(self) -> None:
        self.artifacts: defaultdict[str, list[str]] = defaultdict(list)

    @property
    def inductor_artifacts(self) -> list[str]:
        """The names of kernels, under PyTorch's name for them."""
        return self.artifacts[_KIND]

    def empty(self) -> bool:
        """Whether there is nothing."""
        return not any(self.artifacts.values())

    def __repr__(self) -> str:
        held = ", ".join([f"{kind}: {len(names)}" for kind, names in self.artifacts.items()])
        return f"CacheInfo({held})"


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """The machine code of all kernels that this process has used, for a machine with the same processor and versions.

    >>> _ = flambeau.ones(5000).exp()
    >>> saved = flambeau.compiler.save_cache_artifacts()
    >>> if saved is not None:
    ...     content, info = saved
    ...     _ = flambeau.compiler.load_cache_artifacts(content)
    """
    if not available():
        return None
    from ..._codegen.kernel import KERNELS
    from ..._codegen.machine.engine import engine

    made, entries = engine(), {}
    for kernel in KERNELS.values():
        for parameters, _ in kernel.compiled():
            write = functools.partial(kernel.module, *parameters)
            entries[made.digest_of(kernel.name, parameters)] = made.code_of(kernel.name, parameters, write)
    if not entries:
        return None
    file = io.BytesIO()
    pack(file, {_FOLDER + name: code for name, code in entries.items()})
    return file.getvalue(), _info(entries)


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Take what `save_cache_artifacts` has given into this process, and into the cache of those that come later.

    It is machine code, which is run: take only what comes from where you would take a program from. What is for another
    processor or another version stays unused.
    """
    try:
        entries = unpack(
            io.BytesIO(serialized_artifacts), "what load_cache_artifacts was given", "save_cache_artifacts"
        )
    except RuntimeError as error:
        logging.getLogger(__name__).warning("%s: it is not used", error)
        return None
    if not available():
        return None
    from ..._codegen.machine import cache
    from ..._codegen.machine.engine import engine

    codes = {name.removeprefix(_FOLDER): code for name, code in entries.items()}
    engine().handed_over.update(codes)
    for name, code in codes.items():
        cache.store(name, code)
    return _info(codes)


def _info(names: dict[str, bytes]) -> CacheInfo:
    info = CacheInfo()
    info.artifacts[_KIND] += names
    return info
