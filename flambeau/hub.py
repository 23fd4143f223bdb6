"""Models from elsewhere, under the names of `torch.hub`: from a folder, and weights by their address."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from ._core.names.absent import refusal
from ._core.text.inherited_docs import documented_like

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
_HUBCONF = "hubconf.py"
_folder: str | None = None


class _Bar:
    """A count of what was done, on stderr: in place of the package `tqdm` where that is missing."""

    def __init__(
        self, total: int | None = None, disable: bool = False, unit: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        """Say that `n` more are done."""
        self.n += n
        if not self.disable:
            share = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n:.1f} bytes"
            sys.stderr.write(f"\r{share}")
            sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """What the count is of; not shown."""

    def close(self) -> None:
        """End the line."""
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module("tqdm").tqdm
    except ImportError:
        return _Bar


def _get_torch_home() -> str:
    """The folder of all that is kept between runs."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def get_dir() -> str:
    """The folder in which models and weights are kept.

    Returns:
        str: the path.

    Example:
        >>> torch.hub.get_dir().endswith("hub")
        True
    """
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose that folder.

    Args:
        d (str or PathLike): the folder.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("models")
        >>> torch.hub.get_dir()
        'models'
        >>> torch.hub.set_dir(before)
    """
    global _folder
    _folder = os.path.expanduser(os.fspath(d))


def _folder_of(repo: str | os.PathLike[str], source: str) -> str:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise refusal("torch.hub with source='github'", "nothing is fetched from there; use source='local'")
    return os.fspath(repo)


def _hubconf(folder: str) -> ModuleType:
    path = Path(folder) / _HUBCONF
    spec = importlib.util.spec_from_file_location(_HUBCONF, path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no {_HUBCONF} in {folder}")
    sys.path.insert(0, folder)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [each for each in getattr(module, "dependencies", []) if importlib.util.find_spec(each) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entrypoint(module: ModuleType, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check",
         verbose: bool = True, *, source: str = "local") -> Any:  # fmt: skip
    """The names of the models that a folder with a `hubconf.py` offers.

    Args:
        github (str): the folder, or a repository that is kept in `get_dir()`.
        force_reload (bool): not used: nothing is downloaded from GitHub. Default: `False`.
        skip_validation (bool): not used: nothing is downloaded from GitHub. Default: `False`.
        trust_repo: not used: nothing is downloaded from GitHub. Default: `"check"`.
        verbose (bool): whether messages are printed. Default: `True`.
        source (str): "local" for a folder; "github" is refused unless the repository is kept already. Default:
            `"local"`.

    Returns:
        list of strs.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("def one(): return 1")
        >>> torch.hub.list(str(folder))
        ['one']
    """
    module = _hubconf(_folder_of(github, source))
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


@documented_like(list)
def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check",
         *, source: str = "local") -> str | None:  # fmt: skip
    """What the function of a model says about itself.

    Args:
        model (str): the name of the function that makes the model.

    Returns:
        str, optional: its docstring.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("def one(): 'A model.'; return 1")
        >>> torch.hub.help(str(folder), "one")
        'A model.'
    """
    said: str | None = _entrypoint(_hubconf(_folder_of(github, source)), model).__doc__
    return said


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """The model that a folder's `hubconf.py` makes: `load(folder, "resnet18", source="local")`.

    Args:
        repo_or_dir (str or PathLike): the folder, or a repository that is kept in `get_dir()`.
        model (str): the name of the function that makes the model.
        *args: positional arguments of the function.
        source (str): "local" for a folder; "github" is refused unless the repository is kept already. Default:
            `"github"`.
        trust_repo: not used: nothing is downloaded from GitHub. Default: `"check"`.
        force_reload (bool): not used: nothing is downloaded from GitHub. Default: `False`.
        verbose (bool): whether messages are printed. Default: `True`.
        skip_validation (bool): not used: nothing is downloaded from GitHub. Default: `False`.
        **kwargs: keyword arguments of the function.

    Returns:
        what the function returns.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "hubconf.py").write_text("def one(scale=1): return scale")
        >>> torch.hub.load(str(folder), "one", source="local", scale=3)
        3
    """
    return _entrypoint(_hubconf(_folder_of(repo_or_dir, source.lower())), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Copy what is at an address into a file, all of it or nothing; `hash_prefix` is how its SHA-256 must begin.

    Args:
        url (str): the address.
        dst (str): the path of the file.
        hash_prefix (str, optional): how the SHA-256 must begin; None does not check it.
        progress (bool): whether a bar is shown. Default: `True`.

    Example:
        >>> import pathlib, tempfile
        >>> source = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
        >>> _ = source.write_text("weights")
        >>> torch.hub.download_url_to_file(source.as_uri(), str(source.with_name("b.txt")), progress=False)
        >>> source.with_name("b.txt").read_text()
        'weights'
    """
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with (
        urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source,
        tempfile.NamedTemporaryFile(dir=os.path.dirname(dst) or ".", delete=False) as into,
    ):
        try:
            while chunk := source.read(READ_DATA_CHUNK):
                into.write(chunk)
                digest.update(chunk)
            into.close()
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            shutil.move(into.name, dst)
        finally:
            into.close()
            if os.path.exists(into.name):
                os.remove(into.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """The state dict at an address, which may be a file:// one; it is kept, and taken from there the next time.

    Args:
        url (str): the address.
        model_dir (str, optional): where the file is kept; None means `get_dir()` + "/checkpoints".
        map_location: as in `torch.load`.
        progress (bool): whether a bar is shown. Default: `True`.
        check_hash (bool): whether the file's name ends in the first digits of its SHA-256, which are compared.
            Default: `False`.
        file_name (str, optional): the name of the kept file; None means as in the address.
        weights_only (bool): as in `torch.load`. Default: `False`.

    Returns:
        dict: the state dict.

    Example:
        >>> import pathlib, tempfile
        >>> source = pathlib.Path(tempfile.mkdtemp()) / "weights.pt"
        >>> torch.save({"weight": torch.ones(1)}, source)
        >>> torch.hub.load_state_dict_from_url(source.as_uri(), tempfile.mkdtemp(), progress=False)
        {'weight': tensor([1.])}
    """
    from .serialization import load as load_file

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    kept = os.path.join(folder, name)
    if not os.path.exists(kept):
        sys.stderr.write(f'Downloading: "{url}" to {kept}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, found[1] if found else None, progress=progress)
    state: dict[str, Any] = load_file(kept, map_location=map_location, weights_only=weights_only)
    return state
