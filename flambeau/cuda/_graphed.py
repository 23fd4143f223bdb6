"""`make_graphed_callables`: functions and modules whose forward and backward passes are captured graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import autograd
from .._core.slots import SLOTS
from .._core.tensor import Tensor
from ..autograd.function import Function
from ..nn.modules.module import Module


class _Captured:
    """One callable: what goes in and out of its two graphs, in memory that stays where it is."""

    def __init__(self, function: Callable[..., Any], sample: tuple[Any, ...]) -> None:
        self.function = function
        self.sample = sample
        self.inputs, self.form = SLOTS.tree_flatten(sample)
        if not all(isinstance(each, Tensor) for each in self.inputs):
            raise TypeError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )
        self.parameters: tuple[Tensor, ...] = ()
        if isinstance(function, Module):
            if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
                raise RuntimeError("Modules must not have hooks registered at the time they are passed; add them after")
            if any(each.requires_grad for each in function.buffers()):
                raise RuntimeError("only parameters may be trainable: all buffers must have requires_grad=False")
            self.parameters = tuple(function.parameters())
        self.places: tuple[Tensor, ...] = (*self.inputs, *self.parameters)
        self.outputs: list[Tensor] = []
        self.output_form: Any = None
        self.given: list[Tensor | None] = []
        """The gradients of the outputs."""
        self.found: list[Tensor | None] = []
        """The gradients of the places."""

    @property
    def _differentiable(self) -> list[Tensor]:
        return [each for each in self.places if each.requires_grad]

    def warm_up(self, times: int, allow_unused: bool) -> None:
        """Let everything that happens only the first time happen."""
        for _ in range(times):
            outputs = [each for each in SLOTS.tree_flatten(self.function(*self.sample))[0] if each.requires_grad]
            if outputs and self._differentiable:
                autograd.grad(
                    outputs, self._differentiable, [each.new_empty(each.shape) for each in outputs],
                    allow_unused=allow_unused,
                )  # fmt: skip

    def capture_forward(self, graph: Any) -> None:
        """Inside the capture of the forward graph."""
        self.forward_graph = graph
        self.outputs, self.output_form = SLOTS.tree_flatten(self.function(*self.sample))

    def prepare_backward(self) -> None:
        """Before the capture of the backward graph: memory for the gradients that it is given."""
        self.given = [each.new_empty(each.shape) if each.requires_grad else None for each in self.outputs]

    def capture_backward(self, graph: Any, allow_unused: bool) -> None:
        """Inside the capture of the backward graph."""
        self.backward_graph = graph
        outputs = [each for each in self.outputs if each.requires_grad]
        found: list[Any] = []
        if outputs and self._differentiable:
            given = [each for each in self.given if each is not None]
            found = list(autograd.grad(outputs, self._differentiable, given, allow_unused=allow_unused))
        gradients = iter(found)
        self.found = [next(gradients, None) if each.requires_grad else None for each in self.places]

    def callable(self) -> Callable[..., Any]:
        """What takes the place of the function."""
        graphed = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *given: Tensor) -> Any:
                for place, each in zip(graphed.inputs, given, strict=False):
                    if place.data_ptr() != each.data_ptr():
                        place.copy_(each)
                graphed.forward_graph.replay()
                ctx.mark_non_differentiable(*[each for each in graphed.outputs if not each.requires_grad])
                return tuple([each.detach() for each in graphed.outputs])

            @staticmethod
            def backward(ctx: Any, *given: Any) -> Any:
                for place, each in zip(graphed.given, given, strict=True):
                    if place is not None and place.data_ptr() != each.data_ptr():
                        place.copy_(each)
                graphed.backward_graph.replay()
                return tuple([None if each is None else each.detach() for each in graphed.found])

        def run(*args: Any) -> Any:
            outputs = Graphed.apply(*SLOTS.tree_flatten(args)[0], *graphed.parameters)
            return SLOTS.tree_unflatten(list(outputs), graphed.output_form)

        return run


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """The callables with their forward and backward passes as captured graphs, in one pool of memory.

    They must be called in the order in which they are given, with tensors of the samples' shapes.

    Args:
        callables: a function or module, or a tuple of them.
        sample_args: a tuple of arguments of the shapes that calls will have, or one for each callable.
        num_warmup_iters (int): how many calls run before the capture. Default: `3`.
        allow_unused_input (bool): whether an input may have no gradient. Default: `False`.
        pool: the memory to share, from `graph_pool_handle`.

    Returns:
        what is called in place of the callables.
    """
    from .. import is_autocast_cache_enabled, is_autocast_enabled
    from ._device import synchronize
    from ._graphs import CUDAGraph, graph, graph_pool_handle
    from ._streams import Stream

    if is_autocast_enabled() and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    captured = [_Captured(each, tuple(sample)) for each, sample in zip(functions, samples, strict=True)]
    pool = graph_pool_handle() if pool is None else pool
    synchronize()
    with Stream():
        for each in captured:
            each.warm_up(num_warmup_iters, allow_unused_input)
    synchronize()
    for each in captured:
        made = CUDAGraph()
        with graph(made, pool=pool):
            each.capture_forward(made)
    for each in reversed(captured):
        each.prepare_backward()
        made = CUDAGraph()
        with graph(made, pool=pool):
            each.capture_backward(made, allow_unused_input)
    results = tuple([_installed(each) for each in captured])
    return results[0] if single else results


def _installed(captured: _Captured) -> Any:
    """The function's replacement; a module gets it as its `forward`, for the mode that it was captured in."""
    graphed, module = captured.callable(), captured.function
    if not isinstance(module, Module):
        return graphed
    mode, before = module.training, module.forward

    def forward(*args: Any) -> Any:
        return graphed(*args) if module.training == mode else before(*args)

    setattr(module, "forward", forward)  # noqa: B010
    return module
