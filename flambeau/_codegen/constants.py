"""Types and constants of generated code, each made once: kernels have many, most of them the same ones again."""

from __future__ import annotations

import functools
from typing import Any

from .ir import ir
from .types import I32

_MOST = 4096


@functools.lru_cache(_MOST)
def vector(element: ir.Type, lanes: int) -> ir.Type:
    """The type of vectors of so many numbers; a single one is just a number."""
    return ir.VectorType(element, lanes) if lanes > 1 else element


def number(type_: ir.Type, value: Any) -> ir.Constant:
    """A number, in a vector the same in all lanes."""
    return _number(type_, value, repr(value))


@functools.lru_cache(_MOST)
def _number(type_: ir.Type, value: Any, text: str) -> ir.Constant:
    """`text` tells 0.0 and -0.0 apart, which are equal."""
    return _repeated(type_, value) if isinstance(type_, ir.VectorType) else ir.Constant(type_, value)


@functools.lru_cache(_MOST)
def undefined(type_: ir.Type) -> ir.Constant:
    """A value that does not matter."""
    return ir.Constant(type_, ir.Undefined)


@functools.lru_cache(_MOST)
def positions(*lanes: int) -> ir.Constant:
    """Numbers of lanes, as a vector."""
    return ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))


def _repeated(type_: ir.Type, value: Any) -> ir.Constant:
    """A vector of one number, written down once, and not for each lane: that is shorter to write and to read."""
    made = ir.Constant(type_, value)
    first = made.constant[0]
    text = f"splat ({first.type} {first.get_reference()})"
    made._get_reference = lambda: text
    return made
