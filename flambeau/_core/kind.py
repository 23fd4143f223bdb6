"""`Kind`: a dtype on a device, interned: one identity test tells that two tensors can meet without conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .backend import backend_at
from .device import CPU, device, is_fake, shown_device
from .dtype import LEGACY_NAMES, dtype, from_numpy_dtype
from .modes import DIRECT

if TYPE_CHECKING:
    from .tensor import Tensor


class Kind:
    """What a tensor holds and where. Two tensors of the same kind have the identical `Kind` object."""

    __slots__ = (
        "backend", "beside", "dataless", "device", "differentiable", "dtype", "indirect", "is_cpu", "outputs", "plain",
        "runs", "shown", "tries",
    )  # fmt: skip

    def __init__(self, dtype: dtype, device: device) -> None:
        self.dtype = dtype
        self.device = device
        self.differentiable = dtype.is_floating_point or dtype.is_complex
        self.is_cpu = device is CPU  # the machine's own memory; what plays another device is another one
        self.dataless = device.dataless
        self.shown = shown_device(device)  # the device that tensors of this kind say they are on
        # Kernels do not run on its arrays as they are: some have no data, others have to be widened.
        self.indirect = device.dataless or dtype.wide is not None
        self.backend = backend_at(device)
        self.runs, self.tries = self.backend.runs, self.backend.tries  # one look-up less on the way to a kernel
        self.beside = _arrays_on(device)  # by the type of an array the kind of such results on the same device
        self.outputs = _Outputs(self)  # by shape what a node with one output of this kind knows of it
        self.plain: Kind = self  # the kind of results; another one where a sign is still to be taken (lazy_signs.py)

    tensor_type: ClassVar[type[Any]]
    """The class of tensors of this kind, bound when it exists."""

    @staticmethod
    def tensor_from_parts(parts: Any) -> Tensor:
        """A tensor of this kind over an array, this kind and a version counter, outside any graph."""
        raise AssertionError("bound when the Tensor class exists")

    @property
    def legacy_name(self) -> str:
        """PyTorch's old name of such tensors: `torch.FloatTensor`."""
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"torch.{place}{LEGACY_NAMES[self.dtype]}Tensor"

    def __repr__(self) -> str:
        return f"Kind({self.dtype}, {self.device})"


_MOST_SHAPES = 4096


class _Outputs(dict[tuple[int, ...], tuple[tuple[tuple[int, ...], Kind]]]):
    """For shapes what nodes keep of their one output, made once for all nodes: each tuple that a graph keeps is one
    more for the cycle collector to visit.
    """

    __slots__ = ("_kind",)

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, shape: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], Kind]]:
        if len(self) >= _MOST_SHAPES:
            self.clear()
        found = self[shape] = ((shape, self._kind),)
        return found


class FakeKind(Kind):
    """A dtype on the fake form of a device: its tensors are `FakeTensor`s."""

    __slots__ = ()


class _KindsOfArrays(dict[np.dtype[Any], Kind]):
    """For the types of arrays on one device their kinds, each made when it is first asked for."""

    __slots__ = ("_place",)

    def __init__(self, place: device) -> None:
        super().__init__()
        self._place = place

    def __missing__(self, array_type: np.dtype[Any]) -> Kind:
        found = self[array_type] = kind_of(from_numpy_dtype(array_type), self._place)
        return found


_KINDS: dict[tuple[dtype, device], Kind] = {}
_KINDS_OF_ARRAYS: dict[device, _KindsOfArrays] = {}


def _arrays_on(place: device) -> _KindsOfArrays:
    return _KINDS_OF_ARRAYS.get(place) or _KINDS_OF_ARRAYS.setdefault(place, _KindsOfArrays(place))


def kind_of(dtype: dtype, device: device) -> Kind:
    """The one `Kind` of `dtype` on `device`."""
    found = _KINDS.get((dtype, device))
    if found is None:
        kind = FakeKind(dtype, device) if is_fake(device) else Kind(dtype, device)
        found = _KINDS.setdefault((dtype, device), kind)
        if not found.dataless:
            DIRECT.add(found)
    return found


def kind_of_array(array_type: np.dtype[Any], place: device) -> Kind:
    """The kind of a kernel's result: an array of `array_type` on `place`."""
    return (_KINDS_OF_ARRAYS.get(place) or _arrays_on(place))[array_type]  # the first without a call: it is frequent
