"""Element types: `float32`, `int64`, ..., their limits, and the rules by which they combine."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
"""The promotion categories, in ascending order."""


_FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_NOT_NUMPYS = ("bfloat16", "complex32", "float8_e8m0fnu", *_FLOAT8)
HAS_ML_DTYPES = importlib.util.find_spec("ml_dtypes") is not None
"""Whether the package is there that adds to NumPy the types that it lacks. Without it their arrays hold bits."""


def float_bits() -> ModuleType:
    """The module that converts the types that NumPy lacks by their bits, imported on first use."""
    from .arrays import float_bits

    return float_bits


class dtype:
    """The type of a tensor's elements, as in `torch.float32`.

    Args:
        name (str): its name.
        category (int): the category that decides about promotion: bool, integer, float or complex.
        itemsize (int): the bytes of one element.
        is_signed (bool): whether it has negative numbers. Default: `True`.
        wide (dtype, optional): the dtype in which it is computed, if not in itself.

    Example:
        >>> torch.float16.itemsize, torch.float16.is_floating_point, torch.ones(2).dtype
        (2, True, torch.float32)
    """

    __slots__ = ("category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy", "wide")
    numpy: np.dtype[Any]

    def __init__(
        self, name: str, category: int, itemsize: int, *, is_signed: bool = True, wide: dtype | None = None
    ) -> None:
        self.name = name
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = is_signed
        self.wide = wide
        """Of a type that kernels do not compute in, the one in which they do; None for all others."""
        if name not in _NOT_NUMPYS:
            self.numpy = np.dtype(name)

    def __getattr__(self, attribute: str) -> Any:
        # NumPy itself lacks some types: their array types live in a package that is imported on first use.
        if attribute == "numpy":
            if HAS_ML_DTYPES:
                import ml_dtypes

                self.numpy = np.dtype(getattr(ml_dtypes, self.name))
            else:
                self.numpy = float_bits().ARRAY_TYPES[self.name]
            FROM_NUMPY[self.numpy] = self
            if self.wide is not None:
                WIDE_TYPES[self.numpy] = self.wide.numpy
            return self.numpy
        raise AttributeError(f"'torch.dtype' object has no attribute {attribute!r}")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        if dtype.__module__ == "torch":  # Flambeau stands in for it: a dtype is a name of the package
            return self.name
        return dtype_named, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> dtype:
        return self

    @property
    def abbr(self) -> str:
        """A short name: f32 for float32."""
        name = self.name.replace("bfloat", "bf").replace("complex", "c").replace("float", "f")
        name = re.sub(r"^u?int(?=\d\d|8)", lambda found: "u" if found[0] == "uint" else "i", name)
        name = name.replace("bool", "b8").replace("_", "")
        if name.startswith("bits"):
            name = name.replace("bits", "b")
            return name if "x" in name else f"{name}x1"
        return name

    def to_complex(self) -> dtype:
        """The complex type whose parts have this precision."""
        found = self if self.is_complex else _COMPLEX_OF.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {LEGACY_NAMES[self]}: it has no complex counterpart")
        return found

    def to_real(self) -> dtype:
        """The real type of this type's parts."""
        return _REAL_OF.get(self, self)


bool_ = dtype("bool", BOOL, 1, is_signed=False)
uint8 = dtype("uint8", INTEGER, 1, is_signed=False)
int8 = dtype("int8", INTEGER, 1)
int16 = dtype("int16", INTEGER, 2)
int32 = dtype("int32", INTEGER, 4)
int64 = dtype("int64", INTEGER, 8)
uint16 = dtype("uint16", INTEGER, 2, is_signed=False)
uint32 = dtype("uint32", INTEGER, 4, is_signed=False)
uint64 = dtype("uint64", INTEGER, 8, is_signed=False)
float16 = dtype("float16", FLOAT, 2)
float32 = dtype("float32", FLOAT, 4)
bfloat16 = dtype("bfloat16", FLOAT, 2, wide=None if HAS_ML_DTYPES else float32)
float64 = dtype("float64", FLOAT, 8)
complex64 = dtype("complex64", COMPLEX, 8)
complex128 = dtype("complex128", COMPLEX, 16)
complex32 = dtype("complex32", COMPLEX, 4, wide=complex64)
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz = FLOAT8 = tuple(
    dtype(name, FLOAT, 1, wide=float32) for name in _FLOAT8
)
float8_e8m0fnu = dtype("float8_e8m0fnu", FLOAT, 1, is_signed=False, wide=float32)
"""Powers of two: scales of blocks."""

_COMPLEX_OF = {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}
_REAL_OF = {complex32: float16, complex64: float32, complex128: float64}


class _PackedDtype(dtype):
    """A type for packed or quantized data: its tensors can be made, viewed, copied and saved, and not computed with.

    Its arrays have records of one field without a meaning: no kernel takes them for numbers, nor converts them.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.category = FLOAT if name.startswith("float") else INTEGER
        self.itemsize = {"bits16": 2, "qint32": 4}.get(name, 1)
        self.is_floating_point = self.category == FLOAT
        self.is_complex = False
        self.wide = None
        if not name.startswith(("bits", "q")):
            self.is_signed = not name.startswith("uint")

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "is_signed":
            raise RuntimeError(
                "Bits types are undefined" if self.name.startswith("bits") else
                "isSignedType not supported for quantized types"
            )  # fmt: skip
        if attribute == "numpy":
            self.numpy = np.dtype([(self.name, f"V{self.itemsize}")])
            FROM_NUMPY[self.numpy] = self
            return self.numpy
        raise AttributeError(f"'torch.dtype' object has no attribute {attribute!r}")


def is_packed(element: dtype) -> bool:
    """Whether a type is one of packed or quantized data."""
    return isinstance(element, _PackedDtype)


_PACKED: dict[str, dtype] = {
    name: _PackedDtype(name)
    for name in (
        "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
        "qint8", "qint32", "quint8", "quint4x2", "quint2x4",
    )
}  # fmt: skip


def _packed_name(name: str) -> str:
    """'QUInt4x2' of 'quint4x2', 'UInt3' of 'uint3'."""
    return re.sub(r"^(q?u?)int", lambda found: f"{found[1].upper()}Int", name) if "int" in name else name.capitalize()


ALL_DTYPES = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    *FLOAT8, float16, bfloat16, float32, float64, complex32, complex64, complex128,
)  # fmt: skip
NAMES: dict[str, dtype] = {each.name: each for each in ALL_DTYPES} | {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "chalf": complex32, "cfloat": complex64, "cdouble": complex128, "bit": _PACKED["uint1"],
    "float8_e8m0fnu": float8_e8m0fnu, **_PACKED,
}  # fmt: skip
"""Every name under which the package exports a dtype."""

FROM_NUMPY: dict[np.dtype[Any], dtype] = {each.numpy: each for each in ALL_DTYPES if each.name not in _NOT_NUMPYS}
WIDE_TYPES: dict[np.dtype[Any], np.dtype[Any]] = {}
"""The array type in which kernels compute, for the ones in use in which they do not."""

LEGACY_NAMES = {
    float32: "Float", float64: "Double", float16: "Half", bfloat16: "BFloat16", uint8: "Byte", int8: "Char",
    int16: "Short", int32: "Int", int64: "Long", bool_: "Bool", complex64: "ComplexFloat", complex128: "ComplexDouble",
    uint16: "UInt16", uint32: "UInt32", uint64: "UInt64", complex32: "ComplexHalf",
    **{each: each.name.capitalize() for each in FLOAT8},
    float8_e8m0fnu: "Float8_e8m0fnu", **{each: _packed_name(name) for name, each in _PACKED.items()},
}  # fmt: skip
"""The names of error messages and of the legacy tensor types: `torch.FloatTensor`."""


C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int", "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    **{name: f"c10::{name.capitalize()}" for name in _FLOAT8},
}  # fmt: skip
"""What PyTorch's messages call the types of elements, by the name of the dtype."""


def dtype_named(name: str) -> dtype:
    """The dtype called `name`; pickles name dtypes so."""
    return NAMES[name]


def from_numpy_dtype(array_type: np.dtype[Any]) -> dtype:
    """The dtype of arrays of `array_type`, or a TypeError that lists the supported ones."""
    found = FROM_NUMPY.get(array_type)
    if found is None:
        if array_type.name in _NOT_NUMPYS:
            named = NAMES[array_type.name]
            return named if named.numpy == array_type else _unsupported(array_type)
        if not array_type.isnative:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. "
                "Convert it first: array.astype(array.dtype.newbyteorder('='))"
            )
        found = FROM_NUMPY.get(np.dtype(array_type.type)) or _unsupported(array_type)
    return found


def _unsupported(array_type: np.dtype[Any]) -> dtype:
    names = ", ".join(each.name for each in reversed(ALL_DTYPES))
    raise TypeError(
        f"can't convert np.ndarray of type {array_type.type.__module__}.{array_type.type.__name__}. "
        f"The only supported types are: {names}."
    )


class _Defaults:
    """The process-wide default element types."""

    __slots__ = ("complex", "float")

    def __init__(self) -> None:
        self.float = float32
        self.complex = complex64


DEFAULTS = _Defaults()


def get_default_dtype() -> dtype:
    """The element type of float tensors made from Python numbers.

    Returns:
        dtype: the dtype.

    Example:
        >>> torch.get_default_dtype()
        torch.float32
    """
    return DEFAULTS.float


def set_default_dtype(d: dtype) -> None:
    """Choose the element type of float tensors made from Python numbers.

    Args:
        d (dtype): a floating-point dtype.

    Example:
        >>> torch.set_default_dtype(torch.float64)
        >>> torch.tensor(1.0).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: only floating-point types are supported as the default type, got {d!r}")
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d}")
    if d in FLOAT8:
        raise TypeError(f"couldn't find storage object {LEGACY_NAMES[d]}Storage: {d} cannot be the default type")
    DEFAULTS.float = d
    DEFAULTS.complex = d.to_complex()


_UNSIGNED_WIDE = frozenset({uint16, uint32, uint64})
_PROMOTED: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that holds both, by PyTorch's lattice.

    Args:
        type1 (dtype): one dtype.
        type2 (dtype): the other.

    Returns:
        dtype: the dtype of results of both.

    Example:
        >>> torch.promote_types(torch.int64, torch.float16)
        torch.float16
    """
    if type1 is type2:
        return type1
    found = _PROMOTED.get((type1, type2))
    if found is None:
        if not (isinstance(type1, dtype) and isinstance(type2, dtype)):
            raise TypeError(f"promote_types(): both arguments must be torch.dtype, not {type1!r} and {type2!r}")
        found = _PROMOTED[type1, type2] = _promote(type1, type2)
    return found


def _promote(left: dtype, right: dtype) -> dtype:
    if left in FLOAT8 or right in FLOAT8:
        _refuse_promotion("Float8 Types", left, right)
    if left.category > right.category:
        left, right = right, left
    if (left in _UNSIGNED_WIDE and right.category == COMPLEX) or (right in _UNSIGNED_WIDE and left.category == BOOL):
        _refuse_promotion("uint16, uint32, uint64 types", left, right)
    if left.category != right.category:
        if right.category != COMPLEX or left.category != FLOAT:
            return right
        return promote_types(left.to_complex(), right)
    if left.category == INTEGER:
        if left in _UNSIGNED_WIDE or right in _UNSIGNED_WIDE:
            _refuse_promotion("uint16, uint32, uint64 types", left, right)
        if left is uint8 or right is uint8:
            signed = right if left is uint8 else left
            return int16 if signed is int8 else signed
    if left.itemsize == right.itemsize:  # float16 with bfloat16
        return float32
    return left if left.itemsize > right.itemsize else right


def _refuse_promotion(types: str, left: dtype, right: dtype) -> NoReturn:
    raise RuntimeError(
        f"Promotion for {types} is not supported, attempted to promote {LEGACY_NAMES[left]} and {LEGACY_NAMES[right]}. "
        f"Convert one of them first, for example with .to({left})"
    )


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch's in-place operations would store a `from_` result in a `to` tensor."""
    return from_.category <= to.category


class finfo:
    """Limits of a floating-point type.

    Args:
        type (dtype, optional): a floating-point or complex dtype; None means the default dtype.

    Example:
        >>> torch.finfo(torch.float16).max, torch.finfo(torch.float32).eps
        (65504.0, 1.1920928955078125e-07)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        dtype_ = DEFAULTS.float if type is None else type
        if not isinstance(dtype_, dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
        if dtype_.category < FLOAT:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype_}'")
        dtype_ = dtype_.to_real()
        limits: Any
        if dtype_ is bfloat16 or dtype_ in FLOAT8:
            limits = float_bits().limits(dtype_.name)
        else:
            limits = np.finfo(dtype_.numpy)
        self.dtype = dtype_.name
        self.bits = dtype_.itemsize * 8
        # PyTorch's value for one of the types, though the numbers next to 1 are 0.25 apart there.
        self.eps = 0.125 if dtype_ is float8_e5m2fnuz else float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        self.resolution = 10.0 ** -_DECIMAL_DIGITS[dtype_]

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


_DECIMAL_DIGITS = {**dict.fromkeys(FLOAT8, 0), float16: 3, bfloat16: 2, float32: 6, float64: 15}


class iinfo:
    """Limits of an integer type.

    Args:
        type (dtype): an integer dtype.

    Example:
        >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max
        (-128, 127)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
        if type.category != INTEGER:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        limits = np.iinfo(type.numpy)
        self.dtype = type.name
        self.bits = type.itemsize * 8
        self.max = int(limits.max)
        self.min = int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
