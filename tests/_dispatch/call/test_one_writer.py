"""How many places write out what a call does: the stores of a new tensor, the test whether one needs a gradient, the
question whether the modes are plain. Each has one text, in `_dispatch/call/`; what computes beside the ops looks into
the table that the modes have chosen. The lists of others only shrink.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from flambeau._core.tensor import Tensor
from flambeau._dispatch.call import text

PACKAGE = Path(__file__).parents[3] / "flambeau"
WRITTEN = PACKAGE / "_dispatch" / "call" / "results.py"
"""What `tools/results.py` writes from the text; `tests/test_stubs.py` compares it."""

PLACES = {
    # What makes a tensor sets its output number to 0, outside the graph. The others take tensors out of it.
    r"\._requires_grad = False\b[\s\S]{0,120}\._output_nr = 0": {
        "_core/tensor.py": 1,
        "_dispatch/call/text.py": 1,
        "_dispatch/changes/history.py": 1,
        "_ops/sparse/move.py": 1,
    },
    r"_requires_grad or \(\S+\._view is not None and \S+\.requires_grad\)": {
        "_core/tensor.py": 1,
        "_dispatch/call/text.py": 1,
    },
    # Whether a call is an ordinary one is asked where calls are made; the compiler asks whether programs may run.
    r"\bmodes\.plain\b(?!,| =)": {
        "_core/node.py": 1,
        "_dispatch/backend_op.py": 1,
        "_dispatch/call/elementwise.py": 3,
        "_dispatch/call/primitive.py": 1,
        "_dispatch/call/subscript.py": 1,
        "_dispatch/composite.py": 1,
        "_dispatch/dispatch.py": 2,
        "_dispatch/elementwise.py": 2,
        "_dispatch/gradients/array_derivatives.py": 1,
        "_dispatch/gradients/derivative_code.py": 2,
        "_dispatch/interpreter.py": 1,
        "compiler/_compiled.py": 1,
    },
    # Formulas with a second form on arrays, and those that ask themselves whether anything is recorded.
    r"^@on_arrays\(": {
        "_ops/linalg/addmm.py": 2,
        "_ops/linalg/linear.py": 4,
        "_ops/linalg/matmul.py": 2,
        "_ops/reduce/reductions.py": 1,
        "_ops/shape/view.py": 4,
    },
    r"gradients\.array_derivatives import .*\bunrecorded\b": {
        "_ops/linalg/over_samples.py": 1,
        "_ops/shape/join.py": 1,
    },
    # Functions that may compute on arrays themselves look into the table that the thread's modes have chosen.
    r"\bmodes\)?\.direct\b(?! =)": {
        "_dispatch/abstract/list_rules.py": 1,
        "_dispatch/call/cast.py": 1,
        "_dispatch/changes/direct_updates.py": 1,
        "_dispatch/gradients/fused_derivatives.py": 1,
        "_ops/create/constants.py": 1,
        "_ops/index/copy_then_write.py": 1,
        "_ops/index/gather.py": 1,
        "_ops/index/masked.py": 1,
        "_ops/index/subscript.py": 2,
        "_ops/linalg/linear.py": 1,
        "_ops/linalg/merged_nodes.py": 1,
        "_ops/pointwise/foreach.py": 1,
        "_ops/random/draws.py": 2,
        "_ops/reduce/sort.py": 1,
        "_ops/shape/join.py": 1,
        "_ops/shape/named_shapes.py": 1,
        "_ops/tensor/copy.py": 3,
        "autograd/__init__.py": 1,
        "distributions/_validation.py": 1,
        "optim/_update.py": 2,
    },
}


@pytest.mark.parametrize("pattern", PLACES)
def test_places(pattern: str) -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): count
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != WRITTEN
        if (count := len(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)))
    }
    assert found == PLACES[pattern], "write calls by `_dispatch/call/`; where a place is gone, take it off the list"


def test_the_text_stores_what_the_function_stores() -> None:
    function = set(re.findall(r"tensor\.(_\w+)", inspect.getsource(Tensor._from_parts)))
    for lines in (text.new_tensor("array"), text.new_view("array", "source"), text.new_window("array")):
        assert {name for line in lines for name in re.findall(r"output\.(_\w+) =", line)} == function
