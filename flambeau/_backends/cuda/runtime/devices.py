"""Several devices of one machine: which one a thread works on, and what leads each call to the device of its arrays.

A thread works on one device at a time: `torch.cuda.set_device` and `torch.cuda.device` choose it, and a call on arrays
of another device goes there until it returns. `Devices` is the driver of all: memory, streams and statistics are those
of the device that the thread works on; a kernel or a product is prepared once for each device that runs it.

All this exists only where a machine has several devices. With one, its own driver is the one in use, and no call asks
where an array is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, cast

from . import driver as drivers
from .compile_queue import COMPILE_QUEUE
from .driver import Driver, Launch, Memory, driver
from .synchronization import HERE

_VIEWS = frozenset((
    "transpose", "swapaxes", "squeeze", "diagonal", "view", "__len__", "__repr__", "__iter__",
    "__float__", "__int__", "__bool__", "__complex__", "__index__", "__contains__", "__array__",
))  # fmt: skip
"""Methods of arrays that start nothing on a device, or call others that do."""


class Devices:
    """The drivers of several devices as one driver: that of the device which the calling thread works on."""

    def __init__(self, drivers: Sequence[Driver]) -> None:
        self.all = tuple(drivers)

    @property
    def ordinal(self) -> int:
        """The device that this thread works on."""
        return HERE.ordinal

    def __getattr__(self, name: str) -> Any:
        return getattr(self.all[HERE.ordinal], name)

    def allocate(self, nbytes: int) -> Memory:
        """Memory, uninitialised."""
        return self.all[HERE.ordinal].allocate(nbytes)

    def compile(self, source: str) -> Launch:
        """The function `kernel` of a source, for whichever device launches it."""
        return self._for_each(lambda own: own.compile(source))

    def product(self, result: Any, left: Any, right: Any, added: bool = False) -> Any:
        """What multiplies matrices of these forms, on whichever device they are."""
        return self._for_each(lambda own: own.product(result, left, right, added))

    def _for_each(self, prepare: Callable[[Driver], Callable[..., None]]) -> Callable[..., None]:
        """A call that is prepared for a device when it is first made there; for the present one, now."""
        prepared = {HERE.ordinal: prepare(self.all[HERE.ordinal])}

        def run(*args: Any) -> None:
            ordinal = HERE.ordinal
            own = prepared.get(ordinal)
            if own is None:
                own = prepared[ordinal] = prepare(self.all[ordinal])
            own(*args)

        return run


def several() -> Devices | None:
    """The drivers, where there are several devices."""
    found: object = drivers.in_use()
    return found if isinstance(found, Devices) else None


def use_ordinal(ordinal: int) -> None:
    """Let this thread work on a device from now on."""
    if ordinal != HERE.ordinal:
        COMPILE_QUEUE.catch_up()  # what waits there was given to the device before
        HERE.ordinal = ordinal
        driver().enter()


class on_device:
    """A context in which this thread works on a device."""

    __slots__ = ("_before", "_ordinal")

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    def __enter__(self) -> None:
        self._before = HERE.ordinal
        use_ordinal(self._ordinal)

    def __exit__(self, *exception: object) -> None:
        use_ordinal(self._before)


def ordinal_of(array: Any) -> int | None:
    """The device that an array is on; None for one without memory of a device."""
    memory = array.memory
    found: int | None = getattr(memory, "ordinal", None)
    return getattr(memory, "device_id", None) if found is None else found


def fetched(array: Any, ordinal: int) -> Any:
    """An array as one of another device: itself if it is there, else a copy in the same memory order."""
    from ..arrays.array import empty, is_dense

    source = ordinal_of(array)
    if source is None or source == ordinal:
        return array
    if not is_dense(array.form):
        array = array.copy("K")
    form, drivers = array.form, cast(Devices, driver()).all
    with on_device(ordinal):
        made = empty(form.shape, form.dtype, form.strides if form.size else None)
        if form.size:
            drivers[ordinal].copy_from(drivers[source], made.pointer, array.pointer, form.nbytes)
    return made


def _first_ordinal(values: Sequence[Any]) -> int | None:
    """The device of the first array among arguments and lists of them."""
    from ..arrays.array import DeviceArray

    for each in values:
        if type(each) is DeviceArray:
            found = ordinal_of(each)
        elif type(each) in (list, tuple):
            found = _first_ordinal(each)
        else:
            continue
        if found is not None:
            return found
    return None


class PlanOfDevice:
    """A plan of a library, which is for one device: where there are several, each has its own of such a plan."""

    __slots__ = ()

    def __new__(cls, *args: Any) -> Any:
        return object.__new__(cls) if several() is None else _PlanOfEach(lambda: _made(cls, args))


def _made(cls: type, args: tuple[Any, ...]) -> Any:
    plan: Any = object.__new__(cls)
    plan.__init__(*args)
    return plan


class _PlanOfEach:
    """The plans of several devices for the same work; each is made when it is first needed."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._plans = {HERE.ordinal: make()}

    def _own(self) -> Any:
        ordinal = HERE.ordinal
        if ordinal not in self._plans:
            self._plans[ordinal] = self._make()
        return self._plans[ordinal]

    def __call__(self, *args: Any) -> Any:
        return self._own()(*args)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._own(), name)
        return (lambda *args: getattr(self._own(), name)(*args)) if callable(found) else found


def beside_its_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs on the device of the first array that it is given."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        ordinal = _first_ordinal(args)
        if ordinal is None or ordinal == HERE.ordinal:
            return function(*args, **kwargs)
        with on_device(ordinal):
            return function(*args, **kwargs)

    return run


def there(ordinal: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs on one device."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        if ordinal == HERE.ordinal:
            return function(*args)
        with on_device(ordinal):
            return function(*args)

    return run


class Family:
    """A module of functions on arrays, each of which runs on the device of its arrays."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if type(found) is FunctionType:
            led: Any = beside_its_arrays(found)
            led.unled, found = found, led
            setattr(self, name, found)
        return found


def lead_calls_to_their_devices() -> None:
    """Let what starts work on arrays outside of a kernel find their device: methods of arrays and compiled programs."""
    from ..arrays.array import DeviceArray
    from ..elementwise.multi import Updating
    from ..elementwise.pointwise import Pointwise
    from .segments import GraphSegment

    methods = [name for name, found in vars(DeviceArray).items() if type(found) is FunctionType and name not in _VIEWS]
    for kind, names in (
        (DeviceArray, methods),
        (Pointwise, ["unary", "binary", "many", "into"]),
        (GraphSegment, ["__call__"]),
        (Updating, ["__call__"]),
    ):
        for name in names:
            setattr(kind, name, beside_its_arrays(getattr(kind, name)))
