"""The scale of the loss in mixed-precision training: how it follows what was found in the gradients."""

from __future__ import annotations

import numpy as np

from ..._dispatch.op import Array
from ..._dispatch.writer import writer


@writer("adapt_loss_scale", writes=("scale", "tracker"))
def adapt_loss_scale(scale: Array, tracker: Array, found: Array, growth: float, backoff: float, interval: int) -> None:
    """Shrink the scale if `found` says that a gradient was not finite; let it grow after so many steps without that.

    `tracker` counts these. Nobody looks at an element: the host need not wait for a device.
    """
    overflowed = found != 0
    successes = np.where(overflowed, 0, tracker + 1)
    enough = successes == interval
    grown = scale * scale.dtype.type(growth)
    kept = np.where(enough & np.isfinite(grown), grown, scale)
    scale[...] = np.where(overflowed, scale * scale.dtype.type(backoff), kept)
    tracker[...] = np.where(enough, 0, successes)
