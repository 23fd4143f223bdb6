"""What a module holds, and the ways to go through it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..._core.tensor import Tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from . import module as whole

HookDict = OrderedDict[int, Any]


class Members:
    """The dictionaries of a module, its iterators, and the look-up of members by dotted path."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, whole.Module | None]
    _backward_pre_hooks: HookDict
    _backward_hooks: HookDict
    _is_full_backward_hook: bool | None
    _forward_hooks: HookDict
    _forward_hooks_with_kwargs: HookDict
    _forward_hooks_always_called: HookDict
    _forward_pre_hooks: HookDict
    _forward_pre_hooks_with_kwargs: HookDict
    _state_dict_hooks: HookDict
    _state_dict_pre_hooks: HookDict
    _load_state_dict_pre_hooks: HookDict
    _load_state_dict_post_hooks: HookDict

    # ----- iterators --------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, whole.Module]]:
        """This module and all below it, each with its dotted path; shared ones once, unless told otherwise."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        this: Any = self  # a module: no other class has this base
        yield prefix, this
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[whole.Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, whole.Module]]:
        """The modules directly below, each with its name; shared ones once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[whole.Module]:
        """The modules directly below."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[whole.Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield f"{path}.{name}" if path else name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and, with `recurse`, of all below it, each with its dotted path."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with `recurse`, of all below it."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and, with `recurse`, of all below it, each with its dotted path."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with `recurse`, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # ----- members by path --------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> whole.Module:
        """The module at a dotted path such as "encoder.3.fc1"; the module itself for ""."""
        module: Any = self
        walked = ""
        for name in target.split(".") if target else ():
            module = _attribute(module, name, walked)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module" + _inside(walked))
            walked = f"{walked}.{name}" if walked else name
        found: whole.Module = module
        return found

    def set_submodule(self, target: str, module: whole.Module, strict: bool = False) -> None:
        """Put `module` at a dotted path, in place of the module that is there or, unless `strict`, anew."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(_attribute(parent, name, path), Members):
            raise AttributeError(f"`{name}` is not an nn.Module" + _inside(path))
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path such as "encoder.3.fc1.weight"."""
        path, _, name = target.rpartition(".")
        parameter = _attribute(self.get_submodule(path), name, path)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter" + _inside(path))
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path such as "bn1.running_mean"."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = _attribute(module, name, path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer" + _inside(path))
        return buffer


def _attribute(module: Any, name: str, path: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`" + _inside(path))
    return getattr(module, name)


def _inside(path: str) -> str:
    return f" (in the module at `{path}`)" if path else ""
