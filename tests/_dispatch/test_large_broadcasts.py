"""Large tensors beside smaller ones, and large tensors changed in place: generated kernels with NumPy's bits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential

_SHAPES = [(6, 8, 40, 32), (6, 1, 40, 32), (40, 32), (6, 8, 1, 32), (6, 8, 40, 1), (1,), ()]


def _numbers(T: Any, shape: tuple[int, ...], shift: float, dtype: str = "float32") -> Any:
    count = T.ones(shape).numel()
    return ((T.arange(count, dtype=T.float64) * 0.7 + shift).sin() * 5).to(getattr(T, dtype)).reshape(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize("mask", [(6, 8, 40, 32), (6, 1, 40, 32), (40, 32), (6, 8, 40, 1), ()])
@differential
def test_where_broadcasts(T: Any, dtype: str, mask: tuple[int, ...]) -> Any:
    """Every operand may be the one that is broadcast; numbers, too, and a mask that is transposed."""
    condition, whole = _numbers(T, mask, 1) > 0, _numbers(T, _SHAPES[0], 2, dtype)
    turned = (_numbers(T, (32, 40, 8, 6), 3) > 0).permute(3, 2, 1, 0)
    found = [T.where(condition, whole, _numbers(T, shape, 4, dtype)) for shape in _SHAPES]
    found += [T.where(condition, _numbers(T, shape, 4, dtype), whole) for shape in _SHAPES]
    found += [T.where(condition, whole, 1), T.where(condition, 0, whole), T.where(turned, whole, 1)]
    return [(each.reshape(-1)[::7], each.shape) for each in found]


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@differential
def test_changes_by_smaller_operands(T: Any, name: str, dtype: str) -> Any:
    """The operand is broadcast, has gaps or is the same memory turned round."""
    found = []
    for shape in _SHAPES[1:]:
        target = _numbers(T, _SHAPES[0], 5, dtype)
        getattr(target, name)(_numbers(T, shape, 6, dtype) + 7)
        found.append(target)
    target, turned = _numbers(T, (100, 100), 5, dtype), _numbers(T, (100, 100), 8, dtype).t() + 7
    getattr(target, name)(turned)
    rows = _numbers(T, (100, 100), 5, dtype) + 7
    getattr(rows, name)(rows[:1].clone())
    return found, target, rows


@pytest.mark.parametrize("number", [0.5, -2, 3.25, 0, 10**6])
@differential
def test_updates_of_large_targets(T: Any, number: float) -> Any:
    """What optimizers and averages of weights do, in one kernel."""

    def target() -> Any:
        return _numbers(T, (70, 90), 1)

    one, two = _numbers(T, (70, 90), 2), _numbers(T, (70, 90), 3)
    return [
        target().add_(one, alpha=number),
        target().sub_(one, alpha=number),
        target().addcmul_(one, two, value=number),
        target().addcdiv_(one, two, value=number),
        target().lerp_(one, float(number)),
        target().t().add_(one.t(), alpha=number),
    ]


@pytest.mark.parametrize("bounds", [(None, 1), (0, 6), (-1.5, None), (-1, float("nan")), (float("-inf"), 2), (3, -3)])
@differential
def test_bounds_of_large_targets(T: Any, bounds: Any) -> Any:
    target = _numbers(T, (70, 90), 1)
    target[::9, ::7] = float("nan")
    return target.clamp_(*bounds)


@differential
def test_a_target_beside_its_own_memory(T: Any) -> Any:
    """Rows of the target itself are read before they are written."""
    target = _numbers(T, (80, 90), 1)
    return [
        target.add_(target),
        target.add_(target, alpha=2),
        target.lerp_(target, 0.25),
        target.addcmul_(target, target),
    ]


@differential
def test_slopes_of_channels(T: Any) -> Any:
    x = _numbers(T, (3, 8, 20, 20), 1)
    slopes = _numbers(T, (8,), 2)
    prelu = T.nn.functional.prelu
    return prelu(x, slopes), prelu(x.transpose(2, 3), slopes), prelu(x[:, :, ::2], slopes)


@pytest.mark.parametrize(
    "pad", [(1, 1, 1, 1), (0, 0, 0, 0), (2, 0), (0, 1, 3, 0, 0, 2), (-1, 2, 1, -3), (0, 0, 0, 0, 1, 1)]
)
@differential
def test_large_images_padded(T: Any, pad: tuple[int, ...]) -> Any:
    x = _numbers(T, (4, 8, 30, 30), 1)
    last = x.contiguous(memory_format=T.channels_last)
    found = [T.nn.functional.pad(each, pad, value=1.5) for each in (x, last, x.transpose(0, 1), x[..., ::2])]
    return [(each, each.stride()) for each in found]
