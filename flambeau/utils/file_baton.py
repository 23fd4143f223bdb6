"""A file as a lock between processes, under the names of `torch.utils.file_baton`."""

from __future__ import annotations

import os
import time


class FileBaton:
    """Whoever makes the file holds the lock."""

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it; gives whether it was taken."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until nobody has it."""
        began = time.monotonic()
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if self.warn_after_seconds is not None and time.monotonic() - began > self.warn_after_seconds:
                import warnings

                warnings.warn(
                    f"Waited on lock file {self.lock_file_path} for more than {self.warn_after_seconds} seconds",
                    stacklevel=2,
                )
                self.warn_after_seconds = None

    def release(self) -> None:
        """Give the lock back."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
