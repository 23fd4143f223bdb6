"""Green contexts: parts of a CUDA device for work that is not to take all of it."""

from __future__ import annotations

from typing import Any

from .._backends.cuda.runtime.driver import driver
from ._ordinals import on
from ._streams import Stream as _Stream

_NO_WORKQUEUES = (
    "GreenContext: workqueues cannot be configured here, which needs CUDA 13.1; num_sms shares out multiprocessors"
)


class GreenContext:
    """A part of a device: some of its multiprocessors, with a stream whose work runs on these alone.

    `GreenContext.create(num_sms=16)` makes one. Memory, tensors and kernels are those of the device.
    """

    def __init__(self) -> None:
        raise TypeError("No constructor defined: call torch.cuda.GreenContext.create(num_sms=...)")

    _found: Any
    _stream: _Stream
    _before: list[_Stream]
    num_sms: int
    """How many multiprocessors it has: what was asked for, rounded up to what the device can share out."""

    @staticmethod
    def create(
        *,
        num_sms: int | None = None,
        workqueue_scope: str | None = None,
        workqueue_concurrency_limit: int | None = None,
        device_id: int | None = None,
    ) -> GreenContext:
        """Make a green context.

        Args:
            num_sms (int, optional): how many multiprocessors it has at least.
            workqueue_scope (str, optional): not there; it needs CUDA 13.1.
            workqueue_concurrency_limit (int, optional): not there either.
            device_id (int, optional): the number of the device. Default: the one in use.

        Returns:
            GreenContext: the context.

        Raises:
            RuntimeError: the device has not so many multiprocessors, or its driver has no green contexts.
        """
        if workqueue_scope is not None or workqueue_concurrency_limit is not None:
            raise RuntimeError(_NO_WORKQUEUES)
        if num_sms is None:
            raise RuntimeError("GreenContext.create: at least one of num_sms or workqueue_scope must be specified")
        if num_sms < 1:
            raise RuntimeError(f"GreenContext.create: num_sms must be at least 1, but got {num_sms}")
        made = object.__new__(GreenContext)
        with on(device_id):
            own = driver()
            made._found = own.green_stream(num_sms)
            made._stream = _Stream(own.ordinal, stream_id=made._found.handle)
        made.num_sms, made._before = made._found.count, []
        return made

    @staticmethod
    def max_workqueue_concurrency(device_id: int | None = None) -> int:
        """How many workloads run side by side by a device's workqueues: it needs CUDA 13.1.

        Args:
            device_id (int, optional): the number of the device. Default: the one in use.

        Returns:
            int: the number.

        Raises:
            RuntimeError: always, here.
        """
        raise RuntimeError(_NO_WORKQUEUES)

    def set_context(self) -> None:
        """Let this thread's work run in the context, after everything that the stream in use holds."""
        from . import current_stream

        before = current_stream(self._stream.device_index)
        self._stream.wait_stream(before)
        self._before.append(before)
        self._stream.enter()

    def pop_context(self) -> None:
        """Let the stream of before be in use again; it waits for the context's work."""
        if not self._before:
            raise RuntimeError("GreenContext.pop_context() without set_context()")
        self._stream.leave()
        self._before.pop().wait_stream(self._stream)

    def Stream(self) -> _Stream:
        """The stream of the context."""
        return self._stream
