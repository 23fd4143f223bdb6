"""Dimensions whose sizes are not fixed, under the names of `torch.export.dynamic_shapes`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from .._core.names.absent import absent_function
from .._core.tensor import Tensor
from ..compiler._errors import UserError, UserErrorType
from ..utils._pytree import tree_flatten, tree_map

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "Dim",
    "ShapesCollection",
    "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]

INFINITE = 2**63 - 1


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


class _DimHint(NamedTuple):
    """What is wanted of a dimension that has no name."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """A dynamic size within bounds."""
        return _DimHint(self.type, min, max)


class Dim:
    """A dimension whose size may be any, within bounds; where the same name stands, the sizes are the same.

    `Dim.AUTO` lets the size be any if the program allows it, `Dim.DYNAMIC` demands that it does, `Dim.STATIC` fixes it.

    Args:
        name (str): its name.
        min (int, optional): the smallest size; None means none.
        max (int, optional): the largest size; None means none.

    Example:
        >>> batch = torch.export.Dim("batch", max=64)
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),), dynamic_shapes=({0: batch},))
        >>> program.module()(torch.ones(5, 3)).shape
        torch.Size([5, 3])
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, min or 0, INFINITE if max is None else max
        if self.max < self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")

    @property
    def size(self) -> SizeOf:
        """The size of this dimension, as a function of one that has a name."""
        return SizeOf(self.__name__)

    def __add__(self, other: Any) -> Dim:
        return _DerivedDim(self, 1, _whole(other, f"add {other} to {self.__name__}"))

    def __sub__(self, other: Any) -> Dim:
        return _DerivedDim(self, 1, -_whole(other, f"subtract {other} from {self.__name__}"))

    def __mul__(self, other: Any) -> Dim:
        factor = _whole(other, f"multiply {other} with {self.__name__}")
        if factor <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. "
                f"{_ONLY_LINEAR}"
            )
        return _DerivedDim(self, factor, 0)

    def __radd__(self, other: Any) -> Dim:
        return self.__add__(other)

    def __rmul__(self, other: Any) -> Dim:
        return self.__mul__(other)

    def __repr__(self) -> str:
        bounds = [f", min={self.min}" if self.min != 2 else "", f", max={self.max}" if self.max != INFINITE else ""]
        return f"Dim('{self.__name__}'{''.join(bounds)})"


_ONLY_LINEAR = "(Only increasing linear operations with integer coefficients are supported.)"
_SIZE = re.compile(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?")


def _whole(value: Any, attempt: str) -> int:
    if type(value) is not int:
        raise NotImplementedError(f"Attempted to {attempt}, where an integer was expected. {_ONLY_LINEAR}")
    return value


class SizeOf(NamedTuple):
    """A size that follows from a dimension's: `2*batch + 1`."""

    name: str
    factor: int = 1
    shift: int = 0

    @classmethod
    def from_text(cls, text: str) -> SizeOf:
        """The meaning of what `str` writes."""
        match = _SIZE.fullmatch(text)
        assert match is not None, text
        factor, name, sign, shift = match.groups()
        return cls(name, int(factor or 1), int(f"{sign}{shift}") if sign else 0)

    def of(self, root: int) -> int:
        """The size where the dimension has the size `root`."""
        return self.factor * root + self.shift

    def root(self, size: int) -> int | None:
        """The dimension's size where this is `size`; None if it cannot be."""
        count, rest = divmod(size - self.shift, self.factor)
        return None if rest or count < 0 else count

    def __str__(self) -> str:
        factor = f"{self.factor}*" if self.factor != 1 else ""
        return f"{factor}{self.name}" + (f" {'+' if self.shift > 0 else '-'} {abs(self.shift)}" if self.shift else "")


class _DerivedDim(Dim):
    """A dimension whose size follows from that of another: `2 * Dim("half")`."""

    def __init__(self, base: Dim, factor: int, shift: int) -> None:
        name, inner, moved = base.size
        self._size = SizeOf(name, inner * factor, moved * factor + shift)
        self.__name__ = str(self._size)
        self.min = factor * base.min + shift
        self.max = INFINITE if base.max == INFINITE else factor * base.max + shift
        self.root: Dim = base.root if isinstance(base, _DerivedDim) else base

    @property
    def size(self) -> SizeOf:
        return self._size

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dimensions at once.

    Args:
        *names: their names.
        min (int, optional): the smallest size; None means none.
        max (int, optional): the largest size; None means none.

    Returns:
        tuple of Dims: the dimensions.

    Example:
        >>> height, width = torch.export.dims("height", "width")
        >>> width
        Dim('width', min=0)
    """
    return tuple([Dim(name, min=min, max=max) for name in names])


class Constraint(NamedTuple):
    """The bounds of one dimension of an input.

    Args:
        name (str): the name of the dimension.
        min (int): the smallest size.
        max (int): the largest size.

    Example:
        >>> torch.export.Constraint("batch", 1, 64)
        Constraint(name='batch', min=1, max=64)
    """

    name: str
    min: int
    max: int


class ShapesCollection:
    """Dynamic dimensions by the tensors that have them: `shapes[x] = {0: Dim("batch")}`.

    Example:
        >>> x = torch.ones(2, 3)
        >>> shapes = torch.export.ShapesCollection()
        >>> shapes[x] = {0: torch.export.Dim("batch")}
        >>> program = torch.export.export(torch.nn.ReLU(), (x,), dynamic_shapes=shapes)
        >>> program.module()(torch.ones(5, 3)).shape
        torch.Size([5, 3])
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        assert isinstance(t, (Tensor, int)), f"Cannot assign shape to non-tensor type {type(t)}"
        found = self._shapes.setdefault(id(t), shape)
        assert found == shape, f"Shapes assigned to input is a different object: {found} and {shape}"

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The nest of dimensions for some arguments of `m`."""
        named = _combined(m, args, kwargs or {})
        return tree_map(lambda each: self._shapes.get(id(each)), named)


class AdditionalInputs:
    """Further examples: dimensions that differ between them are dynamic.

    Example:
        >>> inputs = torch.export.AdditionalInputs()
        >>> inputs.add((torch.ones(2),))
        >>> inputs.add((torch.ones(3),))
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add an example."""
        assert type(args) is tuple, f"Representative args {args} must be a tuple"
        assert kwargs is None or type(kwargs) is dict, f"Representative kwargs {kwargs} must be None or a dict"
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The nest of dimensions that follows from the examples."""
        first = _combined(m, args, kwargs or {})
        others = [tree_flatten(_combined(m, *each))[0] for each in self._examples]
        position = iter(range(len(tree_flatten(first)[0])))

        def compared(leaf: Any) -> Any:
            number = next(position)
            if not isinstance(leaf, Tensor):
                return None
            sizes = [tuple(each[number].shape) for each in others]
            differs = [any(size[dim] != leaf.shape[dim] for size in sizes) for dim in range(leaf.ndim)]
            return tuple(Dim.DYNAMIC if each else None for each in differs)

        return tree_map(compared, first)

    def verify(self, ep: Any) -> None:
        """Run an exported program on the examples."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def _combined(m: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of their parameters."""
    signature = inspect.signature(m.forward if hasattr(m, "forward") else m)
    return signature.bind(*args, **kwargs).arguments


class DynamicDim(NamedTuple):
    """A dimension of an input that is not fixed."""

    leaf: int
    dim: int
    name: str
    min: int
    max: int
    must: bool
    """Whether it is an error if the program fixes it."""
    size: SizeOf
    """How large it is; bounds are those of the dimension that it follows."""


def dynamic_dimensions(m: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any) -> list[DynamicDim]:
    """The dimensions that are not fixed, of all leaves of the arguments."""
    if shapes is None:
        return []
    if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        shapes = shapes.dynamic_shapes(m, args, dict(kwargs))
    named = _combined(m, args, kwargs)
    if isinstance(shapes, (tuple, list)):
        _check_count("", len(named), len(shapes))
        shapes = dict(zip(named, shapes, strict=True))
    if not isinstance(shapes, dict):
        raise _invalid(f"Expected `dynamic_shapes` to be a dict, a list or a tuple by argument, got {type(shapes)}")
    if set(shapes) != set(named):
        raise _invalid(
            "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
            f"{list(named)} of `inputs`, but here they are {list(shapes)}"
        )
    found: list[DynamicDim] = []
    leaf = 0
    for name, value in named.items():
        leaf = _collect(value, shapes[name], leaf, (name, f"[{name!r}]"), found)
    return found


def _invalid(message: str) -> UserError:
    return UserError(UserErrorType.INVALID_INPUT, message)


def _check_count(where: str, wanted: int, given: int) -> None:
    if wanted != given:
        raise _invalid(
            "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
            f"`inputs{where}` has {wanted} elements, but `dynamic_shapes{where}` has {given} elements"
        )


def _collect(value: Any, spec: Any, leaf: int, path: tuple[str, str], found: list[DynamicDim]) -> int:
    """Note the dimensions of a nest; the number of the leaf after it. A path is a name, and how the nest is indexed."""
    name, where = path
    if isinstance(value, Tensor):
        if spec is not None:
            found += _of_tensor(value, spec, leaf, name)
        return leaf + 1
    if not isinstance(value, (list, tuple, dict)):
        return leaf + len(tree_flatten(value)[0])
    items = dict(value.items() if isinstance(value, dict) else enumerate(value))
    specs: dict[Any, Any] = dict.fromkeys(items)
    if spec is not None:
        if isinstance(spec, dict) is not isinstance(value, dict) or not isinstance(spec, (list, tuple, dict)):
            raise _invalid(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                f"`inputs{where}` is a {type(value)}, but `dynamic_shapes{where}` is a {type(spec)}"
            )
        _check_count(where, len(items), len(spec))
        specs = dict(spec.items() if isinstance(spec, dict) else enumerate(spec))
        if set(specs) != set(items):
            raise _invalid(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                f"`inputs{where}` has keys {list(items)}, but `dynamic_shapes{where}` has keys {list(specs)}"
            )
    for key, each in items.items():
        leaf = _collect(each, specs[key], leaf, (f"{name}_{key}", f"{where}[{key!r}]"), found)
    return leaf


def _of_tensor(value: Tensor, spec: Any, leaf: int, path: str) -> list[DynamicDim]:
    if not isinstance(spec, (list, tuple, dict)):
        raise _invalid(f"Expected dynamic shape spec {spec!r} of '{path}' to be a dict, a list or a tuple by dimension")
    entries = dict(spec.items() if isinstance(spec, dict) else enumerate(spec))
    if not isinstance(spec, dict) and len(entries) != value.ndim:
        raise _invalid(
            f"Expected dynamic shape spec {spec} specified at `dynamic_shapes` for '{path}' to have the same length "
            f"as the actual tensor shape {list(value.shape)} (expected {value.ndim}, but got {len(entries)} instead)"
        )
    found = []
    for dim, entry in entries.items():
        if entry is None or isinstance(entry, int) or (isinstance(entry, _DimHint) and entry.type.name == "STATIC"):
            continue
        if type(dim) is not int or not -value.ndim <= dim < value.ndim:
            raise _invalid(f"'{path}' has {value.ndim} dimensions, but `dynamic_shapes` names its dimension {dim!r}")
        number = dim % value.ndim
        if isinstance(entry, Dim):
            size = value.shape[number]
            if not entry.min <= size <= entry.max:
                raise ValueError(f"{path}.shape[{number}] is {size}, which is not within the bounds of {entry}")
            root = entry.root if isinstance(entry, _DerivedDim) else entry
            if entry.size.root(size) is None:
                raise ValueError(f"{path}.shape[{number}] is {size}, which is not of the form {entry.__name__}")
            found.append(DynamicDim(leaf, number, root.__name__, root.min, root.max, True, entry.size))
        elif isinstance(entry, _DimHint):
            low, high = entry.min or 0, INFINITE if entry.max is None else entry.max
            name = f"{path}_dim{number}"
            found.append(DynamicDim(leaf, number, name, low, high, entry.type.name == "DYNAMIC", SizeOf(name)))
        else:
            raise _invalid(
                f"Unexpected dimension mapped to index {dim} in input tensor shape {spec} of '{path}' (expected None, "
                f"an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, but got {entry!r} instead)"
            )
    return found


refine_dynamic_shapes_from_suggested_fixes = absent_function(
    "torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes",
    "errors here name the dimension, and suggest no code",
)
