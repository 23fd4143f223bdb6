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
from collections.abc import Iterator
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
_OBJECTS = "objects"
_OWN_FILE = re.compile(r"[0-9a-f]{12}-(\d{5}-of-\d{5}\.safetensors|objects\.pt)")
"""Files of our checkpoints: the older ones are removed, and nothing else in the folder is."""


class CheckpointException(Exception):
    """A checkpoint that cannot be written or read."""


def leaves(state: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[Any, Any], Any, Any]]:
    """All values in nested dictionaries: a name, and the dictionary and the key where the value is."""
    for key, value in state.items():
        here = (*path, str(key))
        if isinstance(value, dict):
            yield from leaves(value, here)
        else:
            yield ".".join(here), state, key, value


def named_values(state: dict[str, Any]) -> dict[str, tuple[dict[Any, Any], Any, Any]]:
    """The values of a state by name."""
    found: dict[str, tuple[dict[Any, Any], Any, Any]] = {}
    for name, owner, key, value in leaves(state):
        if name in found:
            raise CheckpointException(f"two values are called {name!r}")
        found[name] = owner, key, value
    return found


@dataclass
class Staged:
    """A state that is ready to be written: what this process writes of it, and what all of them do."""

    own: dict[str, Tensor]
    objects: dict[str, Any]
    shares: list[list[str]]
    total_size: int


def stage(state: dict[str, Any], group: ProcessGroup | None) -> Staged:
    """Copies of the tensors that this process is to write. Spread ones are put together, one after the other."""
    rank, size = (0, 1) if group is None else (group.rank(), group.size())
    values = named_values(state)
    tensors = {name: value for name, (_, _, value) in values.items() if isinstance(value, Tensor)}
    shares = _shared_out(tensors, size)
    mine = set(shares[rank])
    own: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        whole = tensor.detach()
        if isinstance(whole, DTensor):
            whole = whole.full_tensor()  # all processes take part, and the one that writes it keeps it
        if name in mine:
            own[name] = whole.cpu().contiguous().clone()
    objects = {name: value for name, (_, _, value) in values.items() if name not in tensors}
    return Staged(own, objects, shares, sum(each.numel() * each.element_size() for each in tensors.values()))


def write(folder: Path, staged: Staged, group: ProcessGroup | None) -> None:
    """Write a state of which all processes have staged their parts."""
    rank, size = (0, 1) if group is None else (group.rank(), group.size())
    folder.mkdir(parents=True, exist_ok=True)
    stamp = [uuid.uuid4().hex[:12]]
    if group is not None:
        _objects.broadcast_object_list(stamp, group=group, group_src=0)
    files = [f"{stamp[0]}-{each + 1:05d}-of-{size:05d}.safetensors" for each in range(size)]
    failure = None
    try:
        _check_folder(folder)
        save_file(staged.own, folder / files[rank], {"format": "pt"})
        if rank == 0:
            save_objects(staged.objects, folder / f"{stamp[0]}-{_OBJECTS}.pt")
    except Exception as error:
        failure = f"rank {rank}: {type(error).__name__}: {error}"
    _all_are_well(failure, group)
    if rank == 0:
        weights = {name: files[each] for each, names in enumerate(staged.shares) for name in names}
        metadata = {"total_size": staged.total_size, _OBJECTS: f"{stamp[0]}-{_OBJECTS}.pt"}
        text = json.dumps({"metadata": metadata, "weight_map": weights}, indent=1)
        with replacing(folder / INDEX) as file:
            file.write(text.encode())
        _remove_older(folder, stamp[0])
    if group is not None:
        _calls.barrier(group)


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose index is somebody else's: it would be overwritten."""
    path = folder / INDEX
    if path.exists() and _OBJECTS not in json.loads(path.read_text(encoding="utf-8")).get("metadata", {}):
        raise CheckpointException(f"{path} belongs to another set of files: choose another folder")


def _shared_out(tensors: dict[str, Tensor], size: int) -> list[list[str]]:
    """Which process writes which tensors: nearly the same number of bytes each."""
    loads = [0] * size
    shares: list[list[str]] = [[] for _ in range(size)]
    for name in sorted(tensors, key=lambda each: (-tensors[each].numel() * tensors[each].element_size(), each)):
        least = loads.index(min(loads))
        shares[least].append(name)
        loads[least] += tensors[name].numel() * tensors[name].element_size()
    return shares


def _all_are_well(failure: str | None, group: ProcessGroup | None) -> None:
    """An error on all processes if one has failed."""
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


def _index(folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The files of the tensors by their names, and the other values."""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        files, objects_name = index["weight_map"], index["metadata"][_OBJECTS]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointException(f"{folder} has no checkpoint: {error}") from error
    return files, load_objects(folder / objects_name, weights_only=True)


def read_whole(folder: Path) -> dict[str, Any]:
    """All values of a checkpoint by name: that of a nested one is its keys with dots between them."""
    files, objects = _index(folder)
    found: dict[str, Any] = dict(objects)
    for name, file in files.items():
        with safe_open(folder / os.path.basename(file)) as opened:
            found[name] = opened.get_tensor(name)
    return found


def read(folder: Path, state: dict[str, Any], allow_missing: bool = False) -> None:
    """Fill a state: tensors in place, all other values anew. Any number of processes may have written it."""
    files, objects = _index(folder)
    by_file: dict[str, list[tuple[str, Tensor]]] = {}
    for name, (owner, key, value) in named_values(state).items():
        if isinstance(value, Tensor) and name in files:
            by_file.setdefault(files[name], []).append((name, value))
        elif name in objects:
            owner[key] = objects[name]
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
    """Read what this process has of a spread tensor, and no more."""
    if any(isinstance(each, Partial) for each in target.placements):
        raise CheckpointException(f"{name} is still to be added up ({target.placements}): redistribute it before")
    layout = target._layout
    window = [slice(start, start + size) for start, size in zip(layout.offsets(), layout.local_shape(), strict=True)]
    target._local_tensor.detach().copy_(opened.get_slice(name)[tuple(window)] if window else opened.get_tensor(name))
