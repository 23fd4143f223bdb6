"""Functions on the parts of distributed tensors, and plain tensors beside distributed ones."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any

from ...device_mesh import DeviceMesh
from .._dtensor import DTensor
from .._running import IMPLICIT
from ..placement_types import Placement

__all__ = ["implicit_replication", "local_map"]


@contextlib.contextmanager
def implicit_replication() -> Generator[None, None, None]:
    """A context in which plain tensors beside distributed ones are taken to be the same on all processes."""
    before, IMPLICIT.allowed = IMPLICIT.allowed, True
    try:
        yield
    finally:
        IMPLICIT.allowed = before


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: tuple[Sequence[Placement] | None, ...] | None = None,
    in_grad_placements: tuple[Sequence[Placement] | None, ...] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Any:
    """A function of plain tensors as one of distributed tensors: each process runs it on its parts.

    `in_placements` says how the arguments have to be sharded, None for those that are no distributed tensors;
    `out_placements` what the results are.
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    function = func

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        mesh = device_mesh
        given = list(args)
        for number, each in enumerate(args):
            wanted = None if in_placements is None else in_placements[number]
            if not isinstance(each, DTensor):
                if wanted is not None:
                    raise AssertionError(f"{each!r} is no DTensor, and its placements should be None, not {wanted}")
                continue
            mesh = mesh or each.device_mesh
            if wanted is not None and tuple(wanted) != each.placements:
                if not redistribute_inputs:
                    raise ValueError(
                        f"arg {each} in local_map has a mismatched placements: {each.placements}, and {wanted} are "
                        "required: pass redistribute_inputs=True"
                    )
                each = each.redistribute(placements=wanted)
            back = None if in_grad_placements is None else in_grad_placements[number]
            given[number] = each.to_local(grad_placements=back)
        results = function(*given, **kwargs)
        if mesh is None:
            return results
        several = isinstance(results, tuple)
        places = out_placements if several else [out_placements]
        results = tuple(
            each if by is None else DTensor.from_local(each, mesh, by)
            for each, by in zip(results if several else [results], places, strict=True)
        )
        return results if several else results[0]

    return run
