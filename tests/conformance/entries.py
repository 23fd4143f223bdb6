"""The entries of PyTorch's operator database, each with its counterpart in Flambeau."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch as pytorch
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db

from .compare import Tolerance
from .translate import identity, translate

_OTHER_TESTS = ("TestInductor", "TestJit", "TestVmap", "TestDecomp", "TestOperators", "TestProxy", "TestConsistency")
"""Tests that the database loosens for reasons of their own: compilers and other devices."""

_EMPTY = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
UNINITIALISED = frozenset((*_EMPTY, "resize_", "resize_as_"))
"""Entries whose result holds whatever the memory held."""


class Entry:
    """One entry of the database."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self.name: str = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name

    def __repr__(self) -> str:
        return self.name

    @functools.cached_property
    def dtypes(self) -> list[pytorch.dtype]:
        """The dtypes that the entry lists for the CPU."""
        if self.name.startswith("jiterator"):  # compiled for CUDA at run time; the CPU has none
            return []
        return sorted(self.info.supported_dtypes("cpu"), key=str)

    @property
    def main_dtype(self) -> pytorch.dtype:
        """float32, or what stands for it in an entry that does not have it."""
        for dtype in (pytorch.float32, pytorch.complex64, pytorch.int64):
            if dtype in self.dtypes:
                return dtype
        return self.dtypes[0]

    @property
    def gradient_dtypes(self) -> list[pytorch.dtype]:
        """Where gradients are compared: in double precision."""
        if not self.info.supports_autograd or not self.dtypes:
            return []
        listed = self.info.supported_backward_dtypes("cpu")
        return [dtype for dtype in (pytorch.float64, pytorch.complex128) if dtype in listed]

    @functools.cached_property
    def op(self) -> Callable[..., Any]:
        """Flambeau's function."""
        return translate(self.info.op)  # type: ignore[no-any-return]

    def tolerance(self, dtype: pytorch.dtype) -> Tolerance | None:
        """The widest tolerance that the database gives for this entry on the CPU."""
        absolute = relative = 0.0
        for rule in self.info.decorators:
            if not hasattr(rule, "decorators"):
                found = [rule]
            elif rule.device_type in (None, "cpu") and not (rule.cls_name or "").startswith(_OTHER_TESTS):
                found = rule.decorators
            else:
                continue
            for each in found:
                if isinstance(each, toleranceOverride) and dtype in each.d:
                    absolute, relative = max(absolute, each.d[dtype].atol), max(relative, each.d[dtype].rtol)
                elif isinstance(each, precisionOverride) and dtype in each.d:
                    absolute = max(absolute, each.d[dtype])
        return Tolerance(absolute, relative) if absolute or relative else None

    def samples(self, dtype: pytorch.dtype, requires_grad: bool = False) -> Iterator[Any]:
        """The database's sample inputs, the same in every run."""
        _seed()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Not `info.sample_inputs`, which notes the call stack of every sample: most of the time of a run.
            yield from self.info.sample_inputs_func(self.info, "cpu", dtype, requires_grad)

    def error_inputs(self) -> Iterator[Any]:
        """The database's wrong inputs, with the type of error that they must give."""
        if self.info.error_inputs_func is not None:
            _seed()
            yield from self.info.error_inputs_func(self.info, "cpu")

    def process(self, sample: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """What is done to a result before it is differentiated, in PyTorch and in Flambeau."""
        function = sample.output_process_fn_grad
        name = getattr(function, "__qualname__", "")
        return function, identity if name.startswith("SampleInput.__init__") else translate(function)


def _seed() -> None:
    random.seed(0)
    numpy.random.seed(0)
    pytorch.manual_seed(0)


def entries() -> list[Entry]:
    """All of them; entries with the same name are told apart by a number."""
    found: dict[str, int] = {}
    result = []
    for info in op_db:
        entry = Entry(info)
        found[entry.name] = found.get(entry.name, 0) + 1
        if found[entry.name] > 1:
            entry.name = f"{entry.name}.{found[entry.name]}"
        result.append(entry)
    return result
