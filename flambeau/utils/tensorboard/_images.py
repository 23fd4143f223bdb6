"""Pictures: from arrays in any order of dimensions to PNG."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_GRID_COLUMNS = 8


def encode_png(image: Any) -> bytes:
    """A PNG of a uint8 array of rows, columns and channels: grey, grey and alpha, RGB, or RGBA."""
    height, width, channels = image.shape
    if channels not in _COLOUR_TYPES:
        raise ValueError(f"an image has 1 to 4 channels, not {channels}: its shape is {list(image.shape)}")
    lines = np.zeros((height, width * channels + 1), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )


def to_bytes(image: Any) -> Any:
    """An image as uint8: that already, or numbers from 0 to 1."""
    scale = 1 if image.dtype == np.uint8 else 255
    return np.clip(image.astype(np.float32) * scale, 0, 255).astype(np.uint8)


def to_rows(image: Any, dataformats: str) -> Any:
    """An image, or many as a grid, as rows, columns and channels."""
    letters = dataformats.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {dataformats}")
    if image.ndim != len(letters):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"tensor shape: {image.shape}, input_format: {dataformats}"
        )
    unknown = set(letters) - set("NHWC")
    if unknown or not {"H", "W"} <= set(letters):
        raise ValueError(f"dataformats must consist of H, W, and perhaps N and C, not {dataformats!r}")
    wanted = [each for each in "NHWC" if each in letters]
    image = np.transpose(image, [letters.index(each) for each in wanted])
    if "C" not in letters:
        image = image[..., None]
    if image.shape[-1] == 1:
        image = np.repeat(image, 3, -1)
    return as_grid(image) if "N" in letters else image


def as_grid(images: Any, columns: int = _GRID_COLUMNS) -> Any:
    """Images of one size side by side, so many in a row."""
    count, height, width, channels = images.shape
    columns = min(count, columns)
    rows = -(-count // columns) if count else 0
    grid = np.zeros((rows * columns, height, width, channels), images.dtype)
    grid[:count] = images
    grid = grid.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    return grid.reshape(rows * height, columns * width, channels)


def draw_boxes(rows: Any, boxes: Any, labels: Any, rescale: float) -> Any:
    """An image with a red frame for each box, and its label in the frame's lower left corner."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError(
            "add_image_with_boxes draws with Pillow, which is not installed: pip install pillow"
        ) from error

    image = Image.fromarray(rows)
    pen = ImageDraw.Draw(image)
    for number, (left, top, right, bottom) in enumerate(boxes.tolist()):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        pen.line(corners, width=2, fill="red")
        if labels is not None and labels[number]:
            font = ImageFont.load_default()
            _, _, width, height = font.getbbox(labels[number])
            pen.rectangle([(left, bottom - height), (left + width, bottom)], fill="red")
            pen.text((left, bottom - height), labels[number], fill="black", font=font)
    if rescale != 1:
        size = int(rows.shape[1] * rescale), int(rows.shape[0] * rescale)
        image = image.resize(size, Image.Resampling.LANCZOS)
    return np.asarray(image)


def draw_figure(figure: Any) -> Any:
    """A figure of Matplotlib as rows, columns and RGB."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
