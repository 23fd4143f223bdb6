"""ONNX files: what is in them, and what of them is believed."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from .._element_types import numpy_type, tensor_over
from .._serialize import onnx_package


class OnnxFileError(ValueError):
    """A file that is damaged, or that asks for what it must not have."""


def read_message(source: Any) -> tuple[Any, Path | None]:
    """The model in a file, in bytes, or a message itself; and the folder in which its weights may stand."""
    onnx = onnx_package("reading an ONNX file")
    if isinstance(source, onnx.ModelProto):
        return source, None
    folder: Path | None = None
    if isinstance(source, (bytes, bytearray)):
        data = bytes(source)
    else:
        path = Path(os.fspath(source))
        folder, data = path.resolve().parent, path.read_bytes()
    message = onnx.ModelProto()
    try:
        message.ParseFromString(data)
    except Exception as error:  # protobuf's own class depends on its implementation
        raise OnnxFileError(f"this is not an ONNX file, or a damaged one: {error}") from error
    if not message.opset_import or not message.HasField("graph"):
        raise OnnxFileError("this is not an ONNX file: it has no graph, or says no opset")
    return message, folder


_TYPED_FIELDS = {
    "float32": "float_data", "complex64": "float_data", "float64": "double_data", "complex128": "double_data",
    "int64": "int64_data", "uint32": "uint64_data", "uint64": "uint64_data",
}  # fmt: skip
"""Where elements stand that are not written as bytes; all else is in `int32_data`."""


def array_of(message: Any, folder: Path | None) -> Any:
    """The elements of a tensor in a file."""
    name = message.name or "a constant"
    try:
        dtype = numpy_type(message.data_type)
    except ValueError as error:
        raise OnnxFileError(f"{name}: {error}") from error
    shape = tuple(message.dims)
    if any(each < 0 for each in shape):
        raise OnnxFileError(f"{name} has a negative size: {list(shape)}")
    count = math.prod(shape)
    if message.data_location == 1:
        data: Any = _outside(message, folder, count * dtype.itemsize)
    elif message.HasField("raw_data"):
        data = message.raw_data
    else:
        return _typed(message, name, dtype, shape, count)
    if len(data) != count * dtype.itemsize:
        raise OnnxFileError(f"{name} has {len(data)} bytes, but {list(shape)} of {dtype} are {count * dtype.itemsize}")
    return np.frombuffer(data, dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype).astype(dtype).reshape(shape)


def _typed(message: Any, name: str, dtype: Any, shape: tuple[int, ...], count: int) -> Any:
    values = getattr(message, _TYPED_FIELDS.get(dtype.name, "int32_data"))
    parts = 2 if dtype.kind == "c" else 1
    if len(values) != count * parts:
        raise OnnxFileError(f"{name} has {len(values)} elements, but its shape {list(shape)} wants {count}")
    if dtype.kind == "c":
        pairs = np.array(values, np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(dtype).reshape(shape)
    if dtype.name.startswith(("float16", "bfloat16", "float8")):  # bits, written as integers
        bits = np.array(values, np.int64).astype(np.uint16 if dtype.itemsize == 2 else np.uint8)
        return bits.view(dtype).reshape(shape)
    return np.array(values).astype(dtype).reshape(shape)


def _outside(message: Any, folder: Path | None, wanted: int) -> Any:
    """The bytes of a tensor in another file, which has to stand in the model's own folder."""
    entries = {each.key: each.value for each in message.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise OnnxFileError(f"{message.name} is in the file {location!r}, but the model was not read from a folder")
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder) or not path.is_file():
        raise OnnxFileError(f"{message.name}: there is no file {location!r} in the model's folder")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
    except ValueError as error:
        raise OnnxFileError(f"{message.name}: offset and length are no numbers") from error
    if offset < 0 or length != wanted or offset + length > path.stat().st_size:
        raise OnnxFileError(f"{message.name}: {length} bytes at {offset} of {location!r} are not what its shape wants")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def tensor_of(message: Any, folder: Path | None) -> Tensor:
    """A tensor in a file as a tensor here."""
    return tensor_over(np.array(array_of(message, folder)))


def weights_of(source: Any) -> dict[str, Tensor]:
    """The weights of a model by name."""
    message, folder = read_message(source)
    return {each.name: tensor_of(each, folder) for each in message.graph.initializer}
