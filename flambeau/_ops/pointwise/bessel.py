"""Bessel functions and the Airy function of tensors: as in PyTorch, without derivatives."""

from __future__ import annotations

from collections.abc import Callable

from ..._core.dtype import COMPLEX
from ..._core.tensor import Tensor
from ..._dispatch.call.elementwise import short_unary
from ..._dispatch.dispatch import Array
from ..._dispatch.elementwise import FLOATING, Elementwise, run_unary
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from . import bessel_kernels, special_kernels

Kernel = Callable[[Array], Array]


def _of_tensors(name: str, kernel: Kernel) -> Callable[[Tensor], Tensor]:
    op = Elementwise(name, kernel, FLOATING, None, ("self",), {}, (COMPLEX,))
    function = op.short = short_unary(op, name, lambda input, out: run_unary(op, input), casts=False)
    return function


def _publish(name: str, kernel: Kernel, doc: str) -> None:
    of_tensor = _of_tensors(name, kernel)

    def function(input: Tensor) -> Tensor:
        return of_tensor(input)

    function.__doc__ = doc
    public(f"special.{name}", function=False, method=False, out=write_out)(function)


def _publish_of_x(name: str, kernel: Kernel, doc: str) -> None:
    """Publish a Bessel function whose argument PyTorch calls `x`."""
    of_tensor = _of_tensors(name, kernel)

    def function(x: Tensor) -> Tensor:
        return of_tensor(x)

    function.__doc__ = doc
    public(f"special.{name}", function=False, method=False, out=write_out)(function)


_publish("bessel_j0", bessel_kernels.bessel_j0, "Bessel function of the first kind of order 0.")
_publish("bessel_j1", bessel_kernels.bessel_j1, "Bessel function of the first kind of order 1.")
_publish("bessel_y0", bessel_kernels.bessel_y0, "Bessel function of the second kind of order 0.")
_publish("bessel_y1", bessel_kernels.bessel_y1, "Bessel function of the second kind of order 1.")
_publish("modified_bessel_i0", special_kernels.i0, "Modified Bessel function of the first kind of order 0.")
_publish("modified_bessel_i1", special_kernels.i1, "Modified Bessel function of the first kind of order 1.")
_publish("modified_bessel_k0", bessel_kernels.k0, "Modified Bessel function of the second kind of order 0.")
_publish("modified_bessel_k1", bessel_kernels.k1, "Modified Bessel function of the second kind of order 1.")
_publish_of_x("scaled_modified_bessel_k0", bessel_kernels.k0e, "exp(x) times `modified_bessel_k0`.")
_publish_of_x("scaled_modified_bessel_k1", bessel_kernels.k1e, "exp(x) times `modified_bessel_k1`.")
_publish_of_x("spherical_bessel_j0", bessel_kernels.spherical_bessel_j0, "sin(x) / x.")
_publish_of_x("airy_ai", bessel_kernels.airy_ai, "The Airy function Ai.")
