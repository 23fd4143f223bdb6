"""The random numbers of the host for tensors of a device, so that runs on both can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.generator import default_generator
from ..._core.tensor import Tensor
from ..._dispatch.interpreter import Interpreter
from ..._dispatch.op import Op


class DrawsOfTheHost(Interpreter):
    """Runs what draws from the default generator on copies on the host, and copies what it has made to the device."""

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        places = [each.device for each in args if isinstance(each, Tensor) and not each.is_cpu]
        if not (op.draws and places and any(each is default_generator for each in args)):
            return op(*args)
        here = [each.detach().cpu() if isinstance(each, Tensor) else each for each in args]
        result = op(*here)
        for position in op.writes:
            if isinstance(args[position], Tensor):
                args[position].detach().copy_(here[position])
        if isinstance(result, Tensor):
            return next((one for one, other in zip(args, here, strict=True) if other is result), result.to(places[0]))
        return tuple([each.to(places[0]) for each in result]) if isinstance(result, (tuple, list)) else result
