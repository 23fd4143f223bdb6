"""Modules that run side by side, each in a thread."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast import get_autocast_dtype, is_autocast_enabled
from ...autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ..modules.module import Module
from ._devices import DeviceLike, as_device

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """A tensor that a nest of containers holds; None if there is none."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, (list, tuple, dict)):
        members = obj.items() if isinstance(obj, dict) else obj
        return next((found for found in map(get_a_var, members) if found is not None), None)
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[DeviceLike | None] | None = None,
) -> list[Any]:
    """What each module makes of its input: one argument, or a tuple or list of them, and the keyword arguments.

    A module's device is that of its input if `devices` does not say. The threads have the gradient mode and the
    autocast of the calling one.

    Args:
        modules (sequence of Modules): the modules.
        inputs (sequence): the input of each module.
        kwargs_tup (Sequence[dict], optional): the keyword arguments of each module.
        devices (Sequence[DeviceLike | None], optional): the device of each module; None leaves them where they are.

    Returns:
        their results.

    Example:
        >>> layers = [torch.nn.ReLU(), torch.nn.Tanh()]
        >>> torch.nn.parallel.parallel_apply(layers, [torch.tensor([-1.0]), torch.tensor([0.0])])
        [tensor([0.]), tensor([0.])]
    """
    count = len(modules)
    for name, sequence in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if sequence is not None and len(sequence) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {name} {len(sequence)}")
    results: list[Any] = [None] * count
    errors: dict[int, BaseException] = {}
    where = [_place(each, number, inputs[number]) for number, each in enumerate(devices or [None] * count)]
    modes = _modes_of_this_thread({each.type for each in where})

    from ... import cuda

    def run(number: int) -> None:
        arguments = inputs[number] if isinstance(inputs[number], (list, tuple)) else (inputs[number],)
        keywords = kwargs_tup[number] if kwargs_tup is not None else {}
        try:
            with contextlib.ExitStack() as stack:
                for enter in modes:
                    stack.enter_context(enter())
                if where[number].type == "cuda":  # as the thread's own device: what the module makes there is there
                    stack.enter_context(cuda.device(where[number]))
                results[number] = modules[number](*arguments, **keywords)
        except BaseException as error:
            errors[number] = error

    if count == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in sorted(errors):
        _raise(errors[number], f"in replica {number} on device {_shown(where[number])}")
    return results


def _shown(place: Any) -> Any:
    """A GPU by its ordinal alone, as in PyTorch."""
    return place.index if place.type == "cuda" else place


def _place(named: DeviceLike | None, number: int, input: Any) -> Any:
    if named is not None:
        return as_device(named)
    tensor = get_a_var(input)
    if tensor is None:
        raise RuntimeError(
            f"in replica {number}, no device was provided and no tensor input was found; device cannot be resolved"
        )
    return tensor.device


def _modes_of_this_thread(types: set[str]) -> list[Callable[[], Any]]:
    """Contexts that give another thread the modes of this one."""
    modes: list[Callable[[], Any]] = [partial(set_grad_enabled, is_grad_enabled())]
    for kind in sorted(types):
        if is_autocast_enabled(kind):
            from ...amp import autocast

            modes.append(partial(autocast, kind, get_autocast_dtype(kind)))
    return modes


class _Text(str):
    """A message that KeyError, which shows its argument's repr, leaves readable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _raise(error: BaseException, where: str) -> NoReturn:
    """Raise an error of the same type that says where it happened, with the traceback of the thread."""
    original = "".join(traceback.format_exception(error))
    message = _Text(f"Caught {type(error).__name__} {where}.\nOriginal {original}")
    try:
        again = type(error)(message)
    except Exception:  # a type whose arguments are not a message
        again = RuntimeError(message)
    raise again from error
