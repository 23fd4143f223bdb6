"""The globals that a file may name when nothing else is trusted, and what the user adds to them."""

from __future__ import annotations

import copyreg
import functools
import pickle
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._core.generator import Generator
from .._core.process.locks import new_lock
from .._core.size import Size
from .._core.tensor import Tensor
from . import numpy_state, rebuild
from .limits import Budget, check_hashable
from .names import REBUILDERS, canonical_name, torch_name, torch_objects
from .unpickler import call_user_code

_RECONSTRUCTOR: Any = copyreg._reconstructor  # type: ignore[attr-defined]  # typeshed leaves it out

Allowed = Callable[..., Any] | tuple[Callable[..., Any], str]
_BLOCKED_MODULES = frozenset({"sys", "os", "posix", "nt", "subprocess"})
_FACTORIES = (dict, list, set, int, float, str, bool, tuple)
_BUILTINS = (*_FACTORIES, frozenset, bytes, bytearray, complex, range, slice)
_UNSUPPORTED = {
    "torch._utils._rebuild_sparse_csr_tensor": "sparse tensors of PyTorch 1.9",
    "torch._utils._rebuild_nested_tensor": "nested tensors",
    "torch._utils._rebuild_wrapper_subclass": "wrapper subclasses of tensors",
}


def _encode(budget: Budget, text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8"):
        raise pickle.UnpicklingError("_codecs.encode is only allowed for strings with latin1")
    budget.spend(len(text))
    return text.encode(encoding)


def _items(budget: Budget, values: Any) -> Any:
    """An argument that will be copied: a list, tuple, set or dict of things that can be hashed."""
    if type(values) not in (list, tuple, set, frozenset, dict, OrderedDict, Counter):
        raise pickle.UnpicklingError(f"a container cannot be made from {type(values).__name__} here")
    budget.spend(64 * len(values))
    return values


def _members(budget: Budget, values: Any) -> Any:
    for each in _items(budget, values):
        check_hashable(each)
    return values


def _ordered_dict(budget: Budget, pairs: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    copied = _items(budget, pairs)
    for key, value in copied.items() if isinstance(copied, dict) else copied:
        check_hashable(key)
        made[key] = value
    return made


def _counter(budget: Budget, counts: Any = ()) -> Counter[Any]:
    return Counter(_members(budget, counts))


def _default_dict(budget: Budget, factory: Any = None, pairs: Any = ()) -> defaultdict[Any, Any]:
    if factory is not None and factory not in _FACTORIES:
        raise pickle.UnpicklingError("a defaultdict is only allowed with a basic type as its factory")
    made: defaultdict[Any, Any] = defaultdict(factory)
    made.update(_ordered_dict(budget, pairs))
    return made


def _bytearray(budget: Budget, content: Any = b"", encoding: Any = None) -> bytearray:
    if type(content) is str:
        content = _encode(budget, content, encoding)
    if type(content) is not bytes:
        raise pickle.UnpicklingError("bytearray is only allowed for bytes")  # a number would be a size
    budget.spend(len(content))
    return bytearray(content)


def _bytes(budget: Budget, content: Any = b"") -> bytes:
    if content:
        raise pickle.UnpicklingError("bytes is only allowed without arguments")  # protocol 2 writes b"" so
    return b""


def _numbers(make: Callable[..., Any], *kinds: type) -> Callable[..., Any]:
    def call(budget: Budget, *arguments: Any) -> Any:
        if not all(type(each) in kinds for each in arguments):
            raise pickle.UnpicklingError(f"{getattr(make, '__name__', make)} is only allowed for plain numbers")
        return make(*arguments)

    return call


def _size(budget: Budget, sizes: Any = ()) -> Size:
    budget.spend(8 * len(_items(budget, sizes)))
    return Size(sizes)


def _text(budget: Budget, text: Any = "") -> str:
    if type(text) is not str:
        raise pickle.UnpicklingError("a version is only allowed as a string")
    return text


def _empty_tensor(budget: Budget, *arguments: Any, cls: Any = Tensor) -> Any:
    if arguments:
        raise pickle.UnpicklingError("a tensor class is only allowed without arguments here")
    return cls()


def _parameter(budget: Budget, data: Any = None, requires_grad: Any = True) -> Tensor:
    return rebuild.rebuild_parameter(data, requires_grad, None)


def _without_budget(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda budget, *arguments: function(*arguments)


@functools.cache
def _known() -> tuple[dict[str, Any], dict[int, Callable[..., Any]]]:
    """Every known global by name, and by identity how to call those that may be called."""
    from .._ops.tensor.legacy import TENSOR_TYPES
    from ..nn.parameter import Parameter

    rebuilders: list[Any] = list(REBUILDERS.values())
    calls: list[tuple[Any, Callable[..., Any]]] = [
        (OrderedDict, _ordered_dict),
        (Counter, _counter),
        (defaultdict, _default_dict),
        (set, lambda budget, values=(): set(_members(budget, values))),
        (frozenset, lambda budget, values=(): frozenset(_members(budget, values))),
        (bytearray, _bytearray),
        (bytes, _bytes),
        (complex, _numbers(complex, int, float)),
        (range, _numbers(range, int)),
        (slice, _numbers(slice, int, type(None))),
        (_encode, _encode),
        (_text, _text),
        (numpy_state.make_scalar, numpy_state.make_scalar),
        (numpy_state.make_array, numpy_state.make_array),
        (numpy_state.array_from_buffer, numpy_state.array_from_buffer),
        (np.dtype, numpy_state.make_dtype),
        (Size, _size),
        (torch_objects()["torch.device"], _without_budget(rebuild.make_device)),
        (Generator, _without_budget(lambda place="cpu": Generator(place))),
        (Tensor, _empty_tensor),
        (Parameter, _parameter),
        *((cls, functools.partial(_empty_tensor, cls=cls)) for cls in TENSOR_TYPES.values()),
        *((function, _without_budget(function)) for function in rebuilders),
    ]
    names = {
        **torch_objects(),
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "collections.defaultdict": defaultdict,
        "_codecs.encode": _encode,
        "torch.torch_version.TorchVersion": _text,
        "numpy.dtype": np.dtype,
        "numpy.ndarray": np.ndarray,
        "copyreg._reconstructor": _RECONSTRUCTOR,
        **{f"builtins.{each.__name__}": each for each in _BUILTINS},
    }
    for core in ("core", "_core"):
        names[f"numpy.{core}.multiarray.scalar"] = numpy_state.make_scalar
        names[f"numpy.{core}.multiarray._reconstruct"] = numpy_state.make_array
        names[f"numpy.{core}.numeric._frombuffer"] = numpy_state.array_from_buffer
    for absent in ("nn.parameter.Buffer", "nn.parameter.UninitializedBuffer", "nn.parameter.UninitializedParameter"):
        del names[f"torch.{absent}"]
    del names["torch.utils.hooks.RemovableHandle"]
    return names, {id(target): call for target, call in calls}


# ----- what the user allows -------------------------------------------------------------------------------------------

_USER_LOCK = new_lock()
_USER: list[Allowed] = []


def add_allowed(entries: Iterable[Allowed]) -> list[Allowed]:
    """Allow more globals; returns those that were not allowed before."""
    added = []
    with _USER_LOCK:
        for entry in entries:
            if isinstance(entry, tuple) and (len(entry) != 2 or not isinstance(entry[1], str)):
                raise ValueError(f"Expected a tuple of an object and its name in the file, but got {entry!r}")
            if entry not in _USER:
                _USER.append(entry)
                added.append(entry)
    return added


def remove_allowed(entries: Iterable[Allowed]) -> None:
    """Take back what was allowed."""
    with _USER_LOCK:
        for entry in entries:
            if entry in _USER:
                _USER.remove(entry)


def allowed_by_user() -> list[Allowed]:
    """What the user allowed, in order."""
    with _USER_LOCK:
        return list(_USER)


def _user_names() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for entry in allowed_by_user():
        if isinstance(entry, tuple):
            value, full = entry
            module, _, name = full.rpartition(".")
            names[canonical_name(module, name)] = value
            continue
        value = entry
        module, name = torch_name(value) or (value.__module__, value.__qualname__)
        names[canonical_name(module, name)] = value
    return names


class SafeGlobals:
    """The known globals and the user's, as the machine asks for them."""

    def __init__(self) -> None:
        self.names, self.calls = _known()
        self.user = _user_names()
        self.user_objects = {id(value): value for value in self.user.values()}

    def is_known(self, module: str, name: str) -> bool:
        """Whether a file may name this global."""
        full = canonical_name(module, name)
        return full in self.user or full in self.names

    def find(self, module: str, name: str) -> Any:
        """The object behind a name in the file; see `Globals`."""
        full = canonical_name(module, name)
        if module in _BLOCKED_MODULES:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked: it could do anything to "
                "this machine"
            )
        if full in self.user:
            return self.user[full]
        if full in self.names:
            return self.names[full]
        if full in _UNSUPPORTED:
            raise pickle.UnpicklingError(f"the file has {_UNSUPPORTED[full]}, which Flambeau does not have")
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the "
            f"`torch.serialization.safe_globals([{full}])` context manager to allow it if you trust this class or "
            "function."
        )

    def call(self, function: Any, arguments: tuple[Any, ...], budget: Budget) -> Any:
        """The result of an allowed call; see `Globals`."""
        if id(function) in self.user_objects:
            return call_user_code(function, *arguments)
        if function is rebuild.rebuild_from_type_v2 or function is rebuild.rebuild_from_type:
            return self._typed_tensor(arguments, budget)
        known = self.calls.get(id(function))
        if known is not None:
            return known(budget, *arguments)
        if function is _RECONSTRUCTOR:
            cls, base, state = arguments
            if base is object and state is None:
                return self.create(cls, (), {}, budget)
        raise pickle.UnpicklingError(
            f"Trying to call reduce for unrecognized function {_describe(function)}: only known functions and those "
            "allowed by torch.serialization.add_safe_globals are called"
        )

    def _typed_tensor(self, arguments: tuple[Any, ...], budget: Budget) -> Any:
        function, cls, parts, state = arguments
        if cls is not Tensor and cls is not self.names["torch.nn.parameter.Parameter"] and not self._is_user_class(cls):
            raise pickle.UnpicklingError(f"{_describe(cls)} is not an allowed class of tensors")
        if type(parts) is not tuple:
            raise pickle.UnpicklingError("a tensor's parts must be a tuple: the file is corrupt")
        return rebuild.rebuild_from_type_v2(lambda *given: self.call(function, given, budget), cls, parts, state)

    def _is_user_class(self, cls: Any) -> bool:
        return isinstance(cls, type) and id(cls) in self.user_objects

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], budget: Budget) -> Any:
        """A new object of an allowed class; see `Globals`."""
        if self._is_user_class(cls):
            return call_user_code(cls.__new__, cls, *arguments, **keywords)
        if id(cls) in self.calls and not keywords:
            return self.calls[id(cls)](budget, *arguments)
        raise pickle.UnpicklingError(
            f"Trying to create new object for unrecognized class {_describe(cls)}: allow it by "
            "torch.serialization.add_safe_globals if you trust it"
        )

    def build(self, target: Any, state: Any, budget: Budget) -> None:
        """Give an object its state; see `Globals`."""
        if type(target) is np.ndarray:
            numpy_state.build_array(target, state, budget)
        elif isinstance(target, np.dtype):
            numpy_state.build_dtype(target, state)
        elif type(target) is Generator:
            rebuild.restore_generator(target, state)
        elif self.allows_instance(target):
            call_user_code(set_state, target, state)
        elif type(target) is Tensor or type(target) is self.names["torch.nn.parameter.Parameter"]:
            rebuild.restore_tensor(target, state)
        elif type(target) in (OrderedDict, Counter, defaultdict):
            rebuild.give_attributes(target, state)
        else:
            raise pickle.UnpicklingError(
                f"Can only build Tensor, Parameter, OrderedDict or types allowed by "
                f"torch.serialization.add_safe_globals, but got {type(target).__name__}"
            )

    def allows_instance(self, target: Any) -> bool:
        """Whether the user allowed the class of `target`; see `Globals`."""
        return id(type(target)) in self.user_objects


def set_state(target: Any, state: Any) -> None:
    """What pickle's BUILD does to an ordinary object."""
    restore = getattr(target, "__setstate__", None)
    if restore is not None:
        restore(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        vars(target).update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _describe(value: Any) -> str:
    """The name of what a file wants to call; never its repr, which a file could make arbitrarily long."""
    name = getattr(value, "__qualname__", None) if isinstance(value, type) or callable(value) else None
    return str(name) if isinstance(name, str) else f"an object of type {type(value).__name__}"
