"""TorchScript's types as objects: `ListType(IntType.get())`, how they read, and which are subtypes of which."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from .._core.device import device as Device
from .._core.dtype import dtype as DType
from .._core.tensor import Tensor

Own = TypeVar("Own", bound="Type")
Text = str
"""As a name of its own: types have a method `str`."""

_RANKS = [
    "AnyType",
    "EnumType",
    "TensorType",
    "TupleType",
    "ListType",
    "DictType",
    "NumberType",
    "FloatType",
    "ComplexType",
    "FutureType",
    "AwaitType",
    "RRefType",
    "IntType",
    "NoneType",
    "StringType",
    "GeneratorType",
    "BoolType",
    "OptionalType",
    "DeviceObjType",
    "StreamObjType",
    "ClassType",
    "PyObjectType",
    "InterfaceType",
    "SymIntType",
    "SymBoolType",
    "UnionType",
]
"""The order in which the alternatives of a union are written."""


class Type:
    """A type of TorchScript's."""

    _word: ClassVar[Text] = ""
    _inner: tuple[Type, ...] = ()

    @classmethod
    def get(cls: type[Own]) -> Own:
        """The type, of which there is one."""
        return cls()

    @property
    def annotation_str(self) -> Text:
        """The type as an annotation of Python's."""
        if not self._inner:
            return self._word
        return f"{self._word}[{', '.join(each.annotation_str for each in self._inner)}]"

    def str(self) -> Text:
        """The type as schemas write it."""
        return self.annotation_str

    def __repr__(self) -> Text:
        return self.annotation_str

    def kind(self) -> Text:
        """The name of the class of types."""
        return type(self).__name__

    def containedTypes(self) -> list[Type]:
        """The types inside of it."""
        return list(self._inner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.kind() == other.kind() and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.kind(), self.annotation_str))

    def _key(self) -> Any:
        return self._word, self._inner

    def isSubtypeOf(self, other: Type) -> bool:
        """Whether every value of this type is one of the other."""
        if isinstance(other, AnyType) or self == other:
            return True
        if isinstance(self, UnionType):
            return all(each.isSubtypeOf(other) for each in self._inner)
        if isinstance(other, UnionType):
            return any(self.isSubtypeOf(each) for each in other._inner)
        return self._is_below(other)

    def _is_below(self, other: Type) -> bool:
        return False

    def is_interface_type(self) -> bool:
        """Whether it says only which methods a value has."""
        return isinstance(self, InterfaceType)

    def _as_tensor(self) -> TensorType:
        if not isinstance(self, TensorType):
            raise RuntimeError(f"a type of tensors is needed, and this is {self.annotation_str}")
        return self

    def dim(self) -> int | None:
        """The number of dimensions, where a type of tensors says it."""
        sizes = self._as_tensor()._sizes
        return None if sizes is None else len(sizes)

    def sizes(self) -> list[int] | None:
        """The sizes, where a type of tensors says them."""
        sizes = self._as_tensor()._sizes
        return None if sizes is None else list(sizes)

    varyingSizes = symbolic_sizes = sizes

    def strides(self) -> list[int] | None:
        """The strides, where a type of tensors says them."""
        strides = self._as_tensor()._strides
        return None if strides is None else list(strides)

    def dtype(self) -> DType | None:
        """The dtype, where a type of tensors says it."""
        return self._as_tensor()._dtype

    def scalarType(self) -> Text | None:
        """The older name of the dtype, where a type of tensors says it."""
        found = self._as_tensor()._dtype
        return None if found is None else _SCALAR_NAMES.get(found.name, found.name)

    def device(self) -> Device | None:
        """The device, where a type of tensors says it."""
        return self._as_tensor()._device

    def requires_grad(self) -> bool:
        """Whether it is known that a tensor needs gradients."""
        return self._as_tensor()._requires_grad if isinstance(self, TensorType) else False

    def undefined(self) -> bool:
        """Whether it is the type of no tensor at all."""
        self._as_tensor()
        return False

    def contiguous(self) -> TensorType:
        """The type with strides in the order of the dimensions."""
        known = self._as_tensor()
        return known._with(_strides=None if known._sizes is None else _in_order(known._sizes))

    def with_sizes(self, sizes: Sequence[int] | None) -> TensorType:
        """The type with other sizes, and nothing known of strides."""
        return self._as_tensor()._with(_sizes=None if sizes is None else tuple(sizes), _strides=None)

    def with_dtype(self, dtype: Any) -> TensorType:
        """The type with another dtype."""
        return self._as_tensor()._with(_dtype=dtype)

    def with_device(self, device: Any) -> TensorType:
        """The type on another device."""
        return self._as_tensor()._with(_device=device)


_SCALAR_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip


def _in_order(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class AnyType(Type):
    """The type of every value."""

    _word = "Any"


class _Number(Type):
    """A kind of numbers."""

    def _is_below(self, other: Type) -> bool:
        return isinstance(other, NumberType)


class IntType(_Number):
    """The type of whole numbers."""

    _word = "int"


class FloatType(_Number):
    """The type of floating-point numbers."""

    _word = "float"


class ComplexType(_Number):
    """The type of complex numbers."""

    _word = "complex"


class NumberType(Type):
    """Integers, floating-point and complex numbers."""

    _word = "number"

    def str(self) -> Text:
        """The type as schemas write it."""
        return "Scalar"


class BoolType(Type):
    """The type of True and False."""

    _word = "bool"


class StringType(Type):
    """The type of texts."""

    _word = "str"


class NoneType(Type):
    """The type of None."""

    _word = "NoneType"

    def _is_below(self, other: Type) -> bool:
        return isinstance(other, OptionalType)


class DeviceObjType(Type):
    """The type of devices."""

    _word = "Device"


class StreamObjType(Type):
    """The type of streams."""

    _word = "Stream"


class PyObjectType(Type):
    """Objects of Python's that TorchScript knows nothing about."""

    _word = "PyObject"


class GeneratorType(Type):
    """Generators of random numbers."""

    _word = "Generator"


class SymIntType(_Number):
    """Sizes that a compiler does not know yet."""

    _word = "int"


class SymBoolType(Type):
    """Conditions on such sizes."""

    _word = "bool"


class TensorType(Type):
    """Tensors; some of these types say of which dtype, device and sizes."""

    _word = "Tensor"
    _sizes: tuple[int, ...] | None = None
    _strides: tuple[int, ...] | None = None
    _dtype: DType | None = None
    _device: Device | None = None
    _requires_grad: bool = False

    @staticmethod
    def getInferred() -> TensorType:
        """The type of tensors that nobody annotated."""
        return TensorType()

    @staticmethod
    def create_from_tensor(t: Tensor) -> TensorType:
        """The type that says everything about a tensor."""
        return TensorType()._with(
            _sizes=tuple(t.shape),
            _strides=tuple(t.stride()),
            _dtype=t.dtype,
            _device=t.device,
            _requires_grad=t.requires_grad,
        )

    def _with(self, **changes: Any) -> TensorType:
        made = TensorType()
        vars(made).update(vars(self) | changes)
        return made

    def _key(self) -> Any:
        return self._sizes, self._strides, self._dtype, self._device, self._requires_grad

    def _is_below(self, other: Type) -> bool:
        if isinstance(other, OptionalType):
            return self.isSubtypeOf(other.getElementType())
        known = zip(self._key(), other._key(), strict=True) if isinstance(other, TensorType) else [(0, 1)]
        return all(theirs in (None, False) or own == theirs for own, theirs in known)


class _OfOne(Type):
    """A type around another one."""

    def __init__(self, a: Type) -> None:
        self._inner = (a,)

    def getElementType(self) -> Type:
        """The type of what stands inside."""
        return self._inner[0]


class ListType(_OfOne):
    """The type of lists, with that of their items."""

    _word = "List"

    def str(self) -> Text:
        """The type as schemas write it."""
        return f"{self._inner[0].str()}[]"

    @staticmethod
    def ofInts() -> ListType:
        """`List[int]`."""
        return ListType(IntType())

    @staticmethod
    def ofTensors() -> ListType:
        """`List[Tensor]`."""
        return ListType(TensorType())

    @staticmethod
    def ofFloats() -> ListType:
        """`List[float]`."""
        return ListType(FloatType())

    @staticmethod
    def ofComplexDoubles() -> ListType:
        """`List[complex]`."""
        return ListType(ComplexType())

    @staticmethod
    def ofBools() -> ListType:
        """`List[bool]`."""
        return ListType(BoolType())

    @staticmethod
    def ofStrings() -> ListType:
        """`List[str]`."""
        return ListType(StringType())


class FutureType(_OfOne):
    """What will be a value."""

    _word = "Future"


class AwaitType(_OfOne):
    """What becomes a value when it is asked for."""

    _word = "Await"


class RRefType(_OfOne):
    """A value in another process."""

    _word = "RRef"


class DictType(Type):
    """The type of dictionaries, with those of keys and values."""

    _word = "Dict"

    def __init__(self, key: Type, value: Type) -> None:
        self._inner = (key, value)

    def getKeyType(self) -> Type:
        """The type of the keys."""
        return self._inner[0]

    def getValueType(self) -> Type:
        """The type of the values."""
        return self._inner[1]


class TupleType(Type):
    """Tuples of a certain length."""

    _word = "Tuple"

    def __init__(self, a: Sequence[Type]) -> None:
        self._inner = tuple(a)

    @property
    def annotation_str(self) -> Text:
        """The type as an annotation of Python's."""
        return super().annotation_str if self._inner else "Tuple[()]"

    def str(self) -> Text:
        """The type as schemas write it."""
        return f"({', '.join(each.str() for each in self._inner)})"

    def elements(self) -> list[Type]:
        """The types of the elements."""
        return list(self._inner)

    def _is_below(self, other: Type) -> bool:
        if not isinstance(other, TupleType) or len(self._inner) != len(other._inner):
            return False
        return all(own.isSubtypeOf(theirs) for own, theirs in zip(self._inner, other._inner, strict=True))


class UnionType(Type):
    """Values of any of several types."""

    _word = "Union"

    def __init__(self, a: Sequence[Type]) -> None:
        flat = [inner for each in a for inner in (each._inner if isinstance(each, UnionType) else (each,))]
        kept = [
            each
            for number, each in enumerate(flat)
            if each not in flat[:number] and not any(other != each and each.isSubtypeOf(other) for other in flat)
        ]
        self._inner = tuple(sorted(kept, key=lambda each: _RANKS.index(each.kind())))

    def kind(self) -> Text:
        """The name of the class of types: a value or None is optional."""
        return "OptionalType" if self._is_optional() else "UnionType"

    def _is_optional(self) -> bool:
        return len(self._inner) == 2 and any(isinstance(each, NoneType) for each in self._inner)

    @property
    def annotation_str(self) -> Text:
        """The type as an annotation of Python's."""
        if self._is_optional():
            return f"Optional[{self._element().annotation_str}]"
        return super().annotation_str

    def str(self) -> Text:
        """The type as schemas write it."""
        return f"{self._element().str()}?" if self._is_optional() else self.annotation_str

    def containedTypes(self) -> list[Type]:
        """The alternatives; of an optional one, the value's."""
        return [self._element()] if self._is_optional() else super().containedTypes()

    def _element(self) -> Type:
        return next(each for each in self._inner if not isinstance(each, NoneType))

    def _key(self) -> Any:
        return frozenset(self._inner)


class OptionalType(UnionType):
    """A value or None."""

    def __init__(self, a: Type) -> None:
        super().__init__([a, NoneType()])

    def getElementType(self) -> Type:
        """The type of the value, where there is one."""
        return self._element()

    @staticmethod
    def ofTensor() -> OptionalType:
        """`Optional[Tensor]`."""
        return OptionalType(TensorType())


class _Named(Type):
    """A type that a program defines."""

    def __init__(self, qualified_name: Text, defined: Any = None) -> None:
        self._qualified_name = qualified_name
        self._defined = defined

    @property
    def annotation_str(self) -> Text:
        """The type as an annotation of Python's."""
        return self._qualified_name

    def _key(self) -> Any:
        return self._qualified_name


class ClassType(_Named):
    """Objects of a class."""

    def name(self) -> Text:
        """The name of the class."""
        return self._qualified_name.rpartition(".")[2]

    def qualified_name(self) -> Text:
        """The name of the class with the module's."""
        return self._qualified_name

    def method_names(self) -> list[Text]:
        """The methods that the class defines."""
        return [name for name, value in vars(self._defined).items() if callable(value)] if self._defined else []


class InterfaceType(_Named):
    """Objects that have certain methods."""

    def getMethodNames(self) -> list[Text]:
        """The methods that a value must have."""
        return [name for name, value in vars(self._defined).items() if callable(value)] if self._defined else []

    def getMethod(self, name: Text) -> Callable[..., Any]:
        """The method with a name."""
        method: Callable[..., Any] = getattr(self._defined, name)
        return method


class EnumType(_Named):
    """The members of an enumeration."""


class InferredType:
    """The type of a value, or why it has none."""

    def __init__(self, arg0: Any) -> None:
        self._found = arg0

    def success(self) -> bool:
        """Whether there is one."""
        return isinstance(self._found, Type)

    def type(self) -> Type:
        """The type."""
        if not isinstance(self._found, Type):
            raise RuntimeError(f"there is no type: {self._found}")
        return self._found

    def reason(self) -> Text:
        """Why there is none."""
        return "" if self.success() else Text(self._found)


def unify_type_list(types: Sequence[Type]) -> Type:
    """The type of a list with elements of these types; a RuntimeError if no type holds them all."""
    if not types:
        raise RuntimeError("Cannot get type from empty list")
    common = types[0]
    for number, each in enumerate(types[1:], 1):
        if each.isSubtypeOf(common):
            continue
        if common.isSubtypeOf(each):
            common = each
        elif isinstance(each, NoneType) or isinstance(common, NoneType):
            common = OptionalType(common if isinstance(each, NoneType) else each)
        else:
            before = ", ".join(other.annotation_str for other in types[:number])
            raise RuntimeError(
                f"Could not unify type list since element {number} of type {each.annotation_str} did not match the "
                f"types before it ({before})"
            )
    return common


_OF_SCHEMAS: dict[Text, Type] = {
    "Tensor": TensorType(),
    "int": IntType(),
    "SymInt": SymIntType(),
    "SymBool": SymBoolType(),
    "SymFloat": FloatType(),
    "float": FloatType(),
    "bool": BoolType(),
    "str": StringType(),
    "complex": ComplexType(),
    "Scalar": NumberType(),
    "Device": DeviceObjType(),
    "Stream": StreamObjType(),
    "Generator": GeneratorType(),
    "Any": AnyType(),
    **dict.fromkeys(("ScalarType", "Layout", "MemoryFormat", "QScheme", "DeviceIndex"), IntType()),
    **dict.fromkeys(("Dimname", "Storage"), AnyType()),
}


def of_schema(text: Text) -> Type:
    """The type that a schema writes as `int[2]?`."""
    word = re.match(r"\w+", text)
    assert word is not None
    found = _OF_SCHEMAS[word[0]]
    for suffix in re.findall(r"\[\d*\]|\?", text[word.end() :]):
        found = OptionalType(found) if suffix == "?" else ListType(found)
    return found
