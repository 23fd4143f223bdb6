"""What the writers of random programs share: choices that follow from a seed, and a list of lines."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from .program import Program

Choice = TypeVar("Choice")


class Writer:
    """Writes the lines of one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self._count = 0

    def line(self, text: str, depth: int = 0) -> None:
        self.lines += [" " * 4 * depth + each for each in text.splitlines()]

    def program(self) -> Program:
        return tuple(self.lines)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[Choice]) -> Choice:
        return self.random.choice(options)

    def weighted(self, options: Sequence[tuple[int, Callable[[], str]]]) -> str:
        """What one of the functions writes, those with larger numbers more often."""
        return self.random.choices([write for _, write in options], [weight for weight, _ in options])[0]()

    def number(self) -> float:
        return round(self.random.uniform(-2, 2), 2) or 0.25  # the sign of zero is not the point

    def new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"
