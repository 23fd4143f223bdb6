"""`torch._dynamo._trace_wrapped_higher_order_op`: indexing inside of functions that are mapped over a batch."""

from __future__ import annotations


class TransformGetItemToIndex:
    """A context in which `x[i]` may have a tensor for `i` that is mapped over a batch: here it always may."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass
