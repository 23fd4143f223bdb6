"""The table of functions on arrays: what the CPU and CUDA push, and what stands in `_backends/arrays.py`."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
import pytest

import flambeau
import flambeau._ops.tensor.loss_scale  # an op that no function of the catalogue loads
from flambeau._backends import arrays, tiers
from flambeau._backends.cpu import lowerings as of_cpu
from flambeau._backends.cuda import lowerings as of_cuda
from flambeau._core.backend import FUNCTIONS, NO_FUNCTIONS, backend_of
from flambeau._dispatch.op import OPS
from flambeau._dispatch.public.registry import load_all

OF_CPU = {*of_cpu.KERNELS, *of_cpu.CONVOLUTIONS}
KERNELS = {*OF_CPU, *of_cuda.KERNELS}
FAMILIES = {name for table in (of_cpu.KERNELS, of_cuda.KERNELS) for name, place in table.items() if "." not in place}
"""Names under which a table has a whole module."""


def _declared() -> set[str]:
    """The functions of `arrays.py` that a table has, and those that its other functions name."""
    tree = ast.parse(inspect.getsource(arrays))
    made = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.decorator_list}
    return made | {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and each.value in KERNELS}


def test_every_kernel_is_that_of_an_op_or_a_function_on_arrays() -> None:
    load_all()
    assert not KERNELS - _declared() - FAMILIES - set(OPS)
    assert _declared() <= KERNELS


def test_one_name_is_an_op_and_a_function_on_arrays_with_its_arguments() -> None:
    load_all()
    assert _declared() & set(OPS) == {"safe_softmax"}
    assert not FAMILIES & set(OPS)


@pytest.mark.skipif(not tiers.available(), reason="no code is generated")
@pytest.mark.parametrize("name", sorted(OF_CPU))
def test_the_cpu_has_what_its_table_says(name: str) -> None:
    if of_cpu.KERNELS.get(name, "").startswith("library.") and tiers.library() is None:
        pytest.skip("the vendor's library is not installed")
    found = FUNCTIONS[np.ndarray][name]
    assert inspect.ismodule(found) if name in FAMILIES else callable(found)


def test_without_generated_kernels_there_are_none() -> None:
    with tiers.numpy_only():
        assert FUNCTIONS[np.ndarray]["gathered"] is None
        assert arrays.gathered(np.ones((2, 2)), 0, np.zeros((1, 2), np.int64)) is None


def test_arrays_of_other_classes_have_none() -> None:
    class Other(np.ndarray[Any, Any]):
        pass

    assert arrays.bounds(np.ones(4).view(Other)) is None
    assert NO_FUNCTIONS["bounds"] is None


def test_a_backend_may_push_its_own() -> None:
    finders = FUNCTIONS[np.ndarray].finders
    before = dict(finders)
    try:
        backend_of("cpu").push({"bounds": lambda name: lambda array: ("own", array), "running": lambda name: None})
        assert arrays.bounds(7) is None
        found: Any = arrays.bounds(np.ones(2))
        assert found[0] == "own"
        assert flambeau.ones(9000).cumsum(0)[-1] == 9000  # by NumPy, as `running` is not there
    finally:
        backend_of("cpu").push(before)
