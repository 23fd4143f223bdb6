"""Primitives on arrays: run at once, or written down for a call list, which makes their calls without Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..memory.workspace import DIRECT, Workspace
from .memory import Array, address
from .primitives import PackedWeights, Primitive

_BYTES = np.dtype(np.uint8)


def run(
    primitive: Primitive,
    arrays: Sequence[Array],
    workspace: Workspace,
    packed: PackedWeights | None = None,
    packed_at: int = -1,
) -> None:
    """Compute on arrays, in the order of the primitive's arguments, or let `workspace` write that down."""
    if workspace is DIRECT:
        primitive.run([address(each) for each in arrays], packed, packed_at)
    else:
        _write_down(primitive, arrays, workspace)


def _write_down(primitive: Primitive, arrays: Sequence[Array], workspace: Workspace) -> None:
    """What `Primitive.run` does, with memory of the workspace's for what is reordered and for scratch."""
    wanted = list(arrays)
    for each in primitive.reorders:
        wanted[each.position] = workspace.empty(each.size, _BYTES)
        if not each.result:
            _write_down(each.run, (arrays[each.position], wanted[each.position]), workspace)
    _write_execution(primitive, wanted, workspace)
    for each in primitive.reorders:
        if each.result:
            _write_down(each.run, (wanted[each.position], arrays[each.position]), workspace)


def _write_execution(primitive: Primitive, arrays: list[Array], workspace: Workspace) -> None:
    from ...._codegen.machine.prepared_call import prepared_call  # call lists are where code is generated

    library = primitive.library
    if primitive.scratch:
        arrays = [*arrays, workspace.empty(primitive.scratch, _BYTES)]
    if library.ask_threads is not None:  # memory for scratch is for so many
        workspace.holds_while(place(library.ask_threads), library.threads())
    objects = primitive.new_objects()
    stream = library.new_stream()
    table = np.array([
        place(library.execute), place(library.set_data_handle), primitive.handle.value, stream.value,
        ctypes.addressof(objects.execution), id(RuntimeError), len(arrays), *[each.value for each in objects.handles],
    ], np.int64)  # fmt: skip
    workspace.run(prepared_call(), table, (primitive, stream, objects), *arrays)


def place(function: Any) -> int:
    """The address of a function of the library."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found
