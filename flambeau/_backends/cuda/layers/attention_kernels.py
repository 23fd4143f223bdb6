"""Generated attention, where cuDNN's front end is not installed or refuses: for 16-bit floats, on tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.attention import MOST_WIDTH, PLACES, STRIDED, THREADS, TILE, Attention, attention_source
from ...._codegen.cuda.tensor_cores import LEAST_GENERATION
from ..arrays.array import form_of, of_form
from ..runtime.driver import Launch, driver

Plan = Callable[[dict[int, int]], None]
"""Computes, given addresses: of query, key, value, output and sums, of the gradients, of a mask, and of what dropout
keeps, in this order.
"""
_NAMES = "query key value output sums grad of_query of_key of_value"
_SINGLE = np.dtype(np.float32)


def serves(width: int) -> bool:
    """Whether the device has what kernels for rows of this length need."""
    return (
        width <= MOST_WIDTH
        and driver().block_threads(THREADS) == THREADS  # else lanes cannot meet
        and driver().generation() >= LEAST_GENERATION
    )


class Call(NamedTuple):
    """What tells attention of arrays of the same forms apart."""

    causal: bool
    scale: float
    masked: bool
    dropout: float = 0.0


def forward(name: str, arrays: list[Any], call: Call) -> Plan:
    """The plan for arrays of these forms: query, key, value, output and sums, and a mask and what is kept if any."""
    forms = _named(arrays, call)
    run = _prepared("forward", forms, name, call)

    def plan(pointers: dict[int, int]) -> None:
        query, key, value, output, sums, *further = pointers.values()
        run(query, key, value, output, sums, *_optional(further, call))

    return plan


def backward(name: str, arrays: list[Any], call: Call) -> Plan:
    """The plan for gradients: behind those five come the arrays of grad, of_query, of_key and of_value."""
    forms = _named(arrays, call)
    of_queries, of_keys = _prepared("of_queries", forms, name, call), _prepared("of_keys", forms, name, call)
    products = form_of(forms["query"].shape[:3], _SINGLE)

    def plan(pointers: dict[int, int]) -> None:
        query, key, value, output, sums, grad, of_query, of_key, of_value, *further = pointers.values()
        (added, kept), deltas = _optional(further, call), of_form(products)
        of_queries(query, key, value, output, sums, added, kept, grad, of_query, deltas.pointer)
        of_keys(query, key, value, sums, added, kept, grad, deltas.pointer, of_key, of_value)

    return plan


def _named(arrays: list[Any], call: Call) -> dict[str, Any]:
    further = ["mask"] * call.masked + ["kept"] * (call.dropout > 0)
    return dict(zip([*_NAMES.split()[: len(arrays) - len(further)], *further], arrays, strict=True))


def _optional(further: list[int], call: Call) -> tuple[int, int]:
    """The addresses of the mask and of what dropout keeps; 0 for what there is not."""
    return further[0] if call.masked else 0, further[-1] if call.dropout else 0


def _prepared(kernel: str, forms: dict[str, Any], name: str, call: Call) -> Callable[..., None]:
    """What starts a kernel, given its `PLACES`."""
    batch, heads, rows, width = forms["query"].shape
    owners, keys = forms["key"].shape[1:3]
    launch = _compiled(kernel, Attention(name, width, call.causal, call.masked, call.dropout > 0))
    of_mask = [0] * 4
    if call.masked:
        of_mask = [step * (size > 1) for size, step in zip(forms["mask"].shape, _steps(forms["mask"]), strict=True)]
    strides = [step for each in STRIDED[kernel].split() for step in _steps(forms[each])[:3]]
    numbers = call.scale, 1 / (1 - call.dropout)
    first = Struct("=5q2d4q").pack(batch, heads, heads // owners, rows, keys, *numbers, *of_mask)
    places, last = Struct(f"={len(PLACES[kernel].split())}Q").pack, Struct(f"={len(strides)}q").pack(*strides)
    blocks = batch * owners * -(-keys // TILE) if kernel == "of_keys" else batch * heads * -(-rows // TILE)
    return lambda *pointers: launch(blocks, THREADS, first + places(*pointers) + last)


def _steps(form: Any) -> list[int]:
    return [step // form.itemsize for step in form.strides]


@cache
def _compiled(kernel: str, written_for: Attention) -> Launch:
    return driver().compile(attention_source(kernel, written_for))
