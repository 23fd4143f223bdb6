"""`jit.save`: a module and its program as an archive that `jit.load` reads, here and in PyTorch."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from .._serialization.archive import ArchiveWriter
from .._serialization.atomic import replacing
from .._serialization.settings import get_crc32_options
from .._serialization.writing import archive_folder
from ..nn.modules.module import Module
from ._pickles import ScriptPickler

_VERSION_MOVED = 6
"""From this version on PyTorch keeps it in another record."""


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a module of TorchScript to a file.

    The code is the program's own text. Of what was scripted, which stays Python, it is written from the source; an
    error names the line that TorchScript cannot express. Attributes, parameters and buffers are written as they are.

    Args:
        m: a scripted or traced module.
        f: a path, or a file object.

    Example:
        >>> import io
        >>> torch.jit.save(torch.jit.trace(torch.nn.ReLU(), torch.ones(2)), io.BytesIO())
    """
    module = _module_of(m)
    if not isinstance(f, (str, os.PathLike)):
        _write(module, f, archive_folder(f), _extra_files or {})
        return
    buffer = io.BytesIO()
    _write(module, buffer, archive_folder(f), _extra_files or {})
    with replacing(f, buffer.tell()) as file:
        file.write(buffer.getbuffer())


def _module_of(m: Any) -> Any:
    from ._module import RecursiveScriptModule
    from ._trace import ScriptFunction

    if isinstance(m, RecursiveScriptModule):
        return m
    if isinstance(m, ScriptFunction):
        return m._program()
    if isinstance(m, Module):
        from ._scripting.modules import scripted

        return scripted(m)
    raise RuntimeError(
        f"jit.save writes modules of TorchScript: scripted, traced or loaded ones, not {type(m).__name__}"
    )


def _write(module: Any, file: Any, folder: str, extra: dict[str, Any]) -> None:
    program = module._definition.program
    writer = ArchiveWriter(file, folder, crc32=get_crc32_options())
    try:
        for name, content in extra.items():
            writer.write(f"extra/{name}", content.encode() if isinstance(content, str) else bytes(content))
        _put_pickle(writer, "data", module)
        for path, text in program.sources.items():
            writer.write(f"code/{path}.py", text.encode())
        _put_pickle(writer, "constants", tuple(program.constants))
        name = "version" if program.version < _VERSION_MOVED else ".data/version"
        writer.write(name, f"{program.version}\n".encode())
        writer.write("byteorder", sys.byteorder.encode())
        writer.finish()
    finally:
        writer.close()


def _put_pickle(writer: ArchiveWriter, folder: str, value: Any) -> None:
    pickler = ScriptPickler()
    content = pickler.dumped(value)
    for key, memory, _ in pickler.storages.contents():
        writer.write(f"{folder}/{key}", memory)
    writer.write(f"{folder}.pkl", content)
