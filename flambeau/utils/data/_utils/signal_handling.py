"""What ended a worker process, in words."""

from __future__ import annotations

import signal
from typing import Any

_HINTS = {
    "SIGKILL": "The system may be out of memory: use fewer workers, a smaller prefetch_factor or smaller batches.",
    "SIGBUS": "This can happen if there is too little shared memory.",
    "SIGSEGV": "A native library that the dataset uses crashed.",
}


def describe_death(worker: int, process: Any) -> str:
    """Which worker ended, how, and what may be the reason."""
    code = process.exitcode
    message = f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly: worker {worker} "
    if code is None:
        return message + "closed its connection. Rerunning with num_workers=0 may give better error trace."
    if code >= 0:
        return message + f"exited with exit code {code}. Rerunning with num_workers=0 may give better error trace."
    try:
        ended_by = signal.Signals(-code)
    except ValueError:
        return message + f"is killed by signal: {-code}."
    words = signal.strsignal(ended_by) or ended_by.name
    return f"{message}is killed by signal: {words}. {_HINTS.get(ended_by.name, '')}".rstrip()
