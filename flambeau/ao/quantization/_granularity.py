"""Which numbers of a tensor share a scale, and how they are mapped to codes."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..._core.names.absent import refusal
from ...nn.modules.module import Module
from ._factories import _with_args


class MappingType(enum.Enum):
    """Whether the range of numbers is made symmetric before it is mapped to codes."""

    SYMMETRIC = enum.auto()
    SYMMETRIC_NO_CLIPPING_ERR = enum.auto()
    ASYMMETRIC = enum.auto()


class ZeroPointDomain(enum.Enum):
    """Whether zero points are codes, numbers, or absent."""

    INT = enum.auto()
    FLOAT = enum.auto()
    NONE = enum.auto()


class TorchAODType(enum.Enum):
    """Integers of less than eight bits."""

    INT1 = enum.auto()
    INT2 = enum.auto()
    INT3 = enum.auto()
    INT4 = enum.auto()
    INT5 = enum.auto()
    INT6 = enum.auto()
    INT7 = enum.auto()


@dataclass(frozen=True)
class Granularity:
    """Which numbers share a scale."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """The numbers of a block of a given shape share a scale."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All numbers of the tensor share a scale."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """The numbers of one slice along an axis share a scale."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """Groups of `group_size` neighbours in a row share a scale."""

    group_size: int


class PerRow(Granularity):
    """The numbers of a row share a scale."""


class PerToken(Granularity):
    """The numbers of one token share a scale: those that differ in the last dimension alone."""


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The shape of the blocks whose numbers share a scale.

    >>> from flambeau.ao.quantization import PerAxis, get_block_size
    >>> get_block_size((8, 16), PerAxis(0))
    (1, 16)
    """
    if not isinstance(granularity, Granularity):
        raise AssertionError("Please provide an instance of Granularity, not subclass of it")
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerAxis):
        axis = range(len(input_shape))[granularity.axis]
        return (*input_shape[:axis], 1, *input_shape[axis + 1 :])
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(input_shape) - 1) + input_shape[-1:]
    if isinstance(granularity, PerGroup):
        if len(input_shape) != 2:
            raise AssertionError(
                f"Expecting input shape dim to be 2 for per group quantization, got input shape: {input_shape}"
            )
        return (1, granularity.group_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(Module, ABC):
    """What watches numbers in blocks of any shape; a subclass says how."""

    with_args = classmethod(_with_args)

    def __init__(
        self,
        mapping_type: MappingType,
        target_dtype: Any,
        granularity: Granularity,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        scale_dtype: Any = None,
        zero_point_dtype: Any = None,
        preserve_zero: bool = True,
        zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type = mapping_type
        self.target_dtype = target_dtype
        self.granularity = granularity
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.eps = eps
        self.scale_dtype = scale_dtype
        self.zero_point_dtype = zero_point_dtype
        self.preserve_zero = preserve_zero
        self.zero_point_domain = zero_point_domain
        self.block_size: Any = None
        self.original_dtype: Any = None

    @abstractmethod
    def forward(self, input: Any) -> Any:
        """Watch a tensor, and give it back."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Any, Any]:
        """Scales and zero points for what was seen."""

    def convert(self, model: Any, observer_node: Any) -> Any:
        """An error: exported graphs are not quantized."""
        raise refusal("AffineQuantizedObserverBase.convert", "exported graphs are not quantized, traced ones are")
