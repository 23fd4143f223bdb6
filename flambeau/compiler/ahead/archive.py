"""Files of programs and of machine code: ZIP archives that know whether they are whole."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from typing import Any

_SUMS = "checksums.json"
_LIMIT = 1 << 30
"""How long what is no machine code may be, a list of ops say."""


def pack(file: Any, entries: Mapping[str, bytes]) -> None:
    """Write entries to a file, by its path or open for writing."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in entries.items()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**entries, _SUMS: json.dumps(sums).encode()}.items():
            archive.writestr(name, content)


def unpack(file: Any, shown: str, writer: str) -> dict[str, bytes]:
    """The entries of a file that is called `shown`; RuntimeError unless they are what `writer` has written."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise RuntimeError(f"{shown} is nothing that {writer} has written") from None
    with archive:
        if _SUMS not in archive.namelist():
            raise RuntimeError(f"{shown} is nothing that {writer} has written")
        if any(each.file_size > _LIMIT for each in archive.infolist() if each.filename.endswith(".json")):
            raise RuntimeError(f"{shown}: its list of ops is larger than any that would be written")
        sums = json.loads(archive.read(_SUMS))
        entries = {name: archive.read(name) for name in sums}
    for name, content in entries.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise RuntimeError(f"{shown} is damaged: {name} is not what was written")
    return entries
