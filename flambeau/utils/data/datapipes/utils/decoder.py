"""From a file's extension and bytes to a value: text, numbers, arrays, pictures."""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

from ....._ops.create.constants import from_numpy

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

_TEXT = frozenset(["txt", "text", "transcript", "pt"])
_CLASSES = frozenset(["cls", "cls2", "class", "count", "index", "inx", "id"])
_JSON = frozenset(["json", "jsn"])
_PICKLES = frozenset(["pickle", "pyd"])
_PICTURES = frozenset(["jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"])
IMAGE_SPECS: dict[str, tuple[str | None, str | None, str]] = {
    "l8": ("numpy", "uint8", "l"),
    "rgb8": ("numpy", "uint8", "rgb"),
    "rgba8": ("numpy", "uint8", "rgba"),
    "l": ("numpy", "float", "l"),
    "rgb": ("numpy", "float", "rgb"),
    "rgba": ("numpy", "float", "rgba"),
    "torchl8": ("torch", "uint8", "l"),
    "torchrgb8": ("torch", "uint8", "rgb"),
    "torchrgba8": ("torch", "uint8", "rgba"),
    "torchl": ("torch", "float", "l"),
    "torchrgb": ("torch", "float", "rgb"),
    "torch": ("torch", "float", "rgb"),
    "torchrgba": ("torch", "float", "rgba"),
    "pill": ("pil", None, "l"),
    "pil": ("pil", None, "rgb"),
    "pilrgb": ("pil", None, "rgb"),
    "pilrgba": ("pil", None, "rgba"),
}
"""What a word says: the type of the result, of its elements, and its channels."""


def basichandlers(extension: str, data: Any) -> Any:
    """Text, numbers of classes, JSON and pickles; None for everything else."""
    if extension in _TEXT:
        return data.decode("utf-8")
    if extension in _CLASSES:
        try:
            return int(data)
        except ValueError:  # the name of a class, perhaps
            return None
    if extension in _JSON:
        return json.loads(data)
    if extension in _PICKLES:
        return pickle.loads(data)
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A handler that applies `f` to files with one of some endings, such as "jpg png"."""
    endings = [ending.split(".") for ending in extensions.lower().split()]

    def handler(extension: str, data: Any) -> Any:
        parts = extension.lower().split(".")
        return f(data) if any(parts[-len(ending) :] == ending for ending in endings) else None

    return handler


class ImageHandler:
    """Pictures as arrays, tensors or pictures of Pillow's: "rgb8", "torchl", "pil", ..."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in IMAGE_SPECS:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in _PICTURES:
            return None
        import numpy as np
        from PIL import Image

        kind, elements, channels = IMAGE_SPECS[self.imagespec]
        with io.BytesIO(data) as stream:
            picture = Image.open(stream).convert(channels.upper())
        if kind == "pil":
            return picture
        array = np.asarray(picture)
        if elements == "float":
            array = array.astype("f") / 255
        if kind == "numpy":
            return array
        moved = array.transpose(2, 0, 1) if array.ndim == 3 else array
        return from_numpy(np.array(moved))


def imagehandler(imagespec: str) -> ImageHandler:
    """An `ImageHandler`."""
    return ImageHandler(imagespec)


def videohandler(extension: str, data: Any) -> Any:
    """Films: None for any other file; their decoder is not part of the package."""
    if extension not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    raise ModuleNotFoundError("Package `torchvision` is required to be installed for default video file loader.")


def audiohandler(extension: str, data: Any) -> Any:
    """Sound: None for any other file; its decoder is not part of the package."""
    if extension not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    raise ModuleNotFoundError("Package `torchaudio` is required to be installed for default audio file loader.")


class MatHandler:
    """Files of Matlab's, by SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        try:
            self.sio = importlib.import_module("scipy.io")
        except ImportError as error:
            raise ModuleNotFoundError("Package `scipy` is required to be installed for mat file.") from error
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: Any) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A `MatHandler`."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The ending of a path, without the point."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """A pair of a path and its bytes, or a dict of such pairs, decoded by the first handler that knows the ending."""

    def __init__(self, *handler: Callable[..., Any], key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Handlers to be asked after those that are there."""
        if not handler:
            return
        self.handlers += handler

    def decode1(self, key: str, data: Any) -> Any:
        """The value of one file; the data themselves if no handler knows it."""
        if not data:
            return data
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """The value behind each path: of one pair, of several, or of a dict."""
        pairs = data.items() if isinstance(data, dict) else [data] if isinstance(data, tuple) else data
        result: dict[str, Any] = {}
        for path, content in pairs:
            if path[:2] == "__":  # what is about the sample rather than part of it
                result[path] = content.decode("utf-8") if isinstance(content, bytes) else content
                continue
            whole = content.read() if hasattr(content, "read") else content
            if whole is not content and hasattr(content, "close"):
                content.close()
            result[path] = self.decode1(self.key_fn(path), whole)
        return result

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
