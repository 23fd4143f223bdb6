"""Several configurations for each layer, to compare them."""

from __future__ import annotations

import copy
from typing import Any

from ...quantization.qconfig_mapping import QConfigMapping

__all__ = ["QConfigMultiMapping"]

_STYLES = (
    "object_type_qconfigs",
    "module_name_regex_qconfigs",
    "module_name_qconfigs",
    "module_name_object_type_order_qconfigs",
)


class QConfigMultiMapping:
    """A list of `QConfigMapping`: each setter takes a list of configurations, one for each of them.

    Where the lists have different lengths, mappings without a configuration of their own say None.
    """

    def __init__(self) -> None:
        self.qconfig_mappings_list: list[QConfigMapping] = [QConfigMapping()]

    def __repr__(self) -> str:
        return f"QConfigMultiMapping ({self.qconfig_mappings_list})"

    def _set(self, setter: str, style: str | None, key: tuple[Any, ...], qconfig_list: list[Any]) -> QConfigMultiMapping:  # noqa: E501  # fmt: skip
        given: list[Any] = []
        for each in qconfig_list:  # each configuration once; None is what the others say anyway
            if each is not None and each not in given:
                given.append(each)
        while len(self.qconfig_mappings_list) < len(given):
            self.qconfig_mappings_list.append(self._silent())
        for mapping, qconfig in zip(self.qconfig_mappings_list, given, strict=False):
            getattr(mapping, setter)(*key, qconfig)
        known = key[0] if len(key) == 1 else key
        for mapping in self.qconfig_mappings_list[len(given) :]:
            if style is not None and known not in getattr(mapping, style):
                getattr(mapping, setter)(*key, None)
        return self

    def _silent(self) -> QConfigMapping:
        """A mapping that says None about all that the others speak of."""
        made = QConfigMapping()
        for style in _STYLES:
            for key in getattr(self.qconfig_mappings_list[0], style):
                getattr(made, style)[key] = None
        return made

    def set_global(self, global_qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Set the configurations of layers about which nothing else is said."""
        return self._set("set_global", None, (), global_qconfig_list)

    def set_object_type(self, object_type: Any, qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Set the configurations of a class of modules, a function, or a method by its name."""
        return self._set("set_object_type", _STYLES[0], (object_type,), qconfig_list)

    def set_module_name_regex(self, module_name_regex: str, qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Set the configurations of modules whose name fits a pattern."""
        return self._set("set_module_name_regex", _STYLES[1], (module_name_regex,), qconfig_list)

    def set_module_name(self, module_name: str, qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Set the configurations of the module with this name."""
        return self._set("set_module_name", _STYLES[2], (module_name,), qconfig_list)

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig_list: list[Any]
    ) -> QConfigMultiMapping:
        """Set the configurations of one op in a module, by its type and position."""
        setter = "set_module_name_object_type_order"
        return self._set(setter, _STYLES[3], (module_name, object_type, index), qconfig_list)

    @classmethod
    def from_list_qconfig_mapping(cls, qconfig_mapping_list: list[QConfigMapping]) -> QConfigMultiMapping:
        """Combine existing mappings; what one of them does not name is None for it."""
        made = cls()
        made.qconfig_mappings_list = copy.deepcopy(qconfig_mapping_list)
        for style in _STYLES:
            keys = {key: None for mapping in qconfig_mapping_list for key in getattr(mapping, style)}
            for mapping in made.qconfig_mappings_list:
                for key in keys:
                    getattr(mapping, style).setdefault(key, None)
        return made
