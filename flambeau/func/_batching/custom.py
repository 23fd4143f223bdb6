"""Custom functions (`autograd.Function`) of many examples: by the user's rule, or by their own forward and backward.

Where there is a rule (the static method `vmap`) it gets the values. Otherwise `forward` and `backward` run as they are,
on examples, inside of one function of the values: autograd follows values, so that is what has to be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._core.tensor import Tensor
from ...autograd.function import Function, FunctionCtx, run_forward
from .level import Vmap


class VmapInfo(NamedTuple):
    """What a rule is told of the `vmap` around it."""

    batch_size: int
    randomness: str


def apply(level: Vmap, cls: type[Function], args: Sequence[Any]) -> Any:
    """The function `cls` of examples of `level`."""
    if cls.vmap is not Function.vmap:
        return _by_rule(level, cls, args)
    call = _Call(level, cls, [level.has(each) for each in args])
    with level.outside():
        results = _OfAllExamples.apply(call, *map(level.value, args))
    if not isinstance(results, tuple):
        return call.wrapped(results, 0)
    return tuple(call.wrapped(each, number) for number, each in enumerate(results))


def _by_rule(level: Vmap, cls: type[Function], args: Sequence[Any]) -> Any:
    name = cls.__name__
    if cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod: which of the two is meant? Leave one of them out."
        )
    in_dims = tuple(0 if level.has(each) else None for each in args)
    with level.outside():
        found = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *map(level.value, args))
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError(
                f"Expected the vmap staticmethod of {name} to have two returns, an output and out_dims with pytree "
                f"structure compatible with the output. Got {type(found).__name__}"
            )
        outputs, dims = found
        if not isinstance(outputs, tuple):
            return _example(level, outputs, dims[0] if isinstance(dims, tuple) else dims)
        if not isinstance(dims, tuple):
            dims = (dims,) * len(outputs)
        return tuple(_example(level, each, dim) for each, dim in zip(outputs, dims, strict=True))


def _example(level: Vmap, output: Any, dim: int | None) -> Any:
    return output if dim is None or not isinstance(output, Tensor) else level.wrapped(output.movedim(dim, 0))


class _Context(FunctionCtx):
    """The context of a function that sees examples."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.to_save = self.saved_for_forward = None
        self.dirty_tensors = self.non_differentiable = ()
        self.materialize_grads = True
        self.saved_tensors: tuple[Any, ...] = ()


class _Call:
    """One call of a function with examples: what its forward, backward and jvp have in common."""

    def __init__(self, level: Vmap, cls: type[Function], batched: list[bool]) -> None:
        self.level, self.cls = level, cls
        self.batched_inputs = batched
        self.batched_outputs: list[bool] = []
        self.batched_saved: dict[str, list[bool]] = {}
        self.shapes: list[Any] = []
        self.context: Any = None

    def wrapped(self, value: Any, number: int) -> Any:
        """A result as the function's caller sees it."""
        return self.level.wrapped(value) if self.batched_outputs[number] else value

    def unwrapped(self, examples: Sequence[Any] | None, kind: str) -> list[Any]:
        """The values of tensors that the function keeps for later."""
        examples = examples or ()
        self.batched_saved[kind] = [self.level.has(each) for each in examples]
        return [self.level.value(each) for each in examples]

    def later(
        self, function: Callable[..., Any], saved: Sequence[Any], kind: str, given: Sequence[Any], batched: list[bool]
    ) -> tuple[Vmap, tuple[Any, ...]]:
        """Run the backward or jvp on examples: those of a new level, since that of the forward may have ended."""
        level = type(self.level)(self.level.size, self.level.randomness)

        def examples(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
            pairs = zip(values, flags, strict=True)
            return [level.wrapped(each) if flag and each is not None else each for each, flag in pairs]

        self.context.saved_tensors = tuple(examples(saved, self.batched_saved[kind]))
        try:
            with level:
                results = function(self.context, *examples(given, batched))
        finally:
            self.context.saved_tensors = ()
        return level, results if isinstance(results, tuple) else (results,)


class _OfAllExamples(Function):
    """A custom function as one of values."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *values: Any) -> Any:
        """The values of the results."""
        level = call.level
        own = call.context = _Context(ctx.needs_input_grad[1:])
        pairs = zip(values, call.batched_inputs, strict=True)
        examples = tuple(level.wrapped(each) if batched else each for each, batched in pairs)
        call.shapes = [each.shape if isinstance(each, Tensor) else None for each in examples]
        with level:
            output = run_forward(call.cls, own, examples)
        outputs = output if isinstance(output, tuple) else (output,)
        call.batched_outputs = [level.has(each) for each in outputs]
        ctx.call = call
        ctx.save_for_backward(*call.unwrapped(own.to_save, "backward"))
        ctx.save_for_forward(*call.unwrapped(own.saved_for_forward, "jvp"))
        ctx.mark_dirty(*map(level.value, own.dirty_tensors))
        ctx.mark_non_differentiable(*map(level.value, own.non_differentiable))
        ctx.set_materialize_grads(own.materialize_grads)
        own.to_save = own.saved_for_forward = None
        results = tuple(map(level.value, outputs))
        return results if isinstance(output, tuple) else results[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradients of the values from those of the results."""
        call: _Call = ctx.call
        function = call.cls.user_backward()
        level, results = call.later(function, ctx.saved_tensors, "backward", gradients, call.batched_outputs)
        wanted = len(call.batched_inputs)
        if len(results) > wanted and all(each is None for each in results[wanted:]):
            results = results[:wanted]
        if len(results) != wanted:
            raise RuntimeError(
                f"function {call.cls.__name__}Backward returned an incorrect number of gradients (expected {wanted}, "
                f"got {len(results)})"
            )
        found = [None]
        for result, batched, shape in zip(results, call.batched_inputs, call.shapes, strict=True):
            found.append(None if result is None else _gradient(level, result, batched, shape))
        level.running = False
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
        """The tangents of the results from those of the values."""
        call: _Call = ctx.call
        level, results = call.later(call.cls.jvp, ctx.saved_tensors, "jvp", tangents, call.batched_inputs)
        pairs = zip(results, call.batched_outputs, strict=True)
        found = [None if each is None else level.front(each) if batched else each for each, batched in pairs]
        level.running = False
        return tuple(found)


def _gradient(level: Vmap, result: Any, batched: bool, shape: Any) -> Any:
    """The gradient of an input's value: that of one without examples is the sum over them."""
    if result.shape != shape:  # the examples of an input are broadcast, not its value
        with level:
            result = result.sum_to_size(shape)
    if batched:
        return level.front(result)
    return level.value(result).sum(0) if level.has(result) else result
