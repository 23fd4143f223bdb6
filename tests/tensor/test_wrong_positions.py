"""Positions that are not there, in data: PyTorch's error, and neither foreign memory nor the end of the process."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch as pytorch

import flambeau

from .wrong_positions import CALLS, NUMBERS, run

_UNCHECKED = frozenset((
    "ctc_loss targets", "embedding gradient", "embedding_bag offsets", "max_pool2d gradient",
    "pack_padded_sequence", "segment_reduce offsets", "sparse_coo_tensor",
))  # fmt: skip
"""Where PyTorch reads or writes memory of others, or looks at the positions only when they are used."""
_NEVER_SEEN = "ctc_loss targets"
"""Classes out of range have the probability 0."""
_PADDING = "embedding gradient"
"""Of which -1 says that there is none."""
_ENDS = ("embedding_bag offsets", "pack_padded_sequence", "segment_reduce offsets")
"""Where the size itself is right: it is an end."""


def _outcome(name: str, library: Any, size: int, number: int) -> type[BaseException] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(name, library, "cpu", size, number)
        except (IndexError, RuntimeError, ValueError, AttributeError) as error:
            return type(error)
    return None


@pytest.mark.parametrize("size", [16, 300], ids=["few", "many"])
@pytest.mark.parametrize("name", CALLS)
def test_wrong_positions(name: str, size: int) -> None:
    for number in NUMBERS:
        found = _outcome(name, flambeau, size, number)
        if name not in _UNCHECKED:
            assert found is _outcome(name, pytorch, size, number), number
        elif name == _NEVER_SEEN:
            assert found is None
        elif not (number == -1 and name == _PADDING) and not (number == 0 and name in _ENDS):
            assert found in (IndexError, RuntimeError), number


@pytest.mark.parametrize("last", [4, -4, 3, 0])
def test_pivots_of_blocks_without_a_second_row(last: int) -> None:
    factors, right = flambeau.eye(3), flambeau.ones(3, 1)
    pivots = flambeau.tensor([1, 2, last], dtype=flambeau.int32)
    if abs(last) == 3:
        assert flambeau.linalg.ldl_solve(factors, pivots, right).shape == (3, 1)
    else:
        with pytest.raises(RuntimeError, match=r"Pivots given to ldl_solve must all satisfy \|pivot\|"):
            flambeau.linalg.ldl_solve(factors, pivots, right)
