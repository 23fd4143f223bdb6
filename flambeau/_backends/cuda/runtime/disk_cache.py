"""What it takes long to find out for a device, on disk: compiled kernels, and the ways that its libraries have chosen.

The files are those of machine code (`_codegen/machine/cache.py`): named by all that their content depends on, whole or
not there, and nobody else's. Who reads one and cannot use it makes it anew.
"""

from __future__ import annotations

from ...._codegen.machine.cache import digest, load, made_once, store

__all__ = ["load", "made_once", "name_for", "store"]


def name_for(kind: str, identity: str, *parts: object) -> str:
    """What something is kept under that depends on a device with its software, and on `parts`."""
    return digest(["device", kind, identity, *map(str, parts)])
