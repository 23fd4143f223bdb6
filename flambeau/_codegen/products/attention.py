"""Attention in blocks: scores exist for a few queries and keys at a time, so memory grows with the sequence's length.

Scores stand with the keys in rows and the queries in columns: maxima and sums over keys are then sums of vectors, and
no matrix but the block of queries has to be turned. What the blocks of keys contribute is rescaled when a larger score
appears. The derivative computes the scores again from the logarithms of their sums.

A few queries, as there are when text is generated, would leave most columns empty: each has a row of scores instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Arguments, ArrayArgument
from ..build import Builder, Value
from ..functions import log
from ..functions.exponential import exp_of_difference
from ..kernel import kernel
from ..rows.shared import scratch
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import SCALARS, Scalar
from .gemm import BLOCK, transposed
from .tile import Product

QUERIES = 32
"""How many queries are looked at together."""
KEYS = 128
"""How many keys are looked at together."""
KEYS_OF_HALF = 512
"""How many keys are looked at together where weights are rounded: as many as in PyTorch, since weights are made with
the largest score so far."""
_EXPONENTIAL = 32
"""Multiplications that take as long as to make a weight of a score."""

_LOWEST = float("-inf")


@dataclass
class _Matrix:
    """One head's rows of an array (batch, head, row, column), whose columns are neighbours."""

    place: Value
    step: Value

    def row(self, c: Builder, scalar: Scalar, number: Value | int) -> Value:
        """The address of a row."""
        return c.at(self.place, scalar, self.step * number)


class _Heads:
    """An array (batch, head, row, column) in the function of a parallel loop."""

    def __init__(self, array: ArrayArgument, scalar: Scalar) -> None:
        self.values = [array.data, array.stride(0), array.stride(1), array.stride(2) // scalar.size]
        self.scalar = scalar

    @staticmethod
    def matrix(c: Builder, values: list[Value], batch: Value, head: Value) -> _Matrix:
        """The rows of one head; `values` are those that were captured."""
        place, batch_step, head_step, row_step = values
        return _Matrix(c.opaque(place + (batch * batch_step + head * head_step)), row_step)


def _worth(b: Builder, scores: Value, width: Value) -> Value:
    """How many steps one thread should have at least, if each has so many scores and products of that width."""
    return steps_worth(b, scores * (width + _EXPONENTIAL), MULTIPLICATIONS)


def _turned(
    c: Builder,
    scalar: Scalar,
    matrix: _Matrix,
    first: Value,
    count: Value,
    width: Value,
    factor: Value | None,
    into: Value,
) -> None:
    """Rows of a matrix as columns: (width, QUERIES), zeros where there are fewer rows, multiplied by a factor."""

    def scaled(value: Value) -> Value:
        return value if factor is None else value * c.splat(factor, value.lanes)

    with c.loop(0, QUERIES, BLOCK) as begin:
        is_whole = (begin + BLOCK <= count) & (width % BLOCK == 0)
        with c.either(is_whole) as (in_blocks, one_by_one):
            with in_blocks:
                rows = [matrix.row(c, scalar, first + begin + number) for number in range(BLOCK)]
                with c.loop(0, width, BLOCK) as index:
                    read = [scaled(c.load(row, scalar, index, BLOCK)) for row in rows]
                    for number, value in enumerate(transposed(c, read)):
                        c.store(into, scalar, (index + number) * QUERIES + begin, value)
            with one_by_one, c.loop(begin, begin + BLOCK) as column, c.either(column < count) as (inside, outside):
                with inside:
                    row = matrix.row(c, scalar, first + column)
                    with c.loop(0, width) as index:
                        c.store(into, scalar, index * QUERIES + column, scaled(c.load(row, scalar, index)))
                with outside, c.loop(0, width) as index:
                    c.store(into, scalar, index * QUERIES + column, 0.0)


def _parts(scalar: Scalar) -> list[tuple[int, int]]:
    """The columns of a row of scores, in vectors: where each begins, and its width."""
    width = 64 // scalar.size
    return [(begin, width) for begin in range(0, QUERIES, width)]


def _queries_from(c: Builder, first: Value, begin: int, lanes: int) -> Value:
    """The numbers of neighbouring queries, as a vector."""
    return c.gathered([first + (begin + lane) for lane in range(lanes)])


def _hide(c: Builder, scalar: Scalar, scores: Value, key: Value, numbers: list[Value]) -> None:
    """No query sees a later key."""
    for (begin, lanes), queries in zip(_parts(scalar), numbers, strict=True):
        value = c.load(scores, scalar, begin, lanes)
        seen = queries >= c.splat(key, lanes)
        c.store(scores, scalar, begin, c.select(seen, value, c.constant(value.type, _LOWEST)))


def _add_mask(c: Builder, scalar: Scalar, scores: Value, mask: _Matrix, key: Value, first: Value, count: Value) -> None:
    with c.loop(0, count) as column:
        value = c.load(scores, scalar, column) + c.load(mask.row(c, scalar, first + column), scalar, key)
        c.store(scores, scalar, column, value)


@kernel
def attention_forward(b: Builder, arguments: Arguments, dtype: str, causal: bool, masked: bool, half: str) -> None:
    """(output, logsumexp, query, key, value, mask, scale). logsumexp is without gaps.

    `half`: the dtype to which weights are rounded, if there is one.
    """
    scalar = SCALARS[dtype]
    together = KEYS_OF_HALF if half else KEYS
    product = Product(b, scalar)
    arrays = [arguments.array(number) for number in (0, 2, 3, 4, 5)]
    heads = [_Heads(array, scalar) for array in arrays]
    sums = arguments.array(1).data
    scale = b.convert(arguments.float64(6), scalar.compute)
    batches, number_of_heads, rows, value_width = (arrays[0].size(dimension) for dimension in range(4))
    width, keys = arrays[1].size(3), arrays[2].size(2)
    blocks = (rows + QUERIES - 1) // QUERIES
    given = [value for head in heads for value in head.values]
    captured = (sums, scale, number_of_heads, rows, value_width, width, keys, blocks, *given)
    grain = _worth(b, keys * QUERIES, width + value_width)
    with b.parallel(batches * number_of_heads * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        sums, scale, number_of_heads, rows, value_width, width, keys, blocks, *given = inside
        with scratch(c, scalar, width * QUERIES + value_width * QUERIES + together * QUERIES) as room:
            turned = room
            gathered = c.at(turned, scalar, width * QUERIES)
            scores = c.at(gathered, scalar, value_width * QUERIES)
            largest, total, shrink = (c.stack(scalar.compute, QUERIES, 64) for _ in range(3))
            with c.loop(begin, end) as task:
                line = task // blocks
                first = (task - line * blocks) * QUERIES
                batch = line // number_of_heads
                head = line - batch * number_of_heads
                output, query, key, value, mask = (
                    _Heads.matrix(c, given[at : at + 4], batch, head) for at in range(0, 20, 4)
                )
                count = c.smaller(rows - first, QUERIES)
                _turned(c, scalar, query, first, count, width, scale, turned)
                for at, lanes in _parts(scalar):
                    c.store(largest, scalar, at, c.splat(c.constant(scalar.compute, _LOWEST), lanes))
                    c.store(total, scalar, at, c.splat(c.constant(scalar.compute, 0.0), lanes))
                for index, lanes in c.lanes(0, value_width * count, 64 // scalar.size):
                    c.store(gathered, scalar, index, c.splat(c.constant(scalar.compute, 0.0), lanes))
                limit = c.smaller(keys, first + QUERIES) if causal else keys
                numbers = [_queries_from(c, first, at, lanes) for at, lanes in _parts(scalar)]
                with c.loop(0, limit, together) as start:
                    seen = c.smaller(limit - start, together)
                    product(
                        c,
                        (seen, QUERIES, width),
                        (key.row(c, scalar, start), key.step, 1),
                        (turned, QUERIES),
                        (scores, QUERIES),
                        False,
                    )
                    if causal or masked:
                        with c.loop(0, seen) as row:
                            line_of_scores = c.at(scores, scalar, row * QUERIES)
                            if masked:
                                _add_mask(c, scalar, line_of_scores, mask, start + row, first, count)
                            if causal:
                                _hide(c, scalar, line_of_scores, start + row, numbers)
                    _absorb(c, scalar, scores, seen, largest, total, shrink, half)
                    with c.loop(0, count) as row:
                        factor = c.load(shrink, scalar, row)
                        for column, lanes in c.lanes(0, value_width, 64 // scalar.size):
                            place = row * value_width + column
                            c.store(gathered, scalar, place, c.load(gathered, scalar, place, lanes) * factor)
                    product(
                        c,
                        (count, value_width, seen),
                        (scores, 1, QUERIES),
                        (value.row(c, scalar, start), value.step),
                        (gathered, value_width),
                        True,
                    )
                with c.loop(0, count) as row:
                    sum_ = c.load(total, scalar, row)
                    empty = sum_ == 0.0
                    inverse = c.select(empty, c.constant(scalar.compute, 0.0), 1.0 / sum_)
                    target = output.row(c, scalar, first + row)
                    for column, lanes in c.lanes(0, value_width, 64 // scalar.size):
                        c.store(
                            target,
                            scalar,
                            column,
                            c.load(gathered, scalar, row * value_width + column, lanes) * inverse,
                        )
                    c.store(sums, scalar, line * rows + first + row, c.load(largest, scalar, row) + log(c, sum_))


@kernel
def attention_of_few_queries(
    b: Builder, arguments: Arguments, dtype: str, causal: bool, masked: bool, half: str
) -> None:
    """(output, logsumexp, query, key, value, mask, scale), query by query. logsumexp is without gaps.

    `half`: the dtype to which weights are rounded, if there is one.
    """
    scalar = SCALARS[dtype]
    arrays = [arguments.array(number) for number in (0, 2, 3, 4, 5)]
    scale = b.convert(arguments.float64(6), scalar.compute)
    batches, number_of_heads, rows, value_width = (arrays[0].size(dimension) for dimension in range(4))
    given = [value for array in arrays for value in _Heads(array, scalar).values]
    width, keys = arrays[1].size(3), arrays[2].size(2)
    captured = (arguments.array(1).data, scale, number_of_heads, rows, value_width, width, keys)
    grain = _worth(b, keys, width + value_width)
    with b.parallel(batches * number_of_heads * rows, grain, *captured, *given, unlock=True) as (c, begin, end, inside):
        sums, scale, number_of_heads, rows, value_width, width, keys, *given = inside
        with scratch(c, scalar, keys) as scores, c.loop(begin, end) as task:
            line = task // rows
            number = task - line * rows
            batch = line // number_of_heads
            head = line - batch * number_of_heads
            output, query, key, value, mask = (
                _Heads.matrix(c, given[at : at + 4], batch, head) for at in range(0, 20, 4)
            )
            seen = c.smaller(keys, number + 1) if causal else keys
            line_of_query = query.row(c, scalar, number)
            for together, first, last in ((4, c.integer(0), seen // 4 * 4), (1, seen // 4 * 4, seen)):
                with c.loop(first, last, together) as start:
                    lines = [key.row(c, scalar, start + step) for step in range(together)]
                    for step, total in enumerate(_inner_products(c, scalar, line_of_query, lines, width)):
                        score = total * scale
                        if masked:
                            score = score + c.load(mask.row(c, scalar, number), scalar, start + step)
                        c.store(scores, scalar, start + step, score)
            largest, total = _exponentials(c, scalar, scores, seen, half)
            inverse = c.select(total == 0.0, c.constant(scalar.compute, 0.0), 1.0 / total)
            target = output.row(c, scalar, number)
            for column, lanes in c.lanes(0, value_width, 64 // scalar.size):
                sum_ = c.variable(scalar.compute, 0.0, lanes)
                with c.loop(0, seen) as index:
                    weight = c.splat(c.load(scores, scalar, index), lanes)
                    sum_.value = c.fma(weight, c.load(value.row(c, scalar, index), scalar, column, lanes), sum_.value)
                c.store(target, scalar, column, sum_.value * c.splat(inverse, lanes))
            c.store(sums, scalar, task, largest + log(c, total))


def _inner_products(c: Builder, scalar: Scalar, line: Value, lines: list[Value], width: Value) -> list[Value]:
    """The inner products of one row with several others."""
    most = 64 // scalar.size
    wide, single = ([c.variable(scalar.compute, 0.0, lanes) for _ in lines] for lanes in (most, 1))
    for column, lanes in c.lanes(0, width, most):
        values = c.load(line, scalar, column, lanes)
        for other, total in zip(lines, wide if lanes > 1 else single, strict=True):
            total.value = c.fma(values, c.load(other, scalar, column, lanes), total.value)
    return [c.total(many.value) + one.value for many, one in zip(wide, single, strict=True)]


def _rounded(c: Builder, weight: Value, half: str) -> Value:
    """A weight as a product of matrices of that dtype takes it."""
    return c.unpacked(c.packed(weight, SCALARS[half]), SCALARS[half]) if half else weight


def _exponentials(c: Builder, scalar: Scalar, scores: Value, count: Value, half: str) -> tuple[Value, Value]:
    """Turn a row of scores into exponentials of their distances to the largest; that one, and the sum."""
    most = 64 // scalar.size
    highest, alone = (c.variable(scalar.compute, _LOWEST, lanes) for lanes in (most, 1))
    for place, lanes in c.lanes(0, count, most):
        kept = highest if lanes > 1 else alone
        kept.value = c.maximum(kept.value, c.load(scores, scalar, place, lanes))
    largest = c.maximum(c.fold(highest.value, c.maximum), alone.value)
    # A query that sees no key: nothing is subtracted from its scores, which are -inf.
    safe = c.select(largest == _LOWEST, c.constant(scalar.compute, 0.0), largest)
    wide, single = (c.variable(scalar.compute, 0.0, lanes) for lanes in (most, 1))
    for place, lanes in c.lanes(0, count, most):
        weight = exp_of_difference(c, c.load(scores, scalar, place, lanes) - c.splat(safe, lanes))
        c.store(scores, scalar, place, _rounded(c, weight, half))
        (wide if lanes > 1 else single).add(weight)
    return largest, c.total(wide.value) + single.value


def _absorb(
    c: Builder, scalar: Scalar, scores: Value, seen: Value, largest: Value, total: Value, shrink: Value, half: str
) -> None:
    """Turn scores into exponentials, and bring maxima, sums and the factor of what was gathered before up to date."""
    lanes = 64 // scalar.size
    with c.loop(0, QUERIES, lanes) as at:
        before = c.load(largest, scalar, at, lanes)
        highest = c.variable(scalar.compute, before, lanes)
        with c.loop(0, seen) as row:
            highest.value = c.maximum(highest.value, c.load(scores, scalar, row * QUERIES + at, lanes))
        # Queries that have seen no key yet: nothing is subtracted from their scores, which are -inf.
        safe = c.select(highest.value == _LOWEST, c.constant(before.type, 0.0), highest.value)
        factor = exp_of_difference(c, before - safe)
        sums = c.variable(scalar.compute, c.load(total, scalar, at, lanes) * factor, lanes)
        with c.loop(0, seen) as row:
            weight = exp_of_difference(c, c.load(scores, scalar, row * QUERIES + at, lanes) - safe)
            c.store(scores, scalar, row * QUERIES + at, _rounded(c, weight, half))
            sums.value = sums.value + weight
        c.store(largest, scalar, at, highest.value)
        c.store(total, scalar, at, sums.value)
        c.store(shrink, scalar, at, factor)


@kernel
def attention_backward(b: Builder, arguments: Arguments, dtype: str, causal: bool, masked: bool) -> None:
    """(of_query, of_key, of_value, query, key, value, output, grad, mask, logsumexp, scale).

    Gradients of keys that no query sees are left as they are.
    """
    scalar = SCALARS[dtype]
    product = Product(b, scalar)
    arrays = [arguments.array(number) for number in range(9)]
    heads = [_Heads(array, scalar) for array in arrays]
    sums = arguments.array(9).data
    scale = b.convert(arguments.float64(10), scalar.compute)
    batches, number_of_heads, rows, width = (arrays[3].size(dimension) for dimension in range(4))
    keys, value_width = arrays[4].size(2), arrays[5].size(3)
    given = [value for head in heads for value in head.values]
    captured = (sums, scale, number_of_heads, rows, value_width, width, keys, *given)
    grain = _worth(b, rows * keys, 3 * width + 2 * value_width)
    with b.parallel(batches * number_of_heads, grain, *captured, unlock=True) as (c, begin, end, inside):
        sums, scale, number_of_heads, rows, value_width, width, keys, *given = inside
        with scratch(c, scalar, width * QUERIES + value_width * QUERIES + 2 * KEYS * QUERIES) as room:
            turned = room
            turned_grad = c.at(turned, scalar, width * QUERIES)
            weights = c.at(turned_grad, scalar, value_width * QUERIES)
            of_scores = c.at(weights, scalar, KEYS * QUERIES)
            row_sums, logs = (c.stack(scalar.compute, QUERIES, 64) for _ in range(2))
            blocks = (rows + QUERIES - 1) // QUERIES
            with c.loop(begin, end) as line, c.loop(0, blocks) as done:
                # The last queries come first: they see all keys, whose gradients others then add to.
                first = (blocks - 1 - done) * QUERIES
                batch = line // number_of_heads
                head = line - batch * number_of_heads
                of_query, of_key, of_value, query, key, value, output, grad, mask = (
                    _Heads.matrix(c, given[at : at + 4], batch, head) for at in range(0, 36, 4)
                )
                count = c.smaller(rows - first, QUERIES)
                _turned(c, scalar, query, first, count, width, scale, turned)
                _turned(c, scalar, grad, first, count, value_width, None, turned_grad)
                for at, lanes in _parts(scalar):
                    c.store(row_sums, scalar, at, c.splat(c.constant(scalar.compute, 0.0), lanes))
                    c.store(logs, scalar, at, c.splat(c.constant(scalar.compute, 0.0), lanes))
                with c.loop(0, count) as row:
                    _row_sum(
                        c,
                        scalar,
                        grad.row(c, scalar, first + row),
                        output.row(c, scalar, first + row),
                        value_width,
                        row_sums,
                        row,
                    )
                    sum_ = c.load(sums, scalar, line * rows + first + row)
                    c.store(logs, scalar, row, c.select(sum_ == _LOWEST, c.constant(scalar.compute, 0.0), sum_))
                limit = c.smaller(keys, first + QUERIES) if causal else keys
                numbers = [_queries_from(c, first, at, lanes) for at, lanes in _parts(scalar)]
                with c.loop(0, limit, KEYS) as start:
                    seen = c.smaller(limit - start, KEYS)
                    key_rows, value_rows = key.row(c, scalar, start), value.row(c, scalar, start)
                    product(
                        c, (seen, QUERIES, width), (key_rows, key.step, 1), (turned, QUERIES), (weights, QUERIES), False
                    )
                    product(
                        c,
                        (seen, QUERIES, value_width),
                        (value_rows, value.step, 1),
                        (turned_grad, QUERIES),
                        (of_scores, QUERIES),
                        False,
                    )
                    with c.loop(0, seen) as row:
                        line_of_scores = c.at(weights, scalar, row * QUERIES)
                        if masked:
                            _add_mask(c, scalar, line_of_scores, mask, start + row, first, count)
                        if causal:
                            _hide(c, scalar, line_of_scores, start + row, numbers)
                        for at, lanes in _parts(scalar):
                            place = row * QUERIES + at
                            weight = exp_of_difference(
                                c, c.load(weights, scalar, place, lanes) - c.load(logs, scalar, at, lanes)
                            )
                            c.store(weights, scalar, place, weight)
                            slope = c.load(of_scores, scalar, place, lanes) - c.load(row_sums, scalar, at, lanes)
                            c.store(of_scores, scalar, place, weight * slope * scale)
                    product(
                        c,
                        (seen, value_width, count),
                        (weights, QUERIES, 1),
                        (grad.row(c, scalar, first), grad.step),
                        (of_value.row(c, scalar, start), of_value.step),
                        done,
                    )
                    product(
                        c,
                        (seen, width, count),
                        (of_scores, QUERIES, 1),
                        (query.row(c, scalar, first), query.step),
                        (of_key.row(c, scalar, start), of_key.step),
                        done,
                    )
                    product(
                        c,
                        (count, width, seen),
                        (of_scores, 1, QUERIES),
                        (key_rows, key.step),
                        (of_query.row(c, scalar, first), of_query.step),
                        start,
                    )


def _row_sum(c: Builder, scalar: Scalar, one: Value, two: Value, width: Value, into: Value, place: Value) -> None:
    """The inner product of two rows."""
    lanes_wide = 32 // scalar.size
    wide = c.variable(scalar.compute, 0.0, lanes_wide)
    single = c.variable(scalar.compute, 0.0)
    for column, lanes in c.lanes(0, width, lanes_wide):
        total = wide if lanes > 1 else single
        total.value = c.fma(c.load(one, scalar, column, lanes), c.load(two, scalar, column, lanes), total.value)
    c.store(into, scalar, place, c.total(wide.value) + single.value)
