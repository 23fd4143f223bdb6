"""Work that is written down instead of done: what a `CUDAGraph` holds while it is captured, and when it is replayed.

A recorded kernel finds its arguments where they were: memory that is taken meanwhile comes from a pool of the graph's
own. Random numbers continue from replay to replay: kernels that draw read the state of their generator from the device,
where each replay puts it before it begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.node import next_sequence_number
from ...._core.random.philox import PhiloxGenerator
from ..arrays.array import DeviceArray, empty
from .driver import driver
from .synchronization import HERE

_MOST_GENERATORS = 16


class Recording:
    """What the work of one graph refers to."""

    def __init__(self, stream: Any, pool: int) -> None:
        self.stream = stream
        self.pool = pool
        self.owner: Any = None
        """A weak reference to the user's graph."""
        self.began = next_sequence_number()
        """The number of the next node of autograd when it began."""
        self.kept: list[Any] = []
        """What must stay where it is as long as the work can be done again: constants of the host."""
        self._places = empty((_MOST_GENERATORS, 2), np.dtype(np.uint64))
        """Memory for the states of generators, taken before the recording begins. A replay puts them there before it
        begins, and kernels in front of the first draw may write to all that was taken meanwhile."""
        self._states: dict[PhiloxGenerator, tuple[DeviceArray, int]] = {}
        """For each generator where its state is on the device, and how many words the work takes of it."""

    def draw(self, generator: PhiloxGenerator, words: int) -> tuple[int, int, int]:
        """Where the state of a generator is, and the seed and the offset to add to it, for a draw of so many words."""
        number = len(self._states)
        if generator not in self._states and number == _MOST_GENERATORS:
            raise RuntimeError(f"a CUDA graph draws from at most {_MOST_GENERATORS} generators")
        state, taken = self._states.get(generator) or (self._places[number], 0)
        self._states[generator] = state, taken + (words + 3) // 4 * 4
        return state.pointer, 0, taken

    def before_replay(self) -> None:
        """Put the states of the generators where the kernels read them, and let the generators go on."""
        for generator, (state, taken) in self._states.items():
            driver().upload(state.pointer, np.array(generator.reserve(taken), np.uint64))


def position(generator: PhiloxGenerator, words: int) -> tuple[int, int, int]:
    """For a kernel in which each thread draws so many words: where the state is (0: in the numbers), seed, offset."""
    recording = HERE.recording
    return (0, *generator.reserve(words)) if recording is None else recording.draw(generator, words)
