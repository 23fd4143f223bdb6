"""The types of elements as CUDA C sees them: what stands in memory and what is computed with."""

from __future__ import annotations

from typing import NamedTuple


class CType(NamedTuple):
    """A dtype in generated code: `memory` is its form in an array, `compute` the one in registers."""

    name: str
    memory: str
    compute: str
    size: int

    @property
    def is_half(self) -> bool:
        """Whether it is a float that is kept as bits and computed with in float32."""
        return self.name in ("float16", "bfloat16")

    @property
    def is_complex(self) -> bool:
        return self.name.startswith("complex")

    def loaded(self, place: str) -> str:
        """The value of the element at a place in memory."""
        return f"from_{self.name}({place})" if self.is_half else place

    def stored(self, value: str) -> str:
        """What is to stand in memory for a value."""
        return f"to_{self.name}({value})" if self.is_half else value

    def converted(self, value: str, source: CType) -> str:
        """A value of `source` as one of this type."""
        if self.compute != source.compute:
            value = f"Cast<{self.compute}, {source.compute}>::of({value})"
        return f"round_{self.name}({value})" if self.is_half and source.name != self.name else value


TYPES: dict[str, CType] = {
    each.name: each
    for each in (
        CType("bool", "bool", "bool", 1),
        CType("int8", "i8", "i8", 1),
        CType("uint8", "u8", "u8", 1),
        CType("int16", "i16", "i16", 2),
        CType("uint16", "u16", "u16", 2),
        CType("int32", "i32", "i32", 4),
        CType("uint32", "u32", "u32", 4),
        CType("int64", "i64", "i64", 8),
        CType("uint64", "u64", "u64", 8),
        CType("float16", "u16", "float", 2),
        CType("bfloat16", "u16", "float", 2),
        CType("float32", "float", "float", 4),
        CType("float64", "double", "double", 8),
        CType("complex64", "c64", "c64", 8),
        CType("complex128", "c128", "c128", 16),
    )
}
"""The types that generated kernels read and write, by the names of NumPy's dtypes."""
