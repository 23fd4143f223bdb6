"""State dicts of modules: what is saved, and how it is loaded back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, NoReturn

from ..._core.hooks import RemovableHandle
from ..._core.tensor import Tensor
from ..._torch import __future__ as choices
from ...autograd.grad_mode import no_grad
from ..parameter import Parameter, is_lazy
from ._members import Members

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found to be missing, and what it did not expect."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class HookWithModule:
    """A hook that is also given the module that it was registered on."""

    def __init__(self, hook: Callable[..., Any], module: Any) -> None:
        self.hook = hook
        self.module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.hook(self.module, *args, **kwargs)


class StateDict(Members):
    """`state_dict`, `load_state_dict`, their hooks and the extra state."""

    _version: int = 1

    # ----- saving -----------------------------------------------------------------------------------------------

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers of this module and all below it, by dotted path.

        The tensors share memory with the module; with `keep_vars` they are the module's own, inside the graph. The
        `_metadata` of the dictionary has the version of each module.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: state_dict(destination=..., prefix=..., "
                "keep_vars=...)",
                FutureWarning,
                stacklevel=2,
            )
            names = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
            destination, prefix, keep_vars = (names | dict(zip(names, args, strict=False))).values()
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = replaced
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put what this module itself holds into `destination`; modules with a format of their own override this."""
        for name, tensor in self._persistent_tensors():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _persistent_tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in chain(self._parameters.items(), self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                yield name, tensor

    def get_extra_state(self) -> Any:
        """Override to save something beside tensors in the state dict; `set_extra_state` gets it back."""
        _no_extra_state("get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Override to take back what `get_extra_state` saved."""
        _no_extra_state("set_extra_state")

    # ----- loading ----------------------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the tensors of a state dict into this module and all below it, and say which keys did not fit.

        With `strict`, keys that do not fit are an error. With `assign`, the tensors themselves take the places of the
        module's, dtype and device included.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(getattr(state_dict, "_metadata", None), assign)
        copy: Any = OrderedDict(state_dict)
        if loading.metadata is not None:
            copy._metadata = loading.metadata
        loading.load(self, copy, "")
        return loading.outcome(type(self).__name__, strict)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load what this module itself holds; modules that read older formats override this and look at the version.

        Problems are noted in the three lists.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = dict(self._persistent_tensors())
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            complaint = self._load_tensor(name, tensor, key, state_dict[key], assign)
            if complaint is not None:
                error_msgs.append(complaint)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, tensor: Any, key: str, value: Any, assign: bool) -> str | None:
        """Copy or assign one tensor, and say what was wrong, if anything was."""
        if not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
        if not is_lazy(tensor):
            if tensor.dim() == 0 and len(value.shape) == 1:
                value = value[0]  # checkpoints from before there were 0-d tensors
            if tuple(value.shape) != tuple(tensor.shape):
                return (
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                    f"current model is {tensor.shape}."
                )
        if tensor.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=4,
            )
        try:
            with no_grad():
                if choices.get_swap_module_params_on_conversion():
                    from ...utils import swap_tensors

                    loaded = tensor.module_load(value, assign=assign)
                    if isinstance(tensor, Parameter) and not isinstance(loaded, Parameter):
                        loaded = Parameter(loaded, requires_grad=tensor.requires_grad)
                    swap_tensors(tensor, loaded)
                elif not assign:
                    tensor.copy_(value)
                else:
                    if isinstance(tensor, Parameter):
                        if not isinstance(value, Parameter):
                            value = Parameter(value, requires_grad=tensor.requires_grad)
                        else:
                            value.requires_grad_(tensor.requires_grad)
                    setattr(self, name, value)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and '
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
            )
        return None

    # ----- hooks ------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[[Any, str, bool], None]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state dict is made."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[[Any, Any, str, Any], None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` afterwards; it may change the dictionary in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]  # PyTorch marks functions so
        return RemovableHandle(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Add a hook that runs after `state_dict`, with the right to return another dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before the module loads: it may change the dictionary in place.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, HookWithModule(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[[Any, _IncompatibleKeys], None]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module loaded: it may change the two lists in place."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)


class _Loading:
    """One run of `load_state_dict` over a tree of modules."""

    def __init__(self, metadata: Any, assign: bool) -> None:
        self.metadata = metadata
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: StateDict, state_dict: dict[str, Any], prefix: str) -> None:
        local_metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            local_metadata = {**local_metadata, "assign_to_params_buffers": True}
        # Strict in any case: the keys are gathered, and whether they are an error is decided at the end.
        module._load_from_state_dict(
            state_dict, prefix, local_metadata, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.load(child, {key: value for key, value in state_dict.items() if key.startswith(below)}, below)
        found = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, found) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def outcome(self, name: str, strict: bool) -> _IncompatibleKeys:
        """The keys that did not fit; an error that names all problems at once if there are any."""
        problems = self.errors
        if strict:
            lists = (("Missing", self.missing), ("Unexpected", self.unexpected))
            keys = [f"{word} key(s) in state_dict: {_quoted(found)}. " for word, found in lists if found]
            problems = [*keys, *self._prefix_to_take_off(), *problems]
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {name}:\n\t" + "\n\t".join(problems))
        return _IncompatibleKeys(self.missing, self.unexpected)

    def _prefix_to_take_off(self) -> Iterator[str]:
        """A hint, if the missing keys are all there behind one common prefix, such as that of `DataParallel`."""
        prefixes = {key.partition(".")[0] + "." for key in self.unexpected}
        if len(prefixes) == 1:
            (prefix,) = prefixes
            if self.missing and {prefix + key for key in self.missing} <= {*self.unexpected}:
                yield (
                    f'The keys begin with "{prefix}", which '
                    f"torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state_dict, {prefix!r}) takes off."
                )


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _no_extra_state(name: str) -> NoReturn:
    raise RuntimeError(
        f"Reached a code path in Module.{name}() that should never be called: the module does not override it, so it "
        "has no extra state"
    )
