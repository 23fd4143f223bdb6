"""Read saved TorchScript programs: `jit.load`."""

from __future__ import annotations

import os
from typing import Any

from .._serialization.reading import opened
from ._archive import read_archive
from ._module import RecursiveScriptModule


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Read an archive that `jit.save` wrote, here or in PyTorch.

    The archive's code is run by an interpreter of its small language, which knows tensors and plain values: an archive
    can compute, but reach nothing else.

    Args:
        f: a path, or a file object.
        map_location: where tensors go, as in `torch.load`.

    Returns:
        the module.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.jit.save(torch.jit.script(torch.nn.ReLU()), file)
        >>> _ = file.seek(0)
        >>> torch.jit.load(file)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    with opened(f) as file:
        if not file.read(1):
            raise RuntimeError("PytorchStreamReader failed reading zip archive: the file is empty")
        file.seek(0)
        contents = read_archive(file, map_location)
    for name in _extra_files or ():
        _extra_files[name] = contents.extra.get(name, b"")
    if not isinstance(contents.root, RecursiveScriptModule):
        raise RuntimeError("the archive does not hold a module: it is corrupt, or was not written by torch.jit.save")
    return contents.root
