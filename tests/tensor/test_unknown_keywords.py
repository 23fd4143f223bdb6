"""A keyword that a function does not have is answered with the nearest one, and with the valid forms."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau


def test_every_form_is_listed() -> None:
    torch: Any = flambeau
    for call in (lambda: torch.ones(3).sum(dims=0), lambda: torch.sum(torch.ones(3), dims=0)):
        with pytest.raises(TypeError, match=r"did you mean 'dim'\?") as caught:
            call()
        message = str(caught.value)
        assert message.startswith("sum() received an invalid combination of arguments")
        assert "\n * (Tensor input, torch.dtype dtype)" in message
        assert "\n * (Tensor input, tuple of ints dim, bool keepdim, torch.dtype dtype)" in message


def test_the_only_form_is_shown() -> None:
    torch: Any = flambeau
    with pytest.raises(TypeError, match=r"'axiss'; it takes \(tuple of Tensors tensors, int"):
        torch.cat([torch.ones(1)], axiss=0)
    with pytest.raises(TypeError, match=r"'power'; it takes \(input, p, dim, keepdim, dtype\)"):
        torch.ones(1).norm(power=1)
