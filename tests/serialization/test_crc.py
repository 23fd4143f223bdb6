"""The fast CRC-32 is the standard's."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from flambeau._serialization.crc import _BLOCK, _FAR, _WORTH_IT, crc32


@pytest.mark.parametrize(
    "size", [0, 1, 1000, _WORTH_IT - 1, _WORTH_IT, _WORTH_IT + 12345, _FAR + 9 * _BLOCK, 5_000_003]
)
def test_equals_zlib(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert crc32(data) == zlib.crc32(data)
    assert crc32(data.tobytes()) == zlib.crc32(data)
    data[:] = 0
    assert crc32(data) == zlib.crc32(data)


def test_finds_every_flipped_bit() -> None:
    data = np.zeros(_WORTH_IT + 77, np.uint8)
    good = crc32(data)
    for position in (0, 3, 4, _BLOCK, _FAR, data.size // 2, data.size - 1):
        data[position] ^= 1
        assert crc32(data) == zlib.crc32(data) != good
        data[position] ^= 1
