"""Weights for the networks of this package: from a checkpoint on this machine, or from a state dict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Weights = str | os.PathLike[str] | Mapping[str, Any] | None
"""What `weights=` may be: the path of a checkpoint, a state dict, or None for new weights."""


def state_dict_of(weights: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """The state dict that `weights` names; files are read without running code from them."""
    if isinstance(weights, Mapping):
        return weights
    if not isinstance(weights, (str, os.PathLike)):
        raise TypeError(f"weights must be a path, a state dict or None, not {type(weights).__name__}")
    if not os.path.exists(weights):
        raise FileNotFoundError(
            f"weights={os.fspath(weights)!r}: there is no such file. Nothing is downloaded: save the checkpoint, for "
            "example one of torchvision's, and give its path"
        )
    from .. import load

    content = load(weights, map_location="cpu", weights_only=True)
    if not isinstance(content, Mapping):
        raise TypeError(f"weights: {os.fspath(weights)!r} holds a {type(content).__name__}, not a state dict")
    return content


def downloaded(name: str) -> Path:
    """The checkpoint of the network `name` in the folder where torchvision keeps what it downloads."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    folder = Path(os.environ.get("TORCH_HOME", cache), "hub", "checkpoints").expanduser()
    found = sorted(folder.glob(f"{name}-*.pth"))
    if len(found) == 1:
        return found[0]
    what = "is none" if not found else f"are {len(found)}: {', '.join(each.name for each in found)}"
    raise FileNotFoundError(
        f"pretrained=True looks for a checkpoint of {name} in {folder}, and there {what}. Nothing is downloaded: give "
        "the path of a file as weights="
    )
