"""What a recurrent network is, beside its parameters: as its op says it to the backends."""

from __future__ import annotations

from typing import NamedTuple

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""How many parts of a step a layer's products have, by the kind of its cells."""


class Recurrence(NamedTuple):
    """Layers upon layers over a sequence whose rows stand in one matrix, step after step."""

    cell: str
    layers: int
    directions: int
    has_biases: bool
    sizes: tuple[int, ...]
    """How many rows each step has; in a packed sequence these numbers fall."""

    @property
    def groups(self) -> int:
        """How many sets of parameters there are: one for each layer and direction."""
        return self.layers * self.directions

    @property
    def lengths(self) -> list[int]:
        """How many steps each sample has."""
        steps = len(self.sizes)
        if self.sizes[0] == self.sizes[-1]:
            return [steps] * self.sizes[0]
        lengths, step = [0] * self.sizes[0], steps
        for sample in range(self.sizes[0]):
            while self.sizes[step - 1] <= sample:
                step -= 1
            lengths[sample] = step
        return lengths
