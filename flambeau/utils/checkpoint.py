"""Activation checkpointing: save a function's inputs instead of its intermediates, and run it again in backward.

Two variants. The reentrant one (`use_reentrant=True`) is an `autograd.Function` that runs the function without a
graph, and in backward runs it again with one. The other keeps the graph of the first run but saves a placeholder for
every tensor in it; the first placeholder that backward asks for runs the function again and fills them all.
"""

from __future__ import annotations

import contextlib
import enum
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import flambeau
from flambeau._core.modes import THREAD
from flambeau._core.process.interrupts import Restoring
from flambeau._core.tensor import Tensor
from flambeau._dispatch.arguments.autocast import AutocastState
from flambeau.autograd.function import Function

from ._selective_checkpoint import SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "SelectiveCheckpointContext",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

ContextPair = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]

_early_stop_override: ContextVar[bool | None] = ContextVar("checkpoint_early_stop", default=None)
_debug_override: ContextVar[bool | None] = ContextVar("checkpoint_debug", default=None)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first one did.

    Example:
        >>> issubclass(torch.utils.checkpoint.CheckpointError, RuntimeError)
        True
    """


def noop_context_fn() -> ContextPair:
    """The default `context_fn`: nothing around either run.

    Returns:
        two contexts that do nothing.

    Example:
        >>> first, second = torch.utils.checkpoint.noop_context_fn()
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def _override(variable: ContextVar[bool | None], value: bool | None) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _overruled(variable: ContextVar[bool | None], argument: bool) -> bool:
    value = variable.get()
    return argument if value is None else value


def set_checkpoint_early_stop(enable: bool) -> contextlib.AbstractContextManager[None]:
    """Whether checkpoints made inside the `with` block stop recomputing once they have all that backward needs.

    Args:
        enable (bool): whether they stop.

    Returns:
        a context manager.

    Example:
        >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     y = torch.utils.checkpoint.checkpoint(torch.exp, torch.ones(2, requires_grad=True), use_reentrant=False)
    """
    return _override(_early_stop_override, enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> contextlib.AbstractContextManager[None]:
    """Overrule the `debug` argument of the checkpoints made inside the `with` block; None leaves it alone.

    Args:
        enabled (bool, optional): whether it is on.

    Returns:
        a context manager.

    Example:
        >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     y = torch.utils.checkpoint.checkpoint(torch.exp, torch.ones(2, requires_grad=True), use_reentrant=False)
    """
    return _override(_debug_override, enabled)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], ContextPair] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run `function(*args)` now, and again in backward, instead of keeping its intermediate tensors.

    `preserve_rng_state=False` lets the second run draw other random numbers than the first. The remaining options and
    keyword arguments for `function` need `use_reentrant=False`, which is the variant to prefer. With `debug=True`,
    an error about a different second run shows the lines that saved the tensors in both.

    >>> import flambeau
    >>> from flambeau.utils.checkpoint import checkpoint
    >>> x = flambeau.tensor([1., 2.], requires_grad=True)
    >>> checkpoint(lambda x: (x * x).sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([2., 4.])

    Args:
        function (Callable): the function.
        *args: its positional arguments.
        use_reentrant (bool, optional): True chooses the older way, which does not work with `autograd.grad`; False is
            recommended.
        context_fn (Callable): makes the two contexts around the first and the second run.
        determinism_check (str): "default" compares shapes, dtypes and devices of both runs, "none" does not. Default:
            `"default"`.
        debug (bool): whether an error shows the ops of both runs. Default: `False`.
        early_stop (bool): whether the second run stops when it has what backward needs. Default: `True`.
        **kwargs: its keyword arguments.

    Returns:
        what the function returns.
    """
    if use_reentrant is None:
        _warn_about_default("torch.utils.checkpoint")
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if flambeau.is_grad_enabled():
        _tell_compiler()
    if not use_reentrant:
        debug = _overruled(_debug_override, debug)
        early_stop = _overruled(_early_stop_override, early_stop)
        return _checkpoint_by_hooks(
            function, args, kwargs, context_fn, determinism_check, debug, early_stop, preserve_rng_state
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if not any(_requires_grad(item) for item in args):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def _tell_compiler() -> None:
    """Say that this is no list of ops: parts of it run again, in the backward pass."""
    stack = THREAD.modes.interpreters
    if stack:
        stack[-1].misses("torch.utils.checkpoint computes results again in the backward pass, which no program does")


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a chain of functions in `segments` parts, each but the last one a checkpoint.

    >>> import flambeau
    >>> from flambeau.utils.checkpoint import checkpoint_sequential
    >>> x = flambeau.tensor([1., 2.], requires_grad=True)
    >>> checkpoint_sequential([flambeau.exp, flambeau.log], 2, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([1., 1.])

    Args:
        functions: a `Sequential`, or a list of functions of one argument.
        segments (int): into how many parts to cut the chain.
        input: the argument of the first function.
        use_reentrant (bool, optional): as in `checkpoint`.
        **kwargs: `preserve_rng_state`, as in `checkpoint`.

    Returns:
        what the last function returns.
    """
    if use_reentrant is None:
        _warn_about_default("torch.utils.checkpoint.checkpoint_sequential")
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    chain = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= len(chain):
        raise ValueError(f"checkpoint_sequential cannot cut {len(chain)} functions into {segments} segments")
    size = len(chain) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        part = _Chain(chain[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _Chain(chain[last:])(input)


class _Chain:
    def __init__(self, functions: Sequence[Callable[[Any], Any]]) -> None:
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        for function in self.functions:
            value = function(value)
        return value


def _warn_about_default(name: str) -> None:
    warnings.warn(
        f"{name}: the use_reentrant parameter should be passed explicitly."
        " use_reentrant=False is recommended; without it, the reentrant variant runs.",
        stacklevel=3,
    )


def _requires_grad(item: Any) -> bool:
    return isinstance(item, flambeau.Tensor) and bool(item.requires_grad)


class _RandomState:
    """The random state of the CPU and of the devices of the arguments, to be replayed by the second run."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.cpu = flambeau.get_rng_state()
        devices = {item.device for item in arguments if isinstance(item, flambeau.Tensor)}
        self.devices = {
            device: getattr(flambeau, device.type).get_rng_state(device)
            for device in devices
            if device.type not in ("cpu", "meta")
        }

    def restore(self) -> None:
        flambeau.set_rng_state(self.cpu)
        for device, state in self.devices.items():
            getattr(flambeau, device.type).set_rng_state(state, device)


class _Replayed(Restoring):
    """A context with the random numbers of an earlier moment."""

    __slots__ = ("_earlier", "_present")

    def __init__(self, earlier: _RandomState, arguments: Sequence[Any]) -> None:
        self._earlier, self._present = earlier, _RandomState(arguments)

    def change(self) -> None:
        self._earlier.restore()

    def restore(self) -> None:
        self._present.restore()


def _replay(state: _RandomState | None, arguments: Sequence[Any]) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if state is None else _Replayed(state, arguments)


class CheckpointFunction(Function):
    """The reentrant variant: forward without a graph; backward runs the function again and goes through that.

    Args:
        *args: the arguments of `apply`: the function, whether to keep the state of random numbers, the function's
            arguments.
        **kwargs: not used.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=True)
        >>> y.grad_fn.name()
        'CheckpointFunctionBackward'
    """

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.run_function = run_function
        ctx.random_state = _RandomState(args) if preserve_rng_state else None
        ctx.autocast_state = AutocastState()
        ctx.save_for_backward(*(item for item in args if isinstance(item, flambeau.Tensor)))
        ctx.arguments = [None if isinstance(item, flambeau.Tensor) else item for item in args]
        ctx.tensor_positions = [i for i, item in enumerate(args) if isinstance(item, flambeau.Tensor)]
        with flambeau.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if not flambeau.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs`"
                " parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call"
                " .backward() without passing the `inputs` argument."
            )
        arguments = list(ctx.arguments)
        for position, tensor in zip(ctx.tensor_positions, ctx.saved_tensors, strict=True):
            arguments[position] = tensor.detach().requires_grad_(tensor.requires_grad)
        with _replay(ctx.random_state, arguments), flambeau.enable_grad(), ctx.autocast_state.replayed():
            outputs = ctx.run_function(*arguments)
        if isinstance(outputs, flambeau.Tensor):
            outputs = (outputs,)
        pairs = [(out, grad) for out, grad in zip(outputs, gradients, strict=True) if _requires_grad(out)]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        flambeau.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(item.grad if isinstance(item, flambeau.Tensor) else None for item in arguments))


class _SaveInputs(Function):
    """A node that does nothing but hold the tensor arguments, under version checks and outer saved-tensor hooks."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return flambeau.empty((0,))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise AssertionError("no gradient flows through the node that holds a checkpoint's inputs")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return None


class _Placeholder:
    """Stands in the graph for a saved tensor."""

    __slots__ = ("__weakref__",)


class _StopRecomputation(BaseException):
    """Leaves the function once every placeholder is filled. No `except Exception` of the user's shall catch it."""


class _Frame:
    """One checkpointed call: how to run it again, and what its first run saved."""

    def __init__(self, run: Callable[..., Any], determinism_check: str, debug: bool, early_stop: bool) -> None:
        self.run = run
        self.checks_metadata = determinism_check == "default"
        self.debug = debug
        self.early_stop = early_stop
        self.placeholders: list[weakref.ref[_Placeholder]] = []
        self.recomputed: weakref.WeakKeyDictionary[Any, _Recomputed] = weakref.WeakKeyDictionary()
        self.saved: list[dict[str, Any]] = []
        self.forward_finished = False

    def pack(self, tensor: Tensor) -> _Placeholder:
        placeholder = _Placeholder()
        self.placeholders.append(weakref.ref(placeholder))
        self.saved.append(_describe(tensor, self.debug))
        return placeholder

    def unpack(self, placeholder: _Placeholder) -> Tensor:
        # The value goes with its use: what a backward pass is done with is freed, and a second one runs once more.
        group = _GROUP.get()
        task = group or THREAD.modes.backward_pass or _OutsideBackward()
        values = self.recomputed.get(task)
        if values is None or placeholder not in values:
            if group is not None and values is not None:
                raise CheckpointError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                    "The backward passes under one GraphExecGroup must not overlap: no two may use one saved tensor."
                )
            values = weakref.WeakKeyDictionary()
            _Recomputation(self, values).run()
            self.recomputed[task] = values
        return values.pop(placeholder)


_Recomputed = weakref.WeakKeyDictionary[_Placeholder, Tensor]
"""What a second run has saved and the backward pass has not used yet."""


class _OutsideBackward:
    """Stands for the backward pass where somebody looks at a saved tensor while none runs."""


def _describe(tensor: Tensor, debug: bool) -> dict[str, Any]:
    description: dict[str, Any] = {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}
    if debug:
        # Without this function and the pack hook that called it.
        description["lines"] = "".join(traceback.format_stack(limit=12)[:-2])
    return description


class _Recomputation:
    """One second run of a frame."""

    def __init__(self, frame: _Frame, values: _Recomputed) -> None:
        self.frame = frame
        self.values = values
        self.saved: list[dict[str, Any]] = []

    def run(self) -> None:
        hooks = flambeau.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)
        with contextlib.suppress(_StopRecomputation):
            self.frame.run(hooks)
        self.check()

    def pack(self, tensor: Tensor) -> Tensor:
        position, expected = len(self.saved), len(self.frame.placeholders)
        if position >= expected:
            if self.frame.early_stop:
                raise _StopRecomputation
            if self.frame.forward_finished:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original"
                    f" forward pass, which saved {expected}." + self.lines(position)
                )
            return tensor
        self.saved.append(_describe(tensor, self.frame.debug))
        placeholder = self.frame.placeholders[position]()
        if placeholder is not None:
            self.values[placeholder] = tensor.detach()
        if self.frame.early_stop and position + 1 == expected:
            raise _StopRecomputation
        return tensor.detach()

    def check(self) -> None:
        expected = self.frame.saved
        if len(self.saved) < len(expected):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and"
                f" recomputation.\nNumber of tensors saved during forward: {len(expected)}\n"
                f"Number of tensors saved during recomputation: {len(self.saved)}." + self.lines(len(self.saved))
            )
        if not self.frame.checks_metadata:
            return
        keys = ("shape", "dtype", "device")
        different = [
            f"tensor at position {position}:\nsaved metadata: { {key: before[key] for key in keys} }\n"
            f"recomputed metadata: { {key: after[key] for key in keys} }" + self.lines(position)
            for position, (before, after) in enumerate(zip(expected, self.saved, strict=False))
            if any(before[key] != after[key] for key in keys)
        ]
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than"
                " during the forward pass.\n" + "\n".join(different)
            )

    def lines(self, position: int) -> str:
        """Where the tensor at `position` was saved in both runs, or how to see it."""
        if not self.frame.debug:
            return "\nPass `debug=True` to see the lines that saved it in both runs."
        text = ""
        for run, saved in (("forward", self.frame.saved), ("recomputation", self.saved)):
            if position < len(saved):
                text += f"\nsaved during {run} by:\n{saved[position]['lines']}"
        return text


def _checkpoint_by_hooks(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    context_fn: Callable[[], ContextPair],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    preserve_rng_state: bool,
) -> Any:
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not flambeau.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    random_state = _RandomState((*args, *kwargs.values())) if preserve_rng_state else None
    autocast_state = AutocastState()
    positions = [index for index, item in enumerate(args) if isinstance(item, flambeau.Tensor)]
    anchor = flambeau.empty((0,), requires_grad=True)
    inputs_node = _SaveInputs.apply(anchor, *(args[index] for index in positions)).grad_fn
    # The frame must not hold the tensors beside the node: an outer checkpoint may have taken them out of it.
    others = [None if isinstance(item, flambeau.Tensor) else item for item in args]

    def run(hooks: contextlib.AbstractContextManager[Any]) -> None:
        arguments = list(others)
        for index, tensor in zip(positions, inputs_node.saved_tensors, strict=True):
            arguments[index] = tensor
        replay = _replay(random_state, (*arguments, *kwargs.values()))
        with replay, flambeau.enable_grad(), autocast_state.replayed(), recompute_context, hooks:
            function(*arguments, **kwargs)

    frame = _Frame(run, determinism_check, debug, early_stop)
    with forward_context, flambeau.autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack):
        result = function(*args, **kwargs)
    frame.forward_finished = True
    return result


_GROUP: ContextVar[GraphExecGroup | None] = ContextVar("graph_exec_group", default=None)


class GraphExecGroup:
    """A context for several backward passes over parts of one graph: a checkpointed call runs a second time only once.

    No two of the passes may use the same saved tensor.
    """

    def __enter__(self) -> None:
        if _GROUP.get() is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        self._token = _GROUP.set(self)

    def __exit__(self, *exception: object) -> None:
        _GROUP.reset(self._token)


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of autocast regions like the present ones, for a device and for the CPU."""

    def options(kind: str) -> dict[str, Any]:
        return {
            "enabled": flambeau.is_autocast_enabled(kind),
            "dtype": flambeau.get_autocast_dtype(kind),
            "cache_enabled": flambeau.is_autocast_cache_enabled(),
        }

    return options(device_type), options("cpu")


class CheckpointPolicy(enum.Enum):
    """What selective checkpointing does with an op's result."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class DefaultDeviceType:
    """The kind of accelerator whose random numbers are kept: PyTorch's default is CUDA."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Which it is."""
        return DefaultDeviceType._default_device_type


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors outside the graph that want gradients as these do; other values as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each for each in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input wants a gradient."""
    if not any(_requires_grad(each) for each in inputs if isinstance(each, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The random states of the accelerators on which arguments are: there are none."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Put such states back."""
    if devices:
        raise RuntimeError(f"there are no accelerators {list(devices)} whose random states could be set")


def __getattr__(name: str) -> Any:
    if name == "SAC_IGNORED_OPS":  # operators that look at no element: no policy is asked about them
        from flambeau.ops import aten

        asked = ("is_contiguous", "numel", "size", "stride", "dim", "storage_offset", "detach")
        found = globals()[name] = {getattr(aten, each).default for each in asked if hasattr(aten, each)}
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
