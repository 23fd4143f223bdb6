"""The normal numbers of PyTorch on x86-64, recorded there, are made on every machine when they are asked for."""

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flambeau._backends.tiers import generated, numpy_only
from flambeau._core.generator import Generator
from flambeau._core.random import normal_sampling
from flambeau._core.random.fused_multiply_add import fused32, multiply_add32
from flambeau._core.random.normal_sampling import normal_blocks

# `torch.manual_seed(n)`, then `torch.randn(n)` or `torch.empty(n).normal_(1.5, 3.0)`: the beginning of the SHA-256 of
# the bytes. PyTorch 2.11 on Linux; a processor with AVX-512, and the same one restricted to AVX2.
RECORDED = {
    16: ("935a5e561dac896d7d7f59ae0db8c8eb", "a3aac7a8b112e9cd7711c62d7d59f080"),
    17: ("5afccee10eada60f9cb94b326f6f82b4", "1ceb86960f756993b69782c4452c54b5"),
    31: ("49dd654c5d8c6cc383011fdaabf62cd4", "d3aedaa0c10e713f2833b7a9570fee26"),
    32: ("fa4877b7daa0d6512704aa98bab6077f", "0ef176b494ce1c919d1c0b23267f43d7"),
    100: ("1cfd8e334f2d1f3bb802f5404cc60c2f", "ffe94850d9ca8c0126d1b8426e8f79d0"),
    1000: ("ef1d377e6328492664be8e9ef99f9ed7", "077917fe952422520cdc943c084417aa"),
    200_000: ("2f03c0977c95c7e77808aad7a09bc6c2", "f890a50d5fb4f214d350d28cbc973e98"),
}
SEVENTEEN = [
    3213224346, 1039152899, 3214176222, 1058850251, 1051993483, 1044300070, 1064626418, 1035428580, 1004501360,
    3205082026, 3207793844, 1066504656, 1049414005, 3201475692, 1038948821, 3193738676, 1059618798,
]  # fmt: skip
"""The bits of the 17 numbers."""


@pytest.fixture(params=["generated", "numpy"])
def as_on_x86(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Normal numbers as on x86-64, by the generated kernel and by NumPy."""
    make = normal_sampling.standard_normals32
    monkeypatch.setattr(normal_sampling, "standard_normals32", lambda units: make(units, by_polynomials=True))
    if request.param == "numpy":
        with numpy_only():
            yield
    elif generated("random") is None:
        pytest.skip("no code generator here")
    else:
        yield


def drawn(count: int, mean: float = 0.0, std: float = 1.0) -> Any:
    return normal_blocks(Generator().manual_seed(count).unit32, count, mean, std)


@pytest.mark.parametrize("count", RECORDED)
def test_the_recorded_numbers(count: int, as_on_x86: None) -> None:
    standard, others = (
        hashlib.sha256(values.tobytes()).hexdigest()[:32] for values in (drawn(count), drawn(count, 1.5, 3.0))
    )
    assert (standard, others) == RECORDED[count]


def test_the_first_of_them(as_on_x86: None) -> None:
    assert drawn(17).view(np.uint32).tolist() == SEVENTEEN


def test_the_ends_of_the_range(as_on_x86: None) -> None:
    """Units of zero and the largest one: radius zero (whose sign is lost), a full turn."""
    units = np.tile(np.array([0.0, 1 - 2.0**-24], np.float32), 8)
    found = normal_blocks(lambda count: units.copy(), 16, 0.0, 1.0)
    radius = np.sqrt(-2 * np.log(2.0**-24))
    np.testing.assert_allclose(found[1::2], [radius] * 4 + [0.0] * 4, rtol=1e-6, atol=1e-5)
    assert found[::2].tobytes() == bytes(4 * 8)


def rounded_once(x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    """x * y + z by fractions: of the float32 numbers around it the nearest one, the even one of two."""
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    near = np.float32(float(exact))
    candidates = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return min(candidates, key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(np.int32)) & 1))


def test_a_product_and_a_sum_rounded_once() -> None:
    random = np.random.default_rng(0)
    x, y, z = (random.standard_normal(2000).astype(np.float32) for _ in range(3))
    # Halfway between two float32 numbers but for a bit that float64 has no room for.
    tiny = np.float32(2.0**-60)
    halfway = [(1 + 2.0**-12, 1 + 2.0**-12), (1 + 2.0**-23, 1.5), (1 - 2.0**-12, 1 + 2.0**-12), (3.0, 1 + 2.0**-23)]
    for a, b in halfway:
        for sign in (-1, 1):
            x, y, z = (np.append(old, np.float32(new)) for old, new in ((x, a * sign), (y, b), (z, tiny)))
            x, y, z = (np.append(old, np.float32(new)) for old, new in ((x, a * sign), (y, b), (z, -tiny)))
    expected = np.array([rounded_once(*each) for each in zip(x, y, z, strict=True)])
    np.testing.assert_array_equal(fused32(x, y, z), expected)
    twice = (x * y.astype(np.float64) + z).astype(np.float32)
    assert (twice != expected).any(), "the examples do not need the care that is taken"
    np.testing.assert_array_equal(
        multiply_add32(x, np.float32(1 + 2.0**-12), tiny),
        [rounded_once(each, np.float32(1 + 2.0**-12), tiny) for each in x],
    )
