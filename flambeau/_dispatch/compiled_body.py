"""Elementwise bodies on large arrays: compiled where that is possible, else as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.backend import ARRAY_CLASSES, FUNCTIONS, LARGE, NO_FUNCTIONS, Backend, backend_of, is_of_host
from .._core.geometry.layout import arranged
from .._core.process.reproducibility import REPRODUCIBILITY

_HALVES = frozenset(("float16", "bfloat16"))

Body = Callable[..., Any]

_HOST = backend_of("cpu")


class LargeBody:
    """A prepared body of an elementwise op, for operands of one dtype.

    `plain` does everything with NumPy; `scalar` is the op's own body. It sees operands converted to `computed`.
    """

    __slots__ = (
        "_backend", "_compiled", "_generation", "_is_floating", "_rounded", "computed", "given", "plain", "result",
        "scalar",
    )  # fmt: skip

    def __init__(
        self,
        backend: Backend,
        plain: Body,
        scalar: Body,
        given: np.dtype[Any],
        computed: np.dtype[Any],
        result: np.dtype[Any],
        exact_numbers: bool,
    ) -> None:
        self._backend = backend
        self.plain = plain
        self.scalar = scalar
        self.given = given
        self.computed = computed
        self.result = result
        self._compiled: dict[int, Any] = {}
        self._generation: object = None
        """The generation of the backend in which it was asked for compiled forms last."""
        # A number beside a tensor of half precision is rounded like the tensor.
        self._rounded = given.type if given.name in _HALVES and not exact_numbers else None
        self._is_floating = given.kind not in "iub"

    def __call__(self, *operands: Any) -> Any:
        count = len(operands)
        compiled = self._compiled.get(count) if self._generation is self._backend.generation else None
        if compiled is None:
            compiled = self.compiled_for(count)
        if compiled is None:
            return self.plain(*operands)
        if count == 1:
            return compiled.unary(operands[0])
        first, second = operands
        if type(first) is not type(second) or type(first) not in ARRAY_CLASSES:
            if self.given.kind in "iub" or _is_huge(first) or _is_huge(second):
                return self.plain(*operands)  # integers that do not fit are NumPy's to refuse
            if self._rounded is not None:
                first, second = (
                    each if type(each) in ARRAY_CLASSES else float(self._rounded(each)) for each in operands
                )
        elif first.dtype is not second.dtype:  # a number beside integers is a float: compiled code would misread it
            return self.plain(*operands)
        return compiled.binary(first, second)

    def of_one(self, array: Any) -> Any:
        """The body on one array, in fewer steps than a call with any number."""
        compiled = self._compiled.get(1) if self._generation is self._backend.generation else None
        return self(array) if compiled is None else compiled.unary(array)

    def of_two(self, first: Any, second: Any) -> Any:
        """The body on an array and another operand, in fewer steps for two arrays and for one and a float."""
        compiled = self._compiled.get(2) if self._generation is self._backend.generation else None
        if compiled is not None:
            if type(first) is type(second):
                return compiled.binary(first, second)
            if type(second) is float and self._is_floating and type(first) is self._backend.array_class:
                return compiled.binary(first, second if self._rounded is None else float(self._rounded(second)))
        return self(first, second)

    def compiled_for(self, count: int) -> Any:
        """The compiled form for so many operands; None: there is none."""
        module = self._backend.functions["pointwise"]
        if module is None:
            return None
        self._generation = self._backend.generation
        try:
            return self._compiled[count]
        except KeyError:
            return self._compiled.setdefault(count, self._compile(module, count))

    def into(self, target: Any, *operands: Any) -> bool:
        """Compute into `target`, which may be an operand; False: it was not done."""
        if self._backend.costs_per_call:  # its compiled code walks through any strides
            return self._into_alike(target, operands)
        forms: str | None = "" if target.flags.c_contiguous else None
        for number, each in enumerate(operands):
            if type(each) in ARRAY_CLASSES:
                if each.shape != target.shape or not each.flags.c_contiguous:
                    if each is not target and not _broadcasts_beside(target, each):
                        return False
                    forms = None  # a kernel that walks through any strides
                elif forms is not None:
                    forms += "c"
            elif not self._takes(each):
                return False
            else:
                if self._rounded is not None:
                    operands = (*operands[:number], float(self._rounded(each)), *operands[number + 1 :])
                if forms is not None:
                    forms += "n"
        compiled = self.compiled_for(len(operands))
        if compiled is None:
            return False
        compiled.into((target,), operands, forms)
        return True

    def _into_alike(self, target: Any, operands: Sequence[Any]) -> bool:
        for number, each in enumerate(operands):
            if each is target:
                continue
            if type(each) in ARRAY_CLASSES:
                if each.shape != target.shape or each.strides != target.strides:
                    return False
            elif not self._takes(each):
                return False
            elif self._rounded is not None:
                operands = (*operands[:number], float(self._rounded(each)), *operands[number + 1 :])
        compiled = self._compiled.get(len(operands)) if self._generation is self._backend.generation else None
        if compiled is None:
            compiled = self.compiled_for(len(operands))
        if compiled is None:
            return False
        compiled.into((target,), operands)
        return True

    def _takes(self, number: Any) -> bool:
        """Whether a number may be an operand of compiled code: integers that do not fit are NumPy's to refuse."""
        if self.given.kind not in "iub":
            return not _is_huge(number)
        if self._backend.costs_per_call:
            return self.given.kind == "i" and type(number) is int and -128 <= number < 128
        return self.given.kind in "iu" and fits_in(number, self.given)

    def _compile(self, module: Any, count: int) -> Any:
        body = self.scalar
        if self.computed != self.given:
            target, inner = self.computed, body

            def body(*operands: Any) -> Any:
                return inner(*[each.astype(target) for each in operands])

        return module.pointwise(body, [self.given] * count, self.result)


class MixedBody:
    """A body for two arrays of different dtypes on a device where a call costs: its kernel converts them as it reads.

    `common` is the body for two of the dtype that they are converted to.
    """

    __slots__ = ("_backend", "_common", "_compiled", "_generation", "_given")

    def __init__(self, backend: Backend, common: LargeBody, given: tuple[np.dtype[Any], np.dtype[Any]]) -> None:
        self._backend, self._common, self._given = backend, common, given
        self._compiled: Any = None
        self._generation: object = None

    def of_two(self, first: Any, second: Any) -> Any:
        """The result for two arrays."""
        if self._generation is not self._backend.generation:
            self._compile()
        if self._compiled is not None:
            return self._compiled.binary(first, second)
        wanted = self._common.given
        return self._common.of_two(first.astype(wanted), second.astype(wanted))

    def _compile(self) -> None:
        module, common, inner = self._backend.functions["pointwise"], self._common, self._common.scalar
        self._generation = self._backend.generation

        def body(*operands: Any) -> Any:
            met = [each.astype(common.given) for each in operands]
            return inner(*(met if common.computed == common.given else [each.astype(common.computed) for each in met]))

        self._compiled = None if module is None else module.pointwise(body, self._given, common.result)


def fits_in(number: Any, dtype: Any) -> bool:
    """Whether a number is one of every integer dtype, or of this one, which has signs and 32 bits or more."""
    if type(number) is not int:
        return False
    return 0 <= number < 128 or (dtype.kind == "i" and dtype.itemsize >= 4 and -_TWO_31 <= number < _TWO_31)


_TWO_31 = 2**31


def _broadcasts_beside(target: Any, operand: Any) -> bool:
    """Whether an array has the shape of `target` when it is broadcast, and no memory in common with it."""
    missing = target.ndim - operand.ndim
    if missing < 0 or np.may_share_memory(target, operand):
        return False
    return all(size in (1, wanted) for size, wanted in zip(operand.shape, target.shape[missing:], strict=True))


def _is_huge(number: Any) -> bool:
    """Whether it is an integer beyond what a float is sure to hold."""
    return type(number) is int and number.bit_length() > 1000


def pointwise(kernel: Body) -> Body:
    """Mark a kernel as elementwise in its arrays, which have one dtype and shape: large ones run compiled.

    Other arguments become part of the code: a kernel for values that change from call to call is better left alone.
    """
    return _compiled_from(LARGE, kernel)


def pointwise_like_second(kernel: Body) -> Body:
    """Mark an elementwise kernel of two arrays whose result lies in memory as the second does, where they differ."""
    return _compiled_from(LARGE, kernel, order=_second_first)


def pointwise_like_last(kernel: Body) -> Body:
    """Mark an elementwise kernel of arrays of which the last is the first to say how the result lies in memory."""
    return _compiled_from(LARGE, kernel, order=_last_first)


def _last_first(arrays: list[Any]) -> list[Any]:
    return [arrays[-1], *arrays[:-1]]


def _second_first(arrays: list[Any]) -> list[Any]:
    return [arrays[1], arrays[0]]


def pointwise_at_any_size(kernel: Body) -> Body:
    """Mark an elementwise kernel of many NumPy calls: compiled it is quicker even for a few elements."""
    return _compiled_from(1, kernel)


BODIES: dict[Body, Body] = {}
"""The kernels that are marked as elementwise, each with what it was made of: whoever fuses kernels traces that."""


INTO: dict[Body, Callable[..., bool]] = {}
"""The kernels that are marked as elementwise, each with what runs it on a large array and numbers, into that array."""


def _compiled_from(least: int, kernel: Body, order: Callable[[list[Any]], list[Any]] | None = None) -> Body:
    compiled: dict[tuple[Any, ...], Any] = {}
    of_one_array: dict[tuple[Any, ...], Any] = {}
    """The functions for one array and numbers, by a key that is quicker to make."""

    alike: dict[tuple[Any, ...], Any] = {}
    """The functions for arrays of one dtype, by it and by the generation of the host's functions at that time."""

    def compiled_for(module: Any, key: tuple[Any, ...], operands: Sequence[Any], result: Any) -> Any:
        """The compiled form for arguments; a KeyError: there are too many."""
        try:
            return compiled[key]
        except KeyError:
            if len(compiled) >= module.MOST_VARIANTS and REPRODUCIBILITY.product is None:
                raise
            found = compiled[key] = module.pointwise(kernel, operands, result)
            return found

    def into(target: Any, *numbers: Any) -> bool:
        """Run the kernel on a large array of the host and numbers, and write the results there; whether it was done."""
        module = FUNCTIONS[np.ndarray]["pointwise"]
        if module is None or type(target) is not np.ndarray or target.size < LARGE or not target.flags.writeable:
            return False
        key = (np.ndarray, target.dtype, *[(type(each), each) for each in numbers])
        try:
            found = compiled_for(module, key, (target.dtype, *numbers), target.dtype)
        except (KeyError, TypeError):  # too many, or an argument without a hash
            return False
        if found is None:
            return False
        found.into((target,), (target,), "c" if target.flags.c_contiguous else None)
        return True

    @functools.wraps(kernel)
    def run(*args: Any) -> Any:
        first = args[0]
        kind = type(first)
        if kind is np.ndarray:
            if first.size < least and (REPRODUCIBILITY.product is None or not first.size):
                result = kernel(*args)
                strides = first.strides  # looked at here for the usual case: this is most of what a small call waits
                if result.strides == strides and (
                    len(args) < 2
                    or (
                        (type(args[1]) is not kind or args[1].strides == strides)
                        and (len(args) == 2 or type(args[2]) is not kind or args[2].strides == strides)
                    )
                ):
                    return result
                return _in_order(result, args, order)
            if type(args[-1]) is kind:
                found = alike.get((first.dtype, len(args), _HOST.generation))
                if found is not None:
                    if len(args) == 1:
                        return found.unary(first)
                    if _are_alike(args):
                        return found.alike(args)
        elif is_of_host(kind) and first.size < least:
            return _in_order(kernel(*args), args, order)
        module = FUNCTIONS.get(kind, NO_FUNCTIONS)["pointwise"]
        if module is None:
            return _in_order(kernel(*args), args, order)
        numbers = args[1:]
        if not numbers or type(numbers[0]) is not kind:
            try:
                return of_one_array[kind, first.dtype, numbers, tuple(map(type, numbers))].unary(first)
            except (KeyError, TypeError):  # not known yet, or an argument has no hash
                pass
        arrays: Sequence[Any] = args
        dtypes = [each.dtype for each in args if type(each) is kind]
        key: tuple[Any, ...] = (kind, *dtypes)
        if len(dtypes) < len(args):
            arrays = [each for each in args if type(each) is kind]
            key = (kind, *[each.dtype if type(each) is kind else (type(each), each) for each in args])
        try:
            operands = [each.dtype if type(each) is kind else each for each in args]
            found = compiled_for(module, key, operands, first.dtype)
        except (KeyError, TypeError):  # too many, or an argument without a hash
            found = None
        if found is None:
            return _in_order(kernel(*args), args, order)
        for each in arrays:
            if each.shape != first.shape:
                has_kernel = REPRODUCIBILITY.product is not None or (kind is np.ndarray and _have_no_gaps(arrays))
                return _in_order(found.many(*arrays)[0] if has_kernel else kernel(*args), args, order)
        if kind is np.ndarray and arrays is args and _are_alike(args):
            if len(alike) >= module.MOST_VARIANTS:
                alike.clear()
            alike[first.dtype, len(args), _HOST.generation] = found
        if len(arrays) == 1:
            of_one_array[kind, first.dtype, numbers, tuple(map(type, numbers))] = found
            return found.unary(first)
        if order is not None and kind is np.ndarray:
            return found.many(*arrays, like=order([*arrays]))[0]
        return _in_order(found.binary(*arrays) if len(arrays) == 2 else found.many(*arrays)[0], args, order)

    BODIES[run] = kernel
    INTO[run] = into
    return run


def _in_order(result: Any, args: tuple[Any, ...], order: Callable[[list[Any]], list[Any]] | None) -> Any:
    """A result of one or several arrays, in the memory order that PyTorch gives it."""
    arrays = [each for each in args if type(each) in ARRAY_CLASSES]
    return arranged(result, *(arrays if order is None else order(arrays))) if arrays else result  # none: a trace


def _have_no_gaps(arrays: Sequence[Any]) -> bool:
    return all(each.flags.c_contiguous for each in arrays)


def _are_alike(args: tuple[Any, ...]) -> bool:
    """Whether all are arrays of the host, of one dtype and shape and without gaps."""
    dtype, shape = args[0].dtype, args[0].shape
    for each in args:
        if type(each) is not np.ndarray or each.dtype is not dtype:
            return False
        if each.shape != shape or not each.flags.c_contiguous:
            return False
    return True


AT_ANY_SIZE: set[Body] = set()
"""The bodies that `compiled_at_any_size` has marked: an elementwise op takes their compiled form itself."""


def compiled_at_any_size(body: Body) -> Body:
    """Mark an elementwise body of many calls of NumPy: its compiled form is quicker even for a few elements."""
    compiled: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(body)
    def run(*operands: Any) -> Any:
        first = operands[0]
        kind = type(first)
        second = operands[-1]  # there are one or two
        if type(second) is not kind:
            return body(*operands)
        module = FUNCTIONS.get(kind, NO_FUNCTIONS)["pointwise"]
        if module is None:
            return body(*operands)
        key = (kind, first.dtype) if len(operands) == 1 else (kind, first.dtype, second.dtype)
        try:
            found = compiled[key]
        except KeyError:
            found = compiled[key] = module.pointwise(body, key[1:], first.dtype)
        if found is None:
            return body(*operands)
        return found.unary(first) if len(operands) == 1 else found.binary(*operands)

    AT_ANY_SIZE.add(run)
    return run
