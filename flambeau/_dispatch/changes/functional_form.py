"""The functional form of an op that changes its arguments: it leaves them alone, and returns what they would become."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..composite import Composite
from ..writer import Writer

_FORMS: dict[str, Composite[..., Tensor | tuple[Tensor, ...]]] = {}


def functional_form(op: Writer) -> Composite[..., Tensor | tuple[Tensor, ...]]:
    """An op with the arguments of `op`: a changed copy of each tensor that it writes to."""
    found = _FORMS.get(op.name)
    if found is None:
        found = _FORMS[op.name] = _made(op)
    return found


def _made(op: Writer) -> Composite[..., Tensor | tuple[Tensor, ...]]:
    def decomposition(*args: Any) -> Tensor | tuple[Tensor, ...]:
        given = list(args)
        for position in op.writes:
            given[position] = args[position].clone()
        op(*given)
        changed = tuple([given[position] for position in op.writes])
        return changed[0] if len(changed) == 1 else changed

    decomposition.__doc__ = op.__doc__
    form: Composite[..., Tensor | tuple[Tensor, ...]] = Composite(
        f"{op.name.removesuffix('_')}_functional", decomposition, lambda *args: None
    )
    form.parameters, form.draws = op.parameters, op.draws
    return form
