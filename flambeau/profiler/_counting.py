"""Small counts that programs around profiles keep: of steps, and of things that may be there once."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar


class EnforceUnique:
    """Raises an error where the same thing is seen twice."""

    def __init__(self) -> None:
        self._seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Something is there; it must not have been before."""
        if key in self._seen:
            raise RuntimeError(f"duplicate key: {key}")
        self._seen.add(key)


class KinetoStepTracker:
    """The number of the step of a program in which several, such as optimizers and profiles, count steps.

    It is the largest of their counts. One that has run ahead by more than a step is not what the others count.
    """

    _current_step: ClassVar[int] = 0
    _step_dict: ClassVar[dict[str, int]] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Somebody starts to count: from the present step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Somebody counts no more; whether it did."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Somebody's step is done; the number of the present step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        largest = max(cls._step_dict.values())
        if largest - cls._current_step > 1:
            warnings.warn(
                f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict = "
                f"{cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(cls._current_step, largest)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The number of the present step."""
        return cls._current_step
