"""Files by pattern, functions of columns, and streams that close what they came from."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any, ClassVar

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def validate_input_col(fn: Callable[..., Any], input_col: int | tuple[Any, ...] | list[Any] | None) -> None:
    """Raise a ValueError if `fn` cannot be called with that many columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # built-in functions may not say
        return
    given = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    name = getattr(fn, "__name__", str(fn))
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in positional if each.default is each.empty]
    if any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters):
        raise ValueError(f"The function {name} takes keyword-only parameters, which is not allowed.")
    if len(required) > given:
        raise ValueError(f"The function {name} takes {len(required)} positional parameters, but {given} are required.")
    if len(positional) < given and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        raise ValueError(f"The function {name} takes {len(positional)} parameters, but {given} are required.")


def check_picklable(fn: Callable[..., Any]) -> None:
    """Warn of a function that worker processes could not be given."""
    inner = fn.func if isinstance(fn, functools.partial) else fn
    code = getattr(inner, "__qualname__", "")
    if getattr(inner, "__name__", "") == "<lambda>" or "<locals>" in code:
        warnings.warn(
            "Local function is not supported by pickle, please use regular python function or functools.partial "
            "instead.",
            UserWarning,
            stacklevel=4,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits one of the patterns; without any, all do."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False
) -> Iterable[str]:
    """The files below a folder, in order of their names unless their order does not matter; or the one file itself."""

    def stop(error: OSError) -> None:
        warnings.warn(str(error), stacklevel=2)
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, folders, files in os.walk(os.path.abspath(root) if abspath else root, onerror=stop):
        if not non_deterministic:
            folders.sort()
            files.sort()
        yield from (os.path.join(folder, file) for file in files if match_masks(file, masks))
        if not recursive:
            break


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Each path with the open file."""
    mode = f"{mode}t" if mode in ("r", "w", "a") else mode
    for path in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding))  # noqa: SIM115  (whoever reads it closes it)


def validate_pathname_binary_tuple(data: tuple[str, IOBase]) -> None:
    """Raise a TypeError if `data` is not a path with a stream of bytes."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should be a string, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(f"binary stream within the tuple should be an IOBase, but it is {type(data[1])}")


class StreamWrapper:
    """An open file that closes its parent, such as the archive around it, with the last of the children."""

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: ClassVar[bool] = False

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None) -> None:
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close the streams in a nest of lists, tuples and dicts: those below the top as soon as nothing needs them."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for value in v.values():
                cls.close_streams(value, depth + 1)
        elif isinstance(v, (list, tuple)):
            for value in v:
                cls.close_streams(value, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file; the parent too, if it waits for its last child."""
        if self.closed:
            return
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams.pop(self, None)
        if self.parent_stream is not None:
            self.parent_stream.child_counter -= 1
            if self.parent_stream.child_counter == 0 and self.parent_stream.close_on_last_child:
                self.parent_stream.close()
        self.closed = True
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)

    def autoclose(self) -> None:
        """Close the file as soon as it has no open children."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *vars(StreamWrapper), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{name}{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        vars(self).update(vars(StreamWrapper(obj)))
