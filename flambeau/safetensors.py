"""Files of the safetensors format, with the functions of the `safetensors.torch` package.

    from flambeau.safetensors import load_file, safe_open, save_file

The format holds named tensors and nothing else, so reading it needs no trust.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._core.arrays.lazy_signs import content as _content
from ._core.device import CPU, device
from ._core.size import contiguous_strides
from ._core.storage import UntypedStorage
from ._core.tensor import Tensor
from ._serialization.archive import Source, write_all
from ._serialization.atomic import replacing
from ._serialization.locations import default_restore_location
from ._serialization.rebuild import window_on
from ._serialization.safetensors import Entry, SafetensorError, content_of, make_header, parse_header, to_native
from ._serialization.storages import storage_over

__all__ = ["SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]


def save_file(tensors: dict[str, Tensor], filename: Any, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a file, whole or not at all; `metadata` is a dict of strings that goes with them.

    Tensors must be contiguous and must not share memory, as the format knows neither.

    Args:
        tensors (dict[str, Tensor]): tensors by name.
        filename: the path.
        metadata (dict[str, str], optional): texts by name that go with the tensors.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/model.safetensors"
        >>> torch.safetensors.save_file({"weight": torch.ones(2)}, path, metadata={"epoch": "3"})
    """
    start, order = _prepare(tensors, metadata)
    with replacing(filename, sum(each.nbytes for each in tensors.values())) as file:
        _write(file, start, order, tensors)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of the file that `save_file` writes.

    >>> from flambeau import safetensors
    >>> safetensors.load(safetensors.save({"weight": flambeau.ones(2)}))
    {'weight': tensor([1., 1.])}

    Args:
        tensors (dict[str, Tensor]): tensors by name.
        metadata (dict[str, str], optional): texts by name that go with the tensors.

    Returns:
        bytes: the bytes.
    """
    start, order = _prepare(tensors, metadata)
    file = io.BytesIO()
    _write(file, start, order, tensors)
    return file.getvalue()


def _write(file: Any, start: bytes, order: list[str], tensors: dict[str, Tensor]) -> None:
    write_all(file, start)
    for name in order:
        write_all(file, content_of(_content(tensors[name]), tensors[name].dtype))


def _prepare(tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> tuple[bytes, list[str]]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    owners: dict[UntypedStorage, list[str]] = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected a torch.Tensor but received {type(tensor)}")
        if tensor._kind.dataless:
            raise ValueError(f"`{name}` is on the meta device: it has no data to save")
        if not _is_contiguous(tensor):
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. Save "
                "`tensor.contiguous()` instead."
            )
        if tensor.numel():
            owners.setdefault(tensor.untyped_storage(), []).append(name)
    for names in owners.values():
        if len(names) > 1 and _overlap([tensors[name] for name in names]):
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
                f"loading them again: {sorted(names)}. Use `save_model`, or save clones of them."
            )
    return make_header(tensors, metadata)


def _is_contiguous(tensor: Any) -> bool:
    return bool(tensor.is_contiguous())


def _overlap(tensors: list[Tensor]) -> bool:
    spans = sorted((tensor.storage_offset() * tensor.itemsize, tensor.nbytes) for tensor in tensors)
    return any(begin + size > later for (begin, size), (later, _) in itertools.pairwise(spans))


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file.

    Args:
        filename: the path.
        device: where the tensors go. Default: `"cpu"`.

    Returns:
        dict[str, Tensor]: tensors by name.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/model.safetensors"
        >>> torch.safetensors.save_file({"weight": torch.ones(2)}, path)
        >>> torch.safetensors.load_file(path)
        {'weight': tensor([1., 1.])}
    """
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file.

    Args:
        data (bytes): the bytes.

    Returns:
        dict[str, Tensor]: tensors by name.

    Example:
        >>> torch.safetensors.load(torch.safetensors.save({"weight": torch.ones(2)}))
        {'weight': tensor([1., 1.])}
    """
    with safe_open(io.BytesIO(data)) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def _tensor(content: Any, entry: Entry, place: Any) -> Tensor:
    """A tensor over its bytes in the file, which are its own from now on."""
    storage = storage_over(to_native(content, entry.dtype))
    if device(place) != CPU:
        storage = default_restore_location(storage, str(device(place)))
    return window_on(storage, entry.dtype, 0, entry.shape, contiguous_strides(entry.shape))


class safe_open:
    """A file of which single tensors are read when asked for, in a `with` block or until `close`.

    Args:
        filename: the path.
        framework (str): "pt": tensors are Flambeau's. Default: `"pt"`.
        device: where the tensors go. Default: `"cpu"`.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/model.safetensors"
        >>> torch.safetensors.save_file({"weight": torch.ones(2, 3)}, path)
        >>> with torch.safetensors.safe_open(path) as file:
        ...     print(list(file.keys()), file.get_slice("weight")[:1].shape)
        ['weight'] torch.Size([1, 3])
    """

    def __init__(self, filename: Any, framework: str = "pt", device: Any = "cpu") -> None:
        if framework not in ("pt", "torch", "pytorch", "flambeau"):
            raise SafetensorError(f"framework {framework!r} is invalid here: this is Flambeau's reader, use 'pt'")
        self._device = device
        self._file = filename if hasattr(filename, "read") else open(filename, "rb")  # noqa: SIM115
        try:
            self._source = Source(self._file)
            self._header = parse_header(self._bytes, self._source.size)
        except BaseException:
            self.close()
            raise

    def _bytes(self, position: int, count: int) -> bytes:
        content: bytes = self._memory(position, count).tobytes()
        return content

    def _memory(self, position: int, count: int) -> Any:
        memory = np.empty(count, np.uint8)
        self._source.fill(position, memory)
        return memory

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return sorted(self._header.entries)

    def offset_keys(self) -> list[str]:
        """The names of the tensors in the order of their data."""
        return sorted(self._header.entries, key=lambda name: self._header.entries[name].begin)

    def metadata(self) -> dict[str, str] | None:
        """The strings that go with the tensors."""
        return self._header.metadata

    def _entry(self, name: str) -> Entry:
        entry = self._header.entries.get(name)
        if entry is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return entry

    def get_tensor(self, name: str) -> Tensor:
        """One tensor."""
        entry = self._entry(name)
        content = self._memory(self._header.start + entry.begin, entry.end - entry.begin)
        return _tensor(content, entry, self._device)

    def get_slice(self, name: str) -> TensorSlice:
        """One tensor of which only the indexed part is read."""
        return TensorSlice(self._rows, self._entry(name), self._device)

    def _rows(self, entry: Entry, begin: int, end: int) -> Any:
        """The elements of an entry from one position along its first dimension to another."""
        row = (entry.end - entry.begin) // max(entry.shape[0], 1)
        content = self._memory(self._header.start + entry.begin + begin * row, (end - begin) * row)
        return content.view(entry.dtype.numpy).reshape(end - begin, *entry.shape[1:])

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class TensorSlice:
    """A tensor in a file: `part[2:4]` reads those rows only."""

    def __init__(self, rows: Callable[[Entry, int, int], Any], entry: Entry, place: Any) -> None:
        self._rows = rows
        self._entry = entry
        self._device = place

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._entry.shape)

    def get_dtype(self) -> Any:
        """The dtype of the tensor."""
        return self._entry.dtype

    def __getitem__(self, index: Any) -> Tensor:
        entry = self._entry
        if not entry.shape:
            raise SafetensorError("a tensor without dimensions has no slices")
        first, *others = index if isinstance(index, tuple) else (index,)
        begin, end = 0, entry.shape[0]
        if isinstance(first, slice) and first.step in (None, 1):
            begin, end, _ = first.indices(entry.shape[0])
            end = max(begin, end)
            first = slice(None)
        part = self._rows(entry, begin, end)[(first, *others)]
        content = np.array(part, order="C").reshape(-1).view(np.uint8)
        return _tensor(content, Entry(entry.dtype, np.shape(part), 0, content.nbytes), self._device)


def save_model(
    model: Any, filename: Any, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write a module's parameters and buffers; of those that share memory, the first is kept and the others noted.

    Args:
        model: the name of the function that makes the model.
        filename: the path.
        metadata (dict[str, str], optional): texts by name that go with the tensors.
        force_contiguous (bool): whether tensors are written in their usual order, whatever their strides. Default:
            `True`.

    Example:
        >>> import tempfile
        >>> torch.safetensors.save_model(torch.nn.Linear(2, 2), tempfile.mkdtemp() + "/model.safetensors")
    """
    state = model.state_dict()
    kept: dict[str, Tensor] = {}
    first: dict[tuple[Any, ...], str] = {}
    notes = dict(metadata or {})
    for name, tensor in state.items():
        window = tensor.untyped_storage(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype
        if tensor.numel() and window in first:
            notes[name] = first[window]
            continue
        first[window] = name
        kept[name] = tensor.contiguous() if force_contiguous else tensor
    save_file(kept, filename, metadata=notes or None)


def load_model(model: Any, filename: Any, strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Load what `save_model` wrote into a module; returns the missing and the unexpected names.

    Args:
        model: the name of the function that makes the model.
        filename: the path.
        strict (bool): whether missing and unexpected names raise an error. Default: `True`.
        device: where the tensors go. Default: `"cpu"`.

    Returns:
        tuple[list[str], list[str]]: the missing and the unexpected names.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/model.safetensors"
        >>> torch.safetensors.save_model(torch.nn.Linear(2, 2), path)
        >>> torch.safetensors.load_model(torch.nn.Linear(2, 2), path)
        ([], [])
    """
    with safe_open(filename, device=device) as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name, kept in (file.metadata() or {}).items():
            if kept in state and name not in state:
                state[name] = state[kept]
    missing, unexpected = model.load_state_dict(state, strict=strict)
    return list(missing), list(unexpected)
