"""`flambeau convert`: a checkpoint in another format."""

from __future__ import annotations

import argparse
import contextlib
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .. import safetensors
from .._core.tensor import Tensor
from .._ops.create.constants import from_numpy
from .._serialization.atomic import replacing
from ..serialization import load, save
from .contents import check_unpacked_size, existing_file, file_format, naming, npy_header
from .terminal import CommandError, plural, printable, readable_size, say, warn

SUMMARY = "write a checkpoint in another format"
DESCRIPTION = (
    "Write the tensors of checkpoint A, or of an ONNX model, to B. The suffix of B says the format: .pt, .pth, .bin or "
    ".ckpt, .safetensors, .npz. B appears whole or not at all."
)

_FEW = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("source", metavar="A", help="the checkpoint to read")
    parser.add_argument("target", metavar="B", help="the file to write; its suffix says the format")
    parser.add_argument("--force", action="store_true", help="replace B if it exists")
    parser.add_argument("--key", help="take only this part of A, such as model or state.encoder")
    parser.add_argument(
        "--tensors-only",
        action="store_true",
        help="leave out what .safetensors and .npz cannot hold: numbers, strings, other objects",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read A, write B."""
    target = Path(arguments.target)
    write = _writer(target)
    source = existing_file(arguments.source)
    if target.exists() and not arguments.force:
        raise CommandError(f"{arguments.target} exists: give --force to replace it")
    loaded = _read(source)
    if arguments.key is not None:
        loaded = _part(loaded, arguments.key)
    if write is not _write_pickle:
        loaded = _tensors(loaded, source, target.suffix, leave_out=arguments.tensors_only)
    write(loaded, target)
    count = f"{plural(len(loaded), 'tensor')}, " if write is not _write_pickle else ""
    say(f"{arguments.target}: {count}{readable_size(target.stat().st_size)}")
    return 0


# ----- reading --------------------------------------------------------------------------------------------------------


def _read(path: Path) -> Any:
    kind = file_format(path)
    with naming(path, kind):
        return _read_format(path, kind)


def _read_format(path: Path, kind: str) -> Any:
    if kind == "npz":
        return _read_npz(path)
    if kind == "onnx":
        from ..onnx._reading.files import weights_of

        return weights_of(path)
    if kind != "safetensors":
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = load(path, map_location="cpu")
        for each in caught:
            warn(str(each.message))
        return loaded
    with safetensors.safe_open(path) as file:
        if set(file.metadata() or {}) - {"format"}:
            warn("the metadata of the file is not copied: see `flambeau inspect`")
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def _read_npz(path: Path) -> dict[str, Tensor]:
    with np.load(path, allow_pickle=False) as arrays:
        check_unpacked_size(arrays.zip, path)
        return {name: _tensor_named(name, arrays, path) for name in arrays.files}


def _tensor_named(name: str, arrays: Any, path: Path) -> Tensor:
    with contextlib.suppress(KeyError), arrays.zip.open(f"{name}.npy") as record:
        if npy_header(record)[1].hasobject:
            raise CommandError(f"{path}: {printable(name)} cannot be a tensor: it holds pickled objects")
    try:
        array = arrays[name]
        return from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    except TypeError as error:
        raise CommandError(f"{path}: {printable(name)} cannot be a tensor: {printable(str(error))}") from error
    except (ValueError, OverflowError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{printable(name)} cannot be a tensor: {printable(str(error))}") from error


def _part(loaded: Any, key: str) -> Any:
    """A part of nested dicts by its dotted name; a name may contain dots itself."""
    parts = key.split(".")
    if isinstance(loaded, dict):
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in loaded:
                rest = ".".join(parts[count:])
                return _part(loaded[name], rest) if rest else loaded[name]
    known = ", ".join(printable(str(each), 40) for each in list(loaded)[:_FEW]) if isinstance(loaded, dict) else "none"
    raise CommandError(f"there is no {key!r} in the file; the keys there are: {known}")


# ----- writing --------------------------------------------------------------------------------------------------------


def _tensors(loaded: Any, source: Path, suffix: str, *, leave_out: bool) -> dict[str, Tensor]:
    """The tensors of nested dicts and lists under dotted names."""
    found: dict[str, Tensor] = {}
    others: list[str] = []
    waiting: list[tuple[str, Any]] = [("", loaded)]
    seen: set[int] = set()
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Tensor):
            if name in found:
                raise CommandError(f"two tensors would both be called {printable(name)!r} in a {suffix} file")
            found[name] = value.detach()
        elif isinstance(value, (dict, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            items = list(value.items() if isinstance(value, dict) else enumerate(value))
            waiting += [(f"{name}.{key}" if name else str(key), each) for key, each in reversed(items)]
        else:
            others.append(name)
    if others and not leave_out:
        few = ", ".join(map(printable, others[:_FEW])) + (", ..." if len(others) > _FEW else "")
        raise CommandError(
            f"{suffix} holds tensors only, but the file also has {plural(len(others), 'other value')}: {few}. Choose a "
            "part with --key, or leave them out with --tensors-only."
        )
    if not found:
        raise CommandError(f"{source}: there is no tensor to write")
    return found


def _write_pickle(loaded: Any, target: Path) -> None:
    save(loaded, target)


def _write_safetensors(tensors: dict[str, Tensor], target: Path) -> None:
    apart: dict[str, Any] = {}
    used: dict[Any, str] = {}
    for name, tensor in tensors.items():
        each: Any = tensor
        first = used.setdefault(tensor.untyped_storage(), name)
        if first != name:
            warn(f"{printable(name)} shares memory with {printable(first)}: in a .safetensors file each has its own")
        apart[name] = each.contiguous() if first == name else each.clone().contiguous()
    try:
        safetensors.save_file(apart, target, metadata={"format": "pt"})
    except safetensors.SafetensorError as error:
        raise CommandError(str(error)) from error


def _write_npz(tensors: dict[str, Tensor], target: Path) -> None:
    arrays = {}
    for name, tensor in tensors.items():
        each: Any = tensor
        try:
            arrays[name] = each.numpy()
        except TypeError as error:
            raise CommandError(
                f"{printable(name)} is {tensor.dtype}, which NumPy's format does not have: write .safetensors or .pt"
            ) from error
    with replacing(target) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _write_pickle),
    ".safetensors": _write_safetensors,
    ".npz": _write_npz,
}


def _writer(target: Path) -> Callable[[Any, Path], None]:
    found = _WRITERS.get(target.suffix.lower())
    if found is None:
        raise CommandError(f"{target.name} has no suffix that says a format: {', '.join(_WRITERS)}", 2)
    return found
