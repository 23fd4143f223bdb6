"""Where C++ was called from, under the names of `torch.utils.cpp_backtrace`: there is no C++."""

from __future__ import annotations

__all__ = ["get_cpp_backtrace"]


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """The frames of C++: none."""
    return ""
