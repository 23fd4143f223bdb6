"""Which kernels run."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import pytest

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.reductions import rows
from flambeau._core.backend import backend_of


def test_a_lowering_goes_first_and_the_kernel_on_where_it_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def softmax(x: Any, dim: int) -> Any:
        asked.append(dim)
        return None if dim else x * 0 + 7

    monkeypatch.setattr(rows, "softmax", softmax)
    cpu = backend_of("cpu")
    cpu.forget()
    try:
        x = flambeau.zeros(2, 2)
        assert x.softmax(0).tolist() == [[7, 7], [7, 7]]
        assert x.softmax(1).tolist() == [[0.5, 0.5], [0.5, 0.5]]
        with tiers.numpy_only():
            assert x.softmax(0).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    finally:
        cpu.forget()
    assert asked == [0, 1]


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
