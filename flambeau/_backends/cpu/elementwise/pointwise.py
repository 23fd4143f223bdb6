"""Elementwise ops on large arrays: their NumPy bodies, traced and compiled.

`Pointwise(body, operands, result)` stands for a body with operands of given dtypes. It is called as the body is, with
arrays and numbers, and does the same; the code comes with the first call that needs it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.elements.pointwise import (
    CONTIGUOUS,
    MOST_DIMENSIONS,
    NUMBER,
    SINGLE,
    pointwise_flat,
    pointwise_strided,
)
from ...._codegen.expr import Program, Untraceable, computed_type, trace_body
from ...._codegen.lower import can_lower
from ...._codegen.types import SCALARS, scalar_of
from ...._core.arrays.quick import joint_shape
from ...._core.geometry.layout import arranged_strides, empty_array

MOST_VARIANTS = 16
"""A body whose constants differ from call to call is not worth compiling again and again."""
_MOST_PLANS = 256


class _Plan(NamedTuple):
    """What runs operands of certain shapes and strides."""

    kernel: Any
    shape: tuple[int, ...]
    followed: int | None
    """The operand whose order of dimensions in memory the results have; None: they have no gaps."""
    kinds: tuple[str, ...] = ()
    """What the operands are in memory, where numbers among them are handed over as arrays of one element."""

    def result(self, dtype: np.dtype[Any], operands: Sequence[Any]) -> Any:
        """A new array for a result, not filled yet."""
        return np.empty(self.shape, dtype) if self.followed is None else np.empty_like(operands[self.followed], dtype)


class Pointwise:
    """The compiled form of one body for operands of one dtype each.

    `operands` are the dtypes in memory, `None` for what is handed to the body as it is. The body computes in the
    operands' own types; half precision in float32.
    """

    def __init__(self, program: Program, operands: Sequence[np.dtype[Any]], results: Sequence[np.dtype[Any]]) -> None:
        self.program = program
        self.results = tuple(results)
        self.memory = tuple(dtype.name for dtype in (*results, *operands))
        self._flat: dict[str, Any] = {}
        self._strided: Any = None
        self._of_one: Any = None
        self._plans: dict[Any, _Plan] = {}
        """By shapes and strides of operands: what `many` found out about them."""

    def flat(self, forms: str) -> Any:
        """The kernel for operands without gaps."""
        found = self._flat.get(forms)
        if found is None:
            found = self._flat[forms] = pointwise_flat(self.program, self.memory, forms)
        return found

    def strided(self) -> Any:
        """The kernel for all others."""
        if self._strided is None:
            self._strided = pointwise_strided(self.program, self.memory)
        return self._strided

    def unary(self, x: Any) -> Any:
        """The result for one array."""
        if x.flags.c_contiguous:
            if self._of_one is None:
                self._of_one = self.flat(CONTIGUOUS)
            return self._of_one(np.empty(x.shape, self.results[0]), x)
        return self.many(x)[0]

    def binary(self, x: Any, y: Any) -> Any:
        """The result for two operands, of which one may be a number."""
        if type(y) is np.ndarray and type(x) is np.ndarray:
            shape = x.shape
            if shape == y.shape and x.flags.c_contiguous and y.flags.c_contiguous:
                return (self._flat.get("cc") or self.flat("cc"))(np.empty(shape, self.results[0]), x, y)
            if y.size == 1 and x.size > 1 and y.ndim <= x.ndim and x.flags.c_contiguous:
                return self.flat(CONTIGUOUS + SINGLE)(np.empty(shape, self.results[0]), x, y)
            if x.size == 1 and y.size > 1 and x.ndim <= y.ndim and y.flags.c_contiguous:
                return self.flat(SINGLE + CONTIGUOUS)(np.empty(y.shape, self.results[0]), x, y)
            plan = self._plans.get(((shape, x.strides), (y.shape, y.strides)))
            if plan is not None:
                kernel, shape, followed, _ = plan
                if followed is None:
                    return kernel(np.empty(shape, self.results[0]), x, y)
                return kernel(np.empty_like(y if followed else x, self.results[0]), x, y)
        elif type(y) is not np.ndarray:
            if x.flags.c_contiguous:
                return self.flat("cn")(np.empty(x.shape, self.results[0]), x, y)
        elif y.flags.c_contiguous:
            return self.flat("nc")(np.empty(y.shape, self.results[0]), x, y)
        return self.many(x, y)[0]

    def alike(self, arrays: tuple[Any, ...]) -> Any:
        """The one result for arrays of one shape without gaps."""
        forms = CONTIGUOUS * len(arrays)
        return (self._flat.get(forms) or self.flat(forms))(np.empty(arrays[0].shape, self.results[0]), *arrays)

    def many(self, *operands: Any, like: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The results for any operands, laid out as PyTorch does for the arrays `like`, or like the first array.

        A ValueError, as NumPy's, if their shapes do not fit.
        """
        shape: Any = getattr(operands[0], "shape", None)
        for each in operands:
            if type(each) is not np.ndarray or each.shape != shape or not each.flags.c_contiguous:
                break
        else:
            forms = CONTIGUOUS * len(operands)
            kernel = self._flat.get(forms) or self.flat(forms)
            if len(self.results) == 1:
                return (kernel(np.empty(shape, self.results[0]), *operands),)
            results = tuple([np.empty(shape, dtype) for dtype in self.results])
            kernel(*results, *operands)
            return results
        key = tuple([(each.shape, each.strides) if type(each) is np.ndarray else None for each in operands])
        plan = None if like else self._plans.get(key)
        if plan is not None:
            results = tuple([plan.result(dtype, operands) for dtype in self.results])
            plan.kernel(*results, *(_as_arrays(operands, plan.kinds) if plan.kinds else operands))
            return results
        arrays = [each for each in operands if type(each) is np.ndarray]
        shape = arrays[0].shape
        for each in arrays:
            if each.shape != shape:
                shape = joint_shape(*[each.shape for each in arrays])
                break
        forms, model = "", None
        for each in operands:
            if type(each) is not np.ndarray:
                forms += NUMBER
            elif each.shape != shape:
                forms += SINGLE if each.size == 1 else "x"
            else:
                forms += SINGLE if each.size == 1 else CONTIGUOUS if each.flags.c_contiguous else "x"
                model = each if model is None else model
        flat = "x" not in forms and CONTIGUOUS in forms
        if flat or (not like and (model is None or model.flags.c_contiguous)):
            results = tuple([np.empty(shape, dtype) for dtype in self.results])
        elif like:
            strides = arranged_strides(shape, *like)
            results = tuple([empty_array(shape, strides, dtype) for dtype in self.results])
        else:
            results = tuple([_laid_out_like(model, dtype) for dtype in self.results])
        has_kernel = flat or len(shape) <= MOST_DIMENSIONS
        follows = model is not None and not flat and not results[0].flags.c_contiguous
        is_spread = model is not None and 0 in model.strides
        if has_kernel and not like and not (follows and is_spread):
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            followed = [each is model for each in operands].index(True) if follows else None
            kinds = () if flat or NUMBER not in forms else self.memory[len(self.results) :]
            self._plans[key] = _Plan(self.flat(forms) if flat else self.strided(), shape, followed, kinds)
        self.into(results, operands, forms if flat else None)
        return results

    def into(self, results: Sequence[Any], operands: Sequence[Any], forms: str | None) -> None:
        """Compute into arrays that are there already."""
        if forms is not None:
            self.flat(forms)(*results, *operands)
            return
        if results[0].ndim > MOST_DIMENSIONS:
            self._by_copies(results, operands)
            return
        self.strided()(*results, *_as_arrays(operands, self.memory[len(self.results) :]))

    def _by_copies(self, results: Sequence[Any], operands: Sequence[Any]) -> None:
        """Compute on copies without gaps: there are more dimensions than a kernel has loops."""
        shape = results[0].shape
        whole = [
            np.ascontiguousarray(np.broadcast_to(each, shape)) if type(each) is np.ndarray else each
            for each in operands
        ]
        forms = "".join(CONTIGUOUS if type(each) is np.ndarray else NUMBER for each in operands)
        made = [np.empty(shape, each.dtype) for each in results]
        self.flat(forms)(*made, *whole)
        for each, into in zip(made, results, strict=True):
            np.copyto(into, each)


def _as_arrays(operands: Sequence[Any], kinds: Sequence[str]) -> list[Any]:
    """The operands of a kernel that takes arrays alone: numbers become arrays of one element."""
    return [
        each if type(each) is np.ndarray else np.asarray(each, dtype=name)
        for each, name in zip(operands, kinds, strict=True)
    ]


def increased(array: Any, addend: Any) -> bool:
    """Add an array, which may be smaller, to another one; False: it was not done."""
    kernels = _addition(array.dtype)
    if kernels is None or array.ndim > MOST_DIMENSIONS or not array.flags.c_contiguous:
        return False
    kernels.into((array,), (array, addend), "cc" if _form(addend, array.shape) == CONTIGUOUS else None)
    return True


@functools.cache
def _addition(dtype: np.dtype[Any]) -> Pointwise | None:
    return pointwise(operator.add, (dtype, dtype), dtype)


def _laid_out_like(model: Any, dtype: np.dtype[Any]) -> Any:
    """An empty array with its dimensions in memory as a ufunc's result has them."""
    if 0 not in model.strides:
        return np.empty_like(model, dtype)
    # `empty_like` would put repeated dimensions last in memory.
    return np.nditer(
        (model, None), ["refs_ok", "zerosize_ok"], [["readonly"], ["writeonly", "allocate"]], (None, dtype)
    ).operands[1]


def _form(operand: Any, shape: tuple[int, ...]) -> str:
    if type(operand) is not np.ndarray:
        return NUMBER
    if operand.size == 1:
        return SINGLE
    return CONTIGUOUS if operand.shape == shape and operand.flags.c_contiguous else "x"


def kernel_of(program: Program, arrays: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The kernel of a program whose results are the first arrays, of `shape` and without gaps; None: there is none."""
    types = [scalar_of(each.dtype) for each in arrays]
    if not can_lower(program) or len(shape) > MOST_DIMENSIONS or None in types:
        return None
    memory = tuple([each.name for each in types if each is not None])
    forms = "".join([_form(each, shape) for each in arrays[len(program.results) :]])
    if "x" in forms or CONTIGUOUS not in forms:
        return pointwise_strided(program, memory)
    return pointwise_flat(program, memory, forms)


def pointwise(
    body: Callable[..., Any],
    operands: Sequence[Any],
    result: np.dtype[Any],
) -> Pointwise | None:
    """The compiled form of `body`, or None if there is no code for what it does.

    Operands that are dtypes become arrays or numbers of a call; others are constants, handed to the body as they are.
    All results are of dtype `result`.
    """
    memory = [each for each in operands if isinstance(each, np.dtype)]
    if not all(dtype.name in SCALARS and dtype.isnative for dtype in (*memory, result)):
        return None
    try:
        program = trace_body(body, [computed_type(each) if isinstance(each, np.dtype) else each for each in operands])
    except Untraceable:
        return None
    if not can_lower(program):
        return None
    program = program.stored_as(computed_type(result).name)
    return Pointwise(program, memory, [result] * len(program.results))
