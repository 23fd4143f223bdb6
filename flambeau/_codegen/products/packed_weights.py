"""Products of a few rows with matrices of 8-bit and 4-bit integers: to read is a quarter, or an eighth, of floats."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder
from ..kernel import kernel
from ..rows.shared import rows_per_share
from ..types import F32, SCALARS

ROWS = (4, 2, 1)
"""How many rows of the left operand a kernel takes at a time."""
BLOCK = 32
"""So many 4-bit numbers stand in 16 bytes: the first half in the low bits, the second in the high bits."""

_FLOAT, _INT8, _UINT8 = SCALARS["float32"], SCALARS["int8"], SCALARS["uint8"]
_LANES = {1: 64, 2: 32, 4: 32}


@kernel
def int8_product(b: Builder, arguments: Arguments, rows: int) -> None:
    """(out, x, weight, scales): out[m, n] = scales[n] * sum over k of x[m, k] * weight[n, k]; `rows` rows."""
    out, x, weight, scales = (arguments.array(number) for number in range(4))
    columns, length = weight.size(0), weight.size(1)
    shares = b.parallel(
        columns, rows_per_share(b, length), out.data, x.data, weight.data, scales.data, columns, length, unlock=True
    )
    with shares as (c, begin, end, (out_, x_, weight_, scales_, columns_, length_)), c.loop(begin, end) as column:
        line = c.at(weight_, _INT8, column * length_)
        width = _LANES[rows]
        wide = [c.variable(F32, 0.0, width) for _ in range(rows)]
        single = [c.variable(F32, 0.0) for _ in range(rows)]
        for position, lanes in c.lanes(0, length_, width):
            weights = c.convert(c.load(line, _INT8, position, lanes), F32)
            for number, total in enumerate(wide if lanes == width else single):
                values = c.load(x_, _FLOAT, position + length_ * number, lanes)
                total.value = c.fma(values, weights, total.value)
        factor = c.load(scales_, _FLOAT, column)
        for number in range(rows):
            total_ = (c.total(wide[number].value) + single[number].value) * factor
            c.store(out_, _FLOAT, column + columns_ * number, total_)


@kernel
def int4_product(b: Builder, arguments: Arguments, rows: int, blocks: int) -> None:
    """(out, x, sums, weight, scales): the same for 4-bit numbers in groups along k, each with a scale and a zero.

    weight is (n, k / 2), `BLOCK` by `BLOCK`; scales (groups, n, 2); sums[m, group] those of x over a group. A weight is
    (number - 8) * scale + zero. So many `blocks` of a group are on their way at the same time.
    """
    out, x, sums, weight, scales = (arguments.array(number) for number in range(5))
    columns, length, groups = weight.size(0), x.size(1), scales.size(0)
    shares = b.parallel(
        columns, rows_per_share(b, length), out.data, x.data, sums.data, weight.data, scales.data, columns, length,
        groups, unlock=True,
    )  # fmt: skip
    with (
        shares as (c, begin, end, (out_, x_, sums_, weight_, scales_, columns_, length_, groups_)),
        c.loop(begin, end) as column,
    ):
        half = BLOCK // 2
        line = c.at(weight_, _UINT8, column * (length_ // 2))
        size = length_ // groups_
        wide = [c.variable(F32, 0.0, half) for _ in range(rows)]
        offsets = [c.variable(F32, 0.0) for _ in range(rows)]
        with c.loop(0, groups_) as group:
            parts = [[c.variable(F32, 0.0, half) for _ in range(2 * blocks)] for _ in range(rows)]
            with c.loop(group * size, (group + 1) * size, BLOCK * blocks) as position:
                loaded = [c.load(line, _UINT8, position // 2 + block * half, half) for block in range(blocks)]
                numbers = [each for codes in loaded for each in (codes & 15, codes >> 4)]
                for place, each in enumerate(numbers):
                    weights = c.convert(each, F32)
                    for number in range(rows):
                        values = c.load(x_, _FLOAT, position + place * half + length_ * number, half)
                        part = parts[number][place]
                        part.value = c.fma(values, weights, part.value)
            place_of_scale = (group * columns_ + column) * 2
            scale = c.load(scales_, _FLOAT, place_of_scale)
            offset = c.load(scales_, _FLOAT, place_of_scale + 1) - scale * 8.0
            for number in range(rows):
                first, *others = [part.value for part in parts[number]]
                wide[number].add(sum(others, first) * c.splat(scale, half))
                offsets[number].add(c.load(sums_, _FLOAT, group + groups_ * number) * offset)
        for number in range(rows):
            c.store(out_, _FLOAT, column + columns_ * number, c.total(wide[number].value) + offsets[number].value)
