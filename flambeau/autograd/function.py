"""Custom functions: subclass `Function`, write `forward` and `backward`, call `apply`.

The context that `forward` and `backward` receive is the node itself: what is stored on it lives as long as the graph.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._core.modes import THREAD
from .._core.node import Node, SavedTensor, initialise, save
from .._core.tensor import CUSTOM_FUNCTION, DEFAULT, MULTI_OUTPUT, Tensor
from .._core.text.errors import GRAPH_FREED, LEAF_INPLACE
from .._dispatch.changes.history import end_change, rebase_history
from .._dispatch.changes.inplace import check_writable
from .._dispatch.dispatch import note_traceback, view_of
from .grad_mode import no_grad

NO_TENSOR: Any = ((), None)
"""Stands for the shape and kind of an output that is no tensor."""


class FunctionCtx:
    """What `forward` can tell `backward`."""

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs and outputs for `backward`; they are checked for in-place changes."""
        given: tuple[Any, ...] = tensors
        for position, each in enumerate(given):
            if each is not None and not isinstance(each, Tensor) and not hasattr(type(each), "__torch_function__"):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of type "
                    f"{type(each).__name__}"
                )
        self.to_save: tuple[Tensor | None, ...] | None = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        self.saved_for_forward: tuple[Tensor | None, ...] | None = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs `forward` changed in place."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Nothing: it warns that tensors with common memory are noticed without being told of."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs that received no gradient."""
        self.materialize_grads = value


_ENGINE_NAMES = "code", "edges", "instruction", "outputs", "sequence"
"""Attributes of nodes that a user's own names on `ctx` may meet."""


@contextmanager
def _exchanged(node: FunctionNode, values: dict[str, Any]) -> Iterator[None]:
    before = {name: getattr(node, name) for name in values}
    for name, value in values.items():
        setattr(node, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            values[name] = getattr(node, name)
            setattr(node, name, value)


class FunctionNode(Node, FunctionCtx):
    """The node, and the context, of one call of a custom function."""

    _forward_cls: type[Function]
    __repr__ = object.__repr__  # with the module, as PyTorch's

    def __init__(self) -> None:
        self.to_save = None
        self.saved_for_forward = None
        self.dirty_tensors = ()
        self.non_differentiable = ()
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: list[SavedTensor | None] | None = []
        self._is_tensor: tuple[bool, ...] = ()
        self._in_jvp = False
        self._user: dict[str, Any] | None = None
        initialise(self, (), ())
        self._begun = {name: getattr(self, name) for name in _ENGINE_NAMES}

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`."""
        if self._saved is None:
            raise RuntimeError(GRAPH_FREED)
        if self._in_jvp and self.saved_for_forward is not None:
            return self.saved_for_forward
        return tuple(None if each is None else each.unpack(self) for each in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise RuntimeError(GRAPH_FREED)
        return tuple(self._saved)

    def apply(self, *grads: Any) -> Any:
        """Run the user's `backward` (or `vjp`), as the engine does with one list of gradients."""
        gradients = list(grads[0]) if len(grads) == 1 and isinstance(grads[0], list) else list(grads)
        if self.materialize_grads:
            gradients = [self._zeros(i) if each is None else each for i, each in enumerate(gradients)]
        backward = self._forward_cls.user_backward()
        boxed = getattr(self._forward_cls, "boxed_grads_call", False)  # one list, which `backward` may empty
        given = [gradients] if boxed else gradients
        if self._user is None:
            results = backward(self, *given)
        else:
            with _exchanged(self, self._user):
                results = backward(self, *given)
        return self._for_edges(results if isinstance(results, (tuple, list)) else (results,))

    def apply_boxed(self, *grads: Any) -> Any:
        """Run the user's `backward` on one list of gradients, which is emptied so that they can be freed."""
        if len(grads) != 1 or not isinstance(grads[0], list):
            return self.apply(*grads)
        taken = list(grads[0])
        grads[0].clear()
        return self.apply(*taken)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Run the user's `jvp`."""
        return self._forward_cls.jvp(self, *tangents)

    def take_user_values(self) -> None:
        """Remember what the user's `forward` has assigned to names that are the engine's."""
        found = {name: getattr(self, name) for name in _ENGINE_NAMES}
        changed = {name: value for name, value in found.items() if value is not self._begun[name]}
        if changed:
            self._user = changed
            for name in changed:
                setattr(self, name, self._begun[name])

    def _zeros(self, number: int) -> Tensor | None:
        from .._ops.create.constants import zeros

        output = self.outputs[number]
        if output is NO_TENSOR:
            return None
        shape, kind = output
        return zeros(shape, dtype=kind.dtype, device=kind.device)

    def _for_edges(self, results: Sequence[Any]) -> list[Any]:
        wanted = len(self._is_tensor)
        if len(results) > wanted and all(each is None for each in results[wanted:]):
            results = results[:wanted]
        if len(results) != wanted:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {wanted}, got "
                f"{len(results)})"
            )
        kept = []
        for position, (each, is_tensor) in enumerate(zip(results, self._is_tensor, strict=True)):
            if is_tensor:
                if each is not None and not isinstance(each, Tensor):
                    raise RuntimeError(
                        f"expected Variable or None (got {type(each).__name__}) as gradient {position} of {self.name()}"
                    )
                kept.append(each)
            elif each is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {position + 1}, but "
                    "the corresponding forward input was not a Variable"
                )
        return kept

    def release(self) -> None:
        for each in self._saved or ():
            if each is not None:
                each.release()
        self._saved = None


class FunctionMeta(type):
    """Gives every custom function its node class: `Exp` records `ExpBackward`."""

    _backward_cls: type[FunctionNode]

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(f"{name}Backward", (FunctionNode,), {"_forward_cls": cls, "__module__": __name__})


class Function(metaclass=FunctionMeta):
    """Base class of custom differentiable functions.

    >>> class Double(flambeau.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> Double.apply(flambeau.ones(2, requires_grad=True))
    tensor([2., 2.], grad_fn=<DoubleBackward>)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method: write forward and backward as @staticmethod and call "
            "Name.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: `forward(ctx, *inputs)`, or `forward(*inputs)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Store on `ctx` what `backward` needs, once `forward(*inputs)` has given `output`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the inputs, for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """How to run on a batch, for `vmap`."""
        raise NotImplementedError(
            "You must implement the vmap function for custom autograd.Function to use it with vmap."
        )

    @classmethod
    def user_backward(cls) -> Callable[..., Any]:
        """The `backward` or `vjp` that the class has."""
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return vjp if vjp is not Function.vjp else backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record the call."""
        if kwargs:
            args = _bound_arguments(cls, args, kwargs)
        elif cls.setup_context is not Function.setup_context:
            args = _with_defaults(cls.forward, args)
        modes = THREAD.modes
        if modes.interpreters:
            for each in args:
                if isinstance(each, Tensor) and hasattr(each, "_custom_function"):
                    found = each._custom_function(cls, args)
                    if found is not NotImplemented:
                        return found
                    break
        node = cls._backward_cls()
        node._is_tensor = tuple([isinstance(each, Tensor) for each in args])
        node.needs_input_grad = tuple([isinstance(each, Tensor) and each.requires_grad for each in args])
        recorded = modes.grad and any(node.needs_input_grad)
        edges = [each._edge() if recorded else None for each in args if isinstance(each, Tensor)]
        with no_grad():
            output = run_forward(cls, node, args)
        node.take_user_values()
        return _wrap_outputs(cls, node, args, output, tuple(edges), recorded)


BackwardCFunction = FunctionNode
_SingleLevelFunction = Function


class InplaceFunction(Function):
    """An older base of functions that may change their input; it only remembers whether they do."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """An older base of functions whose arguments are nests of tensors. Calling one is the error that PyTorch has."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result by `forward_extended` of the first argument."""
        return args[0].forward_extended(*args[1:], **kwargs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradients by `backward_extended`."""
        return ctx.backward_extended(*gradients)

    def save_for_backward(self, *args: Any) -> None:
        """Keep tensors."""
        self.to_save = args

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was kept."""
        return self.to_save

    def mark_dirty(self, *args: Any, **kwargs: Any) -> None:
        """Say which inputs were changed."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any, **kwargs: Any) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def forward_extended(self, *input: Any, **kwargs: Any) -> Any:
        """To be written by who inherits."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> Any:
        """To be written by who inherits."""
        raise NotImplementedError


def run_forward(cls: type[Function], ctx: Any, args: tuple[Any, ...]) -> Any:
    """The user's `forward`, in one style or the other."""
    if cls.setup_context is Function.setup_context:
        return cls.forward(ctx, *args)
    output = cls.forward(*args)
    cls.setup_context(ctx, args, output)
    return output


def _with_defaults(forward: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """All positional arguments, those that were left out too: `setup_context` and `backward` count on them."""
    defaults: tuple[Any, ...] | None = getattr(forward, "__defaults__", None)
    if defaults is None:
        return args
    missing: int = forward.__code__.co_argcount - len(args)
    return (*args, *defaults[-missing:]) if 0 < missing <= len(defaults) else args


def _bound_arguments(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Keyword arguments put into the places that `forward` gives them: gradients are returned by position."""
    import inspect

    signature = inspect.signature(cls.forward)
    context = (None,) if cls.setup_context is Function.setup_context else ()
    bound = signature.bind(*context, *args, **kwargs)
    bound.apply_defaults()
    return bound.args[len(context) :]


def _wrap_outputs(cls: Any, node: FunctionNode, args: tuple[Any, ...], output: Any, edges: Any, recorded: bool) -> Any:
    single = not isinstance(output, tuple)
    outputs = [output] if single else list(output)
    _check_marked(node)
    node.edges = edges
    if recorded and THREAD.modes.anomaly:
        note_traceback(node)
    node.outputs = tuple((each._array.shape, each._kind) if isinstance(each, Tensor) else NO_TENSOR for each in outputs)
    for each in node.dirty_tensors:
        end_change(each)
    wrapped = [_wrap_output(cls, node, number, each, args, recorded) for number, each in enumerate(outputs)]
    if not all(_is_among(each, outputs) for each in node.dirty_tensors):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
            "are modified inplace must all be outputs of the Function."
        )
    if recorded:
        if sum(_is_differentiable(node, each) for each in outputs) > 1:
            for each in wrapped:
                if isinstance(each, Tensor) and each._view is not None:
                    each._view.creation = MULTI_OUTPUT
        node._saved = [None if each is None else _saved(node, each) for each in node.to_save or ()]
    node.to_save = None
    if THREAD.modes.forward_level >= 0:
        from .forward_ad import propagate_custom

        propagate_custom(cls, node, args, wrapped)
    return wrapped[0] if single else tuple(wrapped)


def _is_among(value: Any, others: Sequence[Any]) -> bool:
    return any(value is each for each in others)


def _check_marked(node: FunctionNode) -> None:
    """Refuse marks on what is no tensor."""
    for each in node.non_differentiable:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"mark_non_differentiable only accepts variable arguments, but got {type(each).__name__}"
            )
    for position, each in enumerate(node.dirty_tensors):
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"mark_dirty can only accept variables, but argument {position} is of type {type(each).__name__}"
            )


def _is_differentiable(node: FunctionNode, output: Any) -> bool:
    return isinstance(output, Tensor) and output._kind.differentiable and not _is_among(output, node.non_differentiable)


def _wrap_output(
    cls: type[Function], node: FunctionNode, number: int, output: Any, args: tuple[Any, ...], recorded: bool
) -> Any:
    """Give an output of `forward` its place in the graph. An input that is returned unchanged is returned as a view."""
    if not isinstance(output, Tensor):
        return output
    is_input, dirty = _is_among(output, args), _is_among(output, node.dirty_tensors)
    if not recorded or not _is_differentiable(node, output):
        if output.requires_grad:
            if is_input:
                output = output.detach()
            elif output._view is None:
                output.detach_()
        elif is_input and not dirty:
            output = _as_a_view(cls, node, output)
    elif dirty:
        _check_changed(node, output, is_input)
        output._grad = None
        rebase_history(output, node, number)
    else:
        if is_input:
            output = _as_a_view(cls, node, output)
        output._requires_grad = True
        output._grad_fn = node
        output._output_nr = number
        if output._view is not None:
            assert output._counter is not None
            output._view.version = output._counter[0]
    if output._view is not None and not (is_input and dirty):
        output._view.creation = CUSTOM_FUNCTION
    return output


def _as_a_view(cls: type[Function], node: FunctionNode, output: Tensor) -> Tensor:
    """An input that is returned unchanged, as a tensor of its own."""
    kept = (*(node.to_save or ()), *(node.saved_for_forward or ()))
    if cls.setup_context is not Function.setup_context and _is_among(output, kept):
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
            "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x), "
            "or call save_for_backward inside a forward that has ctx."
        )
    return view_of(output, output._array, output._kind)


def _check_changed(node: FunctionNode, output: Tensor, is_input: bool) -> None:
    """Refuse changes in place that the graph has no room for."""
    if output._grad_fn is None and output.requires_grad:
        raise RuntimeError(LEAF_INPLACE.replace("is being", "has been"))  # the function has returned
    if not is_input:
        told = (
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty()."
        )
        if output._view is not None:
            raise RuntimeError(told)
        warnings.warn(told, UserWarning, stacklevel=5)
    if output._view is None:
        return
    if len(node.outputs) > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
            "return more than one Tensor. This is not supported by the current autograd engine. Pass a tensor that "
            "is no view (x.clone()), or return the other tensors from a function of their own."
        )
    check_writable(output, brings_grad=True)


def _saved(node: FunctionNode, tensor: Tensor) -> SavedTensor:
    """A tensor kept for `backward`; outputs are kept with the history that they have now."""
    view = tensor._view
    is_lost = (
        view is not None
        and view.creation != DEFAULT
        and view.version != tensor._version
        and (tensor._grad_fn is not None or view.base.requires_grad)
    )
    if not is_lost:
        return save(tensor, node if tensor._grad_fn is node else None)
    saved = save(tensor.detach())  # it cannot follow its base, and says so when `backward` asks for it
    if saved.tensor is not None:
        saved.tensor = None
        special = saved._specials()
        special.packed, special.unpack, special.leaf = tensor, _with_history, None
    elif tensor._grad_fn is not None:  # a hook has packed it: its history is asked for now, and there is none
        _ = tensor.grad_fn
    return saved


def _with_history(tensor: Tensor) -> Tensor:
    _ = tensor.grad_fn  # an error where it is a view that cannot follow its base
    return tensor


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose results cannot be differentiated again; trying to do so is an error."""

    @functools.wraps(fn)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = fn(ctx, *grads)
        if not THREAD.modes.grad:
            return results
        if not any(isinstance(each, Tensor) and each.requires_grad for each in grads):
            return results
        single = not isinstance(results, tuple)
        marked = tuple(
            each if each is None else _Twice.apply(each.detach().requires_grad_())
            for each in ((results,) if single else results)
        )
        return marked[0] if single else marked

    return wrapped


class _Twice(Function):
    """Fails in backward: the derivative of a `once_differentiable` function."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


_Twice._backward_cls.__name__ = "Error"  # as PyTorch's node is called
