"""What a backend can quantize: patterns of layers and functions, with the types that they take and give."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

from ..._constructors import setter
from ..utils import Pattern

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]


class ObservationType(enum.Enum):
    """Where the observers of a pattern stand."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclasses.dataclass
class DTypeWithConstraints:
    """A type with bounds of codes and of scales, or with the one scale and zero point that are taken."""

    dtype: Any = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


def _constrained(given: Any) -> DTypeWithConstraints:
    return given if isinstance(given, DTypeWithConstraints) else DTypeWithConstraints(given)


@dataclasses.dataclass(init=False)
class DTypeConfig:
    """The types of a pattern's input, output, weight and bias; `is_dynamic`: scales are found with each input."""

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: Any
    is_dynamic: bool | None

    def __init__(
        self,
        input_dtype: Any = None,
        output_dtype: Any = None,
        weight_dtype: Any = None,
        bias_dtype: Any = None,
        is_dynamic: bool | None = None,
    ) -> None:
        self.input_dtype_with_constraints = _constrained(input_dtype)
        self.output_dtype_with_constraints = _constrained(output_dtype)
        self.weight_dtype_with_constraints = _constrained(weight_dtype)
        self.bias_dtype = bias_dtype
        self.is_dynamic = is_dynamic

    @property
    def input_dtype(self) -> Any:
        """The type of the input."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> Any:
        """The type of the result."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> Any:
        """The type of the weight."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """Types from a dictionary of them; what is not in it is not said."""
        names = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")
        return cls(*(dtype_config_dict.get(name) for name in names))

    def to_dict(self) -> dict[str, Any]:
        """This configuration as a dictionary, as older programs have it."""
        found: dict[str, Any] = {}
        for name in ("input_dtype", "output_dtype", "weight_dtype"):
            own = getattr(self, f"{name}_with_constraints")
            if own != DTypeWithConstraints():
                found[name] = own
        if self.bias_dtype is not None:
            found["bias_dtype"] = self.bias_dtype
        if self.is_dynamic is not None:
            found["is_dynamic"] = self.is_dynamic
        return found


def reversed_nested(pattern: Pattern) -> Pattern:
    """A row of two or three as nested pairs, the last first: (conv, bn, relu) is (relu, (bn, conv))."""
    if not isinstance(pattern, tuple):
        return pattern
    if len(pattern) == 2:
        return pattern[1], pattern[0]
    if len(pattern) == 3:
        return pattern[2], (pattern[1], pattern[0])
    raise ValueError("Expected a tuple with 2 or 3 elements, got: ", pattern)


_Chained = Callable[..., "BackendPatternConfig"]


class BackendPatternConfig:
    """How one pattern is quantized; the setters return the object."""

    _SAVED = (
        ("observation_type", "observation_type"),
        ("root_module", "root_module"),
        ("qat_module", "qat_module"),
        ("reference_quantized_module", "reference_quantized_module_for_root"),
        ("fused_module", "fused_module"),
        ("fuser_method", "fuser_method"),
        ("_root_node_getter", "root_node_getter"),
        ("_extra_inputs_getter", "extra_inputs_getter"),
        ("_num_tensor_args_to_observation_type", "num_tensor_args_to_observation_type"),
        ("_input_type_to_index", "input_type_to_index"),
        ("_pattern_complex_format", "pattern_complex_format"),
    )
    """What a pattern says besides its types, as attributes and as entries of dictionaries."""

    def __init__(self, pattern: Pattern | None = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: type | None = None
        self.qat_module: type | None = None
        self.reference_quantized_module: type | None = None
        self.fused_module: type | None = None
        self.fuser_method: Callable[..., Any] | None = None
        self._root_node_getter: Callable[..., Any] | None = None
        self._extra_inputs_getter: Callable[..., Any] | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Pattern | None = None

    def __repr__(self) -> str:
        said = {name: value for name, value in vars(self).items() if value not in (None, [], {})}
        return f"BackendPatternConfig({said})"

    def set_pattern(self, pattern: Pattern) -> BackendPatternConfig:
        """A layer's class, a function, a method's name, or two or three of these in a row."""
        if self._pattern_complex_format is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        self.pattern = pattern
        return self

    set_observation_type: _Chained = setter(
        "observation_type", "Say which inputs and results of the pattern are watched."
    )

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """One more combination of types."""
        self.dtype_configs.append(dtype_config)
        return self

    set_dtype_configs: _Chained = setter("dtype_configs", "All combinations of types.")
    set_root_module: _Chained = setter("root_module", "The class of the layer that has the weight.")
    set_qat_module: _Chained = setter("qat_module", "The class that takes its place for training.")
    set_reference_quantized_module: _Chained = setter(
        "reference_quantized_module", "The class that computes in floats as the quantized one will."
    )
    set_fused_module: _Chained = setter("fused_module", "The class of what the pattern becomes.")
    set_fuser_method: _Chained = setter("fuser_method", "What makes that of `is_qat` and the parts.")
    _set_root_node_getter: _Chained = setter("_root_node_getter", None, "root_node_getter")
    _set_extra_inputs_getter: _Chained = setter("_extra_inputs_getter", None, "extra_inputs_getter")
    _set_num_tensor_args_to_observation_type: _Chained = setter("_num_tensor_args_to_observation_type", None, "given")
    _set_input_type_to_index: _Chained = setter("_input_type_to_index", None, "input_type_to_index")

    def _set_pattern_complex_format(self, pattern: Pattern) -> BackendPatternConfig:
        if self.pattern is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        self._pattern_complex_format = pattern
        return self

    @property
    def nested_pattern(self) -> Pattern:
        """The pattern as nested tuples, the last node first."""
        return reversed_nested(self.pattern) if self._pattern_complex_format is None else self._pattern_complex_format

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """A pattern's configuration from a dictionary."""
        made = cls(backend_pattern_config_dict.get("pattern"))
        for entry in backend_pattern_config_dict.get("dtype_configs", []):
            given = entry if isinstance(entry, (DTypeConfig, dict)) else None
            if given is None:
                raise ValueError(f'Expected a list of DTypeConfigs in backend_pattern_config_dict["dtype_configs"], got {entry!r}')  # noqa: E501  # fmt: skip
            made.add_dtype_config(given if isinstance(given, DTypeConfig) else DTypeConfig.from_dict(given))
        for name, key in cls._SAVED:
            if key in backend_pattern_config_dict:
                setattr(made, name, backend_pattern_config_dict[key])
        return made

    def to_dict(self) -> dict[str, Any]:
        """This configuration as a dictionary, as older programs have it."""
        found: dict[str, Any] = {
            "observation_type": self.observation_type,
            "dtype_configs": [each.to_dict() for each in self.dtype_configs],
        }
        if self.pattern is not None:
            found["pattern"] = self.pattern
        for name, key in self._SAVED[1:]:
            value = getattr(self, name)
            if value is not None and value != {}:
                found[key] = value
        return found


class BackendConfig:
    """The patterns that a backend quantizes; the setters return the object.

    >>> from flambeau.ao.quantization.backend_config import BackendConfig, BackendPatternConfig
    >>> import flambeau as torch
    >>> len(BackendConfig("mine").set_backend_pattern_config(BackendPatternConfig(torch.nn.Linear)).configs)
    1
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._by_pattern: dict[Pattern, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({vars(self)})"

    set_name: Callable[..., BackendConfig] = setter("name", "Set the name of the backend.")

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """One pattern, in place of what was said of it before."""
        self._by_pattern[config.nested_pattern] = config
        return self

    def set_backend_pattern_configs(self, configs: Sequence[BackendPatternConfig]) -> BackendConfig:
        """Add the configurations of several patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """The patterns, in a list of one's own."""
        return list(self._by_pattern.values())

    @property
    def by_nested_pattern(self) -> dict[Pattern, BackendPatternConfig]:
        """The patterns as nested tuples, the last node first, with what is said of each."""
        return dict(self._by_pattern)

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """A backend from a dictionary of its name and its patterns."""
        made = cls(backend_config_dict.get("name", ""))
        for entry in backend_config_dict.get("configs", []):
            if not isinstance(entry, (BackendPatternConfig, dict)):
                raise ValueError(f'Expected backend_config_dict["configs"] to be a list of configs, got {entry!r}')
            own = BackendPatternConfig.from_dict(entry) if isinstance(entry, dict) else entry
            made.set_backend_pattern_config(own)
        return made

    def to_dict(self) -> dict[str, Any]:
        """This configuration as a dictionary, as older programs have it."""
        return {"name": self.name, "configs": [each.to_dict() for each in self.configs]}
