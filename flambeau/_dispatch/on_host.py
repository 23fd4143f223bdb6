"""Kernels that go step by step, as factorisations and dynamic programs do: they run on the host for every device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.arrays.sparse import SparseArray
from .._core.backend import Backend, backend_of_array, is_array, to_host
from .._core.process.host_calls import on_the_host


def on_host(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Give `kernel` arrays of the host: where it gets others it gets copies, and its results are copied back.

    A device with a lowering of the op never comes here.
    """

    @functools.wraps(kernel)
    def run(*args: Any) -> Any:
        for each in args:
            if type(each) is not np.ndarray and is_array(each):
                backend = backend_of_array(each)
                with on_the_host(kernel.__name__.strip("_"), backend.device_type):
                    return _moved(kernel(*[_on_host(value) for value in args]), backend)
        return kernel(*args)

    return run


def _on_host(value: Any) -> Any:
    if type(value) is list:
        return [_on_host(each) for each in value]
    return to_host(value) if is_array(value) else value


def _moved(results: Any, backend: Backend) -> Any:
    if type(results) in (tuple, list):
        return type(results)([_moved(each, backend) for each in results])
    if isinstance(results, SparseArray):
        return results  # its places and values are arrays of the host for every device
    return backend.from_host(np.asarray(results))
