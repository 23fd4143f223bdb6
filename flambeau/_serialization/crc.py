"""The CRC-32 of large data, two and a half times as fast as `zlib` computes it.

A CRC is the remainder of a polynomial, the message, by another, P. P divides x**91639 + x**41678 + 1, the shortest of
its multiples with three terms, and over two elements squaring a polynomial doubles its exponents: so the same holds for
any power of two times these exponents, and taking 32 times them keeps to whole bytes. A block at the front of the
message may therefore be replaced by itself, added at two places further on, without changing the remainder. Addition
is exclusive-or, which NumPy does at the speed of memory; `zlib` finishes the short rest.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

_SCALE = 4  # bytes for each exponent: the blocks of 200 kB stay in the cache
_FAR = 91639 * _SCALE
_NEAR = 41678 * _SCALE
_BLOCK = _FAR - _NEAR
_OVERHANG = _BLOCK - _NEAR
_WORTH_IT = 8 * _BLOCK


def crc32(data: Any) -> int:
    """What `zlib.crc32(data)` gives, of bytes or an array of bytes."""
    message = np.frombuffer(data, np.uint8)
    if message.nbytes < _WORTH_IT:
        return zlib.crc32(message.data)
    blocks = (message.nbytes - _FAR) // _BLOCK
    # A block goes to where the next begins, and to _NEAR behind that: partly into the next, partly into the one after.
    block, last, before = (np.zeros(_BLOCK, np.uint8) for _ in range(3))
    for start in range(0, blocks * _BLOCK, _BLOCK):
        np.bitwise_xor(message[start : start + _BLOCK], last, out=block)
        if start == 0:
            block[:4] ^= 0xFF  # the standard's start value
        block[_NEAR:] ^= last[:_OVERHANG]
        block[:_NEAR] ^= before[_OVERHANG:]
        block, last, before = before, block, last
    rest = message[blocks * _BLOCK :].copy()
    rest[:_BLOCK] ^= last
    rest[_NEAR:_FAR] ^= last
    rest[:_NEAR] ^= before[_OVERHANG:]
    return zlib.crc32(rest.data, 0xFFFFFFFF)  # a start value of zero
