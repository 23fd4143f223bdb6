"""Looking at the graph and hooking into what it saves."""

from __future__ import annotations

import contextlib
import heapq
import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from .._core.hooks import RemovableHandle
from .._core.modes import THREAD
from .._core.node import AccumulateGrad, Node, SavedTensor, as_node
from .._core.process.interrupts import uninterrupted
from .._core.process.locks import new_lock
from .._core.slots import SLOTS
from .._core.tensor import Tensor
from .._dispatch.changes.history import end_change
from .engine import count_gradients

__all__ = [
    "AccumulateGrad",
    "GradientEdge",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class GradientEdge(NamedTuple):
    """A place in the graph: a node and which of its outputs.

    Args:
        node (Node): the node.
        output_nr (int): the number of its output.
        ownership_token: what keeps the node alive.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> torch.autograd.graph.get_gradient_edge(x**2).output_nr
        0
    """

    node: Node
    output_nr: int
    ownership_token: Any = None
    """What keeps the graph alive beside the node; nodes do that by themselves here."""


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge along which the gradient of `tensor` flows.

    Args:
        tensor (Tensor): a tensor that requires gradients.

    Returns:
        GradientEdge: the edge, which `autograd.grad` and `backward(inputs=...)` take in place of a tensor.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> y = x**2
        >>> edge = torch.autograd.graph.get_gradient_edge(y)
        >>> torch.autograd.grad(edge, x, torch.tensor(1.0))
        (tensor(6.),)
    """
    edge = tensor._edge()
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(as_node(edge[0]), edge[1])


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tell autograd that `tensor` was changed behind its back.

    Args:
        tensor (Tensor or sequence of Tensors): a tensor, or a sequence of them.

    Example:
        >>> x = torch.zeros(2)
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(each, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        end_change(each)


def region_activation_memory_budget(budget: float) -> contextlib.AbstractContextManager[None]:
    """How much of what a compiled region would save may be saved; outside of compiled programs it is refused.

    Programs that are compiled here save what their backward pass reads, whatever the budget.

    Args:
        budget (float): the part that may be saved, between 0 and 1.

    Returns:
        a context manager.
    """
    if not 0 <= budget <= 1:
        raise ValueError(f"region_activation_memory_budget: must be in [0, 1], got {budget}")
    if not SLOTS.is_compiling():
        raise RuntimeError(
            "region_activation_memory_budget can only be used inside a torch.compile region; it has no effect in eager "
            "mode."
        )
    return contextlib.nullcontext()


class saved_tensors_hooks:
    """In this context and thread, what the graph saves goes through `pack_hook` and comes back by `unpack_hook`.

    Args:
        pack_hook (Callable): called with each tensor that is saved; what it returns is kept.
        unpack_hook (Callable): called with what was kept; returns the tensor.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda each: each.numpy(force=True), torch.from_numpy):
        ...     y = x**2
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        if modes.saved_hooks_disabled is not None:
            raise RuntimeError(modes.saved_hooks_disabled)
        modes.saved_hooks = [*modes.saved_hooks, (self.pack_hook, self.unpack_hook)]
        modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.saved_hooks = modes.saved_hooks[:-1]
        modes.refresh()


class save_on_cpu(saved_tensors_hooks):
    """Keep what the graph saves in the CPU's memory, and bring it back to its device for backward.

    Args:
        pin_memory (bool): whether the memory is page-locked, so that copies run beside other work. Default: `False`.
        device_type (str): the type of device whose tensors move. Default: `"cuda"`.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = x.exp()
        >>> y.sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183, 2.7183])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            return tensor.device, tensor.detach().cpu()

        def unpack(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """In this context saved-tensor hooks are an error, with the given message.

    Args:
        error_message (str): what the error says.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with torch.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
            ...
        RuntimeError: no hooks here
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.saved_hooks_disabled
        if modes.saved_hooks:
            raise RuntimeError(self.error_message)
        modes.saved_hooks_disabled = self.error_message

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        THREAD.modes.saved_hooks_disabled = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with disable_saved_tensors_hooks(self.error_message):
                return function(*args, **kwargs)

        return decorated


class _MultiHandle(RemovableHandle):
    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once a backward pass has the gradients of all `tensors` (mode "all": with the list of them), or the
    first of them (mode "any": with that one).

    Args:
        tensors (sequence of Tensors): the tensors whose gradients are waited for.
        fn (Callable): the function to call.
        mode (str): "all" calls it with a list of all gradients, "any" with the first one that is there. Default:
            `"all"`.

    Returns:
        RemovableHandle: a handle whose `remove()` takes the hook off again.

    Example:
        >>> x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: print(grads))
        >>> (2 * x + 3 * y).backward()
        [tensor([2.]), tensor([3.])]
        >>> handle.remove()
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    edges = [each._edge() for each in tensors]
    for position, edge in enumerate(edges):
        if edge is None:
            raise RuntimeError(f"register_multi_grad_hook(): tensor {position} does not require gradients")
    lock = new_lock()
    passes: weakref.WeakKeyDictionary[Any, list[Tensor | None]] = weakref.WeakKeyDictionary()
    remaining: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def hook_for(position: int) -> Callable[[Tensor], Any]:
        def hook(gradient: Tensor) -> Any:
            running = THREAD.modes.backward_pass
            with lock:
                first = running not in passes
                if first:
                    passes[running] = [None] * len(edges)
                    remaining[running] = sum(running.will_reach(edge[0]) for edge in edges if edge is not None)
                passes[running][position] = gradient
                remaining[running] -= 1
                complete = remaining[running] == 0
            if mode == "any":
                if first:
                    fn(gradient)
            elif complete:
                fn(passes[running])

        return hook

    return _MultiHandle([each.register_hook(hook_for(i)) for i, each in enumerate(tensors)])


class _Handle:
    """What the graph holds in place of a tensor that it saved: the tensor, its version then, and a copy."""

    __slots__ = ("__weakref__", "copy", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.version = tensor._version
        self.copy = tensor.clone()

    def is_changed(self) -> bool:
        return self.tensor._version != self.version


class _MutationContext:
    """What `allow_mutation_on_saved_tensors` keeps: what was saved in it, for as long as the graph holds it.

    A tensor that is saved several times in one state is copied once.
    """

    def __init__(self) -> None:
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, _Handle] = weakref.WeakValueDictionary()
        """By a tensor's address, layout and version what stands for it."""
        self.sid_to_tid: dict[tuple[int, int], set[Any]] = {}
        """By the address of a memory and its version the tensors on it."""

    @property
    def cloned(self) -> dict[_Handle, Tensor]:
        """The copies of tensors that have changed since they were saved."""
        return {each: each.copy for each in self.tid_to_weakhandle.values() if each.is_changed()}

    @property
    def original(self) -> dict[_Handle, Tensor]:
        """The tensors that are still what they were when they were saved."""
        return {each: each.tensor for each in self.tid_to_weakhandle.values() if not each.is_changed()}

    def clear(self) -> None:
        """Forget everything; the copies are held by the graph alone."""
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        version = tensor._version
        number = tensor.data_ptr(), version, tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad
        self.sid_to_tid.setdefault((tensor.untyped_storage().data_ptr(), version), set()).add(number)
        handle = self.tid_to_weakhandle.get(number)
        if handle is None:
            handle = self.tid_to_weakhandle[number] = _Handle(tensor)
        return handle


class allow_mutation_on_saved_tensors:
    """In this context what the graph saves is copied, so that later in-place changes do no harm.

    The backward pass belongs into the context too.

    Example:
        >>> x = torch.tensor([2.0], requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.exp()
        ...     z = y.clone().square()
        ...     _ = z.mul_(3)
        ...     z.sum().backward()
        >>> x.grad.shape
        torch.Size([1])
    """

    _running: ClassVar[_MutationContext | None] = None

    def __enter__(self) -> _MutationContext:
        cls = allow_mutation_on_saved_tensors
        if cls._running is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        context = _MutationContext()

        def unpack(handle: _Handle) -> Tensor:
            if cls._running is not context:
                raise AssertionError(
                    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph "
                    "was originally recorded."
                )
            return handle.copy if handle.is_changed() else handle.tensor

        self._context = context
        self._hooks = saved_tensors_hooks(context.pack, unpack)
        self._hooks.__enter__()
        cls._running = context
        return context

    def __exit__(self, *exception: object) -> None:
        allow_mutation_on_saved_tensors._running = None
        self._hooks.__exit__(*exception)
        self._context.clear()


class _Streams:
    warns = True
    overrides = False


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn of gradients that are added up in another queue of a device than they were made in.

    Gradients are added up in the queue of the thread that runs the backward pass: there is nothing to warn of.

    Args:
        enabled (bool): whether it is on.

    Example:
        >>> torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    """
    _Streams.warns = bool(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """What to do about queues that are not being recorded while a graph of a device's work is; see above.

    Args:
        enabled (bool): whether it is on.

    Example:
        >>> torch.autograd.graph.set_override_stale_capture_stream(False)
    """
    _Streams.overrides = bool(enabled)


def execution_order(running: Any) -> list[Node]:
    """The nodes of a backward pass as it calls them: newest first, a leaf's as soon as it is ready."""
    left = count_gradients(running.roots)
    ready: list[tuple[float, int, Any]] = []
    order: list[Node] = []

    def arrive(target: Any) -> None:
        left[target] -= 1
        if not left[target] and (running.needed is None or target in running.needed):
            age = -target.sequence if isinstance(target, Node) else -math.inf
            heapq.heappush(ready, (age, len(left) + len(order), target))

    for target, _, _ in running.roots:
        arrive(target)
    while ready:
        _, _, target = heapq.heappop(ready)
        order.append(as_node(target))
        for edge in target.edges if isinstance(target, Node) else ():
            if edge is not None:
                arrive(edge[0])
    return order
