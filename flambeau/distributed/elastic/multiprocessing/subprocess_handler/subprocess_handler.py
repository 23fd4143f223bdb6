"""One process that runs a command."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any

__all__ = ["SubprocessHandler"]


class SubprocessHandler:
    """A process that is running: `proc`, with its local rank."""

    def __init__(
        self,
        entrypoint: str,
        args: tuple[Any, ...],
        env: dict[str, str],
        stdout: str | None,
        stderr: str | None,
        local_rank_id: int,
        numa_options: Any,
    ) -> None:
        if numa_options is not None:
            raise NotImplementedError("processes are not bound to parts of a machine's memory")
        self._stdout = open(stdout, "w", encoding="utf-8") if stdout else None  # noqa: SIM115  closed by `close`
        self._stderr = open(stderr, "w", encoding="utf-8") if stderr else None  # noqa: SIM115
        self.local_rank_id = local_rank_id
        self.proc = subprocess.Popen(
            (entrypoint, *map(str, args)),
            env={**os.environ, **env},
            stdout=self._stdout,
            stderr=self._stderr,
            start_new_session=os.name != "nt",  # what it starts ends with it
        )

    def close(self, death_sig: signal.Signals | None = None) -> None:
        """Send a signal to the process and to what it has started."""
        if self.proc.poll() is None:
            if os.name == "nt":
                self.proc.terminate()
            else:
                with contextlib.suppress(ProcessLookupError):  # it may just have ended
                    os.killpg(self.proc.pid, death_sig or signal.SIGTERM)
        for stream in (self._stdout, self._stderr):
            if stream is not None:
                stream.close()
