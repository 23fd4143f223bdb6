"""The generated product of matrices beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._backends.cpu.linalg import gemm
from flambeau._codegen.products.gemm import DEPTH, Tile, tile_for

TILES = {
    "here": None,
    "128 bits, nothing fused": Tile(4, 2, 4, False, False),
    "256 bits": Tile(4, 3, 8, True, False),
    "512 bits": Tile(8, 3, 16, True, False),
    "in place": Tile(1, 8, 4, True, False, True),
}
# Rows, depth, columns.
SHAPES = [
    (1, 1, 1),
    (8, 16, 12),
    (9, 17, 13),
    (3, 5, 200),
    (1, 40, 33),
    (65, 3, 7),
    (33, DEPTH + 1, 50),
    (16, 2 * DEPTH + 7, 24),
]


def matrices(rows: int, depth: int, columns: int, dtype: str) -> tuple[Any, Any]:
    generator = np.random.default_rng(rows + depth)
    left, right = (generator.standard_normal(shape).astype(dtype) for shape in ((rows, depth), (depth, columns)))
    return left, right


def product_of(left: Any, right: Any, **options: Any) -> gemm.Product:
    """The plan of `left @ right`, both contiguous, for a contiguous result."""
    (rows, depth), columns = left.shape[-2:], right.shape[-1]
    return gemm.plan(
        right.dtype.name,
        rows=rows,
        offsets=np.arange(depth) * columns,
        left_offsets=np.arange(depth),
        column_offsets=np.arange(columns),
        places=np.arange(columns),
        out_row=columns,
        left_row=depth,
        limit=right.size,
        **options,
    )


def assert_close(found: Any, expected: Any) -> None:
    assert np.abs(found - expected).max() <= (1e-12 if found.dtype == np.float64 else 1e-4)


@pytest.mark.parametrize(("tile", "dtype"), [("here", "float64"), *[(tile, "float32") for tile in TILES]])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(monkeypatch: pytest.MonkeyPatch, tile: str, shape: tuple[int, int, int], dtype: str) -> None:
    """With the tiles of other processors too: they work anywhere, if not as fast."""
    if (chosen := TILES[tile]) is not None:
        monkeypatch.setattr(gemm, "tile_for", lambda *_: chosen)
    left, right = matrices(*shape, dtype)
    out = np.full((shape[0], shape[2]), np.nan, dtype)
    assert product_of(left, right).run(out, left, right)
    assert_close(out, left @ right)
    bias = np.arange(shape[0]).astype(dtype)
    product_of(left, right).run(out, left, right, bias)
    assert_close(out, left @ right + bias[:, None])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_rows(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    left, right = matrices(13, 50, 20, "float32")
    rounded = left.astype(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    out = np.empty((13, 20), np.float32)
    product_of(left, right).run(out, rounded, right)
    assert_close(out, rounded.astype(np.float32) @ right)


def test_groups_batches_and_chunks() -> None:
    """Several left matrices; columns in batches, of which the last is shorter; depths in batches and in parts."""
    left, right = matrices(10, 30, 24, "float32")
    lefts, rights = np.stack([left, -left, 2 * left]), np.stack([right, right + 1, right * right])
    out = np.empty((3, 10, 24), np.float32)
    product_of(lefts, rights, groups=3, out_group=240, source_group=720, left_group=300).run(out, lefts, rights)
    assert_close(out, lefts @ rights)
    # 24 columns as batches of 10, 10 and 4.
    options: dict[str, Any] = {"offsets": np.arange(30) * 24, "left_offsets": np.arange(30), "left_row": 30}
    batched = gemm.plan(
        "float32",
        rows=10,
        column_offsets=np.arange(10),
        places=np.arange(10),
        out_row=24,
        batches=3,
        last_columns=4,
        out_batch=10,
        source_batch=10,
        limit=right.size,
        **options,
    )
    result = np.full((10, 24), np.nan, np.float32)
    batched.run(result, left, right)
    assert_close(result, left @ right)
    # 30 depths as batches of 8, 8, 8 and 6, each with a result of its own.
    deep = gemm.plan(
        "float32",
        rows=10,
        offsets=np.arange(8) * 24,
        left_offsets=np.arange(8),
        left_row=30,
        column_offsets=np.arange(24),
        places=np.arange(24),
        out_row=24,
        depth_batches=4,
        last_depth=6,
        source_depth_batch=8 * 24,
        left_depth_batch=8,
        out_chunk=240,
        may_split_depth=True,
        limit=right.size,
    )
    assert deep.chunks > 1
    parts = np.full((deep.chunks, 10, 24), np.nan, np.float32)
    deep.run(parts, left, right)
    assert_close(parts.sum(0), left @ right)


def test_columns_in_any_order() -> None:
    left, right = matrices(10, 30, 50, "float32")
    order, places = np.random.default_rng(0).permutation(50), np.random.default_rng(1).permutation(50)
    shuffled = gemm.plan(
        "float32",
        rows=10,
        offsets=np.arange(30) * 50,
        left_offsets=np.arange(30),
        left_row=30,
        column_offsets=order,
        places=places,
        out_row=50,
        limit=right.size,
    )
    out = np.full((10, 50), np.nan, np.float32)
    shuffled.run(out, left, right)
    expected = np.empty_like(out)
    expected[:, places] = (left @ right)[:, order]
    assert_close(out, expected)


def test_runs_of_columns() -> None:
    """Neighbours are copied together; a tile begins a new run."""
    tile = Tile(8, 3, 4, True, True)
    found = gemm.columns(np.r_[0:5, 10:30], np.arange(25), 100, tile)
    assert found.runs.tolist() == [[0, 0, 5], [10, 5, 7], [17, 0, 12], [29, 0, 1]]
    assert found.tiles[:, :2].tolist() == [[0, 2], [2, 3], [3, 4]]
    assert found.tiles[:, 2].tolist() == [1, 1, 1]
    assert found.tiles[:, 4].tolist() == [122, 129, 141]


def test_few_columns_have_a_narrower_tile() -> None:
    """Where tiles of three vectors would leave more than a sixteenth of the work unused."""
    if tile_for("float32", 64).rows < 8:
        pytest.skip("this processor's registers leave no choice")
    assert [tile_for("float32", 64, columns).vectors for columns in (64, 576, 0)] == [2, 3, 3]
