"""Which kernels run."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu import rows


def test_a_family_goes_first_and_numpy_on_where_it_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def halves(x: Any, factor: int) -> Any:
        asked.append(factor)
        return None if factor == 3 else x / factor

    monkeypatch.setattr(rows, "halves", halves, raising=False)

    @tiers.first_by("rows", "halves")
    def kernel(x: Any, factor: int) -> Any:
        """Its own text."""
        return "NumPy"

    assert kernel.__doc__ == "Its own text."
    assert kernel(np.float32(8), 2) == 4
    assert kernel(np.float32(8), 3) == "NumPy"
    with tiers.numpy_only():
        assert kernel(np.float32(8), 2) == "NumPy"
    assert asked == [2, 3]


def test_results_do_not_depend_on_what_ran_before() -> None:
    program = """
        import sys
        import flambeau

        flambeau.manual_seed(0)
        if len(sys.argv) > 1:
            flambeau.zeros(300, 300).softmax(-1)
            flambeau.zeros(300, 300).exp()
        x = flambeau.randn(5, 7, requires_grad=True)
        y = flambeau.nn.functional.layer_norm(x, (7,)).log_softmax(-1)
        y.square().sum().backward()
        print(y.detach().numpy().tobytes().hex(), x.grad.numpy().tobytes().hex())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    fresh, used = (
        subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout for more in ((), ("used",))
    )
    assert fresh == used


def test_importing_starts_no_compiler() -> None:
    program = "import sys, flambeau; flambeau.ones(3).add(1); assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_numpy_alone_in_all_threads() -> None:
    before = flambeau.randn(2, 3).softmax(-1)
    with tiers.numpy_only():
        assert tiers.generated("rows") is None
        assert tiers.generated("norms") is None
    assert tiers.generated("rows") is rows
    assert before.shape == (2, 3)
