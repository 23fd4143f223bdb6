"""`Timer`: how long a statement takes."""

from __future__ import annotations

import enum
import timeit
from collections.abc import Callable
from typing import Any

from ..._core.names.absent import refusal
from ._measurement import Measurement, TaskSpec, set_torch_threads


def timer() -> float:
    """The clock, in seconds.

    Returns:
        float: the time.

    Example:
        >>> torch.utils.benchmark.timer() > 0
        True
    """
    return timeit.default_timer()


class Language(enum.Enum):
    """In what a statement is written.

    Example:
        >>> torch.utils.benchmark.Language.PYTHON.name
        'PYTHON'
    """

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement, as Python's `timeit` does: on one thread unless more are asked for, and after a warm-up.

    >>> from flambeau.utils.benchmark import Timer
    >>> Timer("x + 1", globals={"x": flambeau.ones(2)}).timeit(10).number_per_run
    10

    Args:
        stmt (str): the statement to time. Default: `"pass"`.
        setup (str): a statement that runs once before. Default: `"pass"`.
        global_setup (str): definitions for statements in C++, which are not supported. Default: `""`.
        timer (Callable): the clock.
        globals (dict, optional): the names that statements see.
        label (str, optional): what is timed, as tables group it.
        sub_label (str, optional): a variant of it.
        description (str, optional): the column of tables.
        env (str, optional): the environment, such as the name of a branch.
        num_threads (int): how many threads kernels use. Default: `1`.
        language (Language or str): Python; C++ is refused. Default: `Language.PYTHON`.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("statements in C++ cannot be timed: there is no C++ here")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                             "moved to `setup`.")  # fmt: skip
        names = dict(globals or {})
        if "torch" not in names:
            import flambeau

            names["torch"] = flambeau
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement so often, in one measurement."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(number=max(number // 100, 2))  # warm up
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refused, as in PyTorch: `blocked_autorange` repeats as often as it needs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        self._timeit(2)  # warm up
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Run the statement in blocks for at least so many seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time:
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None
    ) -> Measurement:
        """Run the statement in blocks until the distance between quartiles is small beside the median."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times: list[float] = []
            while True:
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
                result = Measurement(number, times, self._task_spec)
                settled = len(times) > 3 and result.iqr < threshold * result.median
                if (sum(times) > min_run_time and settled) or sum(times) > max_run_time:
                    return result

    autorange = blocked_autorange

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:
        """Count the instructions of the statement."""
        raise refusal("torch.utils.benchmark.Timer.collect_callgrind", "counts of instructions are not built")
