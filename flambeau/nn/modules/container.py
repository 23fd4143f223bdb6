"""Containers: modules, or parameters, in a sequence, a list or a dictionary."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sized, ValuesView
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from ..._core.self_type import Self
from ..._core.tensor import Tensor
from ..._ops.tensor.predicates import typename
from ..parameter import Parameter
from .module import Module, _addindent

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

T = TypeVar("T")


class Container(Module):
    """Deprecated: a module that holds the modules given as keywords.

    Args:
        **kwargs (Module): the modules, by their names.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     holder = flambeau.nn.Container(act=flambeau.nn.ReLU())
        >>> holder.act
        ReLU()
    """

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(size: int, index: Any) -> int:
    """`index` as a position among `size` items."""
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of range")
    return position % size


class _ModuleSequence(Module):
    """What `Sequential` and `ModuleList` share: modules whose names are their positions."""

    _modules: dict[str, Any]

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(len(self), index)]

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(position): module for position, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        names = list(self._modules)[idx] if isinstance(idx, slice) else [self._name_at(idx)]
        for name in names:
            delattr(self, name)
        self._renumber(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take a module, or with a slice several, out, and return it."""
        module = self[key]  # type: ignore[index]  # sequences and dictionaries have it
        del self[key]
        return module


class Sequential(_ModuleSequence):
    """Modules one after the other: each takes the output of the one before.

    Indexing gives a module, slicing a shorter `Sequential`; `append`, `insert`, `extend`, `pop` and `+` work as on
    lists.

    Args:
        *args (Module): the modules in order, or one `OrderedDict` of names and modules.

    Shape:
        input: what the first module takes
        output: what the last module returns

    Raises:
        TypeError: an argument is no module.

    Example:
        >>> model = flambeau.nn.Sequential(flambeau.nn.Linear(4, 8), flambeau.nn.ReLU(), flambeau.nn.Linear(8, 2))
        >>> model(flambeau.ones(3, 4)).shape
        torch.Size([3, 2])
        >>> model[1]
        ReLU()
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(_sequential(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*[*self] * self._factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend([*self] * (self._factor(other) - 1))

    def _factor(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = [*self]
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in [*sequential]:
            self.append(module)
        return self


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


class ModuleList(_ModuleSequence):
    """A list of modules that are members of the model, unlike those in a plain list.

    Their parameters appear in `parameters()` and in the state dict; the list itself cannot be called.

    Args:
        modules (iterable of Modules, optional): the modules to begin with.

    Raises:
        TypeError: an element is no module.

    Example:
        >>> layers = flambeau.nn.ModuleList(flambeau.nn.Linear(2, 2) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> ModuleList: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._name_at(idx)]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at `index`."""
        modules = [*self]
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in [*_iterable("ModuleList.extend should be called with an iterable", modules)]:
            self.append(module)
        return self

    def __repr__(self) -> str:
        # Equal neighbours share a line: (0-5): 6 x Linear(...).
        runs: list[list[Any]] = []
        for position, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = position
            else:
                runs.append([position, position, text])
        if not runs:
            return self._get_name() + "()"
        lines = [
            _addindent(f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}", 2)
            for first, last, text in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules that are members of the model, unlike those in a plain one.

    Their parameters appear in `parameters()` and in the state dict; the dictionary itself cannot be called.

    Args:
        modules (dict, optional): the modules by name, or pairs of name and module.

    Example:
        >>> choices = flambeau.nn.ModuleDict({"relu": flambeau.nn.ReLU(), "tanh": flambeau.nn.Tanh()})
        >>> choices["relu"](flambeau.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out, and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Take in the modules of a mapping or of pairs; those of the same name are replaced."""
        for key, module in _pairs("ModuleDict", "ModuleDict", modules):
            self[key] = module


# ----- parameters ---------------------------------------------------------------------------------------------------


def _as_parameter(value: Any) -> Tensor:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(values: Iterable[tuple[Any, Any]], tensor_type: Callable[[Any], Any]) -> str:
    """One line for each value of a list or dictionary of parameters."""
    lines = []
    for name, value in values:
        if isinstance(value, Tensor):
            size = "x".join(map(str, value.shape))
            place = f" ({value.device})" if value.device.type not in ("cpu", "meta") else ""
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            lines.append(f"  ({name}): {kind} containing: [{tensor_type(value)} of size {size}{place}]")
        else:
            lines.append(f"  ({name}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters that are members of the model, unlike those in a plain list.

    Tensors become parameters; other values are kept as they are.

    Args:
        values (iterable, optional): the tensors or other values to begin with.

    Example:
        >>> factors = flambeau.nn.ParameterList([flambeau.ones(2), flambeau.zeros(3)])
        >>> [parameter.shape for parameter in factors.parameters()]
        [torch.Size([2]), torch.Size([3])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> ParameterList: ...

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)([self[position] for position in range(*idx.indices(len(self)))])
        return getattr(self, str(_position(len(self), idx)))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_position(len(self), idx)), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[position] for position in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end."""
        complaint = "ParameterList.extend should be called with an iterable"
        if isinstance(values, Tensor):
            raise TypeError(f"{complaint}, but got {type(values).__name__}")
        for value in [*_iterable(complaint, values)]:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return _described(enumerate(self), lambda tensor: tensor.dtype)

    if not TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
            raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that are members of the model, unlike those in a plain one.

    Tensors become parameters; other values are kept as they are.

    Args:
        parameters (dict, optional): the tensors or other values by name, or pairs of name and value.

    Example:
        >>> factors = flambeau.nn.ParameterDict({"scale": flambeau.ones(2)})
        >>> factors["scale"].requires_grad
        True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._key_to_attr(key)
        if key not in self._keys and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if isinstance(value, Tensor) and "." in name:
            raise KeyError(f'parameter name can\'t contain ".", got: {name}')
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A dictionary with the same parameters."""
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`, which becomes `default` if it has none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in [*self._keys]:
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last pair out, and return it."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with these keys and one value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Keys and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Take in the values of a mapping or of pairs; a plain mapping's come in the order of their keys."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        for key, value in _pairs("ParameterDict", "ParametersDict", parameters):
            self[key] = value

    def extra_repr(self) -> str:
        return _described(self.items(), typename_of_data)

    def __or__(self, other: Any) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> ParameterDict:
        result = ParameterDict(other)
        result.update(self)
        return result

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    if not TYPE_CHECKING:

        def __call__(self, input: Any) -> NoReturn:
            raise RuntimeError("ParameterDict should not be called.")


def typename_of_data(tensor: Tensor) -> str:
    """The name of a parameter's type as if it were a plain tensor."""
    return typename(tensor.data)


# ----- arguments ----------------------------------------------------------------------------------------------------


def _iterable(complaint: str, values: Any) -> Iterable[Any]:
    if not isinstance(values, Iterable):
        raise TypeError(f"{complaint}, but got {type(values).__name__}")
    return values


def _pairs(name: str, method_of: str, values: Any) -> Iterable[tuple[Any, Any]]:
    """The items of a mapping, or of a sequence of pairs."""
    _iterable(f"{method_of}.update should be called with an iterable of key/value pairs", values)
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        return values.items()
    pairs = []
    for position, pair in enumerate(values):
        if not isinstance(pair, Iterable) or not isinstance(pair, Sized):
            raise TypeError(f"{name} update sequence element #{position} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{position} has length {len(pair)}; 2 is required")
        key, value = pair
        pairs.append((key, value))
    return pairs
