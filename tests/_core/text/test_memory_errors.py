"""Memory that runs out: one type of error everywhere, with the size, and with who holds the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from tests.support.differential import differential, outcome

_CALLS: dict[str, Any] = {
    "arange": lambda torch: torch.arange(10**15),
    "linspace": lambda torch: torch.linspace(0, 1, 10**15),
    "zeros": lambda torch: torch.zeros(10**15),
    "rand": lambda torch: torch.rand(10**15),
    "clone": lambda torch: torch.ones(1).expand(10**15).clone(),
    "contiguous": lambda torch: torch.ones(1).expand(10**15).contiguous(),
    "exp": lambda torch: torch.ones(1).expand(10**15).exp(),
    "add": lambda torch: torch.ones(1).expand(10**15) + 1,
    "double": lambda torch: torch.ones(1).expand(10**15).double(),
    "one_hot": lambda torch: torch.nn.functional.one_hot(torch.tensor([0]), 10**15),
    "bincount": lambda torch: torch.bincount(torch.tensor([10**15])),
    "repeat": lambda torch: torch.ones(2).repeat(10**15),
    "resize_": lambda torch: torch.ones(2).resize_(10**15),
    "UntypedStorage": lambda torch: torch.UntypedStorage(10**15),
    "@": lambda torch: torch.ones(1, 1).expand(10**12, 1) @ torch.ones(1, 1000),
    "to_dense": lambda torch: torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (10**15,)).to_dense(),
    "getitem": lambda torch: torch.ones(1).expand(10**15)[torch.tensor(0).expand(10**15)],
    "Linear": lambda torch: torch.nn.Linear(10**8, 10**8),
    "tril_indices": lambda torch: torch.tril_indices(10**8, 10**8),
}


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
@differential
def test_too_much(torch: Any, call: Any) -> Any:
    found = outcome(lambda: call(torch), "you tried to allocate")
    return found[0], found[2]  # the type here is a subclass of PyTorch's


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_every_way_to_ask_for_too_much_gives_one_error(call: Any) -> None:
    with pytest.raises(flambeau.OutOfMemoryError, match=r"can't allocate memory: you tried to allocate \d+ bytes"):
        call(flambeau)


_FROM_TABLES: dict[str, Any] = {
    "bilinear": lambda torch: torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), (10**8, 10**8), mode="bilinear"),
    "nearest": lambda torch: torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), (10**8, 10**8)),
    "affine_grid": lambda torch: torch.nn.functional.affine_grid(torch.ones(1, 2, 3), [1, 1, 10**8, 10**8], True),
    "replicate": lambda torch: torch.nn.functional.pad(torch.ones(1, 1, 2, 2), (10**8,) * 4, "replicate"),
    "adaptive_avg_pool2d": lambda torch: torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 2, 2), 10**8),
    "adaptive_max_pool2d": lambda torch: torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 2, 2), 10**8),
    "triu_indices": lambda torch: torch.triu_indices(10**8, 10**8),
    "vander": lambda torch: torch.vander(torch.ones(10**6), 10**9),
    "an expanded factor": _CALLS["@"],
}
"""Results made from lists of places along each dimension, or from a copy of a factor, which may fit (where memory is
promised before it is there, even if it is not there): the results do not."""


@pytest.mark.parametrize("call", _FROM_TABLES.values(), ids=_FROM_TABLES)
def test_the_result_is_asked_for_before_the_tables_it_is_made_from(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def list_of_places(*_: Any, **__: Any) -> Any:
        raise AssertionError("a list of places was made")

    for name in ("arange", "linspace", "tri"):
        monkeypatch.setattr(np, name, list_of_places)
    with pytest.raises(flambeau.OutOfMemoryError, match=r"you tried to allocate \d{16,} bytes"):
        call(flambeau)


def test_a_padding_beyond_all_memory() -> None:
    """It is not gone through position by position."""
    with pytest.raises(flambeau.OutOfMemoryError, match="you tried to allocate"):
        flambeau.nn.functional.conv1d(flambeau.ones(1, 1, 2), flambeau.ones(1, 1, 3), padding=10**15)


def test_the_error_is_a_runtime_error_under_two_names() -> None:
    assert issubclass(flambeau.OutOfMemoryError, RuntimeError)
    assert flambeau.cuda.OutOfMemoryError is flambeau.OutOfMemoryError


def test_the_error_names_the_largest_tensors_and_their_lines() -> None:
    weight = flambeau.ones(2000, 2000, requires_grad=True)
    doubled = weight * 2
    plain = flambeau.zeros(1500, 2000)
    with pytest.raises(flambeau.OutOfMemoryError) as caught:
        flambeau.zeros(10**15)
    text = str(caught.value)
    assert "4000000000000000 bytes (3.553 PiB)" in text
    assert "made by MulBackward0 at" in text
    assert "doubled = weight * 2" in text
    assert "held as 'plain' by" in text
    assert text.index("shape [2000, 2000]") < text.index("shape [1500, 2000]")
    del doubled, plain
