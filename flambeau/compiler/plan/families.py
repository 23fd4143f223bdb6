"""Generated kernels on stand-ins: the functions of the backend's families, which write their calls to the sheet."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._backends.tiers import generated
from ..._core.backend import STAND_INS
from .sheet import Launch, Place, Untraceable
from .stand_in import StandIn, copied


class Generated:
    """An elementwise body that runs compiled, whatever the tensors' size."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def many(self, *operands: Any) -> tuple[StandIn, ...]:
        """The results for arrays without gaps, and numbers."""
        arrays = [each for each in operands if type(each) is StandIn]
        if not all(each.flags.c_contiguous for each in arrays):
            raise Untraceable("operands with gaps")
        if not all(type(each) in (StandIn, int, float) for each in operands):
            raise Untraceable("operands that are known")
        sheet, shape = arrays[0].sheet, np.broadcast_shapes(*[each.shape for each in arrays])
        made = [sheet.new(shape, dtype) for dtype in self._compiled.results]
        given = tuple([each.place if type(each) is StandIn else each for each in operands])
        call = self._compiled.into, (tuple(made), given, None), None
        places = [each for each in given if type(each) is Place]
        sheet.launches.append(Launch((call,), places, made, self._compiled.program, given))
        return tuple([StandIn(sheet, each) for each in made])

    def unary(self, x: Any) -> StandIn:
        """The result for one array."""
        return self.many(x)[0]

    def binary(self, x: Any, y: Any) -> StandIn:
        """The result for two operands."""
        return self.many(x, y)[0]


def _pointwise(body: Any, operands: Sequence[Any], result: np.dtype[Any]) -> Generated | None:
    compiled = generated("pointwise").pointwise(body, operands, result)
    return None if compiled is None else Generated(compiled)


def _copy_into(target: Any, source: Any) -> bool:
    if type(target) is not StandIn or type(source) is not StandIn:
        raise Untraceable("a copy of something else")
    copied(source, target.place)
    return True


_FAMILIES: dict[str, Any] = {
    "pointwise": SimpleNamespace(pointwise=_pointwise, MOST_VARIANTS=16),
    "copy": SimpleNamespace(copy_into=_copy_into),
}


def _family(name: str) -> Any:
    if name not in _FAMILIES:
        raise Untraceable(f"generated kernels of {name}")
    return _FAMILIES[name]


STAND_INS[StandIn] = _family
