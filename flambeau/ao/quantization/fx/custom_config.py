"""What a user says beside the configurations of layers: modules to leave alone, or to quantize otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..._constructors import setter
from ..backend_config import BackendConfig
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType, _get_quant_type_to_str, _quant_type_from_str

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "StandaloneModuleConfigEntry"]

Classes = dict[QuantType, dict[type, type]]


@dataclasses.dataclass
class StandaloneModuleConfigEntry:
    """How a module that is quantized apart is prepared."""

    qconfig_mapping: QConfigMapping | None
    example_inputs: tuple[Any, ...]
    prepare_custom_config: PrepareCustomConfig | None
    backend_config: BackendConfig | None


def _said(name: str, own: object) -> str:
    return f"{name}({ {key: value for key, value in vars(own).items() if value} })"


def _classes_from(given: dict[str, dict[type, type]]) -> Classes:
    return {_quant_type_from_str(name): dict(classes) for name, classes in given.items()}


def _classes_to(own: Classes) -> dict[str, dict[type, type]]:
    return {_get_quant_type_to_str(kind): dict(classes) for kind, classes in own.items()}


class PrepareCustomConfig:
    """For `prepare_fx` and `prepare_qat_fx`; the setters return the object."""

    def __init__(self) -> None:
        self.standalone_module_names: dict[str, StandaloneModuleConfigEntry] = {}
        self.standalone_module_classes: dict[type, StandaloneModuleConfigEntry] = {}
        self.float_to_observed_mapping: Classes = {}
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return _said("PrepareCustomConfig", self)

    def set_standalone_module_name(
        self,
        module_name: str,
        qconfig_mapping: QConfigMapping | None,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: BackendConfig | None,
    ) -> PrepareCustomConfig:
        """Quantize the module of this name apart; what is None is as around it."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self,
        module_class: type,
        qconfig_mapping: QConfigMapping | None,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: BackendConfig | None,
    ) -> PrepareCustomConfig:
        """Quantize modules of this class apart."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(
        self, float_class: type, observed_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> PrepareCustomConfig:
        """The class that takes the place of a user's while it is watched; it has `from_float`."""
        if quant_type is not QuantType.STATIC:
            raise ValueError("set_float_to_observed_mapping is currently only supported for static quantization")
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    set_non_traceable_module_names: Callable[..., PrepareCustomConfig] = setter(
        "non_traceable_module_names", "Modules, by name, whose insides are not looked at.", "module_names"
    )
    set_non_traceable_module_classes: Callable[..., PrepareCustomConfig] = setter(
        "non_traceable_module_classes", "Modules, by class, whose insides are not looked at.", "module_classes"
    )
    set_input_quantized_indexes: Callable[..., PrepareCustomConfig] = setter(
        "input_quantized_indexes", "Which inputs come as codes.", "indexes"
    )
    set_output_quantized_indexes: Callable[..., PrepareCustomConfig] = setter(
        "output_quantized_indexes", "Which results are given as codes.", "indexes"
    )
    set_preserved_attributes: Callable[..., PrepareCustomConfig] = setter(
        "preserved_attributes", "Attributes of the model that its graph does not use and that are kept.", "attributes"
    )
    _LISTS = (
        ("non_traceable_module_name", "non_traceable_module_names"),
        ("non_traceable_module_class", "non_traceable_module_classes"),
        ("input_quantized_idxs", "input_quantized_indexes"),
        ("output_quantized_idxs", "output_quantized_indexes"),
        ("preserved_attributes", "preserved_attributes"),
    )

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """A configuration from a dictionary, as older programs have it."""
        given, made = prepare_custom_config_dict, cls()

        def entry(mapping: Any, inputs: Any, custom: Any, backend: Any) -> tuple[Any, ...]:
            own = QConfigMapping.from_dict(mapping) if isinstance(mapping, dict) else mapping
            own_custom = cls.from_dict(custom) if isinstance(custom, dict) else custom
            own_backend = BackendConfig.from_dict(backend) if isinstance(backend, dict) else backend
            return own, inputs, own_custom, own_backend

        for name, *parts in given.get("standalone_module_name", []):
            made.set_standalone_module_name(name, *entry(*parts))
        for kind, *parts in given.get("standalone_module_class", []):
            made.set_standalone_module_class(kind, *entry(*parts))
        made.float_to_observed_mapping = _classes_from(given.get("float_to_observed_custom_module_class", {}))
        for key, name in cls._LISTS:
            setattr(made, name, list(given.get(key, [])))
        return made

    def to_dict(self) -> dict[str, Any]:
        """This configuration as a dictionary, as older programs have it."""

        def rows(entries: dict[Any, StandaloneModuleConfigEntry]) -> list[tuple[Any, ...]]:
            return [
                (
                    key,
                    None if each.qconfig_mapping is None else each.qconfig_mapping.to_dict(),
                    each.example_inputs,
                    None if each.prepare_custom_config is None else each.prepare_custom_config.to_dict(),
                    each.backend_config,
                )
                for key, each in entries.items()
            ]

        found: dict[str, Any] = {
            "standalone_module_name": rows(self.standalone_module_names),
            "standalone_module_class": rows(self.standalone_module_classes),
            "float_to_observed_custom_module_class": _classes_to(self.float_to_observed_mapping),
        }
        found.update((key, getattr(self, name)) for key, name in self._LISTS)
        return {key: value for key, value in found.items() if value}


class ConvertCustomConfig:
    """For `convert_fx`; the setters return the object."""

    def __init__(self) -> None:
        self.observed_to_quantized_mapping: Classes = {}
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return _said("ConvertCustomConfig", self)

    def set_observed_to_quantized_mapping(
        self, observed_class: type, quantized_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> ConvertCustomConfig:
        """The quantized class for one that was watched; it has `from_observed`."""
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    set_preserved_attributes: Callable[..., ConvertCustomConfig] = setter(
        "preserved_attributes", "Attributes of the model that its graph does not use and that are kept.", "attributes"
    )

    @classmethod
    def from_dict(cls, convert_custom_config_dict: dict[str, Any]) -> ConvertCustomConfig:
        """A configuration from a dictionary, as older programs have it."""
        made = cls()
        given = convert_custom_config_dict.get("observed_to_quantized_custom_module_class", {})
        made.observed_to_quantized_mapping = _classes_from(given)
        return made.set_preserved_attributes(convert_custom_config_dict.get("preserved_attributes", []))

    def to_dict(self) -> dict[str, Any]:
        """This configuration as a dictionary, as older programs have it."""
        found: dict[str, Any] = {}
        if self.observed_to_quantized_mapping:
            found["observed_to_quantized_custom_module_class"] = _classes_to(self.observed_to_quantized_mapping)
        if self.preserved_attributes:
            found["preserved_attributes"] = self.preserved_attributes
        return found


class FuseCustomConfig:
    """For `fuse_fx`; the setter returns the object."""

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return _said("FuseCustomConfig", self)

    set_preserved_attributes: Callable[..., FuseCustomConfig] = setter(
        "preserved_attributes", "Attributes of the model that its graph does not use and that are kept.", "attributes"
    )

    @classmethod
    def from_dict(cls, fuse_custom_config_dict: dict[str, Any]) -> FuseCustomConfig:
        """A configuration from a dictionary, as older programs have it."""
        return cls().set_preserved_attributes(fuse_custom_config_dict.get("preserved_attributes", []))

    def to_dict(self) -> dict[str, Any]:
        """This configuration as a dictionary, as older programs have it."""
        return {"preserved_attributes": self.preserved_attributes} if self.preserved_attributes else {}
