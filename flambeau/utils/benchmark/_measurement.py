"""What a timing gave."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..._dispatch.public.settings import get_num_threads, set_num_threads

_UNITS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
MAX_SIGNIFICANT_FIGURES = 4
_NINE_IN_TEN = 1.645
"""Within so many deviations of the mean are nine tenths of normal numbers."""
_QUARTILES_OF_NORMAL = 1.349
"""So many deviations are between the quartiles of normal numbers."""
_LEAST_DISTANCE = 25e-9


def select_unit(t: float) -> tuple[str, float]:
    """The unit that suits a time in seconds, and how many seconds it has.

    Args:
        t (float): the time.

    Returns:
        tuple[str, float]: the unit, and its seconds.

    Example:
        >>> torch.utils.benchmark.select_unit(0.002)
        ('ms', 0.001)
    """
    scale = int(math.log10(t) // 3) if t > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(scale, "s" if scale >= 0 else "ns")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def unit_to_english(u: str) -> str:
    """The name of a unit.

    Args:
        u (str): the unit: "ns", "us", "ms" or "s".

    Returns:
        str: its name.

    Example:
        >>> torch.utils.benchmark.unit_to_english("ms")
        'millisecond'
    """
    return _UNITS[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number with so many significant figures.

    Args:
        x (float): the number.
        n (int): how many figures.

    Returns:
        float: the rounded number.

    Example:
        >>> torch.utils.benchmark.trim_sigfig(1.2345, 2)
        1.2000000476837158
    """
    if x == 0:
        return 0.0
    exact = np.float32(x)  # single precision, in which halves are rounded as PyTorch does
    scale = np.float32(10.0 ** (math.ceil(math.log10(abs(exact))) - n))
    return float(np.float32(round(float(exact / scale)) * scale))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A context in which kernels use so many threads.

    Args:
        n (int): how many.

    Returns:
        a context manager.

    Example:
        >>> with torch.utils.benchmark.set_torch_threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What is timed.

    Args:
        stmt (str): the statement to time.
        setup (str): a statement that runs once before.
        global_setup (str): definitions for statements in C++, which are not supported. Default: `""`.
        label (str, optional): what is timed, as tables group it.
        sub_label (str, optional): a variant of it.
        description (str, optional): the column of tables.
        env (str, optional): the environment, such as the name of a branch.
        num_threads (int): how many threads kernels use. Default: `1`.

    Example:
        >>> torch.utils.benchmark.TaskSpec("x + 1", "x = 1").stmt
        'x + 1'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """A heading for it."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else self.stmt.splitlines()[0]

    def setup_str(self) -> str:
        """The preparation, for a report."""
        return "" if self.setup in ("", "pass") else f"setup: {self.setup}"

    def summarize(self) -> str:
        """All of it as text."""
        parts = [self.description or "", self.env or "", self.setup_str()]
        return "\n".join([self.title, *("  " + each for each in parts if each)])


@dataclasses.dataclass
class Measurement:
    """The times of a piece of code: `raw_times` are those of `number_per_run` calls each.

    Args:
        number_per_run (int): how many calls each time is of.
        raw_times (list of floats): the times, in seconds.
        task_spec (TaskSpec): what was timed.
        metadata (dict[Any, Any], optional): further values, for programs that read it.

    Example:
        >>> measured = torch.utils.benchmark.Timer("1 + 1").timeit(10)
        >>> measured.number_per_run, measured.median > 0
        (10, True)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """Seconds of one call, of each run."""
        return [each / self.number_per_run for each in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something.

        The times are taken for normal ones whose deviation follows from the quartiles: within what distance of the
        median is the true one, nine times in ten? A clock is not more exact than `_LEAST_DISTANCE`.
        """
        deviation = self.iqr / _QUARTILES_OF_NORMAL
        distance = max(_NINE_IN_TEN * deviation / math.sqrt(len(self.times)), _LEAST_DISTANCE)
        certain = math.floor(-math.log10(distance / self.median)) if self.median else 1
        return max(1, min(certain, MAX_SIGNIFICANT_FIGURES))

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ by more than they should."""
        return len(self.times) > 1 and self.iqr > 0.1 * self.median

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the quartiles of the times are close enough together."""
        return self.iqr / self.median < threshold

    @property
    def env(self) -> str:
        """What tells runs in different environments apart."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def title(self) -> str:
        """A heading."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of a row of a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same code as one."""
        merged: dict[TaskSpec, Measurement] = {}
        for each in measurements:
            if each.task_spec in merged:
                merged[each.task_spec].raw_times += [
                    value * merged[each.task_spec].number_per_run for value in each.times
                ]
            else:
                merged[each.task_spec] = Measurement(each.number_per_run, list(each.raw_times), each.task_spec)
        return list(merged.values())

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        figures = self.significant_figures
        lines = [f"{type(self).__module__}.Measurement", self.task_spec.summarize()]
        runs = f"{len(self.times)} measurements, {self.number_per_run} runs per measurement, "
        threads = f"{self.task_spec.num_threads} thread" + ("s" if self.task_spec.num_threads > 1 else "")
        if len(self.times) == 1:
            lines.append(f"  {trim_sigfig(self.median / scale, figures):g} {unit}")
            runs = f"1 measurement, {self.number_per_run} runs , "
        else:
            lines.append(f"  Median: {trim_sigfig(self.median / scale, figures):g} {unit}")
            lines.append(f"  IQR:    {trim_sigfig(self.iqr / scale, 2):g} {unit}")
        return "\n".join([*lines, f"  {runs}{threads}"])
