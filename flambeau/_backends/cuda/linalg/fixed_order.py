"""Products whose elements do not depend on their neighbours: those of `reproducible("batch")`.

An element of a product of float32 is one chain of fused multiplications and additions. Generated kernels compute it so,
and so do many of the library's: for each product the library's ways are tried, and the quickest that has the same bits
is taken. It may be another one for another number of rows.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import cache
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.products import FIELDS, TINY, Form, Tile, product_source
from ...._core.arrays.quick import name_of
from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY, NotKept
from ..arrays.array import empty, form_of, from_host, to_host
from ..runtime.driver import Launch, driver
from ..runtime.synchronization import HERE
from ..runtime.trials import Buffers, Call, count_alike, quickest_alike
from .blas import Product, placed
from .blaslt import Batch, Failed, Matrix, Refused, is_there
from .blaslt import Product as LibraryProduct

_HALVES = frozenset(("float16", "bfloat16"))
_PACK, _TRIED = 8, 1000
"""So many 16-bit floats the library's quick kernels read at a time; of so many rows it has to keep the bits."""
_TYPES = frozenset(("float16", "bfloat16", "float32", "float64"))
_TILES = Tile(128, 128, 8, 8), Tile(64, 64, 4, 4), Tile(32, 32, 2, 2), Tile(16, 32, 1, 2)
"""The largest of which there are enough is the quickest. All of them sum up in one order."""
_FOR_FEW = Tile(64, 64, 4, 4, 32), Tile(32, 32, 2, 2, 64), Tile(16, 32, 1, 2, 64), Tile(16, 16, 1, 1, 64)
"""Where there are fewer, more is read at a time, since nothing else is computed meanwhile."""
_ENOUGH = 132
_ALONE = Tile(4, 4, 4, 4)
"""Where blocks have one thread."""
_MOST_TILES = 2
_SINGLE, _LARGE = np.dtype(np.float32), ((8192, 768, 2304), (8192, 3072, 768))
"""Products that take long: rows, terms of each sum, columns."""
_WORTHWHILE, _ALIGNED = 1 << 20, 15
"""From so many multiplications on the library is tried, for matrices that begin at multiples of 16 bytes."""
_ANYWHERE = 256
"""Arrays that are allocated begin at multiples of it."""
_FIELDS = Struct(f"={len(FIELDS.split())}q4Q").pack


def multiplying(target: Any, first: Any, second: Any, added: bool = False, over_samples: bool = False) -> Product:
    """Multiplies matrices of these forms, or batches of them, `added` to what the result holds.

    By the library; where results must not depend on the batch, in one order, unless the sums are `over_samples`: those
    depend on the batch in any case.
    """
    if REPRODUCIBILITY.product is not None and not over_samples:
        return _in_order(target, first, second, added, False)
    if REPRODUCIBILITY.level is not None and is_there():
        return on_any_gpu(target, first, second, added)
    return driver().product(target, first, second, added)


def on_any_gpu(target: Any, first: Any, second: Any, added: bool) -> Product:
    """The product by a way that does not depend on which GPU of its architecture this is."""
    name, item = name_of(target.dtype), target.itemsize
    *outer, rows, inner = first.shape
    columns, count = second.shape[-1], math.prod(outer)
    (turn_a, step_a, apart_a), (turn_b, step_b, apart_b) = placed(first), placed(second)
    left, right = Matrix(bool(turn_a), step_a), Matrix(bool(turn_b), step_b)
    batch = Batch(count, apart_a, apart_b, rows * columns) if count > 1 else None
    step, shortened = max(target.strides[-2] // item, columns), CHOICES.shortened_products
    given = name, rows, inner, columns, left, right, False, shortened, None, False, False, False, batch, step
    plans: dict[bool, Product] = {}

    def planned(is_aligned: bool) -> Product:
        try:
            product = LibraryProduct(*given, _ALIGNED + 1 if is_aligned else item)
        except Refused:
            return _generated(target, first, second, added, False)
        return product.increase if added else product.multiply

    def multiply(result: int, left: int, right: int) -> None:
        is_aligned = not (result | left | right) & _ALIGNED
        if is_aligned not in plans:
            plans[is_aligned] = planned(is_aligned)
        plans[is_aligned](result, left, right)

    return multiply


def rows_product(target: Any, first: Any, second: Any, biased: bool = False) -> Call:
    """Multiplies the rows of a dense matrix with a matrix, each at a place that is a multiple of 16 bytes.

    `biased`: and adds a row, whose address comes last. 16-bit floats by one way of the library's for any number of
    rows, if it has one that keeps its word.
    """
    name = name_of(target.dtype)
    (rows, inner), columns = first.shape, second.shape[1]
    turned, step, _ = placed(second)
    if name in _HALVES and not (inner | columns | step) % _PACK:
        matrix = Matrix(bool(turned), step)
        if _is_kept(HERE.ordinal, first.dtype, inner, columns, matrix, biased):
            return _in_parts(name, rows, inner, columns, matrix, biased)
    return _in_order(target, first, second, False, biased)


# ----- one chain for each element -------------------------------------------------------------------------------------


def _in_order(target: Any, first: Any, second: Any, added: bool, biased: bool) -> Call:
    generated = _generated(target, first, second, added, biased)
    work = target.size * first.shape[-1]
    if name_of(target.dtype) != "float32" or work < _WORTHWHILE or not target.flags.c_contiguous:
        return generated
    given = _given(first, second, biased)
    rows, columns = target.shape[-2:]
    count = math.prod(target.shape[:-2])
    key = HERE.ordinal, added, *given
    quick = _quick.get(key)
    if quick is None:
        extents = [_extent(first), _extent(second), *[columns] * biased]
        own = [_generated(target, first, second, added, biased, tile) for tile in _other_tiles(rows, columns, count)]
        method = "plus_row" if biased else "increase" if added else "multiply"
        others = chain(own, _library_calls(given, method, own_gpu=True))
        found = quickest_alike(Buffers(target.dtype, target.size, tuple(extents)), generated, others, _REFUSALS)
        if found is None:
            return generated
        quick = _quick[key] = found
    return generated if quick is generated else _where_aligned(quick, generated)


_quick: dict[Any, Call] = {}
"""The quickest way to compute a product, by its sizes and how its matrices lie."""
_REFUSALS = Refused, Failed


def _given(first: Any, second: Any, biased: bool) -> tuple[Any, ...]:
    """What the library is told of a product of float32 that is not to be divided."""
    *outer, rows, inner = first.shape
    columns, count = second.shape[-1], math.prod(outer)
    (turn_a, step_a, apart_a), (turn_b, step_b, apart_b) = placed(first), placed(second)
    left, right = Matrix(bool(turn_a), step_a), Matrix(bool(turn_b), step_b)
    batch = Batch(count, apart_a, apart_b, rows * columns) if count > 1 else None
    return "float32", rows, inner, columns, left, right, biased, False, None, False, False, True, batch


def _library_calls(given: tuple[Any, ...], method: str, own_gpu: bool) -> Iterator[Call]:
    """A product by each of the library's ways: for the GPU at hand, or the same for all of its architecture."""
    given = *given, None, _ANYWHERE, own_gpu
    with contextlib.suppress(Refused):
        for way in LibraryProduct(*given).ways:
            product = LibraryProduct(*given)
            product.use(way)
            yield getattr(product, method)


def _where_aligned(quick: Call, otherwise: Call) -> Call:
    """A call for the device in use now, and for arrays that begin where the library was tried."""
    ordinal = HERE.ordinal

    def run(*addresses: int) -> None:
        together = 0
        for each in addresses:
            together |= each
        (otherwise if together & _ALIGNED or HERE.ordinal != ordinal else quick)(*addresses)

    return run


def _extent(form: Any) -> int:
    """How many elements lie between the first one and the last, both included."""
    steps = zip(form.shape, form.strides, strict=True)
    nbytes: int = sum((size - 1) * step for size, step in steps)
    return 1 + nbytes // int(form.itemsize)


def _generated(
    target: Any, first: Any, second: Any, added: bool, biased: bool, tile: Tile | None = None, tiny: str | None = None
) -> Call:
    name = name_of(target.dtype)
    if name not in _TYPES:
        raise NotKept(f"a product of matrices of {name}, which a library computes in a way chosen by their sizes")
    item = target.itemsize
    *_, rows, inner = first.shape
    columns, count = second.shape[-1], math.prod(target.shape[:-2])
    steps = [[step // item for step in form.strides] for form in (first, second, target)]
    matrices = [each[0] if len(each) > 2 and count > 1 else 0 for each in steps]
    left, right, out = (each[-2:] for each in steps)
    tile = tile or _tile(rows, columns, count, item)
    if tiny is None:
        tiny = _tiny(HERE.ordinal) if name == "float32" else "kept"
    down, across = -(-rows // tile.rows), -(-columns // tile.columns)
    launch = _kernel(tile, Form(name, left[1] == 1, right[1] == 1, added, biased, tiny))
    sizes = (
        rows, columns, inner, down, across, *left, matrices[0], *right, matrices[1], max(out[0], columns), matrices[2],
    )  # fmt: skip
    blocks = down * across * count

    def multiply(result: int, left: int, right: int, row: int = 0) -> None:
        launch(blocks, tile.threads, _FIELDS(*sizes, result, left, right, row))

    return multiply


# ----- one way of the library's for any number of rows ----------------------------------------------------------------


def _in_parts(name: str, rows: int, inner: int, columns: int, right: Matrix, biased: bool) -> Call:
    """The library's product; of parts of the rows where it refuses so many: another kernel would give other bits."""
    try:
        return _by_library(name, rows, inner, columns, right, biased)
    except Refused:
        if rows == 1:
            raise NotKept("a product of matrices, for which the library has no way for any number of rows") from None
    half, item = rows // 2, np.dtype(np.float16).itemsize
    first, rest = (_in_parts(name, each, inner, columns, right, biased) for each in (half, rows - half))

    def multiply(result: int, left: int, right: int, *row: int) -> None:
        first(result, left, right, *row)
        rest(result + half * columns * item, left + half * inner * item, right, *row)

    return multiply


def _by_library(name: str, rows: int, inner: int, columns: int, right: Matrix, biased: bool) -> Call:
    given = name, rows, inner, columns, Matrix(False, inner), right, biased, False, None, False, True
    product = LibraryProduct(*given)
    return product.plus_row if biased else product.multiply


@cache
def _is_kept(ordinal: int, dtype: Any, inner: int, columns: int, right: Matrix, biased: bool) -> bool:
    """Whether the library's way gives rows the same bits among many and among few: tried with numbers, once."""
    if HERE.recording is not None:
        return False  # nothing can be read now
    rows = np.random.default_rng(0).standard_normal((_TRIED, inner)).astype(dtype)
    place = np.random.default_rng(1).standard_normal((columns if right.turned else inner, right.step)).astype(dtype)
    left, factor, row = from_host(rows), from_host(place), from_host(np.resize(rows, columns))
    more = [row.pointer] if biased else []
    item = left.itemsize
    found: list[Any] = []
    try:
        for begin, end in ((0, _TRIED), (0, 1), (1, 8), (8, 72), (72, 301), (301, _TRIED)):
            result = empty((end - begin, columns), left.dtype)
            multiply = _by_library(name_of(dtype), end - begin, inner, columns, right, biased)
            multiply(result.pointer, left.pointer + begin * inner * item, factor.pointer, *more)
            found.append(to_host(result).tobytes())
    except Refused:
        return False
    return bool(found[0] == b"".join(found[1:]))


# ----- generated kernels ----------------------------------------------------------------------------------------------


def _other_tiles(rows: int, columns: int, count: int) -> list[Tile]:
    """Tiles that may be quicker where there are few of them."""
    if driver().block_threads(2) == 1:
        return []
    tiles = [(each, -(-rows // each.rows) * -(-columns // each.columns) * count) for each in _FOR_FEW]
    return [each for each, blocks in tiles if _ENOUGH // 4 <= blocks <= 4 * _ENOUGH][-_MOST_TILES:]


@cache
def _tiny(ordinal: int) -> str:
    """What the library does with the smallest numbers, in most of its ways to multiply large matrices.

    Its ways for small ones may differ; these products gain least by the library. Where it cannot be asked, they are
    kept.
    """
    scores = dict.fromkeys(reversed(TINY), 0)
    for rows, inner, columns in _LARGE:
        first, second = form_of((rows, inner), _SINGLE), form_of((columns, inner), _SINGLE).T
        target = form_of((rows, columns), _SINGLE)
        ways = list(_library_calls(_given(first, second, False), "multiply", own_gpu=False))
        if not ways:
            continue
        if HERE.recording is not None:
            raise NotKept("a product of matrices in a graph that is captured before any other has been computed")
        buffers = Buffers(_SINGLE, target.size, (first.size, second.size))
        for tiny in scores:
            generated = _generated(target, first, second, False, False, None, tiny)
            scores[tiny] += count_alike(buffers, generated, ways, _REFUSALS)
    return max(scores, key=lambda tiny: scores[tiny])


def _tile(rows: int, columns: int, count: int, item: int) -> Tile:
    if driver().block_threads(2) == 1:
        return _ALONE
    for tile in _TILES[item == 8 :]:  # a sum in float64 takes two registers
        if -(-rows // tile.rows) * -(-columns // tile.columns) * count >= _ENOUGH:
            return tile
    return _TILES[-1] if rows <= _TILES[-1].rows else _TILES[-2]


@cache
def _kernel(tile: Tile, form: Form) -> Launch:
    return driver().compile(product_source(tile, form))
