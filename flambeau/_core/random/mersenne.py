"""mt19937, from which the words of a generator come: NumPy's engine, or generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import FUNCTIONS, LARGE

if TYPE_CHECKING:
    from numpy.random import RandomState

Words = np.ndarray[Any, np.dtype[np.uint32]]

BLOCK = 624
"""The engine makes so many words at a time."""


class Mersenne:
    """The engine at the end of a block of words.

    Its state is NumPy's until many words were asked for, and from then on an array that generated code moves on: NumPy
    takes longer to give its state away, or to take one, than that code to make a hundred blocks.
    """

    __slots__ = ("_made", "_numpy", "_own")

    def __init__(self, seed: int) -> None:
        from numpy.random import RandomState  # importing it takes time

        self._numpy: RandomState = RandomState(seed & 0xFFFFFFFF)
        self._own: Words | None = None
        self._made = 0

    @property
    def state(self) -> Words:
        """A copy of the 624 words that the next block is made of."""
        if self._own is not None:
            return self._own.copy()
        words: Words = self._numpy.get_state(legacy=False)["state"]["key"]
        return words

    @state.setter
    def state(self, words: Words) -> None:
        self._numpy.set_state({"bit_generator": "MT19937", "state": {"key": words, "pos": BLOCK}})
        self._own = None

    def words(self, blocks: int) -> Words:
        """The next blocks of words."""
        self._made += blocks * BLOCK
        if self._own is not None or self._made >= LARGE:
            kernels = FUNCTIONS[np.ndarray]["random"]
            if kernels is not None:
                if self._own is None:
                    self._own = self.state
                made: Words = kernels.mersenne_words(self._own, blocks)
                return made
            if self._own is not None:  # generated code is not wanted any more
                self.state = self._own
        return self._numpy.randint(0, 2**32, size=blocks * BLOCK, dtype=np.uint32)

    def words_ahead(self, blocks: int) -> Words:
        """The blocks that `words` will give next, by generated code, which is there where this is asked."""
        if self._own is None:
            self._own = self.state
        ahead: Words = FUNCTIONS[np.ndarray]["random"].mersenne_words(self._own.copy(), blocks)
        return ahead
