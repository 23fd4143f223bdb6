"""`QConfigMapping`: which configuration goes with which layer."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import flambeau as torch

from . import fake_quantize as fakes
from . import observer as observers
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]


class QConfigMapping:
    """Configurations for all layers, by type, by a pattern of names, by name, and by name, type and position.

    What is said later in this list comes before what is said earlier. The setters return the mapping.
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Any, int], Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """The configuration of layers about which nothing else is said."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """The configuration of a class of modules, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """The configuration of modules whose name fits a pattern; the first that fits decides."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """The configuration of the module of a name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """The configuration of the op of a type that comes at a position in a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, value in vars(self).items():
            lines.append(f" {name}")
            if isinstance(value, dict):
                lines += [f"  {key}: {each}" for key, each in value.items()] or ["  <empty>"]
            else:
                lines.append(f"  {value}")
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The mapping as a dictionary of lists, as older programs have it."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [
                (*key, value) for key, value in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """A mapping from such a dictionary."""
        made = cls().set_global(qconfig_dict.get(""))
        for name, setter in (
            ("object_type", made.set_object_type),
            ("module_name_regex", made.set_module_name_regex),
            ("module_name", made.set_module_name),
            ("module_name_object_type_order", made.set_module_name_object_type_order),
        ):
            for entry in qconfig_dict.get(name, []):
                setter(*entry)
        return made


def _fixed_ranges() -> dict[Any, Any]:
    """The functions whose results lie in a known range, with the observers for them."""
    functional, nn = torch.nn.functional, torch.nn
    symmetric = ("tanh", "tanh_", nn.Tanh, torch.tanh)
    unit = ("hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", nn.Hardsigmoid, nn.Sigmoid, nn.Softmax, torch.sigmoid, functional.hardsigmoid)  # noqa: E501  # fmt: skip
    return {
        **dict.fromkeys(unit, observers.default_fixed_qparams_range_0to1_observer),
        **dict.fromkeys(symmetric, observers.default_fixed_qparams_range_neg1to1_observer),
    }


def _default(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    nn, functional = torch.nn, torch.nn.functional
    own = get_default_qat_qconfig(backend, version) if is_qat else get_default_qconfig(backend, version)
    weight = fakes.default_weight_fake_quant if is_qat else observers.default_weight_observer
    transposed = QConfig(own.activation, weight) if backend in ("fbgemm", "x86") else own
    normalized = QConfig(own.activation, observers.default_placeholder_observer)
    made = QConfigMapping().set_global(own).set_object_type("reshape", default_reuse_input_qconfig)
    for each in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d):
        made.set_object_type(each, transposed)
    for function in (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d):
        made.set_object_type(function, transposed)
    made.set_object_type(functional.layer_norm, normalized).set_object_type(nn.LayerNorm, normalized)
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kind, watch in _fixed_ranges().items():
        activation = fakes.FixedQParamsFakeQuantize.with_args(observer=watch) if is_qat else watch
        made.set_object_type(kind, QConfig(activation, weight))
    return made


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The configurations for quantizing a trained model."""
    return _default(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The configurations for training a model that is to be quantized."""
    return _default(True, backend, version)
