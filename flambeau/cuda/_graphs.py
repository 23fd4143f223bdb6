"""Work of a CUDA device that is captured once, and replayed by one call."""

from __future__ import annotations

from typing import Any

from .._backends.cuda.runtime.driver import driver
from .._backends.cuda.runtime.graph import Graph
from .._backends.cuda.runtime.synchronization import HERE
from .._core.device import usable_device
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

    def capture_end(self) -> None:
        """End the capture; `replay` works from now on."""
        self._graph.end()

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
