"""Generated attention beside NumPy in float64: sizes that fill no tile, shared heads, masks, rows that see nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flambeau
from flambeau._backends.cuda.arrays.array import from_host, to_host
from flambeau._backends.cuda.cudnn import frontend
from flambeau._backends.cuda.layers import attention, attention_kernels
from flambeau._backends.cuda.runtime import driver as drivers
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")


@pytest.fixture(autouse=True)
def _together() -> Iterator[None]:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401

    driver: Any = drivers.driver()
    _forget()
    driver.together = True
    with mock.patch.object(frontend, "library", return_value=None):
        yield
    driver.together = False
    _forget()


def _forget() -> None:
    attention_kernels._compiled.cache_clear()
    attention._plans.clear()
    attention._calls.clear()


class Case(NamedTuple):
    """Sizes of a call: heads of queries and of keys, queries, keys, elements of a row."""

    heads: int
    owners: int
    rows: int
    keys: int
    width: int
    causal: bool = False
    mask: tuple[int, ...] | None = None
    dtype: str = "bfloat16"
    dropout: float = 0.0


CASES = {
    "one tile": Case(1, 1, 64, 64, 16),
    "tiles that are not full": Case(2, 2, 70, 83, 24),
    "causal": Case(1, 1, 130, 130, 16, causal=True),
    "causal, more keys": Case(1, 1, 70, 150, 8, causal=True),
    "causal, more queries": Case(1, 1, 150, 70, 8, causal=True),
    "shared heads": Case(4, 2, 33, 65, 16, causal=True),
    "masked": Case(2, 2, 40, 70, 16, mask=(2, 1, 40, 70)),
    "a mask of keys": Case(2, 1, 40, 70, 16, mask=(2, 1, 1, 70)),
    "one query": Case(2, 2, 1, 100, 16),
    "wide rows": Case(1, 1, 66, 70, 96, causal=True),
    "widest rows": Case(1, 1, 20, 34, 128),
    "float16": Case(1, 1, 65, 64, 40, dtype="float16"),
    "dropout": Case(2, 2, 70, 83, 24, dropout=0.3),
    "causal, dropout, shared heads": Case(4, 2, 67, 67, 16, causal=True, dropout=0.1),
    "masked, dropout": Case(2, 2, 40, 70, 16, mask=(2, 1, 1, 70), dropout=0.5),
    "wide rows, dropout": Case(1, 1, 66, 70, 96, dropout=0.5),
}


def _reference(case: Case, given: dict[str, Any], scale: float) -> dict[str, Any]:
    times = case.heads // case.owners
    q, k, v, grad = (given[each].astype(np.float64) for each in ("query", "key", "value", "grad"))
    k, v = k.repeat(times, 1), v.repeat(times, 1)
    scores = q @ k.swapaxes(2, 3) * scale
    if case.mask:
        scores = scores + given["mask"].astype(np.float64)
    if case.causal:
        scores = np.where(np.tri(case.rows, case.keys, dtype=bool), scores, -math.inf)
    highest = scores.max(3, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(highest), 0, highest))
    total = powers.sum(3, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    factors = given["kept"] / (1 - case.dropout) if case.dropout else 1
    output = weights * factors @ v
    through = weights * (factors * (grad @ v.swapaxes(2, 3)) - (grad * output).sum(3, keepdims=True))
    parts = (2, case.owners, times)
    with np.errstate(divide="ignore"):
        sums = (np.where(np.isinf(highest), 0, highest) + np.log(total))[..., 0]
    return {
        "output": output,
        "sums": sums,
        "of_query": through @ k * scale,
        "of_key": (through.swapaxes(2, 3) @ q).reshape(*parts, *k.shape[2:]).sum(2) * scale,
        "of_value": ((weights * factors).swapaxes(2, 3) @ grad).reshape(*parts, *v.shape[2:]).sum(2),
    }


def _samples(case: Case) -> dict[str, Any]:
    random = np.random.RandomState(0)
    dtype = getattr(ml_dtypes, case.dtype, None) or np.dtype(case.dtype)

    def drawn(heads: int, length: int) -> Any:
        return random.standard_normal((2, length, heads, case.width)).astype(dtype).swapaxes(1, 2)

    given = {
        "query": drawn(case.heads, case.rows), "key": drawn(case.owners, case.keys),
        "value": drawn(case.owners, case.keys), "grad": drawn(case.heads, case.rows),
    }  # fmt: skip
    if case.mask:
        given["mask"] = np.where(random.rand(*case.mask) < 0.3, -math.inf, random.rand(*case.mask)).astype(dtype)
        given["mask"][0, 0, 0] = -math.inf  # a row without any key, or such a sample
    if case.dropout:
        given["kept"] = random.rand(2, case.heads, case.rows, case.keys) >= case.dropout
    return given


@pytest.mark.parametrize("name", CASES)
def test_attention_and_its_gradients(name: str) -> None:
    case = CASES[name]
    given = _samples(case)
    scale = 0.3
    arrays = {key: from_host(each) for key, each in given.items()}
    mask = arrays.get("mask")
    forward: Any = attention.dropped_attention if case.dropout else attention.attention
    backward: Any = attention.dropped_attention_gradients if case.dropout else attention.attention_gradients
    operands = [arrays["query"], arrays["key"], arrays["value"], *([arrays["kept"]] if case.dropout else [])]
    operands += [case.dropout, case.causal, mask, scale]
    ran = forward(*operands)
    assert ran is not None, "no kernel ran"
    output, sums = ran
    gradients = backward([arrays["grad"], None], (True,) * 3, *operands, output, sums)
    assert gradients is not None, "no kernel ran backward"
    expected = _reference(case, given, scale)
    step = 2**-8 if case.dtype == "bfloat16" else 2**-11
    for key, found in zip(expected, (output, sums, *gradients), strict=True):
        ours, exact = to_host(found).astype(np.float64), expected[key]
        np.testing.assert_allclose(ours, exact, rtol=4 * step, atol=4 * step * abs(exact[np.isfinite(exact)]).max())
    assert output.form.strides == arrays["query"].form.strides, "the result lies as the query does"


def _alone(*given: Any, causal: bool = False, mask: Any = None) -> Any:
    """The result for arrays of the host, by kernels."""
    q, k, v = (from_host(np.ascontiguousarray(each)) for each in given)
    ran: Any = attention.attention(q, k, v, 0.0, causal, None if mask is None else from_host(mask), 0.3)
    assert ran is not None, "no kernel ran"
    return to_host(ran[0])


@pytest.fixture
def _at_batch() -> Iterator[None]:
    with flambeau.reproducible("batch"):
        yield


@pytest.mark.usefixtures("_at_batch")
@pytest.mark.parametrize("width", [16, 96])
def test_a_sample_gives_the_same_in_any_batch(width: int) -> None:
    given = _samples(Case(2, 1, 70, 90, width))
    q, k, v = (given[each] for each in ("query", "key", "value"))
    for causal in (False, True):
        together = _alone(q, k, v, causal=causal)
        for sample in range(2):
            part = slice(sample, sample + 1)
            assert _alone(q[part], k[part], v[part], causal=causal).tobytes() == together[part].tobytes()
        assert _alone(q[::-1], k[::-1], v[::-1], causal=causal).tobytes() == together[::-1].tobytes()


@pytest.mark.usefixtures("_at_batch")
def test_a_token_with_a_cache_gives_what_it_gives_in_the_sequence() -> None:
    given = _samples(Case(2, 1, 140, 140, 16))
    q, k, v = (given[each] for each in ("query", "key", "value"))
    whole = _alone(q, k, v, causal=True)
    for last in (0, 1, 63, 64, 65, 127, 139):
        token = _alone(q[:, :, last : last + 1], k[:, :, : last + 1], v[:, :, : last + 1])
        assert token.tobytes() == whole[:, :, last : last + 1].tobytes(), last


@pytest.mark.usefixtures("_at_batch")
def test_padding_that_is_masked_changes_nothing() -> None:
    given = _samples(Case(2, 2, 100, 150, 16))
    q, k, v = (given[each] for each in ("query", "key", "value"))
    mask = np.zeros((2, 1, 1, 150), q.dtype)
    mask[1, :, :, 70:] = -math.inf
    together = _alone(q, k, v, mask=mask)
    assert _alone(q[1:], k[1:, :, :70], v[1:, :, :70]).tobytes() == together[1:].tobytes()
    assert _alone(q[:1], k[:1], v[:1]).tobytes() == together[:1].tobytes()
