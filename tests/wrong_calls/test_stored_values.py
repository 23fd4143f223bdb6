"""What may be stored in tensors of each dtype, and what is refused; no difference that is not on the list."""

from __future__ import annotations

import pytest

import flambeau as torch

from .stored_values import WAYS, differences, known


@pytest.mark.parametrize("way", WAYS)
def test_numbers_are_stored_and_refused_as_in_pytorch(way: str) -> None:
    listed = known().get(way, {})
    found = list(differences((way,)))
    assert len(found) > 100
    new = [
        f"{number} in {dtype}: {difference}"
        for _, number, dtype, difference in found
        if difference is not None and dtype not in listed.get(number, ())
    ]
    assert not new, "\n".join(new)
    old = [
        f"{number} in {dtype}"
        for _, number, dtype, difference in found
        if difference is None and dtype in listed.get(number, ())
    ]
    assert not old, "listed, but no longer so:\n" + "\n".join(old)


def test_a_fraction_below_zero_is_no_byte() -> None:
    x = torch.zeros(3, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="without overflow"):
        x[1] = -1.0
    with pytest.raises(RuntimeError, match="without overflow"):
        x[1] = 255.5
    x[1] = -1  # integers wrap round
    assert x.tolist() == [0, 255, 0]
    assert x.clamp(min=-2).tolist() == [254, 255, 254]


def test_a_number_of_64_bits_beside_half_precision() -> None:
    x = torch.zeros(2, dtype=torch.bfloat16)
    for _ in range(4):
        assert (x + 2**63).tolist() == [2.0**63] * 2
