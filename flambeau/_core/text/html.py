"""Tensors as notebooks show them: a heat map of the values, and a line about the tensor; and whole pages in a frame."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.lazy_signs import content
from ..arrays.narrow import widened
from ..backend import to_host
from ..device import strided
from ..dtype import is_packed

_ROWS, _COLUMNS = 12, 16
"""How many rows and columns are shown; of more, those at both ends."""
_CELL = "padding:1px 6px;text-align:right;font-family:monospace;border:1px solid #8883;"
_ROW = '<tr style="background:none">'
"""A row without the stripes that notebooks give to tables: they would change the colours of the values."""
_GAP = f'<td style="{_CELL}text-align:center">⋯</td>'


def framed(page: str, height: int = 560) -> str:
    """A whole page inside of a notebook's: neither sees the other's styles and scripts."""
    return f'<iframe srcdoc="{escape(page)}" style="width:100%;height:{height}px;border:0"></iframe>'


def tensor_html(tensor: Any) -> str | None:
    """The tensor in HTML; None for one whose elements a table cannot show, which notebooks then show as text."""
    if tensor._kind.dataless or tensor.layout is not strided or tensor.is_quantized or is_packed(tensor.dtype):
        return None
    array = widened(to_host(content(tensor)))
    return f'<div style="overflow-x:auto">{_table(array)}<div>{_facts(tensor, array)}</div></div>'


def _table(array: npt.NDArray[Any]) -> str:
    """A table of a matrix: of the first one, where there are more dimensions than two."""
    if not array.size:
        return ""
    leading = array.shape[:-2]
    matrix = np.atleast_2d(array[(0,) * len(leading)] if leading else array)
    rows, columns = _kept(matrix.shape[0], _ROWS), _kept(matrix.shape[1], _COLUMNS)
    scale = _scale(matrix)
    lines = []
    for row in rows:
        cells = [_GAP if row is None or column is None else _cell(matrix[row, column], scale) for column in columns]
        lines.append(f"{_ROW}{''.join(cells)}</tr>")
    caption = f"[{', '.join(['0'] * len(leading))}, :, :]" if leading else ""
    return f"{caption}<table style='border-collapse:collapse'>{''.join(lines)}</table>"


def _kept(length: int, limit: int) -> list[int | None]:
    """The positions to show; None stands for those left out."""
    if length <= limit:
        return list(range(length))
    half = limit // 2
    return [*range(half), None, *range(length - half, length)]


def _scale(matrix: npt.NDArray[Any]) -> float:
    """The largest finite magnitude."""
    magnitudes = np.abs(matrix.astype(np.float64) if matrix.dtype.kind != "c" else matrix)
    finite = magnitudes[np.isfinite(magnitudes)]
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def _cell(value: Any, scale: float) -> str:
    """One element: blue below zero, orange above it, NaN and infinities marked."""
    if np.isnan(value):
        return f'<td style="{_CELL}background:#c2255c;color:#fff">nan</td>'
    if np.isinf(value):
        return f'<td style="{_CELL}background:#343a40;color:#fff">{value}</td>'
    if np.iscomplexobj(value):
        return f'<td style="{_CELL}">{value:.4g}</td>'
    number = float(value)
    colour = "34,139,230" if number < 0 else "247,103,7"
    text = str(value) if isinstance(value, (np.bool_, np.integer)) else f"{number:.4g}"
    return f'<td style="{_CELL}background:rgba({colour},{0.65 * abs(number) / scale:.2f})">{text}</td>'


def _facts(tensor: Any, array: npt.NDArray[Any]) -> str:
    """Shape, dtype, device and history, and what the values are like."""
    facts = [f"shape {tuple(tensor.shape)}", str(tensor.dtype).removeprefix("torch."), str(tensor.device)]
    if tensor.grad_fn is not None:
        facts.append(f"grad_fn {type(tensor.grad_fn).__name__}")
    elif tensor.requires_grad:
        facts.append("requires_grad")
    if array.size > 1 and array.dtype.kind in "iuf":
        numbers = array.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            facts.append(f"min {finite.min():.4g}, mean {finite.mean():.4g}, max {finite.max():.4g}")
        for name, count in (("NaN", np.isnan(numbers).sum()), ("infinite", np.isinf(numbers).sum())):
            if count:
                facts.append(f"<b>{count} {name}</b>")
    return f"<small>{' · '.join(facts)}</small>"
