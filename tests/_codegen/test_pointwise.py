"""Generated elementwise kernels beside NumPy: every traced body, layout, dtype and special value."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flambeau
import flambeau._ops
from flambeau._backends import tiers
from flambeau._backends.cpu.elementwise.pointwise import Pointwise, pointwise
from flambeau._dispatch import op as op_module
from flambeau._dispatch.elementwise import Elementwise

for _module in pkgutil.walk_packages(flambeau._ops.__path__, "flambeau._ops."):
    importlib.import_module(_module.name)

OPS = {name: op for name, op in sorted(op_module.OPS.items()) if isinstance(op, Elementwise)}
FLOATS = ("float32", "float64", "bfloat16", "float16")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "bool")
HALF_ULP = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
MUST_BE_GENERATED = [
    "abs",
    "add",
    "cos",
    "div",
    "eq",
    "erf",
    "exp",
    "expm1",
    "floor",
    "gt",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "reciprocal",
    "relu",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "sub",
    "tanh",
]


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)


def values(dtype: np.dtype[Any], seed: int) -> Any:
    """Numbers of every size, with zeros of both signs, infinities, NaN and denormals among them."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "iub":
        low, high = (0, 2) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return rng.integers(low, high, 5000, dtype=np.int64 if dtype.kind == "b" else dtype).astype(dtype)
    ordinary = rng.standard_normal(3000) * 10.0 ** rng.uniform(-3, 2, 3000)
    tiny = float(np.finfo(np.float32).tiny) * rng.uniform(-2, 2, 500)
    large = rng.choice([-1, 1], 500) * 10.0 ** rng.uniform(2, 5, 500)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5], 1000)
    with np.errstate(all="ignore"):
        return rng.permutation(np.concatenate([ordinary, tiny, large, special])).astype(dtype)


def agree(got: Any, wanted: Any, ulps: float, least: float = 0.0) -> None:
    """Equal but for rounding: within `ulps` units of the last place of the result's type, or of `least`."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, wanted)
        return
    unit = 2 * HALF_ULP[got.dtype.name]
    wide, reference = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(reference))
    both = np.isfinite(wide) & np.isfinite(reference)
    infinite = ~both & ~np.isnan(reference)
    # A result may be rounded to infinity on one side only if it is within rounding of the largest number.
    assert (np.sign(wide[infinite]) == np.sign(reference[infinite])).all()
    smallest = float(np.finfo(np.float32).smallest_subnormal) if got.dtype != np.float64 else 5e-324
    if got.dtype == np.float16:
        smallest = 2.0**-24
    allowed = np.maximum(np.maximum(np.abs(reference[both]), least) * unit * ulps, ulps * smallest)
    assert (np.abs(wide[both] - reference[both]) <= allowed).all()


@pytest.mark.parametrize("name", OPS)
def test_ops_agree_with_their_numpy_bodies(name: str) -> None:
    op = OPS[name]
    ran = 0
    for dtype in (*FLOATS, *INTEGERS[: 5 if name.endswith("_shift") else 6]):
        tensor = flambeau.tensor([0]).to(getattr(flambeau, dtype))
        try:
            entry = op.entry(tensor._kind)
        except (NotImplementedError, RuntimeError, TypeError):
            continue
        operands = [values(dtype_named(dtype), seed) for seed in range(len(op.parameters))]
        if name in ("ldexp", "bitwise_left_shift", "bitwise_right_shift"):
            operands[1] = (operands[1].astype(np.float64) % 7).astype(operands[1].dtype)
        large = entry[2]
        compiled = large._compile(tiers.generated("pointwise"), len(operands))
        if compiled is None:
            continue
        with np.errstate(all="ignore"):
            # A logarithm near 0 of a sum of exponentials is a difference of larger numbers.
            least = 1.0 if name.startswith("logaddexp") else 0.0
            agree(np.asarray(large(*operands)), np.asarray(entry[0](*operands)), 4, least)
        ran += 1
    assert ran or name not in MUST_BE_GENERATED


def test_the_common_ops_are_generated() -> None:
    single = flambeau.tensor([0.0])._kind
    for name in MUST_BE_GENERATED:
        large = OPS[name].entry(single)[2]
        assert large._compile(tiers.generated("pointwise"), len(OPS[name].parameters)) is not None, name


def layouts() -> list[tuple[str, Any]]:
    base = np.arange(60.0 * 70 * 4, dtype=np.float32).reshape(60, 70, 4) / 100
    return [
        ("whole", base),
        ("steps", base[::2, 3:50:3]),
        ("turned", base.transpose(2, 0, 1)),
        ("backwards", base[::-1, :, ::-1]),
        ("repeated row", np.broadcast_to(base[0], (60, 70, 4))),
        ("repeated column", np.broadcast_to(base[:, :1, :], (60, 70, 4))),
        ("one element", np.broadcast_to(base[:1, :1, :1], (60, 70, 4))),
        ("column major", np.asfortranarray(base)),
        ("long and thin", base.reshape(-1, 2)[:, :1]),
        ("sixteen dimensions", base.reshape((2,) * 5 + (1,) * 7 + (3, 5, 7, 5))),
    ]


@pytest.mark.parametrize(("label", "x"), layouts(), ids=[label for label, _ in layouts()])
def test_layouts_of_one_operand(label: str, x: Any) -> None:
    compiled = pointwise(lambda a: a * 2 + 1, [x.dtype], x.dtype)
    assert isinstance(compiled, Pointwise)
    np.testing.assert_array_equal(compiled.unary(x), x * 2 + 1)


@pytest.mark.parametrize(("label", "x"), layouts()[:8], ids=[label for label, _ in layouts()[:8]])
@pytest.mark.parametrize(("other", "y"), layouts()[:8], ids=[label for label, _ in layouts()[:8]])
def test_layouts_of_two_operands(label: str, x: Any, other: str, y: Any) -> None:
    compiled = pointwise(lambda a, b: a - b, [x.dtype, y.dtype], x.dtype)
    assert isinstance(compiled, Pointwise)
    try:
        wanted = x - y
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            compiled.binary(x, y)
        return
    np.testing.assert_array_equal(compiled.binary(x, y), wanted)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (1,), (), (7,), (16, 1), (31,), (1, 1, 33)])
def test_small_and_empty(shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    compiled = pointwise(lambda a: a + 1, [x.dtype], x.dtype)
    assert isinstance(compiled, Pointwise)
    np.testing.assert_array_equal(compiled.unary(x), np.asarray(x + 1, dtype=np.float32))


def test_several_results_and_numbers() -> None:
    x = np.linspace(-3, 3, 9000, dtype=np.float32)
    compiled = pointwise(lambda a, b: (a * b, a + b), [x.dtype, x.dtype], x.dtype)
    assert isinstance(compiled, Pointwise)
    product, total = compiled.many(x, 2.5)
    np.testing.assert_array_equal(product, x * np.float32(2.5))
    np.testing.assert_array_equal(total, x + np.float32(2.5))


def test_half_precision_is_rounded_once() -> None:
    dtype = dtype_named("bfloat16")
    x = values(dtype, 3)
    compiled = pointwise(lambda a: a * a + a, [dtype], dtype)
    assert isinstance(compiled, Pointwise)
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            compiled.unary(x).view(np.uint16)[~np.isnan(wide)],
            (wide * wide + wide).astype(dtype).view(np.uint16)[~np.isnan(wide)],
        )


def test_in_place_on_large_tensors() -> None:
    x = flambeau.arange(10000, dtype=flambeau.float32)
    address = x.data_ptr()
    x.add_(x).mul_(0.5).sub_(1).exp_()
    assert x.data_ptr() == address
    np.testing.assert_allclose(x.numpy()[:20], np.exp(np.arange(20.0) - 1), rtol=1e-6)
    window = flambeau.zeros(200, 200)[:, ::2]
    window += 3
    assert float(window.sum()) == 3 * 200 * 100


def test_threads_do_not_change_results() -> None:
    x = flambeau.randn(300_001)
    rows = x[1:].reshape(50, 500, 12)  # parts of the work begin within rows, and within lines of rows
    before = flambeau.get_num_threads()
    results = []
    try:
        for number in (1, 2, 5):
            flambeau.set_num_threads(number)
            results.append([(x.exp() * x).numpy(), x.sum().numpy(), x.reshape(-1, 1).amax(0).numpy()])
            results[-1] += [(rows[:, :, :11] * rows[:, :1, 1:]).numpy(), rows[:, ::2, ::3].exp().numpy()]
    finally:
        flambeau.set_num_threads(before)
    np.testing.assert_array_equal(results[0][3], rows.numpy()[:, :, :11] * rows.numpy()[:, :1, 1:])
    for result in results[1:]:
        for one, two in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(one, two)


def test_numpy_only_leaves_the_compiler_alone() -> None:
    x = flambeau.randn(10000)
    with tiers.numpy_only():
        assert tiers.generated("pointwise") is None
        reference = x.exp()
    assert tiers.generated("pointwise") is not None
    np.testing.assert_allclose(x.exp().numpy(), reference.numpy(), rtol=3e-7)


def test_half_precision_needs_no_library_that_others_load() -> None:
    """A process of its own: the oracle's libraries bring routines of C that kernels could lean on unnoticed."""
    code = "import flambeau; x = flambeau.zeros(5000, dtype=flambeau.float16); assert (x.erfinv() == 0).all()"
    environment = {**os.environ, "FLAMBEAU_CACHE": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize(
    "shapes", [((0, 3, 3), (0, 3, 1)), ((3, 1, 0), (3, 4, 1)), ((0, 1), (1, 5)), ((2, 0, 3), (1, 3))]
)
def test_operands_without_elements(shapes: tuple[tuple[int, ...], ...]) -> None:
    left, right = (np.zeros(shape, np.float32) for shape in shapes)
    compiled = pointwise(lambda a, b: a * b, [left.dtype, right.dtype], left.dtype)
    assert compiled is not None
    assert compiled.many(left, right)[0].shape == np.broadcast_shapes(*shapes)
