"""`use_deterministic_algorithms`: what is filled, refused and warned of, as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch as pytorch

import flambeau

from ...support.differential import differential, outcome, warned

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    yield
    for T in (pytorch, flambeau):
        T.use_deterministic_algorithms(False)
        T.utils.deterministic.fill_uninitialized_memory = True


@differential
def test_settings(T: Any) -> Any:
    def state() -> Any:
        return (
            T.are_deterministic_algorithms_enabled(),
            T.is_deterministic_algorithms_warn_only_enabled(),
            T.get_deterministic_debug_mode(),
            T.utils.deterministic.fill_uninitialized_memory,
        )

    seen = [state()]
    for mode, warn_only in ((True, False), (True, True), (False, True), (False, False)):
        T.use_deterministic_algorithms(mode, warn_only=warn_only)
        seen.append(state())
    for mode in ("default", "warn", "error", 0, 1, 2, True):
        T.set_deterministic_debug_mode(mode)
        seen.append(state())
    T.utils.deterministic.fill_uninitialized_memory = False
    return [*seen, state()]


@differential
def test_wrong_settings(T: Any) -> Any:
    def fill(value: Any) -> None:
        T.utils.deterministic.fill_uninitialized_memory = value

    return [
        outcome(lambda: T.use_deterministic_algorithms(1), "argument 'mode' (position 1) must be bool, not int"),
        outcome(lambda: T.use_deterministic_algorithms(True, warn_only="x"), "'warn_only' must be bool, not str"),
        outcome(lambda: T.set_deterministic_debug_mode(3), "invalid value of debug_mode, expected 0, 1, or 2"),
        outcome(lambda: T.set_deterministic_debug_mode("x"), "expected one of `default`, `warn`, `error`, but got x"),
        outcome(lambda: T.set_deterministic_debug_mode(None), "debug_mode must be str or int"),
        outcome(lambda: fill(1), "expected a bool, but got int"),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@differential
def test_unwritten_memory(T: Any, dtype: str) -> Any:
    T.use_deterministic_algorithms(True)
    like = T.zeros(2, 2).to(getattr(T, dtype))
    kind = like.dtype
    results = [
        T.empty(3, dtype=kind),
        T.empty((2, 0), dtype=kind),
        T.empty(1, 2, 2, 2, dtype=kind, memory_format=T.channels_last),
        T.empty_like(like),
        T.empty_like(like.t()),
        T.empty_strided((2, 2), (3, 1), dtype=kind),
        T.empty_strided((2, 2), (0, 1), dtype=kind),
        T.empty_permuted((2, 3), (1, 0), dtype=kind),
        like.new_empty(2),
        like.new_empty_strided((2,), (2,)),
        like.clone().resize_(2, 4),
        like.clone()[1].resize_(4),
        like.clone().resize_(1).resize_(6),
        like.clone().resize_as_(T.zeros(5)),
    ]
    return [each.to(T.float32) if "float8" in dtype else each for each in results]


@differential
def test_older_ways_to_unwritten_memory(T: Any) -> Any:
    T.use_deterministic_algorithms(True)
    return T.Tensor(2), T.IntTensor(2), T.ones(1).new(2), T.zeros(4, out=T.empty(0)), T.empty(2, device="meta")


@differential
def test_memory_is_left_alone_on_request(T: Any) -> Any:
    T.use_deterministic_algorithms(True)
    T.utils.deterministic.fill_uninitialized_memory = False
    return [bool(each.isnan().all()) for each in (T.empty(3_000_000), T.ones(1).resize_(3_000_000)[1:])]


@pytest.mark.parametrize("warn_only", [False, True])
@differential
def test_ops_without_an_order(T: Any, warn_only: bool) -> Any:
    """These are all that alert on the CPU among the samples of PyTorch's operator database."""
    T.use_deterministic_algorithms(True, warn_only=warn_only)
    functional = T.nn.functional
    place, one = T.tensor([0]), T.ones(1)
    calls = {
        "put_": lambda: T.zeros(4).put_(place, one),
        "put": lambda: T.zeros(4).put(place, one),
        "accumulating": lambda: T.zeros(4).put_(place, one, accumulate=True),
        "unpool1": lambda: functional.max_unpool1d(T.ones(1, 1, 2), T.tensor([[[0, 2]]]), 2),
        "unpool2": lambda: functional.max_unpool2d(T.ones(1, 1, 1, 2), T.tensor([[[[0, 2]]]]), 2),
        "unpool3": lambda: functional.max_unpool3d(T.ones(1, 1, 1, 1, 2), T.tensor([[[[[0, 2]]]]]), 2),
        "index_put_": lambda: T.zeros(4).index_put_((place,), one),
        "scatter_add_": lambda: T.zeros(4).scatter_add_(0, place, one),
        "cumsum": lambda: T.ones(4).cumsum(0),
    }
    alerting = ("put", "unpool")
    if warn_only:
        phrase = "implementation, but you set 'torch.use_deterministic_algorithms(True, warn_only=True)'"
        return {name: warned(call, *[phrase] * name.startswith(alerting)) for name, call in calls.items()}
    phrase = "does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'"
    return {name: outcome(call, *[phrase] * name.startswith(alerting)) for name, call in calls.items()}
