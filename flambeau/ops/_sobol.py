"""Steps of Sobol sequences under the names of PyTorch's kernels: the state is handed in and changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.dtype import float32
from .._core.tensor import Tensor


def _sobol_engine_initialize_state_(self: Tensor, dimension: int) -> Tensor:
    """Fill a state with direction numbers."""
    from ..quasirandom import _directions, _tensor

    return self.copy_(_tensor(_directions(dimension, self.shape[1])))


def _sobol_engine_scramble_(self: Tensor, ltm: Tensor, dimension: int) -> Tensor:
    """Multiply the bits of a state by triangular matrices of bits."""
    from ..quasirandom import _scrambled, _tensor

    return self.copy_(_tensor(_scrambled(self.numpy(), ltm.numpy())))


def _sobol_engine_ff_(self: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int) -> Tensor:
    """Leave out the next `n` points of the sequence."""
    from ..quasirandom import _path, _tensor

    return self.copy_(_tensor(_path(self.numpy(), sobolstate.numpy(), num_generated, n)[-1]))


def _sobol_engine_draw(
    quasi: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int, dtype: Any = None
) -> tuple[Any, Tensor]:
    """The next `n` points, and the whole numbers of the last one."""
    from ..quasirandom import _path, _tensor

    path = _path(quasi.numpy(), sobolstate.numpy(), num_generated, n)
    return _tensor(path[1:]).to(dtype or float32) / 2 ** sobolstate.shape[1], _tensor(path[-1].copy())


SOBOL: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        _sobol_engine_draw, _sobol_engine_ff_, _sobol_engine_initialize_state_, _sobol_engine_scramble_,
    )
}  # fmt: skip
"""By the names of operators."""
