"""What a process leaves behind when it fails."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import warnings
from typing import Any

from ...._launch.worker import ERROR_FILE, write_error

__all__ = ["ErrorHandler"]


class ErrorHandler:
    """Writes errors to the file that the launcher has named in the environment."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get(ERROR_FILE)

    def initialize(self) -> None:
        """Let Python write its stack if the process is killed by a signal."""
        try:
            faulthandler.enable(all_threads=True)
        except (OSError, ValueError, RuntimeError) as error:  # standard error may be no real file
            warnings.warn(f"Unable to enable fault handler: {error}", stacklevel=2)

    def record_exception(self, e: BaseException) -> None:
        """Write an error of this process."""
        write_error(e)

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict[str, Any], error_code: int = 0
    ) -> None:
        """Note the exit code beside the error of a process below."""
        message = rootcause_error.get("message")
        if isinstance(message, dict):
            message["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Hand the error of a process below on to the launcher above."""
        with open(rootcause_error_file, encoding="utf-8") as file:
            found = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, found, error_code)
        own = self._get_error_file_path()
        if own is None:
            return
        with contextlib.suppress(FileNotFoundError):
            os.remove(own)
        with open(own, "w", encoding="utf-8") as file:
            json.dump(found, file)


def get_error_handler() -> ErrorHandler:
    """The handler of this process."""
    return ErrorHandler()
