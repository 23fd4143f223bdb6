"""Where what processes write goes."""

from __future__ import annotations

import enum
import os
import re
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from ..._launch.worker import ERROR_FILE

CONSOLE = ""
"""The path of what is not kept in a file."""


class Std(enum.IntFlag):
    """Which of the two streams of a process."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """A number for all processes, or numbers by local rank: "3", "0:1,1:2".

        >>> from flambeau.distributed.elastic.multiprocessing import Std
        >>> Std.from_str("0:1,1:3") == {0: Std.OUT, 1: Std.ALL}
        True
        """
        if re.fullmatch("[0-3]", vm):
            return cls(int(vm))
        if re.fullmatch(r"\d:[0-3](,\d:[0-3])*", vm):
            pairs = (each.split(":") for each in vm.split(","))
            return {int(rank): cls(int(value)) for rank, value in pairs}
        raise ValueError(f"{vm} does not match: <[0-3]> or <d:[0-3](,d:[0-3])*>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """The streams of each process: those named for it, for all, or none."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """The files of each process, by its local rank; an empty path is the console."""

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = field(default_factory=str)
    filtered_stderr: str = field(default_factory=str)


class LogsSpecs(ABC):
    """Which streams go to files (`redirects`), and which to files and the console (`tee`)."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir = log_dir
        self._redirects = redirects
        self._tee = tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files for processes with these variables."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of all files."""


class DefaultLogsSpecs(LogsSpecs):
    """A folder for each attempt, in it one for each process."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        if log_dir and log_dir != os.devnull:
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None

    def __repr__(self) -> str:
        return (
            f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects}, tee={self._tee}, "
            f"local_ranks_filter={self._local_ranks_filter})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DefaultLogsSpecs) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def root_log_dir(self) -> str:
        """The folder of all files."""
        return str(self._root_log_dir)

    def _folder(self, run_id: str) -> str:
        base = self._root_log_dir or tempfile.mkdtemp(prefix="torchelastic_")
        os.makedirs(base, exist_ok=True)
        return tempfile.mkdtemp(prefix=f"{run_id}_", dir=base)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files; the variables of each process get the path of the file for its errors."""
        number = len(envs)
        if not number:
            raise AssertionError("number of local ranks must be positive")
        first = envs[min(envs)]
        attempt = first.get("TORCHELASTIC_RESTART_COUNT", "0")
        nowhere = self._root_log_dir == os.devnull
        if not nowhere and (self._run_log_dir is None):
            self._run_log_dir = self._folder(first.get("TORCHELASTIC_RUN_ID", "test_run_id"))
        made = LogsDest()
        redirects, tee = to_map(self._redirects, number), to_map(self._tee, number)
        folder = os.devnull if nowhere else os.path.join(str(self._run_log_dir), f"attempt_{attempt}")
        for rank in range(number):
            own = os.devnull if nowhere else os.path.join(folder, str(rank))
            if not nowhere:
                os.makedirs(own, exist_ok=True)
            for stream, name, kept, shown in (
                (Std.OUT, "stdout.log", made.stdouts, made.tee_stdouts),
                (Std.ERR, "stderr.log", made.stderrs, made.tee_stderrs),
            ):
                path = os.devnull if nowhere else os.path.join(own, name)
                kept[rank] = path if (redirects[rank] | tee[rank]) & stream else CONSOLE
                if tee[rank] & stream:
                    shown[rank] = path
                if self._local_ranks_filter is not None and rank not in self._local_ranks_filter:
                    shown.pop(rank, None)
                    kept[rank] = kept[rank] or os.devnull
            made.error_files[rank] = CONSOLE if nowhere else os.path.join(own, "error.json")
            envs[rank][ERROR_FILE] = made.error_files[rank]
        made.filtered_stdout = os.devnull if nowhere else os.path.join(folder, "filtered_stdout.log")
        made.filtered_stderr = os.devnull if nowhere else os.path.join(folder, "filtered_stderr.log")
        return made
