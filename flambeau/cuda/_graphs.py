"""Work of a CUDA device that is captured once, and replayed by one call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._backends.cuda.runtime.driver import driver
from .._backends.cuda.runtime.graph import Graph
from .._backends.cuda.runtime.synchronization import HERE
from .._core.device import usable_device
from .._core.slots import SLOTS
from .._core.tensor import Tensor
from ._graphed import make_graphed_callables
from ._streams import Stream

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """Whether what this thread starts is being captured.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.cuda.is_current_stream_capturing()
        False
    """
    return HERE.recording is not None


def graph_pool_handle() -> tuple[int, int]:
    """What names a pool of memory that several graphs can share.

    Returns:
        tuple[int, int]: the name.

    Example:
        >>> len(torch.cuda.graph_pool_handle())
        2
    """
    usable_device("cuda")
    return 0, driver().pool.new_pool()


class CUDAGraph:
    """A captured piece of work. Its tensors keep their places: change inputs in them, and find results in them."""

    def __init__(self, keep_graph: bool = False) -> None:
        usable_device("cuda")
        self._graph = Graph(keep_graph)

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", check_input_liveness: bool = False
    ) -> None:
        """Capture from now on what is started in the present stream. `pool`: whose memory it may use."""
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        self._graph.begin(None if pool is None else pool[1])
        HERE.recording.owner = weakref.ref(self)

    def capture_end(self) -> None:
        """End the capture; `replay` works from now on."""
        self._graph.end()

    @staticmethod
    def get_currently_capturing_graph() -> CUDAGraph:
        """The graph into which this thread's work is captured."""
        owner = None if HERE.recording is None or HERE.recording.owner is None else HERE.recording.owner()
        if not isinstance(owner, CUDAGraph):
            raise RuntimeError("get_currently_capturing_graph() outside of a capture: no CUDAGraph is being captured")
        return owner

    def begin_capture_to_if_node(self, scalar_cuda_pred_tensor: Any) -> None:
        """Capture from now on what a replay does only where a boolean on the device is true at that moment."""
        flag = scalar_cuda_pred_tensor
        if not flag.is_cuda or flag.numel() != 1 or str(flag.dtype) != "torch.bool":
            raise RuntimeError(
                f"the condition of an if-node must be one boolean on a CUDA device, not {flag.dtype} of shape "
                f"{list(flag.shape)} on {flag.device}"
            )
        self._graph.begin_body(flag._array)

    def end_capture_to_conditional_node(self) -> None:
        """Capture what comes next for every replay again."""
        self._graph.end_body()

    def instantiate(self) -> None:
        """Make the captured graph ready for `replay`, which does this itself when it is first needed."""
        self._graph.instantiate()

    def replay(self) -> None:
        """Start everything that was captured, in the present stream."""
        self._graph.replay()

    def reset(self) -> None:
        """Forget what was captured, and let its memory go."""
        self._graph.reset()

    def pool(self) -> tuple[int, int]:
        """What names the pool of the graph's memory, for graphs that are to share it."""
        if self._graph.pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return 0, self._graph.pool

    def register_generator_state(self, generator: Any) -> None:
        """Let captured draws of a generator continue from replay to replay: every generator's do."""

    def enable_debug_mode(self) -> None:
        """Keep the description of the work, for `debug_dump`."""
        self._graph.keeps_definition = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the work as a drawing of Graphviz's."""
        driver().draw_graph(self.raw_cuda_graph(), debug_path)

    def raw_cuda_graph(self) -> int:
        """The handle of the captured graph, which `keep_graph=True` keeps."""
        if self._graph.definition is None:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
            )
        found: int = self._graph.definition
        return found

    def raw_cuda_graph_exec(self) -> int:
        """The handle of the graph in the form that is started."""
        if self._graph.executable is None:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance before instantiate()")
        found: int = self._graph.executable
        return found


def captured_branches(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """What `torch.cond` gives while a graph is captured: each replay decides by `pred`, which must be on the device.

    Both branches are captured, each into a node of its own; the second copies its results to where the first has them.
    """
    from ..autograd.grad_mode import is_grad_enabled

    given = [each for each in SLOTS.tree_flatten(list(operands))[0] if isinstance(each, Tensor)]
    if is_grad_enabled() and any(each.requires_grad for each in given):
        raise RuntimeError("torch.cond has no gradients while a CUDA graph is captured: use it within torch.no_grad()")
    owner, flag = CUDAGraph.get_currently_capturing_graph(), pred.detach().bool().clone()
    kept: tuple[list[Any], Any] | None = None
    for condition, branch in ((flag, true_fn), (flag.logical_not(), false_fn)):
        owner.begin_capture_to_if_node(condition)
        try:
            leaves, structure = SLOTS.tree_flatten(branch(*operands))
            if kept is None:
                kept = [each.clone() if isinstance(each, Tensor) else each for each in leaves], structure
            else:
                _merge(kept, leaves, structure)
        finally:
            owner.end_capture_to_conditional_node()
    assert kept is not None
    return SLOTS.tree_unflatten(*kept)


def _merge(kept: tuple[list[Any], Any], leaves: list[Any], structure: Any) -> None:
    """Copy the results of a branch to where those of the other one are."""
    if kept[1] != structure:
        raise RuntimeError(f"torch.cond: the branches return different structures: {kept[1]} and {structure}")
    for one, other in zip(kept[0], leaves, strict=True):
        if not isinstance(one, Tensor) or not isinstance(other, Tensor):
            if one is not other and one != other:
                raise RuntimeError(f"torch.cond: the branches return {one!r} and {other!r}, which are no tensors")
        elif one.shape != other.shape or one.dtype is not other.dtype:
            raise RuntimeError(
                f"torch.cond: the branches return tensors of shape {list(one.shape)} and {list(other.shape)}, "
                f"{one.dtype} and {other.dtype}: they must be the same"
            )
        else:
            one.copy_(other)


class graph:
    """A context whose work is captured into a `CUDAGraph`, in a stream beside the present one."""

    default_capture_stream: Stream | None = None

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global",
        enable_annotations: bool = False, check_input_liveness: bool = False,
    ) -> None:  # fmt: skip
        if stream is None:
            stream = graph.default_capture_stream
            if stream is None or stream.device_index != driver().ordinal:
                stream = graph.default_capture_stream = Stream()
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        driver().synchronize()
        driver().pool.give_back()
        self.capture_stream.enter()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.capture_stream.leave()
            raise

    def __exit__(self, kind: Any, *exception: object) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._graph.abandon()
        finally:
            self.capture_stream.leave()
