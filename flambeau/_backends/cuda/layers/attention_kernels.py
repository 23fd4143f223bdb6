"""Generated attention, where cuDNN's front end is not installed or refuses: for 16-bit floats, on tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.attention import MOST_WIDTH, PLACES, STRIDED, THREADS, TILE, Attention, attention_source
from ...._codegen.cuda.tensor_cores import LEAST_GENERATION
from ..arrays.array import form_of, of_form
from ..runtime.driver import Launch, driver

Plan = Callable[[dict[int, int]], None]
"""Computes, given addresses: of query, key, value, output and sums, of the gradients, and of a mask, in this order."""
_NAMES = "query key value output sums grad of_query of_key of_value"
_SINGLE = np.dtype(np.float32)


def serves(width: int) -> bool:
    """Whether the device has what kernels for rows of this length need."""
    return (
        width <= MOST_WIDTH
        and driver().block_threads(THREADS) == THREADS  # else lanes cannot meet
        and driver().generation() >= LEAST_GENERATION
    )


def forward(name: str, arrays: list[Any], causal: bool, scale: float, masked: bool) -> Plan:
    """The plan for arrays of these forms: query, key, value, output and sums, and a mask if it is `masked`."""
    forms = _named(arrays, masked)
    run = _prepared("forward", forms, Attention(name, forms["query"].shape[3], causal, masked), scale)

    def plan(pointers: dict[int, int]) -> None:
        query, key, value, output, sums, *mask = pointers.values()
        run(query, key, value, output, sums, *(mask or (0,)))

    return plan


def backward(name: str, arrays: list[Any], causal: bool, scale: float, masked: bool) -> Plan:
    """The plan for gradients: behind those five come the arrays of grad, of_query, of_key and of_value."""
    forms = _named(arrays, masked)
    written_for = Attention(name, forms["query"].shape[3], causal, masked)
    of_queries = _prepared("of_queries", forms, written_for, scale)
    of_keys = _prepared("of_keys", forms, written_for, scale)
    products = form_of(forms["query"].shape[:3], _SINGLE)

    def plan(pointers: dict[int, int]) -> None:
        query, key, value, output, sums, grad, of_query, of_key, of_value, *mask = pointers.values()
        added, deltas = mask[0] if mask else 0, of_form(products)
        of_queries(query, key, value, output, sums, added, grad, of_query, deltas.pointer)
        of_keys(query, key, value, sums, added, grad, deltas.pointer, of_key, of_value)

    return plan


def _named(arrays: list[Any], masked: bool) -> dict[str, Any]:
    names = _NAMES.split()[: len(arrays) - masked]
    return dict(zip([*names, "mask"] if masked else names, arrays, strict=True))


def _prepared(kernel: str, forms: dict[str, Any], written_for: Attention, scale: float) -> Callable[..., None]:
    """What starts a kernel, given its `PLACES`."""
    batch, heads, rows, _ = forms["query"].shape
    owners, keys = forms["key"].shape[1:3]
    launch = _compiled(kernel, written_for)
    of_mask = [0] * 4
    if "mask" in forms:
        of_mask = [step * (size > 1) for size, step in zip(forms["mask"].shape, _steps(forms["mask"]), strict=True)]
    strides = [step for each in STRIDED[kernel].split() for step in _steps(forms[each])[:3]]
    first = Struct("=5qd4q").pack(batch, heads, heads // owners, rows, keys, scale, *of_mask)
    places, last = Struct(f"={len(PLACES[kernel].split())}Q").pack, Struct(f"={len(strides)}q").pack(*strides)
    blocks = batch * owners * -(-keys // TILE) if kernel == "of_keys" else batch * heads * -(-rows // TILE)
    return lambda *pointers: launch(blocks, THREADS, first + places(*pointers) + last)


def _steps(form: Any) -> list[int]:
    return [step // form.itemsize for step in form.strides]


@cache
def _compiled(kernel: str, written_for: Attention) -> Launch:
    return driver().compile(attention_source(kernel, written_for))
