"""Hooks of modules: registration on one module or on all, and the call that runs them."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..._core.hooks import RemovableHandle
from ..._core.tensor import Tensor
from ._members import HookDict, Members
from ._state_dict import HookWithModule

if TYPE_CHECKING:
    from ..._core.node import Node

_global_buffer_registration_hooks: HookDict = OrderedDict()
_global_module_registration_hooks: HookDict = OrderedDict()
_global_parameter_registration_hooks: HookDict = OrderedDict()
_global_forward_pre_hooks: HookDict = OrderedDict()
_global_forward_hooks: HookDict = OrderedDict()
_global_forward_hooks_always_called: HookDict = OrderedDict()
_global_forward_hooks_with_kwargs: HookDict = OrderedDict()
_global_backward_pre_hooks: HookDict = OrderedDict()
_global_backward_hooks: HookDict = OrderedDict()
_global_is_full_backward_hook: bool | None = None

_BOTH_KINDS = "Cannot use both regular backward hooks and full backward hooks {}. Please use only one of them."


# ----- hooks of all modules -----------------------------------------------------------------------------------------


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a module gets a buffer; what it returns replaces the buffer."""
    return RemovableHandle(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module gets a submodule; what it returns replaces that."""
    return RemovableHandle(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a module gets a parameter; what it returns replaces that."""
    return RemovableHandle(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; it may return other arguments."""
    return RemovableHandle(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; it may return another output."""
    extra = [_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called]
    handle = RemovableHandle(_global_forward_hooks, hook, extra_dict=extra)
    _flag(handle, extra, with_kwargs, always_call)
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The legacy kind of `register_module_full_backward_hook`: it sees the gradients of the last operation only."""
    return _register_global_backward_hook(hook, full=False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when any module's gradients are there; it may return others."""
    return _register_global_backward_hook(hook, full=True)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients go through any module; it may return others."""
    return RemovableHandle(_global_backward_pre_hooks, hook)


def _register_global_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(_BOTH_KINDS.format("as a global Module hook"))
    _global_is_full_backward_hook = full
    return RemovableHandle(_global_backward_hooks, hook)


# ----- hooks of one module ------------------------------------------------------------------------------------------


class Hooks(Members):
    """`register_forward_hook` and its kin."""

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; it may return other arguments.

        With `with_kwargs` the call is `hook(module, args, kwargs)`, and the result a pair of both. With `prepend` the
        hook comes before those that are there.
        """
        extra = self._forward_pre_hooks_with_kwargs
        handle = RemovableHandle(self._forward_pre_hooks, hook, prepend=prepend, extra_dict=extra)
        if with_kwargs:
            extra[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; it may return another output.

        With `with_kwargs` the call is `hook(module, args, kwargs, output)`. With `always_call` it comes even if
        `forward` raises. With `prepend` the hook comes before those that are there.
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = RemovableHandle(self._forward_hooks, hook, prepend=prepend, extra_dict=extra)
        _flag(handle, extra, with_kwargs, always_call)
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the gradients go through the module; it may return others."""
        return RemovableHandle(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the module's inputs are there.

        It may return other gradients of the inputs. Both arguments are tuples, None for what is no tensor.
        """
        self._use_backward_hooks(full=True)
        return RemovableHandle(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The legacy kind of `register_full_backward_hook`: it sees the gradients of the last operation only."""
        self._use_backward_hooks(full=False)
        return RemovableHandle(self._backward_hooks, hook)

    def _use_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_BOTH_KINDS.format("on a single Module"))
        self._is_full_backward_hook = full


def _flag(handle: RemovableHandle, flags: list[HookDict], *wanted: bool) -> None:
    for each, flag in zip(flags, wanted, strict=True):
        if flag:
            each[handle.id] = True


# ----- the call -----------------------------------------------------------------------------------------------------


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward(*args, **kwargs)` with all hooks, those of all modules first."""
    result: Any = None
    called: set[int] = set()
    differentiated = bool(
        module._backward_hooks or module._backward_pre_hooks or _global_backward_hooks or _global_backward_pre_hooks
    )
    try:
        args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
        backward_hook = _backward_hook(module) if differentiated else None
        if backward_hook is not None:
            args = backward_hook.setup_input_hook(args)
        result = module.forward(*args, **kwargs)
        for key, hook, with_kwargs, _ in _forward_hooks(module):
            called.add(key)
            changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            if changed is not None:
                result = changed
        if backward_hook is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=3,
                )
            result = backward_hook.setup_output_hook(result)
        if differentiated:
            _attach_legacy_backward_hooks(module, args, result)
        return result
    except Exception:
        for key, hook, with_kwargs, always_call in _forward_hooks(module):
            if not always_call or key in called:
                continue
            try:
                changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
                if changed is not None:
                    result = changed
            except Exception as error:
                whose = "global module" if key in _global_forward_hooks else "module"
                warnings.warn(
                    f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=3,
                )
        raise


def _forward_hooks(module: Members) -> Iterator[tuple[int, Any, bool, bool]]:
    """Id, hook, whether it takes keyword arguments, whether it is always called. The hooks may remove themselves."""
    groups = (
        (_global_forward_hooks, _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called),
        (module._forward_hooks, module._forward_hooks_with_kwargs, module._forward_hooks_always_called),
    )
    for hooks, with_kwargs, always_called in groups:
        for key, hook in [*hooks.items()]:
            yield key, hook, key in with_kwargs, key in always_called


def _run_forward_pre_hooks(
    module: Members, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for key, hook in [*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()]:
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _backward_hook(module: Members) -> Any:
    """What carries the full backward hooks of one call; None if there are none."""
    hooks = [*_backward_hooks(module, full=True)]
    pre_hooks = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
    if not hooks and not pre_hooks:
        return None
    from ...utils.hooks import BackwardHook

    return BackwardHook(module, hooks, pre_hooks)


def _backward_hooks(module: Members, full: bool) -> Iterator[Any]:
    if _global_is_full_backward_hook is full:
        yield from _global_backward_hooks.values()
    if module._is_full_backward_hook is full:
        yield from module._backward_hooks.values()


# ----- legacy backward hooks ----------------------------------------------------------------------------------------


def _attach_legacy_backward_hooks(module: Members, args: tuple[Any, ...], result: Any) -> None:
    """Put the hooks that are not full ones on the node of the first tensor of the result."""
    hooks = [*_backward_hooks(module, full=False)]
    if not hooks:
        return
    first = result
    while not isinstance(first, Tensor):
        first = next(value for value in first.values() if isinstance(value, Tensor)) if _is_dict(first) else first[0]
    node = first.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(HookWithModule(hook, module))
        complaint = _what_a_legacy_hook_misses(args, result, node)
        if complaint is not None:
            warnings.warn(
                f"Using {complaint}. Please use register_full_backward_hook to get the documented behavior.",
                FutureWarning,
                stacklevel=4,
            )


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _what_a_legacy_hook_misses(args: Any, result: Any, node: Node) -> str | None:
    deprecated = "is deprecated and will be removed in future versions. This hook will be missing some"
    outputs = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(each, Tensor) for each in outputs):
        return (
            "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
            f"{deprecated} of the grad_output"
        )
    if not all(isinstance(each, Tensor) for each in args):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors "
            f"{deprecated} of the grad_input"
        )
    if any(each.grad_fn is not None and each.grad_fn is not node for each in outputs):
        return (
            f"a non-full backward hook when outputs are generated by different autograd Nodes {deprecated} grad_output"
        )
    sources = {each.grad_fn for each in args if each.grad_fn is not None}
    if sources != {function for function, _ in node.next_functions}:
        return f"a non-full backward hook when the forward contains multiple autograd Nodes {deprecated} grad_input"
    return None
