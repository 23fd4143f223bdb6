"""A plan carried out: operands are moved, the op runs on the parts, the results are put together again."""

from __future__ import annotations

from typing import Any

from ...._core.tensor import Tensor
from ...._dispatch.public.return_types import named
from .._dtensor import made
from .._layout import Layout
from ..placement_types import Replicate
from .choice import Call, Plan


def carry_out(call: Call, plan: Plan) -> Any:
    """Move the operands to where the plan wants them, and run the op on the parts."""
    op, mesh = call.op, call.operands[0].device_mesh
    parts = []
    for operand, placements in zip(call.operands, plan.inputs, strict=True):
        # Where results differ between processes that all have an operand, its gradients are parts of a sum.
        numbers = tuple(
            number
            for number in range(mesh.ndim)
            if isinstance(placements[number], Replicate)
            and any(not isinstance(each[number], Replicate) for each in plan.outputs)
        )
        parts.append(operand._redistributed(placements)._whose_gradient_is_added_up(numbers))
    forms = call.forms()
    layouts = [Layout(shape, mesh, places) for (shape, _), places in zip(forms, plan.outputs, strict=True)]
    results = op(*call.args_with(parts)) if plan.run is None else plan.run(parts, layouts)
    if op.writes:
        return None
    if isinstance(results, Tensor):
        return made(results, layouts[0], forms[0][1])
    finished = [
        None if each is None else made(each, layout, form[1])
        for each, layout, form in zip(results, layouts, forms, strict=True)
    ]
    return finished if type(results) is list else named(type(results), finished)
