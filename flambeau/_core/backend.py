"""`Backend`: how ops run on the arrays of one type of device, as far as all devices have that in common.

A backend holds an array library. Its class of arrays has one table of kernels by name (`FUNCTIONS`): under the name of
an op its *lowering*, a function with the arguments of the op's kernel; under other names the functions on arrays of
which reference kernels are made (`_backends/arrays.py`), and whole modules of such functions. A kernel returns None for
what it does not do: then the reference kernel goes on with NumPy's functions. Whoever has faster kernels pushes them
into the table; ops never ask.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .dtype import HAS_ML_DTYPES
from .modes import beside_the_ops

LARGE = int(os.environ.get("FLAMBEAU_LARGE", "4096"))
"""From so many elements on elementwise kernels are generated ones; below, a call of NumPy's is as quick.

Whether a generated kernel runs depends on sizes, dtypes and layouts alone, never on what ran before: the same call
gives the same bits, in every process. Kernels that replace many calls of NumPy's, as those of normalisations do, run
for the smallest inputs too: that starts the compiler (some 70 ms), and compiles a kernel that is not on disk yet (20
to 50 ms).
"""

Kernel = Callable[..., Any]
Find = Callable[[str], Any]
"""Finds a kernel, or a module of kernels, by its name; None: there is none."""


def _widening(kernel: Kernel) -> Kernel:
    from .arrays.narrow import widening

    return widening(kernel)


ARRAY_CLASSES: set[type] = {np.ndarray}
"""The classes of the arrays that tensors hold, NumPy's and those of the backends that are installed."""


class Functions(dict[str, Any]):
    """The kernels for one class of arrays, by their names: None where there are NumPy's functions alone.

    Each is looked for when it is first asked for: most never are, and finding one may start a compiler.
    """

    __slots__ = ("finders",)

    def __init__(self, finders: Mapping[str, Find]) -> None:
        self.finders = dict(finders)

    def __missing__(self, name: str) -> Any:
        find = self.finders.get(name)
        found = self[name] = None if find is None else find(name)
        return found


FUNCTIONS: dict[type, Functions] = {}
"""By class of arrays their kernels. Backends push them (`Backend.push`), and so does `torch.compile` for what stands in
for the host's arrays while calls are written down."""
NO_FUNCTIONS = Functions({})
"""The table of arrays for whose class no backend has pushed kernels."""
HOST_CLASSES: set[type] = {np.ndarray}
"""NumPy's class of arrays, and those of what stands in for them."""


def is_of_host(kind: type) -> bool:
    """Whether objects of a class are arrays of NumPy's, or are treated as if they were."""
    return kind in HOST_CLASSES


class Backend:
    """What runs ops on one type of device, and makes its arrays. As it stands its arrays are NumPy's.

    Kernels make arrays beside their arguments with NumPy's own `empty_like`, or `like=`. The methods here are for where
    there is no array yet, and for what NumPy's protocols have no word for: the way to the host and back, and memory.
    """

    array_class: type = np.ndarray
    costs_per_call = False
    """Whether a kernel costs the same at every size that is not large: then one that does several steps is better."""
    plans_derivatives = False
    """Whether the kernels of a node's gradients are found by the `layout` of its arrays."""
    is_compiled_for = False
    """Whether recorded programs run on its arrays."""
    is_for_several = False
    """Whether there are several devices of the type, each with a backend of its own: see `at`."""
    kept_levels: frozenset[str] = frozenset()
    """The levels of `flambeau.reproducible` that ops on its arrays keep, where these are not the host's."""
    ordinal: int | None = None
    """Which device of its type it is for, where the type has several."""

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type
        self.runs: dict[Any, Kernel] = {}
        """For each op that ran here, what runs it."""
        self.tries: dict[Any, Kernel] = {}
        """For each op that ran here its lowering alone: the caller runs the kernel where it declines, a call less."""
        self.functions = FUNCTIONS.setdefault(self.array_class, Functions({}))
        """The kernels for its class of arrays."""

        self.generation: object = object()
        """Another one whenever the functions above may have changed: `forget`."""

        self.in_one_pass: Kernel | None = None
        """Computes all gradients that a node hands on at once, if it can: `(node, grad, saved values, edges)`."""

    def at(self, index: int | None) -> Backend:
        """The backend of one of several devices of the type; this one where there are no several."""
        return self

    def fetched(self, array: Any) -> Any:
        """The elements of an array of this type of device, as one of the device that this backend is for."""
        return array

    def ordinal_of(self, array: Any) -> int | None:
        """Which device of its type an array is on; None where there are no several."""
        return None

    def push(self, kernels: Mapping[str, Find]) -> None:
        """Take over what finds the kernels of these names."""
        self.functions.finders.update(kernels)
        self.forget()

    def forget(self) -> None:
        """Look for kernels anew: they have changed."""
        self.functions.clear()
        self.runs.clear()
        self.tries.clear()
        self.generation = object()

    def lowering(self, name: str) -> Kernel | None:
        """The lowering of the op called `name`, if there is one here and now."""
        found: Kernel | None = self.functions[name]
        return found

    def prepare(self, op: Any) -> Kernel:
        """What runs `op` on arrays; it is kept in `runs`."""
        lowering = self.lowering(op.name)
        kernel: Kernel = op.kernel
        run = kernel
        if lowering is not None:

            def run(*args: Any) -> Any:
                done = lowering(*args)
                return kernel(*args) if done is None else done

        if not HAS_ML_DTYPES and not (op.writes or getattr(op, "makes_windows", False)):
            run = _widening(run)
        self.runs[op] = run
        return run

    def first_try(self, op: Any) -> Kernel:
        """The lowering of `op`, which may answer None: then its kernel is to run. Or that kernel. Kept in `tries`."""
        found: Kernel = self.lowering(op.name) or op.kernel
        if not HAS_ML_DTYPES and not (op.writes or getattr(op, "makes_windows", False)):
            found = _widening(found)
        self.tries[op] = found
        return found

    asarray: Callable[..., Any] = staticmethod(np.asarray)
    """The result of a kernel as an array: array libraries return numbers where there are no dimensions."""

    def empty(self, shape: tuple[int, ...], array_type: Any) -> Any:
        """A new array, uninitialised."""
        return np.empty(shape, array_type)

    def zeros(self, shape: tuple[int, ...], array_type: Any) -> Any:
        """A new array of zeros."""
        return np.zeros(shape, array_type)

    def from_host(self, array: Any) -> Any:
        """An array of this backend with the elements of one of the host, which may be that array itself."""
        return array

    def to_host(self, array: Any) -> Any:
        """An array of the host with the elements of one of this backend: where one waits for the device."""
        return array

    def without_waiting(self) -> Any:
        """A context in which copies from the host and to it need not be done when a call returns."""
        return contextlib.nullcontext()

    def deferring_launches(self) -> Any:
        """A context for what needs many kernels that are not there yet: they may be compiled side by side."""
        return contextlib.nullcontext()

    def all_within(self, array: Any, low: int, high: int, op: str) -> bool:
        """Whether all numbers are from `low` on and below `high`.

        A device that would have to be waited for says yes, and raises the error for `op` at the next wait.
        """
        return not array.size or bool(read(array.min() >= low) and read(array.max() < high))

    def is_recording(self) -> bool:
        """Whether work is written down, to be done later and again, instead of done."""
        return False

    def place_in_work(self) -> Any:
        """Where what is started now stands in a device's work: two calls at equal places are done one after the other,
        whenever that is.
        """
        return None

    def used_by(self, array: Any, stream: Any) -> None:
        """A queue of the device works with an array: its memory is not to be used again before that is done."""
        raise NotImplementedError(
            f"Could not run 'aten::record_stream' with arguments from the '{self.device_type.upper()}' backend: it is "
            "about an accelerator's memory"
        )

    def window(self, memory: Any, shape: tuple[int, ...], array_type: Any, start: int, strides: tuple[int, ...]) -> Any:
        """An array over part of the memory of a dense one; start and strides count bytes."""
        return np.ndarray(shape, array_type, memory, start, strides)

    def address(self, array: Any) -> int:
        """Where the first element is."""
        place: int = array.__array_interface__["data"][0]
        return place


_BACKENDS: dict[str, Backend] = {}


def backend_of(device_type: str) -> Backend:
    """The backend of the devices of a type."""
    found = _BACKENDS.get(device_type)
    if found is None:
        found = _BACKENDS.setdefault(device_type, Backend(device_type))
    return found


def backend_at(place: Any) -> Backend:
    """The backend of a device."""
    return backend_of("meta" if place.dataless else place.type).at(place.index)


def install(backend: Backend) -> Backend:
    """Let `backend` be the one of its devices; before any tensor is there."""
    if backend.device_type in _BACKENDS:
        raise RuntimeError(f"{backend.device_type} has a backend already")
    _BACKENDS[backend.device_type] = backend
    know_arrays(backend)
    for tell in WHEN_INSTALLED:
        tell(backend)
    return backend


WHEN_INSTALLED: list[Callable[[Backend], None]] = []
"""Who wants to know of new backends."""


def devices_backends() -> list[Backend]:
    """The backends whose arrays lie in other memory than the host's."""
    return [each for name, each in _BACKENDS.items() if name != "meta" and each.array_class is not np.ndarray]


def rename_backend(device_type: str, name: str) -> None:
    """Let the backend of a type of devices be that of the same devices under another name."""
    if device_type in _BACKENDS:
        backend = _BACKENDS[name] = _BACKENDS.pop(device_type)
        backend.device_type = name


def know_arrays(backend: Backend) -> None:
    """Let `backend` be the one of its class of arrays."""
    _BY_ARRAY[backend.array_class] = backend
    ARRAY_CLASSES.add(backend.array_class)


@contextlib.contextmanager
def deferring_launches() -> Iterator[None]:
    """A context for what needs many kernels that are not there yet, on whatever device."""
    with contextlib.ExitStack() as contexts:
        for backend in tuple(_BACKENDS.values()):
            contexts.enter_context(backend.deferring_launches())
        yield


def is_installed(device_type: str) -> bool:
    """Whether a backend of its own runs the devices of a type."""
    found = _BACKENDS.get(device_type)
    return found is not None and found.array_class is not np.ndarray


_BY_ARRAY: dict[type, Backend] = {np.ndarray: backend_of("cpu")}


def backend_of_array(array: Any) -> Backend:
    """The backend that an array belongs to."""
    backend = _BY_ARRAY[type(array)]
    return backend.at(backend.ordinal_of(array)) if backend.is_for_several else backend


def is_array(value: Any) -> bool:
    """Whether a value is an array of some backend, and no number."""
    return type(value) in ARRAY_CLASSES


def undispatched(function: Any) -> Any:
    """A function of NumPy's for arrays that are known to be its own: it asks nobody else who might take the call."""
    return getattr(function, "_implementation", function)


_NUMBERS = (np.generic, bool, int, float, complex)


def as_array(value: Any) -> Any:
    """What NumPy returned, as an array: of results without dimensions it makes numbers. Anything else stays."""
    return np.asarray(value) if type(value) is not np.ndarray and isinstance(value, _NUMBERS) else value


def to_host(array: Any) -> Any:
    """The elements of any array as an array of the host."""
    return array if type(array) is np.ndarray else backend_of_array(array).to_host(array)


def read(value: Any) -> Any:
    """The one element of a kernel's result as a Python number: here a host waits for its device."""
    beside_the_ops()
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return value.item()
    backend = _BY_ARRAY.get(type(value))
    return value if backend is None else backend.to_host(value).item()


def all_within(array: Any, low: int, high: int, op: str) -> bool:
    """Whether all of an array's numbers are from `low` on and below `high`, as far as its device knows by now."""
    backend = _BY_ARRAY.get(type(array))
    return backend is None or backend.all_within(array, low, high, op)  # an abstract array has no elements


def moved(array: Any, target: Backend) -> Any:
    """The elements of an array as one of `target`."""
    if type(array) is not target.array_class:
        return target.from_host(to_host(array))
    return array if target.ordinal is None else target.fetched(array)


def beside(host: Any, array: Any) -> Any:
    """What the host has computed as an array where `array` is."""
    return host if type(array) is np.ndarray else moved(host, backend_of_array(array))
