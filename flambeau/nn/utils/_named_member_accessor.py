"""Tensors and modules inside a module by their dotted names: read, set, deleted, exchanged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._core.tensor import Tensor
from ..modules.module import Module

_MISSING: Any = object()


def _as_tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    return value


def _group(module: Module, name: str) -> Any:
    """The dictionary of a module in which a tensor of this name stands, or the module's own."""
    for group in (module._parameters, module._buffers):
        if name in group:
            return group
    return vars(module)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a module's own, which is returned; past all that assignments do."""
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    group = _group(module, name)
    before = group.get(name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if before is not _MISSING and before is not None:
        _as_tensor(before)
    if tensor is _MISSING:
        group.pop(name, None)
    else:
        group[name] = tensor if tensor is None else _as_tensor(tensor)
    return before


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Put a module in the place of another's own, which is returned."""
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if not name:
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    before = module._modules[name]
    if not isinstance(before, Module):
        raise TypeError(f"{name} is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """The tensors and modules inside a module by their dotted names; modules are looked up once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {}

    def get_submodule(self, name: str) -> Module:
        """The module of a name; the empty one is the module itself."""
        if not name:
            return self.module
        if name not in self.memo:
            parent, _, last = name.rpartition(".")
            owner = self.get_submodule(parent)
            found = getattr(owner, last, _MISSING)
            if found is _MISSING:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
            if not isinstance(found, Module):
                raise TypeError(f"submodule `{name}`: {found} is not an instance of torch.nn.Module")
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module in the place of another, which is returned."""
        parent, _, last = path.rpartition(".")
        before = swap_submodule(self.get_submodule(parent), last, value)
        self.memo.clear()
        return before

    def _owner(self, name: str) -> tuple[Module, str]:
        parent, _, last = name.rpartition(".")
        return self.get_submodule(parent), last

    def get_tensor(self, name: str) -> Tensor:
        """The parameter or buffer of a name."""
        owner, last = self._owner(name)
        found = getattr(owner, last, _MISSING)
        if found is _MISSING:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return _as_tensor(found)

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Put a tensor in the place of the one of a name."""
        owner, last = self._owner(name)
        swap_tensor(owner, last, _as_tensor(value), allow_missing=True)

    def del_tensor(self, name: str) -> None:
        """Take the tensor of a name out."""
        owner, last = self._owner(name)
        swap_tensor(owner, last, _MISSING)

    def swap_tensor(self, name: str, value: Tensor, allow_missing: bool = False) -> Any:
        """Put a tensor in the place of the one of a name, which is returned."""
        owner, last = self._owner(name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Put tensors in the places of those of names."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Set tensors by their names in a dictionary."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Take the tensors of names out."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Tensor], allow_missing: bool = False) -> list[Any]:
        """Put tensors in the places of those of names, which are returned."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in _pairs(names, values)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Swap tensors by their names in a dictionary: what was there before, and the names where nothing was.

        If one of the names does not exist, all tensors are put back.
        """
        before: dict[str, Any] = {}
        missing: list[str] = []
        try:
            for name, value in named_tensors.items():
                before[name] = self.swap_tensor(name, value, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, value in before.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The names of tensors that are not among `keys`, and the keys that are no names of tensors."""
        wanted = set(keys)
        present = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(present - wanted), sorted(wanted - present)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """The parameters with their names."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """The buffers with their names."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """Both."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Module]]:
        """The modules with their names."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and {len(values)} values"
        )
    return zip(names, values, strict=True)
