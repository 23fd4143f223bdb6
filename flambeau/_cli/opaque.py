"""The pickle machine's view of a file whose classes are not trusted: unknown ones become descriptions, nothing runs."""

from __future__ import annotations

from typing import Any

from .._core.storage import UntypedStorage
from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from .._serialization import rebuild
from .._serialization.globals import SafeGlobals
from .._serialization.limits import Budget
from .._serialization.names import canonical_name
from .._serialization.reading import Options
from .._serialization.unpickler import Machine


class UnknownClass:
    """A class or function that a file names."""

    def __init__(self, name: str) -> None:
        self.name = name


class UnknownObject:
    """What an unknown class or function would have made, and what the file would have given it."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name = name
        self.arguments = arguments
        self.state: Any = None
        self.items: list[Any] = []
        self.entries: list[tuple[Any, Any]] = []

    def extend(self, items: list[Any]) -> None:
        """What a list of an unknown class gets."""
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.entries.append((key, value))


class DescribingGlobals(SafeGlobals):
    """Knows what `load` knows by default; everything else is described and noted in `unknown`."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: dict[str, None] = {}
        self.storages: dict[int, tuple[Tensor, UntypedStorage]] = {}
        """The storage of each tensor, by the tensor's identity: tensors without data do not remember theirs."""

    def find(self, module: str, name: str) -> Any:
        if self.is_known(module, name):
            return super().find(module, name)
        full = canonical_name(module, name)
        self.unknown[full] = None
        return UnknownClass(full)

    def call(self, function: Any, arguments: tuple[Any, ...], budget: Budget) -> Any:
        if isinstance(function, (UnknownClass, UnknownObject)):  # an object may be called too: partial(...)(...)
            return UnknownObject(function.name, arguments)
        if function is rebuild.rebuild_from_type_v2 and len(arguments) == 4 and isinstance(arguments[1], UnknownClass):
            function, _, arguments, _ = arguments
            return self.call(function, arguments if type(arguments) is tuple else (), budget)
        result = super().call(function, arguments, budget)
        if isinstance(result, Tensor) and arguments:
            self._remember(result, arguments[0])
        return result

    def _remember(self, tensor: Tensor, source: Any) -> None:
        if isinstance(source, TypedStorage):
            source = source._untyped()
        if isinstance(source, UntypedStorage):
            self.storages[id(tensor)] = tensor, source
        elif id(source) in self.storages:
            self.storages[id(tensor)] = tensor, self.storages[id(source)][1]

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], budget: Budget) -> Any:
        if isinstance(cls, UnknownClass):
            return UnknownObject(cls.name, arguments)
        return super().create(cls, arguments, keywords, budget)

    def build(self, target: Any, state: Any, budget: Budget) -> None:
        if isinstance(target, UnknownObject):
            target.state = state
        elif not isinstance(target, UnknownClass):
            super().build(target, state, budget)

    def allows_instance(self, target: Any) -> bool:
        return isinstance(target, UnknownObject)


class DescribingOptions(Options):
    """Options of a load that describes: the tensors have no data, the globals are `DescribingGlobals`."""

    def __init__(self, map_location: Any, sizes: dict[str, int] | None = None) -> None:
        super().__init__(map_location, True, None, {})
        self.known = DescribingGlobals()
        self.sizes = sizes
        """The size of every storage that the file really has, where that is known."""

    def machine(self, data: Any, persistent_load: Any, *, position: int = 0, budget: Budget | None = None) -> Any:
        def checked_load(saved_id: Any) -> Any:
            storage = persistent_load(saved_id)
            key, told = str(saved_id[2]), storage.nbytes()
            if self.sizes is not None and self.sizes.get(key) != told:
                raise RuntimeError(
                    f"the file says that storage {key[:40]!r} has {told} bytes, but the archive has "
                    f"{self.sizes.get(key, 'none')}: it is corrupt or malicious"
                )
            return storage

        load = persistent_load if self.sizes is None else checked_load
        return Machine(data, self.known, load, position=position, budget=budget)
