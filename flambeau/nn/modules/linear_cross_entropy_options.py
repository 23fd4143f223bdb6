"""How `linear_cross_entropy` saves memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..._core.dtype import bfloat16, dtype, float16, float32, float64

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("accurate", "balanced", "compact", "auto")
_SUMS = (None, float16, bfloat16, float32, float64)


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` cuts its batch into chunks, so that there are never logits of the whole batch.

    Gradients are computed chunk by chunk in the backward pass, which may run any number of times, and sums are always
    those of float32 or better: `allow_retain_graph`, `acc_policy` and `acc_dtype` ask for no less than that.

    Args:
        allow_retain_graph (bool): whether the backward pass may run again. Default: `False`.
        batch_chunk_size (int, optional): how many rows a chunk has; None leaves it to `chunking_method`.
        chunking_method (str, optional): "auto", or "aspect_ratio:2" for logits of a chunk about half as large as the
            input. Default: `"auto"`.
        acc_policy (str): how sums are kept: "accurate", "balanced", "compact" or "auto". Default: `"auto"`.
        acc_dtype (dtype, optional): the dtype of sums; None chooses it.

    Raises:
        ValueError: an option has a value that is not listed here.

    Example:
        >>> options = flambeau.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        >>> loss = flambeau.nn.LinearCrossEntropyLoss(3, 2, options=options)
        >>> loss(flambeau.zeros(4, 3), flambeau.tensor([0, 1, 1, 0]))
        tensor(0.6931,
               grad_fn=<GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked_defaultBackward>)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtype | None = None

    def __post_init__(self) -> None:
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if self.chunking_method not in (None, "auto"):
            name, _, ratio = str(self.chunking_method).partition(":")
            if name != "aspect_ratio" or not (ratio or "1").isdecimal():
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.acc_dtype not in _SUMS:
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype}. Pass acc_dtype=None to let the op pick automatically."
            )
