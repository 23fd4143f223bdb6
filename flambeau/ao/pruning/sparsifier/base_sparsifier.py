"""`BaseSparsifier`: gives weights masks, changes them step by step, and in the end makes them permanent."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import Any

from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.utils.parametrize import is_parametrized, register_parametrization, remove_parametrizations
from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, swap_module

__all__ = ["BaseSparsifier"]

_NOT_SAVED = ("module", "module_fqn", "tensor_name")


_SPARSE_MODULES = {Linear}


class BaseSparsifier(ABC):
    """Masks for the weights of a model: subclasses say in `update_mask` what is zero.

    `prepare` puts a mask in front of each weight, `step` updates the masks, `squash_mask` makes them permanent.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        self.defaults = defaults or {}
        self.state: dict[str, dict[str, Any]] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True
        self.model: Module | None = None
        self.config: list[dict[str, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.groups):
            lines.append(f"\tGroup {number}")
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group)]
            lines.append("")
        return "\n".join([*lines[:-1], ")"]) if self.groups else f"{type(self).__name__} ()"

    def state_dict(self) -> dict[str, Any]:
        """The masks by the paths of their weights, and the options of each group."""
        groups = [{key: value for key, value in group.items() if key not in _NOT_SAVED} for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take over masks and options."""
        if self.model is None:
            raise RuntimeError("load_state_dict(): call prepare() first: it says which model the masks are for")
        groups = copy.deepcopy(state_dict["groups"])
        state = state_dict["state"]
        for path, saved in state.items():
            info = get_arg_info_from_tensor_fqn(self.model, path)
            module, name = info["module"], info["tensor_name"]
            if module is None or not is_parametrized(module, name):
                if strict:
                    raise RuntimeError(f"Error loading {path} into the model: it has no such weight with a mask")
                continue
            for each in module.parametrizations[name]:
                if isinstance(each, FakeSparsity):
                    each.mask = saved["mask"]
        for group in groups:
            group.update(get_arg_info_from_tensor_fqn(self.model, group["tensor_fqn"]))
        self.state = defaultdict(dict, state)
        self.groups = groups

    def make_config_from_model(self, model: Module, SUPPORTED_MODULES: Any = _SPARSE_MODULES) -> None:
        """Let `config` name the weights of all layers of some classes."""
        self.config = [
            {"tensor_fqn": f"{path}.weight"}
            for path, module in model.named_modules()
            if type(module) in SUPPORTED_MODULES
        ]

    def prepare(self, model: Module, config: list[dict[str, Any]] | None) -> None:
        """Put a mask in front of the weights that `config` names, or of all linear layers'."""
        self.model = model
        if config is None:
            self.make_config_from_model(model)
        else:
            self.config = config
        for each in self.config:
            info = get_arg_info_from_tensor_fqn(model, each["tensor_fqn"])
            if info["module"] is None:
                raise AttributeError(
                    f"the model has no module {info['module_fqn']!r}, which {each['tensor_fqn']!r} names"
                )
            group = {**self.defaults, **each, **info}
            self.groups.append(group)
            self._prepare(group)

    def _prepare(self, group: dict[str, Any]) -> None:
        module, name = group["module"], group["tensor_name"]
        saved = self.state[group["tensor_fqn"]]
        saved.setdefault("mask", getattr(module, name).detach().new_ones(getattr(module, name).shape))
        register_parametrization(module, name, FakeSparsity(saved["mask"]))

    def squash_mask(
        self,
        params_to_keep: tuple[str, ...] | None = None,
        params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Make masks permanent and take them off; `sparse_params` of the module keeps some of the options."""
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            remove_parametrizations(module, name, leave_parametrized=True)
            self.state[group["tensor_fqn"]].pop("mask", None)
            kept = {key: group[key] for key in params_to_keep or ()}
            for key in (params_to_keep_per_layer or {}).get(group["module_fqn"], ()):
                kept[key] = group[key]
            if kept:
                module.sparse_params = kept

    def convert(
        self,
        module: Module,
        mapping: dict[type[Module], type[Module]] | None = None,
        inplace: bool = False,
        parameterization: type[Module] = FakeSparsity,
    ) -> Module:
        """The model with other layers in the place of those whose weights have masks."""
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        whole = module if inplace else copy.deepcopy(module)
        for name, child in list(whole.named_children()):
            if module_contains_param(child, parameterization):
                setattr(whole, name, swap_module(child, mapping))
            else:
                setattr(whole, name, self.convert(child, mapping, True, parameterization))
        return whole

    def step(self, use_path: bool = True) -> None:
        """Update the masks of all layers once."""
        if not self.enable_mask_update:
            return
        from .... import no_grad

        with no_grad():
            for group in self.groups:
                self.update_mask(**group)
                mask = self._mask_of(group["module"], group["tensor_name"])
                self.state[group["tensor_fqn"]]["mask"] = mask.mask

    @staticmethod
    def _mask_of(module: Any, tensor_name: str) -> FakeSparsity:
        return next(each for each in module.parametrizations[tensor_name] if isinstance(each, FakeSparsity))

    @abstractmethod
    def update_mask(self, module: Module, tensor_name: str, *args: Any, **kwargs: Any) -> None:
        """Change the mask of one weight."""
