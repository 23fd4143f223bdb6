"""Converters: the ops in ONNX's operators, a file for each family."""

from __future__ import annotations

from . import (
    activation,
    attention,
    create,
    image,
    index,
    linalg,
    loss,
    nn,
    pointwise,
    pool,
    reduce,
    rnn,
    shape,
    sort,
    special,
)
from ._table import CONVERTERS, Converter, Result, Unsupported, converter
from .elementwise import convert_steps, has_converter

__all__ = ["CONVERTERS", "Converter", "Result", "Unsupported", "convert_steps", "converter", "has_converter"]
