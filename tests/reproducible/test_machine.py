"""`flambeau.reproducible("machine")`: the same bits with other instructions, and without generated code.

`FLAMBEAU_ARM_PYTHON`, the path of a Python for ARM that has NumPy, and perhaps llvmlite, is compared with this one: on
x86-64 a script that calls an emulator (`qemu-aarch64 -L SYSTEM SYSTEM/usr/bin/python3 "$@"`).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
import flambeau._ops.pointwise.special_kernels as special_kernels
from flambeau._backends.cpu.elementwise.pointwise import Pointwise
from flambeau._codegen.expr import Program
from flambeau._codegen.functions import FUNCTIONS
from flambeau._codegen.machine.engine import engine
from flambeau._codegen.on_numpy.builder import Evaluator
from flambeau._codegen.on_numpy.fused import fma, fma_of_wide
from flambeau._codegen.types import F32, F64
from flambeau._core.process.processor import ON_X86_64

from . import machine
from .operators import chosen

ROOT = Path(__file__).parents[2]
_OF_TWO = ("arctan2", "power", "hypot", "fmod", "remainder", "floor_divide", "logaddexp", "logaddexp2")
_LEVELS = json.loads(Path(__file__).with_name("held_on_machines.json").read_text(encoding="utf-8"))


def _of_any_size(dtype: Any, count: int, seed: int) -> Any:
    """Numbers of all exponents, and special ones."""
    generator = np.random.default_rng(seed)
    words = generator.integers(-(2**63), 2**63 - 1, count)
    drawn = words.view(np.float64) if dtype == np.float64 else words.astype(np.int32).view(np.float32)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 1e-310, 1e-45, 3e38, 88.7, -103.0, 709.0, 1e22]
    with np.errstate(over="ignore"):
        usual = [np.asarray(generator.standard_normal(count) * scale, dtype) for scale in (1e-6, 1.0, 30.0, 1e6)]
        return np.concatenate([*usual, np.asarray(special, dtype), drawn])


def _same(found: Any, wanted: Any) -> bool:
    """Equal bits; NaN is NaN."""
    words = np.dtype(f"i{wanted.dtype.itemsize}")
    differ = (found.view(words) != wanted.view(words)) & ~(np.isnan(found) & np.isnan(wanted))
    return not differ.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_run_by_numpy_have_the_bits_of_generated_ones(name: str, dtype: Any) -> None:
    values = _of_any_size(dtype, 300, 0)
    arrays = [values, np.random.default_rng(1).permutation(values)] if name in _OF_TWO else [values]
    kind = np.dtype(dtype).name
    steps = (*[("input", kind, number) for number in range(len(arrays))], (name, kind, *range(len(arrays))))
    wanted = Pointwise(Program(steps, (len(arrays),)), [np.dtype(dtype)] * len(arrays), [np.dtype(dtype)])
    b = Evaluator()
    with np.errstate(all="ignore"):
        found = FUNCTIONS[name](b, *[b.given(each, F32 if dtype == np.float32 else F64) for each in arrays])
    assert _same(np.asarray(found.ir.array), wanted.many(*arrays)[0])


def _exact(a: float, b: float, c: float, dtype: Any) -> Any:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if dtype == np.float64:
        return float(total)
    # The nearest of the three numbers of float32 around it, the even one of two.
    middle = np.float32(float(total))
    near = [np.nextafter(middle, np.float32(-np.inf)), middle, np.nextafter(middle, np.float32(np.inf))]
    return min(near, key=lambda each: (abs(Fraction(float(each)) - total), int(each.view(np.int32)) & 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fused_product_is_rounded_once(dtype: Any) -> None:
    """Sums that cancel, ties, and numbers at the ends of the range."""
    generator = np.random.default_rng(2)
    a, b = (generator.standard_normal(3000).astype(dtype) for _ in range(2))
    c = np.where(generator.random(3000) < 0.5, -(a * b), generator.standard_normal(3000).astype(dtype)).astype(dtype)
    digits = 12 if dtype == np.float32 else 27
    a[:1000] = dtype(1) + generator.integers(0, 2**digits, 1000).astype(dtype) * dtype(2.0**-digits)
    c[:500] = dtype(2.0) ** generator.integers(-40, 40, 500)
    if dtype == np.float64:
        a[-200:] *= 2.0**-600
        b[-200:] *= 2.0**-440
        c[-200:] *= 2.0**-1040
    found = fma(a, b, c)
    wanted = np.array([_exact(float(x), float(y), float(z), dtype) for x, y, z in zip(a, b, c, strict=True)], dtype)
    assert (found == wanted).all()
    if dtype == np.float32:
        wide = [each.astype(np.float64) for each in (a, b, c)]
        assert (fma_of_wide(*wide).astype(np.float32) == wanted).all()


def _run(*arguments: str, python: str = sys.executable, **environment: str) -> str:
    ran = subprocess.run(
        [python, "-m", *arguments],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def printed() -> str:
    return _run("tests.reproducible.portable_program")


def test_layers_give_the_same_bits_without_generated_code(printed: str) -> None:
    assert _run("tests.reproducible.portable_program", FLAMBEAU_GENERATED="0") == printed


@pytest.mark.skipif(not ON_X86_64, reason="there are such processors for x86-64 alone")
def test_layers_give_the_same_bits_on_older_processors(printed: str) -> None:
    older = {"FLAMBEAU_PROCESSOR": "x86-64-v2", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
    assert _run("tests.reproducible.portable_program", **older) == printed


@pytest.mark.skipif("FLAMBEAU_ARM_PYTHON" not in os.environ, reason="no Python for ARM, or no emulator")
@pytest.mark.parametrize("tier", ["1", "0"])
def test_layers_give_the_same_bits_on_arm(printed: str, tier: str) -> None:
    command = [os.environ["FLAMBEAU_ARM_PYTHON"], "-c", "import platform; print(platform.machine())"]
    assert subprocess.check_output(command, text=True).strip() == "aarch64"
    assert _run("tests.reproducible.portable_program", FLAMBEAU_GENERATED=tier, python=command[0]) == printed


def test_networks_train_to_the_same_bits_without_generated_code() -> None:
    arguments = "tests.reproducible.portable_program", "--steps", "2"
    one, other = _run(*arguments), _run(*arguments, FLAMBEAU_GENERATED="0")
    assert [line.split()[:2] for line in one.splitlines()] == [line.split()[:2] for line in other.splitlines()]


def test_entries_of_the_database_give_the_same_bits_without_generated_code(tmp_path: Path) -> None:
    """One entry in twenty; the survey of all is in `held_on_machines.json`."""
    names = [entry.name for entry in chosen()[7::20]]
    for number, tier in enumerate(("1", "0")):
        path = str(tmp_path / f"{number}.json")
        _run("tests.reproducible.machine", path, "--names", *names, FLAMBEAU_GENERATED=tier)
    found = machine.compare([tmp_path / "0.json", tmp_path / "1.json"])
    assert found["differ"] == []
    assert set(found["hold"]) <= set(_LEVELS["hold"])


def test_the_survey_lists_what_is_refused_and_nothing_differs() -> None:
    assert _LEVELS["differ"] == []
    assert len(_LEVELS["hold"]) >= 647
    assert {"linalg.eig", "fft.fft", "nn.functional.batch_norm"} <= set(_LEVELS["refused"])
    assert not {"mm", "exp", "nn.functional.conv2d", "softmax", "normal"} & set(_LEVELS["refused"])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("eig", lambda: flambeau.linalg.eig(flambeau.eye(3))),
        ("eigvals", lambda: flambeau.linalg.eigvals(flambeau.eye(3))),
        ("fft_r2c", lambda: flambeau.fft.rfft(flambeau.ones(8))),
        ("mul", lambda: flambeau.ones(3, dtype=flambeau.complex64) * 2j),
        ("exp", lambda: flambeau.ones(3, dtype=flambeau.complex64).exp()),
        ("mul", lambda: flambeau.ones(3, dtype=flambeau.complex32) * 2),
        ("prod_all", lambda: flambeau.ones(3, dtype=flambeau.complex64).conj().prod()),
        ("fft_c2r", lambda: flambeau.fft.hfft(flambeau.ones(4))),
        ("sparse_scale", lambda: flambeau.eye(3, dtype=flambeau.complex64).to_sparse() * 2j),
        ("poisson", lambda: flambeau.poisson(flambeau.ones(3))),
        ("dropout", lambda: flambeau.nn.functional.dropout(flambeau.ones(3))),
    ],
)
def test_what_cannot_be_kept_raises_with_its_name(name: str, call: Any) -> None:
    call()
    with (
        flambeau.reproducible("machine"),
        pytest.raises(RuntimeError, match=rf'{name} cannot be kept by reproducible\("machine"\): '),
    ):
        call()
    call()


def test_decompositions_of_others_and_their_gradients_are_right() -> None:
    a = flambeau.randn(3, 5, 5, dtype=flambeau.float64, generator=flambeau.Generator().manual_seed(0))
    a = (a + 4 * flambeau.eye(5)).requires_grad_()

    def computed() -> list[Any]:
        linalg = flambeau.linalg
        symmetric = a @ a.mT
        results = [
            linalg.inv(a), linalg.solve(a, a.mT), linalg.det(a), linalg.slogdet(a)[1], linalg.cholesky(symmetric),
            linalg.qr(a)[1], linalg.eigh(symmetric)[0], linalg.svd(a)[1], linalg.pinv(a[:, :3]), linalg.lu(a)[2],
            linalg.lstsq(a[:, :, :3], a).solution, flambeau.cholesky_solve(a, linalg.cholesky(symmetric)),
        ]  # fmt: skip
        return [*results, *[flambeau.autograd.grad(each.sum(), a, retain_graph=True)[0] for each in results]]

    wanted = computed()
    with flambeau.reproducible("machine"):
        found = computed()
    for one, other in zip(found, wanted, strict=True):
        assert flambeau.allclose(one, other, 1e-9, 1e-9)


def test_the_level_leaves_nothing_behind() -> None:
    x = flambeau.linspace(-3, 3, 50)
    before = x.exp(), flambeau.linalg.svdvals(x.view(5, 10)), x.norm(3)
    with flambeau.reproducible("machine"):
        assert vars(special_kernels)["np"] is not np
        assert not flambeau.equal(x.norm(3), x.norm(2))
        with flambeau.reproducible("batch"):
            assert vars(special_kernels)["np"] is np
        assert vars(special_kernels)["np"] is not np
    assert vars(special_kernels)["np"] is np
    assert all(
        flambeau.equal(*each)
        for each in zip(before, (x.exp(), flambeau.linalg.svdvals(x.view(5, 10)), x.norm(3)), strict=True)
    )


def test_random_numbers_are_those_of_the_default_level() -> None:
    """In float32, of which PyTorch has polynomials of its own; the numbers of x86-64 on every processor."""
    flambeau.manual_seed(3)
    wanted = flambeau.randn(100), flambeau.rand(50), flambeau.randint(0, 9, (20,))
    with flambeau.reproducible("machine"):
        flambeau.manual_seed(3)
        found = flambeau.randn(100), flambeau.rand(50), flambeau.randint(0, 9, (20,))
    if ON_X86_64:
        assert all(flambeau.equal(*each) for each in zip(found, wanted, strict=True))


def test_zeta_of_an_element_does_not_depend_on_its_neighbours() -> None:
    x, q = flambeau.tensor([2.5, 3.0, 2.0]), flambeau.tensor([0.3, 1.7, -20.5])
    with flambeau.reproducible("batch"):
        together = flambeau.special.zeta(x, q)
        assert flambeau.equal(flambeau.special.zeta(x[:2], q[:2]), together[:2])
        assert flambeau.equal(flambeau.special.zeta(x[2:], q[2:]), together[2:])


def test_gradients_of_empty_products_hold_at_batch() -> None:
    with flambeau.reproducible("batch"):
        weight = flambeau.ones(4, 5, requires_grad=True)
        (flambeau.ones(0, 4) @ weight).sum().backward()
        assert weight.grad is not None
        assert flambeau.equal(weight.grad, flambeau.zeros(4, 5))


def test_an_unknown_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMBEAU_PROCESSOR", "z80")
    with pytest.raises(ValueError, match=r"FLAMBEAU_PROCESSOR must be one of x86-64, .* but is 'z80'"):
        type(engine())()


_IMPORTED_LATER = """
import math, sys
import flambeau
assert "flambeau.optim.lr_scheduler._cosine" not in sys.modules
flambeau.reproducible("machine")
from flambeau.optim.lr_scheduler import _cosine
import flambeau.distributions.von_mises as von_mises
assert vars(_cosine)["math"] is not math and vars(von_mises)["math"] is not math
flambeau.reproducible(None)
assert vars(_cosine)["math"] is math and vars(von_mises)["math"] is math
import flambeau.optim.swa_utils as swa_utils
assert vars(swa_utils)["math"] is math
"""


def test_modules_that_are_imported_later_keep_the_level() -> None:
    ran = subprocess.run([sys.executable, "-c", _IMPORTED_LATER], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
