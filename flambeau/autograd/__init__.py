"""Automatic differentiation: `backward`, `grad`, custom functions, modes and hooks."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._core.arrays.narrow import number_as
from .._core.modes import THREAD
from .._core.process.caller import warn_user_once
from .._core.slots import SLOTS
from .._core.tensor import Tensor, new_counter
from .._dispatch.public.overrides import has_users_override, run_override, users_overriding
from . import graph
from .engine import run_backward
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

TensorOrTensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add to the leaves' `.grad` the gradients of the sum of `tensors`, each weighted by its `grad_tensors` entry.

    Args:
        tensors: a tensor, or a sequence of them.
        grad_tensors: the weight of each tensor's elements, of its shape; None is right for tensors of one element.
        retain_graph (bool, optional): whether the graph stays for another backward pass; None means as `create_graph`.
        create_graph (bool): whether the gradients can be differentiated again. Default: `False`.
        grad_variables: the old name of `grad_tensors`.
        inputs: the tensors whose `.grad` changes, alone, in a sequence, or as the values of a dict; None means all.

    Raises:
        RuntimeError: a tensor has more than one element and no weight, or does not require gradients.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward([(x**2).sum(), x.sum()])
        >>> x.grad
        tensor([3., 5.])
    """
    if grad_variables is not None:
        import warnings

        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    inputs = _listed(inputs, "backward")
    if inputs is not None and len(_as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _as_tuple(tensors)
    if has_users_override(outputs):
        options = {
            "grad_tensors": grad_tensors, "retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs,
        }  # fmt: skip
        run_override(backward, users_overriding(outputs), (tensors,), options)
        return
    roots = root_gradients(outputs, _optional_tuple(grad_tensors, len(outputs)))
    wanted = None
    if inputs is not None:
        wanted = [_edge_of(each) for each in _as_tuple(inputs)]
        for each in _as_tuple(inputs):
            if isinstance(each, Tensor):
                each.retain_grad()  # of those that are no leaves
    keep = create_graph if retain_graph is None else retain_graph
    _check_flags(keep, create_graph)
    if create_graph:
        warn_user_once(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient, which keeps memory until the garbage collector runs: use autograd.grad, or set the gradients "
            "to None when they are no longer needed."
        )
    run_backward(roots, wanted, keep, create_graph, True)


def backward_from(tensor: Tensor, retain_graph: bool | None) -> None:
    """`backward` of one tensor with no further arguments, as most programs call it."""
    if retain_graph is not None:
        _check_flags(retain_graph)
    edge = tensor._edge()
    if edge is None:
        backward(tensor)  # says what is wrong
    else:
        run_backward([(*edge, _implicit_gradient(tensor))], None, bool(retain_graph), False, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of the sum of `outputs` with respect to `inputs`; nobody's `.grad` changes.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors by which to differentiate; a tensor, a sequence of them, or a dict with them as values.
        grad_outputs: the weight of each output's elements, of its shape; None is right for outputs of one element.
        retain_graph (bool, optional): whether the graph stays for another backward pass; None means as `create_graph`.
        create_graph (bool): whether the gradients can be differentiated again. Default: `False`.
        only_inputs (bool): deprecated, and ignored. Default: `True`.
        allow_unused (bool, optional): whether an input that the outputs do not depend on gives None, in place of an
            error.
        is_grads_batched (bool): whether `grad_outputs` have a batch dimension in front, which is computed by `vmap`.
            Default: `False`.
        materialize_grads (bool): whether such inputs give zeros in place of None. Default: `False`.

    Returns:
        tuple of Tensors: a gradient for each input, of its shape; for a dict, a dict with its keys.

    Raises:
        RuntimeError: an input is not part of the graph, and `allow_unused` is not set.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> first, torch.autograd.grad(first, x)
        (tensor(27., grad_fn=<MulBackward0>), (tensor(18.),))
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    results_of = _as_tuple(outputs)
    if isinstance(inputs, Mapping):
        listed = grad(
            outputs, _listed(inputs, "grad"), grad_outputs, retain_graph, create_graph, True, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, listed, strict=True))
    wanted_of = _as_tuple(inputs)
    relevant = (*results_of, *wanted_of)
    if has_users_override(relevant):
        options = {
            "grad_outputs": grad_outputs, "retain_graph": retain_graph, "create_graph": create_graph,
            "allow_unused": allow_unused, "is_grads_batched": is_grads_batched, "materialize_grads": materialize_grads,
        }  # fmt: skip
        return run_override(grad, users_overriding(relevant), (results_of, wanted_of), options)
    if not wanted_of:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = _optional_tuple(grad_outputs, len(results_of))
    keep = create_graph if retain_graph is None else retain_graph
    _check_flags(keep, create_graph, allow_unused)
    if is_grads_batched:
        return _batched_grad(results_of, wanted_of, given, keep, create_graph, allow_unused, materialize_grads)
    roots = root_gradients(results_of, given)
    found = run_backward(roots, [_edge_of(each) for each in wanted_of], keep, create_graph, False)
    return tuple(
        _finish(each, gradient, allow_unused, materialize_grads, create_graph)
        for each, gradient in zip(wanted_of, found, strict=True)
    )


def _listed(inputs: Any, caller: str) -> Any:
    """`inputs`, or the values of a dict of them."""
    if not isinstance(inputs, Mapping):
        return inputs
    if type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. Other Mapping types are "
            "not supported."
        )
    return tuple(inputs.values())


def _finish(wanted: Any, gradient: Tensor | None, allow_unused: bool, materialize: bool, create_graph: bool) -> Any:
    if gradient is not None:
        return gradient
    if not allow_unused:
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior. (It has shape "
            f"{list(wanted.shape) if isinstance(wanted, Tensor) else '?'}.)"
        )
    return wanted.new_zeros(wanted.shape, requires_grad=create_graph) if materialize else None


def _batched_grad(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    given: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize: bool,
) -> tuple[Any, ...]:
    """The gradients for each entry along the first dimension of those given: one pass for all of them."""
    for number, (output, gradient) in enumerate(zip(outputs, given, strict=True)):
        if gradient is not None and gradient.shape[1:] != output.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{number}] has a shape of {gradient.shape} and "
                f"output[{number}] has a shape of {output.shape}."
            )
    if any(each is None for each in given):
        raise RuntimeError("is_grads_batched=True needs grad_outputs, with one common first dimension, for all outputs")
    found: list[bool] = []

    def one(*gradients: Any) -> Any:
        results = grad(outputs, inputs, gradients, keep, create_graph, True, allow_unused, False, materialize)
        found.extend(each is not None for each in results)
        return tuple(each for each in results if each is not None)

    rows = iter(SLOTS.vmap(one)(*given))
    return tuple(next(rows) if each else None for each in found)


def root_gradients(outputs: tuple[Any, ...], given: tuple[Any, ...]) -> list[tuple[Any, int, Tensor]]:
    """For each output its edge and the gradient to start from; ones for scalars."""
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    roots = []
    for number, (output, gradient) in enumerate(zip(outputs, given, strict=True)):
        if not isinstance(output, (Tensor, graph.GradientEdge)):
            raise AssertionError(f"Expected output to be a torch.Tensor, but got {type(output).__name__}")
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
        if gradient is not None and isinstance(output, Tensor):
            _check_gradient(number, output, gradient)
        edge = output._edge() if isinstance(output, Tensor) else _edge_of(output)
        if edge is None:
            raise RuntimeError(
                f"element {number} of tensors does not require grad and does not have a grad_fn: nothing that it was "
                "computed from requires gradients, or it was computed under no_grad() or from a .detach()ed tensor. "
                "Set requires_grad=True on the tensors to differentiate by, before computing."
            )
        if gradient is None:
            gradient = _implicit_gradient(output)
        roots.append((edge[0], edge[1], gradient))
    return roots


def _implicit_gradient(output: Any) -> Tensor:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs: pass a gradient for each graph edge"
        )
    if output._array.size != 1:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs: this one has shape {list(output._array.shape)}. "
            "Reduce it first, as in .sum().backward(), or pass the gradient of each element."
        )
    if not output._kind.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
    if hasattr(type(output), "__torch_dispatch__"):
        from .._ops.create.like import ones_like

        return ones_like(output)
    kind = output._kind.plain
    if not output._array.shape and kind.is_cpu and kind in THREAD.modes.direct:
        try:  # what `filled` gives
            return Tensor._from_parts((number_as(1, kind.dtype.numpy), kind, new_counter()))
        except MemoryError as error:
            raise SLOTS.out_of_memory(error) from None
    gradient: Tensor = _constants().filled(output._array.shape, kind, 1)
    return gradient


@functools.cache
def _constants() -> Any:
    from .._ops.create import constants

    return constants


def _check_gradient(number: int, output: Tensor, gradient: Tensor) -> None:
    if gradient._array.shape != output._array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a "
            f"shape of {output.shape}."
        )
    if gradient.dtype.is_complex != output.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{number}] has a dtype of {gradient.dtype} and output[{number}] has a dtype of {output.dtype}."
        )


def _check_flags(*flags: Any) -> None:
    """Refuse what is neither a bool nor an integer of one byte."""
    for flag in flags:
        if flag is not True and flag is not False and not 0 <= operator.index(flag) <= 255:
            raise OverflowError(f"a flag must be a bool, or an integer from 0 to 255, but is {flag}")


def _edge_of(wanted: Any) -> tuple[Any, int]:
    if isinstance(wanted, graph.GradientEdge):
        node = wanted.node
        return (node.variable if isinstance(node, graph.AccumulateGrad) else node), wanted.output_nr
    if not isinstance(wanted, Tensor):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(wanted).__name__}")
    edge = wanted._edge()
    if edge is None and not wanted.requires_grad:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge or (wanted, 0)  # a view that was made without recording: nothing leads to it


def _is_checkpoint_valid() -> bool:
    """Whether re-entrant checkpoints may run: not inside a backward pass that stops at given inputs."""
    running = THREAD.modes.backward_pass
    return running is None or running.inputs is None


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (Tensor, graph.GradientEdge)) else tuple(value)


def _optional_tuple(value: Any, length: int) -> tuple[Any, ...]:
    if value is None:
        return (None,) * length
    return (value,) if isinstance(value, Tensor) else tuple(value)


def __getattr__(name: str) -> Any:
    # Loaded on first use: they cost import time, and few programs need them.
    import importlib

    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'flambeau.autograd' has no attribute {name!r}")
    module = importlib.import_module(f"flambeau.autograd.{home}")
    value = module if name in _LAZY_MODULES else getattr(module, name)
    globals()[name] = value
    return value


_LAZY = {
    "Function": "function", "NestedIOFunction": "function", "function": "function",
    "Variable": "variable", "variable": "variable",
    "functional": "functional", "forward_ad": "forward_ad",
    "gradcheck": "gradcheck", "gradgradcheck": "gradcheck",
    "profiler": "profiler", "profiler_legacy": "profiler_legacy", "profiler_util": "profiler_util",
    "set_multithreading_enabled": "grad_mode", "enforce_grad_layout_policy": "grad_mode",
    "_force_original_view_tracking": "grad_mode",
    "kineto_available": "profiler", "_functions": "_functions",
    "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode", "anomaly_mode": "anomaly_mode",
}  # fmt: skip

_LAZY_MODULES = frozenset({
    "_functions",
    "anomaly_mode", "forward_ad", "function", "functional", "profiler", "profiler_legacy", "profiler_util", "variable",
})  # fmt: skip

__all__ = ["Tensor", "backward", "enable_grad", "grad", "graph", "inference_mode", "no_grad", "set_grad_enabled"]
