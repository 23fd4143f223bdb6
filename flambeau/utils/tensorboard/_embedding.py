"""The files of TensorBoard's projector, which shows points of many dimensions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from . import _images
from ._summaries import as_array

_LARGEST_SPRITE = 8192


def write_embedding(folder: Path, name: str, step: int, matrix: Any, metadata: Any, header: Any, images: Any) -> None:
    """Write points, their labels and their pictures, and add them to the projector's list."""
    place = folder / f"{step:05d}" / _safe(name)
    points = as_array(matrix)
    if points.ndim != 2:
        raise AssertionError(f"mat should be 2D, where mat.size(0) is the number of data points: it is {points.ndim}D")
    if metadata is not None and len(metadata) != len(points):
        raise AssertionError("#labels should equal with #data points")
    if images is not None and len(images) != len(points):
        raise AssertionError("#images should equal with #data points")
    place.mkdir(parents=True, exist_ok=True)
    relative = place.relative_to(folder).as_posix()
    config = [f'  tensor_name: "{_quoted(name)}:{step:05d}"']
    if metadata is not None:
        _write_lines(place / "metadata.tsv", ([header] if header else []) + list(metadata))
        config.append(f'  metadata_path: "{_quoted(relative)}/metadata.tsv"')
    if images is not None:
        side = _write_sprite(place / "sprite.png", as_array(images))
        config += ["  sprite {", f'    image_path: "{_quoted(relative)}/sprite.png"']
        config += [f"    single_image_dim: {side}"] * 2 + ["  }"]
    _write_lines(place / "tensors.tsv", points.tolist())
    config.append(f'  tensor_path: "{_quoted(relative)}/tensors.tsv"')
    with (folder / "projector_config.pbtxt").open("a", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(["embeddings {", *config, "}", ""]))


def _safe(name: str) -> str:
    """A tag as the name of a folder."""
    return "".join(f"%{ord(each):02x}" if each in '%:/\\*?"<>|' else each for each in name)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _write_lines(path: Path, rows: list[Any]) -> None:
    lines = ["\t".join(map(str, row)) if isinstance(row, (list, tuple)) else str(row) for row in rows]
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def _write_sprite(path: Path, images: Any) -> int:
    """All images as one square; returns the side of each."""
    side = images.shape[2]
    if images.shape[2] != images.shape[3]:
        raise AssertionError(f"Image should be square, see tensorflow/tensorboard#670: it is {images.shape[2:]}")
    columns = math.ceil(math.sqrt(len(images)))
    if columns * side > _LARGEST_SPRITE:
        raise AssertionError(
            f"the images take {columns * side} pixels to a side, at most {_LARGEST_SPRITE} are possible"
        )
    square = np.zeros((columns * columns, *images.shape[1:]), images.dtype)
    square[: len(images)] = images
    path.write_bytes(_images.encode_png(_images.to_bytes(_images.as_grid(square.transpose(0, 2, 3, 1), columns))))
    return int(side)
