"""Modules whose forward pass is computed again in backward, or whose saved tensors wait on the host."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import CustomPolicy, _recursive_wrap, lambda_auto_wrap_policy, wrap_children

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(Enum):
    """How the forward pass is computed again."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another, whose attributes, parameter names and state dict are those of the other."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; for subclasses."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _CHECKPOINT_WRAPPED_MODULE:  # before there is one
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        layers: Any = self._checkpoint_wrapped_module
        return layers[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """The parameters under the names that they have in the module inside."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _renamed(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _renamed(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


def _renamed(state_dict: dict[str, Any], before: str, after: str) -> None:
    """Give the entries that begin with a prefix another one."""
    for name in [each for each in state_dict if each.startswith(before)]:
        state_dict[after + name.removeprefix(before)] = state_dict.pop(name)


class OffloadWrapper(ActivationWrapper):
    """A module that keeps on the host what its derivatives need."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside computes."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that computes its forward pass again in backward; `checkpoint_wrapper` makes it.

    Args:
        mod (Module): the module inside.
        checkpoint_impl (CheckpointImpl): how. Default: `CheckpointImpl.NO_REENTRANT`.
        checkpoint_fn (Callable, optional): what to use in place of `torch.utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: its options.
    """

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            is_reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=is_reentrant)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside computes."""
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **kwargs)
        names, count = tuple(kwargs), len(args)  # the reentrant form takes arguments by position alone

        def called(*values: Any) -> Any:
            return module(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(called, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module, with what its derivatives need kept on the host."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """The module, with a forward pass that is computed again in backward in place of what would be kept for it.

    >>> from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    >>> layer = checkpoint_wrapper(torch.nn.Linear(2, 3))
    >>> sorted(layer.state_dict())
    ['bias', 'weight']

    Args:
        module (Module): the module.
        checkpoint_impl (CheckpointImpl): how. Default: `CheckpointImpl.NO_REENTRANT`.
        checkpoint_fn (Callable, optional): what to use in place of `torch.utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: its options.

    Returns:
        Module: a module around it, whose state dict is that of the module.
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Wrap the modules below a model for which `check_fn` returns True, or those that a policy of FSDP's names.

    Args:
        model (Module): the model, which is changed.
        checkpoint_wrapper_fn (Callable): what wraps a module. Default: `checkpoint_wrapper`.
        check_fn (Callable): says of a module whether it is wrapped.
        auto_wrap_policy (Callable, optional): a policy, in place of `check_fn`.
    """
    policy = auto_wrap_policy or functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    if isinstance(policy, CustomPolicy):
        wrap_children(model, policy, checkpoint_wrapper_fn, set())
    else:
        _recursive_wrap(model, policy, checkpoint_wrapper_fn, set(), set(), only_wrap_children=True)
