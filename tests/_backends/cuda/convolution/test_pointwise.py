"""Gradients of weights of 1x1 convolutions as products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau._backends.cuda.arrays.array import empty, from_host, to_host
from flambeau._backends.cuda.convolution import pointwise
from flambeau._backends.cuda.convolution.conv import _form
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._core.geometry.moving_windows import Geometry
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")


@pytest.fixture(autouse=True)
def _driver() -> None:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("sizes", [(3, 5), (1, 4), (2, 3, 2)])
def test_the_gradient_is_that_of_the_definition(sizes: tuple[int, ...], last: bool) -> None:
    draw = np.random.default_rng(0).standard_normal
    x, grad = draw((2, 3, *sizes)), draw((2, 4, *sizes))
    dims = len(sizes)
    forms = [_form(shape, x.dtype, last) for shape in (x.shape, (4, 3, *[1] * dims), grad.shape)]
    geometry = Geometry((1,) * dims, (0,) * dims, (1,) * dims, 1)
    assert pointwise.fits(forms, geometry)
    arrays = [empty(form.shape, form.dtype, form.strides) for form in forms]
    for array, values in ((arrays[0], x), (arrays[2], grad)):
        array[...] = from_host(values)
    with flambeau.reproducible("run"):
        pointwise.weight_gradient(forms, geometry)(*(each.pointer for each in arrays))
    wanted = np.einsum("ncs,nds->cd", grad.reshape(2, 4, -1), x.reshape(2, 3, -1))
    np.testing.assert_allclose(to_host(arrays[1]).reshape(4, 3), wanted, rtol=1e-12)


def test_others_are_not() -> None:
    def serves(kernel: int, stride: int, padding: int, groups: int) -> bool:
        forms = [_form(shape, np.dtype("f4"), False) for shape in ((2, 4, 6, 6), (4, 4, kernel, kernel), (2, 4, 6, 6))]
        return pointwise.fits(forms, Geometry((stride, stride), (padding, padding), (1, 1), groups))

    assert serves(1, 1, 0, 1)
    assert not any(serves(*each) for each in ((3, 1, 1, 1), (1, 2, 0, 1), (1, 1, 1, 1), (1, 1, 0, 2)))
