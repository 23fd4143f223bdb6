"""A checkpoint of several processes: a folder of safetensors files and an index that names them.

Each process writes some of the tensors, every one whole, under names that no earlier checkpoint has. The index is
replaced last, in one step: whoever looks, after a crash at any moment, finds the old checkpoint whole or the new one
whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._core.tensor import Tensor
from ..._serialization.atomic import replacing
from ...safetensors import safe_open, save_file
from ...serialization import load as load_objects
from ...serialization import save as save_objects
from .. import _calls, _objects
from .._world import ProcessGroup
from ..tensor._dtensor import DTensor
from ..tensor.placement_types import Partial

INDEX = "model.safetensors.index.json"
_OBJECTS, _PATHS = "objects", "paths"
_OWN_FILE = re.compile(r"[0-9a-f]{12}-(\d{5}-of-\d{5}\.safetensors|objects\.pt)")
"""Files of our checkpoints: the older ones are removed, and nothing else in the folder is."""


class CheckpointException(Exception):
    """A checkpoint that cannot be written or read.

    Example:
        >>> issubclass(dist.checkpoint.CheckpointException, BaseException)
        True
    """


Keys = tuple[Any, ...]
"""The keys that lead to a value in nested dictionaries."""


def leaves(state: Any, path: Keys = ()) -> Iterator[tuple[Keys, dict[Any, Any], Any]]:
    """All values in nested dictionaries: the way to each, the dictionary where it is, and the value."""
    for key, value in state.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), state, value


def named_values(state: dict[str, Any]) -> dict[str, tuple[Keys, dict[Any, Any], Any]]:
    """The values of a state by name: its keys, with dots between them."""
    found: dict[str, tuple[Keys, dict[Any, Any], Any]] = {}
    for path, owner, value in leaves(state):
        name = ".".join(map(str, path))
        if name in found:
            raise CheckpointException(f"two values are called {name!r}")
        found[name] = path, owner, value
    return found


ShareOut = Callable[[dict[str, Tensor], int], list[list[str]]]
"""Says which of so many processes writes which tensors."""


@dataclass
class Staged:
    """A state that is ready to be written: what this process writes of it, and what all of them do."""

    own: dict[str, Tensor]
    objects: dict[str, Any]
    paths: dict[str, list[str]]
    """The keys behind names that have several. Numbers become text, as in PyTorch."""
    shares: list[list[str]]
    total_size: int


def shared_out(tensors: dict[str, Tensor], size: int) -> list[list[str]]:
    """Which process writes which tensors: nearly the same number of bytes each."""
    loads = [0] * size
    shares: list[list[str]] = [[] for _ in range(size)]
    for name in sorted(tensors, key=lambda each: (-tensors[each].numel() * tensors[each].element_size(), each)):
        least = loads.index(min(loads))
        shares[least].append(name)
        loads[least] += tensors[name].numel() * tensors[name].element_size()
    return shares


def stage(state: dict[str, Any], group: ProcessGroup | None, share_out: ShareOut = shared_out) -> Staged:
    """Copies of the tensors that this process is to write. Distributed ones are put together, one after the other."""
    rank, size = (0, 1) if group is None else (group.rank(), group.size())
    values = named_values(state)
    tensors = {name: value for name, (_, _, value) in values.items() if isinstance(value, Tensor)}
    shares = share_out(tensors, size)
    mine = set(shares[rank])
    own: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        whole = tensor.detach()
        if isinstance(whole, DTensor):
            whole = whole.full_tensor()  # all processes take part, and the one that writes it keeps it
        if name in mine:
            own[name] = whole.cpu().contiguous().clone()
    objects = {name: value for name, (_, _, value) in values.items() if name not in tensors}
    total_size = sum(each.numel() * each.element_size() for each in tensors.values())
    paths = {name: [str(key) for key in path] for name, (path, _, _) in values.items() if len(path) > 1}
    return Staged(own, objects, paths, shares, total_size)


def write(folder: Path, staged: Staged, group: ProcessGroup | None) -> None:
    """Write a state of which all processes have staged their parts."""
    rank, size = (0, 1) if group is None else (group.rank(), group.size())
    folder.mkdir(parents=True, exist_ok=True)
    stamp = [uuid.uuid4().hex[:12]]
    if group is not None:
        _objects.broadcast_object_list(stamp, group=group, group_src=0)
    files = [f"{stamp[0]}-{each + 1:05d}-of-{size:05d}.safetensors" for each in range(size)]

    def write_own() -> None:
        _check_folder(folder)
        save_file(staged.own, folder / files[rank], {"format": "pt"})
        if rank == 0:
            save_objects(staged.objects, folder / f"{stamp[0]}-{_OBJECTS}.pt")

    together(write_own, group)
    if rank == 0:
        weights = {name: files[each] for each, names in enumerate(staged.shares) for name in names}
        objects = f"{stamp[0]}-{_OBJECTS}.pt"
        metadata = {"total_size": staged.total_size, _OBJECTS: objects, _PATHS: staged.paths}
        write_index(folder, metadata, weights)
        _remove_older(folder, stamp[0])
    if group is not None:
        _calls.barrier(group)


def write_index(folder: Path, metadata: dict[str, Any], weights: dict[str, str]) -> None:
    """Let a folder hold the tensors in these files from now on."""
    with replacing(folder / INDEX) as file:
        file.write(json.dumps({"metadata": metadata, "weight_map": weights}, indent=1).encode())


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose index is somebody else's: it would be overwritten."""
    path = folder / INDEX
    if path.exists() and _OBJECTS not in json.loads(path.read_text(encoding="utf-8")).get("metadata", {}):
        raise CheckpointException(f"{path} belongs to another set of files: choose another folder")


def together(write_own: Callable[[], None], group: ProcessGroup | None) -> None:
    """Let each process write its files. An error on all of them if one has failed."""
    failure = None
    try:
        write_own()
    except Exception as error:
        failure = f"rank {0 if group is None else group.rank()}: {type(error).__name__}: {error}"
    failures = [failure]
    if group is not None:
        failures = [None] * group.size()
        _objects.all_gather_object(failures, failure, group)
    found = [each for each in failures if each]
    if found:
        raise CheckpointException(f"the checkpoint was not written, and the one before is whole: {'; '.join(found)}")


def _remove_older(folder: Path, stamp: str) -> None:
    for old in folder.iterdir():
        if _OWN_FILE.fullmatch(old.name) and not old.name.startswith(stamp):
            with contextlib.suppress(OSError):
                os.unlink(old)


def _index(folder: Path) -> tuple[dict[str, str], dict[str, Any], dict[str, list[str]]]:
    """The files of the tensors by their names, the other values, and the keys behind names."""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        files, metadata = index["weight_map"], index["metadata"]
        objects_name, paths = metadata[_OBJECTS], metadata.get(_PATHS, {})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointException(f"{folder} has no checkpoint: {error}") from error
    return files, load_objects(folder / objects_name, weights_only=True), paths


def read_whole(folder: Path) -> dict[str, Any]:
    """The state that a checkpoint holds, nested as it was."""
    files, objects, paths = _index(folder)
    found: dict[str, Any] = {}

    def put(name: str, value: Any) -> None:
        *outer, last = paths.get(name, [name])
        place = found
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = value

    for name, value in objects.items():
        put(name, value)
    for name, file in files.items():
        with safe_open(folder / os.path.basename(file)) as opened:
            put(name, opened.get_tensor(name))
    return found


def read(folder: Path, state: dict[str, Any], allow_missing: bool = False) -> None:
    """Fill a state: tensors in place, all other values anew. Any number of processes may have written it."""
    files, objects, _ = _index(folder)
    fill(folder, files, objects, state, allow_missing)


def fill(
    folder: Path, files: dict[str, str], objects: dict[str, Any], state: dict[str, Any], allow_missing: bool
) -> None:
    """Fill a state with the tensors in files, by their names, and other values."""
    by_file: dict[str, list[tuple[str, Tensor]]] = {}
    for name, (path, owner, value) in named_values(state).items():
        if isinstance(value, Tensor) and name in files:
            by_file.setdefault(files[name], []).append((name, value))
        elif name in objects:
            owner[path[-1]] = objects[name]
        elif not allow_missing:
            raise CheckpointException(f"Missing key in checkpoint state_dict: {name}.")
    for file, wanted in by_file.items():
        with safe_open(folder / os.path.basename(file)) as opened:
            for name, target in wanted:
                saved = tuple(opened.get_slice(name).get_shape())
                if saved != tuple(target.shape):
                    raise CheckpointException(
                        f"Size mismatch: {name} has shape {saved} when saved and {tuple(target.shape)} now"
                    )
                if isinstance(target, DTensor):
                    _read_part(opened, name, target)
                else:
                    target.detach().copy_(opened.get_tensor(name))


def _read_part(opened: Any, name: str, target: DTensor) -> None:
    """Read what this process has of a distributed tensor, and no more."""
    if any(isinstance(each, Partial) for each in target.placements):
        raise CheckpointException(f"{name} is still to be added up ({target.placements}): redistribute it before")
    layout = target._layout
    window = [slice(start, start + size) for start, size in zip(layout.offsets(), layout.local_shape(), strict=True)]
    target._local_tensor.detach().copy_(opened.get_slice(name)[tuple(window)] if window else opened.get_tensor(name))
